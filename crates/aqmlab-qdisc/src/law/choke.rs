//! CHOKe (Pan, Prabhakar, Psounis, INFOCOM 2000): RED that compares each arrival with waiting packets.
//!
//! While RED's average is above its lower threshold, each arrival is first compared with a packet drawn at random
//! from the queue. If both belong to the same flow, both are lost. Otherwise, RED decides on the arrival. A flow that
//! fills the queue meets itself more often than others do, so CHOKe needs no state per flow.

use aqmlab_units::{Bytes, Instant};

use super::{Decision, RedLaw, RedParams};

/// The number of waiting packets with which an arrival is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparisons {
    /// Always this many, the paper's `m`.
    Fixed(u64),
    /// The range between the thresholds is divided into this many equal regions, the paper's `k`; in region `i`,
    /// counted from 1, there are `2 i` comparisons, and above the upper threshold as many as in the last region.
    Regions(u64),
}

/// The law's state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChokeLaw {
    red: RedLaw,
    comparisons: Comparisons,
}

impl ChokeLaw {
    /// Creates the law for an empty queue and an idle link. An average equal to a threshold counts as below it.
    pub const fn new(red: RedParams, comparisons: Comparisons) -> Self {
        ChokeLaw { red: RedLaw::new(red).up_to_thresholds(), comparisons }
    }

    /// Records an arrival that finds `queued` waiting, and returns the new average.
    #[inline]
    pub fn on_arrival(&mut self, now: Instant, queued: f64) -> f64 {
        self.red.update_average(now, queued)
    }

    /// Returns the number of waiting packets with which an arrival at this average is compared.
    #[inline]
    pub fn comparisons(&self, avg: f64) -> u64 {
        let RedParams { min_th, max_th, .. } = *self.red.params();
        if avg <= min_th {
            return 0;
        }
        match self.comparisons {
            Comparisons::Fixed(m) => m,
            Comparisons::Regions(k) if avg >= max_th => 2 * k,
            Comparisons::Regions(k) => {
                // A region includes its upper end, as the range does.
                let region = libm::ceil((avg - min_th) / (max_th - min_th) * k as f64) as u64;
                2 * region.clamp(1, k)
            }
        }
    }

    /// Decides on an arrival of `size` that equals none of the packets with which it was compared. `avg` is the
    /// average at this arrival, which found `queued` waiting. `draw` returns a number in [0, 1) and is called at most
    /// once.
    #[inline]
    pub fn decide(&mut self, avg: f64, queued: f64, size: Bytes, draw: impl FnOnce() -> f64) -> Decision {
        self.red.decide(avg, queued, size, draw)
    }

    /// Records that the link polled the empty queue.
    #[inline]
    pub fn on_idle(&mut self, now: Instant) {
        self.red.on_idle(now);
    }

    /// Changes the link's rate to `packets_per_s` packets of mean size per second.
    pub fn rate_changed(&mut self, now: Instant, packets_per_s: f64) {
        self.red.rate_changed(now, packets_per_s);
    }

    /// Returns RED's part.
    pub const fn red(&self) -> &RedLaw {
        &self.red
    }
}

#[cfg(test)]
mod tests {
    use super::super::red::tests::PARAMS;
    use super::*;
    use crate::Reason;
    use crate::law::{Counting, RedArithmetic};

    const SIZE: Bytes = Bytes::new(1000);

    fn law(comparisons: Comparisons) -> ChokeLaw {
        ChokeLaw::new(PARAMS, comparisons)
    }

    #[test]
    fn no_arrival_is_compared_up_to_min_th() {
        for (avg, number) in [(0.0, 0), (5.0, 0), (5.001, 1), (15.0, 1), (40.0, 1)] {
            assert_eq!(law(Comparisons::Fixed(1)).comparisons(avg), number, "{avg}");
        }
    }

    /// Thresholds 5 and 15, five regions: (5, 7], (7, 9], ...
    #[test]
    fn each_region_has_two_comparisons_more() {
        let law = law(Comparisons::Regions(5));
        for (avg, number) in
            [(5.0, 0), (5.1, 2), (7.0, 2), (7.1, 4), (9.0, 4), (14.9, 10), (15.0, 10), (99.0, 10)]
        {
            assert_eq!(law.comparisons(avg), number, "{avg}");
        }
    }

    /// Figure 1 of the paper: "AvgQsize <= Minth" admits, and "AvgQsize <= Maxth" still draws.
    #[test]
    fn an_average_equal_to_a_threshold_counts_as_below() {
        for (counting, arithmetic) in
            [(Counting::Paper, RedArithmetic::Exact), (Counting::Linux, RedArithmetic::Linux)]
        {
            let params = RedParams { counting, arithmetic, ..PARAMS };
            let decide = |queued, u| {
                let mut law = ChokeLaw::new(params, Comparisons::Fixed(1));
                let avg = law.on_arrival(Instant::ZERO, queued);
                match law.decide(avg, queued, SIZE, || u) {
                    Decision::Admit => None,
                    Decision::Notify(notice) => Some(notice.reason),
                }
            };
            assert_eq!(decide(5.0, 0.0), None);
            assert_eq!(decide(15.0, 0.999), None, "max_p is 0.1");
            assert_eq!(decide(15.0, 0.0), Some(Reason::Early));
            assert_eq!(decide(15.001, 0.999), Some(Reason::Forced));
        }
        assert!((law(Comparisons::Fixed(1)).red().probability(15.0) - 0.1).abs() < 1e-15);
    }
}
