//! The search for a policer, as observed on Linux 6.1; the draft has none.

use super::super::super::window::Sample;
use super::units::{RATE_STEPS, UNIT, whole_ms};
use crate::profile::Profile;

/// A policer is suspected if two intervals of at least this many rounds, each of which begins and ends with a loss,
const INTERVAL_ROUNDS: u8 = 4;
/// have lost at least 50 segments for each 256 that were delivered,
const POLICED_LOSSES: u64 = 50;
/// at rates that differ by at most an eighth, or by this many bytes per second. An interval that lasts longer
/// than four times the shortest is discarded.
const SAME_RATE: u64 = 500;
/// The mean of the two rates is then used for this many rounds of ProbeBW.
const POLICED_ROUNDS: u8 = 48;

/// The search for a policer, which drops what exceeds its rate: it is no use to probe for more.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Policer {
    /// An interval has begun.
    measures: bool,
    /// Its rounds or, if a policer has been found, the rounds since then.
    rounds: u8,
    /// C.delivered, C.lost and the time, in milliseconds, when the interval began.
    delivered: u64,
    lost: u64,
    began: u64,
    /// The rate of the previous interval; 0 if there is none.
    pub rate: u64,
    /// A policer has been found, and `rate` is its rate.
    pub found: bool,
}

impl Policer {
    fn begin_interval(&mut self, sample: &Sample) {
        self.rounds = 0;
        (self.delivered, self.lost, self.began) = (sample.delivered, sample.lost, whole_ms(sample.now));
    }

    fn start_over(&mut self, sample: &Sample) {
        *self = Policer::default();
        self.begin_interval(sample);
    }

    /// Processes a sample. Returns true if the rate of a policer is no longer to be used.
    pub(super) fn on_sample(
        &mut self,
        sample: &Sample,
        round_start: bool,
        in_probe_bw: bool,
        profile: &Profile,
    ) -> bool {
        if self.found {
            if in_probe_bw && round_start {
                self.rounds += 1;
                if self.rounds >= POLICED_ROUNDS {
                    self.start_over(sample);
                    return true;
                }
            }
            return false;
        }
        if !self.measures {
            if sample.newly_lost == 0 {
                return false;
            }
            self.begin_interval(sample);
            self.measures = true;
        }
        if sample.app_limited {
            self.start_over(sample);
            return false;
        }
        self.rounds += u8::from(round_start);
        if self.rounds < INTERVAL_ROUNDS {
            return false;
        }
        if self.rounds > 4 * INTERVAL_ROUNDS {
            self.start_over(sample);
            return false;
        }
        if sample.newly_lost > 0 {
            self.end_interval(sample, profile);
        }
        false
    }

    fn end_interval(&mut self, sample: &Sample, profile: &Profile) {
        let (delivered, lost) = (sample.delivered - self.delivered, sample.lost - self.lost);
        let ms = whole_ms(sample.now) - self.began;
        if delivered == 0 || lost * UNIT < POLICED_LOSSES * delivered || ms == 0 {
            return;
        }
        let rate = delivered * RATE_STEPS / (ms * 1000);
        let apart = rate.abs_diff(self.rate);
        let in_bytes = apart * u64::from(profile.mss) * 1_000_000 / RATE_STEPS;
        if self.rate > 0 && (apart * 8 <= self.rate || in_bytes <= SAME_RATE) {
            (self.rate, self.found, self.rounds) = (u64::midpoint(rate, self.rate), true, 0);
        } else {
            self.rate = rate;
            self.begin_interval(sample);
        }
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_units::{Instant, Span};

    use super::super::super::sample;
    use super::*;

    /// The policer passes 10 segments per 10 ms and drops 3 of 13: two intervals of four rounds find its rate, which
    /// is used for 48 rounds; with one in 13 dropped, none is found.
    #[test]
    fn a_policer_is_found_by_two_intervals_with_many_losses() {
        let profile = Profile::named("linux").expect("built in");
        for (losses, finds) in [(3, true), (1, false)] {
            let mut policer = Policer::default();
            let mut found = std::vec::Vec::new();
            for round in 0..80 {
                let sample = Sample {
                    now: Instant::ZERO + Span::ms(10 * round),
                    delivered: 10 * round,
                    lost: losses * round,
                    newly_lost: losses as u32,
                    ..sample()
                };
                policer.on_sample(&sample, true, true, &profile);
                found.push(policer.found);
            }
            assert_eq!(found.iter().any(|found| *found), finds);
            if finds {
                let begun = found.iter().position(|found| *found).expect("found");
                assert_eq!(
                    begun, 7,
                    "four rounds, the first of which began with the first loss, and four more"
                );
                assert_eq!(found.iter().skip(begun).position(|found| !found), Some(48));
            }
        }
    }
}
