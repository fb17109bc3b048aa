//! The parameters of Self-Configuring RED, and its presets.

use aqmlab_params::{Alias, Default, Kind, Param, Value};
use aqmlab_units::Span;

use super::red_table::{
    ARITHMETIC, BURST, BYTE_MODE, COUNTING, ECN, ECN_REGION, GENTLE_LINE, IDLE, LIMIT, MARK_P, MAX_P,
    MAX_PACKET, MAX_TH, MEAN_PACKET, MEASURE, MIN_TH, NS2_LIMIT, NS2_MEAN, SPACING, W_Q, gentle, target,
    w_rule,
};
use super::table::{NS2, names, ns2, preset, word};
use super::words::Start;
use crate::registry::Preset;
use crate::resolve::LIMIT_RULE;

/// Self-Configuring RED's parameters.
pub(super) static SCRED: &[Param] = &[
    preset(const { &names::<2>(SCRED_PRESETS) }),
    LIMIT,
    LIMIT_RULE,
    MIN_TH,
    MAX_TH,
    MAX_P,
    Param {
        name: "alpha",
        kind: Kind::Number { min: 1.0, max: 1000.0 },
        default: Default::Number(3.0),
        aliases: &[ns2("alpha_"), Alias::new("ns-3", "FengAlpha")],
        source: "Feng et al. 1999, section 4; ns-2's alpha_ must be set because its default is that of Adaptive RED",
        help: "number by which max_p is divided when the average falls below min_th",
    },
    Param {
        name: "beta",
        kind: Kind::Number { min: 1.0, max: 1000.0 },
        default: Default::Number(2.0),
        aliases: &[ns2("beta_"), Alias::new("ns-3", "FengBeta")],
        source: "Feng et al. 1999, section 4; ns-2's beta_ must be set because its default is that of Adaptive RED",
        help: "number by which max_p is multiplied when the average rises above max_th",
    },
    Param {
        name: "start",
        kind: Kind::Choice(Start::WORDS),
        default: Default::Choice("below"),
        aliases: &[],
        source: "below: ours, because the link is idle at first; above: ns-2.35, ns-3",
        help: "side of the thresholds on which the average starts; if it starts `above`, the first arrival \
               divides max_p",
    },
    W_Q,
    w_rule("fixed"),
    gentle(false),
    GENTLE_LINE,
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

/// Self-Configuring RED's presets.
pub(super) const SCRED_PRESETS: &[Preset] = &[
    Preset {
        name: "paper",
        title: "Feng, Kandlur, Saha and Shin 1999, on top of the RED of 1993",
        values: &[],
    },
    Preset {
        name: NS2,
        title: "ns-2.35 with feng_adaptive_ 1, alpha_ 3 and beta_ 2, otherwise as shipped",
        values: &[
            ("limit", NS2_LIMIT),
            word("limit_rule", "reached"),
            word("start", "above"),
            word("w_rule", "ns2"),
            ("gentle", Value::Flag(true)),
            word("gentle_line", "fixed"),
            word("measure", "bytes"),
            ("mean_packet", NS2_MEAN),
            word("byte_mode", "ns2"),
            word("uniformisation", "ns2_wait"),
            word("idle", "ns2"),
            word("counting", "ns2"),
            word("ecn_region", "ns2_mark_p"),
            ("target", Value::Span(Span::ms(5))),
        ],
    },
];
