//! What a receiver remembers where more than a count decides when it acknowledges (`quick_acks_again`,
//! `delayed_ack_adapts`): segments that are acknowledged each, and how long the others wait.

use aqmlab_units::{Instant, Span};

use crate::profile::Profile;

/// Gaps up to here bring the delay back to its least.
const SHORT_GAP: Span = Span::ms(20);

/// A receiver's memory of what came in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quick {
    /// So many more are acknowledged each.
    left: u32,
    /// When data came last that was not there already.
    heard: Option<Instant>,
    /// How long an acknowledgment waits, before its bound.
    delay: Span,
    /// The most that it waits: SRTT, or `delayed_ack` if that is more.
    bound: Span,
    /// The number of an acknowledgment of what came before CE changed, which is due (RFC 8257, 3.2).
    pub earlier: Option<u32>,
}

impl Quick {
    pub(crate) fn new(profile: &Profile) -> Self {
        let delay = profile.delayed_ack;
        Quick { left: 0, heard: None, delay, bound: delay, earlier: None }
    }

    /// `segments` are acknowledged each from now on, if not more are already.
    pub(crate) fn raise(&mut self, segments: u32, profile: &Profile) {
        self.left = self.left.max(segments);
        self.delay = profile.delayed_ack;
    }

    /// Data in order arrives. It begins anew after a pause above `rto`.
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

    /// Data arrives beyond a hole.
    pub(crate) fn arrives_beyond_hole(&mut self, now: Instant) {
        self.heard = Some(now);
    }

    /// Whether what has arrived is acknowledged at once.
    pub(crate) fn take(&mut self, profile: &Profile) -> bool {
        match self.left {
            0 => return false,
            1 => self.delay = profile.delayed_ack,
            _ => {}
        }
        self.left -= 1;
        true
    }

    /// The timer of a delayed acknowledgment has fired: the next waits longer.
    pub(crate) fn waited(&mut self, rto: Span) {
        self.delay = self.delay.saturating_mul(2).min(rto);
    }
}

/// How long an acknowledgment is delayed.
pub(crate) fn delay_of(quick: Option<&Quick>, profile: &Profile) -> Span {
    match quick.filter(|_| profile.delayed_ack_adapts) {
        Some(quick) => quick.delay.min(quick.bound),
        None => profile.delayed_ack,
    }
}
