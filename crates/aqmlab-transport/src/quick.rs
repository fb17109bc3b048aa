//! State of a receiver that uses more than a count to decide when it acknowledges
//! (`quick_acks_again`, `delayed_ack_adapts`): the number of segments acknowledged singly, and the
//! delay of the others.

use aqmlab_units::{Instant, Span};

use crate::profile::Profile;

/// Longest gap that brings the delay back to its minimum.
const SHORT_GAP: Span = Span::ms(20);

/// A receiver's memory of data in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quick {
    /// Number of further segments acknowledged singly.
    left: u32,
    /// Time at which new data last came.
    heard: Option<Instant>,
    /// Delay of an acknowledgment, before its bound.
    delay: Span,
    /// Maximum delay: SRTT, or `delayed_ack` if that is longer.
    bound: Span,
    /// The number of the acknowledgment due for data before a change of CE (RFC 8257, 3.2).
    pub earlier: Option<u32>,
}

impl Quick {
    pub(crate) fn new(profile: &Profile) -> Self {
        let delay = profile.delayed_ack;
        Quick { left: 0, heard: None, delay, bound: delay, earlier: None }
    }

    /// Makes the receiver acknowledge at least the next `segments` segments singly.
    pub(crate) fn raise(&mut self, segments: u32, profile: &Profile) {
        self.left = self.left.max(segments);
        self.delay = profile.delayed_ack;
    }

    /// Takes in data in order. The state is reset after a pause above `rto`.
    pub(crate) fn arrives(&mut self, now: Instant, rto: Span, srtt: Option<Span>, profile: &Profile) {
        let gap = self.heard.map(|heard| now.saturating_since(heard));
        self.heard = Some(now);
        self.bound = srtt.unwrap_or(Span::MAX).max(profile.delayed_ack);
        match gap {
            None => self.raise(profile.quick_acks, profile),
            Some(gap) if gap <= SHORT_GAP => self.delay = self.delay.div(2) + profile.delayed_ack.div(2),
            Some(gap) if gap < self.delay => self.delay = (self.delay.div(2) + gap).min(rto),
            Some(gap) if gap > rto => self.left = self.left.max(profile.quick_acks_again),
            Some(_) => {}
        }
    }

    /// Takes in data beyond a hole.
    pub(crate) fn arrives_beyond_hole(&mut self, now: Instant) {
        self.heard = Some(now);
    }

    /// Returns whether the data that has arrived is acknowledged at once.
    pub(crate) fn take(&mut self, profile: &Profile) -> bool {
        match self.left {
            0 => return false,
            1 => self.delay = profile.delayed_ack,
            _ => {}
        }
        self.left -= 1;
        true
    }

    /// Notes that the timer of a delayed acknowledgment has fired: the next one waits longer.
    pub(crate) fn waited(&mut self, rto: Span) {
        self.delay = self.delay.saturating_mul(2).min(rto);
    }
}

/// Returns the delay of an acknowledgment.
pub(crate) fn delay_of(quick: Option<&Quick>, profile: &Profile) -> Span {
    match quick.filter(|_| profile.delayed_ack_adapts) {
        Some(quick) => quick.delay.min(quick.bound),
        None => profile.delayed_ack,
    }
}
