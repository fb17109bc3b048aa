//! The keys of a link's rate that changes during a run.

use aqmlab_params::{Default, Kind};
use aqmlab_units::{Rate, Span};

use super::quantity::{MOMENT, PERIODS, RATE};
use crate::field::{Drawn, Field, Form, Variant, default, required, ruled};

/// The rates of a link at an instant, from none to the highest.
pub(crate) const RATE_OR_ZERO: (Rate, Rate) = (Rate::bps(0), Rate::gbit(100_000));
pub(crate) const LEVEL: Kind = Kind::Rate { min: RATE_OR_ZERO.0, max: RATE_OR_ZERO.1 };

/// A length of time that is not zero.
const PERIOD: Kind = Kind::Span { min: Span::ns(1), max: Span::s(365 * 24 * 3600) };
/// Levels are not closer than a tenth of a millisecond, so that they do not outnumber packets.
const STEP: Kind = Kind::Span { min: Span::us(100), max: Span::s(365 * 24 * 3600) };
const CHANCE: Kind = Kind::Bytes { min: 1, max: 1 << 20 };

/// Levels that are drawn repeatedly.
const LEVELS: Drawn =
    Drawn { kind: LEVEL, noun: "rate", example: "\"10Mbit\"", forms: &["uniform", "list", "empirical"] };

pub(crate) const CLOCKS: &[&str] = &["serving", "chances"];
pub(crate) const AT_ENDS: &[&str] = &["repeat", "hold"];

const CLOCK_HELP: &str = "how the rate becomes departures: \"serving\" sends packet after packet, and what is left of a \
                          packet when the rate changes is sent at the new rate; \"chances\" sends only at instants, up to \
                          `chance` at each, and what a chance does not use is lost";

const CLOCK: &[Field] = &[
    default("clock", Form::One(Kind::Choice(CLOCKS)), Default::Choice("serving"), CLOCK_HELP),
    CHANCE_FIELD,
];

const CHANCE_FIELD: Field = ruled(
    "chance",
    Form::One(CHANCE),
    "\"1500B\" if the link sends at chances",
    "bytes that the link can send at one chance, link overhead included",
);

const AT_END: Field = ruled(
    "at_end",
    Form::One(Kind::Choice(AT_ENDS)),
    "\"repeat\", with a warning if the file is shorter than the run",
    "what follows the end of the file: the file again, or its last level (after the last chance, no chance)",
);

/// The keys of a table that names a file of delays or losses.
pub(crate) const LEVEL_FILE: &[Field] = &[
    required("file", Form::One(Kind::Text), "a file as for a rate, with the column `delay_ms` or `loss`"),
    AT_END,
];

/// The kinds of rate that change during a run.
pub const CHANGING_RATES: &[Variant] = &[
    Variant {
        kind: "steps",
        help: "the levels that the scenario lists; `rate = [[\"0s\", \"10Mbit\"], [\"5s\", \"2Mbit\"]]` is the short form",
        fields: &[
            &[
                required(
                    "steps",
                    Form::Steps(LEVEL),
                    "pairs of an instant and the rate from then on; the first instant is 0",
                ),
                ruled("repeat", Form::One(PERIOD), "never", "the time after which the steps are repeated"),
            ],
            CLOCK,
        ],
    },
    Variant {
        kind: "file",
        help: "the levels of a CSV or Parquet file next to the scenario",
        fields: &[
            &[
                required(
                    "file",
                    Form::One(Kind::Text),
                    "a file with the columns `time_s` or `time_ns`, which count from the first row, and `rate_bps`, \
                     `rate_kbps` or `rate_mbps`; each rate holds until the next row, and the last one for as long as the one before it",
                ),
                AT_END,
            ],
            CLOCK,
        ],
    },
    Variant {
        kind: "mahimahi",
        help: "the chances of a file in Mahimahi's format next to the scenario",
        fields: &[&[
            required(
                "file",
                Form::One(Kind::Text),
                "a file with one line per chance: the milliseconds since its beginning; its last line is its length",
            ),
            AT_END,
            default("clock", Form::One(Kind::Choice(CLOCKS)), Default::Choice("chances"), CLOCK_HELP),
            CHANCE_FIELD,
            ruled(
                "bin",
                Form::One(STEP),
                "\"100ms\" if the link is a serving one",
                "with the clock \"serving\", the interval over which the rate is the mean of the chances",
            ),
        ]],
    },
    Variant {
        kind: "outages",
        help: "a link that is up first, and down and up in turn",
        fields: &[
            &[
                required("rate", Form::One(RATE), "its rate when it is up"),
                required("up", Form::Drawn(&PERIODS), "how long it is up each time"),
                required("down", Form::Drawn(&PERIODS), "how long it is down each time"),
            ],
            CLOCK,
        ],
    },
    Variant {
        kind: "markov",
        help: "a Markov chain: from each level to one of the others, all equally probable",
        fields: &[
            &[
                required("levels", Form::Levels(LEVEL), "the levels, at least two"),
                required("stay", Form::One(STEP), "the mean of the exponential time at each level"),
            ],
            CLOCK,
        ],
    },
    Variant {
        kind: "redrawn",
        help: "a new level at regular intervals, independent of the level before it; Starlink's rates change every 15 s",
        fields: &[
            &[
                required("level", Form::Drawn(&LEVELS), "the distribution of the levels"),
                default("every", Form::One(STEP), Default::Span(Span::s(15)), "the interval"),
                ruled("first", Form::One(PERIOD), "the value of `every`", "the instant of the first change"),
            ],
            CLOCK,
        ],
    },
    Variant {
        kind: "fading",
        help: "log-normal fading: the logarithm of the rate is a stationary Gauss-Markov process",
        fields: &[
            &[
                required("mean", Form::One(RATE), "the mean rate"),
                required(
                    "deviation_db",
                    Form::One(Kind::NumberAbove { above: 0.0, max: 20.0 }),
                    "standard deviation of the logarithm of the rate, in decibels: 10 log10(rate)",
                ),
                required(
                    "coherence",
                    Form::One(STEP),
                    "the time after which the correlation of the logarithm has fallen to 1/e",
                ),
                ruled("step", Form::One(STEP), "a tenth of `coherence`", "the interval between levels"),
            ],
            CLOCK,
        ],
    },
    Variant {
        kind: "stalls",
        help: "a link that stands still at regular intervals, such as a wireless station that scans",
        fields: &[
            &[
                required("rate", Form::One(RATE), "its rate between stalls"),
                required("every", Form::One(STEP), "the interval between the beginnings of stalls"),
                required("lasts", Form::One(STEP), "the length of a stall, less than `every`"),
                ruled("first", Form::One(MOMENT), "the value of `every`", "the beginning of the first stall"),
            ],
            CLOCK,
        ],
    },
];
