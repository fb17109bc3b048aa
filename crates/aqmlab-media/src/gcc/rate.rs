//! The two rate controllers of draft-ietf-rmcat-gcc-02: by delay (section 5.5) and by loss (section 6). Rates are in
//! bit/s.

use aqmlab_units::{Instant, Span};

use super::detector::Usage;

/// The rate after a decrease, as a share of what arrived (`beta`).
const DECREASE: f64 = 0.85;
/// Growth per second, far from convergence.
const GROWTH_PER_S: f64 = 1.08;
/// The estimate stays below this multiple of what arrives.
const HEADROOM: f64 = 1.5;
/// Weight of the previous average of the rate at decreases.
const AVERAGE: f64 = 0.95;
/// Largest packet, and frames per second, by which the size of a packet is estimated.
const FRAMES_PER_S: f64 = 30.0;
const LARGEST_BITS: f64 = 1200.0 * 8.0;

/// What the controller does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Hold,
    Increase,
    Decrease,
}

impl State {
    /// The table of section 5.5.
    fn after(self, usage: Usage) -> Self {
        match (usage, self) {
            (Usage::Over, _) => State::Decrease,
            (Usage::Under, _) => State::Hold,
            (Usage::Normal, State::Decrease) => State::Hold,
            (Usage::Normal, _) => State::Increase,
        }
    }
}

/// The controller by delay.
#[derive(Clone, Debug)]
pub struct ByDelay {
    rate: f64,
    state: State,
    updated: Option<Instant>,
    /// Average and relative variance of the rate at decreases.
    at_decrease: Option<AtDecrease>,
}

#[derive(Clone, Copy, Debug)]
struct AtDecrease {
    average: f64,
    /// Variance divided by the average.
    relative_variance: f64,
}

impl AtDecrease {
    /// The relative variance lies between these limits, in bit/s, as in WebRTC's code; the draft leaves open how a
    /// deviation is estimated from the first decreases.
    const LIMITS: (f64, f64) = (400.0, 2500.0);

    fn first(rate: f64) -> Self {
        AtDecrease { average: rate, relative_variance: Self::LIMITS.0 }
    }

    fn add(&mut self, rate: f64) {
        self.average = AVERAGE * self.average + (1.0 - AVERAGE) * rate;
        let deviation = self.average - rate;
        let relative = deviation * deviation / f64::max(self.average, 1.0);
        self.relative_variance = (AVERAGE * self.relative_variance + (1.0 - AVERAGE) * relative)
            .clamp(Self::LIMITS.0, Self::LIMITS.1);
    }

    /// Returns how many standard deviations a rate lies above the average.
    fn deviations(&self, rate: f64) -> f64 {
        (rate - self.average) / libm::sqrt(self.relative_variance * self.average)
    }
}

impl ByDelay {
    /// Creates the controller with its first estimate.
    pub fn new(rate: f64) -> Self {
        ByDelay { rate, state: State::Increase, updated: None, at_decrease: None }
    }

    /// Returns the estimate (`A_hat`).
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Updates the estimate: `received` is the rate at which data arrives (`R_hat`), if it is known.
    pub fn update(&mut self, now: Instant, usage: Usage, received: Option<f64>, rtt: Span) {
        let elapsed_ms = self.updated.map_or(0.0, |last| now.saturating_since(last).as_secs_f64() * 1000.0);
        self.updated = Some(now);
        self.state = self.state.after(usage);
        let Some(received) = received else { return };
        match self.state {
            State::Hold => {}
            State::Increase => {
                if self.at_decrease.is_some_and(|seen| seen.deviations(received) > 3.0) {
                    // The rate is higher than those at which queues grew, so the network has changed.
                    self.at_decrease = None;
                }
                let near = self.at_decrease.is_some_and(|seen| seen.deviations(received) > -3.0);
                let more = if near {
                    let response_ms = 100.0 + rtt.as_secs_f64() * 1000.0;
                    let alpha = 0.5 * f64::min(elapsed_ms / response_ms, 1.0);
                    f64::max(1000.0, alpha * self.packet_bits())
                } else {
                    let growth = libm::pow(GROWTH_PER_S, f64::min(elapsed_ms / 1000.0, 1.0));
                    (growth - 1.0) * self.rate
                };
                // The bound limits the increase; it is no reason to decrease.
                self.rate = f64::max(self.rate, f64::min(self.rate + more, HEADROOM * received));
            }
            State::Decrease => {
                if self.at_decrease.is_some_and(|seen| seen.deviations(received) < -3.0) {
                    self.at_decrease = None;
                }
                match &mut self.at_decrease {
                    Some(seen) => seen.add(received),
                    None => self.at_decrease = Some(AtDecrease::first(received)),
                }
                // A sender that sends less than its estimate would otherwise raise it here.
                self.rate = f64::min(self.rate, DECREASE * received);
                self.state = State::Hold;
            }
        }
    }

    /// Keeps the estimate within limits.
    pub fn clamp(&mut self, least: f64, most: f64) {
        self.rate = self.rate.clamp(least, most);
    }

    /// Returns the expected size of a packet, in bits.
    fn packet_bits(&self) -> f64 {
        let frame = self.rate / FRAMES_PER_S;
        frame / libm::ceil(frame / LARGEST_BITS)
    }
}

/// The controller by loss.
#[derive(Clone, Copy, Debug)]
pub struct ByLoss {
    rate: f64,
}

impl ByLoss {
    /// Creates the controller with its first estimate.
    pub fn new(rate: f64) -> Self {
        ByLoss { rate }
    }

    /// Returns the estimate (`As_hat`).
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Updates the estimate, given the share of packets lost since the last update.
    pub fn update(&mut self, lost: f64, least: f64, most: f64) {
        if lost > 0.1 {
            self.rate *= 1.0 - 0.5 * lost;
        } else if lost < 0.02 {
            self.rate *= 1.05;
        }
        self.rate = self.rate.clamp(least, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::ms(ms)
    }

    #[test]
    fn the_states_follow_the_table_of_the_draft() {
        use State::{Decrease, Hold, Increase};
        let table = [
            (Usage::Over, [Decrease, Decrease, Decrease]),
            (Usage::Normal, [Increase, Increase, Hold]),
            (Usage::Under, [Hold, Hold, Hold]),
        ];
        for (usage, expected) in table {
            assert_eq!([Hold, Increase, Decrease].map(|state| state.after(usage)), expected, "{usage:?}");
        }
    }

    /// Far from convergence the rate grows by 8 % per second: 1 Mbit/s * 1.08^0.5 after 500 ms, but below 1.5 times what
    /// arrives.
    #[test]
    fn the_rate_grows_by_eight_percent_per_second() {
        let mut control = ByDelay::new(1e6);
        control.update(at(0), Usage::Normal, Some(1e6), Span::ms(50));
        control.update(at(500), Usage::Normal, Some(1e6), Span::ms(50));
        assert!((control.rate() - 1e6 * libm::sqrt(1.08)).abs() < 1e-3);
        control.update(at(3500), Usage::Normal, Some(0.7e6), Span::ms(50));
        assert!((control.rate() - 1.05e6).abs() < 1e-3, "1.5 * 0.7 Mbit/s: {}", control.rate());
    }

    /// Over-use takes the rate to 0.85 of what arrives. Then, near convergence, it grows by half a packet per response
    /// time: at 0.85 Mbit/s, a frame has 28333 bits in three packets of 9444 bits; in 150 ms of 150 ms, 4722 bits.
    #[test]
    fn near_convergence_the_rate_grows_by_half_a_packet() {
        let mut control = ByDelay::new(1e6);
        control.update(at(0), Usage::Over, Some(1e6), Span::ms(50));
        assert!((control.rate() - 0.85e6).abs() < 1e-3);
        control.update(at(150), Usage::Normal, Some(1e6), Span::ms(50));
        let packet = 0.85e6 / 30.0 / 3.0;
        assert!((control.rate() - 0.85e6 - 0.5 * packet).abs() < 1e-3, "{}", control.rate());
        control.update(at(300), Usage::Under, Some(1e6), Span::ms(50));
        assert!((control.rate() - 0.85e6 - 0.5 * packet).abs() < 1e-3, "under-use holds the rate");
    }

    /// Section 6: 5 % more below 2 % of losses, nothing up to 10 %, (1 - p/2) beyond.
    #[test]
    fn losses_lower_the_rate_beyond_a_tenth() {
        let mut control = ByLoss::new(1e6);
        for (lost, expected) in
            [(0.0, 1.05e6), (0.02, 1.05e6), (0.1, 1.05e6), (0.2, 0.945e6), (0.019, 0.992_25e6)]
        {
            control.update(lost, 1e5, 1e7);
            assert!((control.rate() - expected).abs() < 1e-3, "{lost}: {}", control.rate());
        }
    }
}
