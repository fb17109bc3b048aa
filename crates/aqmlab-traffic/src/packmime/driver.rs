//! The Gaussian process behind arrivals, request sizes and delays: partly fractional noise, partly
//! white noise.

use alloc::vec::Vec;

use aqmlab_random::Stream;

use super::fractional::{Fractional, variance};
use super::variates::normal;

/// Standard normal variables with long-range dependence: `z(i) = e (x(i) + x(i - 1)) + n w(i)`,
/// where `x` is fractional noise and `w` is white noise.
#[derive(Clone, Debug)]
pub struct Driver {
    fractional: Fractional,
    noise: Stream,
    /// `x(i - 1)`
    before: f64,
    /// `e`
    weight: f64,
    /// `n`
    noise_weight: f64,
}

impl Driver {
    /// Creates the process with parameter `d`; `order` is the number of past values of the fractional noise
    /// from which its next value is predicted, and `noise_share` is the share of the variance that is due to
    /// white noise.
    pub fn new(d: f64, order: usize, noise_share: f64, draws: &Stream) -> Self {
        let mut fractional = Fractional::new(d, order, draws.member(0));
        // The lag-1 autocorrelation of fractional noise is d / (1 - d).
        let of_sum = variance(d) * (2.0 + 2.0 * d / (1.0 - d));
        Driver {
            before: fractional.next(),
            fractional,
            noise: draws.member(1),
            weight: libm::sqrt((1.0 - noise_share) / of_sum),
            noise_weight: libm::sqrt(noise_share),
        }
    }

    /// Draws values of the fractional noise of several processes in advance: see
    /// [`Fractional::draw_ahead`].
    pub fn draw_ahead<'a>(drivers: impl Iterator<Item = &'a mut Driver>, count: usize) {
        let mut processes: Vec<_> = drivers.map(|driver| &mut driver.fractional).collect();
        Fractional::draw_ahead(&mut processes, count);
    }

    /// Returns the next value of the process.
    pub fn next(&mut self) -> f64 {
        let x = self.fractional.next();
        let sum = x + core::mem::replace(&mut self.before, x);
        self.weight * sum + self.noise_weight * normal(&mut self.noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `e^2 / (1 - v)`, where `v` is the share of white noise, equals the constant in ns-2.
    #[test]
    fn weights_are_those_of_the_source() {
        for (d, constant) in [(0.31, 0.254_82), (0.32, 0.243_55), (0.33, 0.232_04)] {
            let driver = Driver::new(d, 400, 0.75, &Stream::new(1, "test"));
            assert!((driver.weight * driver.weight / 0.25 - constant).abs() < 5e-6, "{d}");
            assert!((driver.noise_weight - libm::sqrt(0.75)).abs() < 1e-15);
        }
    }

    /// The variance is 1; the lag-1 autocorrelation is `(1 - v) (1 + 2 r1 + r2) / (2 + 2 r1)`,
    /// where fractional noise has the autocorrelations `r1 = d / (1 - d)` and `r2 = r1 (1 + d) / (2
    /// - d)`; the variance of means of `m` values falls with `m^(2d - 1)`.
    #[test]
    fn it_depends_on_itself_as_fractional_noise_does() {
        let (d, share) = (0.33, 0.2);
        let mut driver = Driver::new(d, 1000, share, &Stream::new(3, "test"));
        let values: Vec<f64> = (0..400_000).map(|_| driver.next()).collect();
        let mean_square = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64;
        let variance = mean_square(&values);
        // Because of the long-range dependence, even the mean of this many values has a standard deviation of
        // about 0.1.
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
        let lagged = values.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / values.len() as f64;
        let r1 = d / (1.0 - d);
        let r2 = r1 * (1.0 + d) / (2.0 - d);
        let expected = (1.0 - share) * (1.0 + 2.0 * r1 + r2) / (2.0 + 2.0 * r1);
        assert!((lagged / variance - expected).abs() < 0.02, "{lagged} against {expected}");
        let of_means = |m: usize| {
            let means: Vec<f64> = values.chunks_exact(m).map(|c| c.iter().sum::<f64>() / m as f64).collect();
            mean_square(&means)
        };
        let slope = libm::log(of_means(500) / of_means(20)) / libm::log(500.0 / 20.0);
        assert!((slope - (2.0 * d - 1.0)).abs() < 0.06, "{slope} against {}", 2.0 * d - 1.0);
    }
}
