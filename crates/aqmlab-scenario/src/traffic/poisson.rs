//! `poisson`: UDP packets with exponential gaps.

use aqmlab_traffic::Spacing;

use super::fields::{CLASS, MANY};
use super::kind::{Carries, Part, Start, TrafficKind};
use super::packets::{PACKETS, Packets, RATE_AND_SIZE, UDP, ecn_json};
use super::plain::plain;
use super::reading::Reading;
use super::source::FlowSource;
use crate::distribution_json::DistributionJson;
use crate::field::Variant;
use crate::pass::{Pass, Section};

/// UDP packets with exponential gaps.
#[derive(Clone, Copy, Debug)]
pub struct Poisson(
    /// The packets.
    pub Packets,
);

pub(super) const PARTS: &[Part] = &[PACKETS];

pub(super) const KIND: Variant = Variant {
    kind: "poisson",
    help: "UDP packets with exponential gaps",
    fields: &[CLASS, MANY, RATE_AND_SIZE, UDP],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<Poisson>> {
    let rest = |pass: &mut Pass<'_, '_>, section: &Section<'_>| Packets::read(pass, section).map(Poisson);
    Some(Reading::new(pass.integer(section, "count"), rest))
}

impl TrafficKind for Poisson {
    fn carries(&self) -> Carries<'_> {
        Carries::Datagrams(self.0.flow())
    }

    fn source(&self, start: Start<'_>) -> FlowSource {
        self.0.source(Spacing::Poisson, start)
    }
}

plain!(Poisson, of => {
    /// network-layer rate
    rate_bps: u64 = of.0.rate.as_bps(),
    /// packet sizes, headers included
    size_bytes: DistributionJson<u64> = of.0.sizes_json(),
    /// ECN field of each packet, if it is ECN-capable
    #[serde(skip_serializing_if = "Option::is_none")]
    ecn: Option<&'static str> = ecn_json(of.0.ecn),
});
