//! A law's decision on a packet, and the scaling of a probability by packet size.

use aqmlab_units::Bytes;

use crate::{Ecn, Reason};

/// A decision to notify a packet's sender of congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// [`Reason::Early`] or [`Reason::Forced`].
    pub reason: Reason,
    /// Whether the notice may be given as a mark if ECN is on; if not, the packet is lost even if
    /// it is ECN-capable.
    pub markable: bool,
}

impl Notice {
    /// An early notice, given as a mark if possible.
    pub const EARLY: Notice = Notice { reason: Reason::Early, markable: true };

    /// Returns whether a packet with this ECN field is marked instead of lost, in a queue with ECN
    /// on or off.
    #[inline]
    pub const fn marks(self, ecn_on: bool, ecn: Ecn) -> bool {
        ecn_on && self.markable && ecn.is_capable()
    }
}

/// A law's decision on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The law lets it pass.
    Admit,
    /// The packet must be marked or dropped.
    Notify(Notice),
}

/// Decides without memory of earlier packets: notifies early with probability `p`, scaled by size.
#[inline]
pub(super) fn chosen(p: f64, byte_mode: ByteMode, size: Bytes, draw: impl FnOnce() -> f64) -> Decision {
    // DEVIATES from ns-2: `u < p`, not `u <= p`, so that no packet is chosen when the probability
    // is 0.
    if p > 0.0 && draw() < byte_mode.scaled(p, size) {
        Decision::Notify(Notice::EARLY)
    } else {
        Decision::Admit
    }
}

/// The scaling of a probability by packet size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByteMode {
    /// No scaling (RFC 7141's advice).
    Off,
    /// Multiplies the probability by the packet size divided by the largest packet size, before
    /// spacing if there is any (RED's paper).
    Paper {
        /// the largest packet
        largest: Bytes,
    },
    /// Multiplies the probability by the packet size divided by the mean size, after spacing if
    /// there is any (ns-2). RED's count is then the number of bytes divided by the mean size,
    /// rounded down.
    Ns2 {
        /// the mean packet
        mean: Bytes,
    },
}

impl ByteMode {
    /// Scales `pb` for a packet of `size` if this mode scales before spacing, and otherwise returns it
    /// unchanged.
    #[inline]
    pub(super) fn before_spacing(self, pb: f64, size: Bytes) -> f64 {
        match self {
            ByteMode::Paper { largest } => (pb * size.as_f64() / largest.as_f64()).min(1.0),
            ByteMode::Off | ByteMode::Ns2 { .. } => pb,
        }
    }

    /// Scales `pa` for a packet of `size` if this mode scales after spacing, and otherwise returns it
    /// unchanged. A probability of 1 is not scaled.
    #[inline]
    pub(super) fn after_spacing(self, pa: f64, size: Bytes) -> f64 {
        match self {
            ByteMode::Ns2 { mean } if pa < 1.0 => pa * size.as_f64() / mean.as_f64(),
            ByteMode::Off | ByteMode::Paper { .. } | ByteMode::Ns2 { .. } => pa,
        }
    }

    /// Returns the probability `p` of a law without spacing, scaled for a packet of `size`.
    #[inline]
    pub fn scaled(self, p: f64, size: Bytes) -> f64 {
        match self {
            ByteMode::Off => p,
            ByteMode::Paper { largest: reference } | ByteMode::Ns2 { mean: reference } => {
                (p * size.as_f64() / reference.as_f64()).min(1.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_need_ecn_a_notice_that_lets_them_and_a_capable_packet() {
        let lost = Notice { markable: false, ..Notice::EARLY };
        for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            assert!(Notice::EARLY.marks(true, ecn) && !Notice::EARLY.marks(false, ecn));
            assert!(!lost.marks(true, ecn));
        }
        assert!(!Notice::EARLY.marks(true, Ecn::NotEct));
    }
}
