//! Lock-free exchange between a data plane and other threads.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering};

use aqmlab_recording::StoppedBy;
use aqmlab_units::{Instant, Span};

/// Connection between a data plane and the threads that watch it. The data plane polls it every few
/// milliseconds.
#[derive(Debug)]
pub struct DataPlaneControl {
    ready: AtomicBool,
    gone: AtomicBool,
    finish: AtomicBool,
    wanted: Ending,
    ended: Ending,
    held: AtomicU64,
    lateness_max: AtomicU64,
    /// Zero if the data plane has no real-time priority.
    priority: AtomicI32,
}

impl Default for DataPlaneControl {
    fn default() -> Self {
        DataPlaneControl {
            ready: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            finish: AtomicBool::new(false),
            wanted: Ending::never(),
            ended: Ending::never(),
            held: AtomicU64::new(0),
            lateness_max: AtomicU64::new(0),
            priority: AtomicI32::new(0),
        }
    }
}

impl DataPlaneControl {
    // --- for the watching threads -----------------------------------------------------------------------

    /// Whether the data plane has started to run.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Whether it has ended, with or without an error.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Ends the measured interval when the data plane first polls at or after `at`, unless the interval ends
    /// earlier. Only the first request counts.
    pub fn end_at(&self, at: Instant, why: StoppedBy) {
        self.wanted.set(at, why);
    }

    /// Returns when and why the measured interval ended, if it has ended.
    pub fn ended(&self) -> Option<(Instant, StoppedBy)> {
        self.ended.get()
    }

    /// Number of frames in the network a few milliseconds ago.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// The maximum lateness of a frame in the measured interval so far.
    pub fn lateness_max(&self) -> Span {
        Span::ns(self.lateness_max.load(Ordering::Relaxed))
    }

    /// The real-time priority of a running data plane, if it has one.
    pub fn priority(&self) -> Option<i32> {
        Some(self.priority.load(Ordering::Acquire)).filter(|&priority| priority > 0)
    }

    /// Asks the data plane to close its books and end.
    pub fn finish(&self) {
        self.finish.store(true, Ordering::Release);
    }

    // --- for the data plane --------------------------------------------------------------------------------

    pub(super) fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    pub(super) fn set_priority(&self, priority: Option<i32>) {
        self.priority.store(priority.unwrap_or(0), Ordering::Release);
    }

    pub(super) fn set_gone(&self) {
        self.gone.store(true, Ordering::Release);
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finish.load(Ordering::Acquire)
    }

    /// Returns why the measured interval must end by `now`; `None` if it need not.
    pub(super) fn wanted(&self, now: Instant) -> Option<StoppedBy> {
        self.wanted.get().filter(|(at, _)| *at <= now).map(|(_, why)| why)
    }

    pub(super) fn report(&self, ended: Option<(Instant, StoppedBy)>, held: usize, lateness_max: Span) {
        if let Some((at, why)) = ended {
            self.ended.set(at, why);
        }
        self.held.store(held as u64, Ordering::Relaxed);
        self.lateness_max.store(lateness_max.as_ns(), Ordering::Relaxed);
    }
}

/// An instant and a reason, set once.
#[derive(Debug)]
struct Ending {
    /// [`Instant::FAR_FUTURE`] until it is set; `why` is valid only afterwards.
    at: AtomicU64,
    why: AtomicU8,
}

const REASONS: [StoppedBy; 4] =
    [StoppedBy::Time, StoppedBy::Completed, StoppedBy::Condition, StoppedBy::Interrupted];
/// No reason yet.
const UNSET: u8 = u8::MAX;

impl Ending {
    const fn never() -> Self {
        Ending { at: AtomicU64::new(Instant::FAR_FUTURE.as_ns()), why: AtomicU8::new(UNSET) }
    }

    fn set(&self, at: Instant, why: StoppedBy) {
        let number = REASONS.iter().position(|reason| *reason == why).expect("all reasons are listed") as u8;
        // Only the caller that has set the reason sets the instant, so the two always belong together.
        if self.why.compare_exchange(UNSET, number, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.at.store(at.as_ns(), Ordering::Release);
        }
    }

    fn get(&self) -> Option<(Instant, StoppedBy)> {
        let at = Instant::from_ns(self.at.load(Ordering::Acquire));
        let why = REASONS.get(usize::from(self.why.load(Ordering::Acquire)))?;
        (at < Instant::FAR_FUTURE).then_some((at, *why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wish_counts_from_its_instant_on() {
        let control = DataPlaneControl::default();
        let at = |ms| Instant::ZERO + Span::ms(ms);
        assert_eq!(control.wanted(at(1000)), None);
        control.end_at(at(20), StoppedBy::Completed);
        control.end_at(at(10), StoppedBy::Interrupted);
        assert_eq!(control.wanted(at(19)), None);
        assert_eq!(control.wanted(at(20)), Some(StoppedBy::Completed));
        assert_eq!(control.ended(), None);
        control.report(Some((at(21), StoppedBy::Interrupted)), 7, Span::us(3));
        assert_eq!(control.ended(), Some((at(21), StoppedBy::Interrupted)));
        assert_eq!((control.held(), control.lateness_max()), (7, Span::us(3)));
    }
}
