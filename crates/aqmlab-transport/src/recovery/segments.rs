//! The list of outstanding segments: when each was sent, and whether it is SACKed, lost or retransmitted.
//! Losses follow from the order of departures (RACK, RFC 8985, section 6) or from SACKed segments above
//! (IsLost, RFC 6675, section 4); the pipe is a sum of counts.

use alloc::collections::VecDeque;

use aqmlab_units::{Instant, Span};

use crate::profile::Profile;
use crate::ranges::Ranges;

/// A segment outstanding, in two words, because a flow has many. It begins where the one before it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sent {
    /// One past its last offset.
    end: u64,
    /// When it left last, in nanoseconds, shifted by [`MARKS`] bits, and its marks.
    left: u64,
}

/// Bits of the marks: a run has 36 years for its instants.
const MARKS: u32 = 4;

/// The other side has it.
const SACKED: u8 = 1;
/// It is considered lost. Does not change when it is retransmitted.
const LOST: u8 = 1 << 1;
/// It was retransmitted, and that copy is in flight.
const AGAIN: u8 = 1 << 2;
/// It has been retransmitted: Segment.retransmitted.
const REPEATED: u8 = 1 << 3;

impl Sent {
    #[inline]
    fn new(at: Instant, end: u64, marks: u8) -> Self {
        debug_assert!(at.as_ns() >> (u64::BITS - MARKS) == 0, "a run is shorter than 36 years");
        Sent { end, left: at.as_ns() << MARKS | u64::from(marks) }
    }

    /// When it left last: Segment.xmit_ts.
    #[inline]
    fn at(&self) -> Instant {
        Instant::from_ns(self.left >> MARKS)
    }

    #[inline]
    fn marks(&self) -> u8 {
        self.left as u8 & ((1 << MARKS) - 1)
    }

    fn mark(&mut self, marks: u8) {
        *self = Sent::new(self.at(), self.end, marks);
    }

    fn has(&self, marks: u8) -> bool {
        self.marks() & marks != 0
    }

    /// Whether it is neither SACKed nor lost, or a copy of it is on its way.
    fn may_arrive(&self) -> bool {
        !self.has(SACKED) && self.marks() & (LOST | AGAIN) != LOST
    }

    /// Whether it left before `other`: RACK_sent_after (RFC 8985, section 5.1), reversed.
    fn left_before(&self, other: &Latest) -> bool {
        (self.at(), self.end) < (other.at, other.end)
    }
}

/// The most recently sent segment of those that have arrived: RACK.xmit_ts, RACK.end_seq and RACK.rtt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Latest {
    at: Instant,
    end: u64,
    rtt: Span,
}

/// What an acknowledgment brought.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct News {
    /// Segments that have arrived, cumulatively acknowledged or SACKed for the first time.
    pub delivered: u32,
    /// The round trip of the first segment that is acknowledged cumulatively and was not SACKed before, and whether
    /// it was sent once.
    pub first: Option<(Span, bool)>,
    /// The same for the first that is SACKed and was sent once.
    pub first_sacked: Option<Span>,
    /// Some of the cumulatively acknowledged segments were retransmitted.
    pub repeated: bool,
    /// The round trip of the latest segment that is new and was sent once.
    pub last_rtt: Option<Span>,
    /// The least end of a segment that was sent only once.
    pub original: Option<u64>,
    /// Sequence numbers that are acknowledged cumulatively, bytes by which the window may open, an ECN echo.
    pub acked: u32,
    pub opens: u32,
    pub echo: bool,
    /// A duplicate arrival is reported (RFC 2883).
    pub twice: bool,
    /// The first copy of a retransmitted segment has arrived.
    pub first_copy: bool,
}

/// What an acknowledgment of segments brings that were all sent once, and of which nothing else is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plain {
    pub segments: u32,
    /// The round trips of the first of them and of the last.
    pub first: Span,
    pub last: Span,
}

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
    list: VecDeque<Sent>,
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
    latest: Option<Latest>,
    /// The least round trip so far: min_RTT.
    min_rtt: Span,
    /// One past the highest offset that has arrived: RACK.fack.
    highest: u64,
    /// A segment that was sent once has arrived after one sent later: RACK.reordering_seen.
    pub reordered: bool,
    allowance: Allowance,
}

/// Number of quarters of a round trip allowed for reordering (RFC 8985, section 6.2, step 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Allowance {
    /// RACK.reo_wnd_mult
    quarters: u32,
    /// RACK.reo_wnd_persist
    recoveries: u32,
    /// RACK.dsack_round
    round: Option<u64>,
}

/// Recoveries after which the allowance is a quarter again (RFC 8985, section 6.2, step 4).
const PERSIST: u32 = 16;

impl Segments {
    /// The handshake has measured a round trip, or not.
    pub(crate) fn new(rtt: Option<Span>) -> Self {
        Segments {
            list: VecDeque::new(),
            judged: 0,
            repaired: 0,
            sacked_to: 0,
            copies: VecDeque::new(),
            sacked_ranges: Ranges::default(),
            sacked: 0,
            lost: 0,
            again: 0,
            latest: None,
            min_rtt: rtt.unwrap_or(Span::MAX),
            highest: 0,
            reordered: false,
            allowance: Allowance { quarters: 1, recoveries: 0, round: None },
        }
    }

    /// An acknowledgment of everything below `una` reports duplicates: once per round trip, the allowance
    /// grows.
    pub(crate) fn arrived_twice(&mut self, una: u64, sent: u64) {
        if self.allowance.round.is_none_or(|round| una >= round) {
            let quarters = self.allowance.quarters.saturating_add(1);
            self.allowance = Allowance { quarters, recoveries: PERSIST, round: Some(sent) };
        }
    }

    /// A recovery is over.
    pub(crate) fn recovered(&mut self) {
        self.allowance.recoveries = self.allowance.recoveries.saturating_sub(1);
        if self.allowance.recoveries == 0 {
            self.allowance.quarters = 1;
        }
    }

    /// Records a new segment that ends at `end`.
    #[inline]
    pub(crate) fn sent(&mut self, now: Instant, end: u64) {
        self.list.push_back(Sent::new(now, end, 0));
    }

    /// Segments in the network: those that are neither SACKed nor lost, and copies of lost ones.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.list.len() as u32 + self.again - self.sacked - self.lost
    }

    /// Segments that have not been acknowledged cumulatively.
    pub(crate) fn outstanding(&self) -> u32 {
        self.list.len() as u32
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
        let first = *self.list.front().filter(|first| first.end <= una && first.marks() == 0)?;
        let (mut last, mut segments) = (first, 1);
        if first.end < una {
            (last, segments) = self.more_plain(una)?;
        }
        for _ in 0..segments {
            self.list.pop_front();
        }
        (self.judged, self.repaired) = (0, 0);
        // Those in between left between these two.
        let rtt = now - last.at();
        self.min_rtt = self.min_rtt.min(rtt);
        self.reordered |= first.end < self.highest;
        self.highest = self.highest.max(last.end);
        if self.latest.is_none_or(|latest| !last.left_before(&latest)) {
            self.latest = Some(Latest { at: last.at(), end: last.end, rtt });
        }
        Some(Plain { segments, first: now - first.at(), last: rtt })
    }

    /// The last of the segments that end by `una`, and their number, if all were sent once.
    #[inline(never)]
    fn more_plain(&self, una: u64) -> Option<(Sent, u32)> {
        let (mut last, mut segments) = (*self.list.front()?, 0);
        for segment in self.list.iter().take_while(|segment| segment.end <= una) {
            if segment.marks() != 0 {
                return None;
            }
            (last, segments) = (*segment, segments + 1);
        }
        Some((last, segments))
    }

    /// Everything below `una` has arrived.
    pub(crate) fn acknowledge(&mut self, now: Instant, una: u64, news: &mut News) {
        while let Some(first) = self.list.front().filter(|first| first.end <= una) {
            let segment = *first;
            self.list.pop_front();
            self.judged = self.judged.saturating_sub(1);
            self.repaired = self.repaired.saturating_sub(1);
            self.sacked_to = self.sacked_to.saturating_sub(1);
            if segment.marks() != 0 {
                self.unmark(&segment);
                news.repeated |= segment.has(REPEATED);
                if segment.has(SACKED) {
                    continue;
                }
            }
            news.first = news.first.or(Some((now - segment.at(), !segment.has(REPEATED))));
            self.arrived(now, &segment, news);
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
            self.sack_new(now, from, end, una, news);
            self.sacked_ranges.insert(from, end);
            from = end;
        }
    }

    fn sack_new(&mut self, now: Instant, from: u64, to: u64, una: u64, news: &mut News) {
        let mut at = self.place_after(from);
        let mut begin = if at == 0 { una } else { self.list[at - 1].end };
        while let Some(segment) = self.list.get(at).copied().filter(|segment| segment.end <= to) {
            if begin >= from && !segment.has(SACKED) {
                self.unmark(&segment);
                self.sacked += 1;
                self.list[at].mark(segment.marks() & REPEATED | SACKED);
                if !segment.has(REPEATED) {
                    news.first_sacked = news.first_sacked.or(Some(now - segment.at()));
                }
                self.arrived(now, &segment, news);
            }
            begin = segment.end;
            at += 1;
        }
        self.sacked_to = at;
    }

    /// The place of the first segment that ends after `number`.
    fn place_after(&self, number: u64) -> usize {
        let at = self.sacked_to;
        let likely = at > 0 && self.list.get(at - 1).is_some_and(|before| before.end <= number);
        if likely && self.list.get(at).is_none_or(|next| next.end > number) {
            return at;
        }
        self.list.partition_point(|segment| segment.end <= number)
    }

    /// The round-trip time that an acknowledgment measures; with `stamped`, copies of a segment can be
    /// distinguished, unless it arrives too soon for the latest one.
    pub(crate) fn round_trip(&self, news: &News, stamped: bool) -> Option<Span> {
        let (first, once) = news.first.unzip();
        let by_copy = || first.filter(|rtt| stamped && !self.is_too_soon(*rtt));
        first.filter(|_| once == Some(true) && !news.repeated).or(news.first_sacked).or_else(by_copy)
    }

    /// Clearly sooner than any other: the acknowledgment is of the first copy (RFC 8985, section 6.2, step 2).
    fn is_too_soon(&self, rtt: Span) -> bool {
        rtt + rtt.div(8) < self.min_rtt
    }

    /// When the first outstanding segment left last.
    pub(crate) fn first_left(&self) -> Option<Instant> {
        self.list.front().map(|first| first.at())
    }

    /// A segment has arrived for the first time. RFC 8985, section 6.2, steps 1 to 3.
    #[inline]
    fn arrived(&mut self, now: Instant, segment: &Sent, news: &mut News) {
        news.delivered += 1;
        let rtt = now - segment.at();
        if segment.has(REPEATED) {
            // Time stamps would tell the copies apart. DEVIATES from RFC 3522, 3.2: what comes later than the least round
            // trip is taken for the latest copy's, which a queue may make wrong.
            news.first_copy |= rtt < self.min_rtt;
            if self.is_too_soon(rtt) {
                return;
            }
        } else {
            self.min_rtt = self.min_rtt.min(rtt);
            news.last_rtt = Some(rtt);
            news.original = news.original.or(Some(segment.end));
            self.reordered |= segment.end < self.highest;
        }
        self.highest = self.highest.max(segment.end);
        if self.latest.is_none_or(|latest| !segment.left_before(&latest)) {
            self.latest = Some(Latest { at: segment.at(), end: segment.end, rtt });
        }
    }

    /// RFC 8985, section 6.2, steps 4 and 5: marks segments as lost that left long enough before one that has
    /// arrived; `window` is the allowance for reordering. Returns their number, and the time to wait for
    /// more.
    pub(crate) fn find_lost_by_time(&mut self, now: Instant, window: Span) -> (Found, Option<Span>) {
        let (mut found, mut wait) = (Found::default(), None);
        let Some(latest) = self.latest else { return (found, wait) };
        let least = latest.rtt + window;
        let naive = cfg!(debug_assertions).then(|| self.late_ones(now, &latest, least));
        self.judge_originals(now, &latest, least, &mut found, &mut wait);
        self.judge_copies(now, &latest, least, &mut found, &mut wait);
        debug_assert!(
            naive.is_none_or(|naive| naive == (found, wait)),
            "the short way and the full one agree"
        );
        (found, wait)
    }

    /// Judges segments that were sent once, up to the first that left after the latest one that has arrived.
    fn judge_originals(
        &mut self,
        now: Instant,
        latest: &Latest,
        least: Span,
        found: &mut Found,
        wait: &mut Option<Span>,
    ) {
        for at in self.judged..self.list.len() {
            let segment = self.list[at];
            if segment.marks() == 0 {
                if !segment.left_before(latest) {
                    break;
                }
                let due = segment.at().saturating_add(least);
                if due > now {
                    *wait = Some(due - now); // no earlier one's is longer
                    continue;
                }
                self.mark_lost(at);
                found.segments += 1;
            }
            if wait.is_none() {
                self.judged = at + 1;
            }
        }
    }

    /// The same for copies that may be on their way.
    fn judge_copies(
        &mut self,
        now: Instant,
        latest: &Latest,
        least: Span,
        found: &mut Found,
        wait: &mut Option<Span>,
    ) {
        let mut next = 0;
        while let Some(&(left, end)) = self.copies.get(next).filter(|copy| **copy < (latest.at, latest.end)) {
            let due = left.saturating_add(least);
            match self.place_of_copy(left, end) {
                Some(_) if due > now => {
                    *wait = (*wait).max(Some(due - now));
                    next += 1;
                    continue;
                }
                Some(at) => {
                    found.segments += 1;
                    found.copies += u32::from(self.list[at].has(AGAIN));
                    self.mark_lost(at);
                }
                None => {}
            }
            self.copies.remove(next);
        }
    }

    /// Where the copy is that left then and ends there, unless it has arrived, is lost, or was sent again.
    fn place_of_copy(&self, left: Instant, end: u64) -> Option<usize> {
        let at = self.list.partition_point(|segment| segment.end < end);
        let segment = self.list.get(at).filter(|segment| (segment.at(), segment.end) == (left, end))?;
        segment.may_arrive().then_some(at)
    }

    /// What [`Segments::find_lost_by_time`] finds, segment by segment as in RFC 8985.
    fn late_ones(&self, now: Instant, latest: &Latest, least: Span) -> (Found, Option<Span>) {
        let (mut found, mut wait) = (Found::default(), None);
        for segment in self.list.iter().filter(|segment| segment.may_arrive() && segment.left_before(latest))
        {
            let due = segment.at().saturating_add(least);
            if due > now {
                wait = wait.max(Some(due - now));
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
        for at in 0..self.list.len() {
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
        if self.list.front().is_none_or(|first| first.has(LOST)) {
            return Found::default();
        }
        self.mark_lost(0);
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
        let least = self.latest.filter(|_| rack).map(|latest| latest.rtt);
        for at in 0..self.list.len() {
            let segment = self.list[at];
            let late = least.is_none_or(|least| segment.at().saturating_add(least) <= now);
            if !segment.has(SACKED) && (at == 0 || late) {
                self.mark_lost(at);
            }
        }
    }

    /// A timeout was spurious: segments that were not retransmitted are in flight.
    pub(crate) fn none_lost(&mut self) {
        for segment in self.list.iter_mut().filter(|segment| segment.marks() & (LOST | AGAIN) == LOST) {
            segment.mark(segment.marks() & !LOST);
            self.lost -= 1;
        }
        self.judged = 0;
        let copies = self.list.iter().filter(|segment| segment.has(REPEATED) && segment.may_arrive());
        self.copies = copies.map(|segment| (segment.at(), segment.end)).collect();
        self.copies.make_contiguous().sort_unstable();
    }

    /// The allowance for reordering (RFC 8985, section 6.2, step 4, RACK_update_reo_wnd).
    pub(crate) fn reordering_window(&self, recovering: bool, srtt: Option<Span>, profile: &Profile) -> Span {
        let ignored = !self.reordered && (recovering || self.sacked >= profile.dupthresh);
        if ignored || self.min_rtt == Span::MAX {
            return Span::ZERO;
        }
        let quarters = u64::from(self.allowance.quarters);
        self.min_rtt.saturating_mul(quarters).div(4).min(srtt.unwrap_or(Span::MAX))
    }

    /// The position in the list of the first lost segment that is not in flight again.
    pub(crate) fn first_lost(&self) -> Option<usize> {
        if self.lost == self.again {
            return None;
        }
        let mut places = self.repaired..self.list.len();
        places.find(|at| self.list[*at].marks() & (LOST | AGAIN) == LOST)
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
        let from = if at == 0 { una } else { self.list[at - 1].end };
        (from, self.list[at].end)
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
        let before = self.copies.iter().rposition(|earlier| *earlier <= copy);
        self.copies.insert(before.map_or(0, |before| before + 1), copy);
    }

    /// The place of the last segment that is not SACKed.
    pub(crate) fn last(&self) -> Option<usize> {
        self.list.iter().rposition(|segment| !segment.has(SACKED))
    }
}
