//! The list of outstanding segments: when each was sent, and whether it is SACKed, lost or retransmitted.
//! Losses follow from the order of departures (RACK, RFC 8985, section 6) or from SACKed segments above
//! (IsLost, RFC 6675, section 4); the pipe is a sum of counts.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use aqmlab_units::{Instant, Span};

use super::news::News;
use super::rack::Rack;
use super::sent::{AGAIN, LOST, REPEATED, SACKED, Sent};
use crate::profile::Profile;
use crate::ranges::Ranges;

/// What an acknowledgment of segments brings that were all sent once, and of which nothing else is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plain {
    pub segments: u32,
    /// The round trips of the first of them and of the last.
    pub first: Span,
    pub last: Span,
}

/// The newly lost segments, and the time after which more will be, unless they arrive.
type Judgment = (Found, Option<Span>);

/// Number of newly lost segments.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Found {
    pub segments: u32,
    /// The retransmitted ones among them.
    pub copies: u32,
}

/// All segments outstanding, oldest first.
///
/// An acknowledgment costs the same however many there are: those that were sent once are in the order of their
/// departure, and so are the `copies` of the others, so that what is missing lies in front of `judged` and of
/// `copies`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Segments {
    /// Places in it remain the same when the first segment is acknowledged.
    list: Vec<Sent>,
    /// The place of the first outstanding segment.
    first: usize,
    /// Places before this one have segments that are SACKed or lost, or were sent again.
    judged: usize,
    /// Places before this one have no lost segment that was not sent again.
    repaired: usize,
    /// The place after the segment that was SACKed last, where the next one is likely.
    sacked_to: usize,
    /// Departure and end of each copy, some of which have arrived.
    copies: VecDeque<(Instant, u64)>,
    /// The range of the SACKed ones.
    sacked_ranges: Ranges,
    sacked: u32,
    lost: u32,
    again: u32,
    rack: Rack,
}

impl Segments {
    /// The handshake has measured a round trip, or not.
    pub(crate) fn new(rtt: Option<Span>) -> Self {
        Segments {
            list: Vec::new(),
            first: 0,
            judged: 0,
            repaired: 0,
            sacked_to: 0,
            copies: VecDeque::new(),
            sacked_ranges: Ranges::default(),
            sacked: 0,
            lost: 0,
            again: 0,
            rack: Rack::new(rtt),
        }
    }

    /// An acknowledgment of everything below `una` reports duplicates.
    pub(crate) fn arrived_twice(&mut self, una: u64, sent: u64) {
        self.rack.arrived_twice(una, sent);
    }

    /// A recovery is over.
    pub(crate) fn recovered(&mut self) {
        self.rack.recovered();
    }

    /// Records a new segment that ends at `end`.
    #[inline]
    pub(crate) fn sent(&mut self, now: Instant, end: u64) {
        if self.list.len() == self.list.capacity() {
            self.move_down();
        }
        self.list.push(Sent::new(now, end, 0));
    }

    /// Makes room, if half of the list is acknowledged: a segment then moves once at most for each that is sent.
    #[cold]
    fn move_down(&mut self) {
        if 2 * self.first >= self.list.len() {
            self.list.drain(..self.first);
            for place in [&mut self.judged, &mut self.repaired, &mut self.sacked_to] {
                *place = place.saturating_sub(self.first);
            }
            self.first = 0;
        }
    }

    /// The places of the outstanding segments from this one on.
    #[inline]
    fn places(&self, from: usize) -> core::ops::Range<usize> {
        from.max(self.first)..self.list.len()
    }

    #[inline]
    fn front(&self) -> Option<&Sent> {
        self.list.get(self.first)
    }

    /// Segments in the network: those that are neither SACKed nor lost, and copies of lost ones.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.outstanding() + self.again - self.sacked - self.lost
    }

    /// Segments that have not been acknowledged cumulatively.
    #[inline]
    pub(crate) fn outstanding(&self) -> u32 {
        (self.list.len() - self.first) as u32
    }

    /// Whether all outstanding segments are in flight, as far as is known, and none is a copy.
    #[inline]
    pub(crate) fn is_orderly(&self) -> bool {
        self.sacked | self.lost | self.again == 0
    }

    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Copies in flight.
    pub(crate) fn copies(&self) -> u32 {
        self.again
    }

    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// Everything below `una` has arrived, and nothing is SACKed: `None`, and no change, unless these are whole
    /// segments that were sent once.
    #[inline(always)]
    pub(crate) fn acknowledge_plain(&mut self, now: Instant, una: u64) -> Option<Plain> {
        let first = *self.front()?;
        if !self.sacked_ranges.is_empty() {
            return None; // a part of a segment
        }
        let (mut last, mut next) = (first, self.first);
        while let Some(segment) = self.list.get(next).filter(|segment| segment.end <= una) {
            if segment.marks() != 0 {
                return None;
            }
            (last, next) = (*segment, next + 1);
        }
        let segments = (next - self.first) as u32;
        if segments == 0 {
            return None;
        }
        self.first = next;
        let rtt = self.rack.originals_arrived(now, &first, &last);
        Some(Plain { segments, first: now - first.at(), last: rtt })
    }

    /// Everything below `una` has arrived, which was not known.
    pub(crate) fn acknowledge(&mut self, now: Instant, una: u64, news: &mut News) {
        while let Some(segment) = self.front().copied().filter(|first| first.end <= una) {
            self.first += 1;
            if segment.marks() != 0 {
                self.unmark(&segment);
                news.repeated |= segment.has(REPEATED);
                if segment.has(SACKED) {
                    continue;
                }
            }
            news.first = news.first.or(Some((now - segment.at(), !segment.has(REPEATED))));
            self.rack.arrived(now, &segment, news);
        }
        if !self.sacked_ranges.is_empty() {
            self.sacked_ranges.remove_below(una);
        }
    }

    /// Subtracts a segment that leaves the list, or changes its marks, from the counts.
    fn unmark(&mut self, segment: &Sent) {
        self.sacked -= u32::from(segment.has(SACKED));
        self.lost -= u32::from(segment.has(LOST));
        self.again -= u32::from(segment.has(AGAIN));
    }

    /// A SACK block reports that `[from, to)` has arrived. `una` and `sent` are the bounds of outstanding
    /// data.
    pub(crate) fn sack(&mut self, now: Instant, from: u64, to: u64, una: u64, sent: u64, news: &mut News) {
        let mut from = from.max(una);
        if from >= to || to > sent {
            return;
        }
        // What is known already costs nothing.
        loop {
            from = self.sacked_ranges.gap_from(from);
            if from >= to {
                return;
            }
            let end = self.sacked_ranges.end_of_gap(from).map_or(to, |end| end.min(to));
            self.sacked_ranges.insert(from, end);
            let run = self.sacked_ranges.run_of(from).expect("it has been put in");
            self.sack_new(now, (from, end), run, una, news);
            from = end;
        }
    }

    /// `[from, to)` is new; what is known now around it is the `run`, which may complete a segment at either end.
    fn sack_new(&mut self, now: Instant, (from, to): (u64, u64), run: (u64, u64), una: u64, news: &mut News) {
        let mut at = self.place_after(from);
        let mut begin = self.begin(at, una);
        while begin < to
            && let Some(segment) = self.list.get(at).copied().filter(|segment| segment.end <= run.1)
        {
            if begin >= run.0 && !segment.has(SACKED) {
                self.unmark(&segment);
                self.sacked += 1;
                self.list[at].mark(segment.marks() & REPEATED | SACKED);
                if !segment.has(REPEATED) {
                    news.first_sacked = news.first_sacked.or(Some(now - segment.at()));
                }
                self.rack.arrived(now, &segment, news);
            }
            begin = segment.end;
            at += 1;
        }
        self.sacked_to = at;
    }

    /// The place of the first segment that ends after `number`.
    #[inline]
    fn place_after(&self, number: u64) -> usize {
        let at = self.sacked_to.max(self.first);
        let ends_by = |at: usize| self.list.get(at).is_some_and(|segment| segment.end <= number);
        if at <= self.list.len() && (at == self.first || ends_by(at - 1)) && !ends_by(at) {
            return at;
        }
        self.first + self.list[self.first..].partition_point(|segment| segment.end <= number)
    }

    /// Where the segment at this place begins.
    #[inline]
    fn begin(&self, at: usize, una: u64) -> u64 {
        if at == self.first { una } else { self.list[at - 1].end }
    }

    /// The round-trip time that an acknowledgment measures; with `stamped`, copies of a segment can be
    /// distinguished, unless it arrives too soon for the latest one.
    pub(crate) fn round_trip(&self, news: &News, stamped: bool) -> Option<Span> {
        let (first, once) = news.first.unzip();
        let by_copy = || first.filter(|rtt| stamped && !self.rack.is_too_soon(*rtt));
        first.filter(|_| once == Some(true) && !news.repeated).or(news.first_sacked).or_else(by_copy)
    }

    /// When the first outstanding segment left last.
    pub(crate) fn first_left(&self) -> Option<Instant> {
        self.front().map(|first| first.at())
    }

    /// Whether one that left after the first outstanding segment has arrived: a copy, if all are in flight.
    pub(crate) fn first_is_overtaken(&self) -> bool {
        self.front().is_some_and(|first| self.rack.is_after(first.at(), first.end))
    }

    /// RFC 8985, section 6.2, steps 4 and 5: marks segments as lost that left long enough before one that has
    /// arrived. Returns their number, and the time to wait for more.
    #[inline]
    pub(crate) fn find_lost_by_time(
        &mut self,
        now: Instant,
        recovering: bool,
        srtt: Option<Span>,
        profile: &Profile,
    ) -> (Found, Option<Span>) {
        let window = self.rack.window(recovering || self.sacked >= profile.dupthresh, srtt);
        let naive = cfg!(debug_assertions).then(|| self.late_ones(now, window));
        let mut judgment = (Found::default(), None);
        self.judge_originals(now, window, &mut judgment);
        if !self.copies.is_empty() {
            self.judge_copies(now, window, &mut judgment);
        }
        debug_assert!(naive.is_none_or(|naive| naive == judgment), "the short way and the full one agree");
        judgment
    }

    /// Judges segments that were sent once, up to the first that left after the latest one that has arrived.
    #[inline]
    fn judge_originals(&mut self, now: Instant, window: Span, judgment: &mut Judgment) {
        for at in self.places(self.judged) {
            let segment = self.list[at];
            if segment.marks() == 0 {
                if !self.rack.is_after(segment.at(), segment.end) {
                    break;
                }
                self.judge(at, now, window, judgment);
            }
            if judgment.1.is_none() {
                self.judged = at + 1;
            }
        }
    }

    /// The same for copies that may be on their way.
    #[inline(never)]
    fn judge_copies(&mut self, now: Instant, window: Span, judgment: &mut Judgment) {
        let mut next = 0;
        while let Some(&(left, end)) = self.copies.get(next).filter(|copy| self.rack.is_after(copy.0, copy.1))
        {
            let waits = self.place_of_copy(left, end).is_some_and(|at| self.judge(at, now, window, judgment));
            if waits {
                next += 1;
            } else {
                self.copies.remove(next);
            }
        }
    }

    /// Judges one that left before the latest that has arrived; returns whether it may still arrive.
    #[inline]
    fn judge(&mut self, at: usize, now: Instant, window: Span, (found, wait): &mut Judgment) -> bool {
        let segment = self.list[at];
        let late_at = self.rack.late_at(segment.at(), window);
        if late_at > now {
            *wait = (*wait).max(Some(late_at - now));
            return true;
        }
        found.segments += 1;
        found.copies += u32::from(segment.has(AGAIN));
        self.mark_lost(at);
        false
    }

    /// Where the copy is that left then and ends there, unless it has arrived, is lost, or was sent again.
    fn place_of_copy(&self, left: Instant, end: u64) -> Option<usize> {
        let at = self.first + self.list[self.first..].partition_point(|segment| segment.end < end);
        let segment = self.list.get(at).filter(|segment| (segment.at(), segment.end) == (left, end))?;
        segment.may_arrive().then_some(at)
    }

    /// What [`Segments::find_lost_by_time`] finds, segment by segment as in RFC 8985.
    fn late_ones(&self, now: Instant, window: Span) -> Judgment {
        let (mut found, mut wait) = (Found::default(), None);
        let outstanding = self.list[self.first..].iter().filter(|segment| segment.may_arrive());
        for segment in outstanding.filter(|segment| self.rack.is_after(segment.at(), segment.end)) {
            let late_at = self.rack.late_at(segment.at(), window);
            if late_at > now {
                wait = wait.max(Some(late_at - now));
            } else {
                found.segments += 1;
                found.copies += u32::from(segment.has(AGAIN));
            }
        }
        (found, wait)
    }

    /// IsLost of RFC 6675, section 4, in segments: `dupthresh` of them SACKed above. The number of newly lost
    /// segments.
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

    fn mark_lost(&mut self, at: usize) {
        let segment = self.list[at];
        self.unmark(&segment);
        self.lost += 1;
        self.list[at].mark(segment.marks() & REPEATED | LOST);
        self.repaired = self.repaired.min(at);
    }

    /// The first segment is lost, as duplicate ACKs or a partial ACK say.
    pub(crate) fn find_first_lost(&mut self) -> Found {
        if self.front().is_none_or(|first| first.has(LOST)) {
            return Found::default();
        }
        self.mark_lost(self.first);
        self.limit_duplicates();
        Found { segments: 1, copies: 0 }
    }

    /// A duplicate ACK counts as one segment that has arrived, of those that are not lost; returns how many it was.
    pub(crate) fn count_duplicate(&mut self) -> u32 {
        let before = self.sacked;
        self.sacked += 1;
        self.limit_duplicates();
        self.sacked - before
    }

    /// `acked` segments have left the list: one of them was missing, and the others account for as many duplicate
    /// ACKs. Returns how many arrive now.
    pub(crate) fn settle_duplicates(&mut self, acked: u32) -> u32 {
        let counted = self.sacked;
        self.sacked -= counted.min(acked.saturating_sub(1));
        self.limit_duplicates();
        acked.saturating_sub(counted).max(1)
    }

    /// Segments that duplicate ACKs stand for are not known any more.
    pub(crate) fn forget_duplicates(&mut self) {
        self.sacked = 0;
    }

    /// One outstanding segment at least is missing.
    fn limit_duplicates(&mut self) {
        self.sacked = self.sacked.min(self.outstanding().saturating_sub(self.lost.max(1)));
    }

    /// The retransmission timer has fired: everything that is not SACKed is lost; with RACK, only segments
    /// that are already late, and the first one (RFC 8985, section 6.3).
    pub(crate) fn find_lost_at_timeout(&mut self, now: Instant, rack: bool) {
        for at in self.places(0) {
            let segment = self.list[at];
            let late = !rack || self.rack.late_at(segment.at(), Span::ZERO) <= now;
            if !segment.has(SACKED) && (at == self.first || late) {
                self.mark_lost(at);
            }
        }
    }

    /// A timeout was spurious: segments that were not retransmitted are in flight.
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

    /// The position in the list of the first lost segment that is not in flight again.
    pub(crate) fn first_lost(&self) -> Option<usize> {
        if self.lost == self.again {
            return None;
        }
        self.places(self.repaired).find(|at| self.list[*at].marks() & (LOST | AGAIN) == LOST)
    }

    /// The same; the next search begins there.
    #[inline]
    pub(crate) fn next_lost(&mut self) -> Option<usize> {
        let place = self.first_lost();
        self.repaired = place.unwrap_or(self.repaired);
        place
    }

    /// The range of the segment at this position.
    pub(crate) fn bounds(&self, at: usize, una: u64) -> (u64, u64) {
        (self.begin(at, una), self.list[at].end)
    }

    /// The segment at this position is retransmitted up to `end`, which is lower than before if segments have
    /// become smaller.
    pub(crate) fn sent_again(&mut self, now: Instant, at: usize, end: u64) {
        let segment = self.list[at];
        if end < segment.end {
            self.list.insert(at + 1, segment);
            self.sacked += u32::from(segment.has(SACKED));
            self.lost += u32::from(segment.has(LOST));
            self.again += u32::from(segment.has(AGAIN));
            self.judged = self.judged.min(at);
        }
        // The last data may leave with the FIN that followed it.
        while let Some(next) = self.list.get(at + 1).copied().filter(|next| next.end <= end) {
            self.unmark(&next);
            self.list.remove(at + 1);
            self.judged = self.judged.min(at);
            self.repaired = self.repaired.min(at);
        }
        self.again += u32::from(!segment.has(AGAIN));
        self.list[at] = Sent::new(now, end, segment.marks() | AGAIN | REPEATED);
        self.repaired += usize::from(self.repaired == at);
        self.list_copy((now, end));
    }

    /// A copy leaves; those before it that have arrived are forgotten.
    fn list_copy(&mut self, copy: (Instant, u64)) {
        while self.copies.front().is_some_and(|(left, end)| self.place_of_copy(*left, *end).is_none()) {
            self.copies.pop_front();
        }
        let later = self.copies.iter().rev().take_while(|other| **other > copy).count();
        self.copies.push_back(copy);
        if later > 0 {
            let end = self.copies.len();
            self.copies.make_contiguous()[end - 1 - later..].rotate_right(1);
        }
    }

    /// Whether this is the place of the first outstanding segment.
    pub(crate) fn is_first(&self, at: usize) -> bool {
        at == self.first
    }

    /// The place of the last segment that is not SACKed.
    pub(crate) fn last(&self) -> Option<usize> {
        self.places(0).rfind(|at| !self.list[*at].has(SACKED))
    }
}
