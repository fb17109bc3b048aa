//! Processing of what SACK options and acknowledgments report about the segments of the list.

use aqmlab_units::{Instant, Span};

use super::Segments;
use crate::profile::Profile;
use crate::recovery::news::News;
use crate::recovery::sent::{LOST, REPEATED, SACKED};
use crate::sack::Sack;
use crate::sequence::from_wire;
use crate::stamps::{since, stamp};

impl Segments {
    /// Processes an option that reports exactly one new segment, if this segment was sent only once and lies
    /// above all others that have arrived, and returns its round-trip time. For any other option, returns
    /// `None` and changes nothing.
    #[inline(always)]
    pub(crate) fn sack_topmost(&mut self, now: Instant, una: u64, sack: &Sack, initial: u32) -> Option<Span> {
        let &(first, last) = sack.blocks().first()?;
        if !sack.repeats_all_but_first(&self.latest) {
            return None;
        }
        let from = from_wire(initial, first, una).filter(|from| *from > una)?;
        let to = from + u64::from(last.wrapping_sub(first));
        let begin = match self.sacked_ranges.last() {
            Some(known) if from < known.0 => return None,
            Some(known) if from <= known.1 => known.1,
            _ => from,
        };
        let mut at = self.sacked_to.max(self.first);
        if !self.is_segment(at, (begin, to), una) {
            at = self.search_place_after(begin);
            if !self.is_segment(at, (begin, to), una) {
                return None;
            }
        }
        let segment = self.list[at];
        if segment.marks() & !LOST != 0 {
            return None;
        }
        self.lost -= u32::from(segment.has(LOST));
        self.sacked += 1;
        self.list[at].mark(SACKED);
        self.sacked_to = at + 1;
        self.sacked_ranges.append(begin, to);
        self.latest = *sack;
        Some(self.rack.originals_arrived(now, &segment, &segment))
    }

    /// Remembers an option whose blocks have all been processed; pass `None` if some have not, or
    /// if the option reports duplicates.
    #[inline]
    pub(crate) fn remember(&mut self, option: Option<&Sack>) {
        self.latest = *option.filter(|_| self.sacked > 0).unwrap_or(&Sack::NONE);
    }

    /// Processes a SACK block that reports the arrival of `[from, to)`. The outstanding data lies
    /// between `una` and `sent`. Returns true if the block ends at or below `sent`.
    pub(crate) fn sack(
        &mut self,
        now: Instant,
        from: u64,
        to: u64,
        una: u64,
        sent: u64,
        news: &mut News,
    ) -> bool {
        let mut from = from.max(una);
        if from >= to || to > sent {
            return to <= sent;
        }
        // Data that has already been reported is skipped.
        loop {
            from = self.sacked_ranges.gap_from(from);
            if from >= to {
                return true;
            }
            let end = self.sacked_ranges.end_of_gap(from).map_or(to, |end| end.min(to));
            self.sacked_ranges.insert(from, end);
            let run = self.sacked_ranges.run_of(from).expect("`from` has just been added to a run");
            self.sack_new(now, (from, end), run, una, news);
            from = end;
        }
    }

    /// Processes the newly reported `[from, to)`. Together with adjacent data reported before, it forms
    /// `run`, which may complete a segment at either end.
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
                self.arrived(now, &segment, news);
            }
            begin = segment.end;
            at += 1;
        }
        self.sacked_to = at;
    }

    /// Returns whether `[from, to)` is the segment at this place.
    #[inline(always)]
    fn is_segment(&self, at: usize, (from, to): (u64, u64), una: u64) -> bool {
        self.list.get(at).is_some_and(|segment| segment.end == to) && self.begin(at, una) == from
    }

    /// Returns the place of the first segment that ends after `number`.
    #[inline]
    fn place_after(&self, number: u64) -> usize {
        let at = self.sacked_to.max(self.first);
        let ends_by = |at: usize| self.list.get(at).is_some_and(|segment| segment.end <= number);
        if at <= self.list.len() && (at == self.first || ends_by(at - 1)) && !ends_by(at) {
            return at;
        }
        self.search_place_after(number)
    }

    #[inline(never)]
    fn search_place_after(&self, number: u64) -> usize {
        self.first + self.list[self.first..].partition_point(|segment| segment.end <= number)
    }
}

/// Returns the round-trip time that an acknowledgment measures. If it acknowledges retransmitted segments, only
/// time stamps tell which copy has arrived.
pub(crate) fn round_trip(now: Instant, news: &News, profile: &Profile) -> Option<Span> {
    let (first, once) = news.first.unzip();
    let by_stamp = || {
        let left = || match once? {
            true => Some(Instant::from_ns(now.as_ns() - first?.as_ns())),
            false => news.original_left,
        };
        let sent = news.stamp.or_else(|| left().map(stamp));
        sent.filter(|_| profile.timestamps && first.is_some()).map(|sent| since(sent, now))
    };
    first.filter(|_| once == Some(true) && !news.repeated).or(news.first_sacked).or_else(by_stamp)
}
