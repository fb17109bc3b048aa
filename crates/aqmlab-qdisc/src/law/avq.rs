//! Adaptive Virtual Queue (Kunniyur and Srikant, SIGCOMM 2001, figure 1).
//!
//! A virtual queue, which holds no packets, receives the same arrivals as the real one and is served at the virtual
//! capacity. An arrival that would overflow it is marked or dropped in the real queue. The virtual capacity moves so
//! that the arrivals use a chosen share of the link.

use aqmlab_units::{Bytes, Instant};

use super::{Decision, Notice};

/// Parameters of the law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AvqParams {
    /// Size of the virtual queue, B, in bytes.
    pub buffer: f64,
    /// Desired utilisation of the link, gamma.
    pub gamma: f64,
    /// Smoothing parameter, alpha.
    pub alpha: f64,
    /// The link's capacity, C, in bytes per second.
    pub capacity: f64,
}

/// The law's state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AvqLaw {
    params: AvqParams,
    /// Length of the virtual queue at the last arrival, in bytes.
    queue: f64,
    /// Virtual capacity, in bytes per second.
    capacity: f64,
    last: Instant,
}

impl AvqLaw {
    /// Creates the law for an empty virtual queue, which is served at the link's capacity.
    pub const fn new(params: AvqParams) -> Self {
        AvqLaw { params, queue: 0.0, capacity: params.capacity, last: Instant::ZERO }
    }

    /// Decides on an arrival of `size`.
    #[inline]
    pub fn on_arrival(&mut self, now: Instant, size: Bytes) -> Decision {
        let AvqParams { buffer, gamma, alpha, capacity } = self.params;
        let (bytes, passed) = (size.as_f64(), now.saturating_since(self.last).as_secs_f64());
        self.queue = self.queue_at(now);
        let overflows = self.queue + bytes > buffer;
        if !overflows {
            self.queue += bytes;
        }
        self.capacity =
            ((self.capacity + alpha * gamma * capacity * passed).min(capacity) - alpha * bytes).max(0.0);
        self.last = now;
        if overflows { Decision::Notify(Notice::EARLY) } else { Decision::Admit }
    }

    /// Returns the length of the virtual queue in bytes at `now`.
    pub fn queue_at(&self, now: Instant) -> f64 {
        (self.queue - self.capacity * now.saturating_since(self.last).as_secs_f64()).max(0.0)
    }

    /// Returns the virtual capacity in bytes per second, which changes only at arrivals.
    pub const fn virtual_capacity(&self) -> f64 {
        self.capacity
    }

    /// Changes the link's capacity, in bytes per second. The virtual capacity keeps its share of it.
    pub fn rate_changed(&mut self, now: Instant, capacity: f64) {
        if capacity == self.params.capacity {
            return;
        }
        self.queue = self.queue_at(now);
        // What the virtual capacity has gained since the last arrival, at the old rate.
        let AvqParams { gamma, alpha, capacity: old, .. } = self.params;
        let passed = now.saturating_since(self.last).as_secs_f64();
        let gained = (self.capacity + alpha * gamma * old * passed).min(old);
        self.last = now;
        self.capacity = gained / old * capacity;
        self.params.capacity = capacity;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqmlab_units::Span;

    const fn at_ms(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    /// Figure 1 by hand: C 100 000 B/s, alpha 0.5, gamma 0.9, B 2500 B, packets of 1000 B.
    ///
    /// | ms | VQ before | fate | VQ | virtual capacity |
    /// |---|---|---|---|---|
    /// | 0 | 0 | passes | 1000 | min(100000 + 0, 100000) - 500 = 99500 |
    /// | 0 | 1000 | passes | 2000 | 99000 |
    /// | 0 | 2000 | 3000 > 2500: chosen | 2000 | 98500 |
    /// | 10 | 2000 - 985 = 1015 | passes | 2015 | 98500 + 0.5 * 0.9 * 100000 * 0.01 = 98950, - 500 = 98450 |
    /// | 14 | 2015 - 393.8 = 1621.2 | 2621.2 > 2500: chosen | 1621.2 | 98450 + 180 - 500 = 98130 |
    /// | 1014 | 0 | passes | 1000 | min(98130 + 45000, 100000) - 500 = 99500 |
    #[test]
    fn the_pseudo_code_by_hand() {
        let mut law = AvqLaw::new(AvqParams { buffer: 2500.0, gamma: 0.9, alpha: 0.5, capacity: 100_000.0 });
        for (ms, chosen, queue, capacity) in [
            (0, false, 1000.0, 99_500.0),
            (0, false, 2000.0, 99_000.0),
            (0, true, 2000.0, 98_500.0),
            (10, false, 2015.0, 98_450.0),
            (14, true, 1621.2, 98_130.0),
            (1014, false, 1000.0, 99_500.0),
        ] {
            let decision = law.on_arrival(at_ms(ms), Bytes::new(1000));
            assert_eq!(decision != Decision::Admit, chosen, "{ms}");
            assert!((law.queue_at(at_ms(ms)) - queue).abs() < 1e-6, "{ms}: {law:?}");
            assert!((law.virtual_capacity() - capacity).abs() < 1e-6, "{ms}: {law:?}");
        }
    }

    /// With arrivals at the rate lambda, the virtual capacity grows by alpha (gamma C - lambda) per second: it falls to
    /// zero above gamma C and stays near C below.
    #[test]
    fn the_virtual_capacity_falls_if_the_arrivals_exceed_the_desired_utilisation() {
        for (gap_us, falls) in [(10_000, true), (12_000, false)] {
            let mut law = AvqLaw::new(AvqParams { buffer: 1e9, gamma: 0.9, alpha: 0.5, capacity: 100_000.0 });
            for n in 0..3000 {
                law.on_arrival(Instant::ZERO + Span::us(gap_us * n), Bytes::new(1000));
            }
            assert_eq!(law.virtual_capacity() < 1000.0, falls, "{}", law.virtual_capacity());
        }
    }
}
