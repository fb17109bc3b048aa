//! The rows of each class. A row describes the connection that uses a client port, and the
//! connection's own pipes; each frame belongs to a row.

use std::sync::mpsc::Receiver;

use aqmlab_network::{End, FlowPath, OwnPipe};
use aqmlab_qdisc::Pipe;
use aqmlab_scenario::{ClassPlan, Plan, Traffic};
use aqmlab_traffic::Identity;
use aqmlab_units::{Instant, Span};

use super::announcements::Announcement;
use super::found::{Ends, Finder, Found};
use super::routes::Routes;
use crate::addresses::{HostId, client_port};
use crate::frame::{Headers, Owner};

/// The rows of all classes. Each class has a row for each client port. An additional row, whose
/// pipes have the mean delay, is for packets that belong to the class but to no connection (ICMP,
/// fragments, other ports).
pub struct FlowTable {
    classes: Vec<ClassRows>,
}

struct ClassRows {
    /// Number of client ports, which is also the index of the row for packets that belong to no
    /// connection.
    rows: u32,
    /// Port on which the class's server listens.
    server_port: u16,
    /// Number of flows of the class, which is also the index of the books for packets that belong
    /// to no flow.
    flows: u32,
    /// The number that the class's first flow has in the run.
    first_number: u32,
    /// For each pipe of a row, its stage and its place among the row's pipes in that stage.
    pipes: Vec<(usize, u32)>,
    /// The number of the class's first pipe in each stage.
    first_pipe: [u32; 2],
    /// Number of pipes per row in each stage.
    pipes_per_row: [u32; 2],
    /// The owner of each client port; empty if flow `i` always has port `i`.
    tenants: Vec<Option<Tenant>>,
    /// The flows of a class of programs, which are found as their packets arrive.
    finder: Option<Finder>,
    /// Whether the pipes of the first row apply to all rows.
    shares_delays: bool,
}

/// Owner of a client port.
#[derive(Clone, Copy)]
struct Tenant {
    flow: u32,
    /// Number of earlier owners of the port.
    tenancy: u32,
}

/// Index of the stage with the pipes inside the network; see [`Router`](super::core::Router).
pub const INSIDE: usize = 0;
/// Index of the stage with the pipes that are the last on a frame's path.
pub const LEAVING: usize = 1;

impl FlowTable {
    /// Returns the table for `plan`, with `rows` client ports per class, and the pipes of the two
    /// stages. In each stage, the pipes of the links come first, with their propagation delays; the
    /// pipes of the rows follow, ordered by class, row, and place on the path. The pipes of listed
    /// flows are drawn from the seed, as in the simulator; those of other populations are drawn
    /// when their connections are announced. Returns `None` if there are 2^32 or more pipes or
    /// flows.
    pub fn new(plan: &Plan, routes: &Routes, rows: &[u32], seed: u64) -> Option<(Self, [Vec<Pipe>; 2])> {
        let of_links: Vec<Pipe> = plan.links.iter().map(|link| Pipe::new(link.delay)).collect();
        let mut pipes = [of_links.clone(), of_links];
        let (mut classes, mut first_number) = (Vec::new(), 0u32);
        for (number, class) in plan.classes.iter().enumerate() {
            let flows = u32::try_from(class.count).ok()?;
            let program = match &class.traffic {
                Traffic::Program(program) => Some(program),
                _ => None,
            };
            let mut of_class = ClassRows {
                rows: rows[number],
                server_port: class.port,
                flows,
                first_number,
                pipes: Vec::new(),
                first_pipe: [
                    u32::try_from(pipes[INSIDE].len()).ok()?,
                    u32::try_from(pipes[LEAVING].len()).ok()?,
                ],
                pipes_per_row: [0; 2],
                finder: program.map(|_| Finder::new(flows)),
                shares_delays: program.is_some_and(|program| !program.delays_by_connection),
                tenants: if class.is_list() { Vec::new() } else { vec![None; rows[number] as usize] },
            };
            of_class.place_pipes(routes, number);
            of_class.add_pipes(plan, number, routes.pipes(number), seed, &mut pipes);
            classes.push(of_class);
            first_number = first_number.checked_add(flows)?;
        }
        pipes.iter().try_for_each(|pipes| u32::try_from(pipes.len()).ok().map(|_| ()))?;
        Some((FlowTable { classes }, pipes))
    }

    /// Returns the owner of a frame that arrives from `host` at `now`. Each connection has its own client port;
    /// the server's port is the same for all. The flows of programs are found by all their addresses and ports.
    pub fn owner(&mut self, now: Instant, host: HostId, headers: &Headers, octets: &[u8]) -> Owner {
        let class = &mut self.classes[host.class];
        let row = match &mut class.finder {
            Some(finder) => finder.row(now, host.side, headers, octets),
            None => class.row(host.side, headers),
        };
        row.and_then(|row| class.owner(row)).unwrap_or(class.nobody())
    }

    /// Returns the flows of a class that were found, by row; none if its flows are announced or listed.
    pub fn found(&self, class: usize) -> &[Found] {
        self.classes[class].finder.as_ref().map_or(&[], Finder::found)
    }

    /// Returns the ends of each flow of a class of programs, when it is found.
    ///
    /// # Panics
    /// If the flows of the class are announced or listed.
    pub fn hear(&mut self, class: usize) -> Receiver<Ends> {
        self.classes[class].finder.as_mut().expect("the class has programs").hear()
    }

    /// Notes that a frame of this owner has left the network.
    pub fn left(&mut self, class: usize, owner: Owner, at: Instant) {
        if let Some(finder) = &mut self.classes[class].finder {
            finder.left(owner.row, at);
        }
    }

    /// Returns whether connections of a class reuse client ports.
    pub fn has_tenants(&self, class: usize) -> bool {
        !self.classes[class].tenants.is_empty()
    }

    /// Assigns a client port to another connection. Frames of the previous connection are then stale.
    pub fn move_in(&mut self, announcement: &Announcement) {
        let Announcement { class, row, flow, .. } = *announcement;
        let tenant = &mut self.classes[usize::from(class)].tenants[row as usize];
        let tenancy = tenant.map_or(0, |before| before.tenancy.wrapping_add(1));
        *tenant = Some(Tenant { flow, tenancy });
    }

    /// Returns whether a frame's client port has changed owners since the frame arrived.
    #[inline]
    pub fn is_stale(&self, class: usize, owner: Owner) -> bool {
        let tenant = self.classes[class].tenants.get(owner.row as usize).copied().flatten();
        tenant.is_some_and(|tenant| tenant.tenancy != owner.tenancy)
    }

    /// Returns the number, within its stage, of the n-th pipe of an owner's row. If the client port has a new
    /// owner, the row for packets that belong to no connection is used instead.
    #[inline]
    pub fn pipe(&self, class: usize, owner: Owner, which: u8) -> u32 {
        let row = if self.is_stale(class, owner) { self.classes[class].rows } else { owner.row };
        self.classes[class].pipe(row, which).1
    }

    /// Returns the stage of the n-th pipe of a row, and the pipe's number in that stage.
    pub fn place(&self, class: usize, row: u32, which: u8) -> (usize, u32) {
        self.classes[class].pipe(row, which)
    }

    /// Returns the shortest delay that the n-th pipe may have in any row of a class.
    pub fn least_delay(
        &self,
        plan: &Plan,
        number: usize,
        which: (u8, OwnPipe),
        pipes: &[Vec<Pipe>; 2],
    ) -> Span {
        let class = &self.classes[number];
        if !class.tenants.is_empty() {
            return least_delay_drawn(plan, number, which.1);
        }
        let delay = |row| {
            let (stage, pipe) = class.pipe(row, which.0);
            pipes[stage][pipe as usize].least_delay()
        };
        (0..=class.rows).map(delay).min().unwrap_or(Span::ZERO)
    }

    /// Returns the flow whose books have the index `flow`; `None` for the books of packets that
    /// belong to no flow.
    pub fn flow(&self, class: usize, flow: u32) -> Option<u32> {
        (flow < self.classes[class].flows).then_some(flow)
    }

    /// Returns the number that a flow has in the run.
    pub fn number(&self, class: usize, index: u32) -> u32 {
        self.classes[class].first_number + index
    }

    /// Returns the number that identifies an owner's flow in a capture: the number of the flow in the run
    /// or, for packets that belong to no flow, a number from the other end of the range, by class.
    pub fn captured_as(&self, class: usize, owner: Owner) -> u32 {
        self.flow(class, owner.flow).map_or(u32::MAX - class as u32, |flow| self.number(class, flow))
    }

    /// Returns the number of rows whose packets cross a link, which is an upper limit on the number of
    /// connections there at the same time. A row counts twice if its packets cross the link in both
    /// directions.
    pub fn across(&self, plan: &Plan, link: usize) -> usize {
        let crosses = |class: &ClassPlan| {
            [&class.path, &class.return_path].into_iter().filter(|way| way.contains(&link)).count()
        };
        plan.classes.iter().enumerate().map(|(number, class)| crosses(class) * self.rows(number)).sum()
    }

    /// Returns the number of rows of a class: one more than its client ports.
    pub fn rows(&self, class: usize) -> usize {
        self.classes[class].rows as usize + 1
    }

    /// Returns the number of books of a class: one more than its flows.
    pub fn books(&self, class: usize) -> usize {
        self.classes[class].flows as usize + 1
    }
}

impl ClassRows {
    /// Returns the row of a frame with these headers; `None` if it belongs to no connection.
    fn row(&self, side: End, headers: &Headers) -> Option<u32> {
        let (from, to) = headers.ports?;
        let (address, client, server) = match side {
            End::Client => (headers.source, from, to),
            End::Server => (headers.destination, to, from),
        };
        client_port(address, client).filter(|&row| row < self.rows && server == self.server_port)
    }

    /// Returns the owner of a client port; `None` if the port has had no owner yet.
    fn owner(&self, row: u32) -> Option<Owner> {
        if self.tenants.is_empty() {
            return Some(Owner { row, flow: row, tenancy: 0 });
        }
        self.tenants[row as usize].map(|Tenant { flow, tenancy }| Owner { row, flow, tenancy })
    }

    const fn nobody(&self) -> Owner {
        Owner { row: self.rows, flow: self.flows, tenancy: 0 }
    }

    fn pipe(&self, row: u32, which: u8) -> (usize, u32) {
        let (stage, place) = self.pipes[usize::from(which)];
        (stage, self.first_pipe[stage] + row * self.pipes_per_row[stage] + place)
    }

    /// Assigns the last pipe of each path to the stage of leaving frames, and the others to the inner stage.
    fn place_pipes(&mut self, routes: &Routes, class: usize) {
        for which in 0..routes.pipes(class).len() {
            let stage = if routes.is_last(class, which as u8) { LEAVING } else { INSIDE };
            self.pipes.push((stage, self.pipes_per_row[stage]));
            self.pipes_per_row[stage] += 1;
        }
    }

    /// Adds the pipes of all rows.
    fn add_pipes(
        &self,
        plan: &Plan,
        number: usize,
        wanted: &[OwnPipe],
        seed: u64,
        pipes: &mut [Vec<Pipe>; 2],
    ) {
        let propagation = plan.propagation(number);
        let drawn_as = |row| if self.shares_delays { 0 } else { row };
        let drawn = |row| self.tenants.is_empty().then(|| Identity::first_of(drawn_as(row)));
        for flow in (0..self.rows).map(drawn).chain([None]) {
            let path = FlowPath::new(plan, number, propagation, flow, seed);
            for (&which, &(stage, _)) in wanted.iter().zip(&self.pipes) {
                pipes[stage].push(path.pipe(which));
            }
        }
    }
}

/// Returns the smallest delay that may be drawn for a pipe of a connection.
fn least_delay_drawn(plan: &Plan, class: usize, which: OwnPipe) -> Span {
    match which {
        OwnPipe::Stage(direction, place) => plan
            .delay_stage(class, direction, place)
            .map_or(Span::ZERO, |stage| stage.least(&plan.classes[class])),
        OwnPipe::Access(..) => plan.classes[class].least_access_delay(plan.propagation(class)),
    }
}
