//! The parameters of DualPI2, their automatic values, and their conversion to laws and queues.

use alloc::format;

use aqmlab_params::{ParamError, Row, Settings, params, words};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Span};

use super::dualpi2::{DualPi2, DualQueue, L4sPackets};
use super::table::{LINUX, names, packets, presets, tc};
use super::words::Decide;
use crate::info::{Decides, Derive, Effective, Info, Maturity, Preset};
use crate::law::{
    Arithmetic, Coins, Combine, DualPi2Law, DualPi2Params, Native, Overload, Pi2Params, Scheduling,
};
use crate::resolve::{self, Common, LimitRule};
use crate::{LinkContext, Packet};

words!(pub(super) impl Coins { Recurrent = "recurrent", Random = "random" });
words!(pub(super) impl Overload { Drop = "drop", Overflow = "overflow", None = "none" });
words!(pub(super) impl Combine { Max = "max", Or = "or" });
words!(pub(super) impl L4sPackets { Ect1AndCe = "l4s", Ect1 = "ect1", AnyCapable = "any_ect" });
words! {
    /// The shape of L's own law.
    pub(super) enum NativeLaw { Ramp = "ramp", Step = "step", StepPackets = "step_packets" }
}
words! {
    /// The scheduler between L and C.
    pub(super) enum Scheduler { Wrr = "wrr", ShiftedFifo = "shifted_fifo" }
}

const A1: &str = "RFC 9332, appendix A.1";
/// The buffer in appendix A.1.
const BUFFER: Span = Span::ms(250);
const LONGEST: Span = Span::s(10);
/// A full frame of Ethernet, as Linux counts it.
const FRAME: u64 = 1514;

params! {
    /// The parameters of the base controller and of the coupling.
    pub(super) struct Base {
        limit: Size = Common::limit().auto("what the link sends in 250 ms, but at least ten packets of mtu")
            .aliases(&[tc("limit")])
            .source(A1),
        /// waiting time to which the C queue is controlled
        target: Span = Row::span(Span::us(1), LONGEST).default(Span::ms(15))
            .aliases(&[tc("target"), tc("typical_rtt")])
            .source(A1),
        /// largest expected round-trip time, which determines tupdate, alpha and beta
        max_rtt: Span = Row::span(Span::us(1), Span::s(1000)).default(Span::ms(100))
            .aliases(&[tc("max_rtt")])
            .source(A1),
        /// time between two updates of the probability
        tupdate: Span = Row::span(Span::us(100), LONGEST)
            .auto("target or a third of max_rtt, whichever is less, but at least 100 us")
            .aliases(&[tc("tupdate")])
            .source(A1),
        /// integral gain in 1/s: change of the probability at each update per second of distance from target
        alpha: f64 = Row::above(0.0, 1e6).auto("0.1 tupdate / max_rtt^2")
            .aliases(&[tc("alpha")])
            .source(A1),
        /// proportional gain in 1/s: change of the probability at each update per second by which the waiting
        /// time has changed
        beta: f64 = Row::number(0.0, 1e6).auto("0.3 / max_rtt").aliases(&[tc("beta")]).source(A1),
        /// coupling factor k: scalable packets are marked with probability k p', Classic ones notified with p'^2
        coupling: f64 = Row::number(0.01, 255.0).default(2.0)
            .aliases(&[tc("coupling_factor")])
            .source("RFC 9332, section 2.1 and appendix C"),
        /// when k p' reaches 1: `drop` drops scalable packets with probability p'^2 and no longer marks Classic
        /// ones; `overflow` limits p' to 1 / k; `none` does neither
        overload: Overload = Row::choice("drop").source("`drop`: RFC 9332, appendix A.2; `none`: appendix A.1"),
        /// coins: `recurrent` adds up probabilities and chooses a packet per whole 1; `random` draws
        /// independently
        coins: Coins = Row::choice("recurrent").source("RFC 9332, appendix A.1, `recur`; `random`: Linux"),
        /// arithmetic: `exact` uses nanoseconds and steps of 2^-60; `linux` rounds alpha and beta to 1/256 Hz and
        /// further, and computes p' in 32 bits, in which a step of 1 or more wraps
        arithmetic: Arithmetic = Row::choice("exact").source("RFC 9332; Linux 7.3"),
        /// size of a full packet: room that a byte limit keeps for every arrival, and unit of the first credit
        mtu: Bytes = Row::bytes(1, 65_535).default(Bytes::new(1500)).source("RFC 9332, appendix A.1, `MTU`"),
    }
}

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        ..Base { limit },
        limit_rule: LimitRule = Common::limit_rule(),
        ..Base { target, max_rtt, tupdate, alpha, beta, coupling, overload, coins, arithmetic, mtu },
        /// packets of the L queue: `l4s` takes ECT(1) and CE; `ect1` only ECT(1); `any_ect` all ECN-capable ones
        classifier: L4sPackets = Row::choice("l4s")
            .source("RFC 9332, section 2.3; RFC 9331, section 5.1; `any_ect`: tc-dualpi2(8)"),
        /// where the coupled law decides; L's own law always decides as packets leave
        decide: Decide = Row::choice("dequeue").source("RFC 9332, appendix A.1; `enqueue`: tc-dualpi2(8)"),
        /// L's own law: `ramp` from min_th to min_th plus range; `step` marks what waits longer than step_thresh;
        /// `step_packets` marks packets that leave more than step_packets behind in L
        native: NativeLaw = Row::choice("ramp").source("RFC 9332, appendix A.1; steps: tc-dualpi2(8)"),
        /// waiting time from which the ramp marks
        min_th: Span = Row::span(Span::ZERO, LONGEST).default(Span::us(800)).source(A1),
        /// width of the ramp
        range: Span = Row::span(Span::ZERO, LONGEST).default(Span::us(400)).source(A1),
        /// the step, as a waiting time
        step_thresh: Span = Row::span(Span::ZERO, LONGEST).default(Span::ms(1))
            .aliases(&[tc("step_thresh")])
            .source("tc-dualpi2(8)"),
        /// the step, as a number of packets
        step_packets: u64 = Row::integer(0, 1_000_000_000).default(1).source("tc-dualpi2(8)"),
        /// packets that must remain in L if its own law is to mark
        least_left: u64 = Row::integer(0, 1_000_000_000)
            .auto("2; native `step_packets`: 0, because that law counts the packets itself")
            .source("RFC 9332, appendix A: more than `Th_len`, which is 1"),
        /// L's own law concerns only packets that find this many in L when they arrive
        min_qlen_step: u64 = Row::integer(0, 1_000_000_000).default(0)
            .aliases(&[tc("min_qlen_step")])
            .source("tc-dualpi2(8)"),
        /// combination of L's own law with the coupled one: the larger probability, or a coin for each
        combine: Combine = Row::choice("max").source("RFC 9332, appendix A.1; `or`: Linux 7.3"),
        /// the coupled law notifies nobody while less than this waits in both queues, apart from the packet in
        /// question
        idle_below: Bytes = Row::bytes(0, 1_000_000).default(Bytes::new(0)).source("Linux 7.3: two full frames"),
        /// `wrr` gives C its classic_protection; `shifted_fifo` serves the packet that has waited longest, with
        /// L's packets taken to have waited longer by shift
        scheduler: Scheduler = Row::choice("wrr").source("RFC 9332, section 2.4 and appendix A.1"),
        /// percentage of the link for C while both queues wait; 0 gives L strict priority
        classic_protection: u64 = Row::integer(0, 100).default(10)
            .aliases(&[tc("classic_protection")])
            .source("tc-dualpi2(8); RFC 9332 leaves it open"),
        /// time shift of the scheduler `shifted_fifo`
        shift: Span = Row::span(Span::ZERO, LONGEST).default(Span::ms(50))
            .source("ours: RFC 9332, section 2.4 leaves it open"),
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "rfc9332", title: "RFC 9332, appendix A.2", values: &[] },
    Preset {
        name: LINUX,
        title: "Linux 7.3's dualpi2 with its defaults",
        values: &[
            Base::limit().is(packets(10_000)),
            Base::tupdate().is(Span::ms(16)),
            Base::alpha().is(41.0 / 256.0),
            Base::beta().is(819.0 / 256.0),
            Base::coins().is("random"),
            Base::arithmetic().is("linux"),
            Base::mtu().is(Bytes::new(FRAME)),
            Parameters::native().is("step"),
            Parameters::least_left().is(0),
            Parameters::combine().is("or"),
            Parameters::idle_below().is(Bytes::new(2 * FRAME)),
        ],
    },
];

/// DualPI2's entry in the catalogue.
pub(crate) const DUALPI2_INFO: Info = Info {
    name: "dualpi2",
    title: "DualPI2",
    summary: "two coupled queues, a short one for L4S and one for Classic traffic, whose senders share the link fairly",
    version: 1,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: Decides::Both,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || {
        let (min_th, range) = (Parameters::min_th().is(Span::us(50)), Parameters::range().is(Span::us(200)));
        resolve::sample(&[&QUICK[..], &[min_th, range, Parameters::step_thresh().is(Span::us(100))]].concat())
    },
};

/// Values that make the controller react within a few hundred packets.
pub(super) const QUICK: [(&str, aqmlab_params::Value); 4] = [
    Base::target().is(Span::us(200)),
    Base::tupdate().is(Span::us(500)),
    Base::alpha().is(20.0),
    Base::beta().is(100.0),
];

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    // Where tupdate and the gains are given, max_rtt has no meaning.
    let by_rtt = Base::tupdate().is_auto(all) || Base::alpha().is_auto(all) || Base::beta().is_auto(all);
    let (target, max_rtt) = (Base::target().read(all)?, Base::max_rtt().read(all)?);
    if by_rtt && target > max_rtt {
        return Err(Base::target().error(format!(
            "target `{target}` exceeds max_rtt `{max_rtt}`; RFC 9332 sets the target to a typical round-trip time, \
             15 ms where max_rtt is 100 ms"
        )));
    }
    derive_base(all, link)?;
    let (native, step_packets) = (Parameters::native().read(all)?, Parameters::step_packets().read(all)?);
    Parameters::least_left()
        .derive_if_auto(all, |_| Ok(if native == NativeLaw::StepPackets { 0 } else { 2 }))?;
    let least_left = Parameters::least_left().read(all)?;
    if native == NativeLaw::StepPackets && step_packets + 1 < least_left {
        return Err(Parameters::least_left().error(format!(
            "least_left `{least_left}` exceeds step_packets `{step_packets}` by more than 1, so step_packets \
             never decides; write at most {}",
            step_packets + 1
        )));
    }
    Ok(())
}

/// Resolves the limit and the controller's parameters.
pub(super) fn derive_base(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mtu = Base::mtu().read(all)?;
    Base::limit().derive_if_auto(all, |_| {
        let bytes = (link.rate.bytes_per_s() * BUFFER.as_secs_f64()) as u64;
        Ok(Size::Bytes(Bytes::new(bytes.max(10 * mtu.get()))))
    })?;
    resolve::absolute_size(all, Base::limit(), link)?;
    resolve::check_buffer(all, mtu)?;
    Base::tupdate().derive_if_auto(all, |all| {
        let third = Base::max_rtt().read(all)?.div(3);
        Ok(Base::target().read(all)?.min(third).max(Span::us(100)))
    })?;
    // Written so that round times give round gains: 0.15 and 3 for the RFC's.
    Base::alpha().derive_if_auto(all, |all| {
        let rtt = Base::max_rtt().read(all)?.as_secs_f64();
        Ok((Base::tupdate().read(all)?.as_secs_f64() / (10.0 * rtt * rtt)).min(1e6))
    })?;
    Base::beta()
        .derive_if_auto(all, |all| Ok((3.0 / (10.0 * Base::max_rtt().read(all)?.as_secs_f64())).min(1e6)))?;
    if let Size::Bytes(limit) = Base::limit().read(all)?
        && limit < mtu
    {
        return Err(Base::limit()
            .error(format!("limit `{limit}` is smaller than mtu `{mtu}`, so it admits no packet")));
    }
    Ok(())
}

/// Returns the controller and the coupling that effective parameters describe.
pub(super) fn base(s: &Settings) -> Result<(Pi2Params, f64, Overload, Coins), ParamError> {
    let (coupling, overload) = (Base::coupling().read(s)?, Base::overload().read(s)?);
    let base = Pi2Params {
        target: Base::target().read(s)?,
        period: Base::tupdate().read(s)?,
        alpha: Base::alpha().read(s)?,
        beta: Base::beta().read(s)?,
        most: if overload == Overload::Overflow { (1.0 / coupling).min(1.0) } else { 1.0 },
        arithmetic: Base::arithmetic().read(s)?,
    };
    Ok((base, coupling, overload, Base::coins().read(s)?))
}

/// Builds the two queues from these parameters.
pub(crate) fn build_dualpi2<P: Packet>(s: &Effective, draws: Stream) -> Result<DualPi2<P>, ParamError> {
    let own = Parameters::read(s)?;
    let mtu = Base::mtu().read(s)?;
    let (base, coupling, overload, coins) = base(s)?;
    let law = DualPi2Law::new(DualPi2Params {
        base,
        coupling,
        overload,
        coins,
        native: match own.native {
            NativeLaw::Ramp => Native::Ramp { min: own.min_th, range: own.range },
            NativeLaw::Step => Native::Step(own.step_thresh),
            NativeLaw::StepPackets => Native::StepPackets(own.step_packets),
        },
        least_left: own.least_left,
        combine: own.combine,
        idle_below: own.idle_below,
        scheduling: match own.scheduler {
            Scheduler::Wrr => Scheduling::RoundRobin { protection: own.classic_protection, mtu },
            Scheduler::ShiftedFifo => Scheduling::ShiftedFifo(own.shift),
        },
    });
    let queue = DualQueue {
        limit: resolve::limit(s)?,
        mtu,
        l4s: own.classifier,
        at_arrival: own.decide == Decide::Enqueue,
        least_found: own.min_qlen_step,
    };
    Ok(DualPi2::new(law, queue, draws))
}
