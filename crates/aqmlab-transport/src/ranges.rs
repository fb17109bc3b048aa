//! Sets of sequence numbers, stored as runs, for data beyond a hole: what the receiver holds, and
//! what has been reported to the sender.

use alloc::vec::Vec;

/// The runs `[from, to)` in ascending order; they neither overlap nor touch.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Ranges {
    runs: Vec<(u64, u64)>,
    /// Count of the numbers in all runs.
    covered: u64,
}

impl Ranges {
    /// Returns an empty set with memory for this many runs.
    pub(crate) fn with_room(runs: usize) -> Self {
        Ranges { runs: Vec::with_capacity(runs), covered: 0 }
    }

    /// Adds `[from, to)` and returns how many of its numbers are new. Finds the place by bisection,
    /// and usually moves no other runs.
    pub(crate) fn insert(&mut self, from: u64, to: u64) -> u64 {
        debug_assert!(from < to, "a range contains a number");
        // Usually the stream continues where its last piece ended.
        if self.end() == Some(from) {
            self.append(from, to);
            return to - from;
        }
        let first = self.runs.partition_point(|r| r.1 < from);
        let last = self.runs.partition_point(|r| r.0 <= to);
        let touched = &self.runs[first..last];
        let known: u64 = touched.iter().map(|r| r.1.min(to).saturating_sub(r.0.max(from))).sum();
        let added = to - from - known;
        if added > 0 {
            let merged = touched.iter().fold((from, to), |m, r| (m.0.min(r.0), m.1.max(r.1)));
            self.runs.splice(first..last, [merged]);
            self.covered += added;
        }
        added
    }

    /// Adds `[from, to)`, which lies above all other numbers.
    #[inline]
    pub(crate) fn append(&mut self, from: u64, to: u64) {
        self.covered += to - from;
        match self.runs.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => self.runs.push((from, to)),
        }
    }

    /// Removes all numbers below `edge` and returns how many there were.
    pub(crate) fn remove_below(&mut self, edge: u64) -> u64 {
        if self.end().is_some_and(|end| end <= edge) {
            let removed = self.covered;
            self.clear(); // usually no run remains
            return removed;
        }
        let gone = self.runs.partition_point(|r| r.1 <= edge);
        let mut removed: u64 = self.runs.drain(..gone).map(|r| r.1 - r.0).sum();
        if let Some(first) = self.runs.first_mut()
            && first.0 < edge
        {
            removed += edge - first.0;
            first.0 = edge;
        }
        self.covered -= removed;
        removed
    }

    /// Removes all numbers, but keeps the allocated memory for later use.
    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.covered = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the count of the numbers in all runs.
    pub(crate) fn covered(&self) -> u64 {
        self.covered
    }

    /// Returns how many numbers below `edge` the set contains.
    pub(crate) fn covered_below(&self, edge: u64) -> u64 {
        self.runs.iter().take_while(|r| r.0 < edge).map(|r| r.1.min(edge) - r.0).sum()
    }

    /// Returns the run that contains `number`.
    #[inline]
    pub(crate) fn run_of(&self, number: u64) -> Option<(u64, u64)> {
        match self.runs.last() {
            // Usually the number lies in the last run or above it.
            Some(last) if last.0 <= number => (number < last.1).then_some(*last),
            _ => self.lower_run_of(number),
        }
    }

    /// Does the same as `run_of`, for a number below the last run.
    #[inline(never)]
    fn lower_run_of(&self, number: u64) -> Option<(u64, u64)> {
        let run = self.runs.get(self.runs.partition_point(|r| r.1 <= number))?;
        (run.0 <= number).then_some(*run)
    }

    /// Returns the lowest number not below `from` that is in no run.
    pub(crate) fn gap_from(&self, from: u64) -> u64 {
        // Usually the number lies in the last run or above it.
        match self.runs.last() {
            Some(last) if last.0 <= from => from.max(last.1),
            _ => self.run_of(from).map_or(from, |run| run.1),
        }
    }

    /// Returns the beginning of the first run above `number`, which must not lie in a run.
    pub(crate) fn end_of_gap(&self, number: u64) -> Option<u64> {
        if self.end().is_none_or(|end| end <= number) {
            return None;
        }
        self.runs.get(self.runs.partition_point(|r| r.1 <= number)).map(|r| r.0)
    }

    /// Returns the lowest run.
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.runs.first().copied()
    }

    /// Returns the highest run.
    #[inline]
    pub(crate) fn last(&self) -> Option<(u64, u64)> {
        self.runs.last().copied()
    }

    /// Returns one past the highest number.
    #[inline]
    pub(crate) fn end(&self) -> Option<u64> {
        self.runs.last().map(|r| r.1)
    }

    /// Returns the runs in descending order.
    pub(crate) fn topmost_first(&self) -> impl Iterator<Item = (u64, u64)> {
        self.runs.iter().rev().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_merge_count_and_are_cut() {
        let mut ranges = Ranges::default();
        for (from, to) in [(301, 401), (101, 201), (501, 601), (201, 301)] {
            assert_eq!(ranges.insert(from, to), 100, "{from} to {to} is new");
        }
        assert_eq!(ranges.topmost_first().collect::<Vec<_>>(), [(501, 601), (101, 401)]);
        assert_eq!(ranges.insert(120, 390), 0, "there already");
        assert_eq!((ranges.run_of(400), ranges.run_of(401)), (Some((101, 401)), None));
        assert_eq!((ranges.gap_from(101), ranges.gap_from(401), ranges.gap_from(50)), (401, 401, 50));
        assert_eq!((ranges.end_of_gap(401), ranges.end_of_gap(601)), (Some(501), None));
        assert_eq!((ranges.covered(), ranges.covered_below(551)), (400, 350));
        assert_eq!(ranges.insert(390, 510), 100, "bridges the gap");
        assert_eq!(ranges.remove_below(151), 50);
        assert_eq!(ranges.topmost_first().collect::<Vec<_>>(), [(151, 601)]);
        assert_eq!(ranges.remove_below(601), 450);
        assert!(ranges.is_empty() && ranges.covered() == 0);
    }
}
