//! What a run's threads tell each other while it goes on.

use std::sync::atomic::{AtomicU64, Ordering};

use aqmlab_units::Instant;

/// What a run's threads tell each other while it goes on.
#[derive(Debug)]
pub struct Signals {
    /// The end of the measured interval, in nanoseconds.
    end: AtomicU64,
}

impl Signals {
    /// The run ends at `end`, if nobody ends it before.
    pub fn new(end: Instant) -> Self {
        Signals { end: AtomicU64::new(end.as_ns()) }
    }

    /// When the run ends.
    pub fn end(&self) -> Instant {
        Instant::from_ns(self.end.load(Ordering::Acquire))
    }

    /// It ends at `at`, if not before. Was that news?
    pub fn end_by(&self, at: Instant) -> bool {
        self.end.fetch_min(at.as_ns(), Ordering::AcqRel) > at.as_ns()
    }
}
