//! Determines which segments of the list are lost, and which of them is retransmitted next.

use aqmlab_units::{Instant, Span};

use super::{Found, Segments};
use crate::profile::Profile;
use crate::recovery::sent::{AGAIN, LOST, REPEATED, SACKED, Sent};

/// The number of newly lost segments, and the latest time at which a further segment counts as lost
/// unless it arrives first; that time is zero if no further segment may count as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Judgment {
    found: Found,
    late_at: Instant,
}

impl Judgment {
    const NOTHING: Judgment = Judgment { found: Found { segments: 0, copies: 0 }, late_at: Instant::ZERO };

    /// Returns whether a segment is lost, given that another one, which left later, has already arrived.
    #[inline]
    fn includes(&mut self, segment: Sent, late_at: Instant, now: Instant) -> bool {
        if late_at > now {
            self.late_at = self.late_at.max(late_at);
            return false;
        }
        self.found.segments += 1;
        self.found.copies += u32::from(segment.has(AGAIN));
        true
    }
}

impl Segments {
    /// RFC 8985, section 6.2, steps 4 and 5: marks as lost the segments that left long enough before one
    /// that has arrived. Returns their number, and how long to wait before looking for more.
    #[inline(always)]
    pub(crate) fn find_lost_by_time(
        &mut self,
        now: Instant,
        recovering: bool,
        srtt: Option<Span>,
        profile: &Profile,
    ) -> (Found, Option<Span>) {
        let window = self.rack.window(recovering || self.sacked >= self.rack.threshold(profile), srtt);
        let naive = cfg!(debug_assertions).then(|| self.late_ones(now, window));
        let mut judgment = Judgment::NOTHING;
        self.judge_originals(now, window, &mut judgment);
        if self.copies.front().is_some_and(|copy| self.rack.is_after(copy.0, copy.1)) {
            self.judge_copies(now, window, &mut judgment);
        }
        debug_assert!(naive.is_none_or(|naive| naive == judgment), "the fast and the full path must agree");
        let Judgment { found, late_at } = judgment;
        (found, (late_at > now).then(|| late_at - now))
    }

    /// Decides, in order, which of the segments that were sent only once are lost. Stops at the first of them
    /// that left after the most recently sent segment that has arrived.
    #[inline(always)]
    fn judge_originals(&mut self, now: Instant, window: Span, judgment: &mut Judgment) {
        let mut at = self.judged.max(self.first);
        while let Some(segment) = self.list.get(at) {
            if segment.marks() == 0 {
                if !self.rack.is_after(segment.at(), segment.end) {
                    break;
                }
                self.judge(at, now, window, judgment);
            }
            at += 1;
            if judgment.late_at == Instant::ZERO {
                self.judged = at;
            }
        }
    }

    /// Decides which of the copies that may still arrive are lost.
    #[inline(never)]
    fn judge_copies(&mut self, now: Instant, window: Span, judgment: &mut Judgment) {
        let mut next = 0;
        while let Some(&(left, end)) = self.copies.get(next).filter(|copy| self.rack.is_after(copy.0, copy.1))
        {
            let waits = self.place_of_copy(left, end).is_some_and(|at| self.judge(at, now, window, judgment));
            match next {
                _ if waits => next += 1,
                0 => _ = self.copies.pop_front(), // the usual case, and faster than `remove`
                _ => _ = self.copies.remove(next),
            }
        }
    }

    /// Decides whether a segment or copy is lost, given that another one, which left later, has already
    /// arrived; returns whether it may still arrive.
    #[inline]
    fn judge(&mut self, at: usize, now: Instant, window: Span, judgment: &mut Judgment) -> bool {
        let late_at = self.rack.late_at(self.list[at].at(), window);
        let lost = judgment.includes(self.list[at], late_at, now);
        if lost {
            self.mark_lost(at);
        }
        !lost
    }

    /// Returns the position of the copy that left at `left` and ends at `end`; `None` if it has arrived,
    /// is lost, or was sent again.
    fn place_of_copy(&self, left: Instant, end: u64) -> Option<usize> {
        let ends_before = |segment: &Sent| segment.end < end;
        let at = match self.front() {
            Some(first) if ends_before(first) => {
                self.first + self.list[self.first..].partition_point(ends_before)
            }
            _ => self.first, // often it is the first segment that was sent again
        };
        let segment = self.list.get(at).filter(|segment| (segment.at(), segment.end) == (left, end))?;
        segment.may_arrive().then_some(at)
    }

    /// Returns the result that [`Segments::find_lost_by_time`] should have, computed segment by
    /// segment as in RFC 8985.
    fn late_ones(&self, now: Instant, window: Span) -> Judgment {
        let mut judgment = Judgment::NOTHING;
        let outstanding = self.list[self.first..].iter().filter(|segment| segment.may_arrive());
        for segment in outstanding.filter(|segment| self.rack.is_after(segment.at(), segment.end)) {
            judgment.includes(*segment, self.rack.late_at(segment.at(), window), now);
        }
        judgment
    }

    /// IsLost of RFC 6675, section 4, in segments: marks as lost each segment above which `dupthresh`
    /// segments are SACKed. Returns the number of newly lost segments.
    pub(crate) fn find_lost_by_count(&mut self, dupthresh: u32) -> Found {
        let (mut above, mut found) = (self.sacked, Found::default());
        for at in self.places(0) {
            if above < dupthresh {
                break;
            }
            let segment = self.list[at];
            above -= u32::from(segment.has(SACKED));
            if !segment.has(SACKED | LOST) {
                self.mark_lost(at);
                found.segments += 1;
            }
        }
        found
    }

    /// Declares lost each segment of more than `mss` sequence numbers that is not SACKed.
    pub(crate) fn find_larger(&mut self, una: u64, mss: u32) {
        for at in self.places(0) {
            let (from, to) = self.bounds(at, una);
            if to - from > u64::from(mss) && !self.list[at].has(SACKED) {
                self.mark_lost(at);
            }
        }
    }

    /// Handles the expiry of the retransmission timer: declares lost everything that is not SACKed; with
    /// RACK, declares lost only the first segment and those that are already late (RFC 8985, section 6.3).
    pub(crate) fn find_lost_at_timeout(&mut self, now: Instant, rack: bool) {
        for at in self.places(0) {
            let segment = self.list[at];
            let late = !rack || self.rack.late_at(segment.at(), Span::ZERO) <= now;
            if !segment.has(SACKED) && (at == self.first || late) {
                self.mark_lost(at);
            }
        }
    }

    #[inline(never)]
    pub(super) fn mark_lost(&mut self, at: usize) {
        let segment = self.list[at];
        self.unmark(&segment);
        self.lost += 1;
        if let Some(rates) = &mut self.rates {
            let from = if at > 0 { self.list[at - 1].end } else { segment.end.saturating_sub(1) };
            rates.declared_lost(from.min(segment.end.saturating_sub(1)), segment.end);
        }
        self.list[at].mark(segment.marks() & REPEATED | LOST);
        self.repaired = self.repaired.min(at);
    }

    /// Handles a spurious timeout or reduction: segments that were not retransmitted are in flight
    /// after all.
    pub(crate) fn none_lost(&mut self) {
        let outstanding = &mut self.list[self.first..];
        for segment in outstanding.iter_mut().filter(|segment| segment.marks() & (LOST | AGAIN) == LOST) {
            segment.mark(segment.marks() & !LOST);
            self.lost -= 1;
        }
        self.judged = 0;
        let copies = outstanding.iter().filter(|segment| segment.has(REPEATED) && segment.may_arrive());
        self.copies = copies.map(|segment| (segment.at(), segment.end)).collect();
        self.copies.make_contiguous().sort_unstable();
    }

    /// Returns the position in the list of the first lost segment that is not in flight again.
    pub(crate) fn first_lost(&self) -> Option<usize> {
        if self.lost == self.again {
            return None;
        }
        self.places(self.repaired).find(|at| self.list[*at].marks() & (LOST | AGAIN) == LOST)
    }

    /// Does the same as `first_lost`, and lets the next search begin at the position found.
    #[inline]
    pub(crate) fn next_lost(&mut self) -> Option<usize> {
        let place = self.first_lost();
        self.repaired = place.unwrap_or(self.repaired);
        place
    }

    /// Records that a copy is leaving, and forgets the earliest copies that have arrived, are lost
    /// or were sent again.
    pub(super) fn list_copy(&mut self, copy: (Instant, u64)) {
        while self.copies.front().is_some_and(|(left, end)| self.place_of_copy(*left, *end).is_none()) {
            self.copies.pop_front();
        }
        let in_order = self.copies.back().is_none_or(|last| *last <= copy);
        self.copies.push_back(copy);
        if !in_order {
            self.sort_latest_copy();
        }
    }

    /// Moves the copy listed last to its place in the order of departure.
    #[cold]
    #[inline(never)]
    fn sort_latest_copy(&mut self) {
        let copies = self.copies.make_contiguous();
        let Some((copy, others)) = copies.split_last() else { return };
        let place = others.partition_point(|other| other <= copy);
        copies[place..].rotate_right(1);
    }
}
