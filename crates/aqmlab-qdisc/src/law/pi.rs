//! The proportional-integral controller PI (Hollot, Misra, Towsley, Gong, INFOCOM 2001).

use aqmlab_units::{Bytes, Instant};

use super::sampling::Grid;
use super::{ByteMode, Decision, Sampling, chosen};

/// Parameters of the law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PiParams {
    /// Weight of the present sample's distance from `q_ref`, per packet.
    pub a: f64,
    /// Weight of the previous sample's distance from `q_ref`, per packet; less than `a`.
    pub b: f64,
    /// The target queue length, in packets.
    pub q_ref: f64,
    /// The queue length, in packets, that serves as the previous sample when the first sample is
    /// taken.
    pub q_old: f64,
    /// The size of a packet in the queue's unit: 1, or the mean packet size in bytes.
    pub unit: f64,
    /// When the queue is sampled.
    pub sampling: Sampling,
    /// Scaling by packet size.
    pub byte_mode: ByteMode,
}

/// The law's state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PiLaw {
    params: PiParams,
    sampling: Sampling,
    p: Grid,
    /// `p` as a float.
    probability: f64,
    q_old: f64,
}

impl PiLaw {
    /// Creates the law for an empty queue at time zero.
    pub const fn new(params: PiParams) -> Self {
        let PiParams { sampling, q_old, .. } = params;
        PiLaw { params, sampling, p: Grid::ZERO, probability: 0.0, q_old }
    }

    /// Performs all updates that are due up to and including `now`. `queued` returns the queue length, which
    /// has been constant since the last call.
    #[inline]
    pub fn catch_up(&mut self, now: Instant, queued: impl FnOnce() -> f64) {
        if self.sampling.is_due(now) {
            self.update(now, queued() / self.params.unit);
        }
    }

    /// Takes the samples that are due. The first uses the queue at the last update as the previous
    /// sample. For all later ones, the previous and the present sample are equal, so their steps
    /// are equal too, and the work is bounded however long the pause.
    // DEVIATES from ns-2, whose p is a float: sums on a grid are the same in any grouping (see `Grid`).
    #[cold]
    fn update(&mut self, now: Instant, q: f64) {
        let due = self.sampling.take(now);
        let ends = (Grid::ZERO, Grid::ONE);
        let first = due.min(1);
        self.p =
            self.p.stepped(self.step(q, self.q_old), first, ends).stepped(self.step(q, q), due - first, ends);
        self.probability = self.p.value();
        self.q_old = q;
    }

    /// Hollot et al., section IV: p(kT) = a (q(kT) - q_ref) - b (q((k-1)T) - q_ref) + p((k-1)T).
    fn step(&self, q: f64, q_old: f64) -> Grid {
        let PiParams { a, b, q_ref, .. } = self.params;
        Grid::nearest(a * (q - q_ref) - b * (q_old - q_ref))
    }

    /// Decides on the arrival of a packet of `size`. The caller must first have brought the law up to date.
    /// `draw` returns a number in [0, 1) and is called at most once.
    #[inline]
    pub fn on_arrival(&self, size: Bytes, draw: impl FnOnce() -> f64) -> Decision {
        chosen(self.probability, self.params.byte_mode, size, draw)
    }

    /// Returns the probability at the last update.
    pub const fn probability(&self) -> f64 {
        self.probability
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &PiParams {
        &self.params
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_units::Span;

    use super::*;

    const PERIOD: Span = Span::ms(5);

    fn law(q_old: f64) -> PiLaw {
        PiLaw::new(PiParams {
            a: 1.822e-5,
            b: 1.816e-5,
            q_ref: 50.0,
            q_old,
            unit: 1.0,
            sampling: Sampling::every(PERIOD),
            byte_mode: ByteMode::Off,
        })
    }

    fn after(law: &mut PiLaw, periods: u64, queued: f64) -> f64 {
        law.catch_up(Instant::ZERO + PERIOD * periods, || queued);
        law.probability()
    }

    #[test]
    fn known_answer_steps() {
        let mut ns2 = law(0.0);
        let values = [1, 2, 3].map(|n| after(&mut ns2, n, 60.0));
        for (is, expected) in values.into_iter().zip([1.0902e-3, 1.0908e-3, 1.0914e-3]) {
            assert!((is - expected).abs() < 1e-15, "{is} against {expected}");
        }
        // A start at q_ref causes no initial step of b q_ref.
        assert!((after(&mut law(50.0), 1, 60.0) - 1.822e-4).abs() < 1e-15);
    }

    #[test]
    fn a_sample_takes_the_queue_of_its_instant_and_no_other() {
        let mut law = law(0.0);
        law.catch_up(Instant::from_ns(PERIOD.as_ns() - 1), || panic!("no sample is due"));
        assert_eq!(law.probability(), 0.0);
        assert!(after(&mut law, 1, 60.0) > 0.0);
    }

    #[test]
    fn an_hour_in_one_leap_is_an_hour_of_samples() {
        for queued in [0.0, 49.0, 51.0, 400.0] {
            let (mut leap, mut stepped) = (law(0.0), law(0.0));
            // First, both laws are brought to a probability strictly between 0 and 1.
            let _ = (after(&mut leap, 40, 3000.0), after(&mut stepped, 40, 3000.0));
            for n in 41..=720_000 {
                let _ = after(&mut stepped, n, queued);
            }
            let _ = after(&mut leap, 720_000, queued);
            assert_eq!(leap, stepped, "{queued}");
        }
    }

    #[test]
    fn p_stays_a_probability_and_does_not_wind_up() {
        let mut law = law(0.0);
        assert_eq!(after(&mut law, 1_000_000, 60_000.0), 1.0);
        // The next sample changes the probability by the whole step: the part that was cut off earlier is
        // forgotten.
        let step = 1.822e-5 * (50_000.0 - 50.0) - 1.816e-5 * (60_000.0 - 50.0);
        assert!((-0.2..-0.1).contains(&step));
        assert!((after(&mut law, 1_000_001, 50_000.0) - (1.0 + step)).abs() < 1e-12);
        assert_eq!(after(&mut law, 9_000_000, 0.0), 0.0);
    }

    #[test]
    fn bytes_are_counted_in_mean_packets_and_scale_by_size() {
        let mut law = law(0.0);
        law.params.unit = 500.0;
        law.params.byte_mode = ByteMode::Ns2 { mean: Bytes::new(500) };
        let p = after(&mut law, 1, 60.0 * 500.0);
        assert!((p - 1.0902e-3).abs() < 1e-15);
        let chosen = |size, u| law.on_arrival(Bytes::new(size), || u) != Decision::Admit;
        assert!(chosen(1000, 2.0 * p - 1e-9) && !chosen(1000, 2.0 * p + 1e-9));
        assert!(chosen(40, 0.08 * p - 1e-9) && !chosen(40, 0.08 * p + 1e-9));
    }

    #[test]
    fn probability_zero_needs_no_draw() {
        let law = law(0.0);
        assert_eq!(law.on_arrival(Bytes::new(500), || panic!("nothing to decide")), Decision::Admit);
    }
}
