//! Reassembly: segments beyond a hole wait here until the hole is filled.

use crate::ranges::Ranges;
use crate::sack::{MAX_BLOCKS, Sack};
use crate::sequence::to_wire;

/// Data that has arrived out of order.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Beyond {
    /// The offsets of that data, including the offset of the FIN.
    ranges: Ranges,
    /// Offset of the FIN, if it has arrived.
    fin: Option<u64>,
    /// One number from each of the runs that the latest segments extended, starting with the most
    /// recent run.
    recent: Recent,
    /// Whether the most recent of these runs is the topmost run.
    topmost_is_latest: bool,
    /// The range that arrived twice and has not been reported yet, and the one that the latest
    /// option reports as having arrived twice (RFC 2883).
    twice: Option<(u64, u64)>,
    reported: Option<(u64, u64)>,
}

impl Beyond {
    /// Stores a range beyond the hole, possibly with a FIN at its end; `remembered` is the number
    /// of recent blocks to remember. Returns whether the range had arrived before.
    pub(crate) fn keep(&mut self, from: u64, to: u64, fin: bool, remembered: usize) -> bool {
        if fin {
            self.fin = Some(to);
        }
        let end = to + u64::from(fin);
        if from == end {
            return true;
        }
        // Usually the stream continues where its last piece ended, and that piece was already the
        // most recent one.
        if self.topmost_is_latest && self.ranges.end() == Some(from) {
            self.ranges.append(from, end);
            return false;
        }
        let added = self.ranges.insert(from, end);
        self.recent.put_first(from, &self.ranges, remembered);
        self.topmost_is_latest = self.ranges.run_of(from).map(|run| run.1) == self.ranges.end();
        added == 0
    }

    /// Removes the data that follows `next` without a gap; returns the offset up to which it
    /// extends, and whether it includes the FIN.
    pub(crate) fn absorb(&mut self, next: u64) -> (u64, bool) {
        let reached = self.ranges.gap_from(next);
        self.ranges.remove_below(reached);
        self.recent.forget_below(reached);
        match self.fin {
            Some(fin) if fin < reached => (fin, true),
            _ => (reached, false),
        }
    }

    /// Returns the first part of `[from, to)` that waits here.
    pub(crate) fn first_in(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let begin = if self.ranges.run_of(from).is_some() { from } else { self.ranges.end_of_gap(from)? };
        let (_, end) = self.ranges.run_of(begin)?;
        (begin < to).then_some((begin, end.min(to)))
    }

    /// Returns whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the number of bytes of the stream that wait, excluding the FIN.
    pub(crate) fn waiting(&self) -> u64 {
        self.ranges.covered() - u64::from(self.fin.is_some())
    }

    /// Clears everything, but keeps the allocated memory for the next hole.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
        self.fin = None;
        self.recent = Recent::default();
    }

    /// Notes that `[from, to)` has arrived twice; the next option reports this.
    pub(crate) fn arrived_twice(&mut self, from: u64, to: u64) {
        self.twice = Some((from, to));
    }

    /// Records that an option is being sent, and returns its number of blocks.
    #[inline]
    pub(crate) fn report(&mut self, most: u32) -> u32 {
        self.reported = self.twice.take();
        (u32::from(self.recent.count) + u32::from(self.reported.is_some())).min(most)
    }

    /// Returns the blocks: first the data that arrived twice, if the option reports it (RFC 2883,
    /// section 4), then the block that contains the latest segment, then blocks that were first in
    /// earlier options, most recent first (RFC 2018, section 4).
    #[inline]
    pub(crate) fn sack(&self, initial: u32, most: u32) -> Sack {
        // Usually there is one hole.
        if self.reported.is_none()
            && self.recent.count == 1
            && let Some((from, to)) = self.ranges.last().filter(|run| run.0 <= self.recent.numbers[0])
        {
            return Sack::one(to_wire(initial, from), to_wire(initial, to));
        }
        self.several_blocks(initial, most)
    }

    #[inline(never)]
    fn several_blocks(&self, initial: u32, most: u32) -> Sack {
        let mut sack = Sack::NONE;
        if let Some((from, to)) = self.reported {
            sack.push(to_wire(initial, from), to_wire(initial, to));
        }
        let room = most as usize - sack.blocks().len();
        for number in &self.recent.numbers[..usize::from(self.recent.count).min(room)] {
            let (from, to) = self.ranges.run_of(*number).expect("reported data waits until it is absorbed");
            sack.push(to_wire(initial, from), to_wire(initial, to));
        }
        sack
    }
}

/// One number from each of the most recently changed runs, starting with the latest; there are at
/// most as many as an option can hold.
#[derive(Clone, PartialEq, Default, Debug)]
struct Recent {
    numbers: [u64; MAX_BLOCKS],
    count: u8,
}

impl Recent {
    /// Notes that the run that contains `number` has changed: it is now the latest run, and may
    /// have merged with others. At most [`MAX_BLOCKS`] are `remembered`.
    fn put_first(&mut self, number: u64, ranges: &Ranges, remembered: usize) {
        let (from, to) = ranges.run_of(number).expect("`number` has just been added to a run");
        self.retain(|n| !(from..to).contains(&n));
        let kept = usize::from(self.count).min(remembered - 1);
        self.numbers.copy_within(..kept, 1);
        self.numbers[0] = number;
        self.count = kept as u8 + 1;
    }

    fn forget_below(&mut self, edge: u64) {
        self.retain(|n| n >= edge);
    }

    fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        let mut kept = 0;
        for i in 0..usize::from(self.count) {
            if keep(self.numbers[i]) {
                self.numbers[kept] = self.numbers[i];
                kept += 1;
            }
        }
        self.count = kept as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_given_up_in_order_with_the_fin() {
        let mut beyond = Beyond::default();
        for (from, to) in [(301, 401), (101, 201), (501, 601), (201, 301)] {
            assert!(!beyond.keep(from, to, false, MAX_BLOCKS), "{from} to {to} is new");
        }
        assert!(beyond.keep(120, 390, false, MAX_BLOCKS), "there already");
        assert_eq!(beyond.absorb(101), (401, false));
        assert!(!beyond.keep(601, 701, true, MAX_BLOCKS));
        assert!(beyond.keep(601, 701, true, MAX_BLOCKS), "the FIN too");
        assert!(!beyond.is_empty());
        assert_eq!(beyond.absorb(550), (701, true));
        assert!(beyond.is_empty());
    }

    #[test]
    fn a_fin_of_its_own_beyond_a_hole_is_news_once() {
        let mut beyond = Beyond::default();
        assert!(!beyond.keep(301, 301, true, MAX_BLOCKS));
        assert!(beyond.keep(301, 301, true, MAX_BLOCKS));
        assert_eq!(beyond.absorb(200), (200, false));
        assert_eq!(beyond.absorb(301), (301, true));
    }

    /// RFC 2018, section 4: the block with the latest segment is first; the others are ordered by how
    /// recently they were first.
    #[test]
    fn blocks_are_reported_latest_first_and_at_most_four() {
        let mut beyond = Beyond::default();
        let blocks = |b: &Beyond, most| b.sack(0, most).blocks().to_vec();
        for n in [1, 3, 5, 7, 9] {
            beyond.keep(n * 100, n * 100 + 50, false, MAX_BLOCKS);
        }
        assert_eq!(blocks(&beyond, 4), [(900, 950), (700, 750), (500, 550), (300, 350)]);
        assert_eq!(blocks(&beyond, 3), [(900, 950), (700, 750), (500, 550)]);
        // Repeated data also moves its block to the front; data that fills a gap joins two blocks.
        beyond.keep(300, 350, false, MAX_BLOCKS);
        assert_eq!(blocks(&beyond, 4), [(300, 350), (900, 950), (700, 750), (500, 550)]);
        beyond.keep(750, 900, false, MAX_BLOCKS);
        assert_eq!(blocks(&beyond, 4), [(700, 950), (300, 350), (500, 550)]);
        // The first hole is filled, so the data that is now in order no longer forms a block.
        assert_eq!(beyond.absorb(100), (150, false));
        assert_eq!(beyond.absorb(500), (550, false));
        assert_eq!(blocks(&beyond, 4), [(700, 950)]);
    }

    #[test]
    fn what_is_not_remembered_does_not_come_back() {
        for (remembered, last) in [(4, &[(500, 950), (300, 350)][..]), (3, &[(500, 950)])] {
            let mut beyond = Beyond::default();
            for n in [1, 3, 5, 7, 9] {
                beyond.keep(n * 100, n * 100 + 50, false, remembered);
            }
            beyond.keep(550, 900, false, remembered);
            assert_eq!(beyond.sack(0, 3).blocks(), last, "{remembered}");
        }
    }
}
