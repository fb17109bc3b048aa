//! The Pareto distribution, given its mean and shape.

/// The distribution with `P(X > x) = (least / x)^shape` for `x >= least`. It is heavy-tailed, with
/// infinite variance for shapes up to 2.
///
/// The shape must be above 1, so that the mean is finite: `least * shape / (shape - 1)`. With an
/// upper bound, the distribution is conditional on values not exceeding the bound (a truncated
/// Pareto), and its mean is below that of the distribution without the bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pareto {
    shape: f64,
    /// Smallest value, computed from the mean that the distribution would have without the bound.
    least: f64,
    /// `P(X > bound)` for the distribution without the bound; zero if there is no bound.
    beyond: f64,
}

impl Pareto {
    /// Creates the distribution whose mean without the bound is 1; `bound` is in units of that
    /// mean.
    ///
    /// # Panics
    /// If the shape is not above 1, or if the bound is not above the smallest value.
    pub fn new(shape: f64, bound: Option<f64>) -> Self {
        assert!(shape > 1.0, "the mean of a Pareto distribution is finite only for shapes above 1");
        let least = (shape - 1.0) / shape;
        let beyond = bound.map_or(0.0, |bound| {
            assert!(bound > least, "the bound must lie above the smallest value");
            libm::pow(least / bound, shape)
        });
        Pareto { shape, least, beyond }
    }

    /// Returns the `u` quantile, for `0 <= u < 1`.
    pub fn quantile(&self, u: f64) -> f64 {
        let above = 1.0 - u * (1.0 - self.beyond);
        self.least * libm::pow(above, -1.0 / self.shape)
    }

    /// Returns the smallest value.
    pub const fn least(&self) -> f64 {
        self.least
    }

    /// Returns the mean: 1 without a bound, and less with one.
    pub fn mean(&self) -> f64 {
        if self.beyond == 0.0 {
            return 1.0;
        }
        // The integral of x dF up to the bound is 1 - (bound / least)^(1 - shape); bound / least = beyond^(-1 / shape).
        let kept = 1.0 - libm::pow(self.beyond, 1.0 - 1.0 / self.shape);
        kept / (1.0 - self.beyond)
    }

    /// Returns the `u` quantile of the residual life of a period at a random instant. Its distribution, the
    /// equilibrium distribution of a renewal process, is `P(R > r) = (integral of P(X > x) from r to
    /// infinity) / mean`. Returns `None` with a bound.
    pub fn residual(&self, u: f64) -> Option<f64> {
        if self.beyond > 0.0 {
            return None;
        }
        // Below the smallest value, the density is 1 / mean = 1; P(R > least) = 1 / shape.
        if u < self.least {
            return Some(u);
        }
        // Beyond: P(R > r) = (r / least)^(1 - shape) / shape.
        Some(self.least * libm::pow(self.shape * (1.0 - u), -1.0 / (self.shape - 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mean of `f` over (0, 1) by the midpoint rule.
    fn mean_of(f: impl Fn(f64) -> f64, steps: u32) -> f64 {
        (0..steps).map(|i| f((f64::from(i) + 0.5) / f64::from(steps))).sum::<f64>() / f64::from(steps)
    }

    #[test]
    fn quantiles_are_those_of_the_definition() {
        let p = Pareto::new(1.5, None);
        assert_eq!(p.quantile(0.0), p.least());
        for u in [0.1, 0.5, 0.9, 0.999] {
            let x = p.quantile(u);
            assert!((libm::pow(p.least() / x, 1.5) - (1.0 - u)).abs() < 1e-12, "{u}");
        }
    }

    #[test]
    fn the_mean_of_quantiles_is_the_mean() {
        // The tail beyond the last of 10^6 midpoints contributes about 10^(-6 (1 - 1/a)) of the mean, which
        // is little for shape 3.
        assert!((mean_of(|u| Pareto::new(3.0, None).quantile(u), 1_000_000) - 1.0).abs() < 1e-3);
        let cut = Pareto::new(1.5, Some(20.0));
        assert!((mean_of(|u| cut.quantile(u), 1_000_000) - cut.mean()).abs() < 1e-4);
        assert!(cut.mean() < 0.9, "{}", cut.mean());
        assert!(cut.quantile(1.0 - 1e-15) <= 20.0 + 1e-9);
    }

    #[test]
    fn what_is_left_follows_the_integral_of_the_tail() {
        let p = Pareto::new(1.5, None);
        for r in [0.1, 0.3, 1.0, 5.0] {
            // Computes P(R > r) by the trapezoidal rule over P(X > x), in equal steps of log x up to 10^9,
            // and adds the closed form for the tail beyond 10^9.
            let tail = |x: f64| if x < p.least() { 1.0 } else { libm::pow(p.least() / x, 1.5) };
            let (steps, top) = (200_000, 1e9f64);
            let ratio = libm::pow(top / r, 1.0 / f64::from(steps));
            let mut x = r;
            let mut integral = 0.0;
            for _ in 0..steps {
                integral += (tail(x) + tail(x * ratio)) / 2.0 * (x * ratio - x);
                x *= ratio;
            }
            integral += tail(top) * top / 0.5;
            let at = p.residual(1.0 - integral).expect("without bound");
            assert!((at / r - 1.0).abs() < 1e-3, "{r}: {at}");
        }
        assert_eq!(Pareto::new(1.5, Some(9.0)).residual(0.5), None);
    }
}
