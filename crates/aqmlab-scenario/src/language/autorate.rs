//! The keys of a controller that adjusts a shaper.

use aqmlab_params::{Default, Kind};
use aqmlab_units::Span;

use super::quantity::{DELAY, RATE};
use crate::field::{Field, Form, default, required, ruled};

pub(crate) const AUTORATE_DELAYS: &[&str] = &["one_way", "half_rtt"];

const TIME: Kind = Kind::Span { min: Span::us(1), max: Span::s(3600) };
const WEIGHT: Kind = Kind::Number { min: 0.0, max: 1.0 };
const LESS: Kind = Kind::Number { min: 0.01, max: 1.0 };
const MORE: Kind = Kind::Number { min: 1.0, max: 10.0 };
const ANSWERS: Kind = Kind::Integer { min: 1, max: 1000 };

const fn number(name: &'static str, kind: Kind, value: f64, help: &'static str) -> Field {
    default(name, Form::One(kind), Default::Number(value), help)
}

const fn time(name: &'static str, value: Span, help: &'static str) -> Field {
    default(name, Form::One(TIME), Default::Span(value), help)
}

/// The keys of `autorate`. The defaults are those of cake-autorate (lynxthecat/cake-autorate, `defaults.sh`, commit 07039794).
pub const AUTORATE: &[Field] = &[
    required(
        "reflector",
        Form::Name,
        "the class of datagrams whose packets measure the delay; each of its flows is a reflector with a baseline of its own",
    ),
    required("min", Form::One(RATE), "the lowest rate"),
    ruled(
        "base",
        Form::One(RATE),
        "the rate of the shaper",
        "the first rate, to which the shaper returns while the load is low",
    ),
    required("max", Form::One(RATE), "the highest rate"),
    default(
        "measures",
        Form::One(Kind::Choice(AUTORATE_DELAYS)),
        Default::Choice("one_way"),
        "the delay of the direction that is shaped: that of the packet, or half of the time until its answer is back",
    ),
    ruled(
        "return_delay",
        Form::One(DELAY),
        "the delay of the reflector's way back without queueing",
        "how long an answer takes back to the controller",
    ),
    time(
        "increase_threshold",
        Span::ms(10),
        "up to this mean excess of the delay over its baseline, a rate increases by `increase_most`",
    ),
    time("delay_threshold", Span::ms(30), "a delay that exceeds its baseline by more counts as long"),
    time("decrease_threshold", Span::ms(60), "from this mean excess on, a rate decreases by `decrease_most`"),
    default(
        "largest_packet",
        Form::One(Kind::Bytes { min: 0, max: 65_535 }),
        Default::Bytes(1500),
        "the packet whose transmission time at the shaper's rate is added to the three thresholds",
    ),
    default("window", Form::One(ANSWERS), Default::Integer(6), "the number of answers that count"),
    default(
        "detections",
        Form::One(ANSWERS),
        Default::Integer(3),
        "as many long delays among them mean that the queue in front of the link is too long",
    ),
    number("baseline_up", WEIGHT, 0.001, "weight of a delay in its baseline if the delay is longer"),
    number("baseline_down", WEIGHT, 0.9, "the same if it is shorter"),
    number("decrease_least", LESS, 0.99, "factor of the rate if delays are just long"),
    number("decrease_most", LESS, 0.75, "factor of the rate from `decrease_threshold` on"),
    number("increase_least", MORE, 1.0, "factor of the rate under high load if delays are almost long"),
    number("increase_most", MORE, 1.04, "factor of the rate under high load up to `increase_threshold`"),
    number("decay_down", LESS, 0.99, "factor by which a rate above `base` decreases under low load"),
    number("decay_up", MORE, 1.01, "factor by which a rate below `base` increases under low load"),
    number("high_load", WEIGHT, 0.75, "the load is high if more than this share of the shaper's rate leaves"),
    time("interval", Span::ms(200), "the interval over which the rate that leaves is measured"),
    time(
        "refractory",
        Span::ms(300),
        "the time after a decrease in which the rate neither decreases nor increases",
    ),
    time("decay_refractory", Span::s(1), "the time between two returns towards `base`"),
];
