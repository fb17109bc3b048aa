//! Lanes: the pipes that each flow has to itself, and which flow a frame is of.

use aqmlab_qdisc::Pipe;
use aqmlab_scenario::{ClassPlan, DelayPlan, Edge, Plan, base_rtt};
use aqmlab_units::{Bytes, Span};

use super::routes::{OwnPipe, Routes};
use crate::entry::{End, Entry};
use crate::frame::Headers;

/// The client's port of the first flow of a class; the next flow has the next port.
pub const FIRST_CLIENT_PORT: u16 = 1024;
/// The server's port of all flows.
pub const SERVER_PORT: u16 = 5001;

/// The lanes of all classes.
pub struct Lanes {
    classes: Vec<ClassLanes>,
}

/// Those of one class: one for each flow, and one for packets that are of the class but of no flow (ICMP, fragments,
/// other ports), with the mean delay.
struct ClassLanes {
    flows: u32,
    /// The number of the first flow in the run.
    first_number: u32,
    /// The number of the first pipe, and how many each lane has.
    first_pipe: u32,
    pipes: u32,
    base_rtts: Vec<Span>,
}

impl Lanes {
    /// The lanes of `plan`, and all pipes: first one for each link, its propagation delay; then those of the lanes, by
    /// class, flow, and place on the way. Pipes are drawn by the seed as the simulator draws its links. `None` if there
    /// are 2^32 or more.
    pub fn new(plan: &Plan, routes: &Routes, seed: u64) -> Option<(Self, Vec<Pipe>)> {
        let mut pipes: Vec<Pipe> = plan.links.iter().map(|link| Pipe::new(link.delay)).collect();
        let (mut classes, mut first_number) = (Vec::new(), 0u32);
        for (number, class) in plan.classes.iter().enumerate() {
            let wanted = routes.pipes(number);
            let flows = u32::try_from(class.count).ok()?;
            let lane = Lane { plan, number, class, propagation: plan.propagation(number), seed };
            let (first_pipe, mut base_rtts) = (u32::try_from(pipes.len()).ok()?, Vec::new());
            for index in (0..class.count).map(Some).chain([None]) {
                base_rtts.push(lane.base_rtt(wanted, index));
                pipes.extend(wanted.iter().map(|&which| lane.pipe(which, index)));
            }
            let lanes = ClassLanes { flows, first_number, first_pipe, pipes: wanted.len() as u32, base_rtts };
            classes.push(lanes);
            first_number = first_number.checked_add(flows)?;
        }
        u32::try_from(pipes.len()).ok()?;
        Some((Lanes { classes }, pipes))
    }

    /// The lane of a frame that comes in by `door`: the index of its flow, or the lane of those that are of none. A flow
    /// has a port at the client, and the server's is the same for all.
    pub fn lane(&self, door: Entry, headers: &Headers) -> u32 {
        let class = &self.classes[door.class];
        let Some((from, to)) = headers.ports else { return class.flows };
        let (client, server) = if door.side == End::Client { (from, to) } else { (to, from) };
        let index = client.checked_sub(FIRST_CLIENT_PORT).map(u32::from);
        match index {
            Some(index) if index < class.flows && server == SERVER_PORT => index,
            _ => class.flows,
        }
    }

    /// The number of the n-th pipe of a lane.
    #[inline]
    pub fn pipe(&self, class: usize, lane: u32, which: u8) -> u32 {
        let class = &self.classes[class];
        class.first_pipe + lane * class.pipes + u32::from(which)
    }

    /// The least delay of the n-th pipe over all lanes of a class.
    pub fn least_delay(&self, class: usize, which: u8, pipes: &[Pipe]) -> Span {
        let lanes = 0..self.count(class) as u32;
        lanes.map(|lane| pipes[self.pipe(class, lane, which) as usize].delay()).min().unwrap_or(Span::ZERO)
    }

    /// The index of a lane's flow; `None` for the lane of those that are of none.
    pub fn flow(&self, class: usize, lane: u32) -> Option<u32> {
        (lane < self.classes[class].flows).then_some(lane)
    }

    /// The number of a flow in the run.
    pub fn number(&self, class: usize, index: u32) -> u32 {
        self.classes[class].first_number + index
    }

    /// The base round-trip time of a lane.
    pub fn base_rtt(&self, class: usize, lane: u32) -> Span {
        self.classes[class].base_rtts[lane as usize]
    }

    /// How many lanes cross a link, those that do so in both directions twice: flows there, as far as they are the plan's.
    pub fn across(&self, plan: &Plan, link: usize) -> usize {
        let crosses = |class: &ClassPlan| {
            [&class.path, &class.return_path].into_iter().filter(|way| way.contains(&link)).count()
        };
        plan.classes.iter().enumerate().map(|(number, class)| crosses(class) * self.count(number)).sum()
    }

    /// How many lanes a class has: one more than flows.
    pub fn count(&self, class: usize) -> usize {
        self.classes[class].flows as usize + 1
    }
}

/// What a lane's pipes are made from.
struct Lane<'a> {
    plan: &'a Plan,
    number: usize,
    class: &'a ClassPlan,
    propagation: Span,
    seed: u64,
}

impl Lane<'_> {
    fn access_delay(&self, index: Option<u64>) -> Option<Span> {
        match index {
            Some(index) => self.class.access_delay(index, self.propagation, self.seed),
            None => self.class.mean_access_delay(self.propagation),
        }
    }

    fn base_rtt(&self, wanted: &[OwnPipe], index: Option<u64>) -> Span {
        let stage = |&which: &OwnPipe| match which {
            OwnPipe::Stage(..) => self.pipe(which, index).delay(),
            OwnPipe::Access(..) => Span::ZERO,
        };
        let stages = wanted.iter().fold(Span::ZERO, |sum, which| sum + stage(which));
        let access = self.access_delay(index).map(|delay| (delay, self.class.access_links()));
        base_rtt(self.propagation, access, stages)
    }

    fn pipe(&self, which: OwnPipe, index: Option<u64>) -> Pipe {
        match which {
            OwnPipe::Stage(direction, edge) => self.stage(direction, edge, index),
            OwnPipe::Access(direction, edge) => self.access(direction, edge, index),
        }
    }

    fn stage(&self, direction: usize, edge: Edge, index: Option<u64>) -> Pipe {
        let rule: &DelayPlan =
            self.plan.delay_stage(self.number, direction, edge).expect("routes have seen it");
        match index {
            Some(index) => rule.pipe(&self.class.name, self.class.count, direction, index, self.seed),
            None => rule.mean_pipe(),
        }
    }

    fn access(&self, direction: usize, edge: Edge, index: Option<u64>) -> Pipe {
        let rate = self.class.access.as_ref().expect("routes have seen it").rate;
        let delay = self.access_delay(index).expect("it has access links");
        let pipe = Pipe::new(delay).with_rate(rate, Bytes::ZERO);
        // The sender's own link may lose: see `ClassPlan::access_loss`.
        let losses = index
            .filter(|_| direction == 0 && edge == Edge::Entry)
            .and_then(|index| self.class.access_losses(index, self.seed));
        match losses {
            Some(losses) => pipe.with_losses(losses),
            None => pipe,
        }
    }
}
