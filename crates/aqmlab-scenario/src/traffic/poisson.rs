//! `poisson`: UDP packets with exponential gaps.

use aqmlab_traffic::Spacing;
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{CLASS, MANY};
use super::kind::{Carries, Part, Start, TrafficKind};
use super::packets::{PACKETS, Packets, RATE_AND_SIZE, UDP};
use super::reading::Reading;
use super::source::FlowSource;
use crate::field::Variant;
use crate::pass::{Pass, Section};

/// UDP packets with exponential gaps.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Poisson {
    /// The packets.
    #[serde(flatten)]
    pub packets: Packets,
}

pub(super) const PARTS: &[Part] = &[PACKETS];

pub(super) const KIND: Variant = Variant {
    kind: "poisson",
    help: "UDP packets with exponential gaps",
    fields: &[CLASS, MANY, RATE_AND_SIZE, UDP],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<Poisson>> {
    Some(Reading::new(pass.integer(section, "count"), |pass, section| {
        Some(Poisson { packets: Packets::read(pass, section)? })
    }))
}

impl TrafficKind for Poisson {
    fn carries(&self) -> Carries<'_> {
        Carries::Datagrams(self.packets.flow())
    }

    fn source(&self, start: Start<'_>) -> FlowSource {
        self.packets.source(Spacing::Poisson, start)
    }
}
