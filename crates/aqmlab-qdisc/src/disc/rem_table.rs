//! The parameters of REM, and their presets.

use aqmlab_params::{Default, Kind, Param, Reading, Value};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets, Span};

use super::controller::{BYTE_MODE, LARGEST, LIMIT, UNIT};
use super::table::{MEAN_PACKET, NS2, NS2_TITLE, ecn, names, ns2, ns2_in, ns2_switch, preset, word};
use super::words::{Decide, NotEct};
use crate::registry::Preset;
use crate::resolve::LIMIT_RULE_OR_BELOW;

const PAPER: &str = "Athuraliya, Li, Low, Yin 2001";

/// REM's parameters.
pub(super) static REM: &[Param] = &[
    preset(const { &names::<2>(REM_PRESETS) }),
    Param { aliases: &[ns2_in("p", "limit_").implies("limit_rule", "below")], ..LIMIT },
    LIMIT_RULE_OR_BELOW,
    Param {
        name: "q_ref",
        kind: Kind::Size { min: Packets::new(1) },
        default: Default::Auto("20 packets, but at most half of a given limit"),
        aliases: &[ns2_in("p", "pbo_")],
        source: PAPER,
        help: "the queue to be held, b*",
    },
    Param {
        name: "gamma",
        kind: Kind::NumberAbove { above: 0.0, max: 1000.0 },
        default: Default::Number(0.001),
        aliases: &[ns2("gamma_")],
        source: PAPER,
        help: "step size of the price",
    },
    Param {
        name: "alpha",
        kind: Kind::NumberAbove { above: 0.0, max: 1000.0 },
        default: Default::Number(0.1),
        aliases: &[],
        source: "Athuraliya, Li, Low, Yin 2001; a constant in ns-2",
        help: "weight of the queue's distance from q_ref against the mismatch of input and capacity",
    },
    Param {
        name: "phi",
        kind: Kind::NumberAbove { above: 1.0, max: 1000.0 },
        default: Default::Number(1.001),
        aliases: &[ns2("phi_")],
        source: PAPER,
        help: "base of the exponential: the probability is 1 - phi^-price",
    },
    Param {
        name: "period",
        kind: Kind::Span { min: Span::us(1), max: Span::s(3600) },
        default: Default::Span(Span::ms(2)),
        aliases: &[ns2_in("s", "pupdtime_")],
        source: "ns-2.35",
        help: "time between updates of the price",
    },
    Param {
        name: "inw",
        kind: Kind::Number { min: 0.01, max: 1.0 },
        default: Default::Number(1.0),
        aliases: &[ns2("inw_")],
        source: "ns-2.35; 1 is the paper's rule",
        help: "weight of a period's arrivals in their average",
    },
    Param {
        name: "decide",
        kind: Kind::Choice(Decide::WORDS),
        default: Default::Auto("enqueue; preset `ns2` with ecn: dequeue"),
        aliases: &[],
        source: "ns-2.35 drops at enqueue and marks at dequeue; the paper does not say",
        help: "when packets are chosen",
    },
    Param {
        aliases: &[ns2_switch("markpkts_")],
        ..ecn("RFC 3168", "mark ECN-capable packets instead of dropping them")
    },
    Param {
        name: "not_ect",
        kind: Kind::Choice(NotEct::WORDS),
        default: Default::Choice("drop"),
        aliases: &[],
        source: "drop: RFC 3168, section 5; pass: ns-2.35",
        help: "where ecn is on, what becomes of a chosen packet that is not ECN-capable",
    },
    Param {
        aliases: &[ns2("qib_").reads(Reading::Words("bytes", "packets"))],
        help: "in what queue and arrivals are counted; `bytes` are then divided by mean_packet",
        ..UNIT
    },
    MEAN_PACKET,
    Param { aliases: &[], ..BYTE_MODE },
    LARGEST,
];

/// REM's presets.
pub(super) const REM_PRESETS: &[Preset] = &[
    Preset { name: "paper", title: "Athuraliya, Li, Low and Yin 2001", values: &[] },
    Preset {
        name: NS2,
        title: NS2_TITLE,
        values: &[
            ("limit", Value::Size(Size::Packets(Packets::new(50)))),
            word("limit_rule", "below"),
            word("not_ect", "pass"),
            ("mean_packet", Value::Size(Size::Bytes(Bytes::new(1000)))),
        ],
    },
];
