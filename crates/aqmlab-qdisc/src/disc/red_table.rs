//! The parameters of RED and Adaptive RED, and their presets.

use aqmlab_params::{Automatic, Default, Kind, Param, Reading, Value};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets, Span};

use super::table::{
    self, IN_BYTES, LINUX, NS2, NS2_TITLE, PROBABILITY, names, ns2, ns2_in, ns2_switch, ns3, preset, tc,
    tc_bytes, word,
};
use super::words::{GentleLine, RedByteMode, Region, WeightRule};
use crate::law::{Counting, IdleRule, RedArithmetic, SpacingRule, When};
use crate::registry::Preset;
use crate::resolve::LIMIT_RULE;

/// A zero that stands for an automatic value.
const AT_ZERO: Automatic = Automatic { written: 0, with: None };
/// An automatic threshold in ns-2.35, with the default of its `targetdelay_`.
const NS2_THRESH: &[Automatic] = &[Automatic { written: 0, with: Some(("target", NS2_TARGET)) }];
const NS2_TARGET: &Value = &Value::Span(Span::ms(5));
/// The weights that ns-2.35 and ns-3 compute from the link.
const NS_WEIGHT: Reading = Reading::Automatic {
    unit: None,
    at: &[
        Automatic { written: 0, with: Some(("w_rule", PAPER_WEIGHT)) },
        Automatic { written: -1, with: Some(("w_rule", NS2_WEIGHT)) },
        Automatic { written: -2, with: Some(("w_rule", NS2_FAST_WEIGHT)) },
    ],
};

const PAPER_WEIGHT: &Value = &Value::Choice(WeightRule::Paper.word());
const NS2_WEIGHT: &Value = &Value::Choice(WeightRule::Ns2.word());
const NS2_FAST_WEIGHT: &Value = &Value::Choice(WeightRule::Ns2Fast.word());

pub(super) const LIMIT: Param = Param {
    name: "limit",
    kind: Kind::Size { min: Packets::new(1) },
    default: Default::Auto("one bandwidth-delay product, but at least 4 max_th if that is given"),
    aliases: &[ns2_in("p", "limit_"), tc("limit"), ns3("MaxSize")],
    source: "ours: room for the average to go through the gentle region; Linux preset: one bandwidth-delay product",
    help: "buffer size, excluding the packet in transmission",
};

pub(super) const MIN_TH: Param = Param {
    name: "min_th",
    kind: Kind::Size { min: Packets::new(1) },
    default: Default::Auto("the larger of 5 packets and target * C / 2; Linux preset: max_th / 3"),
    aliases: &[
        ns2("thresh_").reads(Reading::Automatic { unit: Some("p"), at: NS2_THRESH }),
        tc_bytes("min"),
        ns3("MinTh").reads(Reading::In("p")),
    ],
    source: "Floyd, \"RED: discussions of setting parameters\", 1997; Floyd, Gummadi, Shenker 2001, section 5",
    help: "average queue below which no packet is chosen",
};

pub(super) const MAX_TH: Param = Param {
    name: "max_th",
    kind: Kind::Size { min: Packets::new(1) },
    default: Default::Auto("3 min_th; Linux preset: limit / 4"),
    aliases: &[
        ns2("maxthresh_").reads(Reading::Automatic { unit: Some("p"), at: &[AT_ZERO] }),
        tc_bytes("max"),
        ns3("MaxTh").reads(Reading::Automatic { unit: Some("p"), at: &[AT_ZERO] }),
    ],
    source: "Floyd 1997: three times min_th",
    help: "average queue at and above which every packet is chosen; with `gentle`, twice this value applies",
};

pub(super) const MAX_P: Param = Param {
    name: "max_p",
    kind: PROBABILITY,
    default: Default::Number(0.1),
    aliases: &[
        ns2("linterm_").reads(Reading::Inverse),
        tc("probability"),
        ns3("LInterm").reads(Reading::Inverse),
    ],
    source: "Floyd 1997 (the 1993 paper has 1/50); ns-2 gives its inverse as linterm_",
    help: "probability at max_th; Adaptive RED starts from it",
};

pub(super) const W_Q: Param = Param {
    name: "w_q",
    kind: PROBABILITY,
    default: Default::Auto("by w_rule"),
    aliases: &[ns2("q_weight_").reads(NS_WEIGHT), ns3("QW").reads(NS_WEIGHT)],
    source: "Floyd and Jacobson 1993, section 6",
    help: "weight of a new sample in the average",
};

pub(super) const fn w_rule(default: &'static str) -> Param {
    Param {
        name: "w_rule",
        kind: Kind::Choice(WeightRule::WORDS),
        default: Default::Choice(default),
        aliases: &[],
        source: "0.002: 1993; 1 - exp(-1/C): Floyd, Gummadi, Shenker 2001 (ns-2 q_weight_ 0); ns2 and ns2_fast: \
                 q_weight_ -1 and -2; linux: tc",
        help: "automatic w_q: `fixed` 0.002; `paper` 1 - exp(-1/C); `ns2` 1 - exp(-1/(10 R C)) with R = max(0.1 s, \
               3 (link delay + 1/C)); `ns2_fast` 1 - exp(-10/C); `linux` the largest 2^-k that lets `burst` pass",
    }
}

pub(super) const fn gentle(default: bool) -> Param {
    Param {
        name: "gentle",
        kind: Kind::Flag,
        default: Default::Flag(default),
        aliases: const { &[ns2_switch("gentle_"), ns3("Gentle")] },
        source: "Floyd, \"Recommendation on using the gentle variant of RED\", 2000",
        help: "let the probability rise from max_p at max_th to 1 at twice max_th instead of jumping to 1",
    }
}

pub(super) const BYTE_MODE: Param = Param {
    name: "byte_mode",
    kind: Kind::Choice(RedByteMode::WORDS),
    default: Default::Choice("off"),
    aliases: &[ns2("bytes_").reads(Reading::Words("ns2", "off"))],
    source: "off: RFC 7141; paper: 1993; ns2: ns-2.35",
    help: "scaling of the probability by packet size: `paper` scales it before spacing, `ns2` after spacing",
};

pub(super) const SPACING: Param = Param {
    name: "uniformisation",
    kind: Kind::Choice(SpacingRule::WORDS),
    default: Default::Choice("paper"),
    aliases: &[
        ns2("wait_").reads(Reading::Words("ns2_wait", "paper")),
        ns3("Wait").reads(Reading::Words("ns2_wait", "paper")),
    ],
    source: "Floyd and Jacobson 1993, section 8; ns-2.35; Linux",
    help: "gaps between notices at constant pb: `paper` (its pseudo-code; ns-2 without wait) 1 .. 1/pb - 1, `ns2_wait` \
           1/pb .. 2/pb - 1, `linux` 1 .. 1/pb, `off` geometric",
};

pub(super) const IDLE: Param = Param {
    name: "idle",
    kind: Kind::Choice(IdleRule::WORDS),
    default: Default::Choice("paper"),
    aliases: &[],
    source: "Floyd and Jacobson 1993, section 11; ns-2.35; Linux",
    help: "decay of the average over an idle time: `paper` by m virtual packets, `ns2` by m + 1, `linux` by \
           its table of shifts",
};

pub(super) const COUNTING: Param = Param {
    name: "counting",
    kind: Kind::Choice(Counting::WORDS),
    default: Default::Choice("paper"),
    aliases: &[],
    source: "Floyd and Jacobson 1993, figure 2; ns-2.35; Linux",
    help: "when packets are counted: `paper` between the thresholds; `ns2` always, but it never chooses an \
           arrival that finds at most one packet (or byte) waiting, or the first arrival above min_th; \
           `linux` like `paper`, but the count restarts after a forced notice",
};

pub(super) const ARITHMETIC: Param = Param {
    name: "arithmetic",
    kind: Kind::Choice(RedArithmetic::WORDS),
    default: Default::Choice("exact"),
    aliases: &[],
    source: "Floyd and Jacobson 1993; Linux",
    help: "arithmetic: `exact` uses real numbers; `linux` uses a fixed-point average, and a probability \
           that rises per byte by a whole number of units of 2^-32, at least one",
};

pub(super) const W_P: Param = Param {
    name: "w_p",
    kind: PROBABILITY,
    default: Default::Number(1.0),
    aliases: &[],
    source: "mentioned as a possibility by Feng, Kandlur, Saha, Shin 1999; 1: Floyd and Jacobson 1993",
    help: "weight of a new value in a low-pass filter on the probability, with one new value per arrival; \
           below 1, the filtered probability alone decides, without `counting` and without forced notices",
};

pub(super) const ECN: Param = table::ecn(
    "RFC 3168",
    "mark ECN-capable packets instead of dropping them, where ecn_region allows",
    &[ns2_switch("setbit_"), tc("ecn"), ns3("UseEcn")],
);

pub(super) const MEASURE: Param =
    table::measure("Floyd and Jacobson 1993, section 3", "unit of the average queue", &[IN_BYTES]);

pub(super) const MEAN_PACKET: Param = Param {
    aliases: &[ns2_in("B", "mean_pktsize_"), tc_bytes("avpkt"), ns3("MeanPktSize").reads(Reading::In("B"))],
    source: "Floyd and Jacobson 1993, section 11",
    help: "mean packet size, for C in packets/s and for the conversion of thresholds between packets and bytes",
    ..table::MEAN_PACKET
};

pub(super) const MAX_PACKET: Param = table::max_packet(
    "Floyd and Jacobson 1993, figure 2, byte mode",
    "largest packet size, the reference for byte_mode `paper`",
);

pub(super) const ECN_REGION: Param = Param {
    name: "ecn_region",
    kind: Kind::Choice(Region::WORDS),
    default: Default::Choice("rfc3168"),
    aliases: &[],
    source: "RFC 3168, section 7; ns-2.35 use_mark_p_; Feng 1999; Linux without harddrop",
    help: "where marks replace drops: `rfc3168` below max_th; `ns2_mark_p` where pb < mark_p (with counting \
           `ns2`, no notice is then forced); `feng` and `linux`, which agree here, everywhere except at \
           overflow",
};

pub(super) const MARK_P: Param = Param {
    name: "mark_p",
    kind: Kind::Number { min: 0.0, max: 1000.0 }, // ns-2 sets no maximum
    default: Default::Number(0.1),
    aliases: &[ns2("mark_p_")],
    source: "ns-2.35",
    help: "with ecn_region `ns2_mark_p`, notices with a probability of at least this are drops; above 1, \
           all are marks",
};

pub(super) const fn target(default: Default, help: &'static str) -> Param {
    Param {
        name: "target",
        kind: Kind::Span { min: Span::ZERO, max: Span::s(10) },
        default,
        aliases: const { &[ns2_in("s", "targetdelay_"), ns3("TargetDelay")] },
        source: "Floyd, Gummadi, Shenker 2001, section 5.1",
        help,
    }
}

pub(super) const BURST: Param = Param {
    name: "burst",
    kind: Kind::Integer { min: 1, max: 1_000_000 },
    default: Default::Auto(
        "(2 min_th + max_th) / (3 mean_packet), rounded down; at least one packet more than min_th",
    ),
    aliases: &[tc("burst")],
    source: "tc-red(8)",
    help: "with w_rule `linux`, the length, in packets, of a burst that the average tolerates",
};

pub(super) const GENTLE_LINE: Param = Param {
    name: "gentle_line",
    kind: Kind::Choice(GentleLine::WORDS),
    default: Default::Choice("moving"),
    aliases: &[],
    source: "moving: the paper; fixed: ns-2.35",
    help: "whether the gentle slope starts from the current value of max_p or from the initial one",
};

/// RED's parameters.
pub(super) static RED: &[Param] = &[
    preset(const { &names::<3>(RED_PRESETS) }),
    LIMIT,
    LIMIT_RULE,
    MIN_TH,
    MAX_TH,
    MAX_P,
    W_Q,
    w_rule("fixed"),
    W_P,
    gentle(false),
    ECN,
    ECN_REGION,
    MARK_P,
    MEASURE,
    MEAN_PACKET,
    BYTE_MODE,
    MAX_PACKET,
    SPACING,
    COUNTING,
    IDLE,
    ARITHMETIC,
    target(Default::Span(Span::ZERO), "target delay for automatic thresholds; 0: min_th is 5 packets"),
    BURST,
];

/// Adaptive RED's parameters.
pub(super) static ARED: &[Param] = &[
    preset(const { &names::<3>(ARED_PRESETS) }),
    LIMIT,
    LIMIT_RULE,
    target(Default::Span(Span::ms(5)), "target queueing delay for automatic thresholds"),
    MIN_TH,
    MAX_TH,
    MAX_P,
    W_Q,
    w_rule("paper"),
    Param {
        name: "interval",
        kind: Kind::Span { min: Span::ms(1), max: Span::s(3600) },
        default: Default::Span(Span::ms(500)),
        aliases: &[ns2_in("s", "interval_"), ns3("Interval")],
        source: "Floyd, Gummadi, Shenker 2001, figure 1",
        help: "time between updates of max_p",
    },
    Param {
        name: "alpha",
        kind: Kind::Number { min: 1e-4, max: 1.0 },
        default: Default::Number(0.01),
        aliases: &[ns2("alpha_"), ns3("Alpha")],
        source: "Floyd, Gummadi, Shenker 2001, figure 1",
        help: "largest increase of max_p per update; the increase is also at most a quarter of max_p",
    },
    Param {
        name: "beta",
        kind: Kind::Number { min: 0.1, max: 0.999 },
        default: Default::Number(0.9),
        aliases: &[ns2("beta_"), ns3("Beta")],
        source: "Floyd, Gummadi, Shenker 2001, figure 1",
        help: "factor by which a decrease multiplies max_p",
    },
    Param {
        name: "top",
        kind: PROBABILITY,
        default: Default::Number(0.5),
        aliases: &[ns2("top_"), ns3("Top")],
        source: "Floyd, Gummadi, Shenker 2001, section 4",
        help: "value of max_p above which no update raises it",
    },
    Param {
        name: "bottom",
        kind: Kind::NumberAbove { above: 1e-6, max: 1.0 },
        default: Default::Auto(
            "0.01; ns-2 preset: 80 000 bit/s divided by the link's rate, but at most 0.01",
        ),
        aliases: &[ns2("bottom_"), ns3("Bottom")],
        source: "Floyd, Gummadi, Shenker 2001, section 4; ns-2.35",
        help: "value of max_p below which no update lowers it",
    },
    Param {
        name: "adapt_at",
        kind: Kind::Choice(When::WORDS),
        default: Default::Choice("timer"),
        aliases: &[],
        source: "timer: the paper, Linux; arrivals: ns-2.35",
        help: "when updates fall due: `timer` at every multiple of interval; `arrivals` at the first arrival more than \
               interval after the last change",
    },
    GENTLE_LINE,
    gentle(true),
    ECN,
    ECN_REGION,
    MARK_P,
    MEASURE,
    MEAN_PACKET,
    BYTE_MODE,
    MAX_PACKET,
    SPACING,
    COUNTING,
    IDLE,
    ARITHMETIC,
    BURST,
];

const LINUX_TITLE: &str = "Linux sch_red with the defaults of tc";
pub(super) const NS2_LIMIT: Value = Value::Size(Size::Packets(Packets::new(50)));
pub(super) const NS2_MEAN: Value = Value::Size(Size::Bytes(Bytes::new(500)));

/// RED's values in ns-2.35.
pub(super) const RED_NS2: &[(&str, Value)] = &[
    ("limit", NS2_LIMIT),
    word("limit_rule", "reached"),
    word("w_rule", "ns2"),
    ("gentle", Value::Flag(true)),
    word("measure", "bytes"),
    ("mean_packet", NS2_MEAN),
    word("byte_mode", "ns2"),
    word("uniformisation", "ns2_wait"),
    word("idle", "ns2"),
    word("counting", "ns2"),
    word("ecn_region", "ns2_mark_p"),
    ("target", Value::Span(Span::ms(5))),
];

/// RED's presets.
pub(super) const RED_PRESETS: &[Preset] = &[
    Preset {
        name: "paper",
        title: "Floyd and Jacobson 1993 with max_p as Floyd advised in 1997",
        values: &[],
    },
    Preset { name: NS2, title: NS2_TITLE, values: RED_NS2 },
    Preset {
        name: LINUX,
        title: LINUX_TITLE,
        values: &[
            ("max_p", Value::Number(0.02)),
            word("w_rule", "linux"),
            word("measure", "bytes"),
            word("uniformisation", "linux"),
            word("idle", "linux"),
            word("counting", "linux"),
            word("arithmetic", "linux"),
            word("ecn_region", "linux"),
        ],
    },
];

/// Adaptive RED's presets.
pub(super) const ARED_PRESETS: &[Preset] = &[
    Preset { name: "paper", title: "Floyd, Gummadi and Shenker 2001", values: &[] },
    Preset {
        name: NS2,
        title: NS2_TITLE,
        values: &[
            ("limit", NS2_LIMIT),
            word("limit_rule", "reached"),
            word("w_rule", "ns2"),
            word("measure", "bytes"),
            ("mean_packet", NS2_MEAN),
            word("byte_mode", "ns2"),
            word("uniformisation", "ns2_wait"),
            word("idle", "ns2"),
            word("counting", "ns2"),
            word("ecn_region", "ns2_mark_p"),
            word("adapt_at", "arrivals"),
            word("gentle_line", "fixed"),
        ],
    },
    Preset {
        name: LINUX,
        title: LINUX_TITLE,
        values: &[
            ("max_p", Value::Number(0.02)),
            word("w_rule", "linux"),
            ("gentle", Value::Flag(false)),
            word("measure", "bytes"),
            word("uniformisation", "linux"),
            word("idle", "linux"),
            word("counting", "linux"),
            word("arithmetic", "linux"),
            word("ecn_region", "linux"),
        ],
    },
];
