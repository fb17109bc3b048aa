//! Points in time and lengths of time, in integer nanoseconds.

use core::ops::{Add, AddAssign, Mul, Sub};

const NS_PER_S: u64 = 1_000_000_000;

/// A point in time: nanoseconds since the start of the run.
///
/// It overflows after 584 years. Arithmetic that would overflow panics in debug builds and
/// saturates where the method says so.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Instant(u64);

/// A length of time in nanoseconds; never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(inline))]
pub struct Span(u64);

impl Instant {
    /// The start of a run.
    pub const ZERO: Instant = Instant(0);
    /// An instant later than any in a run, which means "never".
    pub const FAR_FUTURE: Instant = Instant(u64::MAX);

    /// Returns the instant `ns` nanoseconds after the start.
    pub const fn from_ns(ns: u64) -> Self {
        Instant(ns)
    }

    /// Returns the nanoseconds since the start.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the start, as a float for laws and plots.
    pub fn as_secs_f64(self) -> f64 {
        Span(self.0).as_secs_f64()
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Instant) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Returns this instant moved by `span`, or [`Instant::FAR_FUTURE`] on overflow.
    pub const fn saturating_add(self, span: Span) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The longest span.
    pub const MAX: Span = Span(u64::MAX);

    /// Returns `n` nanoseconds.
    pub const fn ns(n: u64) -> Self {
        Span(n)
    }

    /// Returns `n` microseconds.
    pub const fn us(n: u64) -> Self {
        Span(n * 1_000)
    }

    /// Returns `n` milliseconds.
    pub const fn ms(n: u64) -> Self {
        Span(n * 1_000_000)
    }

    /// Returns `n` seconds.
    pub const fn s(n: u64) -> Self {
        Span(n * NS_PER_S)
    }

    /// Returns the span nearest to `seconds`, or `None` if `seconds` is negative, not finite or more than 584
    /// years.
    pub fn try_from_secs_f64(seconds: f64) -> Option<Self> {
        let ns = seconds * NS_PER_S as f64;
        // 2^64 is exact as a float, so this is the true upper limit of u64.
        (0.0..18_446_744_073_709_551_616.0).contains(&ns).then_some(Span((ns + 0.5) as u64))
    }

    /// Returns the nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Returns the seconds as a float, for laws and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NS_PER_S as f64
    }

    /// Returns `self - other`, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// Returns `self * factor`, or [`Span::MAX`] on overflow.
    pub const fn saturating_mul(self, factor: u64) -> Span {
        Span(self.0.saturating_mul(factor))
    }

    /// Returns how many times `part` fits into this span, rounded down.
    ///
    /// # Panics
    /// If `part` is zero.
    pub const fn div_span(self, part: Span) -> u64 {
        self.0 / part.0
    }

    /// Returns this span divided by `parts`, rounded down to a nanosecond.
    ///
    /// # Panics
    /// If `parts` is zero.
    pub const fn div(self, parts: u64) -> Span {
        Span(self.0 / parts)
    }

    /// Returns whether this span is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add<Span> for Instant {
    type Output = Instant;
    fn add(self, span: Span) -> Instant {
        Instant(self.0 + span.0)
    }
}

impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

impl Sub<Instant> for Instant {
    type Output = Span;
    fn sub(self, earlier: Instant) -> Span {
        debug_assert!(self.0 >= earlier.0, "time ran backwards");
        Span(self.0 - earlier.0)
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, factor: u64) -> Span {
        Span(self.0 * factor)
    }
}
