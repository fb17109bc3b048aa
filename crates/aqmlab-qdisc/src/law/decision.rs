//! What a law says of a packet.

use aqmlab_units::Bytes;

use super::ByteMode;
use crate::{Ecn, Reason};

/// A packet is to be notified of congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// [`Reason::Early`] or [`Reason::Forced`].
    pub reason: Reason,
    /// Whether it may be a mark where ECN is on. Else the packet is lost, ECN-capable or not.
    pub markable: bool,
}

impl Notice {
    /// An early notice, a mark where that can be.
    pub const EARLY: Notice = Notice { reason: Reason::Early, markable: true };

    /// In a queue with ECN on or off: is a packet with this ECN field marked, and not lost?
    #[inline]
    pub const fn marks(self, ecn_on: bool, ecn: Ecn) -> bool {
        ecn_on && self.markable && ecn.is_capable()
    }
}

/// What a law says of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It passes, as far as the law is concerned.
    Admit,
    /// It is to be marked or dropped.
    Notify(Notice),
}

/// The decision of a law without memory of single packets: notified early with probability `p`, scaled by size.
#[inline]
pub(super) fn chosen(p: f64, byte_mode: ByteMode, size: Bytes, draw: impl FnOnce() -> f64) -> Decision {
    // DEVIATES from ns-2: `u < p`, not `u <= p`, so that probability 0 never hits.
    if p > 0.0 && draw() < byte_mode.scaled(p, size) {
        Decision::Notify(Notice::EARLY)
    } else {
        Decision::Admit
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
