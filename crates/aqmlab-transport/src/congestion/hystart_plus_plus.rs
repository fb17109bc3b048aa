//! HyStart++ (RFC 9406): slow start that becomes conservative when the round-trip time increases, and then
//! ends. Its limit L on the growth per acknowledgment is the profile's `abc_limit`.

use aqmlab_units::Span;

use super::window::{AckReport, Window};

const MIN_RTT_THRESH: Span = Span::ms(4);
const MAX_RTT_THRESH: Span = Span::ms(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u8 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u8 = 5;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    /// Standard slow start.
    Standard,
    /// Conservative slow start (CSS): cssBaselineMinRtt, and the number of complete rounds.
    Conservative { baseline: Span, rounds: u8 },
    /// The initial slow start has ended, and so has HyStart++.
    Over,
}

/// The phase, and the round that is being measured (section 4.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct HyStartPlusPlus {
    phase: Phase,
    /// windowEnd.
    window_end: u64,
    /// lastRoundMinRTT.
    last_round: Span,
    /// currentRoundMinRTT.
    this_round: Span,
    /// rttSampleCount.
    samples: u8,
}

impl Default for HyStartPlusPlus {
    fn default() -> Self {
        let (last_round, this_round) = (Span::MAX, Span::MAX);
        HyStartPlusPlus { phase: Phase::Standard, window_end: 1, last_round, this_round, samples: 0 }
    }
}

impl HyStartPlusPlus {
    /// Processes an acknowledgment: first checks whether it ends a round, then uses the round-trip time that
    /// it provides.
    pub(super) fn on_report(&mut self, window: &mut Window, report: &AckReport) {
        if self.phase == Phase::Over || window.cwnd() >= window.ssthresh() {
            self.phase = Phase::Over;
            return;
        }
        if report.una > self.window_end {
            self.end_round(window);
            self.window_end = report.sent;
        }
        let Some(rtt) = report.rtt else { return };
        self.this_round = self.this_round.min(rtt);
        self.samples = self.samples.saturating_add(1);
        if self.samples >= N_RTT_SAMPLE {
            self.judge();
        }
    }

    fn end_round(&mut self, window: &mut Window) {
        (self.last_round, self.this_round, self.samples) = (self.this_round, Span::MAX, 0);
        if let Phase::Conservative { rounds, .. } = &mut self.phase {
            *rounds += 1;
            if *rounds == CSS_ROUNDS {
                self.phase = Phase::Over;
                window.end_slow_start();
            }
        }
    }

    fn judge(&mut self) {
        match self.phase {
            Phase::Standard if self.last_round < Span::MAX => {
                let threshold = self.last_round.div(MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.this_round >= self.last_round + threshold {
                    self.phase = Phase::Conservative { baseline: self.this_round, rounds: 0 };
                }
            }
            // The round-trip time has fallen again, so its increase was not due to a queue, and standard slow
            // start resumes.
            Phase::Conservative { baseline, .. } if self.this_round < baseline => {
                self.phase = Phase::Standard
            }
            _ => {}
        }
    }

    /// Returns the growth of the window as a share of the growth in standard slow start.
    pub(super) fn share(&self) -> f64 {
        if matches!(self.phase, Phase::Conservative { .. }) { 1.0 / CSS_GROWTH_DIVISOR } else { 1.0 }
    }

    /// Processes a loss, a mark or a timeout, which ends the initial slow start (section 4.2).
    pub(super) fn congestion(&mut self) {
        self.phase = Phase::Over;
    }
}
