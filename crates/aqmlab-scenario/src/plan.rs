//! The plan: a scenario with everything resolved, which is all that a host needs to run it.

use aqmlab_qdisc::{Dscp, Effective};
use aqmlab_traffic::{Distribution, End, Probability};
use aqmlab_units::{Bytes, Rate, Span};

use crate::error::Problem;
use crate::parameter::Parameter;
use crate::traffic::Traffic;

/// A scenario file as parsed: one plan per arm, and the seeds with which each plan is run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The title in the file.
    pub title: String,
    /// The question that the experiment answers; may be empty.
    pub question: String,
    /// Metrics in the table of results in addition to those of every experiment. Only the programs
    /// that read recordings know which metrics exist.
    pub metrics: Vec<String>,
    /// The seeds, the same for every arm: `seed, seed + 1, ...`.
    pub seeds: Vec<u64>,
    /// The arms in the order of the file; one arm named `"main"` if the file names none.
    pub arms: Vec<Plan>,
    /// Warnings about allowed but suspicious settings, one sentence each.
    pub warnings: Vec<String>,
}

/// One arm, fully resolved: every value explicit, every reference an index.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The experiment's title.
    pub title: String,
    /// The arm's name.
    pub arm: String,
    /// The time at which measurement begins; until then, the network warms up.
    pub warmup: Span,
    /// When the run ends.
    pub stop: Stop,
    /// Names of routers.
    pub nodes: Vec<String>,
    /// Directed links, each with one queue in front of it.
    pub links: Vec<LinkPlan>,
    /// Traffic classes.
    pub classes: Vec<ClassPlan>,
    /// Delay stages in the order of the file.
    pub delays: Vec<DelayPlan>,
    /// What to record, and how often.
    pub record: RecordPlan,
    /// How the live router runs the arm.
    pub live: LivePlan,
    /// Every value of this arm in readable form, with its origin; empty in a plan built by hand.
    pub parameters: Vec<Parameter>,
}

/// The conditions that end a run: the first that becomes true ends it. `at` always applies, so
/// every run ends.
#[derive(Clone, Debug)]
pub struct Stop {
    /// Ends the run at this time.
    pub at: Span,
    /// Ends the run when this many flows of some classes, or this many of their requests, have
    /// completed.
    pub completed: Option<CountStop>,
    /// Ends the run when a count at a queue reaches a given number.
    pub condition: Option<QueueStop>,
}

/// Stops when `count` flows or requests of these classes together have completed since the end of
/// the warm-up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CountStop {
    /// Indices into [`Plan::classes`].
    pub classes: Vec<usize>,
    /// What is counted.
    pub of: Completed,
    /// The count at which the run stops.
    pub count: u64,
}

/// What a stop condition can count as completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completed {
    /// flows whose data has all arrived
    Flows,
    /// requests whose response has arrived
    Requests,
}

/// Stops when `quantity` at link `link` reaches `count`; events during the warm-up are not counted.
#[derive(Clone, Debug)]
pub struct QueueStop {
    /// Index into [`Plan::links`].
    pub link: usize,
    /// What is counted.
    pub quantity: QueueCount,
    /// Number of packets.
    pub count: u64,
}

/// The quantity, in packets, that a stop condition counts at a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueCount {
    /// packets that arrived
    Arrivals,
    /// packets dropped for any reason
    Drops,
    /// packets marked
    Marks,
    /// packets waiting at present (a level, not a count)
    Backlog,
}

/// A link in one direction: a queue, a serialiser and a propagation delay.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// The name of the link, and of its queue in recordings: `"bottleneck"`, `"a-b"`.
    pub name: String,
    /// Index of the node at which the link begins.
    pub from: usize,
    /// Index of the node at which the link ends.
    pub to: usize,
    /// Capacity.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
    /// Number of bytes added to each packet's network-layer length when the packet is serialised.
    pub overhead: Bytes,
    /// The queue in front of the link: its discipline with effective parameters.
    pub queue: Effective,
    /// Packets that are dropped or marked before the queue sees them, by arrival number (the first
    /// is 1).
    pub faults: Faults,
    /// The reason why only a live run can have the link's queue; `None` if the simulator can have
    /// it too.
    pub only_live: Option<Problem>,
}

/// Deterministic faults on a link, for teaching and for exactness tests.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Arrival numbers of the packets that are lost, ascending.
    pub drop: Vec<u64>,
    /// Arrival numbers of the packets that are marked CE if they are ECN-capable, ascending.
    pub mark: Vec<u64>,
}

/// Largest number of classes in a plan: the simulator's packets store the number of their class in
/// 13 bits.
pub const MOST_CLASSES: usize = 1 << 13;

/// A class of similar flows.
#[derive(Clone, Debug)]
pub struct ClassPlan {
    /// The class's name in recordings.
    pub name: String,
    /// Number of flows: the number of connections or streams in a list, the number of users, or 1
    /// for an arrival process.
    pub count: u64,
    /// Links from source to destination, in order.
    pub path: Vec<usize>,
    /// Links from destination to source, in order.
    pub return_path: Vec<usize>,
    /// When each flow starts; if [`ClassPlan::seed_starts`] is given, this covers the times of all seeds.
    pub start: Distribution,
    /// When each flow starts in the run with each seed, if the file gives a list per seed.
    pub seed_starts: Option<SeedStarts>,
    /// When each flow stops sending, if before the end of the run.
    pub stop_at: Option<Span>,
    /// Each flow's own access links, if it has any.
    pub access: Option<Access>,
    /// For connections with their own delays: whether delay stages represent the clients' delays, and whether
    /// they represent the servers'. Delays that no stage represents are placed on access links.
    pub placed: [bool; 2],
    /// Loss probability of a flow's data packets on its sender's access link.
    pub access_loss: f64,
    /// The differentiated services code point (DSCP) of each packet, in both directions.
    pub dscp: Dscp,
    /// The port of the server's end of each flow.
    pub port: u16,
    /// What the flows of the class carry, and when they begin.
    pub traffic: Traffic,
    /// The reason why only a kernel can run the class; `None` if the simulator can run it too.
    pub only_live: Option<Problem>,
}

impl ClassPlan {
    /// The server port of classes that do not give one.
    pub const PORT: u16 = 5001;

    /// Returns whether the users of the class fetch pages.
    pub fn fetches_pages(&self) -> bool {
        self.traffic.opens().pages().is_some()
    }

    /// Iterates over the directions in which the class sends data, and yields the links on the path of each,
    /// in order. With traces and requests, servers may send data too; with traces, clients may send none.
    pub fn ways_of_data(&self) -> impl Iterator<Item = &[usize]> {
        let [there, back] = self.traffic.data_of();
        let there = there.then_some(self.path.as_slice());
        there.into_iter().chain(back.then_some(self.return_path.as_slice()))
    }
}

/// Starts that a file gives for each seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeedStarts {
    /// The seed of the first list; the lists after it are for the seeds that follow.
    pub first: u64,
    /// Per seed, either one start for all flows or one for each flow.
    pub lists: Vec<Vec<Span>>,
}

impl SeedStarts {
    /// Returns the starts for a seed, if there are any.
    pub fn of(&self, seed: u64) -> Option<&[Span]> {
        let list = usize::try_from(seed.checked_sub(self.first)?).ok()?;
        self.lists.get(list).map(Vec::as_slice)
    }
}

/// Each flow's own links. They never drop packets, because their buffers are unlimited.
#[derive(Clone, Debug)]
pub struct Access {
    /// Rate of each access link, in each direction.
    pub rate: Rate,
    /// Distribution of the base round-trip time over the flows: twice the propagation delay of the
    /// path and the access links together. The access links, one per direction at each end that has
    /// them, evenly share the part of this time that exceeds the propagation delay of the path.
    pub rtt: Distribution,
    /// Whether the sender has access links, and whether the receiver has them; at least one of the two has.
    pub ends: [bool; 2],
}

impl Access {
    /// Returns the number of links: one per direction at each end that has them.
    pub fn links(&self) -> u64 {
        2 * self.ends.iter().filter(|end| **end).count() as u64
    }
}

impl Plan {
    /// Iterates over the parts of the plan that only a kernel supports; the simulator refuses a
    /// plan that has any.
    pub fn only_live(&self) -> impl Iterator<Item = &Problem> {
        let of_classes = self.classes.iter().filter_map(|class| class.only_live.as_ref());
        of_classes.chain(self.links.iter().filter_map(|link| link.only_live.as_ref()))
    }
}

/// A delay stage at the edge of the network or in a router: the packets that it delays, and the
/// delay.
#[derive(Clone, Debug)]
pub struct DelayPlan {
    /// The rule's name.
    pub name: String,
    /// The rule applies only to packets of flows of this class: an index into [`Plan::classes`].
    pub class: Option<usize>,
    /// The rule applies only to packets that enter the network at this router: an index into
    /// [`Plan::nodes`].
    pub from: Option<usize>,
    /// The rule applies only to packets that leave the network at this router.
    pub to: Option<usize>,
    /// Whether the rule applies to packets that travel to the receiver, and whether to those that travel to
    /// the sender.
    pub directions: [bool; 2],
    /// The place of the stage on the path of packets.
    pub place: StagePlace,
    /// The constant delay for each flow and direction.
    pub delay: StageDelay,
    /// The largest additional delay that a packet can draw.
    pub jitter: Span,
    /// The loss probability for each flow and direction.
    pub loss: Distribution<Probability>,
    /// The rate for each flow and direction, if it is limited.
    pub rate: Option<Distribution<Rate>>,
    /// The clocks of the hosts that delay, if packets leave at their ticks.
    pub ticks: Option<TickPlan>,
}

/// The hosts of a delay stage that delay packets by whole ticks of their kernels' clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TickPlan {
    /// The tick.
    pub tick: Span,
    /// The number of hosts, each with a phase of its own; the flows are shared out among them.
    pub hosts: u64,
}

/// The delay that a stage adds to each packet of a flow in one direction.
#[derive(Clone, PartialEq, Debug)]
pub enum StageDelay {
    /// A separate draw for each flow and direction.
    Drawn(Distribution),
    /// The one-way delay between this end of the connection and the edge of the network, either drawn by the
    /// class's cloud or taken from the class's trace.
    OfConnection(End),
    /// A one-way delay from PackMime-HTTP's distribution for this end: one draw per flow, the same
    /// in both directions.
    Packmime(End),
}

/// An edge of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    /// Between the flow's own link, or its host, and the first router.
    Entry,
    /// Between the last router and the flow's own link, or its host.
    Exit,
}

/// The place of a delay stage on the path of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StagePlace {
    /// An edge of the network.
    Edge(Edge),
    /// In this router, before its output queue: an index into [`Plan::nodes`].
    Router(usize),
}

/// What to record, and how often; an interval of zero means never.
#[derive(Clone, Debug)]
pub struct RecordPlan {
    /// Interval between samples of queues and laws.
    pub queues: Span,
    /// Interval between samples of each flow.
    pub flows: Span,
    /// Flows whose state changes are all recorded.
    pub trace: Vec<FlowChoice>,
    /// Packets that are recorded individually.
    pub packets: Option<PacketChoice>,
    /// How requests are recorded.
    pub requests: RequestPlan,
    /// Largest number of rows in a trace or a packet recording.
    pub limit: u64,
}

/// How requests are recorded, for classes that make requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestPlan {
    /// Whether there is a row per request.
    pub each: bool,
    /// Upper end of the first size band of responses.
    pub first_band: Bytes,
    /// Ratio of the upper ends of successive bands.
    pub band_factor: u64,
    /// Number of bands.
    pub bands: u32,
    /// Largest number of completed requests in the sample of each class.
    pub sample: u32,
}

impl RequestPlan {
    /// How requests are recorded by default.
    pub const DEFAULT: RequestPlan =
        RequestPlan { each: false, first_band: Bytes::new(1000), band_factor: 10, bands: 6, sample: 5000 };

    /// Returns where the last band begins, or `None` if that is beyond 2^63 bytes.
    pub fn last_band(&self) -> Option<Bytes> {
        let Some(steps) = self.bands.checked_sub(2) else { return Some(Bytes::ZERO) };
        let begin = self.band_factor.checked_pow(steps)?.checked_mul(self.first_band.get())?;
        i64::try_from(begin).ok().map(|_| Bytes::new(begin))
    }
}

/// Flows of one class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowChoice {
    /// Index into [`Plan::classes`].
    pub class: usize,
    /// The indices of the flows within the class, ascending; all flows if `None`.
    pub indices: Option<Vec<u64>>,
}

impl FlowChoice {
    /// Returns whether the flow with this index in this class is among the selected flows.
    pub fn holds(&self, class: usize, index: u64) -> bool {
        self.class == class
            && self.indices.as_ref().is_none_or(|indices| indices.binary_search(&index).is_ok())
    }
}

/// The packets that are recorded, with places and times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketChoice {
    /// The links at which packets are recorded: indices into [`Plan::links`], ascending.
    pub links: Vec<usize>,
    /// The flows whose packets are recorded; all if `None`. If flows are selected, their packets
    /// are also recorded at their hosts.
    pub flows: Option<Vec<FlowChoice>>,
    /// The recorded events, in the order of [`PacketEvent::ALL`].
    pub events: Vec<PacketEvent>,
    /// Beginning of the recording.
    pub from: Span,
    /// End of the recording, that instant included; the end of the run if `None`.
    pub until: Option<Span>,
}

/// How the live router runs a scenario. The simulator ignores this.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LivePlan {
    /// Version of the Internet Protocol.
    pub ip: IpVersion,
    /// How long packets in flight are still forwarded after the end of the run, before the books
    /// are closed.
    pub drain: Span,
    /// How the router waits for the next departure.
    pub wait: Wait,
    /// How long before a departure a router with [`Wait::Hybrid`] stops sleeping.
    pub spin: Span,
    /// Whether hosts and router pass several segments of a connection to each other in one piece.
    pub offload: bool,
}

impl Default for LivePlan {
    fn default() -> Self {
        LivePlan {
            ip: IpVersion::V4,
            drain: Span::s(1),
            wait: Wait::Hybrid,
            spin: Span::us(30),
            offload: false,
        }
    }
}

/// A version of the Internet Protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IpVersion {
    /// IPv4
    V4,
    /// IPv6
    V6,
}

impl IpVersion {
    /// Returns 4 or 6.
    pub const fn number(self) -> u64 {
        match self {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        }
    }
}

/// How a thread waits for an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// It sleeps until shortly before the instant, then spins.
    Hybrid,
    /// It only sleeps, so it is late if the kernel wakes it late.
    Epoll,
}

impl Wait {
    /// Returns the word that scenarios use for this way of waiting.
    pub const fn name(self) -> &'static str {
        match self {
            Wait::Hybrid => "hybrid",
            Wait::Epoll => "epoll",
        }
    }
}

/// A recordable event of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum PacketEvent {
    /// A host sends it.
    Send,
    /// The packet is lost on its flow's own access link.
    Lose,
    /// It reaches a queue.
    Enqueue,
    /// Its transmission begins.
    Dequeue,
    /// The router at the end of the link receives it.
    Receive,
    /// A queue drops it.
    Drop,
    /// A queue marks it.
    Mark,
    /// The packet reaches its host.
    Arrive,
}

impl PacketEvent {
    /// All events.
    pub const ALL: [PacketEvent; 8] = [
        PacketEvent::Send,
        PacketEvent::Lose,
        PacketEvent::Enqueue,
        PacketEvent::Dequeue,
        PacketEvent::Receive,
        PacketEvent::Drop,
        PacketEvent::Mark,
        PacketEvent::Arrive,
    ];

    /// Returns whether the event happens at a host, not at a link.
    pub const fn is_at_a_host(self) -> bool {
        matches!(self, PacketEvent::Send | PacketEvent::Lose | PacketEvent::Arrive)
    }

    /// Returns the word that scenarios and recordings use for the event.
    pub const fn name(self) -> &'static str {
        match self {
            PacketEvent::Send => "send",
            PacketEvent::Lose => "lose",
            PacketEvent::Enqueue => "enqueue",
            PacketEvent::Dequeue => "dequeue",
            PacketEvent::Receive => "receive",
            PacketEvent::Drop => "drop",
            PacketEvent::Mark => "mark",
            PacketEvent::Arrive => "arrive",
        }
    }
}
