//! The TCP throughput equation of RFC 5348, section 3.1, and its inverse.

/// Returns the rate in bytes per second that TCP would reach with packets of `size` bytes, a round-trip time of `rtt_s`
/// seconds and a loss event rate of `p`; infinite if `p` is zero.
///
/// `b` is 1 and `t_RTO` is four round-trip times, as the RFC recommends.
pub fn throughput(size: f64, rtt_s: f64, p: f64) -> f64 {
    size / (rtt_s * round_trips(p))
}

/// Returns the number of round-trip times per packet: the denominator of the equation, divided by the round-trip time.
fn round_trips(p: f64) -> f64 {
    let timeouts = 4.0 * (3.0 * libm::sqrt(3.0 * p / 8.0) * p * (1.0 + 32.0 * p * p));
    libm::sqrt(2.0 * p / 3.0) + timeouts
}

/// Returns the loss event rate, at most 1, for which [`throughput`] is `rate` bytes per second (RFC 5348, section
/// 6.3.1). The result is exact to 2^-40, whereas the RFC permits an error of 5 %.
pub fn loss_event_rate(size: f64, rtt_s: f64, rate: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // The throughput falls as `p` grows.
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if throughput(size, rtt_s, middle) > rate { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the equation, computed with 30 digits (mpmath) from the formula as RFC 5348 prints it.
    const VALUES: [(f64, f64, f64, f64); 5] = [
        (1460.0, 0.1, 0.01, 164_005.062_169_97),
        (1460.0, 0.1, 0.0001, 1_786_519.644_037_6),
        (1000.0, 0.04, 0.05, 92_147.132_823_884),
        (1000.0, 0.2, 0.5, 208.680_820_189_02),
        (1200.0, 0.06, 0.001, 767_687.262_782_51),
    ];

    #[test]
    fn the_equation_gives_the_values_of_the_rfc() {
        for (size, rtt, p, expected) in VALUES {
            let got = throughput(size, rtt, p);
            assert!((got / expected - 1.0).abs() < 1e-9, "s {size} R {rtt} p {p}: {got}, not {expected}");
        }
        assert_eq!(throughput(1000.0, 0.1, 0.0), f64::INFINITY);
    }

    /// For rare losses, the equation becomes that of Mathis et al. (1997): sqrt(3/2) s / (R sqrt(p)).
    #[test]
    fn rare_losses_give_the_square_root_law() {
        let (size, rtt, p) = (1000.0, 0.1, 1e-8);
        let law = libm::sqrt(1.5) * size / (rtt * libm::sqrt(p));
        assert!((throughput(size, rtt, p) / law - 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_inverse_returns_the_loss_event_rate() {
        for (size, rtt, p, rate) in VALUES {
            assert!((loss_event_rate(size, rtt, rate) / p - 1.0).abs() < 1e-7, "{p}");
        }
        assert_eq!(loss_event_rate(1000.0, 1.0, 1.0), 1.0, "no loss event rate is that high");
    }
}
