//! Scenario files: from a user's text to a plan in which every value is explicit.
//!
//! [`parse`] is the only entry point, for the command line and for Python alike. The crate reads
//! TOML text, checks it against the tables of [`language`] and of the disciplines and TCP profiles,
//! fills in defaults and computes automatic values. [`parse`] returns an [`Experiment`] with one
//! [`Plan`] per arm, or a [`ScenarioError`] with all errors, each with line, column, value and the
//! accepted form. [`Sweep`] returns the cases of a file with a `[sweep]`, one at a time. [`schema`]
//! describes the same language as JSON Schema.
//!
//! This crate reads no clock and no file, and has neither threads nor locks. The caller passes it the text of a
//! scenario, and the contents of the files that the scenario names, such as traces, through [`Files`].

mod arms;
mod autorate;
mod changes;
mod class;
mod closes;
mod crossing;
mod delay;
pub mod described;
mod digest;
mod distribution;
mod drawn;
mod draws;
mod elaborate;
mod elsewhere;
mod error;
pub mod estimate;
mod faults;
mod field;
mod kernel_queue;
mod kind;
pub mod language;
mod link_queue;
mod live;
mod names;
mod open_load;
mod own_delays;
mod parameter;
mod part;
mod parts;
mod pass;
mod plan;
mod queue;
mod rate;
mod rate_course;
mod record;
mod reference;
mod route;
mod run;
mod schema;
mod settings_json;
mod starts;
pub mod suggest;
mod sweep;
mod toml_text;
mod topology;
mod trace;
mod traffic;
mod tree;
mod values;
mod vectors;
mod warnings;

pub use draws::base_rtt;
pub use elaborate::Limits;
pub use elsewhere::of_discipline as discipline_elsewhere;
pub use error::{Problem, ScenarioError};
pub use field::{Absent, Drawn, Field, Form, Variant};
pub use kernel_queue::{TC_QUEUE, spec_words};
pub use parameter::Parameter;
pub use parts::{Parts, SEGMENTS, all_parts};
pub use plan::*;
pub use rate_course::{Chances, Levels};
pub use reference::reference;
pub use schema::schema;
pub use settings_json::schema_of;
pub use sweep::{Axis, Case, Claim, MOST_RUNS, Sweep, parse, parse_with, parse_within};
pub use trace::{
    ChanceFile, DelayStep, Files, LeftOut, LevelFile, LossStep, RateStep, Schedule, Scheduled, Trace,
    recorded_openings,
};
pub use traffic::*;
pub use vectors::ConnectionVector;
