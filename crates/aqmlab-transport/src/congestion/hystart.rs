//! Slow start that ends before a loss, as in HyStart: when a train of acknowledgments is half a round trip
//! long, or when the round-trip time has increased (S. Ha, I. Rhee, "Taming the elephants: New TCP slow
//! start", Computer Networks 55 (9), 2011). The bounds on windows and times are as observed on Linux 6.1 with
//! CUBIC.

use aqmlab_units::{Instant, Span};

use super::window::{AckReport, Window};
use crate::profile::Profile;

/// Window, in segments, below which slow start always continues.
const LOW_WINDOW: f64 = 16.0;
/// Maximum time between successive acknowledgments of one train.
const SPACING: Span = Span::ms(2);
/// Time for which a host may delay acknowledgments.
const HELD_BACK: Span = Span::ms(1);
/// Number of round-trip samples that a round needs before their minimum counts.
const SAMPLES: u8 = 8;
const LEAST_GROWTH: Span = Span::ms(4);
const MOST_GROWTH: Span = Span::ms(16);

/// State of the current round and of earlier rounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct HyStart {
    found: bool,
    /// SND.NXT at the beginning of the round, and at the latest acknowledgment.
    end: u64,
    sent: u64,
    /// Time at the beginning of the round, and at the latest acknowledgment of its train.
    began: Instant,
    train: Instant,
    /// The shortest round-trip time so far, and the shortest in the current round.
    least: Span,
    round: Span,
    samples: u8,
}

impl Default for HyStart {
    fn default() -> Self {
        let (zero, never) = (Instant::ZERO, Span::MAX);
        HyStart {
            found: false,
            end: 0,
            sent: 0,
            began: zero,
            train: zero,
            least: never,
            round: never,
            samples: 0,
        }
    }
}

impl HyStart {
    /// Processes an acknowledgment, which may end slow start.
    pub(super) fn on_report(&mut self, window: &mut Window, report: &AckReport, profile: &Profile) {
        self.sent = report.sent;
        let Some(rtt) = report.rtt else { return };
        self.least = self.least.min(rtt);
        if self.found || window.cwnd() >= window.ssthresh() {
            return;
        }
        if report.una > self.end {
            (self.began, self.train) = (report.now, report.now);
            (self.end, self.round, self.samples) = (report.sent, Span::MAX, 0);
        }
        if window.cwnd() < LOW_WINDOW {
            return;
        }
        if self.train_is_long(report.now, profile) | self.delay_has_grown(rtt) {
            self.found = true;
            window.end_slow_start();
        }
    }

    /// Records that the retransmission timer has expired, after which a new slow start begins.
    pub(super) fn timed_out(&mut self) {
        *self = HyStart { end: self.sent, sent: self.sent, ..HyStart::default() };
    }

    /// Returns whether the train of acknowledgments is long enough to end slow start. Pacing
    /// spreads the segments, and therefore their acknowledgments, so a longer train is required.
    fn train_is_long(&mut self, now: Instant, profile: &Profile) -> bool {
        if now - self.train > SPACING {
            return false;
        }
        self.train = now;
        let whole = self.least + HELD_BACK;
        now - self.began > if profile.pacing { whole } else { whole.div(2) }
    }

    fn delay_has_grown(&mut self, rtt: Span) -> bool {
        self.round = self.round.min(rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        self.round > self.least + self.least.div(8).clamp(LEAST_GROWTH, MOST_GROWTH)
    }
}
