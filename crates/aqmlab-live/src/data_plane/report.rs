//! Punctuality of a data plane on this machine's clock, and the load on its thread, which determines whether
//! the thread may spin.

use aqmlab_qdisc::Histogram;
use aqmlab_units::{Instant, Span};

/// Measurements of a data plane, from the end of the warm-up to the end of the measured interval.
#[derive(Clone, PartialEq, Debug)]
pub struct DataPlaneReport {
    /// Lateness of each written frame: the time just before the write minus the ideal instant, in ns.
    pub lateness: Histogram,
    /// Frames whose lateness reached the limit at the rates that held. Zero if no rate changes.
    pub beyond_limit: u64,
    /// The maximum lateness of a frame.
    pub lateness_max: Span,
    /// Number of stalls: silences that were longer than allowed.
    pub stalls: u64,
    /// Length of the longest of these stalls.
    pub longest_stall: Span,
    /// The first stalls, at most 64; `stalls` counts all of them.
    pub first_stalls: Vec<Stall>,
    /// Share of the time during which the thread had a processor.
    pub duty: f64,
    /// Time during which the settings allowed the thread to spin, but it did not, because it was too busy.
    pub without_spin: Span,
    /// Whether the thread ran under SCHED_FIFO.
    pub realtime: bool,
    /// Whether the process's memory could be locked.
    pub locked: bool,
    /// Number of frames that a device refused, from the start of the run to the end of the drain: they are
    /// lost, and no other books record them.
    pub write_errors: u64,
    /// With offloads, the counts of joined packets, from the start of the run to the end of the drain.
    pub offload: OffloadCounts,
}

/// Counts of the packets that the hosts and the router exchanged in super-segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OffloadCounts {
    /// Successful reads.
    pub reads: u64,
    /// Packets read.
    pub packets_read: u64,
    /// Successful writes.
    pub writes: u64,
    /// Packets written.
    pub packets_written: u64,
}

/// A period during which the loop stood still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stall {
    /// When it began.
    pub at: Instant,
    /// Length of the stall.
    pub length: Span,
}

/// Maximum number of stalls listed; all are counted.
const LISTED: usize = 64;

impl DataPlaneReport {
    /// Returns an empty report with space for all entries.
    pub(super) fn new() -> Self {
        let mut lateness = Histogram::new();
        lateness.reserve();
        DataPlaneReport {
            lateness,
            beyond_limit: 0,
            lateness_max: Span::ZERO,
            stalls: 0,
            longest_stall: Span::ZERO,
            first_stalls: Vec::with_capacity(LISTED),
            duty: 0.0,
            without_spin: Span::ZERO,
            realtime: false,
            locked: false,
            write_errors: 0,
            offload: OffloadCounts::default(),
        }
    }

    #[inline]
    pub(super) fn late(&mut self, by: Span, limit: Span) {
        self.lateness.add(by.as_ns(), 1);
        self.beyond_limit += u64::from(by >= limit);
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

/// If the thread uses the processor for more than this share of a window, the loop stops spinning: once a
/// real-time thread has used 95 % of a second (`sched_rt_runtime_us`), the kernel stops it for the rest of
/// that second, and all work waits. The share is below the 70 % allowed in a faithful run, because spinning
/// alone must not make a run unfaithful.
const MOST: f64 = 0.6;
/// Time before the loop tries to spin again: spinning again right after the first calm window would only
/// restore the load that stopped the spinning.
const PAUSE: Span = Span::s(5);
/// Length of a window.
const WINDOW: Span = Span::ms(100);

/// The loop's use of its processor, window by window and over the measured interval.
pub struct Duty {
    window: Reading,
    may_spin: bool,
    /// Earliest time at which the loop may spin again.
    again: Instant,
    measured: Option<Reading>,
}

/// A reading of the clock and of the thread's processor time.
#[derive(Clone, Copy)]
pub struct Reading {
    pub now: Instant,
    pub used: Span,
}

impl Reading {
    /// Returns the share of the time since `before` during which the thread used the processor.
    fn share_since(self, before: Reading) -> f64 {
        let wall = self.now.saturating_since(before.now).as_secs_f64();
        if wall > 0.0 { self.used.saturating_sub(before.used).as_secs_f64() / wall } else { 0.0 }
    }
}

impl Duty {
    pub fn new(reading: Reading) -> Self {
        Duty { window: reading, may_spin: true, again: reading.now, measured: None }
    }

    /// Whether a window is over.
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        now.saturating_since(self.window.now) >= WINDOW
    }

    /// Ends a window that is over; returns its length.
    pub fn next_window(&mut self, reading: Reading) -> Span {
        let length = reading.now.saturating_since(self.window.now);
        if reading.share_since(self.window) >= MOST {
            self.again = reading.now + PAUSE;
        }
        self.may_spin = reading.now >= self.again;
        self.window = reading;
        length
    }

    /// Whether the loop may spin, as judged by its last windows.
    #[inline]
    pub const fn may_spin(&self) -> bool {
        self.may_spin
    }

    /// Begins the measured interval.
    pub fn measure(&mut self, reading: Reading) {
        self.measured = Some(reading);
    }

    /// Returns the share of the measured interval, up to this reading, during which the thread used the
    /// processor; zero if the interval has not begun.
    pub fn measured(&self, reading: Reading) -> f64 {
        self.measured.map_or(0.0, |begun| reading.share_since(begun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_window_stops_the_spinning_and_an_idle_one_allows_it_again() {
        let at = |ms, used| Reading { now: Instant::ZERO + Span::ms(ms), used: Span::ms(used) };
        let mut duty = Duty::new(at(0, 0));
        assert!(duty.may_spin() && !duty.is_due(at(99, 0).now) && duty.is_due(at(100, 0).now));
        assert_eq!(duty.next_window(at(100, 59)), Span::ms(100));
        assert!(duty.may_spin());
        duty.next_window(at(200, 120));
        assert!(!duty.may_spin());
        duty.measure(at(200, 120));
        duty.next_window(at(5190, 130));
        assert!(!duty.may_spin(), "the load is still there");
        duty.next_window(at(5290, 140));
        assert!(duty.may_spin());
        assert_eq!(duty.measured(at(5400, 2720)), 0.5);
    }
}
