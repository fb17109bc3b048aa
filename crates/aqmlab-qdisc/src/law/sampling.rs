//! Catching up for laws with a sampling period: the instants of the samples, and sums that take
//! many equal steps in one operation.

use aqmlab_units::{Instant, Span};

/// A schedule of samples at every multiple of a period since the start; the first sample is taken after one
/// period. The period need not be a whole number of nanoseconds (1/170 s is not). Each instant is rounded
/// down separately, so nothing drifts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampling {
    /// `samples` sampling periods take `time`.
    time: Span,
    samples: u64,
    /// Number of samples taken so far.
    taken: u64,
    next: Instant,
}

impl Sampling {
    /// Creates a schedule with one sample per `period`, which must be above zero.
    pub fn every(period: Span) -> Self {
        Sampling::of(period, 1)
    }

    /// Creates a schedule with this sampling frequency in millihertz, which must be above zero.
    pub fn at_millihertz(frequency: u64) -> Self {
        Sampling::of(Span::s(1000), frequency)
    }

    fn of(time: Span, samples: u64) -> Self {
        let mut sampling = Sampling { time, samples, taken: 0, next: Instant::ZERO };
        sampling.next = sampling.instant(1);
        sampling
    }

    /// Returns whether a sample has fallen due by `now`.
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Takes the samples that have fallen due up to and including `now`, and returns their number.
    pub fn take(&mut self, now: Instant) -> u64 {
        // This is the largest k with floor(k time / samples) <= now.
        let k =
            ((u128::from(now.as_ns()) + 1) * u128::from(self.samples) - 1) / u128::from(self.time.as_ns());
        let taken = u64::try_from(k).unwrap_or(u64::MAX);
        let due = taken.saturating_sub(self.taken);
        self.taken += due;
        self.next = self.instant(self.taken.saturating_add(1));
        due
    }

    /// Returns how many samples have fallen due up to and including `now` and are not taken yet.
    pub fn due(&self, now: Instant) -> u64 {
        let mut copy = *self;
        copy.take(now)
    }

    /// Returns the instant of the next sample.
    pub const fn next(&self) -> Instant {
        self.next
    }

    /// Returns the instant of the last sample taken; time zero before the first.
    pub fn last(&self) -> Instant {
        self.instant(self.taken)
    }

    /// Returns the period in seconds.
    pub fn period_s(&self) -> f64 {
        self.time.as_secs_f64() / self.samples as f64
    }

    fn instant(&self, k: u64) -> Instant {
        let ns = u128::from(k) * u128::from(self.time.as_ns()) / u128::from(self.samples);
        Instant::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

/// A number on the grid `k 2^-60`. Sums of such numbers are exact, so `n` equal steps lead to the
/// same number, to the last bit, whether they are made one by one or all at once. A law that
/// catches up requires this. Near 1, the grid is finer than that of an `f64`; rounding a step to
/// the grid moves it by less than 5e-19.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Grid(i128);

const FRACTION_BITS: u32 = 60;
const UNIT: f64 = (1u64 << FRACTION_BITS) as f64;
/// Bound on the numbers: 2^66, far above any price and far from overflow.
const FAR: i128 = 1 << 126;

impl Grid {
    pub(super) const ZERO: Grid = Grid(0);
    pub(super) const ONE: Grid = Grid(1 << FRACTION_BITS);
    /// The largest number.
    pub(super) const MOST: Grid = Grid(FAR);

    /// Returns the grid point nearest to `x`, which must not be NaN.
    pub(super) fn nearest(x: f64) -> Self {
        Grid((libm::rint(x * UNIT) as i128).clamp(-FAR, FAR))
    }

    /// Makes `count` equal steps in one operation; the result is clamped between `low` and `high`
    /// as if it had been clamped after each step.
    pub(super) fn stepped(self, step: Grid, count: u64, (low, high): (Grid, Grid)) -> Self {
        // Equal steps all go in one direction, so a bound that is passed at any step is still
        // passed after the last one.
        Grid(self.0.saturating_add(step.0.saturating_mul(i128::from(count))).clamp(low.0, high.0))
    }

    /// Returns the nearest float.
    pub(super) fn value(self) -> f64 {
        self.0 as f64 / UNIT
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

    #[test]
    fn many_steps_at_once_end_where_they_end_one_by_one() {
        let ends = (Grid::ZERO, Grid::ONE);
        for step in [3e-6, -1.7e-9, 0.3, -0.9, 1e30, 1e-19] {
            let step = Grid::nearest(step);
            for count in [0, 1, 7, 1000] {
                let start = Grid::nearest(0.123_456_789);
                let single = (0..count).fold(start, |at, _| at.stepped(step, 1, ends));
                assert_eq!(start.stepped(step, count, ends), single);
            }
        }
    }

    #[test]
    fn no_number_of_steps_overflows() {
        let ends = (Grid::ZERO, Grid::MOST);
        let far = Grid::ZERO.stepped(Grid::nearest(f64::MAX), u64::MAX, ends);
        assert_eq!(far, Grid::MOST);
        assert_eq!(far.stepped(Grid::nearest(-f64::MAX), u64::MAX, ends), Grid::ZERO);
        assert_eq!(far.value(), 2f64.powi(66));
    }
}
