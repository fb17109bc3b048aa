//! What arrived beyond a hole waits here until the hole is filled.

use alloc::vec::Vec;

/// Data out of order.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Beyond {
    /// `[from, to)` in ascending order, neither overlapping nor touching.
    ranges: Vec<(u64, u64)>,
    /// Offset of the FIN, if it has arrived.
    fin: Option<u64>,
}

impl Beyond {
    /// Stores a range beyond the hole, and perhaps a FIN at its end. True if it was there already.
    pub(crate) fn keep(&mut self, from: u64, to: u64, fin: bool) -> bool {
        let news_of_fin = fin && self.fin.is_none();
        if fin {
            self.fin = Some(to);
        }
        if from == to {
            return !news_of_fin;
        }
        // Most often the stream goes on where its last piece ended.
        if let Some(end) = self.ranges.last_mut()
            && end.1 == from
        {
            end.1 = to;
            return false;
        }
        let first = self.ranges.partition_point(|r| r.1 < from);
        let last = self.ranges.partition_point(|r| r.0 <= to);
        if let Some(r) = self.ranges.get(first)
            && r.0 <= from
            && to <= r.1
        {
            return !news_of_fin;
        }
        let merged = self.ranges[first..last].iter().fold((from, to), |m, r| (m.0.min(r.0), m.1.max(r.1)));
        self.ranges.splice(first..last, [merged]);
        false
    }

    /// Gives up what follows in order on `next`: the offset up to which that reaches, and whether the FIN is
    /// there.
    pub(crate) fn absorb(&mut self, next: u64) -> (u64, bool) {
        let reached = self.ranges.partition_point(|r| r.0 <= next);
        let next = self.ranges[..reached].last().map_or(next, |last| next.max(last.1));
        self.ranges.drain(..reached);
        (next, self.fin == Some(next))
    }

    /// Does nothing wait, or nothing but the FIN that is `finished` with?
    pub(crate) fn is_used_up(&self, finished: bool) -> bool {
        self.ranges.is_empty() && (finished || self.fin.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_and_are_given_up_in_order() {
        let mut beyond = Beyond::default();
        for (from, to) in [(301, 401), (101, 201), (501, 601), (201, 301)] {
            assert!(!beyond.keep(from, to, false), "{from} to {to} is new");
        }
        assert_eq!(beyond.ranges, [(101, 401), (501, 601)]);
        assert!(beyond.keep(120, 390, false), "there already");
        assert_eq!(beyond.absorb(101), (401, false));
        assert!(!beyond.keep(601, 701, true));
        assert!(beyond.keep(601, 701, true), "the FIN too");
        assert!(!beyond.is_used_up(false));
        assert_eq!(beyond.absorb(550), (701, true));
        assert!(beyond.is_used_up(true));
    }
}
