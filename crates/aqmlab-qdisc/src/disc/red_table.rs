//! The parameters of RED and Adaptive RED, and their presets.

use aqmlab_params::{Automatic, Reading, Row, Value, params};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Span};

use super::Measure;
use super::table::{
    IN_BYTES, LINUX, MAX_PACKET, NS2, NS2_TITLE, names, ns2, ns2_in, ns2_switch, ns3, packets, presets, tc,
    tc_bytes,
};
use super::words::{GentleLine, RedByteMode, Region, WeightRule};
use crate::law::{Counting, IdleRule, RedArithmetic, SpacingRule, When};
use crate::registry::Preset;
use crate::resolve::{Common, LimitRule};

/// A zero that stands for an automatic value.
const AT_ZERO: Automatic = Automatic { written: 0, with: None };
/// An automatic threshold in ns-2.35, with the default of its `targetdelay_`.
const NS2_THRESH: &[Automatic] =
    &[Automatic { written: 0, with: Some((Shared::target().name(), NS2_TARGET)) }];
const NS2_TARGET: &Value = &Value::Span(Span::ms(5));
/// The weights that ns-2.35 and ns-3 compute from the link.
const NS_WEIGHT: Reading = Reading::Automatic {
    unit: None,
    at: &[
        Automatic { written: 0, with: Some((Shared::w_rule().name(), PAPER_WEIGHT)) },
        Automatic { written: -1, with: Some((Shared::w_rule().name(), NS2_WEIGHT)) },
        Automatic { written: -2, with: Some((Shared::w_rule().name(), NS2_FAST_WEIGHT)) },
    ],
};

const PAPER_WEIGHT: &Value = &Value::Choice(WeightRule::Paper.word());
const NS2_WEIGHT: &Value = &Value::Choice(WeightRule::Ns2.word());
const NS2_FAST_WEIGHT: &Value = &Value::Choice(WeightRule::Ns2Fast.word());

params! {
    /// The parameters that all kinds of RED have.
    pub(super) struct Shared {
        limit: Size = Common::limit().auto("one bandwidth-delay product, but at least 4 max_th if that is given")
            .aliases(&[ns2_in("p", "limit_"), tc("limit"), ns3("MaxSize")])
            .source("ours: room for the average to go through the gentle region; Linux preset: one \
             bandwidth-delay product"),
        limit_rule: LimitRule = Common::limit_rule(),
        /// average queue below which no packet is chosen
        min_th: Size = Row::size()
            .auto("the larger of 5 packets and target * C / 2; Linux preset: max_th / 3")
            .aliases(&[
                ns2("thresh_").reads(Reading::Automatic { unit: Some("p"), at: NS2_THRESH }),
                tc_bytes("min"),
                ns3("MinTh").reads(Reading::In("p")),
            ])
            .source("Floyd, \"RED: discussions of setting parameters\", 1997; Floyd, Gummadi, Shenker 2001, \
             section 5"),
        /// average queue at and above which every packet is chosen; with `gentle`, twice this value applies
        max_th: Size = Row::size().auto("3 min_th; Linux preset: limit / 4")
            .aliases(&[
                ns2("maxthresh_").reads(Reading::Automatic { unit: Some("p"), at: &[AT_ZERO] }),
                tc_bytes("max"),
                ns3("MaxTh").reads(Reading::Automatic { unit: Some("p"), at: &[AT_ZERO] }),
            ])
            .source("Floyd 1997: three times min_th"),
        /// probability at max_th; Adaptive RED starts from it
        max_p: f64 = Row::above(0.0, 1.0).default(0.1)
            .aliases(&[
                ns2("linterm_").reads(Reading::Inverse),
                tc("probability"),
                ns3("LInterm").reads(Reading::Inverse),
            ])
            .source("Floyd 1997 (the 1993 paper has 1/50); ns-2 gives its inverse as linterm_"),
        /// weight of a new sample in the average
        w_q: f64 = Row::above(0.0, 1.0).auto("by w_rule")
            .aliases(&[ns2("q_weight_").reads(NS_WEIGHT), ns3("QW").reads(NS_WEIGHT)])
            .source("Floyd and Jacobson 1993, section 6"),
        /// automatic w_q: `fixed` 0.002; `paper` 1 - exp(-1/C); `ns2` 1 - exp(-1/(10 R C)) with R = max(0.1 s,
        /// 3 (link delay + 1/C)); `ns2_fast` 1 - exp(-10/C); `linux` the largest 2^-k that lets `burst` pass
        w_rule: WeightRule = Row::choice("fixed")
            .source("0.002: 1993; 1 - exp(-1/C): Floyd, Gummadi, Shenker 2001 (ns-2 q_weight_ 0); ns2 and \
             ns2_fast: q_weight_ -1 and -2; linux: tc"),
        /// let the probability rise from max_p at max_th to 1 at twice max_th instead of jumping to 1
        gentle: bool = Row::flag(false)
            .aliases(&[ns2_switch("gentle_"), ns3("Gentle")])
            .source("Floyd, \"Recommendation on using the gentle variant of RED\", 2000"),
        /// mark ECN-capable packets instead of dropping them, where ecn_region allows
        ecn: bool = Row::flag(false)
            .aliases(&[ns2_switch("setbit_"), tc("ecn"), ns3("UseEcn")])
            .source("RFC 3168"),
        /// where marks replace drops: `rfc3168` below max_th; `ns2_mark_p` where pb < mark_p (with counting
        /// `ns2`, no notice is then forced); `feng` and `linux`, which agree here, everywhere except at
        /// overflow
        ecn_region: Region = Row::choice("rfc3168")
            .source("RFC 3168, section 7; ns-2.35 use_mark_p_; Feng 1999; Linux without harddrop"),
        /// with ecn_region `ns2_mark_p`, notices with a probability of at least this are drops; above 1,
        /// all are marks
        // ns-2 sets no maximum.
        mark_p: f64 = Row::number(0.0, 1000.0).default(0.1)
            .aliases(&[ns2("mark_p_")])
            .source("ns-2.35"),
        /// unit of the average queue
        measure: Measure = Common::measure().aliases(&[IN_BYTES]).source("Floyd and Jacobson 1993, section 3"),
        /// mean packet size, for C in packets/s and for the conversion of thresholds between packets and bytes
        mean_packet: Bytes = Common::mean_packet()
            .aliases(&[ns2_in("B", "mean_pktsize_"), tc_bytes("avpkt"), ns3("MeanPktSize").reads(Reading::In("B"))])
            .source("Floyd and Jacobson 1993, section 11"),
        /// scaling of the probability by packet size: `paper` scales it before spacing, `ns2` after spacing
        byte_mode: RedByteMode = Row::choice("off")
            .aliases(&[ns2("bytes_").reads(Reading::Words("ns2", "off"))])
            .source("off: RFC 7141; paper: 1993; ns2: ns-2.35"),
        /// largest packet size, the reference for byte_mode `paper`
        max_packet: Bytes = MAX_PACKET.source("Floyd and Jacobson 1993, figure 2, byte mode"),
        /// gaps between notices at constant pb: `paper` (its pseudo-code; ns-2 without wait) 1 .. 1/pb - 1,
        /// `ns2_wait` 1/pb .. 2/pb - 1, `linux` 1 .. 1/pb, `off` geometric
        uniformisation: SpacingRule = Row::choice("paper")
            .aliases(&[
                ns2("wait_").reads(Reading::Words("ns2_wait", "paper")),
                ns3("Wait").reads(Reading::Words("ns2_wait", "paper")),
            ])
            .source("Floyd and Jacobson 1993, section 8; ns-2.35; Linux"),
        /// when packets are counted: `paper` between the thresholds; `ns2` always, but it never chooses an
        /// arrival that finds at most one packet (or byte) waiting, or the first arrival above min_th;
        /// `linux` like `paper`, but the count restarts after a forced notice
        counting: Counting = Row::choice("paper")
            .source("Floyd and Jacobson 1993, figure 2; ns-2.35; Linux"),
        /// decay of the average over an idle time: `paper` by m virtual packets, `ns2` by m + 1, `linux` by
        /// its table of shifts, `never` not at all, as behind a shaper that does not ask an empty queue
        idle: IdleRule = Row::choice("paper").source("Floyd and Jacobson 1993, section 11; ns-2.35; Linux"),
        /// arithmetic: `exact` uses real numbers; `linux` uses a fixed-point average, and a probability that
        /// rises per byte by a whole number of units of 2^-32, at least one
        arithmetic: RedArithmetic = Row::choice("exact").source("Floyd and Jacobson 1993; Linux"),
        /// target delay for automatic thresholds; 0: min_th is 5 packets
        target: Span = Row::span(Span::ZERO, Span::s(10)).default(Span::ZERO)
            .aliases(&[ns2_in("s", "targetdelay_"), ns3("TargetDelay")])
            .source("Floyd, Gummadi, Shenker 2001, section 5.1"),
        /// with w_rule `linux`, the length, in packets, of a burst that the average tolerates
        burst: u64 = Row::integer(1, 1_000_000)
            .auto("(2 min_th + max_th) / (3 mean_packet), rounded down; at least one packet more than min_th")
            .aliases(&[tc("burst")])
            .source("tc-red(8)"),
    }
}

params! {
    /// RED's parameters.
    pub(super) struct RedOwn {
        preset: &'static str = presets(const { &names::<3>(RED_PRESETS) }),
        ..Shared { limit, limit_rule, min_th, max_th, max_p, w_q, w_rule },
        /// weight of a new value in a low-pass filter on the probability, with one new value per arrival;
        /// below 1, the filtered probability alone decides, without `counting` and without forced notices
        w_p: f64 = Row::above(0.0, 1.0).default(1.0)
            .source("mentioned as a possibility by Feng, Kandlur, Saha, Shin 1999; 1: Floyd and Jacobson \
             1993"),
        ..Shared { gentle, ecn, ecn_region, mark_p, measure, mean_packet, byte_mode, max_packet,
            uniformisation, counting, idle, arithmetic, target, burst },
    }
}

params! {
    /// Adaptive RED's parameters.
    pub(super) struct AredOwn {
        preset: &'static str = presets(const { &names::<3>(ARED_PRESETS) }),
        ..Shared { limit, limit_rule },
        /// target queueing delay for automatic thresholds
        target: Span = Shared::target().default(Span::ms(5)),
        ..Shared { min_th, max_th, max_p, w_q },
        w_rule: WeightRule = Shared::w_rule().default("paper"),
        /// time between updates of max_p
        interval: Span = Row::span(Span::ms(1), Span::s(3600)).default(Span::ms(500))
            .aliases(&[ns2_in("s", "interval_"), ns3("Interval")])
            .source("Floyd, Gummadi, Shenker 2001, figure 1"),
        /// largest increase of max_p per update; the increase is also at most a quarter of max_p
        alpha: f64 = Row::number(1e-4, 1.0).default(0.01)
            .aliases(&[ns2("alpha_"), ns3("Alpha")])
            .source("Floyd, Gummadi, Shenker 2001, figure 1"),
        /// factor by which a decrease multiplies max_p
        beta: f64 = Row::number(0.1, 0.999).default(0.9)
            .aliases(&[ns2("beta_"), ns3("Beta")])
            .source("Floyd, Gummadi, Shenker 2001, figure 1"),
        /// value of max_p above which no update raises it
        top: f64 = Row::above(0.0, 1.0).default(0.5)
            .aliases(&[ns2("top_"), ns3("Top")])
            .source("Floyd, Gummadi, Shenker 2001, section 4"),
        /// value of max_p below which no update lowers it
        bottom: f64 = Row::above(1e-6, 1.0)
            .auto("0.01; ns-2 preset: 80 000 bit/s divided by the link's rate, but at most 0.01")
            .aliases(&[ns2("bottom_"), ns3("Bottom")])
            .source("Floyd, Gummadi, Shenker 2001, section 4; ns-2.35"),
        /// when updates fall due: `timer` at every multiple of interval; `arrivals` at the first arrival more
        /// than interval after the last change
        adapt_at: When = Row::choice("timer").source("timer: the paper, Linux; arrivals: ns-2.35"),
        /// whether the gentle slope starts from the current value of max_p or from the initial one
        gentle_line: GentleLine = Row::choice("moving").source("moving: the paper; fixed: ns-2.35"),
        gentle: bool = Shared::gentle().default(true),
        ..Shared { ecn, ecn_region, mark_p, measure, mean_packet, byte_mode, max_packet,
            uniformisation, counting, idle, arithmetic, burst },
    }
}

const LINUX_TITLE: &str = "Linux sch_red with the defaults of tc";
pub(super) const NS2_LIMIT: Size = packets(50);
pub(super) const NS2_MEAN: Bytes = Bytes::new(500);

/// Lists ns-2.35's values for all kinds of RED, and then those that only some of them have.
macro_rules! ns2_values {
    ($($own:expr),*) => {
        &[
            Shared::limit().is(NS2_LIMIT),
            Shared::limit_rule().is("reached"),
            Shared::w_rule().is("ns2"),
            Shared::measure().is("bytes"),
            Shared::mean_packet().is(NS2_MEAN),
            Shared::byte_mode().is("ns2"),
            Shared::uniformisation().is("ns2_wait"),
            Shared::idle().is("ns2"),
            Shared::counting().is("ns2"),
            Shared::ecn_region().is("ns2_mark_p"),
            $($own),*
        ]
    };
}

pub(super) use ns2_values;

/// Lists Linux's values for RED, and then those that only Adaptive RED has.
macro_rules! linux_values {
    ($($own:expr),*) => {
        &[
            Shared::max_p().is(0.02),
            Shared::w_rule().is("linux"),
            Shared::measure().is("bytes"),
            Shared::uniformisation().is("linux"),
            Shared::idle().is("linux"),
            Shared::counting().is("linux"),
            Shared::arithmetic().is("linux"),
            Shared::ecn_region().is("linux"),
            $($own),*
        ]
    };
}

pub(super) use linux_values;

/// RED's values in ns-2.35.
pub(super) const RED_NS2: &[(&str, Value)] =
    ns2_values![Shared::gentle().is(true), Shared::target().is(Span::ms(5))];

/// RED's presets.
pub(super) const RED_PRESETS: &[Preset] = &[
    Preset {
        name: "paper",
        title: "Floyd and Jacobson 1993 with max_p as Floyd advised in 1997",
        values: &[],
    },
    Preset { name: NS2, title: NS2_TITLE, values: RED_NS2 },
    Preset { name: LINUX, title: LINUX_TITLE, values: linux_values![] },
];

/// Adaptive RED's presets.
pub(super) const ARED_PRESETS: &[Preset] = &[
    Preset { name: "paper", title: "Floyd, Gummadi and Shenker 2001", values: &[] },
    Preset {
        name: NS2,
        title: NS2_TITLE,
        values: ns2_values![AredOwn::adapt_at().is("arrivals"), AredOwn::gentle_line().is("fixed")],
    },
    Preset { name: LINUX, title: LINUX_TITLE, values: linux_values![Shared::gentle().is(false)] },
];
