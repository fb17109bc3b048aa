//! State of a receiver whose acknowledgments depend on more than a count of segments
//! (`quick_acks_again`, `delayed_ack_adapts`): how many segments it acknowledges individually, and
//! how long it delays the other acknowledgments.

use aqmlab_units::{Instant, Span};

use crate::profile::Profile;
use crate::ticks::{last_tick, whole_ticks};

/// Longest gap between segments after which the delay moves halfway to its minimum.
const SHORT_GAP: Span = Span::ms(20);

/// What a receiver remembers about data that arrived in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quick {
    /// Number of further segments to be acknowledged individually.
    left: u32,
    /// Number of segments counted so far towards `quick_acks_growing`.
    grown: u32,
    /// Time at which new data last arrived.
    heard: Option<Instant>,
    /// Delay of the next delayed acknowledgment, before the bound is applied.
    delay: Span,
    /// Maximum delay: SRTT, or `delayed_ack` if that is longer.
    bound: Span,
    /// Reports of a hole, which may wait for further reports.
    reports: Reports,
    /// The acknowledgment number due for the data that arrived before a change of CE (RFC 8257,
    /// 3.2).
    pub earlier: Option<u32>,
}

/// Reports of data beyond a hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Reports {
    /// The acknowledgment number that they carry.
    of: u64,
    /// Number of reports that left immediately.
    prompt: u32,
    /// Number of reports that wait.
    waiting: u32,
    /// Time at which the waiting reports leave, or have left.
    until: Instant,
}

/// Number of reports, starting with the first report of a hole, that never wait, because they start
/// a fast retransmit.
const PROMPT: u32 = 3;

impl Quick {
    pub(crate) fn new(profile: &Profile) -> Self {
        let delay = profile.delayed_ack;
        let reports = Reports { of: 0, prompt: 0, waiting: 0, until: Instant::ZERO };
        Quick { left: 0, grown: 0, heard: None, delay, bound: delay, reports, earlier: None }
    }

    /// Returns the time until which a report of data beyond the hole at `next` waits, or `None` if
    /// it does not wait. `fresh` means that no other acknowledgment is waiting.
    pub(crate) fn report_waits(
        &mut self,
        now: Instant,
        next: u64,
        fresh: bool,
        srtt: Option<Span>,
        profile: &Profile,
    ) -> Option<Instant> {
        let reports = &mut self.reports;
        if fresh {
            reports.waiting = 0;
        }
        if reports.waiting >= profile.sack_delay_most {
            return None;
        }
        if reports.of != next {
            (reports.of, reports.prompt) = (next, 0);
        }
        if reports.prompt < PROMPT {
            reports.prompt += 1;
            return None;
        }
        reports.waiting += 1;
        if reports.waiting == 1 {
            let delay = srtt.map_or(profile.sack_delay, |srtt| profile.sack_delay.min(srtt.div(20)));
            reports.until = now + delay + profile.sack_delay_slack;
        }
        Some(reports.until)
    }

    /// Returns whether a report that has waited leaves at this time.
    pub(crate) fn reports_at(&self, at: Instant) -> bool {
        self.reports.waiting > 0 && self.reports.until == at
    }

    /// Makes the receiver acknowledge at least the next `segments` segments individually.
    pub(crate) fn raise(&mut self, segments: u32, profile: &Profile) {
        self.left = self.left.max(segments);
        self.delay = profile.delayed_ack;
    }

    /// Processes new data that has arrived in order. After a pause longer than `rto`, segments are again
    /// acknowledged individually.
    pub(crate) fn arrives(&mut self, now: Instant, rto: Span, srtt: Option<Span>, profile: &Profile) {
        let (tick, rto) = (profile.timer_tick, whole_ticks(rto, profile.timer_tick));
        let now = last_tick(now, tick);
        let gap = self.heard.map(|heard| now.saturating_since(heard));
        self.heard = Some(now);
        self.bound = srtt.map_or(Span::MAX, |srtt| whole_ticks(srtt, tick)).max(profile.delayed_ack);
        match gap {
            None => self.raise(profile.quick_acks, profile),
            Some(gap) if gap <= SHORT_GAP => self.delay = half(self.delay, tick) + profile.delayed_ack.div(2),
            Some(gap) if gap < self.delay => self.delay = (half(self.delay, tick) + gap).min(rto),
            Some(gap) if gap > rto => self.left = self.left.max(profile.quick_acks_again),
            Some(_) => {}
        }
    }

    /// Processes data beyond a hole.
    pub(crate) fn arrives_beyond_hole(&mut self, now: Instant, profile: &Profile) {
        self.heard = Some(last_tick(now, profile.timer_tick));
    }

    /// Counts a segment that would let the receive window of a Linux host grow, until
    /// `quick_acks_growing` segments are counted. If the number of segments still to be
    /// acknowledged individually is even, adds one to it, so that the acknowledgment for this data
    /// leaves that number unchanged.
    pub(crate) fn grows(&mut self, profile: &Profile) {
        if self.grown < profile.quick_acks_growing {
            self.grown += 1;
            self.left |= 1;
        }
    }

    /// Returns whether the data that has arrived is acknowledged immediately.
    pub(crate) fn take(&mut self, profile: &Profile) -> bool {
        match self.left {
            0 => return false,
            1 => self.delay = profile.delayed_ack,
            _ => {}
        }
        self.left -= 1;
        true
    }

    /// Notes that the timer of a delayed acknowledgment has fired, after which the next such
    /// acknowledgment waits longer.
    pub(crate) fn waited(&mut self, rto: Span, profile: &Profile) {
        self.delay = self.delay.saturating_mul(2).min(whole_ticks(rto, profile.timer_tick));
    }
}

/// Returns half of a delay, rounded down to whole ticks of a clock.
fn half(delay: Span, tick: Span) -> Span {
    last_tick(Instant::ZERO + delay.div(2), tick) - Instant::ZERO
}

/// Returns the delay of an acknowledgment.
pub(crate) fn delay_of(quick: Option<&Quick>, profile: &Profile) -> Span {
    match quick.filter(|_| profile.delayed_ack_adapts) {
        Some(quick) => quick.delay.min(quick.bound),
        None => profile.delayed_ack,
    }
}
