//! Detection of an AQM that marks as RFC 3168 says (B. Briscoe, A. S. Ahmed, "TCP Prague Fall-back on Detection of
//! a Classic ECN AQM", arXiv:1911.00710, version 2 of the algorithm): its queue is longer, and varies more,
//! than that of an L4S queue.

use aqmlab_units::Span;

use crate::profile::Profile;

// The report's text was not at hand: its form and these numbers, as the references in the parameter table, are recalled.

/// Weights of the variation and of the queue, and the least queue, in units of its reference, that counts.
const VARIATION: f64 = 0.75;
const QUEUE: f64 = 0.5;
const LEAST_QUEUE: f64 = 0.25;
/// Bounds of the score. Beyond -`STICKY` and `FULL` + `STICKY`, further evidence changes nothing.
const FULL: f64 = 1.0;
const STICKY: f64 = 16.0;

/// Evidence for a classic AQM. Times are in nanoseconds.
///
/// DEVIATES from the report, in which the response changes gradually while the score is between 0 and `FULL`: because
/// a few round trips take the score from one to the other, the rules change at once at `FULL`, and back at 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Classic {
    /// classic_ecn.
    score: f64,
    found: bool,
    least_rtt: f64,
    srtt: f64,
    deviation: f64,
}

impl Default for Classic {
    fn default() -> Self {
        Classic { score: -STICKY, found: false, least_rtt: 0.0, srtt: 0.0, deviation: 0.0 }
    }
}

impl Classic {
    pub(super) fn is_found(&self) -> bool {
        self.found
    }

    /// Processes the round-trip time of a segment, with the gains of RFC 6298.
    pub(super) fn measured(&mut self, rtt: Span) {
        let rtt = rtt.as_ns() as f64;
        if self.srtt == 0.0 {
            (self.least_rtt, self.srtt, self.deviation) = (rtt, rtt, 0.0);
            return;
        }
        self.least_rtt = self.least_rtt.min(rtt);
        let error = rtt - self.srtt;
        self.srtt += error / 8.0;
        self.deviation += (error.abs() - self.deviation) / 4.0;
    }

    /// Updates the score at the end of a round trip, if any of its segments were marked.
    pub(super) fn end_period(&mut self, marked: bool, profile: &Profile) {
        if !profile.prague_fallback || !marked || self.srtt == 0.0 {
            return;
        }
        let in_units = |ns: f64, unit: Span| ns / unit.as_ns() as f64;
        let variation = in_units(self.deviation.max(1.0), profile.prague_fallback_variation);
        let queue = in_units(self.srtt - self.least_rtt, profile.prague_fallback_queue).max(LEAST_QUEUE);
        let more = VARIATION * libm::log2(variation) + QUEUE * libm::log2(queue);
        self.score = (self.score + more).clamp(-STICKY, FULL + STICKY);
        self.found = if self.found { self.score > 0.0 } else { self.score >= FULL };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A deviation of 1.5 ms is twice its reference and adds 0.75; a queue of 8 ms is four times its reference and
    /// adds 1. From -16, the tenth such round trip takes the score to 1.5.
    #[test]
    fn the_score_is_the_one_computed_by_hand() {
        let profile = Profile { prague_fallback: true, ..Profile::named("prague").expect("built in") };
        let slow = Classic { least_rtt: 20e6, srtt: 28e6, deviation: 1.5e6, ..Classic::default() };
        let mut classic = slow;
        for round in 1..=10 {
            classic.end_period(true, &profile);
            assert_eq!(classic.score, -16.0 + 1.75 * f64::from(round));
            assert_eq!(classic.is_found(), round == 10);
        }
        let before = classic.score;
        classic.end_period(false, &profile);
        assert_eq!(classic.score, before, "without marks, nothing is learned");
        // A quarter of the reference variation subtracts 1.5, and no queue subtracts 1.
        classic = Classic { srtt: 20e6, deviation: 187_500.0, ..classic };
        classic.end_period(true, &profile);
        assert_eq!((classic.score, classic.is_found()), (before - 2.5, false));
    }

    #[test]
    fn deviations_are_those_of_rfc6298() {
        let mut classic = Classic::default();
        classic.measured(Span::ms(20));
        classic.measured(Span::ms(28));
        assert_eq!((classic.least_rtt, classic.srtt, classic.deviation), (20e6, 21e6, 2e6));
    }
}
