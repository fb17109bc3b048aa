//! When segments may leave that are paced: a burst at a time, each as late as the segments before it ask.

use aqmlab_units::{Instant, Span};

/// The burst that is leaving, and the time of the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pace {
    /// Segments of the burst that may leave still.
    left: u32,
    /// When the next burst may.
    next: Instant,
    /// The timer is set for that, and was set for this.
    pub held: Option<Instant>,
}

impl Pace {
    pub(crate) const fn new() -> Self {
        Pace { left: 0, next: Instant::ZERO, held: None }
    }

    /// When a segment may leave, if it is not now.
    pub(crate) fn waits(&self, now: Instant) -> Option<Instant> {
        (self.left == 0 && now < self.next).then_some(self.next)
    }

    /// Whether the timer is set for the next burst.
    pub(crate) fn has_set(&self, deadline: Instant) -> bool {
        deadline == self.next
    }

    /// A segment leaves, and takes this much time at the paced rate.
    pub(crate) fn sent(&mut self, now: Instant, takes: Span, burst: u32) {
        if now >= self.next {
            self.left = burst;
        }
        self.left = self.left.saturating_sub(1);
        self.next = self.next.max(now) + takes;
    }
}
