//! The response to losses, and its undoing: while the flow probes, losses bound what may be in flight in the long
//! term; otherwise, they lower the short-term model.

use aqmlab_units::Instant;

use super::super::super::window::{Lost, Repair, Sample, Window};
use super::{BETA, Bbr, INFINITY, State, Undo, delivered, delivery_rate, has_data};

/// BBR.LossThresh.
const LOSS_THRESH: f64 = 0.02;
/// BBRStartupFullLossCnt.
const STARTUP_FULL_LOSS_COUNT: usize = 6;

impl Bbr {
    /// IsInflightTooHigh, for a sample or a lost packet.
    fn is_inflight_too_high(lost: f64, tx_in_flight: u32, selective: bool) -> bool {
        lost > f64::from(tx_in_flight) * LOSS_THRESH || lost > 0.0 && !selective
    }

    pub(super) fn sample_is_too_high(sample: &Sample) -> bool {
        Self::is_inflight_too_high(sample.lost_since as f64, sample.tx_in_flight, sample.selective)
    }

    /// CheckStartupHighLoss. DEVIATES from the section "Exiting Startup Based on Packet Loss", which sets only
    /// full_bw_reached: the example test case sets full_bw_now as well.
    pub(super) fn check_startup_high_loss(&mut self, sample: &Sample) {
        if self.state != State::Startup || sample.repair != Repair::Recovery {
            return;
        }
        let high = if sample.selective {
            self.loss_round_start
                && sample.prior_delivered >= self.recovery_delivered
                && self.lost_ranges.topmost_first().count() >= STARTUP_FULL_LOSS_COUNT
                && Self::sample_is_too_high(sample)
        } else {
            sample.newly_lost > 0
        };
        if high && !self.full_bw_reached {
            self.undo.state = Some(State::Startup);
            (self.full_bw_reached, self.full_bw_now) = (true, true);
            self.inflight_longterm = self.bdp().max(self.inflight_latest);
        }
    }

    /// NoteLoss. DEVIATES: does not save the state again during a recovery, because ProbeBW_DOWN begins with no loss
    /// in its round, so that the next loss would replace what was saved when the recovery began ("Saving State Upon
    /// Loss Recovery"), and the example test case "Handling Spurious Fast Recovery" would fail.
    fn note_loss(&mut self, window: &Window) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.delivered;
            if self.repair == Repair::Nothing {
                self.save_state_upon_loss(window);
            }
        }
        self.is_loss_in_round = true;
    }

    pub(super) fn handle_lost_packet(&mut self, now: Instant, lost: &Lost, window: &Window) {
        self.note_loss(window);
        if self.state == State::Startup {
            self.lost_ranges.insert(lost.from, lost.end);
        }
        let since = lost.lost_since as f64;
        if self.is_bw_probe_sample && Self::is_inflight_too_high(since, lost.tx_in_flight, lost.selective) {
            let inflight = inflight_at_loss(f64::from(lost.tx_in_flight), since);
            self.handle_inflight_too_high(now, inflight, lost.app_limited, window);
        }
    }

    /// Responds to a mark as to the loss of one segment, the newest that has arrived.
    pub(super) fn handle_mark(&mut self, sample: &Sample, window: &Window) {
        self.note_loss(window);
        let since = sample.lost_since as f64 + 1.0;
        if self.is_bw_probe_sample && Self::is_inflight_too_high(since, sample.tx_in_flight, sample.selective)
        {
            let inflight = inflight_at_loss(f64::from(sample.tx_in_flight), since);
            self.handle_inflight_too_high(sample.now, inflight, sample.app_limited, window);
        }
    }

    fn handle_inflight_too_high(&mut self, now: Instant, inflight: f64, app_limited: bool, window: &Window) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false; // only one response per probe
        if !app_limited {
            self.inflight_longterm = inflight.max(self.target_inflight(window) * BETA);
        }
        if self.state == State::ProbeUp {
            self.undo.state = Some(State::ProbeUp);
            self.start_probe_down(now);
        }
    }

    pub(super) fn update_latest_delivery_signals(&mut self, sample: &Sample) {
        self.loss_round_start = false;
        if !has_data(sample) {
            return;
        }
        self.bw_latest = self.bw_latest.max(delivery_rate(sample));
        self.inflight_latest = self.inflight_latest.max(delivered(sample));
        if sample.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = sample.delivered;
            self.loss_round_start = true;
        }
    }

    pub(super) fn advance_latest_delivery_signals(&mut self, sample: &Sample) {
        if self.loss_round_start {
            self.bw_latest = delivery_rate(sample);
            self.inflight_latest = delivered(sample);
            if !self.lost_ranges.is_empty() {
                self.lost_ranges.clear();
            }
        }
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (0.0, 0.0);
    }

    /// AdaptLowerBoundsFromCongestion, with InitLowerBounds and LossLowerBounds.
    pub(super) fn adapt_lower_bounds_from_congestion(&mut self, window: &Window) {
        if self.state.is_probing() || !self.is_loss_in_round {
            return;
        }
        if self.bw_shortterm == INFINITY {
            self.bw_shortterm = self.max_bw;
        }
        if self.inflight_shortterm == INFINITY {
            self.inflight_shortterm = window.cwnd();
        }
        self.bw_shortterm = self.bw_latest.max(BETA * self.bw_shortterm);
        self.inflight_shortterm = self.inflight_latest.max(BETA * self.inflight_shortterm);
    }

    pub(super) fn reset_short_term_model(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (INFINITY, INFINITY);
    }

    pub(super) fn save_state_upon_loss(&mut self, window: &Window) {
        self.save_cwnd(window);
        self.undo = Undo {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    pub(super) fn handle_spurious_loss_detection(&mut self, window: &mut Window) {
        self.restore_cwnd(window);
        self.is_loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::ProbeUp) if !matches!(self.state, State::ProbeUp | State::ProbeRtt) => {
                self.start_probe_refill();
            }
            _ => {}
        }
    }

    /// SaveCwnd.
    pub(super) fn save_cwnd(&mut self, window: &Window) {
        let usual = self.repair == Repair::Nothing && self.state != State::ProbeRtt;
        self.prior_cwnd = if usual { window.cwnd() } else { self.prior_cwnd.max(window.cwnd()) };
    }

    /// RestoreCwnd.
    pub(super) fn restore_cwnd(&self, window: &mut Window) {
        window.set(window.cwnd().max(self.prior_cwnd));
    }
}

/// InflightAtLoss: at how much in flight the losses crossed the threshold, given what was in flight when a lost
/// segment left, and what has been lost since then, each including that segment.
fn inflight_at_loss(tx_in_flight: f64, lost: f64) -> f64 {
    let (inflight_prev, lost_prev) = (tx_in_flight - 1.0, lost - 1.0);
    let lost_prefix = (LOSS_THRESH * inflight_prev - lost_prev) / (1.0 - LOSS_THRESH);
    inflight_prev + lost_prefix
}

#[cfg(test)]
mod tests {
    use super::super::super::sample;
    use super::*;
    use crate::profile::Profile;

    fn window(segments: u32) -> Window {
        let mut window = Window::new(&Profile::named("linux").expect("built in"));
        window.set(segments);
        window
    }

    fn lost(number: u64, tx_in_flight: u32, lost_since: u64) -> Lost {
        let (from, end) = (1000 * number, 1000 * number + 1000);
        Lost { from, end, tx_in_flight, lost_since, app_limited: false, selective: true }
    }

    /// By the draft's equation, losses and what is in flight have the ratio LossThresh at the result: with 100 in
    /// flight, the second loss of one segment crosses 2 % after 99 + 0.98 / 0.98 segments.
    #[test]
    fn losses_cross_the_threshold_at_the_prefix_of_the_draft() {
        for (tx_in_flight, since, expected) in [(100.0, 2.0, 100.0), (100.0, 3.0, 99.0 - 0.02 / 0.98)] {
            let inflight: f64 = inflight_at_loss(tx_in_flight, since);
            assert!((inflight - expected).abs() < 1e-9, "{inflight}");
            let prefix = inflight - (tx_in_flight - 1.0);
            assert!(((since - 1.0 + prefix) / inflight - LOSS_THRESH).abs() < 1e-12);
        }
    }

    /// In ProbeBW_UP with 100 in flight, the third loss is more than 2 %, and the window is bounded by what was in
    /// flight, but not below 70 % of the target; a fourth changes nothing. Undoing restores both.
    #[test]
    fn a_probe_responds_once_to_losses_above_the_threshold() {
        for (tx_in_flight, target, expected) in [(100, 100.0, 98.979), (50, 100.0, 70.0)] {
            let mut bbr = *Bbr::new();
            (bbr.state, bbr.is_bw_probe_sample, bbr.full_bw_reached) = (State::ProbeUp, true, true);
            (bbr.bw, bbr.min_rtt) = (target * 10.0, aqmlab_units::Span::ms(100));
            bbr.repair = Repair::Recovery;
            let mut window = window(150);
            bbr.save_state_upon_loss(&window);
            let first = u64::from(tx_in_flight) / 50;
            (1..=first)
                .for_each(|n| bbr.handle_lost_packet(Instant::ZERO, &lost(n, tx_in_flight, n), &window));
            assert_eq!(bbr.state, State::ProbeUp);
            bbr.handle_lost_packet(Instant::ZERO, &lost(7, tx_in_flight, first + 1), &window);
            assert!((bbr.inflight_longterm - expected).abs() < 1e-3, "{}", bbr.inflight_longterm);
            assert_eq!(bbr.state, State::ProbeDown);
            bbr.handle_lost_packet(Instant::ZERO, &lost(9, 20, 10), &window);
            assert!((bbr.inflight_longterm - expected).abs() < 1e-3);
            bbr.handle_spurious_loss_detection(&mut window);
            assert_eq!((bbr.inflight_longterm, bbr.state), (INFINITY, State::ProbeRefill));
        }
    }

    /// At the end of a round with losses, while the flow does not probe: rate and window fall to 70 %, or to what was
    /// delivered, if that is more. A mark has the effect of one loss.
    #[test]
    fn losses_and_marks_lower_the_short_term_model_by_beta() {
        for (bw_latest, expected, marked) in [(50.0, 70.0, false), (90.0, 90.0, false), (50.0, 70.0, true)] {
            let mut bbr = *Bbr::new();
            (bbr.state, bbr.max_bw, bbr.bw_latest, bbr.inflight_latest) =
                (State::ProbeCruise, 100.0, bw_latest, 10.0);
            let window = window(20);
            match marked {
                true => bbr.handle_mark(&sample(), &window),
                false => bbr.handle_lost_packet(Instant::ZERO, &lost(1, 20, 1), &window),
            }
            bbr.adapt_lower_bounds_from_congestion(&window);
            assert!((bbr.bw_shortterm - expected).abs() < 1e-9);
            assert!((bbr.inflight_shortterm - 14.0).abs() < 1e-9);
            // and again in the next round
            bbr.adapt_lower_bounds_from_congestion(&window);
            assert!((bbr.inflight_shortterm - 10.0).abs() < 1e-9, "not below what was delivered");
        }
    }

    /// Startup ends if, in a round of fast recovery, at least six ranges and more than 2 % are lost. Adjacent segments
    /// form one range. Without SACK, any loss in fast recovery ends it.
    #[test]
    fn startup_ends_at_six_ranges_of_losses() {
        for (numbers, lost_since, selective, ends) in [
            (&[1, 3, 5, 7, 9, 11][..], 6, true, true),
            (&[1, 3, 5, 7, 9, 10], 6, true, false),
            (&[1, 3, 5, 7, 9, 11], 2, true, false),
            (&[1], 1, false, true),
        ] {
            let mut bbr = *Bbr::new();
            (bbr.bw, bbr.min_rtt, bbr.inflight_latest) = (500.0, aqmlab_units::Span::ms(100), 60.0);
            bbr.repair = Repair::Recovery;
            let window = window(150);
            numbers.iter().for_each(|n| bbr.handle_lost_packet(Instant::ZERO, &lost(*n, 100, 1), &window));
            bbr.loss_round_start = true;
            let sample = Sample {
                repair: Repair::Recovery,
                tx_in_flight: 100,
                lost_since,
                selective,
                newly_lost: 1,
                ..sample()
            };
            bbr.check_startup_done(&sample);
            assert_eq!((bbr.state == State::Drain, bbr.full_bw_reached), (ends, ends), "{numbers:?}");
            assert!(!ends || bbr.inflight_longterm == 60.0, "the larger of 50 and 60");
        }
    }
}
