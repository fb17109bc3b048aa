//! The base controller of PI2 and DualPI2 (De Schepper, Bondarenko, Tsang, Briscoe 2016; RFC 9332,
//! appendix A): a linear PI controller of the waiting time, whose output is squared for Classic traffic.

use aqmlab_units::{Instant, Span};

use super::sampling::Grid;
use super::{Arithmetic, Sampling};

/// Parameters of the controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pi2Params {
    /// The waiting time to which the queue is controlled.
    pub target: Span,
    /// Time between two updates, above zero.
    pub period: Span,
    /// Integral gain: change of p' per update and per second of distance from the target, in 1/s.
    pub alpha: f64,
    /// Proportional gain: change of p' per second of change since the last update, in 1/s.
    pub beta: f64,
    /// The largest p'.
    pub most: f64,
    /// The numbers in which p' is computed.
    pub arithmetic: Arithmetic,
}

/// The controller's state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pi2Law {
    params: Pi2Params,
    fixed: Fixed,
    sampling: Sampling,
    p: Grid,
    /// p' as a float.
    probability: f64,
    delay: Span,
}

/// Linux's parameters: gains in units of 2^-26 per nanosecond, and the largest p' in units of 2^-32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Fixed {
    alpha: i128,
    beta: i128,
    most: u32,
}

/// The largest probability in Linux, in units of 2^-32.
const LINUX_MOST: u32 = u32::MAX;
/// The unit of Linux's probabilities.
const LINUX_UNIT: f64 = (1u64 << 32) as f64;
/// The unit in which tc and Linux exchange gains: 1/256 Hz.
const LINUX_GAIN: f64 = 256.0;

impl Fixed {
    fn new(params: &Pi2Params) -> Self {
        // Linux: gains are whole numbers of 1/256 Hz, and each is converted with a rounding of its own.
        let gain = |hz: f64| {
            let exchanged = (hz * LINUX_GAIN) as u64;
            let scaled =
                ((u128::from(exchanged) * u128::from(LINUX_MOST)) >> 2) / u128::from(Span::s(1).as_ns());
            i128::try_from(scaled).unwrap_or(i128::MAX)
        };
        // A bound of 1 / k is MAX / k there, rounded down.
        let most = (params.most * f64::from(LINUX_MOST)) as u32;
        Fixed { alpha: gain(params.alpha), beta: gain(params.beta), most }
    }
}

impl Pi2Law {
    /// Creates the controller for an empty queue at time zero.
    pub fn new(params: Pi2Params) -> Self {
        Pi2Law {
            params,
            fixed: Fixed::new(&params),
            sampling: Sampling::every(params.period),
            p: Grid::ZERO,
            probability: 0.0,
            delay: Span::ZERO,
        }
    }

    /// Makes all updates that are due up to and including `now`. `oldest` returns when the packet that has
    /// waited longest arrived, or `None` if no packet waits; nothing has come or gone since the last call.
    #[inline]
    pub fn catch_up(&mut self, now: Instant, oldest: impl FnOnce() -> Option<Instant>) {
        if self.sampling.is_due(now) {
            self.updates(now, oldest());
        }
    }

    /// Makes the updates that are due.
    ///
    /// The waiting time of a packet that nobody serves grows by one period per update, so from the second
    /// update on the steps grow too: once p' has reached its largest value with a step that is not negative,
    /// it stays there. An empty queue makes equal steps from its second update on. The loop is therefore
    /// bounded by the number of updates in which a waiting time passes the target and p' then reaches its
    /// bound.
    #[cold]
    fn updates(&mut self, now: Instant, oldest: Option<Instant>) {
        let due = self.sampling.due(now);
        let Some(oldest) = oldest else {
            if due > 0 {
                self.update(Span::ZERO);
                self.step(Span::ZERO, due - 1);
                let _ = self.sampling.take(now);
            }
            return;
        };
        for nth in 0..due {
            let delay = self.sampling.next().saturating_since(oldest);
            let rises = self.update(delay);
            let _ = self.sampling.take(self.sampling.next());
            if nth > 0 && rises && self.is_at_most() {
                if self.sampling.take(now) > 0 {
                    self.delay = self.sampling.last().saturating_since(oldest);
                }
                break;
            }
        }
    }

    /// Makes one update with this waiting time, and returns whether its step was not negative.
    // RFC 9332, figure 6: p' = p' + alpha (curq - target) + beta (curq - prevq), in [0, 1].
    pub fn update(&mut self, delay: Span) -> bool {
        let rises = self.step(delay, 1);
        self.delay = delay;
        rises
    }

    /// Makes `count` equal steps.
    fn step(&mut self, delay: Span, count: u64) -> bool {
        let rises;
        match self.params.arithmetic {
            Arithmetic::Exact => {
                let Pi2Params { target, alpha, beta, most, .. } = self.params;
                let step = Grid::nearest(
                    alpha * difference_s(delay, target) + beta * difference_s(delay, self.delay),
                );
                rises = step >= Grid::ZERO;
                self.p = self.p.stepped(step, count, (Grid::ZERO, Grid::nearest(most)));
                self.probability = self.p.value();
            }
            Arithmetic::Linux => {
                let Fixed { alpha, beta, most } = self.fixed;
                let change = alpha * difference_ns(delay, self.params.target)
                    + beta * difference_ns(delay, self.delay);
                // Linux keeps the size of the step in 32 bits: one of 1 or more wraps.
                let size = u64::from((change.unsigned_abs() >> 6) as u32).saturating_mul(count);
                rises = change > 0;
                let p = (self.probability * LINUX_UNIT) as u64;
                let moved = if rises { p.saturating_add(size) } else { p.saturating_sub(size) };
                let p = moved.min(u64::from(LINUX_MOST)).min(u64::from(most));
                self.probability = p as f64 / LINUX_UNIT;
                self.p = Grid::nearest(self.probability);
            }
        }
        rises
    }

    fn is_at_most(&self) -> bool {
        match self.params.arithmetic {
            Arithmetic::Exact => self.p >= Grid::nearest(self.params.most),
            Arithmetic::Linux => self.probability * LINUX_UNIT >= f64::from(self.fixed.most),
        }
    }

    /// Returns p' at the last update.
    #[inline]
    pub const fn probability(&self) -> f64 {
        self.probability
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &Pi2Params {
        &self.params
    }

    /// Returns whether k p', the coupled probability, has reached its end, from which the queue counts as
    /// overloaded.
    // RFC 9332, figure 9: p_CL < p_Lmax; Linux: k p' in units of 2^-32 exceeds 2^32 - 1.
    #[inline]
    pub fn is_overloaded(&self, coupling: f64) -> bool {
        let coupled = coupling * self.probability;
        match self.params.arithmetic {
            Arithmetic::Exact => coupled >= 1.0,
            Arithmetic::Linux => coupled * LINUX_UNIT > f64::from(LINUX_MOST),
        }
    }
}

fn difference_ns(a: Span, b: Span) -> i128 {
    i128::from(a.as_ns()) - i128::from(b.as_ns())
}

fn difference_s(a: Span, b: Span) -> f64 {
    if a >= b { (a - b).as_secs_f64() } else { -(b - a).as_secs_f64() }
}

/// How coins with a given probability fall.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coins {
    /// As evenly as possible: the probabilities of successive packets are added up, and each whole 1 chooses
    /// a packet. RFC 9332, figure 4, `recur`.
    Recurrent,
    /// Independently, with one draw for a probability and two for a squared one.
    Random,
}

/// The sum of the probabilities of one queue's packets since the last one chosen.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Recurrence(f64);

impl Recurrence {
    /// Returns whether a packet is chosen that has this probability, at most 1.
    // RFC 9332, figure 4, lines 23 to 30.
    pub fn chooses(&mut self, probability: f64) -> bool {
        self.0 += probability;
        let chosen = self.0 > 1.0;
        if chosen {
            self.0 -= 1.0;
        }
        chosen
    }
}

impl Coins {
    /// Returns whether a packet is chosen that has this probability.
    #[inline]
    pub fn linear(self, sum: &mut Recurrence, probability: f64, mut draw: impl FnMut() -> f64) -> bool {
        match self {
            Coins::Recurrent => sum.chooses(probability.min(1.0)),
            Coins::Random => probability > 0.0 && draw() < probability,
        }
    }

    /// Returns whether a packet is chosen that has the square of this probability.
    // RFC 9332, appendix A.1: the larger of two draws is less than p' with probability p'^2.
    #[inline]
    pub fn squared(self, sum: &mut Recurrence, probability: f64, mut draw: impl FnMut() -> f64) -> bool {
        match self {
            Coins::Recurrent => sum.chooses((probability * probability).min(1.0)),
            Coins::Random => probability > 0.0 && draw().max(draw()) < probability,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RFC: Pi2Params = Pi2Params {
        target: Span::ms(15),
        period: Span::ms(16),
        alpha: 0.16,
        beta: 3.2,
        most: 1.0,
        arithmetic: Arithmetic::Exact,
    };

    /// `vectors/rfc/dualpi2/base.csv`: a packet arrives at 24 ms and is never served.
    #[test]
    fn the_base_probability_is_that_of_the_rfc() {
        let mut law = Pi2Law::new(RFC);
        let rows = include_str!("../../../../vectors/rfc/dualpi2/base.csv").lines().skip(1);
        let mut count = 0;
        for (at, expected) in rows.map(|row| row.split_once(',').unwrap()) {
            let now = Instant::ZERO + Span::ms(at.parse().unwrap());
            let arrived = Instant::ZERO + Span::ms(24);
            law.catch_up(now, || (now >= arrived).then_some(arrived));
            let expected: f64 = expected.parse().unwrap();
            assert!((law.probability() - expected).abs() < 1e-12, "{at} ms: {}", law.probability());
            count += 1;
        }
        assert_eq!(count, 10);
    }

    /// `vectors/rfc/dualpi2/tc.csv`: what the kernel reports is what its scaled gains amount to.
    #[test]
    fn gains_are_rounded_as_in_linux() {
        for (hz, reported) in [(12.0 / 256.0, 11), (384.0 / 256.0, 383), (14.0 / 256.0, 13), (1.0, 255)] {
            let fixed = Fixed::new(&Pi2Params { alpha: hz, ..RFC });
            assert_eq!(fixed.alpha * 1_000_000_000 * 4 / i128::from(u32::MAX), reported, "{hz}");
        }
    }

    #[test]
    fn a_leap_ends_where_single_updates_end() {
        for arithmetic in [Arithmetic::Exact, Arithmetic::Linux] {
            for (alpha, beta, most) in [(0.16, 3.2, 1.0), (0.01, 0.2, 0.5), (5.0, 40.0, 1.0)] {
                for oldest in [None, Some(Instant::from_ns(700_000_001))] {
                    let params = Pi2Params { alpha, beta, most, arithmetic, ..RFC };
                    let (mut leap, mut stepped) = (Pi2Law::new(params), Pi2Law::new(params));
                    // Both are first brought to a probability above 0.
                    for law in [&mut leap, &mut stepped] {
                        law.catch_up(Instant::from_ns(700_000_001), || Some(Instant::from_ns(550_000_000)));
                        assert!(law.probability() > 0.0);
                    }
                    for n in 44..=4000 {
                        stepped.catch_up(Instant::ZERO + RFC.period * n, || oldest);
                    }
                    leap.catch_up(Instant::ZERO + RFC.period * 4000, || oldest);
                    assert_eq!(leap, stepped, "{params:?}");
                }
            }
        }
    }

    #[test]
    fn a_fall_of_more_than_1_wraps_in_linux() {
        let falls = |arithmetic| {
            let mut law = Pi2Law::new(Pi2Params { arithmetic, ..RFC });
            assert!(law.update(Span::ms(200)) && law.update(Span::ms(400)) && law.is_at_most());
            assert!(!law.update(Span::ZERO));
            law.probability()
        };
        assert_eq!(falls(Arithmetic::Exact), 0.0);
        // 1.2824 below, of which 0.2824 count.
        assert!((falls(Arithmetic::Linux) - 0.7176).abs() < 0.005, "{}", falls(Arithmetic::Linux));
    }

    #[test]
    fn recurrence_chooses_one_in_so_many() {
        let mut sum = Recurrence::default();
        let chosen = (0..1000).filter(|_| sum.chooses(0.125)).count();
        assert_eq!(chosen, 124, "the sum must exceed 1");
        let mut draws = [0.3, 0.1].into_iter();
        assert!(Coins::Random.squared(&mut sum, 0.31, || draws.next().unwrap()));
        let mut draws = [0.3, 0.1].into_iter();
        assert!(!Coins::Random.squared(&mut sum, 0.3, || draws.next().unwrap()));
        assert!(!Coins::Random.linear(&mut sum, 0.0, || panic!("no draw for what cannot happen")));
    }
}
