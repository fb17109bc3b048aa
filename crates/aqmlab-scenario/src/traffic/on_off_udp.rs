//! `on_off_udp`: UDP packets at a constant bit rate during on periods, none during off periods.

use std::sync::Arc;

use aqmlab_params::Default;
use aqmlab_qdisc::Ecn;
use aqmlab_traffic::{OnOff, PacketSource, Quantity};
use aqmlab_units::{Bytes, Rate, Span};

use super::fields::{CLASS, MANY};
use super::kind::{Carries, DatagramFlow, PACKET_FLOW, Part, SESSION, Start, TrafficKind};
use super::on_off::{BeginJson, OFF, ON_OFF, begin, begin_json, on_off};
use super::packets::{PACKETS, UDP, ecn, ecn_json};
use super::plain::plain;
use super::reading::Reading;
use super::source::{DatagramSource, FlowSource};
use crate::distribution_json::{DistributionJson, distribution};
use crate::field::{Field, Form, Variant, default, required};
use crate::language::{PACKET, PERIODS, RATE};
use crate::pass::{Pass, Section};

/// UDP packets of one size, sent at a fixed rate during on periods, and not at all during off
/// periods.
#[derive(Clone, Debug)]
pub struct OnOffUdp {
    /// Network-layer rate during on periods.
    pub rate: Rate,
    /// Packet size, headers included.
    pub size: Bytes,
    /// Durations of on and off periods.
    pub times: Arc<OnOff>,
    /// The ECN field of each packet.
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

plain!(OnOffUdp, of => {
    /// duration of the on periods
    on_ns: DistributionJson<u64> = distribution(&of.times.on, Span::as_ns),
    /// duration of the off periods
    off_ns: DistributionJson<u64> = distribution(&of.times.off, Span::as_ns),
    /// initial state
    begin: BeginJson = begin_json(of.times.begin),
    /// network-layer rate during on periods
    rate_bps: u64 = of.rate.as_bps(),
    /// packet size, headers included
    size_bytes: u64 = of.size.get(),
    /// ECN field of each packet, if it is ECN-capable
    #[serde(skip_serializing_if = "Option::is_none")]
    ecn: Option<&'static str> = ecn_json(of.ecn),
});
