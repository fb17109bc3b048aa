//! The parameters of PI, and their presets.

use aqmlab_params::{Default, Kind, Param, Value};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets, Span};

use super::controller::{BYTE_MODE, LARGEST, LIMIT, UNIT};
use super::table::{MEAN_PACKET, NS2, NS2_TITLE, ecn, names, ns2, ns2_in, preset, word};
use super::words::{Gains, OldQueue};
use crate::registry::Preset;
use crate::resolve::LIMIT_RULE;

const HOLLOT: &str = "Hollot, Misra, Towsley, Gong 2001, section V";
const DESIGN: &str = "Hollot, Misra, Towsley, Gong 2001, section IV";

/// PI's parameters.
pub(super) static PI: &[Param] = &[
    preset(const { &names::<3>(PI_PRESETS) }),
    LIMIT,
    LIMIT_RULE,
    Param {
        name: "q_ref",
        kind: Kind::Size { min: Packets::new(1) },
        default: Default::Auto("200 packets, but at most half of a given limit"),
        aliases: &[ns2_in("p", "qref_")],
        source: HOLLOT,
        help: "the queue to be held",
    },
    Param {
        name: "gains",
        kind: Kind::Choice(Gains::WORDS),
        default: Default::Choice("published"),
        aliases: &[],
        source: DESIGN,
        help: "where a and b come from unless they are given: the paper's example, or its design rule for this link's \
               flows, capacity and round-trip time",
    },
    Param {
        name: "a",
        kind: Kind::NumberAbove { above: 0.0, max: 1.0 },
        default: Default::Auto("1.822e-5; gains `auto`: by the design rule"),
        aliases: &[ns2("a_")],
        source: HOLLOT,
        help: "weight of the present sample's distance from q_ref, per packet",
    },
    Param {
        name: "b",
        kind: Kind::NumberAbove { above: 0.0, max: 1.0 },
        default: Default::Auto("1.816e-5; gains `auto`: by the design rule"),
        aliases: &[ns2("b_")],
        source: HOLLOT,
        help: "weight of the previous sample's distance from q_ref, per packet; below a",
    },
    Param {
        name: "w",
        kind: Kind::Number { min: 0.01, max: 1e6 },
        default: Default::Auto(
            "160; gains `auto`: 100 samples a radian of the crossover, but at least 160 a second",
        ),
        aliases: &[ns2("w_")],
        source: "Hollot, Misra, Towsley, Gong 2001, section V; ns-2.35 tcl/ex/pi",
        help: "sampling frequency in Hz",
    },
    Param {
        name: "q_old",
        kind: Kind::Choice(OldQueue::WORDS),
        default: Default::Choice("zero"),
        aliases: &[],
        source: "zero: ns-2.35; the paper does not say",
        help: "what the sample before the first is taken to have been; `zero` begins with a kick of b q_ref",
    },
    Param {
        name: "flows",
        kind: Kind::Integer { min: 1, max: 1_000_000_000 },
        default: Default::Auto("the TCP flows whose data crosses the link"),
        aliases: &[],
        source: DESIGN,
        help: "N of the design rule and the phase margin: long-lived flows, the least that are expected",
    },
    Param {
        name: "rtt",
        kind: Kind::Span { min: Span::us(1), max: Span::s(3600) },
        default: Default::Auto(
            "the base round-trip time of the link's paths and the time that q_ref takes to leave",
        ),
        aliases: &[],
        source: DESIGN,
        help: "R of the design rule and the phase margin: round-trip time with queueing, the largest that is expected",
    },
    Param {
        name: "w_g",
        kind: Kind::NumberAbove { above: 0.0, max: 1e6 },
        default: Default::Auto("the window's pole 2N / (R^2 C), but at most 0.4 / R"),
        aliases: &[],
        source: "the pole: ns-2.35 tcl/ex/pi; 0.4 / R, ours: 45 degrees of phase margin",
        help: "crossover of the design rule in rad/s: where the loop's gain falls to 1",
    },
    ecn("RFC 3168", "mark ECN-capable packets instead of dropping them"),
    UNIT,
    MEAN_PACKET,
    BYTE_MODE,
    LARGEST,
];

const fn packets(name: &'static str, n: u64) -> (&'static str, Value) {
    (name, Value::Size(Size::Packets(Packets::new(n))))
}

/// PI's presets.
pub(super) const PI_PRESETS: &[Preset] = &[
    Preset { name: "paper", title: "Hollot, Misra, Towsley and Gong 2001", values: &[] },
    Preset {
        name: NS2,
        title: NS2_TITLE,
        values: &[
            packets("limit", 50),
            word("limit_rule", "reached"),
            packets("q_ref", 50),
            ("w", Value::Number(170.0)),
            ("mean_packet", Value::Size(Size::Bytes(Bytes::new(500)))),
        ],
    },
    Preset {
        name: "le2003",
        title: "Le, Aikat, Jeffay and Smith 2003 with q_ref 24; their gains are lost, those of ns-2 stand in",
        values: &[packets("q_ref", 24), ("w", Value::Number(170.0)), word("byte_mode", "mean")],
    },
];
