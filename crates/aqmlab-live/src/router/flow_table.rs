//! The flows of each class: the pipes that each has to itself, and which flow a frame is of.

use aqmlab_network::{End, FlowPath, OwnPipe};
use aqmlab_qdisc::Pipe;
use aqmlab_scenario::{ClassPlan, Plan};
use aqmlab_traffic::Identity;
use aqmlab_units::Span;

use super::routes::Routes;
use crate::frame::Headers;
use crate::host_id::HostId;

/// The client's port of the first flow of a class; the next flow has the next port.
pub const FIRST_CLIENT_PORT: u16 = 1024;
/// The server's port of all flows.
pub const SERVER_PORT: u16 = 5001;

/// The flows of all classes, one row each.
pub struct FlowTable {
    classes: Vec<ClassFlows>,
}

/// Those of one class: one for each flow, and one for packets that are of the class but of no flow (ICMP, fragments,
/// other ports), with the mean delay.
struct ClassFlows {
    flows: u32,
    /// The number of the first flow in the run.
    first_number: u32,
    /// The number of the first pipe, and how many each row has.
    first_pipe: u32,
    pipes: u32,
    base_rtts: Vec<Span>,
}

impl FlowTable {
    /// The flows of `plan`, and all pipes: first one for each link, its propagation delay; then those of the rows, by
    /// class, flow, and place on the way. Pipes are drawn by the seed as the simulator draws its links. `None` if there
    /// are 2^32 or more.
    pub fn new(plan: &Plan, routes: &Routes, seed: u64) -> Option<(Self, Vec<Pipe>)> {
        let mut pipes: Vec<Pipe> = plan.links.iter().map(|link| Pipe::new(link.delay)).collect();
        let (mut classes, mut first_number) = (Vec::new(), 0u32);
        for (number, class) in plan.classes.iter().enumerate() {
            let wanted = routes.pipes(number);
            let flows = u32::try_from(class.count).ok()?;
            let propagation = plan.propagation(number);
            let (first_pipe, mut base_rtts) = (u32::try_from(pipes.len()).ok()?, Vec::new());
            for flow in (0..flows).map(|index| Some(Identity::first_of(index))).chain([None]) {
                let path = FlowPath::new(plan, number, propagation, flow, seed);
                base_rtts.push(path.base_rtt(stage_delay(&path, wanted)));
                pipes.extend(wanted.iter().map(|&which| path.pipe(which)));
            }
            let flows_of_class =
                ClassFlows { flows, first_number, first_pipe, pipes: wanted.len() as u32, base_rtts };
            classes.push(flows_of_class);
            first_number = first_number.checked_add(flows)?;
        }
        u32::try_from(pipes.len()).ok()?;
        Some((FlowTable { classes }, pipes))
    }

    /// The row of a frame that comes in by `host`: the index of its flow, or the row of those that are of none. A flow
    /// has a port at the client, and the server's is the same for all.
    pub fn row(&self, host: HostId, headers: &Headers) -> u32 {
        let class = &self.classes[host.class];
        let Some((from, to)) = headers.ports else { return class.flows };
        let (client, server) = if host.side == End::Client { (from, to) } else { (to, from) };
        let index = client.checked_sub(FIRST_CLIENT_PORT).map(u32::from);
        match index {
            Some(index) if index < class.flows && server == SERVER_PORT => index,
            _ => class.flows,
        }
    }

    /// The number of the n-th pipe of a row.
    #[inline]
    pub fn pipe(&self, class: usize, row: u32, which: u8) -> u32 {
        let class = &self.classes[class];
        class.first_pipe + row * class.pipes + u32::from(which)
    }

    /// The least delay of the n-th pipe over all rows of a class.
    pub fn least_delay(&self, class: usize, which: u8, pipes: &[Pipe]) -> Span {
        let rows = 0..self.count(class) as u32;
        rows.map(|row| pipes[self.pipe(class, row, which) as usize].delay()).min().unwrap_or(Span::ZERO)
    }

    /// The index of a row's flow; `None` for the row of those that are of none.
    pub fn flow(&self, class: usize, row: u32) -> Option<u32> {
        (row < self.classes[class].flows).then_some(row)
    }

    /// The number of a flow in the run.
    pub fn number(&self, class: usize, index: u32) -> u32 {
        self.classes[class].first_number + index
    }

    /// The base round-trip time of a row.
    pub fn base_rtt(&self, class: usize, row: u32) -> Span {
        self.classes[class].base_rtts[row as usize]
    }

    /// How many rows cross a link, those that do so in both directions twice: flows there, as far as they are the plan's.
    pub fn across(&self, plan: &Plan, link: usize) -> usize {
        let crosses = |class: &ClassPlan| {
            [&class.path, &class.return_path].into_iter().filter(|way| way.contains(&link)).count()
        };
        plan.classes.iter().enumerate().map(|(number, class)| crosses(class) * self.count(number)).sum()
    }

    /// How many rows a class has: one more than flows.
    pub fn count(&self, class: usize) -> usize {
        self.classes[class].flows as usize + 1
    }
}

/// What delay stages add to a flow's round-trip time.
fn stage_delay(path: &FlowPath<'_>, pipes: &[OwnPipe]) -> Span {
    let stages = pipes.iter().filter(|pipe| matches!(pipe, OwnPipe::Stage(..)));
    stages.fold(Span::ZERO, |sum, &stage| sum + path.pipe(stage).delay())
}
