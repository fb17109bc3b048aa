//! `on_off_udp`: UDP packets at a constant bit rate during on periods, none during off periods.

use std::sync::Arc;

use aqmlab_params::Default;
use aqmlab_qdisc::Ecn;
use aqmlab_traffic::{OnOff, PacketSource, Quantity};
use aqmlab_units::{Bytes, Rate};
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{CLASS, MANY};
use super::kind::{Carries, DatagramFlow, PACKET_FLOW, Part, SESSION, Start, TrafficKind};
use super::on_off::{OFF, ON_OFF, begin, on_off};
use super::packets::{PACKETS, UDP, ecn, ecn_field, is_not_capable};
use super::reading::Reading;
use super::source::{DatagramSource, FlowSource};
use crate::field::{Field, Form, Variant, default, required};
use crate::language::{PACKET, PERIODS, RATE};
use crate::pass::{Pass, Section};

/// UDP packets of one size, sent at a fixed rate during on periods, and not at all during off
/// periods.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OnOffUdp {
    /// Durations of on and off periods.
    #[serde(flatten)]
    pub times: Arc<OnOff>,
    /// Network-layer rate during on periods.
    #[serde(rename = "rate_bps")]
    pub rate: Rate,
    /// Packet size, headers included.
    #[serde(rename = "size_bytes")]
    pub size: Bytes,
    /// The ECN field of each packet, if it is ECN-capable.
    #[serde(serialize_with = "ecn_field", skip_serializing_if = "is_not_capable")]
    #[schemars(with = "String")]
    pub ecn: Ecn,
}

pub(super) const PARTS: &[Part] = &[ON_OFF, PACKETS];

const FIELDS: &[Field] = &[
    required("rate", Form::One(RATE), "network-layer rate of each flow during on periods"),
    default("size", Form::One(PACKET), Default::Bytes(1000), "packet size, headers included"),
    required(
        "on",
        Form::Drawn(&PERIODS),
        "lengths of on periods; each is rounded to the nearest whole number of packets, at least one",
    ),
    OFF[0],
    OFF[1],
];

pub(super) const KIND: Variant = Variant {
    kind: "on_off_udp",
    help: "UDP packets at a constant bit rate during on periods, none during off periods",
    fields: &[CLASS, MANY, FIELDS, UDP],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<OnOffUdp>> {
    Some(Reading::new(pass.integer(section, "count"), |pass, section| {
        let (rate, size) = (pass.rate(section, "rate"), pass.bytes(section, "size"));
        let (on, off) = (pass.drawn(section, "on"), pass.drawn(section, "off"));
        let (begin, ecn) = (begin(pass, section), ecn(pass, section));
        let size = size?;
        let times = on_off(pass, section, on?, off?, begin?)?;
        Some(OnOffUdp { rate: rate?, size, times, ecn: ecn? })
    }))
}

impl TrafficKind for OnOffUdp {
    fn carries(&self) -> Carries<'_> {
        Carries::Datagrams(DatagramFlow {
            mean_size: self.size,
            largest: Some(self.size),
            rate: Some(self.rate),
            mean_rate: Some(self.rate.times(self.times.duty())),
            ecn_capable: self.ecn.is_capable(),
        })
    }

    fn source(&self, start: Start<'_>) -> FlowSource {
        let (on, off) = (start.draws("on"), start.draws("off"));
        let source = PacketSource::on_off(self.rate, self.size, self.times.clone(), start.now, on, off);
        FlowSource::Packets(DatagramSource::Rate { source, ecn: self.ecn })
    }

    fn flow_bytes(&self) -> u64 {
        PACKET_FLOW + SESSION
    }
}
