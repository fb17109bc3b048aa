//! What only some flows meet at the edges of the network: losses, the pipes of delay stages, and links of their own that
//! are not there.

use aqmlab_network::{End, FlowPath};
use aqmlab_qdisc::{Loss, Passage, Pipe};
use aqmlab_scenario::Edge;
use aqmlab_units::{Bytes, Instant, Span};

/// Which of a flow's four access links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessLink {
    /// from the sender into the network
    ClientOut = 0,
    /// from the network to the receiver
    ServerIn = 1,
    /// from the receiver into the network
    ServerOut = 2,
    /// from the network to the sender
    ClientIn = 3,
}

impl AccessLink {
    /// The end that it is of.
    pub const fn end(self) -> End {
        match self {
            AccessLink::ClientOut | AccessLink::ClientIn => End::Client,
            AccessLink::ServerIn | AccessLink::ServerOut => End::Server,
        }
    }
}

/// A flow's losses and delay stages. A stage lies between the flow's own link and the network: behind a link that leads
/// into the network, in front of one that leads out of it. Like the links it has one feeder, so that all of it is
/// arithmetic on the packet's way over the link.
pub struct Impairments {
    /// At the entrance of the sender's outgoing link.
    loss: Option<Loss>,
    /// In the order of [`AccessLink`].
    stages: [Option<Pipe>; 4],
    /// Which links there are, in the same order. Where one is missing its stage stands alone, if there is one.
    linked: [bool; 4],
    /// When the last packet came out of each stage that nothing follows, and how many before it came out at that instant.
    last: [Option<(Instant, u64)>; 4],
    /// Packets lost here.
    pub lost_packets: u64,
}

/// Where each link lies: direction (0: to the receiver) and edge of the network.
const PLACES: [(AccessLink, usize, Edge); 4] = [
    (AccessLink::ClientOut, 0, Edge::Entry),
    (AccessLink::ServerIn, 0, Edge::Exit),
    (AccessLink::ServerOut, 1, Edge::Entry),
    (AccessLink::ClientIn, 1, Edge::Exit),
];

impl Impairments {
    /// Those of a flow; `None` if nothing can happen to its packets.
    pub fn new(path: &FlowPath<'_>) -> Option<Self> {
        let loss = path.access_losses();
        let stages = PLACES.map(|(_, direction, edge)| path.stage(direction, edge));
        let linked = PLACES.map(|(link, ..)| path.class().has_access(link.end() as usize));
        let any = loss.is_some() || stages.iter().any(Option::is_some) || linked.contains(&false);
        any.then_some(Impairments { loss, stages, linked, last: [None; 4], lost_packets: 0 })
    }

    /// What the stages add to the round-trip time.
    pub fn delay(&self) -> Span {
        self.stages.iter().flatten().fold(Span::ZERO, |sum, pipe| sum + pipe.delay())
    }

    /// Before a packet enters a link: when it does. `None` if it is lost.
    pub fn before(&mut self, which: AccessLink, now: Instant, size: Bytes) -> Option<Instant> {
        if which == AccessLink::ClientOut && self.loss.as_mut().is_some_and(Loss::hits) {
            self.lost_packets += 1;
            return None;
        }
        if leads_in(which) { Some(now) } else { self.through(which, now, size) }
    }

    /// After a packet has come out of a link, in which turn of that instant: when it has passed the stage behind it.
    pub fn behind(
        &mut self,
        which: AccessLink,
        out: Instant,
        turn: u64,
        size: Bytes,
    ) -> Option<(Instant, u64)> {
        if !leads_in(which) || self.stages[which as usize].is_none() {
            return Some((out, turn));
        }
        self.stage_alone(which, out, size)
    }

    /// Whether there is a link.
    pub fn is_linked(&self, which: AccessLink) -> bool {
        self.linked[which as usize]
    }

    /// When a packet has passed the stage, if there is one, which comes to it at `now`, and in which turn of that instant.
    /// `None` if it is lost.
    pub fn stage_alone(&mut self, which: AccessLink, now: Instant, size: Bytes) -> Option<(Instant, u64)> {
        let due = self.through(which, now, size)?;
        let last = &mut self.last[which as usize];
        let turn = last.filter(|(at, _)| *at == due).map_or(0, |(_, turn)| turn + 1);
        *last = Some((due, turn));
        Some((due, turn))
    }

    fn through(&mut self, which: AccessLink, now: Instant, size: Bytes) -> Option<Instant> {
        let Some(pipe) = &mut self.stages[which as usize] else { return Some(now) };
        match pipe.pass(now, size) {
            Passage::Due(due) => Some(due),
            Passage::Lost => {
                self.lost_packets += 1;
                None
            }
        }
    }
}

/// Does the link lead into the network?
fn leads_in(which: AccessLink) -> bool {
    matches!(which, AccessLink::ClientOut | AccessLink::ServerOut)
}
