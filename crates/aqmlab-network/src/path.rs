//! The path of a class through the network, and each flow's own pipes on it.
//!
//! The simulator and the live router move a packet along the same hops, through pipes with the same
//! arithmetic and the same draws. The simulator does so with events; the live router holds the
//! packet in a `DelayStage` of `aqmlab-qdisc` until it is due.

use aqmlab_qdisc::{Loss, Pipe};
use aqmlab_scenario::{ClassPlan, Edge, Plan, StagePlace, base_rtt};
use aqmlab_traffic::packmime::CloudConnection;
use aqmlab_traffic::{End, Identity};
use aqmlab_units::{Bytes, Span};

/// A pipe of a single flow in one direction (0: to the server). In either direction, the entry edge
/// is the one on the sender's side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OwnPipe {
    /// Its access link at an edge of the network.
    Access(usize, Edge),
    /// Its passage through the delay stage at this place.
    Stage(usize, StagePlace),
}

/// A step of a packet's path from host to host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hop {
    /// A pipe that belongs to the packet's own flow.
    Own(OwnPipe),
    /// A link with its queue: an index into the plan's links.
    Queue(usize),
}

impl Hop {
    /// Returns the number of links that the step counts as: zero for delay stages, otherwise one.
    pub const fn links(self) -> u8 {
        match self {
            Hop::Own(OwnPipe::Stage(..)) => 0,
            Hop::Own(OwnPipe::Access(..)) | Hop::Queue(_) => 1,
        }
    }
}

/// Returns the hops of class number `number` in one direction (0: to the server), in order: access link,
/// delay stage, queues (with the delay stages in front of them and after the last one), delay stage, access
/// link. Hops that do not exist are left out.
pub fn hops(plan: &Plan, number: usize, direction: usize) -> Vec<Hop> {
    let class = &plan.classes[number];
    let links = class.way(direction);
    let access = |end, edge| class.has_access(end).then_some(Hop::Own(OwnPipe::Access(direction, edge)));
    let stage = |place| {
        plan.delay_stage(number, direction, place).map(|_| Hop::Own(OwnPipe::Stage(direction, place)))
    };
    let mut hops = Vec::with_capacity(links.len() + 4);
    hops.extend(access(direction, Edge::Entry));
    hops.extend(stage(StagePlace::Edge(Edge::Entry)));
    for &link in links {
        hops.extend(stage(StagePlace::Router(*plan.links[link].from)));
        hops.push(Hop::Queue(link));
    }
    let leave = *plan.links[*links.last().expect("a path has links")].to;
    hops.extend(stage(StagePlace::Router(leave)));
    hops.extend(stage(StagePlace::Edge(Edge::Exit)));
    hops.extend(access(1 - direction, Edge::Exit));
    hops
}

/// Returns the places of the delay stages that class number `number` meets in one direction (0: to the
/// server), in order.
pub fn stages(plan: &Plan, number: usize, direction: usize) -> impl Iterator<Item = StagePlace> {
    hops(plan, number, direction).into_iter().filter_map(|hop| match hop {
        Hop::Own(OwnPipe::Stage(_, place)) => Some(place),
        Hop::Own(OwnPipe::Access(..)) | Hop::Queue(_) => None,
    })
}

/// The values from which one flow's own pipes are made.
pub struct FlowPath<'a> {
    plan: &'a Plan,
    number: usize,
    propagation: Span,
    of: Option<Identity>,
    seed: u64,
    access_delay: Option<Span>,
    /// The flow's one-way delays between its client and the client's edge of the network, and
    /// between its server and the server's edge; its cloud draws them, or its trace contains them.
    own_delays: Option<[Span; 2]>,
}

impl<'a> FlowPath<'a> {
    /// Creates the path of a connection or flow of class number `number`. Its forward and return paths
    /// together have the delay `propagation`. If `of` is `None`, the path is for packets of the class that
    /// belong to no flow; nothing is drawn for them, and they have the mean delay.
    pub fn new(plan: &'a Plan, number: usize, propagation: Span, of: Option<Identity>, seed: u64) -> Self {
        let class = &plan.classes[number];
        let access_delay = match of {
            Some(of) => class.access_delay(class.host_index(of), propagation, seed),
            None => class.mean_access_delay(propagation),
        };
        let own_delays = of.and_then(|of| class.traced_delays(of));
        FlowPath { plan, number, propagation, of, seed, access_delay, own_delays }
    }

    /// Adds the values that a connection receives from its cloud.
    pub fn carrying(mut self, connection: Option<&CloudConnection>) -> Self {
        if let Some(delay) = connection.and_then(|connection| self.class().cloud_delay(connection)) {
            self.access_delay = Some(delay);
        }
        if let Some(connection) = connection {
            self.own_delays = Some(End::ALL.map(|end| connection.delay(end)));
        }
        self
    }

    /// Returns its class.
    pub fn class(&self) -> &'a ClassPlan {
        &self.plan.classes[self.number]
    }

    /// Returns the delay of each access link of the flow, or `None` if it has no access links.
    pub const fn access_delay(&self) -> Option<Span> {
        self.access_delay
    }

    /// Returns the random losses at the entrance of the sender's access link (see `ClassPlan::access_loss`),
    /// if there are any.
    pub fn access_losses(&self) -> Option<Loss> {
        self.class().access_losses(self.of?.index(), self.seed)
    }

    /// Returns the flow's pipe through the delay stage at this place in this direction, if there is a stage.
    pub fn stage(&self, direction: usize, place: StagePlace) -> Option<Pipe> {
        let number = self.plan.delay_stage_number(self.number, direction, place)?;
        Some(self.stage_of(direction, number))
    }

    /// Returns the flow's pipe through delay stage `number`, which its class meets in this direction.
    pub fn stage_of(&self, direction: usize, number: usize) -> Pipe {
        let rule = &self.plan.delays[number];
        match self.of {
            Some(of) => rule.pipe(self.class(), direction, of, self.own_delays, self.seed),
            None => rule.mean_pipe(self.class()),
        }
    }

    /// Returns one of the flow's own pipes.
    ///
    /// # Panics
    /// If the pipe is not among the class's [`hops`].
    pub fn pipe(&self, which: OwnPipe) -> Pipe {
        let (direction, edge) = match which {
            OwnPipe::Stage(direction, place) => {
                return self.stage(direction, place).expect("a hop of the class's path");
            }
            OwnPipe::Access(direction, edge) => (direction, edge),
        };
        let rate = self.class().access.as_ref().expect("a hop of the class's path").rate;
        let delay = self.access_delay.expect("it has access links");
        let pipe = Pipe::new(delay).with_rate(rate, Bytes::ZERO);
        match self.access_losses().filter(|_| direction == 0 && edge == Edge::Entry) {
            Some(losses) => pipe.with_losses(losses),
            None => pipe,
        }
    }

    /// Returns the flow's base round-trip time, delay stages included.
    pub fn whole_base_rtt(&self) -> Span {
        let places = [0, 1].into_iter().flat_map(|direction| {
            stages(self.plan, self.number, direction).map(move |place| (direction, place))
        });
        let stages = places.filter_map(|(direction, place)| self.stage(direction, place));
        self.base_rtt(stages.fold(Span::ZERO, |sum, stage| sum + stage.delay()))
    }

    /// Returns the flow's base round-trip time, to which delay stages contribute `stages`.
    pub fn base_rtt(&self, stages: Span) -> Span {
        let access = self.access_delay.map(|delay| (delay, self.class().access_links()));
        base_rtt(self.propagation, access, stages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_stand_in_the_order_in_which_a_packet_meets_them() {
        let text = "title = \"t\"\nduration = \"1s\"\n\
                    topology = { kind = \"dumbbell\", rate = \"10Mbit\", delay = \"1ms\", queue = { kind = \"droptail\", limit = \"9p\" } }\n\
                    [[traffic]]\nname = \"a\"\nkind = \"bulk\"\naccess_rate = \"1Mbit\"\naccess_at = \"sender\"\nrtt = \"20ms\"\n\
                    [[delay]]\ndelay = \"7ms\"\nat = \"exit\"\n";
        let plan = aqmlab_scenario::parse(text, "test").unwrap_or_else(|e| panic!("{e}")).arms.remove(0);
        let queues = |path: &[usize]| path.iter().map(|&link| Hop::Queue(link)).collect::<Vec<_>>();
        let stage = |direction| Hop::Own(OwnPipe::Stage(direction, StagePlace::Edge(Edge::Exit)));
        let class = &plan.classes[0];
        let there = [Hop::Own(OwnPipe::Access(0, Edge::Entry))];
        assert_eq!(hops(&plan, 0, 0), [&there[..], &queues(&class.path), &[stage(0)]].concat());
        let back = Hop::Own(OwnPipe::Access(1, Edge::Exit));
        assert_eq!(hops(&plan, 0, 1), [queues(&class.return_path), vec![stage(1), back]].concat());
        let links: u8 = hops(&plan, 0, 1).into_iter().map(Hop::links).sum();
        assert_eq!(usize::from(links), class.return_path.len() + 1);
    }
}
