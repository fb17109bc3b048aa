//! Departure times of paced segments: one burst at a time, each as late as the pacing of the
//! earlier segments requires.

use aqmlab_units::{Instant, Span};

/// The burst that is leaving, and the time of the next burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pace {
    /// Number of segments of the burst that may still leave.
    left: u32,
    /// Time of the next burst.
    next: Instant,
    /// The timer's earlier setting, kept while the timer is set for the next burst.
    pub held: Option<Instant>,
    /// When the latest unpaced burst began, and how many of its segments have not left yet.
    pub burst: (Instant, u32),
}

impl Pace {
    pub(crate) const fn new() -> Self {
        Pace { left: 0, next: Instant::ZERO, held: None, burst: (Instant::ZERO, 0) }
    }

    /// Returns the time at which a segment may leave, if that is not now.
    pub(crate) fn waits(&self, now: Instant) -> Option<Instant> {
        (self.left == 0 && now < self.next).then_some(self.next)
    }

    /// Returns the time of the next burst, which may be in the past.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Returns whether the timer is set for the next burst.
    pub(crate) fn has_set(&self, deadline: Instant) -> bool {
        deadline == self.next
    }

    /// Notes that a segment is leaving; at the pacing rate, it takes up the time `takes`.
    pub(crate) fn sent(&mut self, now: Instant, takes: Span, burst: u32) {
        if now >= self.next {
            self.left = burst;
        }
        self.left = self.left.saturating_sub(1);
        self.next = self.next.max(now) + takes;
    }

    /// Does the same as [`Pace::sent`] for a burst that may be late: the time that has been lost shortens the
    /// wait for the next one, by at most a half (as observed on Linux 6.1).
    pub(crate) fn sent_late(&mut self, now: Instant, takes: Span, burst: u32) {
        let late = now.saturating_since(self.next);
        self.sent(now, takes.saturating_sub(late.min(takes.div(2))), burst);
    }
}
