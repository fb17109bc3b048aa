//! The network of a run: links with their ports, classes with their paths, built from the plan.

use std::collections::{BTreeMap, VecDeque};

use aqmlab_network::{FlowPath, ended_page, stages};
use aqmlab_params::ParamError;
use aqmlab_qdisc::{Port, Registry};
use aqmlab_recording::{Ending, RequestRecorder};
use aqmlab_scenario::{ClassPlan, Edge, LinkPlan, Plan, PopulationPlan, StagePlace, Workload, base_rtt};
use aqmlab_traffic::{ConnectionEvent, Identity, PageEnded, Population, Wake};
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
    /// Packets that leave at one instant, for the order of simultaneous arrivals.
    pub turns: Turns,
    /// The shaper deadline that an event is pending for.
    pub deadline: Option<Instant>,
    /// On their way here from the only link that feeds this one, and foreseen to arrive after the next look at queues. They
    /// enter when that look is over, as of their arrivals.
    pub held: VecDeque<Held>,
}

/// A packet on its way from one link to the next.
pub struct Held {
    /// When it arrives.
    pub at: Instant,
    /// Where from.
    pub from: u32,
    /// In which turn of that instant it has come out of that link.
    pub turn: u64,
    /// The packet.
    pub packet: SimPacket,
}

/// One traffic class at run time.
pub struct Class {
    /// Where its paths begin; [`Toward`](crate::packet::Toward) is the index.
    pub begins: [Begin; 2],
    /// How fast its flows' access links are; of no account if they have none.
    pub serialisers: Serialisers,
    /// Propagation delay of both paths together.
    pub propagation: Span,
    /// How many access links each of its flows has.
    access_links: u64,
    /// Whether anything lies between the network and its hosts.
    has_edges: bool,
    /// The numbers of the delay stages in routers that its packets meet, by direction, in their order.
    router_stages: [Vec<usize>; 2],
    /// Until when nobody from outside stops what its flows do; the end of the run at most.
    pub unattended_until: Instant,
    /// Until when its hosts are served ahead of time at the moment.
    pub served_until: Instant,
    /// Who opens its flows.
    pub opener: Opener,
    /// Once it has stopped sending: those of its flows that are still to stop, the greatest number first.
    pub stopping: Option<Vec<(u32, FlowRef)>>,
    /// The parameters of its connections, if it has any.
    pub tcp: Option<Box<Profile>>,
}

/// Who opens the flows of a class.
pub struct Opener {
    /// When, and whose.
    pub population: Population,
    /// Whether each flow is one connection, or one stream of datagrams.
    pub is_list: bool,
    /// From when on nothing is opened any more.
    pub until: Instant,
    /// Index of the class.
    pub class: u32,
    /// The number of the class's first flow in the run.
    pub first_number: u32,
    /// Where the connections are on which users ask again and again.
    pub open: BTreeMap<Identity, FlowRef>,
}

impl Opener {
    /// The population wants to be woken.
    pub fn schedule<Q: EventQueue>(&self, scheduler: &mut Scheduler<Q>, wake: Option<Wake>) {
        if let Some(Wake { at, user }) = wake
            && at < self.until
        {
            let number = self.first_number + user;
            scheduler.timer(at, number, FlowObject::Start, Notice::Start { class: self.class, user });
        }
    }

    /// The population hears what has become of a connection that it has opened.
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
        let reaction = self.population.on_event(now, of, event);
        self.schedule(scheduler, reaction.wake);
        if let Some(page) = reaction.page {
            let how = if page.failed { Ending::Failed } else { Ending::Completed };
            self.record_page(requests, &page, how);
        }
    }

    /// The pages that are under way are cut off.
    pub fn cut_off_pages(&mut self, requests: &mut Option<Box<RequestRecorder>>, now: Instant) {
        for page in self.population.give_up_pages(now) {
            self.record_page(requests, &page, Ending::Censored);
        }
    }

    #[cold]
    fn record_page(&self, requests: &mut Option<Box<RequestRecorder>>, page: &PageEnded, how: Ending) {
        if let Some(requests) = requests {
            requests.page_ended(&ended_page(self.class, page), how, page.at);
        }
    }
}

impl Class {
    /// Twice the propagation delay of the path of one of its flows, and of what lies between the hosts and the network. It is
    /// worked out when a flow has ended: to keep it would take eight bytes of each.
    pub fn base_rtt(&self, access: Option<&AccessLinks>, stages: Option<&RouterStages>) -> Span {
        let links = access.map(|access| (access.delay(), self.access_links));
        let at_edges = access.map_or(Span::ZERO, AccessLinks::stages);
        base_rtt(self.propagation, links, at_edges + stages.map_or(Span::ZERO, RouterStages::delay))
    }

    /// What lies on the path of one of its flows that the flow has to itself, outside the hosts.
    pub fn own_path(&self, path: &FlowPath<'_>) -> (Option<AccessLinks>, Option<RouterStages>) {
        let access = || AccessLinks::new(path.access_delay().unwrap_or(Span::ZERO), Impairments::new(path));
        let has_stages = self.router_stages.iter().any(|stages| !stages.is_empty());
        let stages = has_stages.then(|| RouterStages::new(path, &self.router_stages));
        (self.has_edges.then(access), stages)
    }

    /// The parameters of its connections.
    ///
    /// # Panics
    /// If it has none.
    #[inline]
    pub fn profile(&self) -> &Profile {
        self.tcp.as_deref().expect("a class of connections")
    }
}

/// How far apart events come and how far ahead they lie, roughly: what the event queue is made for.
pub fn pace(plan: &Plan) -> (Span, Span) {
    // A class sends no faster than the slowest link of its path lets it, and acknowledges no faster than it sends.
    let able: Vec<f64> =
        plan.links.iter().map(|l| l.rate.packets_per_s(l.queue.link().mean_packet)).collect();
    let mut wanted = vec![0.0; able.len()];
    for class in &plan.classes {
        let links = || class.path.iter().chain(&class.return_path);
        let slowest = links().map(|&l| able[l]).fold(f64::INFINITY, f64::min);
        links().for_each(|&l| wanted[l] += slowest);
    }
    // At each link a packet is an event when it arrives. Most links look ahead: that it has been sent is none.
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

/// Works out delays and start times of every class, whose paths begin at these places.
pub fn classes(plan: &Plan, begins: Vec<[Place; 2]>, seed: u64) -> Vec<Class> {
    let mut first_number = 0;
    let mut classes: Vec<Class> = plan
        .classes
        .iter()
        .zip(begins)
        .enumerate()
        .map(|(number, (class, begins))| {
            let unattended_until = unattended_until(class).min(Instant::ZERO + plan.stop.at);
            let built = Class {
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
                opener: Opener {
                    population: class.population(seed),
                    is_list: class.is_list(),
                    until: match class.stop_at {
                        Some(at) if !class.is_list() => Instant::ZERO + at,
                        _ => Instant::FAR_FUTURE,
                    },
                    class: number as u32,
                    first_number,
                    open: BTreeMap::new(),
                },
                stopping: None,
                tcp: class.workload.tcp().map(|tcp| Box::new(tcp.clone())),
            };
            first_number += class.count as u32;
            built
        })
        .collect();
    let populations = classes.iter_mut().map(|class| &mut class.opener.population);
    Population::draw_ahead(populations, most_connections_of_a_cloud(plan));
    classes
}

/// How many connections one of the clouds opens in the run, roughly: the one that opens most.
fn most_connections_of_a_cloud(plan: &Plan) -> usize {
    let rate = |class: &ClassPlan| match &class.population {
        PopulationPlan::Cloud(cloud) => cloud.per_s,
        _ => 0.0,
    };
    let fastest = plan.classes.iter().map(rate).fold(0.0, f64::max);
    (fastest * plan.stop.at.as_secs_f64()) as usize
}

/// Until when nobody from outside stops what the flows of a class do, and its hosts send what they send at once.
fn unattended_until(class: &ClassPlan) -> Instant {
    match class.workload {
        _ if class.delays_sending() => Instant::ZERO,
        Workload::Sessions { .. }
        | Workload::Bulk { .. }
        | Workload::OnOff { .. }
        | Workload::Packets { .. }
        | Workload::Schedule(_) => class.stop_at.map_or(Instant::FAR_FUTURE, |at| Instant::ZERO + at),
    }
}

/// Whether anything lies between the network and the hosts of class `number`: access links or delay stages.
pub fn has_edges(plan: &Plan, number: usize) -> bool {
    let stage = |direction, edge| plan.delay_stage(number, direction, StagePlace::Edge(edge)).is_some();
    plan.classes[number].access.is_some()
        || [0, 1].into_iter().any(|direction| stage(direction, Edge::Entry) || stage(direction, Edge::Exit))
}

/// Whether the hosts of a class see anything that is recorded.
pub fn is_watched(plan: &Plan, class: usize) -> bool {
    let packets = plan.record.packets.iter().flat_map(|p| p.flows.iter().flatten());
    plan.record.trace.iter().chain(packets).any(|choice| choice.class == class)
}
