//! A low-pass filter of first order over arrivals: `y <- y + w (x - y)`.

/// The filter and what it holds; it begins at zero.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct LowPass {
    weight: f64,
    held: f64,
}

impl LowPass {
    /// A filter with the weight `weight` of a new value, above 0 to 1.
    pub(super) const fn new(weight: f64) -> Self {
        LowPass { weight, held: 0.0 }
    }

    /// Takes a new value in; what the filter holds then.
    #[inline]
    pub(super) fn take(&mut self, value: f64) -> f64 {
        self.held += self.weight * (value - self.held);
        self.held
    }

    /// What it holds.
    pub(super) const fn held(&self) -> f64 {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        let mut filter = LowPass::new(0.25);
        assert_eq!(filter.held(), 0.0);
        assert_eq!([1.0, 1.0, 1.0, 0.0].map(|x| filter.take(x)), [0.25, 0.4375, 0.578_125, 0.433_593_75]);
        assert_eq!(filter.held(), 0.433_593_75);
    }

    /// A step to 1 is answered by `1 - (1 - w)^n`.
    #[test]
    fn a_step_is_answered_exponentially() {
        let mut filter = LowPass::new(0.002);
        for n in 1..5000 {
            let expected = 1.0 - libm::pow(1.0 - 0.002, f64::from(n));
            assert!((filter.take(1.0) - expected).abs() < 1e-12, "after {n}");
        }
    }
}
