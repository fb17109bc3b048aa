//! What only some flows meet on their own links: losses, and the pipes of delay stages.

use aqmlab_qdisc::{Loss, Passage, Pipe};
use aqmlab_scenario::{Edge, Plan};
use aqmlab_units::{Bytes, Instant, Span};

use crate::access::AccessLink;

/// A flow's losses and delay stages. A stage lies between the flow's own link and the network: behind a link that leads
/// into the network, in front of one that leads out of it. Like the links it has one feeder, so that all of it is
/// arithmetic on the packet's way over the link.
pub struct Hazards {
    /// At the entrance of the sender's outgoing link.
    loss: Option<Loss>,
    /// In the order of [`AccessLink`].
    stages: [Option<Stage>; 4],
    /// Packets lost here.
    pub lost_packets: u64,
}

/// One flow's passage through a delay stage.
struct Stage {
    pipe: Pipe,
    /// When the last packet came out, and how many before it came out at that instant.
    last: Option<(Instant, u64)>,
}

/// Where each link lies: direction (0: to the receiver) and edge of the network.
const PLACES: [(AccessLink, usize, Edge); 4] = [
    (AccessLink::SenderOut, 0, Edge::Entry),
    (AccessLink::ReceiverIn, 0, Edge::Exit),
    (AccessLink::ReceiverOut, 1, Edge::Entry),
    (AccessLink::SenderIn, 1, Edge::Exit),
];

impl Hazards {
    /// Those of flow `index` of class number `class`; `None` if nothing can happen to its packets.
    pub fn new(plan: &Plan, class: usize, index: u64, seed: u64) -> Option<Self> {
        let of = &plan.classes[class];
        let loss = of.access_losses(index, seed);
        let stages = PLACES.map(|(_, direction, edge)| {
            let rule = plan.delay_stage(class, direction, edge)?;
            Some(Stage { pipe: rule.pipe(&of.name, of.count, direction, index, seed), last: None })
        });
        let any = loss.is_some() || stages.iter().any(Option::is_some);
        any.then_some(Hazards { loss, stages, lost_packets: 0 })
    }

    /// What the stages add to the round-trip time.
    pub fn delay(&self) -> Span {
        self.stages.iter().flatten().fold(Span::ZERO, |sum, stage| sum + stage.pipe.delay())
    }

    /// Before a packet enters a link: when it does. `None` if it is lost.
    pub fn before(&mut self, which: AccessLink, now: Instant, size: Bytes) -> Option<Instant> {
        if which == AccessLink::SenderOut && self.loss.as_mut().is_some_and(Loss::hits) {
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
        let due = self.through(which, out, size)?;
        let stage = self.stages[which as usize].as_mut()?;
        let turn = stage.last.filter(|(at, _)| *at == due).map_or(0, |(_, turn)| turn + 1);
        stage.last = Some((due, turn));
        Some((due, turn))
    }

    fn through(&mut self, which: AccessLink, now: Instant, size: Bytes) -> Option<Instant> {
        let Some(stage) = &mut self.stages[which as usize] else { return Some(now) };
        match stage.pipe.pass(now, size) {
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
    matches!(which, AccessLink::SenderOut | AccessLink::ReceiverOut)
}
