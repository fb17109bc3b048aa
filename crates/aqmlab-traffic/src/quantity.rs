//! Quantities that can be drawn, counted in whole units.

use core::fmt;

use aqmlab_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;

/// Largest draw, in units; for a quantity in nanoseconds, this is 146 years, so a draw can be added
/// to any instant of a run.
const MOST_UNITS: f64 = (1u64 << 62) as f64;

/// A quantity that can be drawn.
pub trait Quantity: Copy + PartialEq + PartialOrd + fmt::Debug {
    /// Returns this quantity as a number of units, such as nanoseconds, bytes or bits per second.
    fn units(self) -> u64;

    /// Returns the quantity that amounts to this many units.
    fn of_units(units: u64) -> Self;

    /// Returns this quantity multiplied by `factor`, but at most 2^62 units; `factor` must not be negative.
    fn times(self, factor: f64) -> Self {
        let units = self.units() as f64 * factor + 0.5;
        Self::of_units(units.min(MOST_UNITS) as u64)
    }

    /// Returns the sum of this quantity and `other`.
    fn plus(self, other: Self) -> Self {
        Self::of_units(self.units().saturating_add(other.units()))
    }
}

impl Quantity for Span {
    fn units(self) -> u64 {
        self.as_ns()
    }

    fn of_units(units: u64) -> Self {
        Span::ns(units)
    }

    fn times(self, factor: f64) -> Self {
        let most = Span::ns(MOST_UNITS as u64);
        Span::try_from_secs_f64(self.as_secs_f64() * factor).map_or(most, |drawn| drawn.min(most))
    }
}

impl Quantity for Bytes {
    fn units(self) -> u64 {
        self.get()
    }

    fn of_units(units: u64) -> Self {
        Bytes::new(units)
    }
}

impl Quantity for Rate {
    fn units(self) -> u64 {
        self.as_bps()
    }

    fn of_units(units: u64) -> Self {
        Rate::bps(units)
    }
}

/// A number of things.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Count(pub u64);

impl Quantity for Count {
    fn units(self) -> u64 {
        self.0
    }

    fn of_units(units: u64) -> Self {
        Count(units)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A probability. A drawn probability is a multiple of 2^-53, which is also the resolution at which events
/// are drawn.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Probability(f64);

impl Probability {
    /// The probability zero.
    pub const NEVER: Probability = Probability(0.0);

    /// Returns `p` as a probability, if it lies between 0 and 1.
    pub fn new(p: f64) -> Option<Self> {
        (0.0..=1.0).contains(&p).then_some(Probability(p))
    }

    /// Returns the probability as a number from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

const UNITS_OF_ONE: f64 = (1u64 << 53) as f64;

impl Quantity for Probability {
    fn units(self) -> u64 {
        (self.0 * UNITS_OF_ONE) as u64
    }

    fn of_units(units: u64) -> Self {
        Probability((units as f64 / UNITS_OF_ONE).min(1.0))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
