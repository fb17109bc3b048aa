//! The parameters of fair queueing with pacing, and their conversion to a queue.

use alloc::format;

use aqmlab_params::{ParamError, Row, Settings, params};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Rate, Span};

use super::fq::{Fq, FqRules};
use super::fq_codel::FlowRows;
use super::table::{LINUX, names, packets, presets, tc, tc_bytes};
use super::tbf::Shaping;
use super::words::Queues;
use crate::info::{Decides, Derive, Effective, Info, Maturity, Preset};
use crate::law::Arithmetic;
use crate::resolve::{self, Common, LimitRule};
use crate::{LinkContext, Packet};

/// The queue's entry in the catalogue.
pub(crate) const FQ_INFO: Info = Info {
    name: "fq",
    title: "Fair queueing with pacing",
    summary: "a FIFO per flow, served in turn, new flows first; each flow may have a rate",
    version: 1,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: Decides::Both,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || {
        let few = [Parameters::flow_limit().is(12), FlowRows::flows().is(65_536)];
        let mut found = resolve::sample(&few);
        let paced = [
            Parameters::maxrate().pair(Some(Rate::kbit(900))),
            Parameters::ce_threshold().pair(Some(Span::ms(2))),
        ];
        let paced =
            resolve::sample(&[&few[..], &paced].concat()).into_iter().map(|(_, one)| ("with a rate", one));
        found.extend(paced);
        found
    },
};

const MAN: &str = "tc-fq(8)";

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        /// buffer size of all flows together, excluding the packet in transmission; an arrival that finds no room is
        /// lost
        limit: Size = Common::limit().default(packets(10_000)).aliases(&[tc("limit")]).source(MAN),
        limit_rule: LimitRule = Common::limit_rule(),
        /// most packets of a flow; a further arrival is lost
        flow_limit: u64 = Row::integer(1, 1_000_000).default(100).aliases(&[tc("flow_limit")]).source(MAN),
        /// `perfect`: each flow is on its own, as the sockets of a host; `hashed`: a salted hash distributes the flows,
        /// as fq does with packets that are forwarded, so that flows may share a queue
        queues: Queues = Row::choice("perfect").source("tc-fq(8); Linux"),
        /// number of hashes
        flows: u64 = FlowRows::flows().aliases(&[]).source("Linux, `orphan_mask`"),
        /// bytes that a flow may send per round
        quantum: Bytes = Row::bytes(1, 1_000_000).default(Bytes::new(3028)).aliases(&[tc_bytes("quantum")])
            .source("tc-fq(8): two full packets"),
        /// credit of a new flow
        initial_quantum: Bytes = Row::bytes(0, 1_000_000).default(Bytes::new(15_140))
            .aliases(&[tc_bytes("initial_quantum")]).source("tc-fq(8): ten full packets"),
        /// a flow that comes back after more than this time has at least a quantum of credit
        refill_delay: Span = Row::span(Span::ms(1), Span::s(1000)).default(Span::ms(40))
            .aliases(&[tc("refill_delay")]).source(MAN),
        /// rate that no flow exceeds
        maxrate: Option<Rate> = Row::rate(Rate::bps(8), Rate::gbit(1000)).aliases(&[tc("maxrate")])
            .source(MAN).optional("flows do not pause"),
        /// a flow whose rate is at most this pauses after each packet, and otherwise after each quantum
        low_rate_threshold: Rate = Row::rate(Rate::bps(8), Rate::gbit(1000)).default(Rate::kbit(550))
            .aliases(&[tc("low_rate_threshold")]).source(MAN),
        /// time, from the instant at which a packet could have left, after which it is marked if it is ECN-capable
        ce_threshold: Option<Span> = Row::span(Span::ns(1), Span::s(100)).aliases(&[tc("ce_threshold")])
            .source(MAN).optional("no packet is marked"),
        header: u64 = Shaping::header(),
        /// `exact`, or `linux`: rates in whole bytes per second, and refill_delay in timer ticks of 1 ms
        arithmetic: Arithmetic = Shaping::arithmetic(),
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "exact", title: "the algorithm of Linux's fq, without rounding", values: &[] },
    Preset {
        name: LINUX,
        title: "Linux's fq in a router, on Ethernet, with 1000 timer ticks per second",
        values: &[
            Parameters::queues().is("hashed"),
            Parameters::header().is(14),
            Parameters::arithmetic().is("linux"),
        ],
    },
];

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    resolve::absolute_size(all, Common::limit(), link)?;
    resolve::check_buffer(all, link.mean_packet)?;
    let p = Parameters::read(all)?;
    if let Size::Packets(limit) = p.limit
        && p.flow_limit > limit.get()
        && all.is_given(Parameters::flow_limit().name())
    {
        return Err(Parameters::flow_limit().error(format!(
            "flow_limit `{}` exceeds limit `{}`, so it would never matter; write at most that, or leave it out",
            p.flow_limit, p.limit
        )));
    }
    Ok(())
}

/// Builds the queue from these parameters.
pub(crate) fn build_fq<P: Packet>(s: &Effective, draws: Stream) -> Result<Fq<P>, ParamError> {
    let p = Parameters::read(s)?;
    let linux = p.arithmetic == Arithmetic::Linux;
    let whole = |rate: Rate| if linux { Rate::bps((rate.as_bps() / 8).max(1) * 8) } else { rate };
    let rules = FqRules {
        limit: resolve::limit(s)?,
        flow_limit: p.flow_limit as u32,
        quantum: p.quantum.get() as i64,
        initial_quantum: p.initial_quantum.get() as i64,
        refill_delay: p.refill_delay,
        tick: if linux { Span::ms(1) } else { Span::ns(1) },
        flows: (p.queues == Queues::Hashed).then_some(p.flows as u32),
        maxrate: p.maxrate.map(whole),
        low_rate_threshold: whole(p.low_rate_threshold),
        ce_threshold: p.ce_threshold,
        header: Bytes::new(p.header),
    };
    Ok(Fq::new(rules, &draws))
}
