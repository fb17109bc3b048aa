//! How a run is watched and stopped from another thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared between a run and whoever waits for it. A run looks at it every 2^16 events.
#[derive(Default, Debug)]
pub struct Control {
    /// Set to end the run early; it then returns `RunError::Cancelled` and leaves nothing.
    pub cancel: AtomicBool,
    /// Events processed so far.
    pub events: AtomicU64,
    /// How far the run has come in simulated time.
    pub sim_time_ns: AtomicU64,
    /// Most bytes that the run's own tables may take; 0 is no cap.
    pub memory_cap: AtomicU64,
}

impl Control {
    pub(crate) fn report(&self, events: u64, now_ns: u64) {
        self.events.store(events, Ordering::Relaxed);
        self.sim_time_ns.store(now_ns, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    pub(crate) fn cap(&self) -> Option<u64> {
        Some(self.memory_cap.load(Ordering::Relaxed)).filter(|&cap| cap > 0)
    }
}
