//! The network in words and numbers that a drawing needs.

use aqmlab_qdisc::Ecn;
use aqmlab_traffic::{OnOff, Spacing};
use serde::Serialize;

use crate::distribution::Sizes;
use crate::drawn::Times;
use crate::json::spacing_kind;
use crate::plan::{ClassPlan, Experiment, Parameter, Plan, Sessions, Workload};
use crate::trace::ecn_word;

/// Nodes, links and classes of a plan, as texts.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NetworkView {
    /// Routers.
    pub nodes: Vec<String>,
    /// Directed links.
    pub links: Vec<LinkView>,
    /// Traffic.
    pub classes: Vec<ClassView>,
}

/// A directed link.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkView {
    /// Its name.
    pub name: String,
    /// The node that it leaves.
    pub from: String,
    /// The node that it reaches.
    pub to: String,
    /// `10Mbit`
    pub rate: String,
    /// `10ms`
    pub delay: String,
    /// The discipline: `red`.
    pub queue: String,
    /// The effective limit of its buffer, if the discipline has one: `134p`.
    pub limit: Option<String>,
}

/// A class of flows.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClassView {
    /// Its name.
    pub name: String,
    /// `bulk`, `on_off_tcp`, `trace`, `cbr`, `poisson` or `on_off_udp`.
    pub kind: String,
    /// What a flow does, in a few words: `TCP, endless`, `1Mbit in packets of 1kB`.
    pub what: String,
    /// Flows.
    pub count: u64,
    /// Where its senders are.
    pub from: String,
    /// Where its receivers are.
    pub to: String,
    /// Names of the links there.
    pub path: Vec<String>,
    /// Names of the links back.
    pub return_path: Vec<String>,
    /// Rate of the access links, if there are any.
    pub access_rate: Option<String>,
    /// Base round-trip time with access links, as written in a scenario.
    pub rtt: Option<String>,
}

impl Experiment {
    /// Every value of an arm with its origin, in the order of reading; empty if there is no such arm.
    pub fn effective_parameters(&self, arm: usize) -> &[Parameter] {
        self.arms.get(arm).map_or(&[], |plan| &plan.parameters)
    }
}

impl Plan {
    /// The network, for a drawing.
    pub fn network(&self) -> NetworkView {
        NetworkView {
            nodes: self.nodes.clone(),
            links: self
                .links
                .iter()
                .map(|l| LinkView {
                    name: l.name.clone(),
                    from: self.nodes[l.from].clone(),
                    to: self.nodes[l.to].clone(),
                    rate: l.rate.to_string(),
                    delay: l.delay.to_string(),
                    queue: l.queue.kind.to_string(),
                    limit: l.queue.settings.get("limit").map(ToString::to_string),
                })
                .collect(),
            classes: self.classes.iter().map(|c| self.class_view(c)).collect(),
        }
    }

    fn class_view(&self, class: &ClassPlan) -> ClassView {
        let names = |links: &[usize]| links.iter().map(|&l| self.links[l].name.clone()).collect();
        let end = |link: Option<&usize>, pick: fn(&crate::plan::LinkPlan) -> usize| {
            link.map_or_else(String::new, |&l| self.nodes[pick(&self.links[l])].clone())
        };
        let (kind, what) = described(&class.workload);
        ClassView {
            name: class.name.clone(),
            kind: kind.to_string(),
            what,
            count: class.count,
            from: end(class.path.first(), |l| l.from),
            to: end(class.path.last(), |l| l.to),
            path: names(&class.path),
            return_path: names(&class.return_path),
            access_rate: class.access.as_ref().map(|a| a.rate.to_string()),
            rtt: class.access.as_ref().map(|a| Times(&a.rtt).to_string()),
        }
    }
}

fn on_off(times: &OnOff) -> String {
    format!("on {}, off {}", Times(&times.on), Times(&times.off))
}

fn described(workload: &Workload) -> (&'static str, String) {
    match workload {
        Workload::Bulk { bytes, tcp, .. } => {
            let amount = bytes.map_or_else(|| "endless".to_string(), |b| b.to_string());
            ("bulk", format!("TCP{}, {amount}", if tcp.ecn { " with ECN" } else { "" }))
        }
        Workload::Sessions { sessions, tcp, .. } => {
            let (kind, what) = match sessions {
                Sessions::Greedy(times) => ("on_off_tcp", on_off(times)),
                Sessions::Bursts(b) => {
                    ("on_off_tcp", format!("bursts of {}, off {}", Times(&b.sizes), Times(&b.off)))
                }
                Sessions::Trace(trace) => ("trace", format!("connections of {}", trace.file)),
            };
            (kind, format!("TCP{}, {what}", if tcp.ecn { " with ECN" } else { "" }))
        }
        Workload::OnOff { rate, size, times, ecn } => {
            ("on_off_udp", format!("{rate} in packets of {size}{}, {}", capable(*ecn), on_off(times)))
        }
        Workload::Packets { rate, sizes, spacing, ecn } => {
            let random = if *spacing == Spacing::Random { ", random gaps" } else { "" };
            let what = format!("{rate} in packets of {}{}{random}", Sizes(sizes), capable(*ecn));
            (spacing_kind(*spacing), what)
        }
        Workload::Schedule(schedule) => {
            ("schedule", format!("{} packets of {}", schedule.packets(), schedule.file))
        }
    }
}

/// ` with ect0`, or nothing.
fn capable(ecn: Ecn) -> String {
    if ecn == Ecn::NotEct { String::new() } else { format!(" with {}", ecn_word(ecn)) }
}
