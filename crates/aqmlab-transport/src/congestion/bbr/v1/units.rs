//! Units in which the model is kept, as observed on Linux 6.1.

use aqmlab_units::{Instant, Span};

/// Rates are in segments per microsecond, in steps of 2^-24.
pub(super) const RATE_STEPS: u64 = 1 << 24;
/// Gains are in steps of 1/256.
pub(super) const UNIT: u64 = 256;

pub(super) fn whole_us(span: Span) -> u64 {
    span.as_ns() / Span::us(1).as_ns()
}

pub(super) fn whole_ms(at: Instant) -> u64 {
    at.as_ns() / Span::ms(1).as_ns()
}
