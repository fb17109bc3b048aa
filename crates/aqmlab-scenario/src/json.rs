//! A plan as JSON, and the digest that names it.

use aqmlab_params::{Settings, Value};
use aqmlab_qdisc::Ecn;
use aqmlab_traffic::{Begin, OnOff, Spacing};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use crate::distribution::Sizes;
use crate::drawn::Times;
use crate::plan::{
    Access, ClassPlan, DelayPlan, Edge, Faults, FlowChoice, LinkPlan, LivePlan, Plan, QueueCount, Sessions,
    Stop, Workload,
};
use crate::starts;
use crate::trace::ecn_word;

impl Plan {
    /// Every value of the plan, and the origin of each as `origins`. Quantities are texts with units, in the form
    /// of a scenario file, so that nothing is lost to floating point; counts, gains and flags are plain.
    pub fn to_json(&self) -> Json {
        self.with_names(self.deciding())
    }

    /// SHA-256, in hexadecimal, of what decides the result of a run but for the seed: the canonical JSON (keys
    /// sorted, no blanks) of the plan without title, arm name and origins.
    pub fn digest(&self) -> String {
        digest(&self.deciding())
    }

    /// [`digest`](Plan::digest) and [`to_json`](Plan::to_json), at little more than the price of one.
    pub fn digest_and_json(&self) -> (String, Json) {
        let plan = self.deciding();
        (digest(&plan), self.with_names(plan))
    }

    fn with_names(&self, mut plan: Map<String, Json>) -> Json {
        plan.insert("title".into(), json!(self.title));
        plan.insert("arm".into(), json!(self.arm));
        let origins = self.parameters.iter().map(|p| (p.path.clone(), json!(p.origin.to_string())));
        plan.insert("origins".into(), Json::Object(origins.collect()));
        Json::Object(plan)
    }

    fn deciding(&self) -> Map<String, Json> {
        let links: Vec<Json> = self.links.iter().map(|l| self.link_json(l)).collect();
        let classes: Vec<Json> = self.classes.iter().map(|c| self.class_json(c)).collect();
        let plan = json!({
            "warmup": self.warmup.to_string(),
            "stop": self.stop_json(&self.stop),
            "nodes": self.nodes,
            "links": links,
            "classes": classes,
            "record": self.record_json(),
        });
        let Json::Object(mut plan) = plan else { unreachable!("it was made an object") };
        if !self.delays.is_empty() {
            plan.insert("delays".into(), self.delays.iter().map(|rule| self.delay_json(rule)).collect());
        }
        // What nobody changed is not there, so that plans keep their digests.
        if self.live != LivePlan::default() {
            plan.insert("live".into(), live_json(&self.live));
        }
        plan
    }

    fn delay_json(&self, rule: &DelayPlan) -> Json {
        let router = |node: Option<usize>| node.map(|node| &self.nodes[node]);
        json!({
            "name": rule.name,
            "class": rule.class.map(|class| &self.classes[class].name),
            "from": router(rule.from),
            "to": router(rule.to),
            "to_receiver": rule.directions[0],
            "to_sender": rule.directions[1],
            "at": match rule.edge {
                Edge::Entry => "entry",
                Edge::Exit => "exit",
            },
            "delay": Times(&rule.delay).to_string(),
            "jitter": rule.jitter.to_string(),
            "loss": Times(&rule.loss).to_string(),
            "rate": rule.rate.as_ref().map_or_else(|| "unlimited".to_string(), |rate| Times(rate).to_string()),
        })
    }

    /// What nobody asked for is not there, so that it does not change the digest of a plan without it.
    fn record_json(&self) -> Json {
        let record = &self.record;
        let mut all = Map::new();
        all.insert("queues".into(), json!(record.queues.to_string()));
        all.insert("flows".into(), json!(record.flows.to_string()));
        if !record.trace.is_empty() {
            all.insert("trace".into(), self.flows_json(&record.trace));
        }
        if let Some(packets) = &record.packets {
            let links: Vec<_> = packets.links.iter().map(|&l| &self.links[l].name).collect();
            let events: Vec<_> = packets.events.iter().map(|e| e.name()).collect();
            let flows = packets.flows.as_ref().map(|flows| self.flows_json(flows));
            let until = packets.until.map(|until| until.to_string());
            let from = packets.from.to_string();
            all.insert(
                "packets".into(),
                json!({ "links": links, "flows": flows, "events": events, "from": from, "until": until }),
            );
        }
        if !record.trace.is_empty() || record.packets.is_some() {
            all.insert("limit".into(), json!(record.limit));
        }
        Json::Object(all)
    }

    fn flows_json(&self, choices: &[FlowChoice]) -> Json {
        let one = |c: &FlowChoice| json!({ "class": self.classes[c.class].name, "flows": c.indices });
        Json::Array(choices.iter().map(one).collect())
    }

    fn stop_json(&self, stop: &Stop) -> Json {
        let mut all = Map::new();
        all.insert("at".into(), json!(stop.at.to_string()));
        if let Some(completed) = &stop.completed {
            let class = &self.classes[completed.class].name;
            all.insert("completed".into(), json!({ "class": class, "count": completed.count }));
        }
        if let Some(condition) = &stop.condition {
            let quantity = match condition.quantity {
                QueueCount::Arrivals => "arrivals",
                QueueCount::Drops => "drops",
                QueueCount::Marks => "marks",
                QueueCount::Backlog => "backlog",
            };
            let queue = &self.links[condition.link].name;
            all.insert("condition".into(), json!({ "queue": queue, quantity: condition.count }));
        }
        Json::Object(all)
    }

    fn link_json(&self, link: &LinkPlan) -> Json {
        let context = &link.queue.link;
        json!({
            "name": link.name,
            "from": self.nodes[link.from],
            "to": self.nodes[link.to],
            "rate": link.rate.to_string(),
            "delay": link.delay.to_string(),
            "overhead": link.overhead.to_string(),
            "queue": { "kind": link.queue.kind, "settings": settings_json(&link.queue.settings), "context": {
                "rtt": context.rtt.map(|r| r.to_string()),
                "mean_packet": context.mean_packet.to_string(),
            } },
            "faults": faults_json(&link.faults),
        })
    }

    fn class_json(&self, class: &ClassPlan) -> Json {
        let names = |links: &[usize]| links.iter().map(|&l| self.links[l].name.clone()).collect::<Vec<_>>();
        let access = class.access.as_ref().map(access_json);
        let mut all = json!({
            "name": class.name,
            "count": class.count,
            "path": names(&class.path),
            "return_path": names(&class.return_path),
            "start": match &class.workload {
                Workload::Sessions { sessions: Sessions::Trace(_), .. } => "trace".to_string(),
                Workload::Schedule(_) => "schedule".to_string(),
                _ => starts::written(class),
            },
            "stop": class.stop_at.map(|s| s.to_string()),
            "access": access,
            "loss": class.access_loss,
            "workload": workload_json(&class.workload),
        });
        if let Some(starts) = &class.seed_starts {
            all["first_seed"] = json!(starts.first);
        }
        all
    }
}

fn access_json(access: &Access) -> Json {
    let mut all = json!({ "rate": access.rate.to_string(), "rtt": Times(&access.rtt).to_string() });
    let at = match access.ends {
        [true, false] => Some("sender"),
        [false, true] => Some("receiver"),
        _ => None,
    };
    if let Some(at) = at {
        all["at"] = json!(at);
    }
    all
}

fn live_json(live: &LivePlan) -> Json {
    json!({
        "ip": live.ip.number(),
        "drain": live.drain.to_string(),
        "wait": live.wait.name(),
        "spin": live.spin.to_string(),
    })
}

fn workload_json(workload: &Workload) -> Json {
    match workload {
        Workload::Bulk { bytes, tcp_settings, .. } => json!({
            "kind": "bulk",
            "bytes": bytes.map_or_else(|| "endless".to_string(), |b| b.to_string()),
            "tcp": settings_json(tcp_settings),
        }),
        Workload::Sessions { sessions, tcp_settings, .. } => {
            let mut all = sessions_json(sessions);
            all.insert("tcp".into(), settings_json(tcp_settings));
            Json::Object(all)
        }
        Workload::OnOff { rate, size, times, ecn } => {
            let mut all = on_off_json("on_off_udp", times);
            all.insert("rate".into(), json!(rate.to_string()));
            all.insert("size".into(), json!(size.to_string()));
            insert_ecn(&mut all, *ecn);
            Json::Object(all)
        }
        Workload::Packets { rate, sizes, spacing, ecn } => {
            let mut all = map([
                ("kind", spacing_kind(*spacing).to_string()),
                ("rate", rate.to_string()),
                ("size", Sizes(sizes).to_string()),
            ]);
            if *spacing == Spacing::Random {
                all.insert("random_gaps".into(), json!(true));
            }
            insert_ecn(&mut all, *ecn);
            Json::Object(all)
        }
        Workload::Schedule(schedule) => Json::Object(map([
            ("kind", "schedule".to_string()),
            ("file", schedule.file.clone()),
            ("digest", schedule.digest.clone()),
        ])),
    }
}

/// Packets that are not ECN-capable are not told of.
fn insert_ecn(all: &mut Map<String, Json>, ecn: Ecn) {
    if ecn != Ecn::NotEct {
        all.insert("ecn".into(), json!(ecn_word(ecn)));
    }
}

/// The kind of traffic with these gaps.
pub(crate) fn spacing_kind(spacing: Spacing) -> &'static str {
    match spacing {
        Spacing::Constant | Spacing::Random => "cbr",
        Spacing::Poisson => "poisson",
    }
}

fn sessions_json(sessions: &Sessions) -> Map<String, Json> {
    match sessions {
        Sessions::Greedy(times) => on_off_json("on_off_tcp", times),
        Sessions::Bursts(bursty) => map([
            ("kind", "on_off_tcp".to_string()),
            ("burst", Times(&bursty.sizes).to_string()),
            ("off", Times(&bursty.off).to_string()),
            ("begin", if bursty.begins_off { "off" } else { "on" }.to_string()),
        ]),
        Sessions::Trace(trace) => {
            let mut all = map([
                ("kind", "trace".to_string()),
                ("file", trace.file.clone()),
                ("digest", trace.digest.clone()),
            ]);
            all.insert("class".into(), json!(trace.class));
            all
        }
    }
}

fn on_off_json(kind: &str, times: &OnOff) -> Map<String, Json> {
    let begin = match times.begin {
        Begin::On => "on",
        Begin::Off => "off",
        Begin::Stationary => "stationary",
    };
    map([
        ("kind", kind.to_string()),
        ("on", Times(&times.on).to_string()),
        ("off", Times(&times.off).to_string()),
        ("begin", begin.to_string()),
    ])
}

fn map<const N: usize>(entries: [(&str, String); N]) -> Map<String, Json> {
    entries.into_iter().map(|(key, text)| (key.to_string(), json!(text))).collect()
}

fn faults_json(faults: &Faults) -> Json {
    json!({ "drop": faults.drop, "mark": faults.mark })
}

fn settings_json(settings: &Settings) -> Json {
    Json::Object(settings.iter().map(|s| (s.name.to_string(), value_json(&s.value))).collect())
}

fn value_json(value: &Value) -> Json {
    match value {
        Value::Flag(v) => json!(v),
        Value::Integer(v) => json!(v),
        Value::Number(v) => json!(v),
        other => json!(other.to_string()),
    }
}

fn digest(plan: &Map<String, Json>) -> String {
    let mut text = Vec::new();
    write_canonical_map(plan, &mut text);
    Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sorted keys whatever map `serde_json` was built with, and no blanks.
fn write_canonical(value: &Json, out: &mut Vec<u8>) {
    match value {
        Json::Object(map) => write_canonical_map(map, out),
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
        other => serde_json::to_writer(out, other).expect("memory takes any value"),
    }
}

fn write_canonical_map(map: &Map<String, Json>, out: &mut Vec<u8>) {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| key.as_str());
    out.push(b'{');
    for (i, (key, value)) in entries.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        serde_json::to_writer(&mut *out, key).expect("memory takes any text");
        out.push(b':');
        write_canonical(value, out);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_sorts_keys_at_every_depth() {
        let mut text = Vec::new();
        write_canonical(&json!({ "b": [1, { "z": null, "a": "x\"y" }], "a": 0.1 }), &mut text);
        assert_eq!(text, br#"{"a":0.1,"b":[1,{"a":"x\"y","z":null}]}"#);
    }
}
