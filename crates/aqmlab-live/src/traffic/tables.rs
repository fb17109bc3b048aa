//! The tables of flows.

use aqmlab_recording::{Cell, Table, schema};
use aqmlab_scenario::Plan;
use aqmlab_units::{Instant, Span};

use super::counts::FlowCounts;
use super::flow::{Body, Flow};

/// A flow that has ended, or was there at the end of the run.
#[derive(Clone, Copy, Debug)]
pub struct FlowRow {
    /// Its number in the run.
    pub number: u32,
    /// Its class.
    pub class: u32,
    /// Its index within the class.
    pub index: u32,
    /// When it started.
    pub start: Instant,
    /// When its receiver had got everything.
    pub end: Option<Instant>,
    /// All that was counted.
    pub counts: FlowCounts,
    /// Of that, before the end of the warm-up.
    pub at_warmup: FlowCounts,
}

/// What the network knows of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathCounts {
    /// Twice the propagation delay of its path and its own links.
    pub base_rtt: Span,
    /// Bytes that it delivered for the first time.
    pub received_bytes: u64,
    /// [`PathCounts::received_bytes`] in the measured interval.
    pub measured_received_bytes: u64,
    /// Packets that it delivered with the mark CE.
    pub ce_delivered: u64,
    /// Packets that it lost outside the queues.
    pub lost: u64,
    /// [`PathCounts::ce_delivered`] in the measured interval.
    pub measured_ce_delivered: u64,
    /// [`PathCounts::lost`] in the measured interval.
    pub measured_lost: u64,
}

impl FlowRow {
    /// What is left of a flow.
    pub fn of(flow: &Flow) -> Self {
        FlowRow {
            number: flow.number,
            class: flow.class,
            index: flow.index,
            start: flow.start,
            end: flow.completed,
            counts: flow.counts(),
            at_warmup: flow.at_warmup,
        }
    }
}

/// Columns of `flows` that a kernel always tells, or that we count ourselves.
const KNOWN: &[&str] = &[
    "flow",
    "index",
    "start_ns",
    "base_rtt_ns",
    "sent_segments",
    "sent_bytes",
    "received_bytes",
    "delivered_bytes",
    "retransmitted_segments",
    "ce_received",
    "lost_outside_queues_packets",
    "measured_received_bytes",
    "measured_delivered_bytes",
    "measured_sent_bytes",
    "measured_retransmitted_segments",
    "measured_ce_received",
    "measured_lost_outside_queues_packets",
];

/// The table `flows`: rows in the order of their numbers, with what the network knows of each.
pub fn flow_table(plan: &Plan, rows: &[FlowRow], path: impl Fn(&FlowRow) -> PathCounts) -> Table {
    let mut table = Table::partial(&schema::FLOWS, KNOWN);
    for row in rows {
        let (all, path) = (row.counts, path(row));
        let measured = all.since(&row.at_warmup);
        // What no kernel tells: entries into fast recovery, reductions on ECN echo, windows with several losses. Datagrams
        // have none.
        let class = &plan.classes[row.class as usize];
        let untold = if class.workload.tcp().is_some() { Cell::Null } else { Cell::U64(0) };
        table.push([
            u64::from(row.number).into(),
            class.name.as_str().into(),
            u64::from(row.index).into(),
            row.start.as_ns().into(),
            row.end.map(Instant::as_ns).into(),
            path.base_rtt.as_ns().into(),
            all.sent.segments.into(),
            all.sent.bytes.into(),
            path.received_bytes.into(),
            all.delivered_bytes.into(),
            all.sent.retransmitted.into(),
            all.sent.timeouts.into(),
            untold,
            untold,
            path.ce_delivered.into(),
            all.sent.duplicates.into(),
            untold,
            path.lost.into(),
            path.measured_received_bytes.into(),
            measured.delivered_bytes.into(),
            measured.sent.bytes.into(),
            measured.sent.timeouts.into(),
            measured.sent.retransmitted.into(),
            untold,
            untold,
            path.measured_ce_delivered.into(),
            measured.sent.duplicates.into(),
            untold,
            path.measured_lost.into(),
        ]);
    }
    table
}

/// The empty table `flow_series`.
pub fn series_table() -> Table {
    let told = schema::FLOW_SERIES.columns.iter().map(|(name, _)| *name);
    let known: Vec<&str> = told.filter(|name| *name != "received_bytes").collect();
    Table::partial(&schema::FLOW_SERIES, &known)
}

/// Appends a row of `flow_series`, if the flow is a connection.
pub fn push_sample(table: &mut Table, now: Instant, flow: &Flow) {
    let Body::Tcp(connection) = &flow.body else { return };
    let Some(sample) = connection.sender().sample() else { return };
    table.push([
        now.as_ns().into(),
        u64::from(flow.number).into(),
        sample.cwnd.into(),
        sample.ssthresh.into(),
        sample.srtt.map(Span::as_ns).into(),
        sample.flight.get().into(),
        sample.acked.get().into(),
        Cell::Null, // the sockets tell what is in order only
        connection.delivered().get().into(),
    ]);
}
