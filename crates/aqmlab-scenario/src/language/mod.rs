//! The language: every section of a scenario file and every key in it.

mod autorate;
mod experiment;
mod network;
mod quantity;
mod rate;
mod run;

use aqmlab_params::{Default, Kind};
use aqmlab_units::Span;

pub use autorate::AUTORATE;
pub use experiment::*;
pub use network::*;
use quantity::RUN_TIME;
pub(crate) use quantity::{CHANCE, DELAY, MOMENT};
pub(crate) use quantity::{
    COUNT, COUNTS, EMBEDDED, MOST_LINKS_OF_A_PATH, MOST_PACKETS, OBJECTS, ORIGINS, PACKET, PARALLEL, PERIODS,
    RATE, STARTS, TIMES, TRANSFER, TRANSFERS, UPDATES,
};
pub use rate::CHANGING_RATES;
pub(crate) use rate::{AT_ENDS, LEVEL, LEVEL_FILE, RATE_OR_ZERO};
pub use run::*;

use crate::field::{Field, Form, default, required, ruled};
pub use crate::traffic::TRAFFIC_KINDS;

/// The keys of a file.
pub const FILE: &[Field] = &[
    ruled("title", Form::One(Kind::Text), "the file's name without its extension", "the experiment's title"),
    ruled(
        "question",
        Form::One(Kind::Text),
        "empty",
        "the question that the experiment answers; heads the report",
    ),
    ruled(
        "metrics",
        Form::Names("metrics"),
        "none",
        "metrics that the question is about: the answer begins with them, and the table has them in addition to the usual ones; `aqmlab metrics` lists all metrics",
    ),
    ruled(
        "duration",
        Form::One(RUN_TIME),
        "`at` in [stop]",
        "the latest time at which a run can end; shorthand for `at` in [stop]",
    ),
    default(
        "warmup",
        Form::One(MOMENT),
        Default::Span(Span::ZERO),
        "measurement begins at this time; until then, the network warms up",
    ),
    default(
        "seed",
        // 2^53 - runs: every JSON reader represents such a number exactly.
        Form::One(Kind::Integer { min: 0, max: 9_007_199_254_640_991 }),
        Default::Integer(1),
        "the seed of the first run; each further run uses the next number",
    ),
    default(
        "runs",
        Form::One(Kind::Integer { min: 1, max: 100_000 }),
        Default::Integer(1),
        "runs per arm, each with its own seed; the seeds are the same for every arm",
    ),
    required("topology", Form::Kinds(TOPOLOGIES), "routers and the links between them"),
    ruled("node", Form::Tables(NODE), "none", "routers of a graph"),
    ruled("link", Form::Tables(LINK), "none", "links of a graph"),
    required("traffic", Form::TablesOfKinds(TRAFFIC_KINDS), "classes of similar flows"),
    ruled(
        "delay",
        Form::Tables(DELAY_RULE),
        "none",
        "delay stages at the edge of the network and in routers, outside the queues: delay, loss and rate per flow, by rule",
    ),
    ruled(
        "stop",
        Form::Table(STOP),
        "at `duration`",
        "when a run ends: as soon as one of these conditions becomes true",
    ),
    ruled("record", Form::Table(RECORD), "its defaults", "what to record, and how often"),
    ruled(
        "live",
        Form::Table(LIVE),
        "its defaults",
        "how `aqmlab live` runs the scenario; the simulator ignores this",
    ),
    ruled(
        "arm",
        Form::Arms,
        "one arm called \"main\"",
        "variations of the scenario, each run with the same seeds",
    ),
    ruled(
        "sweep",
        Form::Sweep,
        "one case",
        "dotted paths with lists of values: every arm is run with every combination of the values",
    ),
    ruled("claim", Form::Tables(CLAIM), "none", "expected results, which are scored after the runs"),
];

/// Keys that apply to the whole experiment and cannot differ between arms.
pub(crate) const COMMON_TO_ARMS: &[&str] =
    &["title", "question", "metrics", "seed", "runs", "arm", "sweep", "claim"];
