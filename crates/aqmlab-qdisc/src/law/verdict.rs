//! What a law says of a packet.

use aqmlab_units::Bytes;

use super::ByteMode;
use crate::Reason;

/// A packet is to be notified of congestion.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Notice {
    /// [`Reason::Early`] or [`Reason::Forced`].
    pub reason: Reason,
    /// The probability, before spacing and scaling by size.
    pub pb: f64,
    /// Is RED's average at `max_th` or above? False in laws without thresholds.
    pub above_max_th: bool,
}

/// What a law says of a packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Verdict {
    /// It passes, as far as the law is concerned.
    Admit,
    /// It is to be marked or dropped.
    Notify(Notice),
}

/// The verdict of a law without memory of single packets: notified early with probability `p`, scaled by size.
#[inline]
pub(super) fn chosen(p: f64, byte_mode: ByteMode, size: Bytes, draw: impl FnOnce() -> f64) -> Verdict {
    // DEVIATES from ns-2: `u < p`, not `u <= p`, so that probability 0 never hits.
    if p > 0.0 && draw() < byte_mode.scaled(p, size) {
        Verdict::Notify(Notice { reason: Reason::Early, pb: p, above_max_th: false })
    } else {
        Verdict::Admit
    }
}
