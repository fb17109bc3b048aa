//! The plan: a scenario with everything resolved, which is all that a host needs to run it.
//!
//! A plan is also plain data, as manifests contain it: numbers are whole and in SI units, with the unit in the key;
//! references are names. Keys that a plan does not use are absent, so a new key does not change the digest of a plan
//! without that key.

mod autorate;
mod class;
mod data;
mod delay;
mod live;
mod rate;
mod record;
mod stop;

use std::collections::BTreeMap;

use aqmlab_qdisc::Effective;
use aqmlab_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::error::Problem;
use crate::parameter::Parameter;
use crate::settings_json::{self, QueueForm};

pub use autorate::*;
pub use class::*;
use data::is_default;
pub use data::{Named, Reference, References};
pub use delay::*;
pub use live::*;
pub use rate::*;
pub use record::*;
pub use stop::*;

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
    #[serde(skip_serializing_if = "is_default")]
    pub live: LivePlan,
}

fn origins<S: Serializer>(parameters: &[Parameter], serializer: S) -> Result<S::Ok, S::Error> {
    let by_path: BTreeMap<&str, String> =
        parameters.iter().map(|of| (of.path.as_str(), of.origin.to_string())).collect();
    by_path.serialize(serializer)
}

impl Plan {
    /// Iterates over the parts of the plan that only a kernel supports; the simulator refuses a
    /// plan that has any.
    pub fn only_live(&self) -> impl Iterator<Item = &Problem> {
        let of_classes = self.classes.iter().filter_map(|class| class.only_live.as_ref());
        of_classes.chain(self.links.iter().filter_map(|link| link.only_live.as_ref()))
    }
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
    /// Capacity; the mean capacity over the run if the rate changes.
    #[serde(rename = "rate_bps")]
    pub rate: Rate,
    /// How the rate changes during the run, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangingRate>,
    /// What adjusts the rate of the queue's shaper, if anything does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autorate: Option<AutoratePlan>,
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
