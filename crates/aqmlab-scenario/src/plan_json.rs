//! A plan as plain data, as manifests contain it: numbers are whole and in SI units, with the unit
//! in the key; references are names.
//!
//! Keys that a plan does not use are absent, so a new key does not change the digest of a plan
//! without that key.

use std::collections::BTreeMap;

use aqmlab_qdisc::Ecn;
use aqmlab_traffic::packmime::PausesOf;
use aqmlab_traffic::{
    Begin, BrowserPlan, Count, Device, Distribution, End, ExchangePlan, Gaps, OnOff, PacketSizes, PagePlan,
    Spacing,
};
use aqmlab_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::plan::{
    Access, ClassPlan, Completed, CountStop, DelayPlan, Edge, FlowChoice, LinkPlan, LivePlan, Plan,
    PopulationPlan, QueueCount, RecordPlan, RequestPlan, Sessions, StageDelay, StagePlace, Stop, Workload,
};
use crate::settings_json::{QueueJson, TcpJson};
use crate::trace::ecn_word;

/// A plan with the origin of every value.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(title = "aqmlab plan", deny_unknown_fields)]
pub struct PlanJson {
    /// The experiment's title; does not affect results.
    pub title: String,
    /// The arm's name; does not affect results.
    pub arm: String,
    /// Origin of each value, by its path in a scenario; does not affect results.
    pub origins: BTreeMap<String, String>,
    /// The time at which measurement begins.
    pub warmup_ns: u64,
    /// When the run ends.
    pub stop: StopJson,
    /// Names of routers.
    pub nodes: Vec<String>,
    /// Directed links, each with one queue in front of it.
    pub links: Vec<LinkJson>,
    /// Traffic classes.
    pub classes: Vec<ClassJson>,
    /// Delay stages in the order of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<DelayJson>,
    /// What is recorded, and how often.
    pub record: RecordJson,
    /// How the live router runs the plan, if that differs from the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveJson>,
}

/// The conditions that end a run: the first that becomes true ends it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StopJson {
    /// Ends the run at this time.
    pub at_ns: u64,
    /// Ends the run when this many flows or requests have completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<CompletedJson>,
    /// Ends the run when a count at a queue reaches a given number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<ConditionJson>,
}

/// The number of completed flows or requests that ends the run.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CompletedJson {
    /// The class, if there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The classes whose completions are added up, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// Number of flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Number of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
}

/// The number of packets, counted or waiting at a queue, that ends the run.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConditionJson {
    /// The link.
    pub queue: String,
    /// What is counted.
    pub quantity: QueueCountJson,
    /// Number of packets.
    pub packets: u64,
}

/// The quantity that is counted at a queue, in packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueCountJson {
    /// packets that arrived
    Arrivals,
    /// packets dropped for any reason
    Drops,
    /// packets marked
    Marks,
    /// packets waiting now
    Backlog,
}

/// A directed link.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LinkJson {
    /// The name of the link, and of its queue.
    pub name: String,
    /// The router at which the link begins.
    pub from: String,
    /// The router at which the link ends.
    pub to: String,
    /// Capacity.
    pub rate_bps: u64,
    /// Propagation delay.
    pub delay_ns: u64,
    /// Bytes added to each packet's network-layer length when the packet is serialised.
    pub overhead_bytes: u64,
    /// The queue in front of the link.
    pub queue: QueueJson,
    /// Deterministic faults, by arrival number; the first is 1.
    pub faults: FaultsJson,
}

/// Packets that are dropped or marked before the queue sees them.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FaultsJson {
    /// Arrival numbers of the packets that are lost, ascending.
    pub drop: Vec<u64>,
    /// Arrival numbers of the packets that are marked CE if they are ECN-capable, ascending.
    pub mark: Vec<u64>,
}

/// A class of similar flows.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ClassJson {
    /// Its name.
    pub name: String,
    /// Flows.
    pub count: u64,
    /// Links from sender to receiver, in order.
    pub path: Vec<String>,
    /// Links from receiver to sender, in order.
    pub return_path: Vec<String>,
    /// When each flow starts; `null` if the workload's file gives the starts.
    pub start_ns: Option<DistributionJson<u64>>,
    /// The seed of the first list of `start_ns.seeds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seed: Option<u64>,
    /// When each flow stops sending, if before the end of the run.
    pub stop_ns: Option<u64>,
    /// Each flow's own access links, if it has any.
    pub access: Option<AccessJson>,
    /// Loss probability of a flow's data packets on its sender's own link.
    pub loss: f64,
    /// The DSCP of each packet, if it is not best effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// The port of the server's end of each flow, if it is not 5001.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What the flows of the class carry.
    pub workload: WorkloadJson,
}

/// Each flow's own links.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AccessJson {
    /// Rate of each access link, in each direction.
    pub rate_bps: u64,
    /// Distribution of the base round-trip time over the flows.
    pub rtt_ns: DistributionJson<u64>,
    /// The endpoint that has access links, if only one of the two has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<EndJson>,
}

/// One of the two endpoints of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EndJson {
    /// the endpoint that sends the data
    Sender,
    /// the endpoint that receives the data
    Receiver,
}

/// A distribution of numbers in one unit, in the same form as in a scenario.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(deny_unknown_fields)]
pub enum DistributionJson<T> {
    /// always the same
    Constant(T),
    /// uniform between the two values, which are included
    Uniform {
        /// smallest and largest
        uniform: [T; 2],
    },
    /// spread evenly over the flows, without random draws
    Spread {
        /// the value of the first flow and that of the last
        spread: [T; 2],
    },
    /// exponential
    Exponential {
        /// mean of the exponential part
        exponential: T,
        /// added to every draw
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<T>,
    },
    /// Pareto
    Pareto {
        /// mean without a bound
        pareto: T,
        /// shape, above 1
        shape: f64,
        /// upper bound
        #[serde(skip_serializing_if = "Option::is_none")]
        max: Option<T>,
    },
    /// flow i has entry `i mod len`
    List {
        /// the entries
        list: Vec<T>,
    },
    /// points of a distribution function, joined by straight lines
    Empirical {
        /// values, each with the share of draws that do not exceed it
        empirical: Vec<(T, f64)>,
    },
    /// one list per seed
    Seeds {
        /// for each seed, one value for all flows or one value for each flow
        seeds: Vec<Vec<T>>,
    },
}

/// How often the location and the spread of the pauses on persistent connections are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PausesJson {
    /// for each connection
    Connection,
    /// once for the whole cloud
    Cloud,
}

/// The device on which users view web pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceJson {
    /// desktop computers
    Desktop,
    /// mobile phones
    Mobile,
}

/// What the flows of a class carry.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schemars(deny_unknown_fields)]
pub enum WorkloadJson {
    /// a TCP connection that sends this much and closes
    Bulk {
        /// `null` if it never ends
        bytes: Option<u64>,
        /// the endpoints' parameters
        tcp: TcpJson,
    },
    /// TCP connections that are greedy during on periods, or send one burst in each on period
    OnOffTcp {
        /// duration of the on periods of a greedy connection
        #[serde(skip_serializing_if = "Option::is_none")]
        on_ns: Option<DistributionJson<u64>>,
        /// size of a burst
        #[serde(skip_serializing_if = "Option::is_none")]
        burst_bytes: Option<DistributionJson<u64>>,
        /// duration of the off periods
        off_ns: DistributionJson<u64>,
        /// initial state
        begin: BeginJson,
        /// the endpoints' parameters
        tcp: TcpJson,
    },
    /// TCP connections that carry requests and responses, opened at a rate or by users; exactly one
    /// of `rate_per_s` and `think_ns` is present
    Requests {
        /// connections per second, with exponential gaps
        #[serde(skip_serializing_if = "Option::is_none")]
        rate_per_s: Option<f64>,
        /// time from the last response of a user's connection to the user's next connection
        #[serde(skip_serializing_if = "Option::is_none")]
        think_ns: Option<DistributionJson<u64>>,
        /// size of each request
        request_bytes: DistributionJson<u64>,
        /// size of each response
        response_bytes: DistributionJson<u64>,
        /// exchanges per connection
        exchanges: DistributionJson<u64>,
        /// pause at the client between two exchanges on a connection
        pause_ns: DistributionJson<u64>,
        /// delay at the server from a request to its response
        server_delay_ns: DistributionJson<u64>,
        /// the endpoints' parameters
        tcp: TcpJson,
    },
    /// TCP connections of web users, as in PackMime-HTTP
    Packmime {
        /// connections per second
        rate_per_s: f64,
        /// how often the location and spread of pauses on persistent connections are drawn
        pauses: PausesJson,
        /// whether each connection carries one exchange, as in HTTP/1.0
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        http_1_0: bool,
        /// the largest response; larger ones are drawn again
        #[serde(skip_serializing_if = "Option::is_none")]
        max_response_bytes: Option<u64>,
        /// whether each connection draws its own delays instead of the class's round-trip time
        own_delays: bool,
        /// the endpoints' parameters
        tcp: TcpJson,
    },
    /// TCP connections of users who fetch web pages
    Pages {
        /// device whose tables apply
        device: DeviceJson,
        /// weight of a page, if it does not come from the device's table
        #[serde(skip_serializing_if = "Option::is_none")]
        weight_bytes: Option<DistributionJson<u64>>,
        /// number of objects of a page, if it does not come from the device's table
        #[serde(skip_serializing_if = "Option::is_none")]
        objects: Option<DistributionJson<u64>>,
        /// rank correlation between weight and number of objects, if both come from the device's tables
        correlation: f64,
        /// shares of scripts, style sheets, fonts and images among the objects other than the
        /// document
        shares: [f64; 4],
        /// depth of a page
        waves: u32,
        /// number of origins of a page
        origins: DistributionJson<u64>,
        /// size of each request
        request_bytes: DistributionJson<u64>,
        /// delay at the server from a request until its response is ready
        server_delay_ns: DistributionJson<u64>,
        /// time at the client from one wave to the next
        parse_ns: DistributionJson<u64>,
        /// time from the end of a user's page to the next page
        think_ns: DistributionJson<u64>,
        /// whether connections stay open for the user's next page
        keeps_connections: bool,
        /// the endpoints' parameters
        tcp: TcpJson,
    },
    /// TCP connections of users with browsers: one page at a time, one request at a time on each
    /// connection
    Browsers {
        /// size of each request
        request_bytes: DistributionJson<u64>,
        /// size of each response
        response_bytes: DistributionJson<u64>,
        /// time from the end of a user's page to the next page
        think_ns: DistributionJson<u64>,
        /// number of objects of a page in addition to its document
        embedded: DistributionJson<u64>,
        /// number of servers of a page
        servers: DistributionJson<u64>,
        /// largest number of connections that a page has open at the same time
        parallel: DistributionJson<u64>,
        /// the share of connections that are persistent
        persistent: f64,
        /// number of objects on a persistent connection
        per_persistent: DistributionJson<u64>,
        /// delay at the server from a request to its response
        server_delay_ns: DistributionJson<u64>,
        /// the endpoints' parameters
        tcp: TcpJson,
    },
    /// a list of TCP connections
    Trace {
        /// the file
        file: String,
        /// SHA-256 of its contents
        digest: String,
        /// class whose rows apply, if the file has several classes
        class: Option<String>,
        /// whether each connection has the delays in the file, instead of the class's round-trip
        /// time
        #[serde(skip_serializing_if = "Option::is_none")]
        own_delays: Option<bool>,
        /// number of connections that are left out because they cannot be expressed, by kind
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        left_out: BTreeMap<String, u64>,
        /// the endpoints' parameters
        tcp: TcpJson,
    },
    /// UDP packets of a fixed size, sent at a fixed rate during on periods
    OnOffUdp {
        /// duration of the on periods
        on_ns: DistributionJson<u64>,
        /// duration of the off periods
        off_ns: DistributionJson<u64>,
        /// initial state
        begin: BeginJson,
        /// network-layer rate during on periods
        rate_bps: u64,
        /// packet size, headers included
        size_bytes: u64,
        /// ECN field of each packet, if it is ECN-capable
        #[serde(skip_serializing_if = "Option::is_none")]
        ecn: Option<&'static str>,
    },
    /// UDP packets at a rate
    Cbr {
        /// network-layer rate
        rate_bps: u64,
        /// packet sizes, headers included
        size_bytes: DistributionJson<u64>,
        /// whether the gaps between packets are drawn
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        random_gaps: bool,
        /// ECN field of each packet, if it is ECN-capable
        #[serde(skip_serializing_if = "Option::is_none")]
        ecn: Option<&'static str>,
    },
    /// UDP packets with exponential gaps
    Poisson {
        /// network-layer rate
        rate_bps: u64,
        /// packet sizes, headers included
        size_bytes: DistributionJson<u64>,
        /// ECN field of each packet, if it is ECN-capable
        #[serde(skip_serializing_if = "Option::is_none")]
        ecn: Option<&'static str>,
    },
    /// a list of UDP packets
    Schedule {
        /// the file
        file: String,
        /// SHA-256 of its contents
        digest: String,
    },
}

/// The initial state of an on/off flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BeginJson {
    /// on
    On,
    /// off
    Off,
    /// on or off, with the long-run probabilities
    Stationary,
}

/// A delay stage at the edge of the network or in a router.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DelayJson {
    /// The rule's name.
    pub name: String,
    /// The rule applies only to packets of this class.
    pub class: Option<String>,
    /// The rule applies only to packets that enter the network at this router.
    pub from: Option<String>,
    /// The rule applies only to packets that leave the network at this router.
    pub to: Option<String>,
    /// Whether the rule applies to packets that travel to the receiver.
    pub to_receiver: bool,
    /// Whether the rule applies to packets that travel to the sender.
    pub to_sender: bool,
    /// The place of the stage on the packets' path.
    pub at: StagePlaceJson,
    /// The router of the stage, if it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<String>,
    /// The constant delay for each flow and direction, unless `delay_of` gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<DistributionJson<u64>>,
    /// The endpoint whose delay the stage represents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_of: Option<HostDelayJson>,
    /// The largest additional delay of a single packet.
    pub jitter_ns: u64,
    /// The loss probability for each flow and direction.
    pub loss: DistributionJson<f64>,
    /// The rate for each flow and direction; `null` means unlimited.
    pub rate_bps: Option<DistributionJson<u64>>,
    /// The tick of the kernels that delay, if packets leave at ticks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick_ns: Option<u64>,
    /// The number of hosts with such kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick_hosts: Option<u64>,
}

/// A delay that belongs to an endpoint of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostDelayJson {
    /// the delay that the connection's cloud has drawn or its trace gives
    Cloud(HostJson),
    /// a draw per flow from PackMime-HTTP's distribution
    Packmime(HostJson),
}

/// One of the two endpoints of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostJson {
    /// the endpoint that opens the connection
    Client,
    /// the endpoint that accepts the connection
    Server,
}

/// A place of a delay stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StagePlaceJson {
    /// between the flow's own link and the first router
    Entry,
    /// between the last router and the flow's own link
    Exit,
    /// in a router, before its output queue
    Router,
}

/// What is recorded, and how often; an interval of zero means never.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RecordJson {
    /// Interval between samples of queues and laws.
    pub queues_ns: u64,
    /// Interval between samples of each flow.
    pub flows_ns: u64,
    /// Flows whose state changes are all recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<FlowsJson>,
    /// Packets that are recorded one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<PacketsJson>,
    /// How requests are recorded, if that differs from the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestRecordJson>,
    /// Largest number of rows in a trace or packet recording, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_rows: Option<u64>,
}

/// Flows of a class.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowsJson {
    /// The class.
    pub class: String,
    /// Indices of the flows within the class, ascending; `null` means all flows.
    pub flows: Option<Vec<u64>>,
}

/// The packets that are recorded, with places and times.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PacketsJson {
    /// Links at which packets are recorded.
    pub links: Vec<String>,
    /// Flows whose packets are recorded; `null` means all flows.
    pub flows: Option<Vec<FlowsJson>>,
    /// Recorded events.
    pub events: Vec<&'static str>,
    /// Beginning of the recording.
    pub from_ns: u64,
    /// End of the recording; `null` means the end of the run.
    pub until_ns: Option<u64>,
}

/// How requests are recorded.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RequestRecordJson {
    /// Whether there is a row per request.
    pub each: bool,
    /// Upper end of the first size band of responses.
    pub first_band_bytes: u64,
    /// Ratio of the upper ends of successive bands.
    pub band_factor: u64,
    /// Number of size bands.
    pub bands: u32,
    /// Largest number of completed requests in the sample of each class.
    pub sample_requests: u32,
}

/// How the live router runs a plan.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LiveJson {
    /// Version of the Internet Protocol.
    pub ip: u64,
    /// How long packets in flight are still forwarded after the end of the run.
    pub drain_ns: u64,
    /// How the router waits: `hybrid` or `epoll`.
    pub wait: &'static str,
    /// How long before a departure a `hybrid` router stops sleeping.
    pub spin_ns: u64,
    /// Whether hosts and router pass several segments of a connection to each other in one piece.
    /// Absent if false.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(default)]
    pub offload: bool,
}

/// Returns whether a setting is off; such a setting is absent from the plan.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's
const fn is_false(value: &bool) -> bool {
    !*value
}

impl PlanJson {
    /// Returns the SHA-256, in hexadecimal, of everything that determines the result of a run
    /// except the seed: the canonical JSON (sorted keys, no spaces) of the plan without title, arm
    /// name and origins.
    pub fn digest(&self) -> String {
        let mut plan =
            serde_json::to_value(self).expect("a plan's keys are strings, and JSON can express its values");
        if let Some(plan) = plan.as_object_mut() {
            plan.retain(|key, _| !matches!(key.as_str(), "title" | "arm" | "origins"));
        }
        let mut text = Vec::new();
        write_canonical(&plan, &mut text);
        Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Plan {
    /// Returns the plan as plain data, with the origin of every value.
    pub fn to_json(&self) -> PlanJson {
        PlanJson { origins: self.origins_json(), ..self.without_origins() }
    }

    /// Returns the plan's [`PlanJson::digest`].
    pub fn digest(&self) -> String {
        self.without_origins().digest()
    }

    /// Returns [`digest`](Plan::digest) and [`to_json`](Plan::to_json) together, at a lower cost
    /// than two calls.
    pub fn digest_and_json(&self) -> (String, PlanJson) {
        let plan = self.without_origins();
        (plan.digest(), PlanJson { origins: self.origins_json(), ..plan })
    }

    fn origins_json(&self) -> BTreeMap<String, String> {
        self.parameters.iter().map(|p| (p.path.clone(), p.origin.to_string())).collect()
    }

    fn without_origins(&self) -> PlanJson {
        PlanJson {
            title: self.title.clone(),
            arm: self.arm.clone(),
            origins: BTreeMap::new(),
            warmup_ns: self.warmup.as_ns(),
            stop: self.stop_json(&self.stop),
            nodes: self.nodes.clone(),
            links: self.links.iter().map(|link| self.link_json(link)).collect(),
            classes: self.classes.iter().map(|class| self.class_json(class)).collect(),
            delays: self.delays.iter().map(|rule| self.delay_json(rule)).collect(),
            record: self.record_json(&self.record),
            live: (self.live != LivePlan::default()).then(|| live_json(&self.live)),
        }
    }

    fn class_name(&self, class: usize) -> String {
        self.classes[class].name.clone()
    }

    fn link_names(&self, links: &[usize]) -> Vec<String> {
        links.iter().map(|&link| self.links[link].name.clone()).collect()
    }

    fn stop_json(&self, stop: &Stop) -> StopJson {
        let condition = stop.condition.as_ref().map(|condition| ConditionJson {
            queue: self.links[condition.link].name.clone(),
            quantity: match condition.quantity {
                QueueCount::Arrivals => QueueCountJson::Arrivals,
                QueueCount::Drops => QueueCountJson::Drops,
                QueueCount::Marks => QueueCountJson::Marks,
                QueueCount::Backlog => QueueCountJson::Backlog,
            },
            packets: condition.count,
        });
        let completed = stop.completed.as_ref();
        StopJson { at_ns: stop.at.as_ns(), completed: completed.map(|c| self.completed_json(c)), condition }
    }

    fn completed_json(&self, stop: &CountStop) -> CompletedJson {
        let names: Vec<String> = stop.classes.iter().map(|&class| self.class_name(class)).collect();
        let of = |of| Some(stop.count).filter(|_| stop.of == of);
        let (class, classes) = match <[String; 1]>::try_from(names) {
            Ok([name]) => (Some(name), None),
            Err(names) => (None, Some(names)),
        };
        CompletedJson { class, classes, count: of(Completed::Flows), requests: of(Completed::Requests) }
    }

    fn link_json(&self, link: &LinkPlan) -> LinkJson {
        LinkJson {
            name: link.name.clone(),
            from: self.nodes[link.from].clone(),
            to: self.nodes[link.to].clone(),
            rate_bps: link.rate.as_bps(),
            delay_ns: link.delay.as_ns(),
            overhead_bytes: link.overhead.get(),
            queue: QueueJson::of(&link.queue),
            faults: FaultsJson { drop: link.faults.drop.clone(), mark: link.faults.mark.clone() },
        }
    }

    fn class_json(&self, class: &ClassPlan) -> ClassJson {
        ClassJson {
            name: class.name.clone(),
            count: class.count,
            path: self.link_names(&class.path),
            return_path: self.link_names(&class.return_path),
            start_ns: start_json(class),
            first_seed: class.seed_starts.as_ref().map(|starts| starts.first),
            stop_ns: class.stop_at.map(Span::as_ns),
            access: class.access.as_ref().map(access_json),
            loss: class.access_loss,
            dscp: Some(class.dscp.0).filter(|dscp| *dscp != 0),
            port: Some(class.port).filter(|port| *port != ClassPlan::PORT),
            workload: workload_json(&class.workload, &class.population),
        }
    }

    fn delay_json(&self, rule: &DelayPlan) -> DelayJson {
        let router = |node: Option<usize>| node.map(|node| self.nodes[node].clone());
        DelayJson {
            name: rule.name.clone(),
            class: rule.class.map(|class| self.class_name(class)),
            from: router(rule.from),
            to: router(rule.to),
            to_receiver: rule.directions[0],
            to_sender: rule.directions[1],
            at: match rule.place {
                StagePlace::Edge(Edge::Entry) => StagePlaceJson::Entry,
                StagePlace::Edge(Edge::Exit) => StagePlaceJson::Exit,
                StagePlace::Router(_) => StagePlaceJson::Router,
            },
            router: match rule.place {
                StagePlace::Edge(_) => None,
                StagePlace::Router(node) => Some(self.nodes[node].clone()),
            },
            delay_ns: match &rule.delay {
                StageDelay::Drawn(delay) => Some(distribution(delay, Span::as_ns)),
                StageDelay::Carried(_) | StageDelay::Packmime(_) => None,
            },
            delay_of: match rule.delay {
                StageDelay::Drawn(_) => None,
                StageDelay::Carried(end) => Some(HostDelayJson::Cloud(host_json(end))),
                StageDelay::Packmime(end) => Some(HostDelayJson::Packmime(host_json(end))),
            },
            jitter_ns: rule.jitter.as_ns(),
            loss: distribution(&rule.loss, |p| p.get()),
            rate_bps: rule.rate.as_ref().map(|rate| distribution(rate, Rate::as_bps)),
            tick_ns: rule.ticks.map(|ticks| ticks.tick.as_ns()),
            tick_hosts: rule.ticks.map(|ticks| ticks.hosts),
        }
    }

    fn record_json(&self, record: &RecordPlan) -> RecordJson {
        let packets = record.packets.as_ref().map(|packets| PacketsJson {
            links: self.link_names(&packets.links),
            flows: packets.flows.as_ref().map(|flows| self.flows_json(flows)),
            events: packets.events.iter().map(|event| event.name()).collect(),
            from_ns: packets.from.as_ns(),
            until_ns: packets.until.map(Span::as_ns),
        });
        let asked = &record.requests;
        let requests = (*asked != RequestPlan::DEFAULT).then(|| RequestRecordJson {
            each: asked.each,
            first_band_bytes: asked.first_band.get(),
            band_factor: asked.band_factor,
            bands: asked.bands,
            sample_requests: asked.sample,
        });
        RecordJson {
            queues_ns: record.queues.as_ns(),
            flows_ns: record.flows.as_ns(),
            trace: self.flows_json(&record.trace),
            limit_rows: (!record.trace.is_empty() || packets.is_some()).then_some(record.limit),
            packets,
            requests,
        }
    }

    fn flows_json(&self, choices: &[FlowChoice]) -> Vec<FlowsJson> {
        let one = |c: &FlowChoice| FlowsJson { class: self.class_name(c.class), flows: c.indices.clone() };
        choices.iter().map(one).collect()
    }
}

fn start_json(class: &ClassPlan) -> Option<DistributionJson<u64>> {
    match (&class.workload, &class.seed_starts) {
        (Workload::Sessions { sessions: Sessions::Trace { .. }, .. } | Workload::Schedule(_), _) => None,
        (_, Some(starts)) => {
            let seeds = starts.lists.iter().map(|list| list.iter().map(|start| start.as_ns()).collect());
            Some(DistributionJson::Seeds { seeds: seeds.collect() })
        }
        _ => Some(distribution(&class.start, Span::as_ns)),
    }
}

fn access_json(access: &Access) -> AccessJson {
    AccessJson {
        rate_bps: access.rate.as_bps(),
        rtt_ns: distribution(&access.rtt, Span::as_ns),
        at: match access.ends {
            [true, false] => Some(EndJson::Sender),
            [false, true] => Some(EndJson::Receiver),
            _ => None,
        },
    }
}

fn workload_json(workload: &Workload, population: &PopulationPlan) -> WorkloadJson {
    match workload {
        Workload::Bulk { bytes, tcp_settings, .. } => {
            WorkloadJson::Bulk { bytes: bytes.map(|bytes| bytes.get()), tcp: TcpJson::of(tcp_settings) }
        }
        Workload::Sessions { sessions, tcp_settings, .. } => {
            sessions_json(sessions, population, TcpJson::of(tcp_settings))
        }
        Workload::OnOff { rate, size, times, ecn } => {
            let (on_ns, off_ns, begin) = on_off_json(times);
            let (rate_bps, size_bytes, ecn) = (rate.as_bps(), size.get(), ecn_json(*ecn));
            WorkloadJson::OnOffUdp { on_ns, off_ns, begin, rate_bps, size_bytes, ecn }
        }
        Workload::Packets { rate, sizes, spacing, ecn } => {
            let (rate_bps, size_bytes, ecn) = (rate.as_bps(), sizes_json(sizes), ecn_json(*ecn));
            match spacing {
                Spacing::Poisson => WorkloadJson::Poisson { rate_bps, size_bytes, ecn },
                Spacing::Constant | Spacing::Random => {
                    let random_gaps = *spacing == Spacing::Random;
                    WorkloadJson::Cbr { rate_bps, size_bytes, random_gaps, ecn }
                }
            }
        }
        Workload::Schedule(schedule) => {
            WorkloadJson::Schedule { file: schedule.file.clone(), digest: schedule.digest.clone() }
        }
    }
}

fn sessions_json(sessions: &Sessions, population: &PopulationPlan, tcp: TcpJson) -> WorkloadJson {
    match sessions {
        Sessions::Greedy(times) => {
            let (on, off_ns, begin) = on_off_json(times);
            WorkloadJson::OnOffTcp { on_ns: Some(on), burst_bytes: None, off_ns, begin, tcp }
        }
        Sessions::Bursts(bursty) => WorkloadJson::OnOffTcp {
            on_ns: None,
            burst_bytes: Some(distribution(&bursty.sizes, |bytes| bytes.get())),
            off_ns: distribution(&bursty.off, Span::as_ns),
            begin: if bursty.begins_off { BeginJson::Off } else { BeginJson::On },
            tcp,
        },
        Sessions::Requests(exchanges) => {
            if let PopulationPlan::Browsers(plan) = population {
                return browsers_json(plan, exchanges, tcp);
            }
            let (rate_per_s, think_ns) = match population {
                PopulationPlan::Arrivals(Gaps::Exponential { per_s }) => (Some(*per_s), None),
                other => (None, other.think().map(|think| distribution(think, Span::as_ns))),
            };
            let size = |of| distribution(of, Bytes::get);
            let time = |of| distribution(of, Span::as_ns);
            WorkloadJson::Requests {
                rate_per_s,
                think_ns,
                request_bytes: size(&exchanges.request),
                response_bytes: size(&exchanges.response),
                exchanges: distribution(&exchanges.per_connection, |count| count.0),
                pause_ns: time(&exchanges.pause),
                server_delay_ns: time(&exchanges.server_delay),
                tcp,
            }
        }
        Sessions::Web => {
            let PopulationPlan::Cloud(cloud) = population else {
                unreachable!("only a cloud opens connections whose exchanges a cloud draws")
            };
            WorkloadJson::Packmime {
                rate_per_s: cloud.per_s,
                pauses: match cloud.pauses {
                    PausesOf::Connection => PausesJson::Connection,
                    PausesOf::Cloud => PausesJson::Cloud,
                },
                http_1_0: !cloud.persistent,
                max_response_bytes: cloud.max_response.map(Bytes::get),
                own_delays: cloud.own_delays,
                tcp,
            }
        }
        Sessions::Pages => {
            let PopulationPlan::Pages(plan) = population else { unreachable!("users fetch pages") };
            pages_json(plan, tcp)
        }
        Sessions::Trace { trace, own_delays } => WorkloadJson::Trace {
            file: trace.file.clone(),
            digest: trace.digest.clone(),
            class: trace.class.clone(),
            own_delays: own_delays.then_some(true),
            left_out: trace.left_out.kinds().map(|(word, count)| (word.to_string(), count)).collect(),
            tcp,
        },
    }
}

fn browsers_json(plan: &BrowserPlan, exchanges: &ExchangePlan, tcp: TcpJson) -> WorkloadJson {
    let count = |of| distribution(of, |count: Count| count.0);
    WorkloadJson::Browsers {
        request_bytes: distribution(&exchanges.request, Bytes::get),
        response_bytes: distribution(&exchanges.response, Bytes::get),
        think_ns: distribution(&plan.think, Span::as_ns),
        embedded: count(&plan.embedded),
        servers: count(&plan.servers),
        parallel: count(&plan.parallel),
        persistent: plan.persistent,
        per_persistent: count(&plan.per_persistent),
        server_delay_ns: distribution(&exchanges.server_delay, Span::as_ns),
        tcp,
    }
}

fn pages_json(plan: &PagePlan, tcp: TcpJson) -> WorkloadJson {
    let time = |of| distribution(of, Span::as_ns);
    WorkloadJson::Pages {
        device: match plan.device {
            Device::Desktop => DeviceJson::Desktop,
            Device::Mobile => DeviceJson::Mobile,
        },
        weight_bytes: plan.weight.as_ref().map(|weight| distribution(weight, Bytes::get)),
        objects: plan.objects.as_ref().map(|objects| distribution(objects, |count| count.0)),
        correlation: plan.correlation,
        shares: plan.shares,
        waves: plan.waves,
        origins: distribution(&plan.origins, |count| count.0),
        request_bytes: distribution(&plan.request, Bytes::get),
        server_delay_ns: time(&plan.server_delay),
        parse_ns: time(&plan.parse),
        think_ns: time(&plan.think),
        keeps_connections: plan.keeps_connections,
        tcp,
    }
}

fn on_off_json(times: &OnOff) -> (DistributionJson<u64>, DistributionJson<u64>, BeginJson) {
    let begin = match times.begin {
        Begin::On => BeginJson::On,
        Begin::Off => BeginJson::Off,
        Begin::Stationary => BeginJson::Stationary,
    };
    (distribution(&times.on, Span::as_ns), distribution(&times.off, Span::as_ns), begin)
}

const fn host_json(end: End) -> HostJson {
    match end {
        End::Client => HostJson::Client,
        End::Server => HostJson::Server,
    }
}

fn sizes_json(sizes: &PacketSizes) -> DistributionJson<u64> {
    match sizes {
        PacketSizes::Fixed(size) => DistributionJson::Constant(size.get()),
        PacketSizes::Exponential(mean) => {
            DistributionJson::Exponential { exponential: mean.get(), offset: None }
        }
    }
}

fn ecn_json(ecn: Ecn) -> Option<&'static str> {
    (ecn != Ecn::NotEct).then(|| ecn_word(ecn))
}

fn live_json(live: &LivePlan) -> LiveJson {
    LiveJson {
        ip: live.ip.number(),
        drain_ns: live.drain.as_ns(),
        wait: live.wait.name(),
        spin_ns: live.spin.as_ns(),
        offload: live.offload,
    }
}

fn distribution<Q: Copy, T>(of: &Distribution<Q>, number: impl Fn(Q) -> T) -> DistributionJson<T> {
    let pair = |low: &Q, high: &Q| [number(*low), number(*high)];
    match of {
        Distribution::Constant(value) => DistributionJson::Constant(number(*value)),
        Distribution::Uniform { low, high } => DistributionJson::Uniform { uniform: pair(low, high) },
        Distribution::Spread { low, high } => DistributionJson::Spread { spread: pair(low, high) },
        Distribution::Exponential { mean, offset } => {
            DistributionJson::Exponential { exponential: number(*mean), offset: Some(number(*offset)) }
        }
        Distribution::Pareto { mean, shape, max } => {
            DistributionJson::Pareto { pareto: number(*mean), shape: *shape, max: max.map(&number) }
        }
        Distribution::List(values) => {
            DistributionJson::List { list: values.iter().copied().map(&number).collect() }
        }
        Distribution::Empirical(points) => {
            let points = points.iter().map(|(value, share)| (number(*value), *share));
            DistributionJson::Empirical { empirical: points.collect() }
        }
    }
}

/// Writes JSON without spaces and with sorted keys, whichever map `serde_json` was built with.
fn write_canonical(value: &Json, out: &mut Vec<u8>) {
    match value {
        Json::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            out.push(b'{');
            for (i, (key, value)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                serde_json::to_writer(&mut *out, key).expect("writing text to memory does not fail");
                out.push(b':');
                write_canonical(value, out);
            }
            out.push(b'}');
        }
        Json::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_canonical(item, out);
            }
            out.push(b']');
        }
        other => serde_json::to_writer(out, other).expect("writing a value to memory does not fail"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn canonical_json_sorts_keys_at_every_depth() {
        let mut text = Vec::new();
        write_canonical(&json!({ "b": [1, { "z": null, "a": "x\"y" }], "a": 0.1 }), &mut text);
        assert_eq!(text, br#"{"a":0.1,"b":[1,{"a":"x\"y","z":null}]}"#);
    }

    #[test]
    fn a_distribution_keeps_its_form_and_has_whole_numbers() {
        let json = |d: Distribution<Span>| {
            serde_json::to_value(distribution(&d, Span::as_ns)).expect("numbers have texts")
        };
        assert_eq!(json(Distribution::Constant(Span::ms(5))), json!(5_000_000));
        let range = Distribution::Uniform { low: Span::ZERO, high: Span::us(3) };
        assert_eq!(json(range), json!({ "uniform": [0, 3000] }));
        let tail = Distribution::Pareto { mean: Span::ns(7), shape: 1.5, max: None };
        assert_eq!(json(tail), json!({ "pareto": 7, "shape": 1.5 }));
        let points = Distribution::Empirical(vec![(Span::ns(1), 0.25), (Span::ns(2), 1.0)]);
        assert_eq!(json(points), json!({ "empirical": [[1, 0.25], [2, 1.0]] }));
    }
}
