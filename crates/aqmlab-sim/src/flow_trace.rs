//! The `trace` table: each change in the window, threshold, round-trip time or timer of the chosen
//! connections.

use std::collections::BTreeMap;

use aqmlab_recording::{Table, schema};
use aqmlab_transport::{Endpoint, Profile};
use aqmlab_units::{Bytes, Instant, Span};

/// The values in a row that describe the sender.
#[derive(Clone, Copy, PartialEq)]
struct Sender {
    cwnd: f64,
    ssthresh: f64,
    srtt: Option<Span>,
    rto: Span,
    acked: Bytes,
    /// How often each of [`REASONS`] has occurred.
    counts: [u32; 3],
}

/// The events that have names of their own, in the order of [`Sender::counts`]; any other change is
/// recorded as `change`.
const REASONS: [&str; 3] = ["timeout", "fast_retransmit", "ecn_reduction"];

impl Sender {
    fn of(endpoint: &Endpoint, profile: &Profile) -> Self {
        let counters = endpoint.counters();
        Sender {
            cwnd: endpoint.cwnd(),
            ssthresh: endpoint.ssthresh(),
            srtt: endpoint.srtt(),
            rto: endpoint.rto(profile),
            acked: endpoint.acked(),
            counts: [counters.timeouts, counters.fast_retransmits, counters.ecn_reductions],
        }
    }
}

/// Traced connections: their state at the last observation, and the rows so far.
pub struct FlowTrace {
    last: BTreeMap<u32, Sender>,
    table: Table,
}

impl FlowTrace {
    /// Creates a trace without rows.
    pub fn new() -> Self {
        FlowTrace { last: BTreeMap::new(), table: Table::new(&schema::TRACE) }
    }

    /// Records that the sender of flow `number` has been processed: adds one row per named event,
    /// or a single row if only something else has changed.
    pub fn look(&mut self, now: Instant, number: u32, endpoint: &Endpoint, profile: &Profile) {
        let state = Sender::of(endpoint, profile);
        let Some(before) = self.last.insert(number, state) else {
            self.row(now, number, "open", endpoint, &state);
            return;
        };
        let rose = |i: &usize| state.counts[*i] != before.counts[*i];
        let mut named = (0..REASONS.len()).filter(rose).peekable();
        if named.peek().is_none() && state != before {
            self.row(now, number, "change", endpoint, &state);
        }
        for event in named {
            self.row(now, number, REASONS[event], endpoint, &state);
        }
    }

    fn row(&mut self, now: Instant, number: u32, event: &str, endpoint: &Endpoint, state: &Sender) {
        self.table.push([
            now.as_ns().into(),
            u64::from(number).into(),
            event.into(),
            state.cwnd.into(),
            Some(state.ssthresh).filter(|s| s.is_finite()).into(),
            state.srtt.map(Span::as_ns).into(),
            state.rto.as_ns().into(),
            endpoint.flight().get().into(),
            state.acked.get().into(),
        ]);
    }

    /// Removes a flow that is over from the trace.
    pub fn forget(&mut self, number: u32) {
        self.last.remove(&number);
    }

    /// Returns the rows recorded so far.
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the rows.
    pub fn into_table(self) -> Table {
        self.table
    }
}
