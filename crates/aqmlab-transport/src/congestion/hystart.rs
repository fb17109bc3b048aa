//! Slow start that ends before a loss, as HyStart finds its end: by a train of acknowledgments half a round trip long,
//! or by a round trip that has grown (S. Ha, I. Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55
//! (9), 2011). Its bounds are those that a Linux 6.1 shows with CUBIC.

use aqmlab_units::{Instant, Span};

use super::window::{Heard, Window};
use crate::profile::Profile;

/// Below so many segments slow start goes on.
const LOW_WINDOW: f64 = 16.0;
/// Acknowledgments that are at most so far apart are one train.
const SPACING: Span = Span::ms(2);
/// What a host may hold acknowledgments back for.
const HELD_BACK: Span = Span::ms(1);
/// Round trips that are looked at, in each round, before their least says anything.
const SAMPLES: u8 = 8;
const LEAST_GROWTH: Span = Span::ms(4);
const MOST_GROWTH: Span = Span::ms(16);

/// What is remembered of the round and of those before.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct HyStart {
    found: bool,
    /// SND.NXT when the round began, and by the latest acknowledgment.
    end: u64,
    sent: u64,
    /// When the round began, and the latest acknowledgment of its train.
    began: Instant,
    train: Instant,
    /// The least round trip of all, and of the round.
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
    /// An acknowledgment arrives. Slow start may be over with it.
    pub(super) fn heard(&mut self, window: &mut Window, heard: &Heard, profile: &Profile) {
        self.sent = heard.sent;
        let Some(rtt) = heard.rtt else { return };
        self.least = self.least.min(rtt);
        if self.found || window.cwnd() >= window.ssthresh() {
            return;
        }
        if heard.una > self.end {
            (self.began, self.train) = (heard.now, heard.now);
            (self.end, self.round, self.samples) = (heard.sent, Span::MAX, 0);
        }
        if window.cwnd() < LOW_WINDOW {
            return;
        }
        if self.train_is_long(heard.now, profile) | self.delay_has_grown(rtt) {
            self.found = true;
            window.end_slow_start();
        }
    }

    /// The retransmission timer has fired: the slow start that follows is a new one.
    pub(super) fn timed_out(&mut self) {
        *self = HyStart { end: self.sent, sent: self.sent, ..HyStart::default() };
    }

    /// Pacing spreads what is sent, and the acknowledgments with it.
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
