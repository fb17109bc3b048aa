//! The `trace` table: each change of window, threshold, round-trip time and timer of chosen connections.

use std::collections::BTreeMap;

use aqmlab_recording::{Table, schema};
use aqmlab_transport::{Endpoint, Profile};
use aqmlab_units::{Bytes, Instant, Span};

/// What a row tells of a sender.
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

/// The events that are told by name, in the order of [`Sender::counts`]; any other change is a `change`.
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

/// Traced connections: their state at the last look, and the rows so far.
pub struct FlowTrace {
    last: BTreeMap<u32, Sender>,
    table: Table,
}

impl FlowTrace {
    /// Nothing seen yet.
    pub fn new() -> Self {
        FlowTrace { last: BTreeMap::new(), table: Table::new(&schema::TRACE) }
    }

    /// The sender of flow `number` has been served: a row for each named event, or one if anything else changed.
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

    /// The flow is over.
    pub fn forget(&mut self, number: u32) {
        self.last.remove(&number);
    }

    /// The rows so far.
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// The rows.
    pub fn into_table(self) -> Table {
        self.table
    }
}
