//! Amounts of data: bytes and packets.

use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(inline))]
pub struct Bytes(u64);

/// A number of packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(inline))]
pub struct Packets(u64);

macro_rules! amount {
    ($name:ident, $what:literal) => {
        impl $name {
            /// Zero.
            pub const ZERO: $name = $name(0);
            /// The largest number, meaning "no limit".
            pub const MAX: $name = $name(u64::MAX);

            #[doc = concat!("`n` ", $what, ".")]
            pub const fn new(n: u64) -> Self {
                $name(n)
            }

            #[doc = concat!("The count of ", $what, ".")]
            pub const fn get(self) -> u64 {
                self.0
            }

            #[doc = concat!("The count of ", $what, " as a float, for laws and plots.")]
            pub fn as_f64(self) -> f64 {
                self.0 as f64
            }

            /// Returns `self - other`, or zero if `other` is larger.
            pub const fn saturating_sub(self, other: $name) -> $name {
                $name(self.0.saturating_sub(other.0))
            }

            /// Returns whether this amount is zero.
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }
        }

        impl Add for $name {
            type Output = $name;
            fn add(self, other: $name) -> $name {
                $name(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: $name) {
                self.0 += other.0;
            }
        }

        impl Sub for $name {
            type Output = $name;
            fn sub(self, other: $name) -> $name {
                $name(self.0 - other.0)
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: $name) {
                self.0 -= other.0;
            }
        }

        impl Mul<u64> for $name {
            type Output = $name;
            fn mul(self, factor: u64) -> $name {
                $name(self.0 * factor)
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = $name>>(items: I) -> $name {
                items.fold($name::ZERO, |a, b| a + b)
            }
        }
    };
}

amount!(Bytes, "bytes");
amount!(Packets, "packets");

impl Bytes {
    /// Returns the number of bits in this many bytes.
    pub const fn bits(self) -> u128 {
        self.0 as u128 * 8
    }
}
