//! Random Exponential Marking (Athuraliya, Li, Low, Yin, IEEE Network 15(3), 2001).

use aqmlab_units::{Bytes, Instant};

use super::sampling::Grid;
use super::{ByteMode, Decision, Sampling, chosen};

/// Parameters of the law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RemParams {
    /// Step size of the price.
    pub gamma: f64,
    /// Weight of the queue's distance from `q_ref`, relative to that of the mismatch between input
    /// and capacity.
    pub alpha: f64,
    /// Base of the exponential, above 1.
    pub phi: f64,
    /// The target queue length, b*, in packets.
    pub q_ref: f64,
    /// Weight of one period's arrivals in the average over the periods, in (0, 1].
    pub inw: f64,
    /// The size of a packet in the unit of the queue length and the arrivals: 1, or the mean packet
    /// size in bytes.
    pub unit: f64,
    /// When the price is updated.
    pub sampling: Sampling,
    /// Packets of mean size that the link can send per second.
    pub packets_per_s: f64,
    /// Scaling by packet size.
    pub byte_mode: ByteMode,
}

/// The law's state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RemLaw {
    params: RemParams,
    sampling: Sampling,
    ln_phi: f64,
    /// c: number of packets that the link can send in a period.
    capacity: f64,
    price: Grid,
    /// 1 - phi^-price
    probability: f64,
    /// Amount that has arrived in the present period, in the queue's unit.
    arrived: u64,
    /// Average of the arrivals over past periods, in packets.
    input: f64,
}

/// Number of packets per period below which the average counts as zero, so that its decay ends.
const NO_INPUT: f64 = 1e-12;

impl RemLaw {
    /// Creates the law for an empty queue at time zero.
    pub fn new(params: RemParams) -> Self {
        let mut law = RemLaw {
            params,
            sampling: params.sampling,
            ln_phi: libm::log(params.phi),
            capacity: 0.0,
            price: Grid::ZERO,
            probability: 0.0,
            arrived: 0,
            input: 0.0,
        };
        law.rate_changed(params.packets_per_s);
        law
    }

    /// Performs all updates that are due up to and including `now`. `queued` returns the queue length, which
    /// has been constant since the last call.
    #[inline]
    pub fn catch_up(&mut self, now: Instant, queued: impl FnOnce() -> f64) {
        if self.sampling.is_due(now) {
            self.update(now, queued() / self.params.unit);
        }
    }

    /// Updates the price for every period that is due. Only the first of these periods had
    /// arrivals. The average then decays to zero in at most 50 / inw steps. All further steps are
    /// equal and are taken in one go.
    #[cold]
    fn update(&mut self, now: Instant, queued: f64) {
        let mut due = self.sampling.take(now);
        let mut arrivals = self.arrived as f64 / self.params.unit;
        self.arrived = 0;
        while due > 0 && (arrivals > 0.0 || self.input > 0.0) {
            self.input = self.averaged(arrivals);
            arrivals = 0.0;
            self.step(queued, 1);
            due -= 1;
        }
        self.step(queued, due);
        self.probability = self.probability_at(self.price.value());
    }

    /// Returns the average after a period with `arrivals`, in packets. ns-2.35 computes it in this
    /// way with `inw_`; the paper's own rule is inw = 1.
    fn averaged(&self, arrivals: f64) -> f64 {
        let input = (1.0 - self.params.inw) * self.input + self.params.inw * arrivals;
        if input < NO_INPUT { 0.0 } else { input }
    }

    /// Makes `count` equal steps by equation (1) of Athuraliya et al.:
    /// price <- [price + gamma (alpha (b - b*) + x - c)]+.
    // DEVIATES from ns-2, whose price is a float: sums on a grid are the same in any grouping (see `Grid`).
    fn step(&mut self, queued: f64, count: u64) {
        let RemParams { gamma, alpha, q_ref, .. } = self.params;
        let step = Grid::nearest(gamma * (alpha * (queued - q_ref) + self.input - self.capacity));
        self.price = self.price.stepped(step, count, (Grid::ZERO, Grid::MOST));
    }

    /// Returns 1 - phi^-price (equation 2), without loss of precision for small prices.
    fn probability_at(&self, price: f64) -> f64 {
        -libm::expm1(-price * self.ln_phi)
    }

    /// Records the arrival of `amount`, in the queue's unit. The caller must first have brought the law up to
    /// date.
    #[inline]
    pub const fn on_arrival(&mut self, amount: u64) {
        self.arrived += amount;
    }

    /// Returns whether a packet of `size` is chosen. `draw` returns a number in [0, 1) and is
    /// called at most once.
    #[inline]
    pub fn judge(&self, size: Bytes, draw: impl FnOnce() -> f64) -> Decision {
        chosen(self.probability, self.params.byte_mode, size, draw)
    }

    /// Changes the link's rate to `packets_per_s` packets of mean size per second. The caller must first have
    /// brought the law up to date. The current period is treated as if it had had the new rate from its start.
    pub fn rate_changed(&mut self, packets_per_s: f64) {
        self.capacity = packets_per_s * self.sampling.period_s();
    }

    /// Returns the price at the last update.
    pub fn price(&self) -> f64 {
        self.price.value()
    }

    /// Returns the probability at the last update.
    pub const fn probability(&self) -> f64 {
        self.probability
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &RemParams {
        &self.params
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_units::Span;

    use super::*;

    const PERIOD: Span = Span::ms(2);
    /// 10 Mbit/s in packets of 615 B.
    const PACKETS_PER_S: f64 = 10e6 / (8.0 * 615.0);

    fn law(inw: f64) -> RemLaw {
        law_in_units(inw, 1.0)
    }

    fn law_in_units(inw: f64, unit: f64) -> RemLaw {
        RemLaw::new(RemParams {
            gamma: 0.001,
            alpha: 0.1,
            phi: 1.001,
            q_ref: 20.0,
            inw,
            unit,
            sampling: Sampling::every(PERIOD),
            packets_per_s: PACKETS_PER_S,
            byte_mode: ByteMode::Off,
        })
    }

    fn after(law: &mut RemLaw, periods: u64, queued: f64) -> f64 {
        law.catch_up(Instant::ZERO + PERIOD * periods, || queued);
        law.price()
    }

    #[test]
    fn known_answer_probabilities() {
        let law = law(1.0);
        for (price, p, digits) in [(693.5, 0.5, 1e-4), (100.0, 0.09512, 1e-5), (200.0, 0.18119, 1e-5)] {
            assert!((law.probability_at(price) - p).abs() < digits, "{price}: {}", law.probability_at(price));
        }
        // The probabilities that a packet passes unmarked multiply along a path, so the prices add up.
        let passes = (1.0 - law.probability_at(100.0)) * (1.0 - law.probability_at(200.0));
        assert!((1.0 - passes - 0.25907).abs() < 1e-5);
        assert!((1.0 - passes - law.probability_at(300.0)).abs() < 1e-15);
    }

    #[test]
    fn known_answer_step() {
        let mut law = law(1.0);
        assert!((law.capacity - 4.06504).abs() < 1e-5);
        (0..6).for_each(|_| law.on_arrival(1));
        let price = after(&mut law, 1, 30.0);
        assert!((price - 2.93496e-3).abs() < 1e-8, "{price}");
        // Arrivals count only in the period in which they happen.
        let next = after(&mut law, 2, 40.0);
        assert!((next - price - 0.001 * (2.0 - law.capacity)).abs() < 1e-15);
    }

    #[test]
    fn the_price_is_never_negative() {
        let mut law = law(1.0);
        assert_eq!(after(&mut law, 5, 0.0), 0.0);
        assert_eq!(law.probability(), 0.0);
        assert_eq!(law.judge(Bytes::new(615), || panic!("nothing to decide")), Decision::Admit);
    }

    #[test]
    fn an_hour_in_one_leap_is_an_hour_of_updates() {
        for inw in [1.0, 0.3, 0.01] {
            for queued in [0.0, 21.0, 100.0] {
                let (mut leap, mut stepped) = (law(inw), law(inw));
                for law in [&mut leap, &mut stepped] {
                    let _ = after(law, 30, 2000.0);
                    law.on_arrival(1_000_000);
                }
                for n in 31..=1_800_000 {
                    let _ = after(&mut stepped, n, queued);
                }
                let _ = after(&mut leap, 1_800_000, queued);
                assert_eq!(leap, stepped, "inw {inw}, {queued} wait");
            }
        }
    }

    #[test]
    fn input_is_averaged_over_periods() {
        let mut law = law(0.25);
        (0..8).for_each(|_| law.on_arrival(1));
        let first = after(&mut law, 1, 20.0);
        assert_eq!((first, law.input), (0.0, 2.0));
        let _ = after(&mut law, 2, 20.0);
        assert_eq!(law.input, 1.5);
    }

    #[test]
    fn a_faster_link_lowers_the_price_faster() {
        let mut law = law(1.0);
        let before = after(&mut law, 100, 200.0);
        law.rate_changed(10.0 * PACKETS_PER_S);
        let step = after(&mut law, 101, 200.0) - before;
        assert!((step - 0.001 * (18.0 - 40.6504)).abs() < 1e-6, "{step}");
    }

    #[test]
    fn bytes_are_counted_in_mean_packets() {
        let mut law = law_in_units(1.0, 615.0);
        (0..6).for_each(|_| law.on_arrival(615));
        assert!((after(&mut law, 1, 30.0 * 615.0) - 2.93496e-3).abs() < 1e-8);
    }
}
