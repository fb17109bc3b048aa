//! A flow's own links between its hosts and the network; the impairments that some flows have there
//! (losses, the pipes of delay stages, missing links); and a count of the flow's packets on these
//! links whose arrival is not precomputed.

use aqmlab_network::{End, FlowPath};
use aqmlab_qdisc::{Line, Loss, Pipe};
use aqmlab_scenario::{Edge, StagePlace};
use aqmlab_units::{Bytes, Instant, Serialiser, Span};

use crate::stages::StagePipe;

/// One of a flow's four access links.
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
    /// Returns which end of the flow, client or server, the link connects to the network.
    pub const fn end(self) -> End {
        match self {
            AccessLink::ClientOut | AccessLink::ClientIn => End::Client,
            AccessLink::ServerIn | AccessLink::ServerOut => End::Server,
        }
    }
}

/// The serialisers of the access links of a class, in the order of [`AccessLink`]. All four links
/// have the same rate, but each has its own serialiser, which caches the transmission times of the
/// few packet sizes that the link carries.
pub type Serialisers = [Serialiser; 4];

/// A flow's own links. Only the flow feeds them, and no packet is dropped because a buffer is full.
/// All have the same delay and the same rate, which the flow's class determines. Packets are lost
/// on them only if the scenario requires it: see [`Impairments`], which also records the missing
/// links.
pub struct AccessLinks {
    delay: Span,
    /// The links, in the order of [`AccessLink`].
    lines: [Line; 4],
    /// For each link, how many packets left it at the same instant as its last packet, but before
    /// that packet.
    turns: [u32; 4],
    impairments: Option<Box<Impairments>>,
}

impl AccessLinks {
    /// Creates idle links.
    pub fn new(delay: Span, impairments: Option<Impairments>) -> Self {
        AccessLinks {
            delay,
            lines: [Line::default(); 4],
            turns: [0; 4],
            impairments: impairments.map(Box::new),
        }
    }

    /// Returns the delay of each link.
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// Returns the delay that stages add to the round-trip time.
    pub fn stages(&self) -> Span {
        self.impairments.as_ref().map_or(Span::ZERO, |impairments| impairments.delay())
    }

    /// Returns the initial value of the flow's count of pending packets. Without impairments, the
    /// arrival of a packet can be precomputed, so the count starts at zero. With impairments, it
    /// cannot be precomputed, so the count starts at its maximum.
    pub fn pending(&self) -> Pending {
        if self.impairments.is_some() { Pending(Pending::TOO_MANY) } else { Pending::default() }
    }

    /// Returns the number of packets lost on the links and in their stages.
    pub fn lost_packets(&self) -> u64 {
        self.impairments.as_ref().map_or(0, |impairments| impairments.lost_packets)
    }

    /// Passes a packet of `size` over the link `which`; the packet enters the link at `now`.
    /// Returns when the packet reaches the other end, and its turn at that instant, or `None` if it
    /// is lost.
    #[inline(always)]
    pub fn pass(
        &mut self,
        serialisers: &mut Serialisers,
        which: AccessLink,
        now: Instant,
        size: Bytes,
    ) -> Option<(Instant, u64)> {
        if self.impairments.is_some() {
            return self.pass_impaired(serialisers, which, now, size);
        }
        Some(self.pass_line(serialisers, which, now, size))
    }

    /// Passes a packet through the link itself.
    #[inline(always)]
    fn pass_line(
        &mut self,
        serialisers: &mut Serialisers,
        which: AccessLink,
        now: Instant,
        size: Bytes,
    ) -> (Instant, u64) {
        let line = &mut self.lines[which as usize];
        let before = line.free_at();
        let sent = line.pass(now, &mut serialisers[which as usize], size);
        // The delay is constant: packets sent at the same instant arrive at the same instant.
        let turn = &mut self.turns[which as usize];
        *turn = if sent == before { *turn + 1 } else { 0 };
        (sent + self.delay, u64::from(*turn))
    }

    /// Passes a packet through the link and the delay stage. The stage is in front of a link that
    /// comes from the network, and behind a link that leads into the network.
    #[inline(never)]
    fn pass_impaired(
        &mut self,
        serialisers: &mut Serialisers,
        which: AccessLink,
        now: Instant,
        size: Bytes,
    ) -> Option<(Instant, u64)> {
        let impairments = self.impairments.as_mut()?;
        if !impairments.is_linked(which) {
            return impairments.stage_alone(which, now, size);
        }
        let enters_at = impairments.before(which, now, size)?;
        let (out, turn) = self.pass_line(serialisers, which, enters_at, size);
        self.impairments.as_mut()?.behind(which, out, turn, size)
    }
}

/// A flow's losses and its delay stages at the edges. A stage is between the flow's own link and
/// the network: behind a link that leads into the network, and in front of a link that comes from
/// the network. Like the links, a stage has a single feeder, so a packet's passage through the stage
/// is computed together with its passage over the link.
pub struct Impairments {
    /// Losses at the entrance of the sender's outgoing link.
    loss: Option<Loss>,
    /// The stages, in the order of [`AccessLink`].
    stages: [Option<StagePipe>; 4],
    /// Which links exist, in the order of [`AccessLink`]. A missing link is replaced by its stage;
    /// if the scenario defines no stage there, it is replaced by a stage without delay.
    linked: [bool; 4],
    /// Number of packets lost on the links and in their stages.
    pub lost_packets: u64,
}

/// The position of each link: its direction (0: to the receiver), and the edge of the network at
/// which it is.
const PLACES: [(AccessLink, usize, Edge); 4] = [
    (AccessLink::ClientOut, 0, Edge::Entry),
    (AccessLink::ServerIn, 0, Edge::Exit),
    (AccessLink::ServerOut, 1, Edge::Entry),
    (AccessLink::ClientIn, 1, Edge::Exit),
];

impl Impairments {
    /// Creates the impairments of a flow, or `None` if it has no losses, no stages and no missing
    /// links.
    pub fn new(path: &FlowPath<'_>) -> Option<Self> {
        let loss = path.access_losses();
        let stage = |direction, edge| path.stage(direction, StagePlace::Edge(edge)).map(StagePipe::new);
        let mut stages = PLACES.map(|(_, direction, edge)| stage(direction, edge));
        let linked = PLACES.map(|(link, ..)| path.class().has_access(link.end() as usize));
        for (stage, _) in stages.iter_mut().zip(linked).filter(|(_, linked)| !linked) {
            stage.get_or_insert_with(|| StagePipe::new(Pipe::new(Span::ZERO)));
        }
        let any = loss.is_some() || stages.iter().any(Option::is_some);
        any.then_some(Impairments { loss, stages, linked, lost_packets: 0 })
    }

    /// Returns the delay that the stages add to the round-trip time.
    fn delay(&self) -> Span {
        self.stages.iter().flatten().fold(Span::ZERO, |sum, stage| sum + stage.delay())
    }

    /// Returns when a packet that arrives at `now` enters a link, after it has passed any stage in
    /// front of the link, or `None` if the packet is lost.
    pub fn before(&mut self, which: AccessLink, now: Instant, size: Bytes) -> Option<Instant> {
        if which == AccessLink::ClientOut && self.loss.as_mut().is_some_and(Loss::hits) {
            self.lost_packets += 1;
            return None;
        }
        if leads_in(which) { Some(now) } else { self.stage_alone(which, now, size).map(|(due, _)| due) }
    }

    /// Passes a packet that left a link at `out`, with this `turn`, through any stage behind the
    /// link. Returns when the packet has passed the stage, and its turn at that instant, or `None`
    /// if it is lost.
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

    /// Returns whether the link exists.
    pub fn is_linked(&self, which: AccessLink) -> bool {
        self.linked[which as usize]
    }

    /// Passes a packet that arrives at `now` through the stage, if there is one. Returns when the
    /// packet has passed the stage, and its turn at that instant, or `None` if it is lost.
    pub fn stage_alone(&mut self, which: AccessLink, now: Instant, size: Bytes) -> Option<(Instant, u64)> {
        let Some(stage) = &mut self.stages[which as usize] else { return Some((now, 0)) };
        let passage = stage.pass(now, size);
        self.lost_packets += u64::from(passage.is_none());
        passage
    }
}

/// Returns whether the link leads into the network.
fn leads_in(which: AccessLink) -> bool {
    matches!(which, AccessLink::ClientOut | AccessLink::ServerOut)
}

/// A packet count that is stored in two bytes. The count includes only packets whose arrival at a
/// host is an event of its own; a flow never has more than a few of these. A count that overflows
/// stays at its maximum forever.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pending(u16);

impl Pending {
    const TOO_MANY: u16 = u16::MAX;

    /// Counts one more.
    #[inline]
    pub fn one_more(&mut self) {
        self.0 = self.0.saturating_add(1);
    }

    /// Subtracts one for a packet that has arrived, even if that packet was never counted.
    #[inline]
    pub fn one_less(&mut self) {
        if self.0 != Self::TOO_MANY {
            self.0 = self.0.saturating_sub(1);
        }
    }

    /// Returns whether the count is zero.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}
