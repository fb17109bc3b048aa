//! RED's spreading of notifications: from a probability per packet to even gaps between hits.

use aqmlab_units::Bytes;

use super::ByteMode;

/// The rule that spreads the gaps between notifications.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpacingRule {
    /// The pseudo-code of Floyd and Jacobson 1993: `pb / (1 - count pb)`, with count incremented
    /// before use. With constant pb, the gap is uniform on {1, ..., 1/pb - 1}. (In the paper's
    /// analysis, which counts the packets before this one, the gap is uniform on {1, ..., 1/pb}.)
    Paper,
    /// ns-2.35 with `wait_`, its default: no notification before `count pb` reaches 1; the gap is uniform on
    /// {1/pb, ..., 2/pb - 1}.
    Ns2Wait,
    /// Linux: one draw R per cycle, and a hit as soon as `count pb >= R`; the gap is uniform on {1, ...,
    /// 1/pb}.
    Linux,
    /// No spreading: hit with probability pb, so gaps are geometrically distributed (the paper's "method 1").
    Off,
}

/// The number of packets since the last notification.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spacing {
    rule: SpacingRule,
    byte_mode: ByteMode,
    /// Arrivals since the last notification; -1 outside a cycle.
    count: i64,
    bytes: u64,
    /// Linux: the cycle's draw.
    goal: Option<f64>,
}

impl Spacing {
    /// Creates a state outside any cycle.
    pub const fn new(rule: SpacingRule, byte_mode: ByteMode) -> Self {
        Spacing { rule, byte_mode, count: -1, bytes: 0, goal: None }
    }

    /// Ends the cycle because no packet is chosen at the current average.
    #[inline]
    pub const fn leave(&mut self) {
        self.count = -1;
        self.bytes = 0;
        self.goal = None;
    }

    /// Begins a new cycle after a notification.
    #[inline]
    pub const fn notified(&mut self) {
        self.count = 0;
        self.bytes = 0;
    }

    /// Begins a new cycle of which this packet is the first (ns-2: the first arrival above the threshold).
    #[inline]
    pub const fn begin_with(&mut self, size: Bytes) {
        self.count = 1;
        self.bytes = size.get();
    }

    /// Counts one more packet.
    #[inline]
    pub const fn step(&mut self, size: Bytes) {
        self.count += 1;
        self.bytes += size.get();
    }

    /// Returns whether this packet is chosen, given its probability `pb` before spacing. A hit begins a new
    /// cycle. `draw` is called at most once.
    #[inline]
    pub fn hit(&mut self, pb: f64, size: Bytes, draw: impl FnOnce() -> f64) -> bool {
        let pa = match (self.rule, self.byte_mode) {
            (SpacingRule::Linux, mode) => return self.linux_hit(mode.before_spacing(pb, size), draw),
            (_, ByteMode::Off) => self.spaced(pb, self.count as f64),
            (_, mode @ ByteMode::Paper { .. }) => {
                self.spaced(mode.before_spacing(pb, size), self.count as f64)
            }
            // ns-2 counts in units of the mean packet size, rounded down by an integer division.
            (_, mode @ ByteMode::Ns2 { mean }) => {
                mode.after_spacing(self.spaced(pb, (self.bytes / mean.get()) as f64), size)
            }
        };
        // DEVIATES from ns-2: `u < pa`, not `u <= pa`, so that no packet is chosen when the
        // probability is 0.
        let hit = pa > 0.0 && draw() < pa;
        if hit {
            self.notified();
        }
        hit
    }

    /// Returns the number of arrivals since the last notification; -1 outside a cycle.
    pub const fn count(&self) -> i64 {
        self.count
    }

    /// Returns the probability of a notification after `elapsed` packets without one.
    #[inline]
    fn spaced(&self, pb: f64, elapsed: f64) -> f64 {
        let share = elapsed * pb;
        match self.rule {
            SpacingRule::Paper if share < 1.0 => pb / (1.0 - share),
            SpacingRule::Ns2Wait if share < 1.0 => 0.0,
            SpacingRule::Ns2Wait if share < 2.0 => pb / (2.0 - share),
            SpacingRule::Off | SpacingRule::Linux => pb,
            SpacingRule::Paper | SpacingRule::Ns2Wait => 1.0,
        }
    }

    /// Follows `red_action` of the kernel: if a cycle does not follow a hit, its first packet only
    /// triggers the draw and is never a hit itself.
    #[inline]
    fn linux_hit(&mut self, pb: f64, draw: impl FnOnce() -> f64) -> bool {
        let Some(goal) = self.goal else {
            self.goal = Some(draw());
            self.count = 0;
            return false;
        };
        let hit = self.count as f64 * pb >= goal;
        if hit {
            self.notified();
            self.goal = Some(draw());
        }
        hit
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_random::Stream;

    use super::*;

    const SIZE: Bytes = Bytes::new(1000);

    /// Counts how often each gap between successive hits occurs at constant pb = 0.05; the index is the gap.
    fn gaps(rule: SpacingRule, cycles: usize) -> alloc::vec::Vec<u64> {
        let mut spacing = Spacing::new(rule, ByteMode::Off);
        let mut draws = Stream::new(7, "gaps");
        let mut counts = alloc::vec![0; 400];
        // The first cycle begins from the state outside any cycle, and all later ones begin with a hit.
        let (mut gap, mut seen) = (0, 0);
        while seen <= cycles {
            gap += 1;
            spacing.step(SIZE);
            if spacing.hit(0.05, SIZE, || draws.unit()) {
                if seen > 0 {
                    counts[gap] += 1;
                }
                (gap, seen) = (0, seen + 1);
            }
        }
        counts
    }

    /// Asserts that all gaps in `low ..= high` are equally frequent, within five standard deviations, and
    /// that no other gap occurs.
    fn assert_uniform(rule: SpacingRule, low: usize, high: usize) {
        let cycles = 200_000;
        let counts = gaps(rule, cycles);
        let share = 1.0 / (high - low + 1) as f64;
        let spread = 5.0 * (cycles as f64 * share * (1.0 - share)).sqrt();
        for (gap, &count) in counts.iter().enumerate() {
            if (low..=high).contains(&gap) {
                assert!((count as f64 - cycles as f64 * share).abs() < spread, "{rule:?} gap {gap}: {count}");
            } else {
                assert_eq!(count, 0, "{rule:?} gap {gap}");
            }
        }
    }

    #[test]
    fn known_answer_gaps() {
        assert_uniform(SpacingRule::Paper, 1, 19);
        assert_uniform(SpacingRule::Ns2Wait, 20, 39);
        assert_uniform(SpacingRule::Linux, 1, 20);
    }

    #[test]
    fn without_spacing_gaps_are_geometric() {
        let cycles = 200_000;
        let counts = gaps(SpacingRule::Off, cycles);
        for gap in [1, 5, 20] {
            let share = 0.05 * 0.95f64.powi(gap - 1);
            let spread = 5.0 * (cycles as f64 * share).sqrt();
            assert!((counts[gap as usize] as f64 - cycles as f64 * share).abs() < spread, "gap {gap}");
        }
    }

    #[test]
    fn the_order_of_scaling_by_size_differs_between_paper_and_ns2() {
        let pa = |byte_mode, count| {
            let mut spacing = Spacing::new(SpacingRule::Paper, byte_mode);
            (0..=count).for_each(|_| spacing.step(Bytes::new(500)));
            // Finds the smallest draw that is not a hit, by bisection.
            let (mut low, mut high) = (0.0, 1.0);
            for _ in 0..50 {
                let middle = (low + high) / 2.0;
                if { spacing }.hit(0.05, Bytes::new(500), || middle) { low = middle } else { high = middle }
            }
            low
        };
        // Paper: pb is 0.05 * 500/1000 = 0.025 and the count is 10: 0.025 / (1 - 0.25).
        let paper = pa(ByteMode::Paper { largest: Bytes::new(1000) }, 10);
        assert!((paper - 0.025 / 0.75).abs() < 1e-9, "{paper}");
        // ns-2: 11 packets of 500 B count as 5 packets of mean size: 0.05 / (1 - 0.25) * 500/1000.
        let ns2 = pa(ByteMode::Ns2 { mean: Bytes::new(1000) }, 10);
        assert!((ns2 - 0.05 / 0.75 / 2.0).abs() < 1e-9, "{ns2}");
    }
}
