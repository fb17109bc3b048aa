//! RED-PD's state for one flow, and its treatment of a monitored flow.

use aqmlab_units::{Bytes, Instant, Span};

use super::{ByteMode, Spacing, SpacingRule};

/// Parameters of the law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedPdParams {
    /// R: round-trip time of the TCP connection whose rate a flow must exceed to be identified.
    pub target_rtt: Span,
    /// M: number of lists in the drop history, at most eight.
    pub lists: usize,
    /// K: number of lists that a flow must be on to be identified.
    pub hits: usize,
    /// Largest number of flows per list; a list contains the flows with the most dropped bytes.
    pub list_flows: usize,
    /// Shortest interval between identifications.
    pub min_interval: Span,
    /// Longest interval between identifications, even when nothing is dropped.
    pub max_interval: Span,
    /// Time of the first identification.
    pub start: Span,
    /// Weight of an interval's drop rate in the average from which the next interval is computed.
    pub drop_rate_weight: f64,
    /// Drop rate that RED must exceed in an interval before the filter monitors further flows or
    /// raises the probabilities of monitored ones.
    pub min_drop_rate: f64,
    /// Minimum time between two changes of a flow's probability.
    pub min_change: Span,
    /// Largest reduction of a probability per step.
    pub max_reduction: f64,
    /// Probability at or below which a flow is released rather than given a lower probability; for
    /// unresponsive flows, half this value applies.
    pub release: f64,
    /// Whether monitored flows are tested for their response to drops.
    pub unresponsive_test: bool,
    /// Whether unresponsive flows, too, are spared while at most one packet (or byte) waits
    /// (ns-2 `noidle_`).
    pub no_idle: bool,
}

/// The maximum length of the drop history, as a number of lists.
pub(super) const MOST_LISTS: usize = 8;
/// Number of intervals of a monitored flow that the test for unresponsive flows examines (ns-2 `Hist_Max_`).
const INTERVALS: usize = 5;
/// The test ignores a pair of intervals if one drop rate is at most this fraction of the other.
const COMPARABLE: f64 = 0.1;

/// A flow that recently lost packets in RED, or that is monitored.
#[derive(Clone, Debug, Default)]
pub(super) struct PdFlow {
    /// Bytes that RED dropped in each interval of the history; 0 if the flow is not on the list of that
    /// interval.
    pub lists: [u64; MOST_LISTS],
    /// Bytes of the flow in the current interval: those that arrived, those that RED dropped, and those that
    /// RED or the filter dropped.
    pub arrived: u64,
    pub dropped: u64,
    pub lost: u64,
    /// When the flow's treatment last changed.
    pub changed: Option<Instant>,
    pub monitored: Option<Monitored>,
}

/// The treatment of a monitored flow.
#[derive(Clone, Debug)]
pub(super) struct Monitored {
    /// Probability with which its packets are dropped before they reach the queue.
    pub p: f64,
    pub unresponsive: bool,
    spacing: Spacing,
    history: [Interval; INTERVALS],
    intervals: usize,
}

/// The flow's load and its drop rate in one interval.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Interval {
    bytes_per_s: f64,
    drop_rate: f64,
}

impl PdFlow {
    /// Returns the number of lists that the flow is on.
    pub(super) fn hits(&self) -> usize {
        self.lists.iter().filter(|dropped| **dropped > 0).count()
    }

    /// Returns the bytes that RED dropped in the whole history.
    pub(super) fn in_history(&self) -> u64 {
        self.lists.iter().sum()
    }
}

impl Monitored {
    /// Creates the state of a flow whose packets are dropped with probability `p`.
    pub(super) fn new(p: f64) -> Self {
        let mut spacing = Spacing::new(SpacingRule::Paper, ByteMode::Off);
        spacing.notified();
        Monitored { p, unresponsive: false, spacing, history: Default::default(), intervals: 0 }
    }

    /// Returns whether this packet is dropped, which it can be only if `may_drop`. Gaps between
    /// drops are spread as in RED. As in ns-2.35 (`RedPDQueue::enque`), the count increases after
    /// the decision.
    pub(super) fn drops(&mut self, may_drop: bool, size: Bytes, draw: impl FnOnce() -> f64) -> bool {
        let hit = may_drop && self.spacing.hit(self.p, size, draw);
        if !hit {
            self.spacing.step(size);
        }
        hit
    }

    /// Raises the probability because the flow is still among those with many drops; `share` is the flow's
    /// share of the ambient drop rate. A step at most doubles the probability (or triples it, if the flow is
    /// unresponsive).
    pub(super) fn raise(&mut self, share: f64) {
        let (factor, weight) = if self.unresponsive { (3.0, 2.0) } else { (2.0, 1.0) };
        let raised = if share > self.p { factor * self.p } else { self.p + weight * share };
        // ns-2 stores 1 - p, the share of packets that pass, and divides it by the factor if a subtraction
        // would make it negative.
        self.p = if raised > 1.0 { 1.0 - (1.0 - self.p) / factor } else { raised };
    }

    /// Lowers the probability because the flow had no drops in the whole history. Returns whether the flow is
    /// still monitored.
    pub(super) fn lower(&mut self, params: &RedPdParams) -> bool {
        let (divisor, release) =
            if self.unresponsive { (1.5, params.release / 2.0) } else { (2.0, params.release) };
        if self.p <= release {
            return false;
        }
        let step = params.max_reduction;
        self.p = if self.p > divisor * step { self.p - step } else { self.p / divisor };
        true
    }

    /// Records an interval in which the flow's treatment changed.
    pub(super) fn note(&mut self, bytes_per_s: f64, drop_rate: f64) {
        if self.intervals == INTERVALS {
            self.history.rotate_left(1);
            self.intervals -= 1;
        }
        self.history[self.intervals] = Interval { bytes_per_s, drop_rate };
        self.intervals += 1;
    }

    /// Returns whether the flow keeps its rate when its drop rate rises. The rate of a TCP
    /// connection is inversely proportional to the square root of its drop rate. A pair of recorded
    /// intervals counts for the flow if its rate fell at least as far as this rule predicts, and
    /// against it otherwise.
    pub(super) fn does_not_respond(&self) -> bool {
        let noted = &self.history[..self.intervals];
        let (mut good, mut bad) = (0, 0);
        for few in noted {
            for many in noted.iter().filter(|many| few.drop_rate < many.drop_rate) {
                let drops = few.drop_rate / many.drop_rate;
                if drops <= COMPARABLE {
                    continue;
                }
                let rates = many.bytes_per_s / few.bytes_per_s;
                if rates > libm::sqrt(drops) { bad += 1 } else { good += 1 }
            }
        }
        match good {
            0 => bad >= 3,
            1 => bad >= 4,
            _ => bad >= 4 * good,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::red_pd::tests::PARAMS;

    fn raised(p: f64, unresponsive: bool, share: f64) -> f64 {
        let mut flow = Monitored { unresponsive, ..Monitored::new(p) };
        flow.raise(share);
        flow.p
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} against {b}");
    }

    #[test]
    fn a_step_upwards_is_the_share_but_at_most_a_doubling() {
        close(raised(0.1, false, 0.03), 0.13);
        close(raised(0.1, false, 0.3), 0.2);
        close(raised(0.1, true, 0.03), 0.16);
        close(raised(0.1, true, 0.3), 0.3);
        // If the probability would exceed 1, the share that passes is halved or divided by three.
        close(raised(0.8, false, 0.9), 0.9);
        close(raised(0.7, true, 0.9), 0.9);
    }

    #[test]
    fn a_step_downwards_is_a_half_but_at_most_five_hundredths() {
        let mut flow = Monitored::new(0.12);
        for p in [0.07, 0.035, 0.0175, 0.00875, 0.004375] {
            assert!(flow.lower(&PARAMS));
            close(flow.p, p);
        }
        assert!(!flow.lower(&PARAMS), "below 0.005 it is released");
        let mut flow = Monitored { unresponsive: true, ..Monitored::new(0.09) };
        for p in [0.04, 0.04 / 1.5] {
            assert!(flow.lower(&PARAMS));
            close(flow.p, p);
        }
    }

    #[test]
    fn drops_are_spread_as_reds_with_a_count_from_nought() {
        // The first packet after a drop is dropped with probability p, and packet number 1/p with
        // certainty if none before it was.
        let mut flow = Monitored::new(0.25);
        let size = Bytes::new(1000);
        for chance in [0.25, 1.0 / 3.0, 0.5, 1.0] {
            assert!(flow.clone().drops(true, size, || chance - 1e-9), "{chance}");
            assert!(!flow.drops(true, size, || chance + 1e-9), "{chance}");
        }
        assert!(flow.drops(true, size, || 0.999));
        assert!(!flow.drops(true, size, || 0.26), "and the count begins again");
        assert!(!flow.drops(false, size, || 0.0));
    }

    #[test]
    fn a_flow_responds_if_its_rate_falls_as_the_root_of_its_drop_rate_rises() {
        let decision = |intervals: &[(f64, f64)]| {
            let mut flow = Monitored::new(0.1);
            intervals.iter().for_each(|(rate, drops)| flow.note(*rate, *drops));
            flow.does_not_respond()
        };
        let constant = [(1e6, 0.01), (1e6, 0.02), (1e6, 0.04)];
        assert!(!decision(&constant[..2]), "one pair is too few");
        assert!(decision(&constant));
        assert!(!decision(&[(1e6, 0.01), (0.7e6, 0.02), (0.5e6, 0.04)]), "a TCP");
        assert!(!decision(&[(1e6, 0.001), (1e6, 0.02), (1e6, 0.5)]), "more than tenfold is not compared");
        // One pair counts in the flow's favour, and two or five count against it.
        assert!(!decision(&[(1e6, 0.01), (1e6, 0.02), (0.6e6, 0.025)]));
        assert!(decision(&[(1e6, 0.01), (1e6, 0.02), (0.86e6, 0.025), (1e6, 0.04)]));
        // Only the last five intervals count.
        let mut six = [(1e6, 0.01), (0.5e6, 0.04), (1e6, 0.01), (1e6, 0.015), (1e6, 0.02), (1e6, 0.03)];
        assert!(!decision(&six));
        six[1].0 = 1e6;
        assert!(decision(&six));
    }
}
