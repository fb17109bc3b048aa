//! `schedule`: UDP packets from a list.

use std::sync::Arc;

use aqmlab_params::{Kind, Origin};
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::CLASS;
use super::kind::{Carries, DatagramFlow, Part, Start, TrafficKind};
use super::reading::{Reading, list_file};
use super::source::{DatagramSource, FlowSource};
use crate::field::{Field, Form, Variant, required};
use crate::pass::{Pass, Section};
use crate::trace::Schedule;

/// UDP packets from a list.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ScheduledPackets {
    /// The list.
    #[serde(flatten)]
    pub schedule: Arc<Schedule>,
    #[serde(skip)]
    flow: DatagramFlow,
}

impl ScheduledPackets {
    pub(crate) fn new(schedule: Arc<Schedule>) -> Self {
        let flow = DatagramFlow {
            mean_size: schedule.mean_size(),
            largest: Some(schedule.largest()),
            rate: None,
            mean_rate: schedule.mean_rate(),
            ecn_capable: schedule.is_ecn_capable(),
        };
        ScheduledPackets { schedule, flow }
    }
}

pub(super) const PARTS: &[Part] = &[("scenario.schedule", Schedule::VERSION)];

const FIELDS: &[Field] = &[required(
    "file",
    Form::One(Kind::Text),
    "a CSV or Parquet file next to the scenario with the columns `time_s` or `time_ns` (since the run's beginning), \
     `size_bytes` (headers included) and, optionally, `ecn` (`not-ect`, `ect0`, `ect1`, `ce`) and `flow` (0, 1, ..): one \
     packet per row",
)];

pub(super) const KIND: Variant = Variant {
    kind: "schedule",
    help: "UDP packets from a list, sent whatever the state of the network: the list gives the departure time of \
           each packet, its size, its ECN field and its flow",
    fields: &[CLASS, FIELDS],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<ScheduledPackets>> {
    let schedule = schedule(pass, section)?;
    Some(Reading::listed(schedule.starts(), |_, _| Some(ScheduledPackets::new(schedule))))
}

/// Returns the schedule of a class, and adds the numbers of its flows and packets to the
/// effective parameters.
fn schedule(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Arc<Schedule>> {
    let file = list_file(pass, section)?;
    match pass.traces.schedule(&file) {
        Ok(schedule) => {
            let rule = Origin::Derived("the rows of the schedule".into());
            pass.enter_at(section.sub("count"), &schedule.flows(), rule.clone(), "flows of the schedule");
            let help = "packets of the schedule";
            pass.enter_at(section.sub("packets"), &schedule.packets(), rule.clone(), help);
            let help = "SHA-256 of the schedule's file";
            pass.enter_at(section.sub("digest"), &schedule.digest, rule, help);
            Some(schedule)
        }
        Err(message) => {
            pass.error(&section.at("file"), &section.sub("file"), message);
            None
        }
    }
}

impl TrafficKind for ScheduledPackets {
    fn carries(&self) -> Carries<'_> {
        Carries::Datagrams(self.flow)
    }

    fn source(&self, start: Start<'_>) -> FlowSource {
        FlowSource::Packets(DatagramSource::listed(&self.schedule, start.of.index()))
    }

    fn is_from_file(&self) -> bool {
        true
    }
}
