//! The control loop of TCP and PI: gains from the design rule, and the phase margin for any gains (Hollot,
//! Misra, Towsley, Gong, INFOCOM 2001, section IV).

/// A link with its long-lived TCP flows, as the linearised fluid model sees them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TcpLoop {
    /// N: the smallest expected number of flows.
    pub flows: f64,
    /// C: packets of mean size that the link can send per second.
    pub packets_per_s: f64,
    /// R: the largest expected round-trip time, including the target queueing delay, in seconds.
    pub rtt_s: f64,
}

impl TcpLoop {
    /// Returns the pole of TCP's window, 2N / (R^2 C), in rad/s. The rule puts the controller's
    /// zero there.
    pub fn window_pole(&self) -> f64 {
        2.0 * self.flows / (self.rtt_s * self.rtt_s * self.packets_per_s)
    }

    /// Returns a and b of the discrete controller, per packet, sampled at `frequency` (Hz), for a
    /// loop whose gain falls to 1 at `crossover` (rad/s).
    pub fn gains(&self, crossover: f64, frequency: f64) -> (f64, f64) {
        let zero = self.window_pole();
        let (wr, rc) = (crossover * self.rtt_s, self.rtt_s * self.packets_per_s);
        let double_flows = 2.0 * self.flows;
        // |L(j w_g)| is 1 if the zero is on the pole.
        let k = crossover * libm::sqrt(1.0 + wr * wr) * double_flows * double_flows / (rc * rc * rc);
        discrete(k, zero, frequency)
    }

    /// Returns the phase margin in degrees for the gains `a` and `b` and the sampling frequency
    /// `frequency` (Hz): the additional phase lag at which the loop would begin to oscillate. A
    /// negative margin means that the loop oscillates. Half a sampling period of the controller
    /// counts as delay.
    pub fn phase_margin(&self, a: f64, b: f64, frequency: f64) -> f64 {
        let (integral, proportional) = ((a - b) * frequency, (a + b) / 2.0);
        let w = self.crossover(integral, proportional);
        let lag = libm::atan(integral / (proportional * w))
            + libm::atan(w / self.window_pole())
            + libm::atan(w * self.rtt_s)
            + w * (self.rtt_s + 0.5 / frequency);
        (core::f64::consts::PI - lag).to_degrees()
    }

    /// Returns the frequency, in rad/s, at which the loop's gain crosses 1. The gain falls as the
    /// frequency rises.
    fn crossover(&self, integral: f64, proportional: f64) -> f64 {
        let gain = |w: f64| {
            let controller = libm::hypot(integral / w, proportional);
            let (pole, r) = (self.window_pole(), 1.0 / self.rtt_s);
            let plant = self.packets_per_s * self.packets_per_s
                / (2.0 * self.flows)
                / (libm::hypot(w, pole) * libm::hypot(w, r));
            controller * plant
        };
        // Geometric bisection: the bounds start at 1e-9 and 1e9, and their ratio is 1 + 2e-18 after
        // 64 halvings.
        let (mut low, mut high) = (1e-9, 1e9);
        for _ in 0..64 {
            let middle = libm::sqrt(low * high);
            if gain(middle) > 1.0 { low = middle } else { high = middle }
        }
        low
    }
}

/// Returns a and b of K (s/z + 1) / s by the bilinear transform.
fn discrete(k: f64, zero: f64, frequency: f64) -> (f64, f64) {
    (k / zero + k / (2.0 * frequency), k / zero - k / (2.0 * frequency))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(is: f64, expected: f64, digits: f64) {
        assert!((is / expected - 1.0).abs() < digits, "{is} against {expected}");
    }

    /// The table of coefficients in ns-2.35's tcl/ex/pi: the crossover is at the zero, and the
    /// sampling frequency in Hz is a hundred times that of the zero in rad/s.
    #[test]
    fn known_answer_coefficients_of_ns2() {
        for (bytes, a, b, frequency) in [
            (100.0, 2.084_418_985e-4, 2.063_678_498e-4, 160.0),
            (200.0, 1.728_843_189_1e-3, 1.711_640_769_3e-3, 320.0),
        ] {
            let link = TcpLoop { flows: 10.0, packets_per_s: 1e6 / (8.0 * bytes), rtt_s: 0.1 };
            near(100.0 * link.window_pole(), frequency, 1e-12);
            let gains = link.gains(link.window_pole(), frequency);
            near(gains.0, a, 1e-9);
            near(gains.1, b, 1e-9);
        }
    }

    /// N 60, C 3750, R 0.246 s: the paper's example.
    const PAPER: TcpLoop = TcpLoop { flows: 60.0, packets_per_s: 3750.0, rtt_s: 0.246 };

    #[test]
    fn known_answer_of_the_paper() {
        near(PAPER.window_pole(), 0.5288, 1e-4);
        let (a, b) = PAPER.gains(PAPER.window_pole(), 160.0);
        near((a - b) * 160.0, 9.781e-6, 1e-4);
        // The published pair has K = 9.64e-6 (a crossover of 0.521 rad/s) and its zero rounded to 0.53.
        let (a, b) = PAPER.gains(0.5213, 160.0);
        near((a - b) * 160.0, 9.64e-6, 1e-4);
        let (a, b) = discrete(9.64e-6, 0.53, 160.0);
        near(a, 1.82188e-5, 3e-6);
        near(b, 1.81586e-5, 3e-6);
    }

    /// With the zero on the pole, the margin is 90 degrees - atan(w_g R) - w_g R.
    #[test]
    fn the_margin_of_the_rule_is_the_closed_form() {
        for crossover in [0.1, 0.5288, 2.0, 3.0, 6.0] {
            let (a, b) = PAPER.gains(crossover, 1e6);
            let wr = crossover * PAPER.rtt_s;
            let expected = 90.0 - (libm::atan(wr) + wr).to_degrees();
            let margin = PAPER.phase_margin(a, b, 1e6);
            assert!((margin - expected).abs() < 1e-3, "{margin} against {expected}");
        }
    }

    /// The loop is stable for beta = w_g R up to 0.85 (proposition 2); the margin reaches zero at 0.860.
    #[test]
    fn the_margin_ends_where_the_paper_says() {
        let margin = |beta: f64| {
            let (a, b) = PAPER.gains(beta / PAPER.rtt_s, 1e6);
            PAPER.phase_margin(a, b, 1e6)
        };
        assert!(margin(0.85) > 0.0 && margin(0.87) < 0.0, "{} {}", margin(0.85), margin(0.87));
    }

    #[test]
    fn a_slow_sampler_costs_margin() {
        let (a, b) = PAPER.gains(0.5, 1.0);
        let wr = 0.5 * PAPER.rtt_s;
        let expected = 90.0 - (libm::atan(wr) + wr + 0.5 * 0.5).to_degrees();
        assert!((PAPER.phase_margin(a, b, 1.0) - expected).abs() < 1e-3);
    }
}
