//! Quantities over time, integrated exactly.

use alloc::vec::Vec;

use aqmlab_units::Span;

use crate::Histogram;

/// A quantity's statistics over time: exact integrals, extremes, and the duration of each value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimeWeighted {
    /// Its integral, in units times ns.
    pub integral: u128,
    /// The integral of its square.
    pub integral_of_square: u128,
    /// The smallest value that lasted at least a nanosecond; `u64::MAX` before any time has passed.
    pub min: u64,
    /// The largest value that lasted at least a nanosecond.
    pub max: u64,
    /// How long each value lasted, in ns.
    pub histogram: Histogram,
}

impl TimeWeighted {
    const fn new() -> Self {
        TimeWeighted {
            integral: 0,
            integral_of_square: 0,
            min: u64::MAX,
            max: 0,
            histogram: Histogram::new(),
        }
    }

    fn held_for(&mut self, value: u64, ns: u64) {
        let area = u128::from(value) * u128::from(ns);
        self.integral += area;
        self.integral_of_square += area * u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.histogram.add(value, ns);
    }

    /// Returns the mean over `span`; NaN if `span` is zero.
    pub fn mean(&self, span: Span) -> f64 {
        self.integral as f64 / span.as_ns() as f64
    }

    /// Returns the variance over `span`; NaN if `span` is zero.
    pub fn variance(&self, span: Span) -> f64 {
        let mean = self.mean(span);
        (self.integral_of_square as f64 / span.as_ns() as f64 - mean * mean).max(0.0)
    }
}

/// The total time for which a quantity, usually a small one, has had each of its values. Recording
/// a span of time takes one addition; the integrals and the histogram are computed on request and
/// are still exact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TimeByValue {
    /// Durations in ns, by value, up to the largest value seen; grows in blocks.
    ns: Vec<u64>,
    /// Statistics of the values at or above [`PLACES`].
    beyond: TimeWeighted,
}

/// Number of values, counted from 0, that have their own place in the table. For a queue of 65,536
/// packets, the table takes half a megabyte.
const PLACES: usize = 1 << 16;
/// Number of places by which the table grows at a time.
const BLOCK: usize = 128;

impl TimeByValue {
    pub(crate) const fn new() -> Self {
        TimeByValue { ns: Vec::new(), beyond: TimeWeighted::new() }
    }

    /// Clears everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.ns.clear();
        self.beyond = TimeWeighted::new();
    }

    /// Reserves room for those values below `end` that have places of their own.
    pub(crate) fn reserve(&mut self, end: usize) {
        let places = end.min(PLACES).next_multiple_of(BLOCK);
        self.ns.reserve(places.saturating_sub(self.ns.len()));
    }

    /// Records that the quantity was `value` for `ns` nanoseconds.
    #[inline]
    pub(crate) fn held_for(&mut self, value: u64, ns: u64) {
        match usize::try_from(value).ok().and_then(|place| self.ns.get_mut(place)) {
            Some(time) => *time += ns,
            None => self.new_value(value, ns),
        }
    }

    #[cold]
    fn new_value(&mut self, value: u64, ns: u64) {
        match usize::try_from(value) {
            Ok(place) if place < PLACES => {
                self.ns.resize((place / BLOCK + 1) * BLOCK, 0);
                self.ns[place] = ns;
            }
            _ => self.beyond.held_for(value, ns),
        }
    }

    /// Returns the time for which the quantity was zero, in ns.
    pub(crate) fn time_at_zero(&self) -> u64 {
        self.ns.first().copied().unwrap_or(0)
    }

    /// Returns the total time recorded, in ns.
    pub(crate) fn total(&self) -> u64 {
        self.ns.iter().sum::<u64>() + self.beyond.histogram.total()
    }

    /// Returns integrals, extremes and histogram over the whole time.
    pub(crate) fn summary(&self) -> TimeWeighted {
        let mut sum = self.beyond.clone();
        for (value, &ns) in self.ns.iter().enumerate().filter(|&(_, &ns)| ns > 0) {
            sum.held_for(value as u64, ns);
        }
        sum
    }
}

/// The integral of a large number over time, and its largest value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Area {
    /// The integral, in units times ns.
    pub integral: u128,
    /// The largest value that lasted at least a nanosecond.
    pub max: u64,
}

impl Area {
    #[inline]
    pub(crate) fn held_for(&mut self, value: u64, ns: u64) {
        self.integral += u128::from(value) * u128::from(ns);
        self.max = self.max.max(value);
    }

    /// Returns the mean over `span`; NaN if `span` is zero.
    pub fn mean(&self, span: Span) -> f64 {
        self.integral as f64 / span.as_ns() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recording by value gives the same results as summing immediately, for values below, at and above the
    /// end of the table.
    #[test]
    fn late_sums_are_the_sums() {
        let (mut table, mut plain) = (TimeByValue::new(), TimeWeighted::new());
        let end = PLACES as u64;
        for (n, value) in [3, 4, 3, 127, 128, 1000, end - 1, end, end + 1, 1 << 40, 4].into_iter().enumerate()
        {
            let ns = 1_000_000_007 * (n as u64 + 1);
            table.held_for(value, ns);
            plain.held_for(value, ns);
        }
        assert_eq!(table.summary(), plain);
        assert_eq!(table.total(), plain.histogram.total());
        assert_eq!(TimeByValue::new().summary(), TimeWeighted::new());
    }
}
