//! The plan: a scenario with everything resolved, which is all that a host needs to run it.
//!
//! A plan is also plain data, as manifests contain it: numbers are whole and in SI units, with the unit in the key;
//! references are names. Keys that a plan does not use are absent, so a new key does not change the digest of a plan
//! without that key.

use std::collections::BTreeMap;
use std::ops::{Deref, Not};

use aqmlab_qdisc::{Dscp, Effective};
use aqmlab_random::Stream;
use aqmlab_traffic::{Distribution, End, Probability};
use aqmlab_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::error::Problem;
use crate::parameter::Parameter;
use crate::settings_json::{self, QueueForm};
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

/// One arm, fully resolved: every value explicit.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(title = "aqmlab plan", deny_unknown_fields)]
pub struct Plan {
    /// The experiment's title; does not affect results.
    pub title: String,
    /// The arm's name; does not affect results.
    pub arm: String,
    /// Every value of this arm in readable form, with its origin; empty in a plan built by hand.
    #[serde(rename = "origins", serialize_with = "origins")]
    #[schemars(
        with = "BTreeMap<String, String>",
        description = "Origin of each value, by its path in a scenario; does not affect results."
    )]
    pub parameters: Vec<Parameter>,
    /// The time at which measurement begins; until then, the network warms up.
    #[serde(rename = "warmup_ns")]
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<DelayPlan>,
    /// What to record, and how often.
    pub record: RecordPlan,
    /// How the live router runs the arm; absent if as by default.
    #[serde(skip_serializing_if = "LivePlan::is_default")]
    pub live: LivePlan,
}

fn origins<S: Serializer>(parameters: &[Parameter], serializer: S) -> Result<S::Ok, S::Error> {
    let by_path: BTreeMap<&str, String> =
        parameters.iter().map(|of| (of.path.as_str(), of.origin.to_string())).collect();
    by_path.serialize(serializer)
}

/// Links, routers or classes of the plan: their places in its lists and their names, which stand for them in plans as
/// data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Named<Places, Names> {
    names: Names,
    #[serde(skip)]
    places: Places,
}

/// One link, router or class.
pub type Reference = Named<usize, String>;
/// Several links or classes.
pub type References = Named<Vec<usize>, Vec<String>>;

impl Reference {
    /// Refers to the thing at this place in a list of things with these names.
    pub fn new<N: AsRef<str>>(place: usize, names: &[N]) -> Self {
        Named { names: names[place].as_ref().to_owned(), places: place }
    }
}

impl References {
    /// Refers to the things at these places in a list of things with these names.
    pub fn new<N: AsRef<str>>(places: Vec<usize>, names: &[N]) -> Self {
        Named { names: places.iter().map(|&place| names[place].as_ref().to_owned()).collect(), places }
    }
}

impl<Places, Names> Named<Places, Names> {
    /// Returns the name or names.
    pub const fn names(&self) -> &Names {
        &self.names
    }
}

impl<Places, Names> Deref for Named<Places, Names> {
    type Target = Places;

    fn deref(&self) -> &Places {
        &self.places
    }
}

/// The conditions that end a run: the first that becomes true ends it. `at` always applies, so
/// every run ends.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Stop {
    /// Ends the run at this time.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// Ends the run when this many flows of some classes, or this many of their requests, have
    /// completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<CountStop>,
    /// Ends the run when a count at a queue reaches a given number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<QueueStop>,
}

/// Stops when `count` flows or requests of these classes together have completed since the end of
/// the warm-up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(into = "CountStopForm")]
#[schemars(with = "CountStopForm")]
pub struct CountStop {
    /// The classes whose completions are added up.
    pub classes: References,
    /// What is counted.
    pub of: Completed,
    /// The count at which the run stops.
    pub count: u64,
}

/// The number of completed flows or requests that ends the run.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CountStop", deny_unknown_fields)]
struct CountStopForm {
    /// The class, if there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    /// The classes whose completions are added up, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<Vec<String>>,
    /// Number of flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// Number of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
}

impl From<CountStop> for CountStopForm {
    fn from(stop: CountStop) -> Self {
        let (class, classes) = match <[String; 1]>::try_from(stop.classes.names) {
            Ok([name]) => (Some(name), None),
            Err(names) => (None, Some(names)),
        };
        let of = |of| Some(stop.count).filter(|_| stop.of == of);
        CountStopForm { class, classes, count: of(Completed::Flows), requests: of(Completed::Requests) }
    }
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
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(
    deny_unknown_fields,
    description = "The number of packets, counted or waiting at a queue, that ends the run."
)]
pub struct QueueStop {
    /// The link.
    #[serde(rename = "queue")]
    pub link: Reference,
    /// What is counted.
    pub quantity: QueueCount,
    /// Number of packets.
    #[serde(rename = "packets")]
    pub count: u64,
}

/// The quantity, in packets, that a stop condition counts at a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
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
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LinkPlan {
    /// The name of the link, and of its queue in recordings: `"bottleneck"`, `"a-b"`.
    pub name: String,
    /// The router at which the link begins.
    pub from: Reference,
    /// The router at which the link ends.
    pub to: Reference,
    /// Capacity.
    #[serde(rename = "rate_bps")]
    pub rate: Rate,
    /// Propagation delay.
    #[serde(rename = "delay_ns")]
    pub delay: Span,
    /// Number of bytes added to each packet's network-layer length when the packet is serialised.
    #[serde(rename = "overhead_bytes")]
    pub overhead: Bytes,
    /// The queue in front of the link: its discipline with effective parameters.
    #[serde(serialize_with = "settings_json::queue")]
    #[schemars(with = "QueueForm")]
    pub queue: Effective,
    /// Packets that are dropped or marked before the queue sees them, by arrival number (the first
    /// is 1).
    pub faults: Faults,
    /// The reason why only a live run can have the link's queue; `None` if the simulator can have
    /// it too.
    #[serde(skip)]
    pub only_live: Option<Problem>,
}

/// Deterministic faults on a link, for teaching and for exactness tests.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
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
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ClassPlan {
    /// The class's name in recordings.
    pub name: String,
    /// Number of flows: the number of connections or streams in a list, the number of users, or 1
    /// for an arrival process.
    pub count: u64,
    /// Links from source to destination, in order.
    pub path: References,
    /// Links from destination to source, in order.
    pub return_path: References,
    /// When each flow starts.
    #[serde(flatten)]
    pub start: FlowStarts,
    /// When each flow stops sending, if before the end of the run.
    #[serde(rename = "stop_ns")]
    pub stop_at: Option<Span>,
    /// Each flow's own access links, if it has any.
    pub access: Option<Access>,
    /// For connections with their own delays: whether delay stages represent the clients' delays, and whether
    /// they represent the servers'. Delays that no stage represents are placed on access links.
    #[serde(skip)]
    pub placed: [bool; 2],
    /// Loss probability of a flow's data packets on its sender's access link.
    #[serde(rename = "loss")]
    pub access_loss: f64,
    /// The differentiated services code point (DSCP) of each packet, in both directions; absent if best effort.
    #[serde(serialize_with = "code_point", skip_serializing_if = "is_best_effort")]
    #[schemars(with = "u8")]
    pub dscp: Dscp,
    /// The port of the server's end of each flow; absent if [`ClassPlan::PORT`].
    #[serde(skip_serializing_if = "ClassPlan::is_usual_port")]
    #[schemars(description = "The port of the server's end of each flow, if it is not 5001.")]
    pub port: u16,
    /// What the flows of the class carry, and when they begin.
    #[serde(rename = "workload")]
    pub traffic: Traffic,
    /// The reason why only a kernel can run the class; `None` if the simulator can run it too.
    #[serde(skip)]
    pub only_live: Option<Problem>,
}

impl ClassPlan {
    /// The server port of classes that do not give one.
    pub const PORT: u16 = 5001;

    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's
    const fn is_usual_port(port: &u16) -> bool {
        *port == Self::PORT
    }

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

/// When each flow of a class starts.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FlowStarts {
    /// Drawn for each flow.
    Drawn {
        /// What they are drawn from.
        #[serde(rename = "start_ns")]
        from: Distribution,
    },
    /// Those of the file that lists the flows.
    Listed {
        /// The start of each flow.
        #[serde(rename = "start_ns", serialize_with = "null")]
        #[schemars(with = "()")]
        starts: Vec<Span>,
    },
    /// Those that the scenario gives for each seed.
    BySeed {
        /// For each seed, either one start for all flows or one for each flow.
        #[serde(rename = "start_ns")]
        lists: SeedLists,
        /// The seed of the first list; the lists after it are for the seeds that follow.
        #[serde(rename = "first_seed")]
        first: u64,
    },
}

/// For each seed, either one start for all flows or one for each flow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SeedLists {
    /// The lists.
    pub seeds: Vec<Vec<Span>>,
}

/// A list that a file gives is not repeated: the plan has the digest of the file.
fn null<S: Serializer>(_: &[Span], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_none()
}

impl FlowStarts {
    /// Returns the earliest start that any flow can have.
    pub fn least(&self) -> Span {
        match self {
            FlowStarts::Drawn { from } => from.least(),
            FlowStarts::Listed { starts } => starts.iter().min().copied().unwrap_or_default(),
            FlowStarts::BySeed { lists, .. } => {
                lists.seeds.iter().flatten().min().copied().unwrap_or_default()
            }
        }
    }

    /// Returns the latest start that a uniform, spread or list distribution gives; for any other, such as an
    /// exponential one, returns the mean.
    pub(crate) fn latest(&self) -> Span {
        match self {
            FlowStarts::Drawn {
                from: Distribution::Uniform { high, .. } | Distribution::Spread { high, .. },
            } => *high,
            FlowStarts::Drawn { from: Distribution::List(starts) } | FlowStarts::Listed { starts } => {
                starts.iter().max().copied().unwrap_or_default()
            }
            FlowStarts::Drawn { from } => from.mean(),
            FlowStarts::BySeed { lists, .. } => {
                lists.seeds.iter().flatten().max().copied().unwrap_or_default()
            }
        }
    }

    /// Returns whether there are starts for this seed.
    pub fn has(&self, seed: u64) -> bool {
        match self {
            FlowStarts::BySeed { lists, first } => list_of(lists, *first, seed).is_some(),
            FlowStarts::Drawn { .. } | FlowStarts::Listed { .. } => true,
        }
    }

    /// Returns the start of flow `index` out of `count` flows in the run with this seed; `stream` belongs to that
    /// flow.
    ///
    /// # Panics
    /// If there are starts only for other seeds.
    pub fn of(&self, seed: u64, index: u64, count: u64, stream: Stream) -> Span {
        let nth = |starts: &[Span]| starts[index as usize % starts.len()];
        match self {
            FlowStarts::Drawn { from } => from.value(index, count, stream),
            FlowStarts::Listed { starts } => nth(starts),
            FlowStarts::BySeed { lists, first } => {
                nth(list_of(lists, *first, seed).expect("`Plan::check_seed` has checked the seed"))
            }
        }
    }
}

fn list_of(lists: &SeedLists, first: u64, seed: u64) -> Option<&[Span]> {
    let list = usize::try_from(seed.checked_sub(first)?).ok()?;
    lists.seeds.get(list).map(Vec::as_slice)
}

fn code_point<S: Serializer>(dscp: &Dscp, serializer: S) -> Result<S::Ok, S::Error> {
    dscp.0.serialize(serializer)
}

fn is_best_effort(dscp: &Dscp) -> bool {
    *dscp == Dscp::default()
}

/// Each flow's own links. They never drop packets, because their buffers are unlimited.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Access {
    /// Rate of each access link, in each direction.
    #[serde(rename = "rate_bps")]
    pub rate: Rate,
    /// Distribution of the base round-trip time over the flows: twice the propagation delay of the
    /// path and the access links together. The access links, one per direction at each end that has
    /// them, evenly share the part of this time that exceeds the propagation delay of the path.
    #[serde(rename = "rtt_ns")]
    pub rtt: Distribution,
    /// The endpoints that have access links; absent if both have.
    #[serde(skip_serializing_if = "AccessAt::is_both")]
    pub at: AccessAt,
}

/// The endpoints of a flow that have access links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AccessAt {
    /// both
    #[serde(skip)]
    Both,
    /// the endpoint that sends the data
    Sender,
    /// the endpoint that receives the data
    Receiver,
}

impl AccessAt {
    /// Returns whether this end (0: the sender) has access links.
    pub const fn has(self, end: usize) -> bool {
        match self {
            AccessAt::Both => true,
            AccessAt::Sender => end == 0,
            AccessAt::Receiver => end == 1,
        }
    }

    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's
    const fn is_both(&self) -> bool {
        matches!(self, AccessAt::Both)
    }
}

impl Access {
    /// Returns the number of links: one per direction at each end that has them.
    pub fn links(&self) -> u64 {
        if self.at.is_both() { 4 } else { 2 }
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
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DelayPlan {
    /// The rule's name.
    pub name: String,
    /// The rule applies only to packets of flows of this class.
    pub class: Option<Reference>,
    /// The rule applies only to packets that enter the network at this router.
    pub from: Option<Reference>,
    /// The rule applies only to packets that leave the network at this router.
    pub to: Option<Reference>,
    /// Whether the rule applies to packets that travel to the receiver.
    pub to_receiver: bool,
    /// Whether the rule applies to packets that travel to the sender.
    pub to_sender: bool,
    /// The place of the stage on the path of packets.
    #[serde(flatten)]
    pub at: StageAt,
    /// The constant delay for each flow and direction.
    #[serde(flatten)]
    pub delay: StageDelay,
    /// The largest additional delay that a packet can draw.
    #[serde(rename = "jitter_ns")]
    pub jitter: Span,
    /// The loss probability for each flow and direction.
    pub loss: Distribution<Probability>,
    /// The rate for each flow and direction, if it is limited.
    #[serde(rename = "rate_bps")]
    pub rate: Option<Distribution<Rate>>,
    /// The clocks of the hosts that delay, if packets leave at their ticks.
    #[serde(flatten)]
    pub ticks: Option<TickPlan>,
}

/// The hosts of a delay stage that delay packets by whole ticks of their kernels' clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct TickPlan {
    /// The tick.
    #[serde(rename = "tick_ns")]
    pub tick: Span,
    /// The number of hosts, each with a phase of its own; the flows are shared out among them.
    #[serde(rename = "tick_hosts")]
    pub hosts: u64,
}

/// The delay that a stage adds to each packet of a flow in one direction.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub enum StageDelay {
    /// A separate draw for each flow and direction.
    #[serde(rename = "delay_ns")]
    Drawn(Distribution),
    /// A one-way delay that belongs to an end of the connection, the same in both directions.
    #[serde(rename = "delay_of")]
    Of(EndDelay),
}

/// A delay between an end of a connection and the edge of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EndDelay {
    /// The delay that the class's cloud has drawn or its trace gives for the connection.
    Cloud(End),
    /// A draw per flow from PackMime-HTTP's distribution.
    Packmime(End),
}

/// The place of a delay stage: an edge of the network, or a router, before its output queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(tag = "at", rename_all = "lowercase")]
pub enum StageAt {
    /// between the flow's own link and the first router
    Entry,
    /// between the last router and the flow's own link
    Exit,
    /// in a router, before its output queue
    Router {
        /// The router of the stage.
        router: Reference,
    },
}

impl StageAt {
    /// Returns the place on a packet's path.
    pub fn place(&self) -> StagePlace {
        match self {
            StageAt::Entry => StagePlace::Edge(Edge::Entry),
            StageAt::Exit => StagePlace::Edge(Edge::Exit),
            StageAt::Router { router } => StagePlace::Router(**router),
        }
    }
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
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RecordPlan {
    /// Interval between samples of queues and laws.
    #[serde(rename = "queues_ns")]
    pub queues: Span,
    /// Interval between samples of each flow.
    #[serde(rename = "flows_ns")]
    pub flows: Span,
    /// Flows whose state changes are all recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<FlowChoice>,
    /// Packets that are recorded individually.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<PacketChoice>,
    /// How requests are recorded; absent if as by default.
    #[serde(skip_serializing_if = "RequestPlan::is_default")]
    pub requests: RequestPlan,
    /// Largest number of rows in a trace or a packet recording; absent if there is neither.
    #[serde(rename = "limit_rows", skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// How requests are recorded, for classes that make requests.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RequestPlan {
    /// Whether there is a row per request.
    pub each: bool,
    /// Upper end of the first size band of responses.
    #[serde(rename = "first_band_bytes")]
    pub first_band: Bytes,
    /// Ratio of the upper ends of successive bands.
    pub band_factor: u64,
    /// Number of bands.
    pub bands: u32,
    /// Largest number of completed requests in the sample of each class.
    #[serde(rename = "sample_requests")]
    pub sample: u32,
}

impl RequestPlan {
    /// How requests are recorded by default.
    pub const DEFAULT: RequestPlan =
        RequestPlan { each: false, first_band: Bytes::new(1000), band_factor: 10, bands: 6, sample: 5000 };

    fn is_default(&self) -> bool {
        *self == Self::DEFAULT
    }

    /// Returns where the last band begins, or `None` if that is beyond 2^63 bytes.
    pub fn last_band(&self) -> Option<Bytes> {
        let Some(steps) = self.bands.checked_sub(2) else { return Some(Bytes::ZERO) };
        let begin = self.band_factor.checked_pow(steps)?.checked_mul(self.first_band.get())?;
        i64::try_from(begin).ok().map(|_| Bytes::new(begin))
    }
}

/// Flows of one class.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowChoice {
    /// The class.
    pub class: Reference,
    /// The indices of the flows within the class, ascending; all flows if there is none.
    #[serde(rename = "flows")]
    pub indices: Option<Vec<u64>>,
}

impl FlowChoice {
    /// Returns whether the flow with this index in this class is among the selected flows.
    pub fn holds(&self, class: usize, index: u64) -> bool {
        *self.class == class
            && self.indices.as_ref().is_none_or(|indices| indices.binary_search(&index).is_ok())
    }
}

/// The packets that are recorded, with places and times.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PacketChoice {
    /// The links at which packets are recorded, in the order of the plan.
    pub links: References,
    /// The flows whose packets are recorded; all if there is none. If flows are selected, their packets
    /// are also recorded at their hosts.
    pub flows: Option<Vec<FlowChoice>>,
    /// The recorded events, in the order of [`PacketEvent::ALL`].
    pub events: Vec<PacketEvent>,
    /// Beginning of the recording.
    #[serde(rename = "from_ns")]
    pub from: Span,
    /// End of the recording, that instant included; the end of the run if there is none.
    #[serde(rename = "until_ns")]
    pub until: Option<Span>,
}

/// How the live router runs a scenario. The simulator ignores this.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LivePlan {
    /// Version of the Internet Protocol.
    pub ip: IpVersion,
    /// How long packets in flight are still forwarded after the end of the run, before the books
    /// are closed.
    #[serde(rename = "drain_ns")]
    pub drain: Span,
    /// How the router waits for the next departure.
    pub wait: Wait,
    /// How long before a departure a `hybrid` router stops sleeping.
    #[serde(rename = "spin_ns")]
    pub spin: Span,
    /// Whether hosts and router pass several segments of a connection to each other in one piece; absent if not.
    #[serde(skip_serializing_if = "Not::not")]
    pub offload: bool,
}

impl LivePlan {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(into = "u64")]
#[schemars(with = "u64", inline)]
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

impl From<IpVersion> for u64 {
    fn from(version: IpVersion) -> u64 {
        version.number()
    }
}

/// How a thread waits for an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
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
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
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
