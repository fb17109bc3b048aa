//! PIE (RFC 8033). A proportional-integral controller of the queueing delay: at each update, a drop or mark
//! probability rises by `alpha` times the distance of the delay from its target plus `beta` times the growth of
//! the delay, both scaled down while the probability is small.
//!
//! Probabilities are whole numbers of units, so that many equal updates can be made in one operation, with the
//! same result to the last bit, and a packet costs no division.

use alloc::sync::Arc;

use aqmlab_units::{Bytes, Instant, Rate, Span};

use super::pie_params::{BOUNDS, LINUX_TICKS_PER_S, Scales};
use super::{Decision, Notice, PieArithmetic, PieDelay, PieParams, Sampling};
use crate::Reason;

/// RFC 8033, section 4.2: the gains are divided by 2 below 0.1, by 8 below 0.01, ... by 2048 below 0.000001.
/// This is the number of bits, by the number of bounds that the probability is below.
const SHIFTS: [u32; BOUNDS + 1] = [0, 1, 3, 5, 7, 9, 11];
/// Fractional bits of Linux's departure rate, which is in bytes per unit of time.
const LINUX_RATE_BITS: u32 = 8;

/// What does not change.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Fixed {
    params: PieParams,
    scales: Scales,
}

/// The law's state. Times and probabilities are in the units of [`PieArithmetic`]. Copies share what does not change.
#[derive(Clone, PartialEq, Debug)]
pub struct PieLaw {
    fixed: Arc<Fixed>,
    sampling: Sampling,
    p: u64,
    /// `p` divided by the size relative to which it is scaled.
    p_per_byte: u64,
    /// The sum of the probabilities since the last choice, for derandomisation.
    accumulated: u64,
    /// The delay at present, `current_qdelay`; with a departure rate, that at the last update.
    delay: u64,
    /// The delay at the last update, `qdelay_old`.
    old: u64,
    /// The time for which no packet will be chosen, `burst_allowance`.
    burst: u64,
    /// With a departure rate: the beginning of the present measurement. In Linux's arithmetic with timestamps: the
    /// last departure. `None` if there is none.
    since: Option<u64>,
    /// The number of bytes that have left since the measurement began.
    left: u64,
    /// The departure rate: the average time per `DQ_THRESHOLD` bytes, or, in Linux's arithmetic, the rate itself;
    /// 0 before the first measurement.
    drain: f64,
}

impl PieLaw {
    /// Creates the law for an empty queue at time zero; the first update is due after one period.
    pub fn new(params: PieParams) -> Self {
        let scales = Scales::new(&params);
        PieLaw {
            fixed: Arc::new(Fixed { params, scales }),
            sampling: Sampling::every(params.t_update),
            p: 0,
            p_per_byte: 0,
            accumulated: 0,
            delay: 0,
            old: 0,
            burst: scales.max_burst,
            since: None,
            left: 0,
            drain: 0.0,
        }
    }

    /// Performs all updates that are due up to and including `now`. `backlog` has been constant since the last
    /// call.
    #[inline]
    pub fn catch_up(&mut self, now: Instant, backlog: Bytes) {
        if self.sampling.is_due(now) {
            self.update(now, backlog.get());
        }
    }

    /// Decides on the arrival of a packet of `size` that finds `waiting` bytes. The caller must first have
    /// brought the law up to date. `draw` returns a number in [0, 1) and is called at most once.
    #[inline]
    pub fn on_arrival(&mut self, waiting: Bytes, size: Bytes, draw: impl FnOnce() -> f64) -> Decision {
        let half = self.fixed.scales.half_target;
        let last = match self.fixed.params.arithmetic {
            PieArithmetic::Exact => {
                // RFC 8033, section 4.3: the allowance is restored when the congestion has gone away.
                if self.p == 0 && self.delay < half && self.old < half {
                    self.burst = self.fixed.scales.max_burst;
                }
                self.old
            }
            PieArithmetic::Linux => self.delay,
        };
        // Section 4.1: a short queue is spared, so that the link stays busy.
        if self.burst > 0
            || (last < half && self.p < self.fixed.scales.fifth)
            || waiting.get() < self.fixed.scales.spared
        {
            return Decision::Admit;
        }
        self.choose(size, draw)
    }

    /// Sections 4.1 and 5.4.
    fn choose(&mut self, size: Bytes, draw: impl FnOnce() -> f64) -> Decision {
        let p = match self.fixed.params.largest {
            Some(largest) if size <= largest => size.get() * self.p_per_byte,
            _ => self.p,
        };
        if self.fixed.params.derandomize {
            let (least, most) = self.fixed.scales.spread;
            self.accumulated = if p == 0 { 0 } else { self.accumulated.wrapping_add(p) };
            if self.accumulated < least {
                return Decision::Admit;
            }
            if self.accumulated >= most {
                if self.fixed.params.arithmetic == PieArithmetic::Exact {
                    self.accumulated = 0;
                }
                return self.notice();
            }
        }
        if draw() * (self.fixed.scales.one as f64) < p as f64 {
            self.accumulated = 0;
            return self.notice();
        }
        Decision::Admit
    }

    fn notice(&self) -> Decision {
        // Section 5.1.
        Decision::Notify(Notice { reason: Reason::Early, markable: self.p < self.fixed.scales.mark_below })
    }

    /// Records that a packet is dropped, by the law or because there is no room for it.
    #[inline]
    pub const fn on_drop(&mut self) {
        self.accumulated = 0;
    }

    /// Records that a packet of `size` leaves after waiting for `sojourn`, with `left` bytes behind it.
    #[inline]
    pub fn on_departure(&mut self, now: Instant, size: Bytes, sojourn: Span, left: Bytes) {
        let bits = self.fixed.scales.time_bits;
        let at = now.as_ns() >> bits;
        if let PieDelay::Rate(threshold) = self.fixed.params.delay {
            return self.measure(at, size.get(), left.get(), threshold.get());
        }
        // DEVIATES from RFC 8033, appendix A: an empty queue has no delay, as in Linux. By the appendix, the delay of
        // the last packet would count until the next one leaves, and the probability would rise on an idle link.
        self.delay =
            if left == Bytes::ZERO { 0 } else { at - (now.as_ns().saturating_sub(sojourn.as_ns()) >> bits) };
        if self.fixed.params.arithmetic == PieArithmetic::Linux
            && let Some(last) = self.since.replace(at)
        {
            self.burst = self.burst.saturating_sub(at - last);
        }
    }

    /// RFC 8033, section 5.2: measures the departure rate.
    fn measure(&mut self, at: u64, size: u64, left: u64, threshold: u64) {
        let since = match self.since {
            Some(since) => since,
            None if left < threshold => return,
            None => {
                self.left = 0;
                *self.since.insert(at)
            }
        };
        self.left += size;
        let time = at - since;
        if self.left < threshold {
            return;
        }
        match self.fixed.params.arithmetic {
            PieArithmetic::Exact => {
                let weight = threshold as f64 / 65_536.0;
                let time = time as f64;
                self.drain =
                    if self.drain == 0.0 { time } else { time * weight + self.drain * (1.0 - weight) };
                self.since = None;
            }
            PieArithmetic::Linux => {
                let Some(rate) = (self.left << LINUX_RATE_BITS).checked_div(time) else { return };
                let average = self.drain as u64;
                let average = if average == 0 { rate } else { average - (average >> 3) + (rate >> 3) };
                self.drain = average as f64;
                self.since = (left >= threshold).then_some(at);
                self.left = 0;
                self.burst = self.burst.saturating_sub(time);
            }
        }
    }

    /// The delay that an update sees.
    fn measured_delay(&self, backlog: u64) -> u64 {
        let PieDelay::Rate(threshold) = self.fixed.params.delay else { return self.delay };
        match self.fixed.params.arithmetic {
            PieArithmetic::Exact => (backlog as f64 * self.drain / threshold.as_f64()) as u64,
            PieArithmetic::Linux => (backlog << LINUX_RATE_BITS).checked_div(self.drain as u64).unwrap_or(0),
        }
    }

    /// Makes the updates that are due. The backlog and, without departures, the delay are constant, so all but the
    /// first update find the delay that the previous one found. Those that change the probability by the same step
    /// are made at once, so the work is bounded however long the pause.
    // DEVIATES from RFC 8033, whose probability is a float: sums of whole numbers are the same in any grouping.
    #[cold]
    fn update(&mut self, now: Instant, backlog: u64) {
        let mut due = self.sampling.take(now);
        if self.fixed.params.arithmetic == PieArithmetic::Exact {
            self.burst = self.burst.saturating_sub(due.saturating_mul(self.fixed.params.t_update.as_ns()));
        }
        while due > 0 {
            let (delay, old, before) = (self.measured_delay(backlog), self.old, self.p);
            let change = self.change(delay, old);
            // The decay of the probability is a factor, not a step.
            let decays = delay == 0
                && old == 0
                && (self.fixed.params.arithmetic == PieArithmetic::Exact || backlog == 0);
            let steps = if delay != old || decays { 1 } else { self.equal_steps(change).min(due) };
            self.p = self.stepped(change, steps, decays);
            (self.delay, self.old) = (delay, delay);
            due -= steps;
            if self.fixed.params.arithmetic == PieArithmetic::Linux {
                self.forget(delay, old);
            }
            // Many steps may also lead back to where they began, since Linux's probability wraps; one does not.
            if steps == 1 && delay == old && self.p == before && self.measured_delay(backlog) == delay {
                break;
            }
        }
        if let Some(largest) = self.fixed.params.largest {
            self.p_per_byte = self.p / largest.get();
        }
    }

    /// The number of bounds of the scaling that the probability is below.
    fn band(&self) -> usize {
        self.fixed.scales.bounds.iter().take_while(|bound| self.p < **bound).count()
    }

    /// Section 4.2: the change of the probability at an update.
    fn change(&self, delay: u64, old: u64) -> i128 {
        let Scales { target, surge, rise: (rise, capped), .. } = self.fixed.scales;
        let band = self.band();
        let (shift, PieParams { alpha, beta, .. }) = (SHIFTS[band], self.fixed.params);
        let (delay_i, target, old) = (i128::from(delay), i128::from(target), i128::from(old));
        let mut change = match self.fixed.params.arithmetic {
            PieArithmetic::Exact => {
                let apart = |one: i128, other: i128| {
                    let s = Span::ns((one - other).unsigned_abs() as u64).as_secs_f64();
                    if one < other { -s } else { s }
                };
                let p = alpha * apart(delay_i, target) + beta * apart(delay_i, old);
                let one = self.fixed.scales.one as f64;
                // A change by more than 1 has the effect of a change by 1, unless it is scaled down.
                libm::rint((p / f64::from(1u32 << shift)).clamp(-1.0, 1.0) * one) as i128
            }
            PieArithmetic::Linux => {
                let per_tick = self.fixed.scales.one / LINUX_TICKS_PER_S;
                let gain = |hz: f64| i128::from((libm::rint(16.0 * hz) as u64 * per_tick) >> 4 >> shift);
                gain(alpha) * (delay_i - target) + gain(beta) * (delay_i - old)
            }
        };
        if self.fixed.params.cap && band == 0 && change > i128::from(rise) {
            change = i128::from(capped);
        }
        if self.fixed.params.surge && delay > surge {
            change += i128::from(rise);
        }
        change
    }

    /// The number of steps of this size after which another step may have another size, because the probability
    /// has another scaling or has reached an end; at least 1.
    fn equal_steps(&self, change: i128) -> u64 {
        let (p, band) = (i128::from(self.p), self.band());
        let steps = if change > 0 {
            let end = match (band.checked_sub(1), self.fixed.params.arithmetic) {
                (Some(bound), _) => i128::from(self.fixed.scales.bounds[bound]),
                (None, PieArithmetic::Exact) => i128::from(self.fixed.scales.one),
                (None, PieArithmetic::Linux) => i128::from(u64::MAX) + 1,
            };
            (end - p + change - 1) / change
        } else if change < 0 {
            let end = self.fixed.scales.bounds.get(band).map_or(0, |bound| i128::from(*bound));
            (p - end) / -change + 1
        } else {
            return u64::MAX;
        };
        u64::try_from(steps.max(1)).unwrap_or(u64::MAX)
    }

    /// The probability after `steps` equal changes.
    fn stepped(&self, change: i128, steps: u64, decays: bool) -> u64 {
        let (decay, one) = (self.fixed.params.decay, self.fixed.scales.one);
        let p = i128::from(self.p).saturating_add(change.saturating_mul(i128::from(steps))).max(0);
        match self.fixed.params.arithmetic {
            PieArithmetic::Exact => {
                let p = if decays { libm::rint(p as f64 * decay) as i128 } else { p };
                u64::try_from(p).unwrap_or(one).min(one)
            }
            PieArithmetic::Linux => {
                let p = u64::try_from(p).unwrap_or(one);
                if decays { p - p / libm::rint(1.0 / (1.0 - decay)) as u64 } else { p }
            }
        }
    }

    /// Linux: starts anew once the congestion has gone away.
    fn forget(&mut self, delay: u64, old: u64) {
        let half = self.fixed.scales.half_target;
        let measured = self.fixed.params.delay == PieDelay::Timestamps || self.drain > 0.0;
        if self.p == 0 && delay < half && old < half && measured {
            self.burst = self.fixed.scales.max_burst;
            (self.accumulated, self.since, self.left, self.drain) = (0, None, 0, 0.0);
        }
    }

    /// Returns whether the law, up to date and in an empty queue, will decide as a new one.
    pub fn is_as_new(&self) -> bool {
        // In exact arithmetic, the next arrival restores the allowance, and timestamps have no measurement.
        let measures = self.since.is_some() || self.left > 0 || self.drain > 0.0;
        let remembers = match self.fixed.params.arithmetic {
            PieArithmetic::Exact => self.fixed.params.delay != PieDelay::Timestamps && measures,
            PieArithmetic::Linux => self.burst < self.fixed.scales.max_burst || measures,
        };
        [self.p, self.accumulated, self.delay, self.old] == [0; 4] && !remembers
    }

    /// Returns the probability at the last update. In Linux's arithmetic, it may exceed 1.
    pub fn probability(&self) -> f64 {
        self.p as f64 / self.fixed.scales.one as f64
    }

    /// Returns the probability at the last update in the units of the [`PieArithmetic`].
    pub const fn probability_in_units(&self) -> u64 {
        self.p
    }

    /// Returns the queueing delay: by timestamps, that of the last departure; by the departure rate, that at the
    /// last update.
    pub fn delay(&self) -> Span {
        self.time(self.delay)
    }

    /// Returns the time for which no packet will be chosen.
    pub fn burst_allowance(&self) -> Span {
        self.time(self.burst)
    }

    /// Returns the average departure rate; `None` if it is not measured, or not yet.
    pub fn drain_rate(&self) -> Option<Rate> {
        let PieDelay::Rate(threshold) = self.fixed.params.delay else { return None };
        if self.drain == 0.0 {
            return None;
        }
        Some(match self.fixed.params.arithmetic {
            PieArithmetic::Exact => Rate::of(threshold, Span::ns(self.drain as u64).max(Span::ns(1))),
            PieArithmetic::Linux => {
                let per_s = (self.drain as u64).saturating_mul(LINUX_TICKS_PER_S) >> LINUX_RATE_BITS;
                Rate::of(Bytes::new(per_s), Span::s(1))
            }
        })
    }

    fn time(&self, units: u64) -> Span {
        Span::ns(units << self.fixed.scales.time_bits)
    }

    /// Returns the parameters.
    pub fn params(&self) -> &PieParams {
        &self.fixed.params
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8033, section 4 and appendix A.
    const BASIC: PieParams = PieParams {
        target: Span::ms(15),
        t_update: Span::ms(15),
        alpha: 0.125,
        beta: 1.25,
        max_burst: Span::ms(150),
        mean_packet: Bytes::new(1000),
        mark_below: 0.1,
        decay: 0.98,
        cap: false,
        surge: false,
        derandomize: false,
        largest: None,
        delay: PieDelay::Timestamps,
        arithmetic: PieArithmetic::Exact,
    };
    const LINUX: PieParams = PieParams {
        t_update: Span::ms(16),
        cap: true,
        surge: true,
        derandomize: true,
        decay: 0.984_375,
        arithmetic: PieArithmetic::Linux,
        ..BASIC
    };
    const BACKLOG: Bytes = Bytes::new(100_000);
    const FULL: Bytes = Bytes::new(1000);

    /// Returns the law after an update with these delays and this probability before it.
    fn updated(params: PieParams, p: f64, delay: Span, old: Span) -> PieLaw {
        let mut law = PieLaw::new(params);
        law.p = (p * law.fixed.scales.one as f64) as u64;
        (law.delay, law.old) =
            (delay.as_ns() >> law.fixed.scales.time_bits, old.as_ns() >> law.fixed.scales.time_bits);
        law.catch_up(Instant::ZERO + params.t_update, BACKLOG);
        law
    }

    /// By hand: p + (0.125 (delay - 0.015) + 1.25 (delay - old)) / scale.
    #[test]
    fn updates_are_those_of_the_rfc() {
        let ms = Span::ms;
        for (p, delay, old, after) in [
            (0.2, ms(20), ms(20), 0.2 + 6.25e-4),
            (0.05, ms(20), ms(20), 0.05 + 3.125e-4),
            (0.0, ms(20), ms(0), (6.25e-4 + 0.025) / 2048.0),
            (0.2, ms(10), ms(30), 0.2 - 6.25e-4 - 0.025),
            (0.3, ms(115), ms(15), 0.3 + 0.0125 + 0.125),
            (0.05, ms(0), ms(20), 0.05 - (0.001_875 + 0.025) / 2.0),
            (0.0, ms(0), ms(0), 0.0),
            (0.99, ms(215), ms(15), 1.0),
            (1e-7, ms(1), ms(20), 0.0),
            // Two delays of zero: p falls by alpha times the target, and then by 2 %.
            (0.5, ms(0), ms(0), 0.98 * (0.5 - 0.001_875)),
        ] {
            let law = updated(BASIC, p, delay, old);
            assert!((law.probability() - after).abs() < 1e-15, "{p} {delay} {old}: {}", law.probability());
        }
    }

    /// The tuning table of section 4.2: the factor by which a change is divided, by the probability.
    #[test]
    fn the_tuning_table_is_the_rfcs() {
        for (p, factor) in [
            (0.0, 2048.0),
            (0.99e-6, 2048.0),
            (1.01e-6, 512.0),
            (0.99e-5, 512.0),
            (1.01e-5, 128.0),
            (0.99e-4, 128.0),
            (1.01e-4, 32.0),
            (0.99e-3, 32.0),
            (1.01e-3, 8.0),
            (0.99e-2, 8.0),
            (1.01e-2, 2.0),
            (0.099, 2.0),
            (0.101, 1.0),
            (0.7, 1.0),
        ] {
            let change = 0.125 * 0.002;
            for params in [BASIC, LINUX] {
                let law = updated(params, p, Span::ms(17), Span::ms(17));
                let found = (law.probability() - p) / change * factor;
                let within = if params.arithmetic == PieArithmetic::Exact { 1e-9 } else { 1e-3 };
                assert!((found - 1.0).abs() < within, "{p}: {found}");
            }
        }
        let mut law = PieLaw::new(BASIC);
        for (k, bound) in law.fixed.scales.bounds.into_iter().enumerate() {
            law.p = bound;
            assert_eq!(law.band(), k);
            law.p -= 1;
            assert_eq!(law.band(), k + 1);
        }
    }

    #[test]
    fn rises_are_capped_and_long_delays_add_to_them() {
        let jump = |params, p, delay| updated(params, p, delay, Span::ms(15)).probability() - p;
        let capped = PieParams { cap: true, ..BASIC };
        assert!((jump(capped, 0.1001, Span::ms(115)) - 0.02).abs() < 1e-15);
        assert!((jump(capped, 0.0999, Span::ms(115)) - 0.1375 / 2.0).abs() < 1e-15);
        let both = PieParams { surge: true, ..capped };
        assert!((jump(both, 0.3, Span::ms(251)) - 0.04).abs() < 1e-15);
        assert!((jump(both, 0.3, Span::ms(250)) - 0.02).abs() < 1e-15);
    }

    /// Returns whether a packet is chosen with this draw.
    fn chosen(law: &mut PieLaw, waiting: u64, size: Bytes, u: f64) -> bool {
        law.on_arrival(Bytes::new(waiting), size, || u) != Decision::Admit
    }

    #[test]
    fn short_queues_and_bursts_are_spared() {
        let mut law = updated(BASIC, 0.15, Span::ms(20), Span::ms(20));
        law.burst = 1;
        assert!(!chosen(&mut law, 100_000, FULL, 0.0));
        law.burst = 0;
        assert!(!chosen(&mut law, 2000, FULL, 0.0) && chosen(&mut law, 2001, FULL, 0.0));
        (law.old, law.p) = (7_499_999, law.fixed.scales.one / 100 * 19);
        assert!(!chosen(&mut law, 100_000, FULL, 0.0));
        law.old = 7_500_000;
        assert!(chosen(&mut law, 100_000, FULL, 0.0));
        (law.old, law.p) = (0, law.fixed.scales.one / 100 * 21);
        assert!(chosen(&mut law, 100_000, FULL, 0.0));
    }

    #[test]
    fn the_burst_allowance_lasts_ten_updates_and_comes_back() {
        let mut law = PieLaw::new(BASIC);
        let at = |n: u64| Instant::ZERO + BASIC.t_update.saturating_mul(n);
        law.catch_up(at(3), Bytes::ZERO);
        assert_eq!(law.burst_allowance(), Span::ms(105));
        let _ = chosen(&mut law, 0, FULL, 0.5);
        assert_eq!(law.burst_allowance(), Span::ms(150));
        law.on_departure(at(3), FULL, Span::ms(20), BACKLOG);
        for n in 4..14 {
            assert_eq!(law.burst_allowance(), Span::ms(150 - 15 * (n - 4)));
            law.catch_up(at(n), BACKLOG);
            assert!(!chosen(&mut law, 100_000, FULL, 0.0) || n == 13);
        }
        assert_eq!(law.burst_allowance(), Span::ZERO);
    }

    /// Section 5.4: with a probability of 0.1, the choices are 9 to 85 packets apart.
    #[test]
    fn derandomised_choices_are_neither_close_nor_far() {
        let mut law = updated(BASIC, 0.1, Span::ms(15), Span::ms(15));
        Arc::make_mut(&mut law.fixed).params.derandomize = true;
        law.burst = 0;
        let until = |law: &mut PieLaw, u| (1..200).find(|_| chosen(law, 100_000, FULL, u));
        assert_eq!(until(&mut law, 0.0), Some(9));
        assert_eq!(until(&mut law, 0.99), Some(85));
        assert_eq!(until(&mut law, 0.0), Some(9), "a choice starts anew");
        for _ in 0..8 {
            let _ = chosen(&mut law, 100_000, FULL, 0.0);
        }
        law.on_drop();
        assert_eq!(until(&mut law, 0.0), Some(9), "so does an overflow");
    }

    #[test]
    fn marks_replace_drops_only_at_small_probabilities() {
        for (p, markable) in [(0.05, true), (0.0999, true), (0.1001, false), (0.5, false)] {
            let mut law = updated(BASIC, p, Span::ms(15), Span::ms(15));
            law.burst = 0;
            let decision = law.on_arrival(BACKLOG, FULL, || 0.0);
            assert_eq!(decision, Decision::Notify(Notice { reason: Reason::Early, markable }), "{p}");
        }
    }

    #[test]
    fn small_packets_have_small_probabilities() {
        let scaled = PieParams { largest: Some(Bytes::new(1500)), ..BASIC };
        let mut law = updated(scaled, 0.3, Span::ms(15), Span::ms(15));
        law.burst = 0;
        for (size, p) in [(1500, 0.3), (750, 0.15), (9000, 0.3), (50, 0.01)] {
            let size = Bytes::new(size);
            assert!(chosen(&mut law, 100_000, size, p - 1e-9) && !chosen(&mut law, 100_000, size, p + 1e-9));
        }
    }

    /// 16 packets of 1024 B, one per millisecond: the average time per 16 KiB is 15 ms (the first packet starts the
    /// clock), then moves by a quarter of each difference.
    #[test]
    fn the_departure_rate_is_the_rfcs() {
        let mut law = PieLaw::new(PieParams { delay: PieDelay::Rate(Bytes::new(16_384)), ..BASIC });
        let (size, mut at) = (Bytes::new(1024), 0);
        let mut cycle = |law: &mut PieLaw, apart: u64| {
            for _ in 0..16 {
                at += apart;
                law.on_departure(Instant::from_ns(at), size, Span::ZERO, BACKLOG);
            }
        };
        cycle(&mut law, 1_000_000);
        assert_eq!(law.drain, 15e6);
        assert_eq!(law.drain_rate(), Some(Rate::of(Bytes::new(16_384), Span::ms(15))));
        cycle(&mut law, 2_000_000);
        assert_eq!(law.drain, 15e6 * 0.75 + 30e6 * 0.25);
        law.catch_up(Instant::ZERO + Span::ms(60), Bytes::new(32_768));
        assert_eq!(law.delay(), Span::us(37_500));
    }

    /// Many updates in one call end where they end one by one, whatever the delay, the probability and the
    /// arithmetic.
    #[test]
    fn a_leap_is_as_many_updates() {
        for params in [BASIC, PieParams { cap: true, surge: true, ..BASIC }, LINUX] {
            for delay in [0, 1, 7, 14, 15, 16, 80, 251, 3000].map(Span::ms) {
                for p in [0.0, 1e-6, 3e-5, 0.02, 0.0999, 0.4, 1.0] {
                    for updates in [2u64, 3, 17, 400, 20_000] {
                        let mut leap = updated(params, p, delay, Span::ms(9));
                        let mut stepped = leap.clone();
                        for n in 2..=updates {
                            stepped.catch_up(Instant::ZERO + params.t_update.saturating_mul(n), BACKLOG);
                        }
                        leap.catch_up(Instant::ZERO + params.t_update.saturating_mul(updates), BACKLOG);
                        assert_eq!(leap, stepped, "{delay} {p} {updates}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_end_of_time_is_no_trouble() {
        for params in [BASIC, LINUX] {
            for delay in [0, 15, 16, 100].map(Span::ms) {
                let mut law = updated(params, 0.3, delay, delay);
                law.catch_up(Instant::FAR_FUTURE, Bytes::ZERO);
                assert!(!law.sampling.is_due(Instant::from_ns(u64::MAX - 1)));
            }
        }
    }
}
