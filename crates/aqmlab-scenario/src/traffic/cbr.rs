//! `cbr`: UDP packets at a constant bit rate.

use std::ops::Not;

use aqmlab_params::{Alias, Default, Kind};
use aqmlab_traffic::Spacing;
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{CLASS, MANY};
use super::kind::{Carries, Part, Start, TrafficKind};
use super::packets::{PACKETS, Packets, RATE_AND_SIZE, UDP};
use super::reading::Reading;
use super::source::FlowSource;
use crate::field::{Field, Form, Variant, default};
use crate::pass::{Pass, Section};

/// UDP packets at a constant bit rate.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Cbr {
    /// The packets.
    #[serde(flatten)]
    pub packets: Packets,
    /// Whether gaps are random around a mean; otherwise they are constant.
    #[serde(skip_serializing_if = "Not::not")]
    pub random_gaps: bool,
}

pub(super) const PARTS: &[Part] = &[PACKETS];

const FIELDS: &[Field] = &[default(
    "random_gaps",
    Form::One(Kind::Flag),
    Default::Flag(false),
    "each gap is drawn separately, uniformly from 0.5 to 1.5 times the constant gap",
)
.known_as(&[Alias::new("ns-2", "random_")])];

pub(super) const KIND: Variant = Variant {
    kind: "cbr",
    help: "UDP packets at a constant bit rate",
    fields: &[CLASS, MANY, RATE_AND_SIZE, FIELDS, UDP],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<Cbr>> {
    Some(Reading::new(pass.integer(section, "count"), |pass, section| {
        let random_gaps = pass.flag(section, "random_gaps")?;
        Some(Cbr { packets: Packets::read(pass, section)?, random_gaps })
    }))
}

impl TrafficKind for Cbr {
    fn carries(&self) -> Carries<'_> {
        Carries::Datagrams(self.packets.flow())
    }

    fn source(&self, start: Start<'_>) -> FlowSource {
        let spacing = if self.random_gaps { Spacing::Random } else { Spacing::Constant };
        self.packets.source(spacing, start)
    }
}
