//! What the segments that have arrived show about those still missing: the state of RACK (RFC 8985,
//! section 5.2).

use aqmlab_units::{Instant, Span};

use super::news::News;
use super::sent::{REPEATED, Sent};
use crate::profile::Profile;

/// The most recently sent segment among those that have arrived, the minimum round-trip time, and the
/// reordering seen so far.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Rack {
    /// When that segment left, and its end: RACK.xmit_ts and RACK.end_seq. Both are zero until a
    /// segment has arrived.
    at: Instant,
    end: u64,
    /// The round-trip time of the segment that arrived last: RACK.rtt.
    rtt: Span,
    /// The minimum round-trip time so far: min_RTT.
    min_rtt: Span,
    /// One past the highest offset that has arrived: RACK.fack.
    highest: u64,
    /// A segment that was sent only once has arrived after a segment that was sent later:
    /// RACK.reordering_seen.
    reordered: bool,
    /// The largest distance, in segments, between the first byte of such a segment and the highest offset that had
    /// arrived before it; 0 if there is none, or it has been forgotten.
    degree: u32,
    allowance: Allowance,
}

/// The time allowed for reordering, in quarters of a round trip (RFC 8985, section 6.2, step 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Allowance {
    /// RACK.reo_wnd_mult
    quarters: u32,
    /// RACK.reo_wnd_persist
    recoveries: u32,
    /// RACK.dsack_round
    round: Option<u64>,
}

/// Number of recoveries after which the allowance returns to a quarter (RFC 8985, section 6.2, step 4).
const PERSIST: u32 = 16;

impl Rack {
    /// Creates the state after the handshake, which may have measured the round-trip time `rtt`.
    pub(super) fn new(rtt: Option<Span>) -> Self {
        Rack {
            at: Instant::ZERO,
            end: 0,
            rtt: Span::ZERO,
            min_rtt: rtt.unwrap_or(Span::MAX),
            highest: 0,
            reordered: false,
            degree: 0,
            allowance: Allowance { quarters: 1, recoveries: 0, round: None },
        }
    }

    /// Returns whether the most recently sent segment that has arrived was sent after the segment that left
    /// at `left` and ends at `end` (RACK_sent_after in RFC 8985, section 5.1).
    #[inline(always)]
    pub(super) fn is_after(&self, left: Instant, end: u64) -> bool {
        if left == self.at { self.ends_after(end) } else { left < self.at }
    }

    #[cold]
    #[inline(never)] // a branch, which is hardly ever taken, instead of two comparisons
    fn ends_after(&self, end: u64) -> bool {
        end < self.end
    }

    /// Notes the arrival of consecutive segments, from `first` to `last`, which left in this order and were
    /// sent only once. Returns the round-trip time of the last one.
    #[inline]
    pub(super) fn originals_arrived(&mut self, now: Instant, first: &Sent, last: &Sent) -> Span {
        let rtt = now - last.at();
        self.min_rtt = self.min_rtt.min(rtt);
        self.reordered |= first.end < self.highest;
        self.arrived_last(last, rtt);
        rtt
    }

    #[inline(always)]
    fn arrived_last(&mut self, segment: &Sent, rtt: Span) {
        self.highest = self.highest.max(segment.end);
        self.rtt = rtt;
        if !self.is_after(segment.at(), segment.end) {
            (self.at, self.end) = (segment.at(), segment.end);
        }
    }

    /// Notes that a segment has arrived for the first time (RFC 8985, section 6.2, steps 1 to 3). Returns
    /// its round-trip time, or `None` if its first copy may have arrived.
    #[inline]
    pub(super) fn arrived(&mut self, now: Instant, segment: &Sent, news: &mut News) -> Option<Span> {
        news.delivered += 1;
        let before = core::mem::replace(&mut news.advances_rack, true);
        if !segment.has(REPEATED) {
            if segment.end < self.highest {
                news.late = Some(news.late.map_or(segment.end, |late| late.min(segment.end)));
            }
            news.last_rtt = Some(self.originals_arrived(now, segment, segment));
            news.original = news.original.or(Some(segment.end));
            return news.last_rtt;
        }
        // RFC 8985, section 6.2, step 2: an acknowledgment that arrives less than the minimum round-trip time
        // after the latest copy left is for an earlier copy. (SACKed segments have no other sign.)
        let rtt = now - segment.at();
        if rtt < self.min_rtt {
            news.advances_rack = before;
            return None;
        }
        self.arrived_last(segment, rtt);
        Some(rtt)
    }

    /// Returns the minimum round-trip time so far.
    pub(super) fn min_rtt(&self) -> Span {
        self.min_rtt
    }

    /// Sets the round-trip time of the segment that arrived last.
    pub(super) fn set_rtt(&mut self, rtt: Span) {
        self.rtt = rtt;
    }

    /// Notes that an acknowledgment of everything below `una` reports duplicates, which increases the
    /// allowance at most once per round trip.
    pub(super) fn arrived_twice(&mut self, una: u64, sent: u64, profile: &Profile) {
        if profile.dsack_needs_reordering && !self.reordered {
            return;
        }
        if self.allowance.round.is_none_or(|round| una >= round) {
            let quarters = self.allowance.quarters.saturating_add(1);
            self.allowance = Allowance { quarters, recoveries: PERSIST, round: Some(sent) };
        }
    }

    /// Notes that the segment that begins at `from`, which has just arrived, left before others that had arrived
    /// earlier.
    pub(super) fn note_reordering(&mut self, from: u64, profile: &Profile) {
        self.reordered = true;
        let distance = self.highest.saturating_sub(from).div_ceil(u64::from(profile.mss));
        self.note_degree(distance, profile);
    }

    /// Notes that segments have arrived in another order than they left, up to this many positions apart.
    pub(super) fn note_degree(&mut self, segments: u64, profile: &Profile) {
        let most = u64::from(profile.reordering_most);
        self.degree = self.degree.max(segments.min(most) as u32);
    }

    /// Returns the number of SACKed segments above a missing one that show that it is lost: `dupthresh`, or the
    /// degree of reordering if that is larger.
    #[inline]
    pub(super) fn threshold(&self, profile: &Profile) -> u32 {
        self.degree.max(profile.dupthresh)
    }

    /// Forgets the degree of reordering.
    pub(super) fn forget_degree(&mut self) {
        self.degree = 0;
    }

    /// Notes that a recovery is over.
    pub(super) fn recovered(&mut self) {
        self.allowance.recoveries = self.allowance.recoveries.saturating_sub(1);
        if self.allowance.recoveries == 0 {
            self.allowance.quarters = 1;
        }
    }

    /// Returns the allowance for reordering (RFC 8985, section 6.2, step 4, RACK_update_reo_wnd).
    /// `sure` is true in a recovery, and when enough segments are SACKed.
    #[inline]
    pub(super) fn window(&self, sure: bool, srtt: Option<Span>) -> Span {
        if !self.reordered && sure || self.min_rtt == Span::MAX {
            return Span::ZERO;
        }
        let quarters = u64::from(self.allowance.quarters);
        self.min_rtt.saturating_mul(quarters).div(4).min(srtt.unwrap_or(Span::MAX))
    }

    /// Returns the time at which a segment that left at `left` counts as lost unless it arrives first:
    /// RFC 8985, section 6.2, step 5, with the allowance `window`.
    #[inline]
    pub(super) fn late_at(&self, left: Instant, window: Span) -> Instant {
        left.saturating_add(self.rtt + window)
    }
}
