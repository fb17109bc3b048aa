//! The parameters of SFQ, their automatic values, and their conversion to a queue.

use alloc::format;

use aqmlab_params::{ParamError, Reading, Row, Settings, params, words};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Span};

use super::Measure;
use super::red_resolve::{resolve_burst, tc_weight};
use super::sfq::{Sfq, SfqQueue, Turn};
use super::table::{LINUX, names, packets, presets, tc, tc_bytes};
use super::words::Region;
use crate::info::{Decides, Derive, Effective, Info, Maturity, Preset};
use crate::law::{ByteMode, Counting, EcnRegion, IdleRule, RedArithmetic, RedLaw, RedParams, SpacingRule};
use crate::resolve::{self, Common, LimitRule, in_bytes};
use crate::{LinkContext, Packet};

words! {
    /// What a turn gives to a queue.
    enum TurnOf { Packet = "packet", Quantum = "quantum" }
}

/// SFQ's entry in the catalogue.
pub(crate) const SFQ_INFO: Info = Info {
    name: "sfq",
    title: "SFQ",
    summary: "Stochastic Fair Queueing: a queue per hashed flow, served in turn; overload drops from the longest",
    version: 1,
    applies: &["red"],
    maturity: Maturity::ReferenceChecked,
    decides: Decides::Enqueue,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || {
        let red = Parameters::redflowlimit().param.name;
        resolve::sample(&[
            Parameters::flows().is(6),
            Parameters::depth().is(40),
            Parameters::ecn().is(true),
            (red, aqmlab_params::Value::Size(Size::Bytes(Bytes::new(60_000)))),
        ])
    },
};

const PAPER: &str = "McKenney 1990";
/// Queues in use at once, by default.
const FLOWS: u64 = 128;
const MAN: &str = "tc-sfq(8)";
const REGIONS: &[&str] = &[Region::Rfc3168.word(), Region::Linux.word()];

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        /// buffer size of all queues together, excluding the packet in transmission; an arrival that exceeds it is
        /// queued, and the longest queue loses a packet
        limit: Size = Common::limit().default(packets(127)).aliases(&[tc("limit")]).source(MAN),
        limit_rule: LimitRule = Common::limit_rule(),
        /// most packets in a queue
        depth: u64 = Row::integer(1, 65_536).default(127).aliases(&[tc("depth")]).source(MAN),
        /// most queues in use at once; the packet of a further flow is lost
        flows: u64 = Row::integer(1, 65_536).auto("128; Linux preset: as many as limit has packets, if these are fewer")
            .aliases(&[tc("flows")]).source("tc-sfq(8); Linux"),
        /// number of different hashes; flows with the same hash share a queue
        divisor: u64 = Row::integer(1, 65_536).default(1024).aliases(&[tc("divisor")]).source(MAN),
        /// what a turn gives to a queue: one `packet`, or a `quantum` of credit
        turn: TurnOf = Row::choice("packet").source("McKenney 1990 (from memory); Linux"),
        /// turn `quantum`: bytes that a queue may send per round
        quantum: Bytes = Row::bytes(1, 1_000_000).default(Bytes::new(1514))
            .aliases(&[tc_bytes("quantum")]).source(MAN),
        /// packets are lost at the head of a queue instead of its tail, and marks go to the packet at the head
        head_drop: bool = Row::flag(false).aliases(&[tc("headdrop")]).source(MAN),
        /// time after which flows get other hashes; waiting packets move to their flows' new queues
        perturb: Option<Span> = Row::span(Span::ms(1), Span::s(1_000_000))
            .aliases(&[tc("perturb").reads(Reading::In("s"))])
            .source("McKenney 1990; tc-sfq(8), in seconds")
            .optional("flows keep their hashes"),
        /// a RED for each queue, on its bytes, with thresholds for a queue of this length; no limit by itself
        redflowlimit: Option<Bytes> = Row::bytes(1, 1_000_000_000)
            .aliases(&[tc_bytes("redflowlimit")])
            .source(MAN)
            .optional("no RED"),
        /// average queue below which RED chooses no packet
        min_th: Size = Row::size().auto("max_th / 3")
            .aliases(&[tc("min").reads(Reading::In("B"))]).source(MAN),
        /// average queue at which RED chooses every packet
        max_th: Size = Row::size().auto("redflowlimit / 4")
            .aliases(&[tc("max").reads(Reading::In("B"))]).source(MAN),
        /// RED's probability at max_th
        max_p: f64 = Row::above(0.0, 1.0).default(0.02).aliases(&[tc("probability")]).source(MAN),
        /// mean packet size, for burst and for thresholds in packets
        mean_packet: Bytes = Common::mean_packet().default(Bytes::new(1000))
            .aliases(&[tc_bytes("avpkt")]).source(MAN),
        /// length, in packets, of a burst that RED's average tolerates
        burst: u64 = Row::integer(1, 1_000_000)
            .auto("(2 min_th + max_th) / (3 mean_packet), rounded down; at least one packet")
            .aliases(&[tc("burst")])
            .source(MAN),
        /// mark ECN-capable packets that RED chooses, where ecn_region allows, instead of dropping them
        ecn: bool = Row::flag(false).aliases(&[tc("ecn")]).source(MAN),
        /// where marks replace RED's drops: `linux` everywhere; `rfc3168` below max_th, tc's `harddrop`
        ecn_region: Region = Row::choice("linux").only(REGIONS).source("tc-sfq(8), `harddrop`"),
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "paper", title: PAPER, values: &[] },
    Preset {
        name: LINUX,
        title: "Linux 6.1's sfq as tc configures it on Ethernet",
        values: &[Parameters::turn().is("quantum")],
    },
];

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mean = resolve::mean_packet(all, link)?;
    let (min_th, max_th) = (Parameters::min_th(), Parameters::max_th());
    resolve::absolute_in_queue_unit(all, Parameters::limit(), link, Measure::Packets, mean)?;
    for row in [min_th, max_th] {
        resolve::absolute_in_queue_unit(all, row, link, Measure::Bytes, mean)?;
    }
    resolve::check_buffer(all, mean)?;
    let linux = Parameters::preset().read(all)? == LINUX;
    let divisor = Parameters::divisor().read(all)?;
    if linux && !divisor.is_power_of_two() {
        return Err(Parameters::divisor().error(format!(
            "divisor `{divisor}` is not a power of two, as Linux requires; write {} or {}",
            divisor.next_power_of_two() / 2,
            divisor.next_power_of_two()
        )));
    }
    Parameters::flows().derive_if_auto(all, |all| {
        let limit = Parameters::limit().read(all)?;
        Ok(
            if let Size::Packets(most) = limit
                && linux
            {
                most.get().min(FLOWS)
            } else {
                FLOWS
            },
        )
    })?;
    // Without RED, the thresholds have values that nothing uses.
    let flow_limit = Parameters::redflowlimit().read(all)?.unwrap_or(mean);
    let bytes = |bytes: f64| Size::Bytes(Bytes::new((bytes as u64).max(1)));
    max_th.derive_if_auto(all, |_| Ok(bytes(flow_limit.as_f64() / 4.0)))?;
    min_th.derive_if_auto(all, |all| Ok(bytes(in_bytes(max_th.read(all)?, mean) / 3.0)))?;
    resolve_burst(all)?;
    resolve::check_order(all, min_th, max_th, mean)?;
    if Parameters::redflowlimit().read(all)?.is_some() {
        tc_weight(all)?;
    }
    Ok(())
}

/// Builds an SFQ from these parameters.
pub(crate) fn build_sfq<P: Packet>(s: &Effective, draws: Stream) -> Result<Sfq<P>, ParamError> {
    let p = Parameters::read(s)?;
    let red = |weight| {
        RedLaw::new(RedParams {
            min_th: in_bytes(p.min_th, p.mean_packet),
            max_th: in_bytes(p.max_th, p.mean_packet),
            max_p: p.max_p,
            weight,
            gentle: false,
            spacing: SpacingRule::Linux,
            byte_mode: ByteMode::Off,
            // No queue is ever said to be idle: one that empties is free, and the next flow begins anew.
            idle: IdleRule::Linux,
            counting: Counting::Linux,
            ecn_region: match p.ecn_region {
                Region::Rfc3168 | Region::Ns2MarkP => EcnRegion::BelowMaxTh,
                Region::Linux | Region::Feng => EcnRegion::Everywhere,
            },
            arithmetic: RedArithmetic::Linux,
            packets_per_s: s.link().rate.packets_per_s(p.mean_packet),
        })
    };
    let queue = SfqQueue {
        limit: resolve::limit(s)?,
        depth: p.depth as u32,
        flows: p.flows as u32,
        divisor: p.divisor as u32,
        turn: match p.turn {
            TurnOf::Packet => Turn::Packet,
            TurnOf::Quantum => Turn::Credit(p.quantum.get()),
        },
        head_drop: p.head_drop,
        perturb: p.perturb,
        ecn: p.ecn,
        red: p.redflowlimit.map(|_| tc_weight(s).map(red)).transpose()?,
    };
    Ok(Sfq::new(queue, draws))
}
