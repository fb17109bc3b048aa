//! The instants at which a law with a sampling period looks at its queue.

use aqmlab_units::{Instant, Span};

/// Samples at every multiple of a period since the start, the first after one period. The period may be any
/// ratio of nanoseconds (1/170 s): instants are rounded down one by one, so that nothing drifts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampling {
    /// `samples` of them take `time`.
    time: Span,
    samples: u64,
    /// Samples taken so far.
    taken: u64,
    next: Instant,
}

impl Sampling {
    /// One sample every `period`, which is above zero.
    pub fn every(period: Span) -> Self {
        Sampling::of(period, 1)
    }

    /// So many samples in a thousand seconds, above zero: the frequency in millihertz.
    pub fn at_millihertz(frequency: u64) -> Self {
        Sampling::of(Span::s(1000), frequency)
    }

    fn of(time: Span, samples: u64) -> Self {
        let mut sampling = Sampling { time, samples, taken: 0, next: Instant::ZERO };
        sampling.next = sampling.instant(1);
        sampling
    }

    /// Has a sample fallen due by `now`?
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Takes the samples that have fallen due up to and including `now`; how many they are.
    pub fn take(&mut self, now: Instant) -> u64 {
        // The greatest k with floor(k time / samples) <= now.
        let k =
            ((u128::from(now.as_ns()) + 1) * u128::from(self.samples) - 1) / u128::from(self.time.as_ns());
        let taken = u64::try_from(k).unwrap_or(u64::MAX);
        let due = taken.saturating_sub(self.taken);
        self.taken += due;
        self.next = self.instant(self.taken.saturating_add(1));
        due
    }

    /// The period in seconds.
    pub fn period_s(&self) -> f64 {
        self.time.as_secs_f64() / self.samples as f64
    }

    fn instant(&self, k: u64) -> Instant {
        let ns = u128::from(k) * u128::from(self.time.as_ns()) / u128::from(self.samples);
        Instant::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leap_takes_as_many_samples_as_all_its_steps() {
        for mut leap in [
            Sampling::at_millihertz(170_000),
            Sampling::at_millihertz(7),
            Sampling::every(Span::ms(2)),
            Sampling::every(Span::ns(1)),
        ] {
            let mut stepped = leap;
            for _ in 0..1000 {
                let at = stepped.next;
                assert!(!stepped.is_due(Instant::from_ns(at.as_ns() - 1)) && stepped.is_due(at));
                assert_eq!(stepped.take(at), 1);
            }
            let last = Instant::from_ns(stepped.next.as_ns() - 1);
            assert_eq!(leap.take(last), 1000, "{leap:?}");
            assert_eq!(leap, stepped);
        }
    }

    #[test]
    fn a_period_that_is_no_whole_number_of_nanoseconds_does_not_drift() {
        let mut sampling = Sampling::at_millihertz(170_000);
        let hour = Instant::ZERO + Span::s(3600);
        assert_eq!(sampling.take(Instant::from_ns(hour.as_ns() - 1)), 170 * 3600 - 1);
        assert_eq!(sampling.take(hour), 1);
    }

    #[test]
    fn the_end_of_time_is_no_trouble() {
        let mut sampling = Sampling::every(Span::ns(1));
        assert!(sampling.take(Instant::FAR_FUTURE) > 1 << 60);
        assert_eq!(sampling.take(Instant::FAR_FUTURE), 0);
    }
}
