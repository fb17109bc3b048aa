//! The over-use detector with its adaptive threshold: draft-ietf-rmcat-gcc-02, section 5.4.

use aqmlab_units::Instant;

/// Time for which the gradient must exceed the threshold (`overuse_time_th`), in milliseconds.
const OVERUSE_TIME_MS: f64 = 10.0;
/// The first threshold, and its limits, in milliseconds.
const FIRST_THRESHOLD_MS: f64 = 12.5;
const LEAST_THRESHOLD_MS: f64 = 6.0;
const MOST_THRESHOLD_MS: f64 = 600.0;
/// The threshold is not adapted to a gradient that exceeds it by more than this, in milliseconds.
const OUTLIER_MS: f64 = 15.0;
/// How fast the threshold rises and falls, per millisecond (`K_u`, `K_d`).
const RISE: f64 = 0.01;
const FALL: f64 = 0.000_18;
/// The longest time over which one step adapts the threshold, in milliseconds; as in WebRTC's code, because a step of
/// more than 1 / K_u would overshoot.
const LONGEST_STEP_MS: f64 = 100.0;

/// How the network is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Usage {
    /// Queues grow.
    Over,
    /// Queues drain.
    Under,
    /// Neither.
    Normal,
}

/// The detector.
#[derive(Clone, Debug)]
pub struct Detector {
    threshold_ms: f64,
    previous_ms: f64,
    over_for_ms: f64,
    last: Option<Instant>,
}

impl Default for Detector {
    fn default() -> Self {
        Detector { threshold_ms: FIRST_THRESHOLD_MS, previous_ms: 0.0, over_for_ms: 0.0, last: None }
    }
}

impl Detector {
    /// Takes in the gradient of the group that arrived at `at`.
    pub fn update(&mut self, gradient_ms: f64, at: Instant) -> Usage {
        let elapsed_ms = self.last.map_or(0.0, |last| at.saturating_since(last).as_secs_f64() * 1000.0);
        self.last = Some(at);
        let usage = if gradient_ms > self.threshold_ms {
            self.over_for_ms += elapsed_ms;
            if self.over_for_ms >= OVERUSE_TIME_MS && gradient_ms >= self.previous_ms {
                Usage::Over
            } else {
                Usage::Normal
            }
        } else {
            self.over_for_ms = 0.0;
            if gradient_ms < -self.threshold_ms { Usage::Under } else { Usage::Normal }
        };
        self.previous_ms = gradient_ms;
        self.adapt(gradient_ms.abs(), elapsed_ms);
        usage
    }

    fn adapt(&mut self, size_ms: f64, elapsed_ms: f64) {
        if size_ms - self.threshold_ms > OUTLIER_MS {
            return;
        }
        let gain = if size_ms < self.threshold_ms { FALL } else { RISE };
        self.threshold_ms += elapsed_ms.min(LONGEST_STEP_MS) * gain * (size_ms - self.threshold_ms);
        self.threshold_ms = self.threshold_ms.clamp(LEAST_THRESHOLD_MS, MOST_THRESHOLD_MS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqmlab_units::Span;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::ms(ms)
    }

    /// Section 5.4 by hand. The gradient is 14 ms at 0, 8 and 16 ms: above the threshold for 0, 8 and 16 ms, so over-use
    /// is signalled at 16 ms. The threshold becomes 12.5 + 8 * 0.01 * 1.5 = 12.62, then + 8 * 0.01 * 1.38 = 12.7304.
    #[test]
    fn over_use_must_last_ten_milliseconds() {
        let mut detector = Detector::default();
        let usage = [0, 8, 16].map(|ms| detector.update(14.0, at(ms)));
        assert_eq!(usage, [Usage::Normal, Usage::Normal, Usage::Over]);
        assert!((detector.threshold_ms - 12.7304).abs() < 1e-9);
    }

    #[test]
    fn a_falling_gradient_is_not_signalled() {
        let mut detector = Detector::default();
        let usage = [(0, 20.0), (20, 21.0), (40, 20.5), (60, 20.6)].map(|(ms, m)| detector.update(m, at(ms)));
        assert_eq!(usage, [Usage::Normal, Usage::Over, Usage::Normal, Usage::Over]);
    }

    /// The threshold falls slowly: 12.5 - 100 * 0.00018 * 12.5 = 12.275 after 100 ms without a gradient. It stays within
    /// 6 ms and 600 ms, and does not follow outliers.
    #[test]
    fn the_threshold_adapts() {
        let mut detector = Detector::default();
        detector.update(0.0, at(0));
        detector.update(0.0, at(100));
        assert!((detector.threshold_ms - 12.275).abs() < 1e-9);
        detector.update(40.0, at(200));
        assert!((detector.threshold_ms - 12.275).abs() < 1e-9, "40 - 12.275 exceeds 15");
        for n in 3..1000 {
            detector.update(0.0, at(100 * n));
        }
        assert_eq!(detector.threshold_ms, 6.0);
        assert_eq!(detector.update(-6.5, at(100_000)), Usage::Under);
    }
}
