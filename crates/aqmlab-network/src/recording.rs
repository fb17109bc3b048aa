//! The recording of a run.

use aqmlab_qdisc::registry::Catalogue;
use aqmlab_recording::live::LiveReport;
use aqmlab_recording::{Host, LinkInfo, Manifest, PortRecord, Recording, StoppedBy, Table};
use aqmlab_scenario::{LinkPlan, Parts, Plan, SEGMENTS};
use aqmlab_units::Instant;

/// A program that hosts disciplines (the simulator or the live router), with the version of its engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Engine {
    /// The host.
    pub host: Host,
    /// Incremented whenever a change to the engine changes a result.
    pub version: u32,
}

impl Engine {
    /// Returns the parts of the program that determine the recording of a run of `plan` on this host, each
    /// with its version.
    pub fn parts(self, plan: &Plan) -> Parts {
        self.complete(parts(plan))
    }

    /// Adds this host to the parts of a plan, and removes those that it does not use.
    pub fn complete(self, mut parts: Parts) -> Parts {
        if self.host == Host::Live {
            parts.remove(SEGMENTS);
        }
        parts.insert(self.host.name().to_owned(), self.version);
        parts
    }
}

/// Returns the same parts as [`Engine::parts`], but without the host.
pub fn parts(plan: &Plan) -> Parts {
    let mut parts = plan.parts();
    parts.extend(between());
    if plan.record.packets.is_none() {
        parts.remove(PACKETS);
    }
    parts
}

/// Returns all parts of the program, including these hosts, with the disciplines of `catalogue`.
pub fn all_parts(catalogue: &Catalogue, hosts: impl Iterator<Item = Engine>) -> Parts {
    let mut parts = aqmlab_scenario::all_parts(catalogue);
    parts.extend(between());
    parts.extend(hosts.map(|engine| (engine.host.name().to_owned(), engine.version)));
    parts
}

/// The record of individual packets, which only some plans request.
const PACKETS: &str = "recording.packets";

/// Returns the parts that belong neither to a plan nor to a host.
fn between() -> Parts {
    let recording = aqmlab_recording::VERSION;
    [("network", crate::VERSION), ("recording", recording), (PACKETS, aqmlab_recording::PACKETS_VERSION)]
        .map(|(name, version)| (name.to_owned(), version))
        .into()
}

/// The facts that a host reports about a run, apart from its tables.
#[derive(Clone, PartialEq, Debug)]
pub struct RunFacts {
    /// The engine that ran it.
    pub engine: Engine,
    /// The seed.
    pub seed: u64,
    /// The beginning of the measured interval.
    pub t0: Instant,
    /// Its end.
    pub t1: Instant,
    /// What ended the run.
    pub stopped_by: StoppedBy,
    /// Events that the engine processed.
    pub events: u64,
    /// How long the run took on this machine, in seconds.
    pub wall_s: f64,
    /// Facts that only the live router knows.
    pub live: Option<Box<LiveReport>>,
}

impl RunFacts {
    /// Returns the recording of a run of `plan`: its manifest and its tables, in the order of the schema.
    /// `more` contains the tables that only some runs have.
    pub fn recording(
        self,
        plan: &Plan,
        ports: PortRecord,
        run: Table,
        flows: Table,
        flow_series: Table,
        more: impl IntoIterator<Item = Table>,
    ) -> Recording {
        let mut tables = vec![
            ports.summary,
            ports.kinds,
            ports.histograms,
            run,
            ports.queues,
            ports.law,
            flows,
            flow_series,
        ];
        tables.extend(more);
        Recording { manifest: self.manifest(plan), tables, streamed: Vec::new() }
    }

    fn manifest(self, plan: &Plan) -> Manifest {
        let link = |link: &LinkPlan| LinkInfo::new(&link.name, link.rate, link.delay);
        Manifest {
            parts: self.engine.parts(plan),
            aqmlab_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: self.engine.host,
            title: plan.title.clone(),
            arm: plan.arm.clone(),
            seed: self.seed,
            plan: plan.clone(),
            t0: self.t0,
            t1: self.t1,
            stopped_by: self.stopped_by,
            links: plan.links.iter().map(link).collect(),
            events: self.events,
            wall_s: self.wall_s,
            live: self.live,
        }
    }
}
