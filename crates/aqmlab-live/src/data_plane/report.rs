//! How a data plane has fared on this machine's clock.

use aqmlab_qdisc::Histogram;
use aqmlab_units::{Instant, Span};

/// What was measured of a data plane, from the end of the warm-up to the end of the measured interval.
#[derive(Clone, PartialEq, Debug)]
pub struct DataPlaneReport {
    /// Of each frame written, how late: the time just before the write minus the ideal instant, in ns.
    pub lateness: Histogram,
    /// The greatest of these.
    pub lateness_max: Span,
    /// How often the loop stood still for longer than it may.
    pub stalls: u64,
    /// The longest of these.
    pub longest_stall: Span,
    /// The first of these, 64 at most: how many there were is `stalls`.
    pub first_stalls: Vec<Stall>,
    /// Share of the time for which the thread had a processor.
    pub duty: f64,
    /// Time for which it did not spin, although it was to, because it was too busy.
    pub without_spin: Span,
    /// Did it run under SCHED_FIFO?
    pub realtime: bool,
    /// Could its memory be locked?
    pub locked: bool,
    /// Frames that a device refused, from the start to the end of the drain: lost, and on no other books.
    pub write_errors: u64,
}

/// The loop stood still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stall {
    /// Since when.
    pub at: Instant,
    /// For how long.
    pub length: Span,
}

/// So many stalls are listed; all are counted.
const LISTED: usize = 64;

impl DataPlaneReport {
    /// Nothing yet, and room for all that may come.
    pub(super) fn new() -> Self {
        let mut lateness = Histogram::new();
        lateness.reserve();
        DataPlaneReport {
            lateness,
            lateness_max: Span::ZERO,
            stalls: 0,
            longest_stall: Span::ZERO,
            first_stalls: Vec::with_capacity(LISTED),
            duty: 0.0,
            without_spin: Span::ZERO,
            realtime: false,
            locked: false,
            write_errors: 0,
        }
    }

    #[inline]
    pub(super) fn late(&mut self, by: Span) {
        self.lateness.add(by.as_ns(), 1);
        self.lateness_max = self.lateness_max.max(by);
    }

    pub(super) fn stalled(&mut self, stall: Stall) {
        self.stalls += 1;
        self.longest_stall = self.longest_stall.max(stall.length);
        if self.first_stalls.len() < LISTED {
            self.first_stalls.push(stall);
        }
    }
}
