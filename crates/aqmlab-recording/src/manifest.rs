//! The manifest: what a run was, beside what it measured.

use std::fmt;

use aqmlab_units::{Instant, Rate, Span};
use serde_json::{Map, Value, json};

use crate::digest::{Digest, json_digest};
use crate::table::Table;

/// The version of the directory's layout and of its tables. From 2 on there are digests of the files.
pub const FORMAT_VERSION: u32 = 2;

/// Raised by one whenever the same plan and seed give other numbers than before. Live runs have the same one: what their
/// traffic asks for and their disciplines draw is the simulator's, though what they measure differs from run to run.
pub const RESULTS_VERSION: u32 = 5;

/// What a run was. [`crate::Recording::write`] adds what follows from it: the plan's digest, rows and digests of
/// each table, and last the digest of the manifest itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Manifest {
    /// Rises when the same plan and seed give other numbers.
    pub results_version: u32,
    /// The version of the program.
    pub aqmlab_version: String,
    /// Which host ran it: `"sim"` or `"live"`.
    pub host: &'static str,
    /// The experiment's title.
    pub title: String,
    /// The arm's name.
    pub arm: String,
    /// The seed.
    pub seed: u64,
    /// The plan, every value with its origin.
    pub plan: Value,
    /// The begin of the measured interval.
    pub t0: Instant,
    /// The end of the measured interval and of the run.
    pub t1: Instant,
    /// What ended the run.
    pub stopped_by: StoppedBy,
    /// The links, in the plan's order.
    pub links: Vec<LinkInfo>,
    /// Events that the engine processed; a figure of the engine, part of no digest.
    pub events: u64,
    /// How long the run took on this machine, in seconds; part of no digest.
    pub wall_s: f64,
    /// What only the live router knows of its run: how faithful it was, and on what machine; part of no digest.
    pub live: Option<Value>,
}

/// A link as readers of a recording need it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkInfo {
    /// Its name, also its queue's.
    pub name: String,
    /// Capacity.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
}

/// What ended a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoppedBy {
    /// its time was over
    Time,
    /// enough flows completed
    Completed,
    /// a count or level at a queue was reached
    Condition,
    /// a person did, before its time
    Interrupted,
}

impl fmt::Display for StoppedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoppedBy::Time => "time",
            StoppedBy::Completed => "completed",
            StoppedBy::Condition => "condition",
            StoppedBy::Interrupted => "interrupted",
        })
    }
}

impl Manifest {
    /// The digest of what decides a run's result but for the seed: of the plan's canonical JSON without the
    /// keys that only name or explain (`title`, `arm`, `origins`).
    pub fn plan_digest(&self) -> Digest {
        let mut deciding = self.plan.clone();
        if let Some(plan) = deciding.as_object_mut() {
            plan.retain(|key, _| !matches!(key.as_str(), "title" | "arm" | "origins"));
        }
        json_digest(&deciding)
    }

    /// The content of `manifest.json` for a recording with these tables.
    pub fn to_json(&self, tables: &[Table]) -> Value {
        let link = |link: &LinkInfo| json!({"name": link.name, "rate_bps": link.rate.as_bps(), "delay_ns": link.delay.as_ns()});
        let table = |table: &Table| {
            let facts = json!({"rows": table.rows(), "digest": table.digest().to_string()});
            (table.name.to_owned(), facts)
        };
        let mut manifest = json!({
            "format_version": FORMAT_VERSION,
            "results_version": self.results_version,
            "aqmlab_version": self.aqmlab_version,
            "host": self.host,
            "title": self.title,
            "arm": self.arm,
            "seed": self.seed,
            "plan_digest": self.plan_digest().to_string(),
            "plan": self.plan,
            "t0_ns": self.t0.as_ns(),
            "t1_ns": self.t1.as_ns(),
            "stopped_by": self.stopped_by.to_string(),
            "tables": tables.iter().map(table).collect::<Map<_, _>>(),
            // A run whose books do not balance is an error and never comes here.
            "books_balanced": true,
            "links": self.links.iter().map(link).collect::<Vec<_>>(),
            "events": self.events,
            "wall_s": self.wall_s,
        });
        if let Some(live) = &self.live {
            manifest["live"] = live.clone();
        }
        manifest
    }
}
