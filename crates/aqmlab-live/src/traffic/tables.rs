//! The tables of flows.

use aqmlab_recording::{Cell, Table, schema};
use aqmlab_units::{Instant, Span};

use super::flow::{Body, Flow};

/// A flow that has ended, or was there at the end of the run. What happens on its path is the router's to fill in.
pub type FlowRow = aqmlab_network::FlowRow<Option<u64>>;

/// What is left of a flow.
pub(super) fn row_of(flow: &Flow) -> FlowRow {
    FlowRow {
        number: flow.number,
        class: flow.class as u16,
        index: flow.index,
        start: flow.start,
        end: flow.completed,
        base_rtt: Span::ZERO,
        counts: flow.counts(),
        at_warmup: flow.at_warmup,
    }
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
