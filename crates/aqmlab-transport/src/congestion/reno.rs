//! Additive increase by one segment per round trip, decrease by half (RFC 5681).

use super::window::{Ack, Control, Cut, Sign, Window};
use crate::profile::{Increase, Profile};

pub(super) const VERSION: u32 = 1;

/// Reno, which needs no state except the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reno;

impl Control for Reno {
    #[inline]
    fn avoid(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        match profile.increase {
            // RFC 5681, equation 3
            Increase::PerAck | Increase::SegmentPerAck => window.open(1.0 / window.cwnd()),
            Increase::ByteCounting => window.count_bytes(ack.bytes, profile),
        }
    }

    /// RFC 5681, equation 4.
    #[inline]
    fn congestion(&mut self, _sign: Sign, _window: &Window, _profile: &Profile) -> Cut {
        Cut { share: 0.5, least: 1.0, left: None }
    }
}
