//! PIE: the [`Early`] queue with a [`PieLaw`], which decides at arrivals and sees departures; its parameters and
//! their conversion to a queue.

use alloc::format;

use aqmlab_params::{ParamError, Reading, Row, Settings, params};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Span};

use super::table::{LINUX, MAX_PACKET, names, ns3, packets, presets, tc};
use super::words::DelayFrom;
use super::{Early, EarlyLaw, EarlyQueue, Leaving, Measure};
use crate::info::{Derive, Effective, Info, Maturity, Preset};
use crate::law::{Decision, PieArithmetic, PieDelay, PieLaw, PieParams};
use crate::resolve::{self, Common, LimitRule};
use crate::{Backlog, LawSamples, LinkContext, Packet};

/// PIE.
pub type Pie<P> = Early<P, PieControl>;

/// PIE's law for a real queue.
#[derive(Clone, PartialEq, Debug)]
pub struct PieControl {
    /// The law.
    pub law: PieLaw,
}

impl EarlyLaw for PieControl {
    #[inline]
    fn catch_up(&mut self, now: Instant, backlog: Backlog) {
        self.law.catch_up(now, backlog.bytes);
    }

    #[inline]
    fn decide_at_arrival(
        &mut self,
        _now: Instant,
        backlog: Backlog,
        size: Bytes,
        draw: impl FnOnce() -> f64,
    ) -> Decision {
        self.law.on_arrival(backlog.bytes, size, draw)
    }

    fn on_overflow(&mut self, _now: Instant) {
        self.law.on_drop();
    }

    fn on_early_drop(&mut self, _now: Instant) {
        self.law.on_drop();
    }

    #[inline]
    fn on_departure(&mut self, now: Instant, pkt: Leaving) {
        self.law.on_departure(now, pkt.size, pkt.sojourn, pkt.backlog.bytes);
    }

    fn is_as_new(&self, now: Instant) -> bool {
        let mut law = self.law.clone();
        law.catch_up(now, Bytes::ZERO);
        law.is_as_new()
    }

    /// Appends `p`, `qdelay` and `burst_allowance` (seconds) and, if it is measured, `drain_rate` (bytes per
    /// second).
    fn observe(&self, now: Instant, backlog: Backlog, out: &mut LawSamples) {
        let mut law = self.law.clone();
        law.catch_up(now, backlog.bytes);
        out.extend([
            ("p", law.probability()),
            ("qdelay", law.delay().as_secs_f64()),
            ("burst_allowance", law.burst_allowance().as_secs_f64()),
        ]);
        if let PieDelay::Rate(_) = law.params().delay {
            out.push(("drain_rate", law.drain_rate().map_or(0.0, |rate| rate.bytes_per_s())));
        }
    }
}

/// PIE's entry in the catalogue.
pub(crate) const PIE_INFO: Info = Info {
    name: "pie",
    title: "PIE",
    summary: "Proportional Integral controller Enhanced: adjusts a drop or mark probability to hold the queueing delay at target",
    version: 1,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: PieControl::DECIDES,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || resolve::sample(&QUICK),
};

/// Values that make the controller react within a few hundred packets.
pub(super) const QUICK: [(&str, aqmlab_params::Value); 7] = [
    PieRows::ecn().is(true),
    PieRows::target().is(Span::us(200)),
    PieRows::t_update().is(Span::us(150)),
    PieRows::max_burst().is(Span::ms(1)),
    PieRows::alpha().is(8.0),
    PieRows::beta().is(80.0),
    PieRows::mark_ecnth().is(0.9),
];

const BASIC: &str = "RFC 8033, section 4.2";

params! {
    /// The parameters of the law, and `ecn`.
    pub(super) struct PieRows {
        /// acceptable queueing delay
        target: Span = Row::span(Span::ns(1), Span::s(100)).default(Span::ms(15))
            .aliases(&[tc("target"), ns3("QueueDelayReference")])
            .source("RFC 8033, section 4.2, `QDELAY_REF`"),
        /// time between two updates of the probability; Linux's timer runs one tick longer than tc's `tupdate`
        t_update: Span = Row::span(Span::us(1), Span::s(100)).default(Span::ms(15))
            .aliases(&[tc("tupdate"), ns3("Tupdate")])
            .source("RFC 8033, section 4.2, `T_UPDATE`"),
        /// weight of the distance of the delay from target, in 1/s; tc counts in sixteenths
        alpha: f64 = Row::above(0.0, 1000.0).default(0.125).aliases(&[ns3("A")]).source(BASIC),
        /// weight of the growth of the delay since the last update, in 1/s; tc counts in sixteenths
        beta: f64 = Row::above(0.0, 1000.0).default(1.25).aliases(&[ns3("B")]).source(BASIC),
        /// time for which no packet is chosen after the queue was uncongested
        max_burst: Span = Row::span(Span::ZERO, Span::s(100)).default(Span::ms(150))
            .aliases(&[ns3("MaxBurstAllowance")])
            .source("RFC 8033, section 4.4, `MAX_BURST`"),
        /// mean packet size; a backlog of at most two such packets spares arrivals
        mean_packet: Bytes = Common::mean_packet().aliases(&[ns3("MeanPktSize")])
            .source("RFC 8033, section 4.1, `MEAN_PKTSIZE`; Linux: the MTU with its link header"),
        /// queueing delay: `timestamps` is the waiting time of the packet that left last; `rate` is the backlog
        /// divided by the measured departure rate
        delay: DelayFrom = Row::choice("timestamps")
            .aliases(&[
                tc("dq_rate_estimator").reads(Reading::Words("rate", "timestamps")),
                ns3("UseDequeueRateEstimator").reads(Reading::Words("rate", "timestamps")),
            ])
            .source("RFC 8033, sections 4.3 and 5.2"),
        /// delay `rate`: bytes that make a measurement, and backlog from which one begins
        dq_threshold: Bytes = Row::bytes(1, 65_536).default(Bytes::new(16_384))
            .aliases(&[ns3("DequeueThreshold")])
            .source("RFC 8033, section 5.2, `DQ_THRESHOLD`"),
        /// spread the choices: none while the probabilities since the last one sum to less than 0.85, and one at
        /// 8.5 at the latest
        derandomize: bool = Row::flag(false).aliases(&[ns3("UseDerandomization")])
            .source("RFC 8033, section 5.4"),
        /// a probability of at least 0.1 rises by at most 0.02 per update
        cap: bool = Row::flag(false).aliases(&[ns3("UseCapDropAdjustment")]).source("RFC 8033, section 5.5"),
        /// each update adds 0.02 while the delay exceeds 250 ms
        surge: bool = Row::flag(false).source("Linux"),
        /// factor by which each update multiplies the probability while the delay is zero
        decay: f64 = Row::number(0.51, 1.0).default(0.98)
            .source("RFC 8033, section 4.2: 0.98, or 1 - 1/64"),
        /// scale the probability of packets smaller than max_packet by their size
        byte_mode: bool = Row::flag(false).aliases(&[tc("bytemode")])
            .source("RFC 8033, section 4.1 and appendix B; Linux"),
        /// largest packet size, the reference for byte_mode
        max_packet: Bytes = MAX_PACKET.source("Linux: the MTU with its link header"),
        /// probability below which ECN-capable packets are marked; from it on, they are dropped
        mark_ecnth: f64 = Row::number(0.0, 1.0).default(0.1).aliases(&[ns3("MarkEcnThreshold")])
            .source("RFC 8033, section 5.1"),
        /// arithmetic: `exact` uses nanoseconds and real numbers; `linux` uses units of 64 ns and fixed-point
        /// probabilities of 56 bits, which may exceed 1, spares packets by the delay of the last departure, and
        /// counts the burst allowance down as packets leave
        arithmetic: PieArithmetic = Row::choice("exact").source("RFC 8033; Linux"),
        /// mark ECN-capable packets instead of dropping them while the probability is below mark_ecnth
        ecn: bool = Row::flag(false).aliases(&[tc("ecn"), ns3("UseEcn")]).source("RFC 8033, section 5.1"),
    }
}

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<3>(PRESETS) }),
        /// buffer size, excluding the packet in transmission; an arrival that finds no room is lost
        limit: Size = Common::limit().default(packets(1000))
            .aliases(&[tc("limit"), ns3("MaxSize")])
            .source("tc-pie(8); the RFC leaves it open"),
        limit_rule: LimitRule = Common::limit_rule(),
        ..PieRows {
            target, t_update, alpha, beta, max_burst, mean_packet, delay, dq_threshold, derandomize, cap,
            surge, decay, byte_mode, max_packet, mark_ecnth, arithmetic, ecn,
        },
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "rfc8033", title: "RFC 8033, section 4 and appendix A", values: &[] },
    Preset {
        name: "rfc8033_options",
        title: "RFC 8033 with the options of section 5 and appendix B, always active",
        values: &[PieRows::delay().is("rate"), PieRows::derandomize().is(true), PieRows::cap().is(true)],
    },
    Preset {
        name: LINUX,
        title: "Linux's pie as tc configures it on Ethernet, with 1000 timer ticks per second",
        values: &[
            PieRows::t_update().is(Span::ms(16)),
            PieRows::mean_packet().is(Bytes::new(1514)),
            PieRows::derandomize().is(true),
            PieRows::cap().is(true),
            PieRows::surge().is(true),
            PieRows::decay().is(0.984_375),
            PieRows::max_packet().is(Bytes::new(1514)),
            PieRows::arithmetic().is("linux"),
        ],
    },
];

pub(super) fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mean = resolve::mean_packet(all, link)?;
    resolve::absolute_in_queue_unit(all, Common::limit(), link, Measure::Packets, mean)?;
    resolve::check_buffer(all, mean)?;
    let PieRows { alpha, beta, arithmetic, .. } = PieRows::read(all)?;
    if arithmetic == PieArithmetic::Linux {
        for (row, gain) in [(PieRows::alpha(), alpha), (PieRows::beta(), beta)] {
            let sixteenths = 16.0 * gain;
            if libm::rint(sixteenths) != sixteenths || sixteenths < 1.0 {
                return Err(row.error(format!(
                    "arithmetic `linux` keeps {0} in sixteenths, so {0} `{gain}` must be a multiple of 0.0625",
                    row.name()
                )));
            }
        }
    }
    Ok(())
}

/// Returns the law and the queue that effective parameters describe.
pub(super) fn parts(s: &Effective) -> Result<(PieControl, EarlyQueue), ParamError> {
    let row = PieRows::read(s)?;
    let law = PieLaw::new(PieParams {
        target: row.target,
        t_update: row.t_update,
        alpha: row.alpha,
        beta: row.beta,
        max_burst: row.max_burst,
        mean_packet: row.mean_packet,
        mark_below: row.mark_ecnth,
        decay: row.decay,
        cap: row.cap,
        surge: row.surge,
        derandomize: row.derandomize,
        largest: row.byte_mode.then_some(row.max_packet),
        delay: match row.delay {
            DelayFrom::Timestamps => PieDelay::Timestamps,
            DelayFrom::Rate => PieDelay::Rate(row.dq_threshold),
        },
        arithmetic: row.arithmetic,
    });
    // RFC 8033, appendix B, and Linux: the check for a full buffer comes first.
    let queue =
        EarlyQueue { limit: resolve::limit(s)?, ecn: row.ecn, overflow_first: true, spares_not_ect: false };
    Ok((PieControl { law }, queue))
}

/// Builds a PIE queue from these parameters.
pub(crate) fn build_pie<P: Packet>(s: &Effective, draws: Stream) -> Result<Pie<P>, ParamError> {
    let (law, queue) = parts(s)?;
    Ok(Pie::new(law, queue, draws))
}
