//! Fills the tables of a recording: with samples during the run, and with sums at its end.

use aqmlab_network::{FlowRow, RunFacts, UserRows, flow_table};
use aqmlab_recording::{PortTables, Recording, Table, schema};
use aqmlab_scenario::Plan;
use aqmlab_units::{Instant, Span};

use crate::flow::Flow;
use crate::flow_table::FlowTable;
use crate::network::{Class, Link};

/// The recording of a run, while it is built.
pub struct Recorder {
    ports: PortTables,
    flow_series: Table,
    /// Rows of `flows`, in the order in which flows ended.
    ended: Vec<FlowRow>,
    /// Rows of flows that stand for users with many connections.
    users: UserRows,
}

impl Recorder {
    /// Creates empty tables for a run of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let class_names = plan.classes.iter().map(|c| c.name.clone()).collect();
        Recorder {
            ports: PortTables::new(plan.links.iter().map(|l| l.name.clone()).collect(), class_names),
            flow_series: Table::new(&schema::FLOW_SERIES),
            ended: Vec::new(),
            users: UserRows::new(plan),
        }
    }

    /// Ends the warm-up: flows that have ended by then are not part of the measurement. This must
    /// be called before the ports' books restart.
    pub fn warmup_ended(&mut self, links: &[Link]) {
        for row in &mut self.ended {
            row.at_warmup = row.counts;
        }
        self.users.warmup_ended();
        self.ports.warmup_ended(links.iter().map(|link| &link.port));
    }

    /// Samples the queues and their laws.
    pub fn sample_queues(&mut self, now: Instant, links: &[Link]) {
        self.ports.sample(now, links.iter().map(|link| &link.port));
    }

    /// Adds a row of `flow_series` for each active connection, in the order of the connections'
    /// numbers.
    pub fn sample_flows(&mut self, now: Instant, flows: &mut FlowTable) {
        // A user's connections get no rows, because otherwise one flow would have many rows for one instant.
        let mut alive: Vec<&mut Flow> = flows.iter_mut().filter(|f| !self.users.has(f.id.class)).collect();
        alive.sort_unstable_by_key(|f| f.id.number);
        for flow in alive {
            let Some((sender, receiver)) = flow.sample() else { continue };
            let ssthresh = Some(sender.ssthresh).filter(|s| s.is_finite());
            self.flow_series.push([
                now.as_ns().into(),
                u64::from(flow.id.number).into(),
                sender.cwnd.into(),
                ssthresh.into(),
                sender.srtt.map(Span::as_ns).into(),
                sender.flight.get().into(),
                sender.acked.get().into(),
                receiver.received.get().into(),
                receiver.delivered.get().into(),
            ]);
        }
    }

    /// Records the row of a flow when it ends, when a user's connection ends, or when the run ends.
    pub fn flow_ended(&mut self, flow: &Flow, class: &Class) {
        let row = FlowRow {
            number: flow.id.number,
            class: flow.id.class,
            index: flow.index,
            start: flow.start,
            end: Some(flow.completed).filter(|&at| at != Instant::FAR_FUTURE),
            base_rtt: class.base_rtt(flow.access.as_ref(), flow.router_stages()),
            counts: flow.counts(),
            at_warmup: flow.counts_at_warmup(),
        };
        if self.users.has(flow.id.class) {
            self.users.connection_ended(&row);
        } else {
            self.ended.push(row);
        }
    }

    /// Returns the samples of queues, of laws and of flows, so far.
    pub fn samples(&self) -> [&Table; 3] {
        let [queues, law] = self.ports.samples();
        [queues, law, &self.flow_series]
    }

    /// Returns the memory of the tables in bytes, estimated from their lengths.
    pub fn memory_bytes(&self) -> usize {
        let series = self.flow_series.rows() * self.flow_series.columns.len();
        let cells = self.ports.cells() + series;
        cells * size_of::<u64>() + self.ended.capacity() * size_of::<FlowRow>() + self.users.memory_bytes()
    }

    /// Returns the recording of a run with these facts. `more` contains the tables that only some
    /// runs have.
    pub fn finish(
        mut self,
        plan: &Plan,
        facts: RunFacts,
        links: &[Link],
        run: Table,
        more: impl IntoIterator<Item = Table>,
    ) -> Recording {
        let ports = self.ports.finish(links.iter().map(|link| link.port.books()));
        self.ended.extend(self.users.into_flows());
        let flows = flow_table(plan, &mut self.ended, &[]);
        facts.recording(plan, ports, run, flows, self.flow_series, more)
    }
}
