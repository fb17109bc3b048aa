//! Probes of a window that holds data back (RFC 9293, 3.8.6.1).

use aqmlab_units::{Instant, Span};

/// The timer of the probes: the first is due one retransmission timeout after the window has closed, and the
/// interval doubles.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Persist {
    at: Option<Instant>,
    wait: Span,
    probes: u32,
}

impl Persist {
    pub(super) fn new() -> Persist {
        Persist { at: None, wait: Span::ZERO, probes: 0 }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.at
    }

    /// Returns the number of probes since the window has closed.
    pub(super) fn probes(&self) -> u32 {
        self.probes
    }

    /// Notes whether data `waits` for the window; `rto` is the first interval, and `most` the longest.
    pub(super) fn watch(&mut self, waits: bool, now: Instant, rto: Span, most: Span) {
        match (waits, self.at) {
            (false, _) => *self = Persist::new(),
            (true, None) => {
                self.wait = if self.probes == 0 { rto } else { self.wait.saturating_mul(2) }.min(most);
                self.at = Some(now.saturating_add(self.wait));
            }
            (true, Some(_)) => {}
        }
    }

    /// Returns whether a probe is due, and counts it.
    pub(super) fn fires(&mut self, now: Instant) -> bool {
        let due = self.at.is_some_and(|at| at <= now);
        if due {
            self.probes += 1;
            self.at = None;
        }
        due
    }
}
