//! RED with an adaptive `max_p`: Adaptive RED (Floyd, Gummadi, Shenker 2001) and Self-Configuring
//! RED (Feng, Kandlur, Saha, Shin 1999).

use aqmlab_units::{Bytes, Instant, Span};

use super::{Decision, RedLaw};

/// The rule by which `max_p` changes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Adaptation {
    /// Additive increase and multiplicative decrease, which move the average towards a band around the
    /// midpoint of the thresholds.
    Aimd(AimdRule),
    /// Division of `max_p` when the average falls below `min_th`, and multiplication when it rises above
    /// `max_th`.
    Crossings(CrossingRule),
}

/// The rule of Self-Configuring RED (Feng et al. 1999).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CrossingRule {
    /// Number by which `max_p` is divided when the average falls below `min_th`; 3 in the paper.
    pub alpha: f64,
    /// Factor by which `max_p` is multiplied when the average rises above `max_th`; 2 in the paper.
    pub beta: f64,
    /// Whether the average counts as above `max_th` before the first arrival, as in ns-2 and ns-3.
    /// This rule then divides `max_p` at the first arrival.
    pub starts_above: bool,
    /// Whether the gentle slope starts from the current `max_p`. In ns-2 it starts from the initial
    /// value.
    pub move_gentle_foot: bool,
}

/// The rule of Adaptive RED.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AimdRule {
    /// Time between updates, above zero.
    pub interval: Span,
    /// Largest increase per update. An update never adds more than a quarter of `max_p`.
    pub alpha: f64,
    /// Factor by which a decrease multiplies `max_p`.
    pub beta: f64,
    /// Value of `max_p` above which no update increases it.
    pub top: f64,
    /// Value of `max_p` below which no update decreases it.
    pub bottom: f64,
    /// When updates fall due.
    pub when: When,
    /// Whether the gentle slope starts from the current `max_p`. In ns-2 it starts from the initial
    /// value.
    pub move_gentle_foot: bool,
}

/// When updates of `max_p` fall due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// Paper: at every multiple of the interval since the start, using the average at that instant.
    Timer,
    /// ns-2: at the first arrival more than an interval after the last *change*, using that
    /// arrival's average.
    Arrivals,
}

/// Distance of the band from each threshold, as a share of the span between the thresholds. The
/// band is the middle fifth.
const BAND_MARGIN: f64 = 0.4;

/// Where the average is, relative to the band (AIMD) or relative to the thresholds (crossings).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Zone {
    Below,
    Inside,
    Above,
}

impl Zone {
    /// Returns the lowest and the highest average that [`zone`] maps to this zone.
    fn range(self, (low, high): (f64, f64)) -> (f64, f64) {
        match self {
            Zone::Below => (f64::NEG_INFINITY, low.next_down()),
            Zone::Inside => (low, high),
            Zone::Above => (high.next_up(), f64::INFINITY),
        }
    }
}

/// RED with a moving `max_p`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdaptiveRed {
    red: RedLaw,
    rule: Adaptation,
    band: (f64, f64),
    /// Timer: when the next update is due. Arrivals: the instant after which the next arrival
    /// triggers an update.
    next: Instant,
    /// Crossings: the lowest and the highest value that the average can take without crossing a
    /// threshold since the last arrival.
    stays: (f64, f64),
}

impl AdaptiveRed {
    /// Creates the law for an empty queue and an idle link at time zero.
    pub fn new(red: RedLaw, rule: Adaptation) -> Self {
        let (min_th, max_th) = (red.params().min_th, red.params().max_th);
        let margin = BAND_MARGIN * (max_th - min_th);
        let (next, zone) = match rule {
            Adaptation::Aimd(aimd) => (Instant::ZERO + aimd.interval, Zone::Below),
            Adaptation::Crossings(rule) if rule.starts_above => (Instant::FAR_FUTURE, Zone::Above),
            Adaptation::Crossings(_) => (Instant::FAR_FUTURE, Zone::Below),
        };
        let stays = zone.range((min_th, max_th));
        AdaptiveRed { red, rule, band: (min_th + margin, max_th - margin), next, stays }
    }

    /// Decides on an arrival as [`RedLaw::on_arrival`] does. An update due at `now` precedes
    /// the arrival.
    #[inline]
    pub fn on_arrival(
        &mut self,
        now: Instant,
        queued: f64,
        size: Bytes,
        draw: impl FnOnce() -> f64,
    ) -> Decision {
        let avg = self.update(now, queued);
        self.red.decide(avg, queued, size, draw)
    }

    /// Handles the first half of an arrival: performs the updates that are due and returns the new average.
    #[inline(always)]
    pub(crate) fn update(&mut self, now: Instant, queued: f64) -> f64 {
        self.catch_up(now);
        let avg = self.red.update_average(now, queued);
        match &self.rule {
            Adaptation::Aimd(aimd) if aimd.when == When::Arrivals && now > self.next => {
                self.update_at_arrival(*aimd, now, avg);
            }
            Adaptation::Aimd(_) => {}
            Adaptation::Crossings(rule) => {
                if !(self.stays.0 <= avg && avg <= self.stays.1) {
                    self.cross(*rule, avg);
                }
            }
        }
        avg
    }

    /// Records an overflow as [`RedLaw::on_overflow`] does.
    pub fn on_overflow(&mut self) {
        self.red.on_overflow();
    }

    /// Records an idle link as [`RedLaw::on_idle`] does.
    #[inline]
    pub fn on_idle(&mut self, now: Instant) {
        self.catch_up(now);
        self.red.on_idle(now);
    }

    /// Changes the link's rate as [`RedLaw::rate_changed`] does.
    pub fn rate_changed(&mut self, now: Instant, packets_per_s: f64) {
        self.catch_up(now);
        self.red.rate_changed(now, packets_per_s);
    }

    /// Returns RED's own law, in its state after the last call.
    pub const fn red(&self) -> &RedLaw {
        &self.red
    }

    pub(crate) const fn red_mut(&mut self) -> &mut RedLaw {
        &mut self.red
    }

    /// Returns the target band of the average.
    pub const fn band(&self) -> (f64, f64) {
        self.band
    }

    /// Returns this law at `now`, after all updates that are due by then.
    pub fn at(&self, now: Instant) -> AdaptiveRed {
        let mut caught_up = *self;
        caught_up.catch_up(now);
        caught_up
    }

    /// Performs the updates that a timer would have performed up to and including `now`.
    #[inline]
    fn catch_up(&mut self, now: Instant) {
        if now < self.next {
            return;
        }
        if let Adaptation::Aimd(rule) = self.rule
            && rule.when == When::Timer
        {
            self.run_timer(rule, now);
        }
    }

    /// Performs the timer's updates up to and including `now`. Between two calls the average can
    /// only fall (it decays on an idle link), so it passes down through the zones at most once. The
    /// work is at most three searches, one per zone, and, above and below the band, at most as many
    /// steps as it takes to move `max_p` from one end of its range to the other.
    #[cold]
    fn run_timer(&mut self, rule: AimdRule, now: Instant) {
        let due = (now - self.next).div_span(rule.interval) + 1;
        let zone_at = |n: u64| self.band_zone(self.red.average().at(self.next + rule.interval * n));
        let mut max_p = self.red.max_p();
        let mut n = 0;
        while n < due {
            let zone = zone_at(n);
            match rule.moved(max_p, zone) {
                Some(moved) => {
                    max_p = moved;
                    n += 1;
                }
                None if !self.red.average().is_idle() => n = due,
                None => n = first_from(n + 1, due, |k| zone_at(k) != zone),
            }
        }
        self.red.set_max_p(max_p, rule.move_gentle_foot);
        self.next += rule.interval * due;
    }

    /// ns-2.35 `REDQueue::updateMaxP`: the decrease is tested first, comparisons are strict, and the time is
    /// recorded only if `max_p` changes.
    #[inline(never)]
    fn update_at_arrival(&mut self, rule: AimdRule, now: Instant, avg: f64) {
        let max_p = self.red.max_p();
        let moved = if avg < self.band.0 && max_p > rule.bottom {
            max_p * rule.beta
        } else if avg > self.band.1 && max_p < rule.top {
            max_p + rule.increase(max_p)
        } else {
            return;
        };
        self.red.set_max_p(moved, rule.move_gentle_foot);
        self.next = now + rule.interval;
    }

    /// Applies the rule of Feng et al. 1999, section 4.
    #[cold]
    fn cross(&mut self, rule: CrossingRule, avg: f64) {
        let thresholds = (self.red.params().min_th, self.red.params().max_th);
        let zone = zone(avg, thresholds);
        self.stays = zone.range(thresholds);
        let max_p = match zone {
            // DEVIATES from the paper and ns-2, which have no bounds: here a probability is at most
            // 1 and never 0, because no factor could raise it again from 0; see
            // docs/disciplines/self-configuring-red.md.
            Zone::Below => (self.red.max_p() / rule.alpha).max(f64::MIN_POSITIVE),
            Zone::Above => (self.red.max_p() * rule.beta).min(1.0),
            Zone::Inside => return,
        };
        self.red.set_max_p(max_p, rule.move_gentle_foot);
    }

    fn band_zone(&self, avg: f64) -> Zone {
        zone(avg, self.band)
    }
}

impl AimdRule {
    /// Returns `max_p` after an update in `zone`, or `None` if it does not change. Paper, figure 1: increase
    /// while `max_p <= 0.5`, decrease while `max_p >= 0.01`.
    fn moved(&self, max_p: f64, zone: Zone) -> Option<f64> {
        match zone {
            Zone::Above if max_p <= self.top => Some(max_p + self.increase(max_p)),
            Zone::Below if max_p >= self.bottom => Some(max_p * self.beta),
            _ => None,
        }
    }

    /// Increases by at most a quarter of `max_p`, so that the average does not jump over the band.
    fn increase(&self, max_p: f64) -> f64 {
        self.alpha.min(max_p / 4.0)
    }
}

fn zone(avg: f64, (low, high): (f64, f64)) -> Zone {
    if avg < low {
        Zone::Below
    } else if avg > high {
        Zone::Above
    } else {
        Zone::Inside
    }
}

/// Returns the smallest `n` in `from .. end` for which `holds` is true, or `end` if there is none. Once
/// `holds` is true, it must remain true.
fn first_from(mut from: u64, mut end: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while from < end {
        let middle = from + (end - from) / 2;
        if holds(middle) { end = middle } else { from = middle + 1 }
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::RedParams;
    use crate::law::red::tests::PARAMS;

    const RULE: AimdRule = AimdRule {
        interval: Span::ms(500),
        alpha: 0.01,
        beta: 0.9,
        top: 0.5,
        bottom: 0.01,
        when: When::Timer,
        move_gentle_foot: true,
    };
    const SIZE: Bytes = Bytes::new(615);

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Span::ms(n)
    }

    /// 10 Mbit/s in packets of 615 B and a target of 10 ms (the known-answer case): C = 2032.52, thresholds
    /// 10.163 and 30.488. The weight is 1, so the average equals the queue length.
    fn law(max_p: f64, rule: AimdRule) -> AdaptiveRed {
        let packets_per_s = 10e6 / (8.0 * 615.0);
        let min_th = 0.01 * packets_per_s / 2.0;
        let red = RedParams { min_th, max_th: 3.0 * min_th, max_p, packets_per_s, gentle: true, ..PARAMS };
        AdaptiveRed::new(RedLaw::new(red), Adaptation::Aimd(rule))
    }

    fn arrive(law: &mut AdaptiveRed, at: Instant, queued: f64) -> f64 {
        let _ = law.on_arrival(at, queued, SIZE, || 0.999);
        law.red().max_p()
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} against {b}");
    }

    #[test]
    fn known_answer_band_and_steps() {
        let (low, high) = law(0.1, RULE).band();
        assert!((low - 18.293).abs() < 1e-3 && (high - 22.358).abs() < 1e-3, "{low} {high}");

        let mut up = law(0.1, RULE);
        arrive(&mut up, ms(1), 25.0);
        close(arrive(&mut up, ms(499), 25.0), 0.1);
        close(arrive(&mut up, ms(500), 25.0), 0.11);
        close(arrive(&mut up, ms(2500), 25.0), 0.15);

        let mut small = law(0.02, RULE);
        arrive(&mut small, ms(1), 25.0);
        close(arrive(&mut small, ms(500), 25.0), 0.025);
        let mut down = law(0.02, RULE);
        arrive(&mut down, ms(1), 12.0);
        close(arrive(&mut down, ms(500), 12.0), 0.018);
    }

    #[test]
    fn the_update_of_an_instant_precedes_its_arrival() {
        let mut law = law(0.1, RULE);
        arrive(&mut law, ms(1), 20.0);
        close(arrive(&mut law, ms(500), 25.0), 0.1);
        close(arrive(&mut law, ms(1000), 20.0), 0.11);
    }

    #[test]
    fn the_range_ends_as_in_the_paper() {
        let mut up = law(0.1, RULE);
        arrive(&mut up, ms(1), 29.0);
        let end = arrive(&mut up, ms(3_600_000), 29.0);
        assert!(end > 0.5 - 1e-9 && end < 0.51 + 1e-9, "{end}: one step may go beyond the top");
        let mut down = law(0.1, RULE);
        arrive(&mut down, ms(1), 12.0);
        let end = arrive(&mut down, ms(3_600_000), 12.0);
        assert!((0.009..0.01).contains(&end), "{end}");
    }

    /// Lets the average decay over an idle hour, once in a single step and once over many calls.
    #[test]
    fn a_leap_over_an_idle_time_equals_every_single_update() {
        for weight in [1e-3, 1e-5, 1e-7] {
            let mut leap = law(0.1, RULE);
            leap.red = RedLaw::new(RedParams { weight, max_p: 0.1, ..*leap.red.params() });
            let mut at = ms(0);
            while leap.red.average().at(at) < 28.0 {
                at += Span::us(10);
                let _ = leap.on_arrival(at, 3e4, SIZE, || 0.999);
            }
            leap.on_idle(at);
            let mut stepped = leap;
            for n in 1..=7200u64 {
                stepped.rate_changed(at + Span::ms(500) * n, leap.red.params().packets_per_s);
            }
            let end = at + Span::ms(500) * 7200;
            assert_eq!(leap.at(end), stepped.at(end), "weight {weight}");
            leap.rate_changed(end, leap.red.params().packets_per_s);
            assert_eq!(leap, stepped, "weight {weight}");
        }
    }

    #[test]
    fn ns2_waits_for_an_arrival_more_than_an_interval_after_the_last_change() {
        let mut law = law(0.1, AimdRule { when: When::Arrivals, move_gentle_foot: false, ..RULE });
        close(arrive(&mut law, ms(500), 25.0), 0.1);
        close(arrive(&mut law, ms(700), 20.0), 0.1);
        close(arrive(&mut law, ms(701), 25.0), 0.11);
        close(arrive(&mut law, ms(1201), 25.0), 0.11);
        close(arrive(&mut law, ms(1202), 25.0), 0.12);
        let max_th = law.red().params().max_th;
        close(law.red().probability(max_th), 0.1);
    }

    #[test]
    fn the_gentle_slope_follows_max_p_in_the_paper() {
        let mut law = law(0.1, RULE);
        arrive(&mut law, ms(1), 25.0);
        arrive(&mut law, ms(500), 25.0);
        close(law.red().probability(law.red().params().max_th), 0.11);
    }

    #[test]
    fn self_configuring_red_moves_only_at_crossings() {
        let rule = CrossingRule { alpha: 3.0, beta: 2.0, starts_above: false, move_gentle_foot: true };
        let mut law = AdaptiveRed::new(*law(0.1, RULE).red(), Adaptation::Crossings(rule));
        let queues = [5.0, 20.0, 31.0, 40.0, 20.0, 5.0, 4.0, 20.0, 31.0];
        let seen = queues.map(|q| arrive(&mut law, ms(1), q));
        let expected = [0.1, 0.1, 0.2, 0.2, 0.2, 0.2 / 3.0, 0.2 / 3.0, 0.2 / 3.0, 0.4 / 3.0];
        seen.iter().zip(expected).for_each(|(s, e)| close(*s, e));
    }

    #[test]
    fn in_ns2_self_configuring_red_starts_above() {
        let rule = CrossingRule { alpha: 3.0, beta: 2.0, starts_above: true, move_gentle_foot: false };
        let mut law = AdaptiveRed::new(*law(0.1, RULE).red(), Adaptation::Crossings(rule));
        let seen = [5.0, 6.0, 31.0].map(|q| arrive(&mut law, ms(1), q));
        seen.iter().zip([0.1 / 3.0, 0.1 / 3.0, 0.2 / 3.0]).for_each(|(s, e)| close(*s, e));
        close(law.red().probability(law.red().params().max_th), 0.1);
    }
}
