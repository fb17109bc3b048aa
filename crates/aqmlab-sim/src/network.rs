//! The network of a run: links with their ports, and classes with their paths, built from the plan.

use std::collections::{BTreeMap, VecDeque};

use aqmlab_network::{FlowPath, Opener, stages};
use aqmlab_params::ParamError;
use aqmlab_qdisc::{Port, Registry};
use aqmlab_recording::RequestRecorder;
use aqmlab_scenario::{ClassPlan, Edge, LinkPlan, Opens, Plan, StagePlace, base_rtt};
use aqmlab_traffic::{ConnectionEvent, Identity, Wake};
use aqmlab_transport::Profile;
use aqmlab_units::{Instant, Rate, Serialiser, Span};

use crate::access::{AccessLinks, Impairments, Serialisers};
use crate::event::{EventQueue, FlowRef, Notice, Turns};
use crate::packet::{Begin, Place, PortPacket, SimPacket};
use crate::scheduler::{FlowObject, Scheduler};
use crate::stages::RouterStages;

/// One directed link.
pub struct Link {
    /// Queue, serialiser and books.
    pub port: Port<SimPacket>,
    /// Propagation delay.
    pub delay: Span,
    /// Counts the packets that leave at one instant, to order simultaneous arrivals.
    pub turns: Turns,
    /// The shaper deadline for which an event is pending.
    pub deadline: Option<Instant>,
    /// Packets that come from the only link that feeds this one, and whose computed arrival is
    /// after the next observation of queues. They enter the queue after that observation, at their
    /// arrival times.
    pub held: VecDeque<Held>,
}

/// A packet in flight from one link to the next.
pub struct Held {
    /// Its arrival time.
    pub at: Instant,
    /// The link from which it comes.
    pub from: u32,
    /// Its turn among the packets that left that link at the same instant as it did.
    pub turn: u64,
    /// The packet.
    pub packet: SimPacket,
}

/// One traffic class at run time.
pub struct Class {
    /// The beginnings of the class's paths, indexed by [`Toward`](crate::packet::Toward).
    pub begins: [Begin; 2],
    /// The serialisers of the access links of the class's flows; irrelevant if there are none.
    pub serialisers: Serialisers,
    /// Propagation delay, summed over the two paths.
    pub propagation: Span,
    /// Number of access links of each flow.
    access_links: u64,
    /// Whether there are access links or delay stages between the network and the hosts of the class.
    has_edges: bool,
    /// The numbers of the delay stages that the class's packets meet in routers, by direction, in the
    /// order in which the packets meet them.
    router_stages: [Vec<usize>; 2],
    /// The instant until which nothing external stops the class's flows; at most the end of the run.
    pub unattended_until: Instant,
    /// The instant until which the hosts of the class are currently processed ahead of time.
    pub served_until: Instant,
    /// The source of the class's flows.
    pub opening: Opening,
    /// The flows that have yet to stop because the class has stopped sending, in descending order
    /// of their numbers.
    pub stopping: Option<Vec<(u32, FlowRef)>>,
    /// The TCP parameters of the class's connections, if it has any.
    pub tcp: Option<Box<Profile>>,
}

/// What opens the flows of a class, and what of them is needed to open more.
pub struct Opening {
    /// The population, as in a live run.
    pub opener: Opener,
    /// The connections on which users may make further requests.
    pub open: BTreeMap<Identity, FlowRef>,
}

impl Opening {
    /// Schedules the population's next wake-up.
    pub fn schedule<Q: EventQueue>(&self, scheduler: &mut Scheduler<Q>, wake: Option<Wake>) {
        if let Some(Wake { at, user }) = wake {
            let (number, class) = (self.opener.first_number + user, self.opener.class);
            scheduler.timer(at, number, FlowObject::Start, Notice::Start { class, user });
        }
    }

    /// Notifies the population of the new state of a connection that it opened.
    pub fn notify<Q: EventQueue>(
        &mut self,
        scheduler: &mut Scheduler<Q>,
        requests: &mut Option<Box<RequestRecorder>>,
        now: Instant,
        of: Identity,
        event: ConnectionEvent,
    ) {
        if matches!(event, ConnectionEvent::Closed | ConnectionEvent::Failed) {
            self.open.remove(&of);
        }
        let wake = self.opener.on_event(now, of, event, requests.as_deref_mut());
        self.schedule(scheduler, wake);
    }
}

impl Class {
    /// Returns the base round-trip time of a flow of the class: the propagation delay of its two
    /// paths, plus the delays of its access links and delay stages. It is computed only when a flow
    /// has ended, because storing it would take eight bytes per flow.
    pub fn base_rtt(&self, access: Option<&AccessLinks>, stages: Option<&RouterStages>) -> Span {
        let links = access.map(|access| (access.delay(), self.access_links));
        let at_edges = access.map_or(Span::ZERO, AccessLinks::stages);
        base_rtt(self.propagation, links, at_edges + stages.map_or(Span::ZERO, RouterStages::delay))
    }

    /// Returns the access links and delay stages that belong to a single flow of the class.
    pub fn own_path(&self, path: &FlowPath<'_>) -> (Option<AccessLinks>, Option<RouterStages>) {
        let access = || AccessLinks::new(path.access_delay().unwrap_or(Span::ZERO), Impairments::new(path));
        let has_stages = self.router_stages.iter().any(|stages| !stages.is_empty());
        let stages = has_stages.then(|| RouterStages::new(path, &self.router_stages));
        (self.has_edges.then(access), stages)
    }

    /// Returns the TCP parameters of the class's connections.
    ///
    /// # Panics
    /// If the class has no connections.
    #[inline]
    pub fn profile(&self) -> &Profile {
        self.tcp.as_deref().expect("a class of connections")
    }
}

/// Returns estimates for sizing the event queue: the time between events, and how far ahead events
/// are scheduled.
pub fn pace(plan: &Plan) -> (Span, Span) {
    // A class sends no faster than the slowest link of its path permits, and acknowledges no faster
    // than it sends.
    let able: Vec<f64> =
        plan.links.iter().map(|l| l.rate.packets_per_s(l.queue.link().mean_packet)).collect();
    let mut wanted = vec![0.0; able.len()];
    for class in &plan.classes {
        let links = || class.links_both_ways();
        let slowest = links().map(|l| able[l]).fold(f64::INFINITY, f64::min);
        links().for_each(|l| wanted[l] += slowest);
    }
    // At each link, the arrival of a packet is an event. Most links look ahead, so the end of a
    // transmission is not an event.
    let per_second: f64 = able.iter().zip(&wanted).map(|(able, wanted)| f64::min(*able, *wanted)).sum();
    let gap = Span::try_from_secs_f64(1.0 / per_second.max(1.0)).unwrap_or(Span::ms(1));
    let link_delay = plan.links.iter().map(|l| l.delay).max().unwrap_or(Span::ZERO);
    let access = plan.classes.iter().filter_map(|c| c.access.as_ref()).map(|a| a.rtt.mean()).max();
    (gap, link_delay.max(access.unwrap_or(Span::ZERO)) * 2)
}

/// Builds every port.
///
/// # Errors
/// See [`LinkPlan::discipline`].
pub fn links(plan: &Plan, seed: u64, registry: &Registry<PortPacket>) -> Result<Vec<Link>, ParamError> {
    let link = |link: &LinkPlan| {
        let discipline = link.discipline(seed, registry)?;
        let port = Port::new(discipline, link.rate, link.overhead, plan.classes.len());
        Ok(Link { port, delay: link.delay, turns: Turns::default(), deadline: None, held: VecDeque::new() })
    };
    plan.links.iter().map(link).collect()
}

/// Computes the delays and start times of every class; `begins` are the places at which their paths begin.
pub fn classes(plan: &Plan, begins: Vec<[Place; 2]>, seed: u64) -> Vec<Class> {
    let mut openers = Opener::all(plan, seed);
    Opener::draw_ahead(openers.iter_mut(), most_connections_of_a_cloud(plan));
    plan.classes
        .iter()
        .zip(begins)
        .zip(openers)
        .enumerate()
        .map(|(number, ((class, begins), opener))| {
            let unattended_until = unattended_until(class).min(Instant::ZERO + plan.stop.at);
            Class {
                begins: begins.map(|place| Begin::new(place, class.dscp)),
                serialisers: [Serialiser::new(class.access.as_ref().map_or(Rate::bps(1), |a| a.rate)); 4],
                propagation: plan.propagation(number),
                access_links: class.access_links(),
                has_edges: has_edges(plan, number),
                router_stages: [0, 1].map(|direction| {
                    let places = stages(plan, number, direction);
                    let in_routers = places.filter(|place| matches!(place, StagePlace::Router(_)));
                    in_routers.filter_map(|place| plan.delay_stage_number(number, direction, place)).collect()
                }),
                unattended_until,
                served_until: unattended_until,
                opening: Opening { opener, open: BTreeMap::new() },
                stopping: None,
                tcp: class.traffic.tcp().map(|tcp| Box::new(tcp.clone())),
            }
        })
        .collect()
}

/// Returns approximately how many connections the busiest cloud opens during the run.
fn most_connections_of_a_cloud(plan: &Plan) -> usize {
    let rate = |class: &ClassPlan| match class.traffic.opens() {
        Opens::AtRate { per_s, bursty: true } => per_s,
        _ => 0.0,
    };
    let fastest = plan.classes.iter().map(rate).fold(0.0, f64::max);
    (fastest * plan.stop.at.as_secs_f64()) as usize
}

/// Returns the instant until which nothing external stops the flows of a class, or time zero if its
/// hosts delay what they send, both send datagrams, or its connections wait for each other.
fn unattended_until(class: &ClassPlan) -> Instant {
    if class.delays_sending() || class.traffic.is_dialogue() || class.traffic.shares_connections() {
        return Instant::ZERO;
    }
    class.stop_at.map_or(Instant::FAR_FUTURE, |at| Instant::ZERO + at)
}

/// Returns whether there is anything between the network and the hosts of class `number`: access
/// links or delay stages.
pub fn has_edges(plan: &Plan, number: usize) -> bool {
    let stage = |direction, edge| plan.delay_stage(number, direction, StagePlace::Edge(edge)).is_some();
    plan.classes[number].access.is_some()
        || [0, 1].into_iter().any(|direction| stage(direction, Edge::Entry) || stage(direction, Edge::Exit))
}
