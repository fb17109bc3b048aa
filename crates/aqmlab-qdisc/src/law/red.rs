//! Random Early Detection (Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993), gentle or not gentle.

use aqmlab_units::{Bytes, Instant};

use super::average::LowPass;
use super::{Average, ByteMode, Decision, IdleRule, Notice, Spacing, SpacingRule};
use crate::Reason;

/// The rule for counting packets since the last notification, and for arrivals that are never
/// chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counting {
    /// The 1993 pseudo-code: the count runs between the thresholds. The count is -1 below the lower threshold
    /// and 0 after a forced notice.
    Paper,
    /// ns-2.35: the count always runs. No packet is chosen while at most one unit (packet or byte)
    /// waits. The first arrival above `min_th` begins a cycle and passes. The count is 0 after a
    /// forced drop and after an overflow.
    Ns2,
    /// Linux: like the paper, but the count is -1 after a forced notice too.
    Linux,
}

/// The notices that are given as marks if ECN is on; all others are drops.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum EcnRegion {
    /// Notices while the average is below `max_th`. Above `max_th`, packets are dropped, even in the gentle
    /// region (RFC 3168, section 7).
    BelowMaxTh,
    /// Notices whose probability before spacing is below this value (ns-2.35 `mark_p_`). With
    /// [`Counting::Ns2`], no notice is forced in this mode: at averages at which every packet is
    /// chosen, notices are early and have probability 1 (`use_mark_p_`).
    BelowMarkP(f64),
    /// All notices: only an overflow drops ECN-capable packets (Feng 1999; Linux without
    /// `harddrop`).
    Everywhere,
}

/// How the average and the probability are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RedArithmetic {
    /// In real numbers.
    Exact,
    /// Like Linux: the average is a fixed-point number with as many fractional bits as the weight has, and the
    /// probability is the product of two integers: the average's excess over the lower threshold, and the rise
    /// of the probability per unit of the queue, which is at least 1 and in units of 2^-32.
    Linux,
}

/// Parameters of the law. Queue lengths are in the queue's own unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedParams {
    /// Average below which no packet is chosen.
    pub min_th: f64,
    /// Average at and above which every packet is chosen; in gentle mode, twice this value applies.
    pub max_th: f64,
    /// Probability at `max_th`.
    pub max_p: f64,
    /// Weight of a new sample in the average, w_q.
    pub weight: f64,
    /// Whether the probability rises from `max_p` at `max_th` to 1 at twice `max_th`, instead of
    /// jumping to 1.
    pub gentle: bool,
    /// Spreading of notifications.
    pub spacing: SpacingRule,
    /// Scaling by packet size.
    pub byte_mode: ByteMode,
    /// Decay over idle periods.
    pub idle: IdleRule,
    /// Rule for the count.
    pub counting: Counting,
    /// The notices that are given as marks if ECN is on.
    pub ecn_region: EcnRegion,
    /// How the average and the probability are computed.
    pub arithmetic: RedArithmetic,
    /// Packets of mean size that the link can send per second.
    pub packets_per_s: f64,
}

/// The law's state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedLaw {
    params: RedParams,
    average: Average,
    spacing: Spacing,
    /// Filter on the probability; with `None`, the probability is used as calculated.
    low_pass: Option<LowPass>,
    /// Average below which no packet is chosen, and the end of the first slope: `min_th` and `max_th`, or the next
    /// larger numbers ([`RedLaw::up_to_thresholds`]).
    edges: (f64, f64),
    /// max_th - min_th
    range: f64,
    max_p: f64,
    /// Linux: the rise of the probability per unit of the queue.
    rise: f64,
    /// `max_p` at the foot of the gentle slope.
    gentle_foot: f64,
    /// ns-2: whether a cycle has begun. Set by the first arrival that finds the average at `min_th`
    /// or above and gets no forced notice; cleared by an arrival that finds the average below
    /// `min_th` or at most one unit waiting.
    was_above: bool,
}

impl RedLaw {
    /// Creates the law for an empty queue and an idle link.
    pub const fn new(params: RedParams) -> Self {
        let average = Average::new(params.weight, params.idle, params.packets_per_s);
        let range = params.max_th - params.min_th;
        RedLaw {
            params,
            average: match params.arithmetic {
                RedArithmetic::Exact => average,
                RedArithmetic::Linux => average.in_fixed_point(),
            },
            spacing: Spacing::new(params.spacing, params.byte_mode),
            low_pass: None,
            edges: (params.min_th, params.max_th),
            range,
            max_p: params.max_p,
            rise: linux_rise(params.max_p, range),
            gentle_foot: params.max_p,
            was_above: false,
        }
    }

    /// Adds a low-pass filter on the probability, in which a new value has the weight `weight`, in (0, 1]. A
    /// weight of 1 leaves the law unchanged. (Feng, Kandlur, Saha, Shin 1999 mention the possibility.)
    ///
    /// The probability of each arrival enters the filter, and only the filter's output decides. The law
    /// therefore continues to choose packets after the average has fallen below `min_th`, and no notice is
    /// forced above `max_th`.
    #[must_use]
    pub const fn low_passed(mut self, weight: f64) -> Self {
        self.low_pass = if weight < 1.0 { Some(LowPass::new(weight)) } else { None };
        self
    }

    /// Lets an average equal to a threshold count as below it. (In CHOKe's paper and in Linux's CHOKe, both
    /// conditions are `avg <= threshold`.)
    #[must_use]
    pub const fn up_to_thresholds(mut self) -> Self {
        self.edges = (self.params.min_th.next_up(), self.params.max_th.next_up());
        self
    }

    /// Decides on a packet of `size` that finds `queued` waiting. `draw` returns a number in [0, 1)
    /// and is called at most once.
    #[inline]
    pub fn on_arrival(
        &mut self,
        now: Instant,
        queued: f64,
        size: Bytes,
        draw: impl FnOnce() -> f64,
    ) -> Decision {
        let avg = self.update_average(now, queued);
        self.decide(avg, queued, size, draw)
    }

    /// Handles the first half of an arrival: updates the average and returns it.
    #[inline]
    pub(crate) fn update_average(&mut self, now: Instant, queued: f64) -> f64 {
        self.average.on_arrival(now, queued)
    }

    /// Takes over the state of an average that several laws share.
    pub(crate) fn adopt(&mut self, average: &Average) {
        self.average.adopt(average);
    }

    /// Handles the second half of an arrival: decides on the packet.
    #[inline]
    pub(crate) fn decide(
        &mut self,
        avg: f64,
        queued: f64,
        size: Bytes,
        draw: impl FnOnce() -> f64,
    ) -> Decision {
        let pb = if self.low_pass.is_some() {
            match self.filtered(avg, size) {
                Some(pb) => pb,
                None => return Decision::Admit,
            }
        } else {
            match self.without_draw(avg, queued, size) {
                Some(decision) => return decision,
                None => self.probability_from_min_th(avg),
            }
        };
        if self.spacing.hit(pb, size, draw) { self.notice(avg, pb, Reason::Early) } else { Decision::Admit }
    }

    /// Passes the probability at the average `avg` through the filter and returns the result, or `None` if it
    /// is zero. (This is a separate function because filters are rare.)
    #[cold]
    #[inline(never)]
    fn filtered(&mut self, avg: f64, size: Bytes) -> Option<f64> {
        let p = self.probability(avg);
        let pb = self.low_pass.as_mut().map_or(p, |filter| filter.take(p));
        if pb <= 0.0 {
            self.spacing.leave();
            return None;
        }
        self.spacing.step(size);
        Some(pb)
    }

    /// Returns the decision if it needs no draw: outside the range of early notices, and on entry to the
    /// range.
    #[inline]
    fn without_draw(&mut self, avg: f64, queued: f64, size: Bytes) -> Option<Decision> {
        if self.params.counting == Counting::Ns2 {
            return self.without_draw_ns2(avg, queued, size);
        }
        if avg < self.edges.0 {
            self.spacing.leave();
            return Some(Decision::Admit);
        }
        if avg >= self.upper_end() {
            match self.params.counting {
                Counting::Linux => self.spacing.leave(),
                _ => self.spacing.notified(),
            }
            return Some(self.notice(avg, 1.0, Reason::Forced));
        }
        self.spacing.step(size);
        None
    }

    /// ns-2.35 `REDQueue::enque`.
    #[inline]
    fn without_draw_ns2(&mut self, avg: f64, queued: f64, size: Bytes) -> Option<Decision> {
        self.spacing.step(size);
        // One unit is a packet, or a byte if the queue is in bytes.
        if avg < self.edges.0 || queued <= 1.0 {
            self.was_above = false;
            return Some(Decision::Admit);
        }
        if avg >= self.upper_end() && !matches!(self.params.ecn_region, EcnRegion::BelowMarkP(_)) {
            self.spacing.notified();
            return Some(self.notice(avg, 1.0, Reason::Forced));
        }
        if !self.was_above {
            self.was_above = true;
            self.spacing.begin_with(size);
            return Some(Decision::Admit);
        }
        None
    }

    fn notice(&self, avg: f64, pb: f64, reason: Reason) -> Decision {
        let markable = match self.params.ecn_region {
            EcnRegion::BelowMaxTh => avg < self.params.max_th,
            EcnRegion::BelowMarkP(mark_p) => pb < mark_p,
            EcnRegion::Everywhere => true,
        };
        Decision::Notify(Notice { reason, markable })
    }

    /// Records that the buffer had no room for an arrival that the law had admitted.
    pub fn on_overflow(&mut self) {
        if self.params.counting == Counting::Ns2 {
            self.spacing.notified();
        }
    }

    /// Records that the link polled the empty queue.
    #[inline]
    pub fn on_idle(&mut self, now: Instant) {
        self.average.on_idle(now);
    }

    /// Changes the link's rate to `packets_per_s` packets of mean size per second. The weight stays the same.
    pub fn rate_changed(&mut self, now: Instant, packets_per_s: f64) {
        self.average.rate_changed(now, packets_per_s);
    }

    /// Sets `max_p` and, if `move_foot`, the foot of the gentle slope.
    pub(super) fn set_max_p(&mut self, max_p: f64, move_foot: bool) {
        self.max_p = max_p;
        self.rise = linux_rise(max_p, self.range);
        if move_foot {
            self.gentle_foot = max_p;
        }
    }

    /// Returns the probability, before spacing, with which packets are chosen at the average `avg`.
    /// With a low-pass filter, returns its output at the latest arrival.
    pub fn probability_in_use(&self, avg: f64) -> f64 {
        match &self.low_pass {
            Some(filter) => filter.held(),
            None => self.probability(avg),
        }
    }

    /// Returns the unfiltered probability, before spacing, at the average `avg`.
    #[inline]
    pub fn probability(&self, avg: f64) -> f64 {
        if avg < self.edges.0 { 0.0 } else { self.probability_from_min_th(avg) }
    }

    #[inline]
    fn probability_from_min_th(&self, avg: f64) -> f64 {
        let RedParams { min_th, max_th, gentle, .. } = self.params;
        if avg < self.edges.1 {
            match self.params.arithmetic {
                RedArithmetic::Exact => self.max_p * (avg - min_th) / self.range,
                RedArithmetic::Linux => self.rise * ((avg - min_th) as i64 as f64),
            }
        } else if gentle {
            // Floyd, "Recommendation on using the gentle variant of RED", 2000.
            (self.gentle_foot + (1.0 - self.gentle_foot) * (avg - max_th) / max_th).min(1.0)
        } else {
            1.0
        }
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &RedParams {
        &self.params
    }

    /// Returns the average.
    pub const fn average(&self) -> &Average {
        &self.average
    }

    /// Returns the current `max_p`.
    pub const fn max_p(&self) -> f64 {
        self.max_p
    }

    /// Returns the number of arrivals since the last notification; -1 outside a cycle.
    pub const fn count(&self) -> i64 {
        self.spacing.count()
    }

    /// Returns the average at and above which every packet is chosen.
    #[inline]
    fn upper_end(&self) -> f64 {
        if self.params.gentle { 2.0 * self.params.max_th } else { self.edges.1 }
    }
}

/// Returns the rise of Linux's probability per unit of a queue whose thresholds are `range` apart: a whole number
/// of units of 2^-32, at least one.
const fn linux_rise(max_p: f64, range: f64) -> f64 {
    const UNITS: f64 = (1u64 << 32) as f64;
    // The kernel keeps max_p in 32 bits, and takes a range of 0 as 1.
    let max_p = (max_p * UNITS) as u32 as f64;
    let rise = (max_p / if range < 1.0 { 1.0 } else { range }) as u32;
    (if rise == 0 { 1 } else { rise }) as f64 / UNITS
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::law) const PARAMS: RedParams = RedParams {
        min_th: 5.0,
        max_th: 15.0,
        max_p: 0.1,
        weight: 1.0,
        gentle: false,
        spacing: SpacingRule::Paper,
        byte_mode: ByteMode::Off,
        idle: IdleRule::Paper,
        counting: Counting::Paper,
        ecn_region: EcnRegion::BelowMaxTh,
        arithmetic: RedArithmetic::Exact,
        packets_per_s: 1000.0,
    };
    const SIZE: Bytes = Bytes::new(1000);

    /// Returns the decisions on arrivals that find queues of these lengths (with weight 1, the average equals
    /// the length).
    fn decisions<const N: usize>(law: &mut RedLaw, queues: [f64; N], u: f64) -> [Option<Reason>; N] {
        queues.map(|q| match law.on_arrival(Instant::ZERO, q, SIZE, || u) {
            Decision::Admit => None,
            Decision::Notify(notice) => Some(notice.reason),
        })
    }

    #[test]
    fn known_answer_probabilities() {
        let plain = RedLaw::new(PARAMS);
        assert_eq!(plain.probability(4.9), 0.0);
        assert!((plain.probability(10.0) - 0.05).abs() < 1e-15);
        assert_eq!(plain.probability(15.0), 1.0);
        let gentle = RedLaw::new(RedParams { gentle: true, ..PARAMS });
        for (avg, p) in [(10.0, 0.05), (15.0, 0.1), (22.5, 0.55), (30.0, 1.0), (99.0, 1.0)] {
            assert!((gentle.probability(avg) - p).abs() < 1e-15, "{avg}");
        }
    }

    /// Linux 6.1 with `min 30000 max 35000 probability 1` has the max_p 2621435000 / 2^32, which is 524287 for each
    /// of the 5000 bytes between the thresholds; with a max_p of 10^-4 and 250 000 bytes, 1.72 is 1.
    #[test]
    fn the_linux_probability_rises_by_whole_units_per_byte() {
        let law = |max_p, range| {
            let params = RedParams { min_th: 0.0, max_th: range, max_p, ..PARAMS };
            RedLaw::new(RedParams { arithmetic: RedArithmetic::Linux, ..params })
        };
        let units = |law: RedLaw, avg| law.probability(avg) * 4_294_967_296.0;
        assert_eq!(units(law(2_621_435_000.0 / 4_294_967_296.0, 5000.0), 4999.9), 524_287.0 * 4999.0);
        assert_eq!(units(law(1e-4, 250_000.0), 200_000.0), 200_000.0);
        assert_eq!(units(law(1e-12, 250_000.0), 3.0), 3.0, "at least one");
        assert_eq!(units(law(1.0, 2.0), 1.0), 2_147_483_647.0, "max_p has 32 bits");
        let mut moved = law(0.5, 1024.0);
        moved.set_max_p(0.25, true);
        assert_eq!(units(moved, 1.5), 1_048_576.0);
    }

    /// Tests the range of early notices with a low and with a high probability, the gentle region, and the
    /// region above it.
    #[test]
    fn each_ecn_region_ends_at_its_own_edge() {
        let notices = [
            (10.0, 0.05, Reason::Early),
            (14.0, 0.1, Reason::Early),
            (15.0, 0.05, Reason::Early),
            (30.0, 1.0, Reason::Forced),
        ];
        for (ecn_region, marks) in [
            (EcnRegion::BelowMaxTh, [true, true, false, false]),
            (EcnRegion::BelowMarkP(0.1), [true, false, true, false]),
            (EcnRegion::BelowMarkP(1.0), [true, true, true, false]),
            (EcnRegion::Everywhere, [true; 4]),
        ] {
            let law = RedLaw::new(RedParams { ecn_region, ..PARAMS });
            let found = notices.map(|(avg, pb, reason)| match law.notice(avg, pb, reason) {
                Decision::Notify(notice) => notice.markable,
                Decision::Admit => unreachable!("a notice is never admitted"),
            });
            assert_eq!(found, marks, "{ecn_region:?}");
        }
    }

    #[test]
    fn paper_counts_between_the_thresholds_only() {
        let mut law = RedLaw::new(PARAMS);
        let count = |law: &mut RedLaw, q| {
            let _ = decisions(law, [q], 0.999);
            law.count()
        };
        assert_eq!(
            [2.0, 10.0, 10.0, 10.0, 20.0, 10.0, 2.0].map(|q| count(&mut law, q)),
            [-1, 0, 1, 2, 0, 1, -1]
        );
    }

    #[test]
    fn above_the_upper_end_every_notice_is_forced() {
        let forced = Some(Reason::Forced);
        assert_eq!(decisions(&mut RedLaw::new(PARAMS), [14.9, 15.0, 40.0], 0.999), [None, forced, forced]);
        let mut gentle = RedLaw::new(RedParams { gentle: true, ..PARAMS });
        assert_eq!(decisions(&mut gentle, [29.9, 30.0], 0.999), [None, forced]);
    }

    #[test]
    fn ns2_spares_a_queue_of_one_and_the_first_arrival_above() {
        let mut law = RedLaw::new(RedParams { counting: Counting::Ns2, min_th: 0.5, ..PARAMS });
        let early = Some(Reason::Early);
        // With draw 0, every packet that may be chosen is chosen. In turn: the arrival that finds 1 is
        // spared, the first that finds 10 begins a cycle and passes, the second is chosen, the next that
        // finds 1 ends the cycle, and the last two repeat this.
        assert_eq!(
            decisions(&mut law, [1.0, 10.0, 10.0, 1.0, 10.0, 10.0], 0.0),
            [None, None, early, None, None, early]
        );
    }

    #[test]
    fn ns2_with_mark_p_has_no_forced_region() {
        let params = RedParams { counting: Counting::Ns2, ecn_region: EcnRegion::BelowMarkP(0.1), ..PARAMS };
        let mut law = RedLaw::new(params);
        assert_eq!(decisions(&mut law, [40.0, 40.0], 0.999), [None, Some(Reason::Early)]);
    }

    /// ns-2 compares without a limit, so a certain notice is a drop at 1 and a mark above it.
    #[test]
    fn a_mark_p_above_one_marks_even_a_certain_notice() {
        for (mark_p, marks) in [(0.1, false), (1.0, false), (1.5, true)] {
            let law = RedLaw::new(RedParams { ecn_region: EcnRegion::BelowMarkP(mark_p), ..PARAMS });
            let notice = Notice { reason: Reason::Forced, markable: marks };
            assert_eq!(law.notice(40.0, 1.0, Reason::Forced), Decision::Notify(notice), "{mark_p}");
        }
    }

    #[test]
    fn only_ns2_restarts_the_count_at_an_overflow() {
        for (counting, count) in [(Counting::Paper, 2), (Counting::Linux, 2), (Counting::Ns2, 0)] {
            let mut law = RedLaw::new(RedParams { counting, ..PARAMS });
            let _ = decisions(&mut law, [10.0; 3], 0.999);
            law.on_overflow();
            assert_eq!(law.count(), count, "{counting:?}");
        }
    }

    /// The weight of the average is 1 and that of the filter a half. With `SpacingRule::Off`, the
    /// draw is compared with pb itself.
    #[test]
    fn a_low_pass_filter_decides_alone() {
        let params = RedParams { spacing: SpacingRule::Off, max_p: 0.5, ..PARAMS };
        let mut law = RedLaw::new(params).low_passed(0.5);
        // pb 0, 1/4, 1/4, 1 (above max_th), 0, 0: filtered 0, 1/8, 3/16, 19/32, 19/64, 19/128.
        let queues = [4.0, 10.0, 10.0, 15.0, 2.0, 2.0];
        let filtered = [0.0, 0.125, 0.1875, 0.593_75, 0.296_875, 0.148_437_5];
        for (queued, p) in queues.into_iter().zip(filtered) {
            let mut other = law;
            assert_eq!(decisions(&mut law, [queued], p), [None], "a draw of p misses");
            assert_eq!(law.probability_in_use(queued), p);
            let hit = (p > 0.0).then_some(Reason::Early);
            assert_eq!(
                decisions(&mut other, [queued], p.next_down()),
                [hit],
                "early, above max_th and below min_th"
            );
        }
    }

    #[test]
    fn a_filter_of_weight_one_is_none() {
        assert_eq!(RedLaw::new(PARAMS).low_passed(1.0), RedLaw::new(PARAMS));
    }

    #[test]
    fn a_filter_that_holds_nothing_leaves_the_count_out_of_the_range() {
        let mut law = RedLaw::new(PARAMS).low_passed(0.1);
        let mut count = |q| {
            let _ = decisions(&mut law, [q], 0.999_999);
            law.count()
        };
        assert_eq!([2.0, 4.0, 10.0, 10.0, 2.0].map(&mut count), [-1, -1, 0, 1, 2]);
    }

    #[test]
    fn linux_leaves_the_cycle_at_a_forced_notice() {
        let mut law =
            RedLaw::new(RedParams { counting: Counting::Linux, spacing: SpacingRule::Linux, ..PARAMS });
        let _ = decisions(&mut law, [10.0, 10.0, 40.0], 0.999);
        assert_eq!(law.count(), -1);
        assert_eq!(
            decisions(&mut law, [10.0, 10.0], 0.0),
            [None, Some(Reason::Early)],
            "the first only draws"
        );
    }
}
