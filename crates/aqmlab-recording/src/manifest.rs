//! The manifest: the description of a run, apart from its measurements.

use std::collections::BTreeMap;

use aqmlab_qdisc::registry::Catalogue;
use aqmlab_scenario::{Parts, Plan, schema_of};
use aqmlab_units::{Instant, Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::digest::{Digest, sealed};
use crate::live::LiveReport;
use crate::streamed::StreamedTable;
use crate::table::Table;

/// The version of the directory's layout and of its tables. Version 2 adds digests of the files. Version 3
/// renames some columns (listed in `docs/recording.md`); in its plans, quantities are whole numbers of SI
/// units, and their names state the unit. Version 4 records a version for each part of the program, instead
/// of one for the whole program.
pub const FORMAT_VERSION: u32 = 4;

/// Incremented whenever the tables would report the same run differently.
pub const VERSION: u32 = 4;

/// The description of a run. [`Manifest::text`] adds the derived facts: the plan's digest,
/// the number of rows and the digests of each table, and finally the digest of the manifest itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Manifest {
    /// The parts of the program that determined the result, each with its version.
    pub parts: Parts,
    /// The version of the program.
    pub aqmlab_version: String,
    /// The host that ran it.
    pub host: Host,
    /// The experiment's title.
    pub title: String,
    /// The arm's name.
    pub arm: String,
    /// The seed.
    pub seed: u64,
    /// The plan, with the origin of every value.
    pub plan: Plan,
    /// The beginning of the measured interval.
    pub t0: Instant,
    /// The end of the measured interval and of the run.
    pub t1: Instant,
    /// What ended the run.
    pub stopped_by: StoppedBy,
    /// The links, in the plan's order.
    pub links: Vec<LinkInfo>,
    /// Number of events that the engine processed: a property of the engine, not included in any
    /// digest.
    pub events: u64,
    /// Duration of the run on this machine, in seconds; not included in any digest.
    pub wall_s: f64,
    /// The facts that only the live router knows: the faithfulness of its run, and the machine; not included
    /// in any digest.
    pub live: Option<Box<LiveReport>>,
}

/// A program that hosts disciplines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Host {
    /// the simulator
    Sim,
    /// the router between real TCP stacks
    Live,
}

impl Host {
    /// Returns the word that stands for this host in a manifest.
    pub const fn name(self) -> &'static str {
        match self {
            Host::Sim => "sim",
            Host::Live => "live",
        }
    }
}

/// The facts about a link that readers of a recording need.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct LinkInfo {
    /// Its name, which is also its queue's name.
    pub name: String,
    /// Capacity; the mean capacity over the measured interval if the rate changes.
    pub rate_bps: u64,
    /// Propagation delay.
    pub delay_ns: u64,
}

impl LinkInfo {
    /// Returns the facts about a link.
    pub fn new(name: impl Into<String>, rate: Rate, delay: Span) -> Self {
        LinkInfo { name: name.into(), rate_bps: rate.as_bps(), delay_ns: delay.as_ns() }
    }
}

/// What ended a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StoppedBy {
    /// the run reached its full duration
    Time,
    /// enough flows completed
    Completed,
    /// a queue reached the given count or level
    Condition,
    /// the user stopped the run early
    Interrupted,
}

/// `manifest.json`, except its last member, `file_digest`, which is the SHA-256 of all bytes before it.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "aqmlab manifest")]
struct ManifestFile<'m> {
    /// The version of the directory's layout.
    format_version: u32,
    /// The parts of the program that determine the result, each with its version.
    parts: &'m Parts,
    /// The version of the program.
    aqmlab_version: &'m str,
    /// The host that ran it.
    host: Host,
    /// The experiment's title.
    title: &'m str,
    /// The arm's name.
    arm: &'m str,
    /// The seed.
    seed: u64,
    /// SHA-256 of everything that determines the result, except the seed.
    plan_digest: String,
    /// The plan, with the origin of every value.
    plan: &'m Plan,
    /// The beginning of the measured interval.
    t0_ns: u64,
    /// The end of the measured interval and of the run.
    t1_ns: u64,
    /// What ended the run.
    stopped_by: StoppedBy,
    /// The tables, by name.
    tables: BTreeMap<&'m str, TableFacts>,
    /// Always true: a run whose books do not balance leaves no recording.
    books_balanced: bool,
    /// The links, in the plan's order.
    links: &'m [LinkInfo],
    /// Number of events that the engine processed.
    events: u64,
    /// Duration of the run on this machine, in seconds.
    wall_s: f64,
    /// The facts that only the live router knows about its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<&'m LiveReport>,
}

/// What a manifest records about a table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct TableFacts {
    /// Number of rows.
    pub rows: u64,
    /// SHA-256 of its logical contents.
    pub digest: String,
    /// SHA-256 of its file.
    pub file_digest: String,
}

impl TableFacts {
    /// Returns the facts about a table whose file has this digest.
    pub fn of(table: &Table, file: Digest) -> Self {
        TableFacts::new(table.rows() as u64, table.digest(), file)
    }

    /// Returns the facts about a table that was written during the run to a file with this digest.
    pub fn of_streamed(table: &StreamedTable, file: Digest) -> Self {
        TableFacts::new(table.rows, table.digest, file)
    }

    fn new(rows: u64, digest: Digest, file: Digest) -> Self {
        TableFacts { rows, digest: digest.to_string(), file_digest: file.to_string() }
    }
}

/// Returns the JSON Schema (2020-12) of `manifest.json`, made from the types that write it. The queues of plans
/// are those of `catalogue`.
pub fn manifest_schema(catalogue: &Catalogue) -> Value {
    schema_of::<ManifestFile<'_>>(catalogue)
}

impl Manifest {
    /// Replaces the capacity of each link whose rate changes by its mean over the measured interval.
    pub fn note_capacities(&mut self, means: &[Option<Rate>]) {
        for (link, mean) in self.links.iter_mut().zip(means) {
            link.rate_bps = mean.map_or(link.rate_bps, Rate::as_bps);
        }
    }

    /// Returns the contents of `manifest.json` for a recording with these tables.
    pub fn text(&self, tables: BTreeMap<&str, TableFacts>) -> String {
        sealed(&ManifestFile {
            format_version: FORMAT_VERSION,
            parts: &self.parts,
            aqmlab_version: &self.aqmlab_version,
            host: self.host,
            title: &self.title,
            arm: &self.arm,
            seed: self.seed,
            plan_digest: self.plan.digest(),
            plan: &self.plan,
            t0_ns: self.t0.as_ns(),
            t1_ns: self.t1.as_ns(),
            stopped_by: self.stopped_by,
            tables,
            books_balanced: true,
            links: &self.links,
            events: self.events,
            wall_s: self.wall_s,
            live: self.live.as_deref(),
        })
    }
}
