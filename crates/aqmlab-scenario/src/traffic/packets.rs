//! UDP packets at a rate, which several kinds of traffic send.

use aqmlab_params::{Default, Kind};
use aqmlab_qdisc::Ecn;
use aqmlab_traffic::{PacketSizes, PacketSource, Spacing};
use aqmlab_units::Rate;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::kind::{DatagramFlow, Part, Start};
use super::source::{DatagramSource, FlowSource};
use crate::field::{Field, Form, default, required};
use crate::language::RATE;
use crate::pass::{Pass, Section};
use crate::trace::{ecn_of, ecn_word};

/// The part that sends them.
pub(super) const PACKETS: Part = ("traffic.packets", PacketSource::VERSION);

pub(super) const RATE_AND_SIZE: &[Field] = &[
    required("rate", Form::One(RATE), "network-layer rate of each flow"),
    default("size", Form::Sizes, Default::Bytes(1000), "packet size, headers included"),
];

/// The ECN fields that a source may set on all its packets.
pub(super) const ECN: &[&str] = &["not-ect", "ect0", "ect1"];

pub(super) const UDP: &[Field] = &[default(
    "ecn",
    Form::One(Kind::Choice(ECN)),
    Default::Choice("not-ect"),
    "the ECN field of each packet: queues mark packets whose field is \"ect0\" or \"ect1\" instead of dropping them, and senders \
     do not react",
)];

/// UDP packets at a rate.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Packets {
    /// Network-layer rate.
    #[serde(rename = "rate_bps")]
    pub rate: Rate,
    /// Packet sizes, headers included.
    #[serde(rename = "size_bytes")]
    pub sizes: PacketSizes,
    /// The ECN field of each packet, if it is ECN-capable.
    #[serde(serialize_with = "ecn_field", skip_serializing_if = "is_not_capable")]
    #[schemars(with = "String")]
    pub ecn: Ecn,
}

impl Packets {
    pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Self> {
        let (rate, sizes) = (pass.rate(section, "rate"), pass.sizes(section, "size"));
        let ecn = ecn(pass, section);
        Some(Packets { rate: rate?, sizes: sizes?, ecn: ecn? })
    }

    pub(super) fn flow(&self) -> DatagramFlow {
        DatagramFlow {
            mean_size: self.sizes.mean(),
            largest: match self.sizes {
                PacketSizes::Fixed(size) => Some(size),
                PacketSizes::Exponential(_) => None,
            },
            rate: Some(self.rate),
            mean_rate: Some(self.rate),
            ecn_capable: self.ecn.is_capable(),
        }
    }

    pub(super) fn source(&self, spacing: Spacing, start: Start<'_>) -> FlowSource {
        let (gaps, sizes) = (start.draws("gap"), start.draws("size"));
        let source = PacketSource::new(self.rate, self.sizes, spacing, start.now, gaps, sizes);
        FlowSource::Packets(DatagramSource::Rate { source, ecn: self.ecn })
    }
}

/// Returns the ECN field of a class's datagrams.
pub(super) fn ecn(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Ecn> {
    ecn_of(pass.word(section, "ecn")?)
}

/// Writes an ECN field as its word.
pub(super) fn ecn_field<S: Serializer>(ecn: &Ecn, serializer: S) -> Result<S::Ok, S::Error> {
    ecn_word(*ecn).serialize(serializer)
}

/// Returns whether packets with this ECN field are not ECN-capable.
pub(super) fn is_not_capable(ecn: &Ecn) -> bool {
    *ecn == Ecn::NotEct
}
