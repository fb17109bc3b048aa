//! Without SACK, duplicate ACKs stand for segments that have arrived (RFC 9937, section 6): they are counted,
//! but it is not known which segments these are.

use super::{Found, Segments};
use crate::recovery::sent::LOST;

impl Segments {
    /// Declares the first segment lost, because of duplicate ACKs or a partial ACK.
    pub(crate) fn find_first_lost(&mut self) -> Found {
        if self.front().is_none_or(|first| first.has(LOST)) {
            return Found::default();
        }
        self.mark_lost(self.first);
        self.limit_duplicates();
        Found { segments: 1, copies: 0 }
    }

    /// Counts a duplicate ACK as the arrival of one segment that is not lost; returns the number of new
    /// arrivals.
    pub(crate) fn count_duplicate(&mut self) -> u32 {
        let before = self.sacked;
        self.sacked += 1;
        self.limit_duplicates();
        self.sacked - before
    }

    /// Adjusts the count after `acked` segments have left the list: one of them was missing, and each of
    /// the others accounts for one duplicate ACK. Returns the number of new arrivals.
    pub(crate) fn settle_duplicates(&mut self, acked: u32) -> u32 {
        let counted = self.sacked;
        self.sacked -= counted.min(acked.saturating_sub(1));
        self.limit_duplicates();
        acked.saturating_sub(counted).max(1)
    }

    /// Forgets the segments that duplicate ACKs stand for.
    pub(crate) fn forget_duplicates(&mut self) {
        self.sacked = 0;
    }

    /// Limits the count of arrivals, because at least one outstanding segment is missing.
    fn limit_duplicates(&mut self) {
        self.sacked = self.sacked.min(self.outstanding().saturating_sub(self.lost.max(1)));
    }
}
