//! Data rates.

use crate::{Bytes, Span};

const NS_PER_S: u128 = 1_000_000_000;

/// A data rate in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(inline))]
pub struct Rate(u64);

impl Rate {
    /// Returns `n` bit/s.
    pub const fn bps(n: u64) -> Self {
        Rate(n)
    }

    /// Returns `n` kbit/s.
    pub const fn kbit(n: u64) -> Self {
        Rate(n * 1_000)
    }

    /// Returns `n` Mbit/s.
    pub const fn mbit(n: u64) -> Self {
        Rate(n * 1_000_000)
    }

    /// Returns `n` Gbit/s.
    pub const fn gbit(n: u64) -> Self {
        Rate(n * 1_000_000_000)
    }

    /// Returns the rate at which `amount` takes `time`, rounded down to a bit per second; the largest rate if
    /// `time` is zero.
    pub fn of(amount: Bytes, time: Span) -> Self {
        let bps = (amount.bits() * NS_PER_S).checked_div(u128::from(time.as_ns()));
        Rate(bps.and_then(|bps| u64::try_from(bps).ok()).unwrap_or(u64::MAX))
    }

    /// Returns the exact amount that is sent in `time`, in units of 10^-9 bit.
    pub const fn nanobits_in(self, time: Span) -> u128 {
        self.0 as u128 * time.as_ns() as u128
    }

    /// Returns the rate in bit/s.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Returns bytes per second as a float, for laws and plots.
    pub fn bytes_per_s(self) -> f64 {
        self.0 as f64 / 8.0
    }

    /// Returns packets of `size` per second: the `C` of the AQM papers.
    pub fn packets_per_s(self, size: Bytes) -> f64 {
        self.0 as f64 / (8.0 * size.as_f64())
    }

    /// Returns the time that `amount` takes at this rate, rounded down to a nanosecond. A link that
    /// sends packets in succession uses [`crate::LinkClock`], which keeps the remainder.
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn time_for(self, amount: Bytes) -> Span {
        let ns = amount.bits() * NS_PER_S / u128::from(self.0);
        Span::ns(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

impl Bytes {
    /// Returns this amount in units of 10^-9 bit, the unit of [`Rate::nanobits_in`].
    pub const fn nanobits(self) -> u128 {
        self.bits() * NS_PER_S
    }

    /// Returns the whole bytes in an amount in units of 10^-9 bit.
    pub const fn of_nanobits(amount: u128) -> Bytes {
        Bytes::new((amount / (8 * NS_PER_S)) as u64)
    }
}
