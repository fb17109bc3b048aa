//! Which notices become marks and which become drops.

use crate::law::Notice;
use crate::{Ecn, Reason};

/// Where a law's notices mark ECN-capable packets; everywhere else, and for packets that are not capable, a
/// notice is a drop.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum EcnPolicy {
    /// Never: ECN is off.
    Never,
    /// While RED's average is below `max_th`; above it packets are dropped, in the gentle region too
    /// (RFC 3168, section 7).
    BelowMaxTh,
    /// Early notices whose probability before spacing is below this (ns-2.35 `mark_p_`).
    ProbabilityBelow(f64),
    /// Always: only an overflow drops ECN-capable packets (Feng 1999; Linux without `harddrop`).
    Always,
}

impl EcnPolicy {
    /// Is a packet with this ECN field marked (true) or dropped?
    #[inline]
    pub fn marks(self, notice: Notice, ecn: Ecn) -> bool {
        ecn.is_capable()
            && match self {
                EcnPolicy::Never => false,
                EcnPolicy::BelowMaxTh => !notice.above_max_th,
                EcnPolicy::ProbabilityBelow(mark_p) => notice.reason == Reason::Early && notice.pb < mark_p,
                EcnPolicy::Always => true,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_region_ends_at_its_own_edge() {
        let early = |pb, above_max_th| Notice { reason: Reason::Early, pb, above_max_th };
        let forced = Notice { reason: Reason::Forced, pb: 1.0, above_max_th: true };
        // Inside the range, inside with a high max_p, gentle region with a low max_p, beyond.
        let notices = [early(0.05, false), early(0.1, false), early(0.05, true), forced];
        let marks = |policy: EcnPolicy| notices.map(|n| policy.marks(n, Ecn::Ect0));
        assert_eq!(marks(EcnPolicy::Never), [false; 4]);
        assert_eq!(marks(EcnPolicy::BelowMaxTh), [true, true, false, false]);
        assert_eq!(marks(EcnPolicy::ProbabilityBelow(0.1)), [true, false, true, false]);
        assert_eq!(marks(EcnPolicy::Always), [true; 4]);
        assert!(!EcnPolicy::Always.marks(early(0.05, false), Ecn::NotEct));
        assert!(EcnPolicy::BelowMaxTh.marks(early(0.05, false), Ecn::Ce));
    }
}
