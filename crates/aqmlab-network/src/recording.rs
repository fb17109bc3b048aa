//! The recording of a run.

use aqmlab_recording::live::LiveReport;
use aqmlab_recording::{Host, LinkInfo, Manifest, PortRecord, RESULTS_VERSION, Recording, StoppedBy, Table};
use aqmlab_scenario::{LinkPlan, Plan};
use aqmlab_units::Instant;

/// What a host says of a run beside its tables.
#[derive(Clone, PartialEq, Debug)]
pub struct RunFacts {
    /// Which host ran it.
    pub host: Host,
    /// The seed.
    pub seed: u64,
    /// The begin of the measured interval.
    pub t0: Instant,
    /// Its end.
    pub t1: Instant,
    /// What ended the run.
    pub stopped_by: StoppedBy,
    /// Events that the engine processed.
    pub events: u64,
    /// How long the run took on this machine, in seconds.
    pub wall_s: f64,
    /// What only the live router knows.
    pub live: Option<Box<LiveReport>>,
}

impl RunFacts {
    /// The recording of a run of `plan`: its manifest and its tables, in the order of the schema. `more` are tables that
    /// not every run has.
    pub fn recording(
        self,
        plan: &Plan,
        ports: PortRecord,
        run: Table,
        flows: Table,
        flow_series: Table,
        more: impl IntoIterator<Item = Table>,
    ) -> Recording {
        let mut tables =
            vec![ports.summary, ports.histograms, run, ports.queues, ports.law, flows, flow_series];
        tables.extend(more);
        Recording { manifest: self.manifest(plan), tables, streamed: Vec::new() }
    }

    fn manifest(self, plan: &Plan) -> Manifest {
        let link = |link: &LinkPlan| LinkInfo::new(&link.name, link.rate, link.delay);
        Manifest {
            results_version: RESULTS_VERSION,
            aqmlab_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: self.host,
            title: plan.title.clone(),
            arm: plan.arm.clone(),
            seed: self.seed,
            plan: plan.to_json(),
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
