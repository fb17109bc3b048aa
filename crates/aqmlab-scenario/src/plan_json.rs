//! A plan as plain data, as manifests contain it: numbers are whole and in SI units, with the unit
//! in the key; references are names.
//!
//! Keys that a plan does not use are absent, so a new key does not change the digest of a plan
//! without that key.

use std::collections::BTreeMap;

use aqmlab_traffic::End;
use aqmlab_units::{Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

pub use crate::distribution_json::DistributionJson;
use crate::distribution_json::distribution;
use crate::plan::{
    Access, ClassPlan, Completed, CountStop, DelayPlan, Edge, FlowChoice, LinkPlan, LivePlan, Plan,
    QueueCount, RecordPlan, RequestPlan, StageDelay, StagePlace, Stop,
};
use crate::settings_json::QueueJson;
pub use crate::traffic::WorkloadJson;

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
            workload: class.traffic.json(),
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
                StageDelay::OfConnection(_) | StageDelay::Packmime(_) => None,
            },
            delay_of: match rule.delay {
                StageDelay::Drawn(_) => None,
                StageDelay::OfConnection(end) => Some(HostDelayJson::Cloud(host_json(end))),
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
    if class.traffic.is_from_file() {
        return None;
    }
    Some(match &class.seed_starts {
        Some(starts) => {
            let seeds = starts.lists.iter().map(|list| list.iter().map(|start| start.as_ns()).collect());
            DistributionJson::Seeds { seeds: seeds.collect() }
        }
        None => distribution(&class.start, Span::as_ns),
    })
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

const fn host_json(end: End) -> HostJson {
    match end {
        End::Client => HostJson::Client,
        End::Server => HostJson::Server,
    }
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
}
