//! UDP packets at a rate, which several kinds of traffic send.

use aqmlab_params::{Default, Kind};
use aqmlab_qdisc::Ecn;
use aqmlab_traffic::{PacketSizes, PacketSource, Spacing};
use aqmlab_units::Rate;

use super::kind::{DatagramFlow, Part, Start};
use super::source::{DatagramSource, FlowSource};
use crate::distribution_json::DistributionJson;
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
const ECN: &[&str] = &["not-ect", "ect0", "ect1"];

pub(super) const UDP: &[Field] = &[default(
    "ecn",
    Form::One(Kind::Choice(ECN)),
    Default::Choice("not-ect"),
    "the ECN field of each packet: queues mark packets whose field is \"ect0\" or \"ect1\" instead of dropping them, and senders \
     do not react",
)];

/// UDP packets at a rate.
#[derive(Clone, Copy, Debug)]
pub struct Packets {
    /// Network-layer rate.
    pub rate: Rate,
    /// Packet sizes, headers included.
    pub sizes: PacketSizes,
    /// The ECN field of each packet.
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

    /// Returns the sizes as plain data.
    pub(super) fn sizes_json(&self) -> DistributionJson<u64> {
        match self.sizes {
            PacketSizes::Fixed(size) => DistributionJson::Constant(size.get()),
            PacketSizes::Exponential(mean) => {
                DistributionJson::Exponential { exponential: mean.get(), offset: None }
            }
        }
    }
}

/// Returns the ECN field of a class's datagrams.
pub(super) fn ecn(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Ecn> {
    ecn_of(pass.word(section, "ecn")?)
}

/// Returns the ECN field as plain data.
pub(super) fn ecn_json(ecn: Ecn) -> Option<&'static str> {
    (ecn != Ecn::NotEct).then(|| ecn_word(ecn))
}
