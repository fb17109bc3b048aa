//! ProbeBW: DOWN drains the queue, CRUISE keeps the rate, REFILL fills the pipe, and UP looks for more.

use aqmlab_units::{Instant, Span};

use super::super::super::window::{Sample, Window};
use super::{AckPhase, Bbr, INFINITY, MIN_PIPE_CWND, State, delivery_rate};
use crate::profile::Profile;

/// BBR.Headroom.
const HEADROOM: f64 = 0.15;
/// The flow waits two to three seconds before it probes, or as many rounds as Reno would need to win back what a
/// loss takes, at most 63.
const LEAST_WAIT: Span = Span::s(2);
const MOST_WAIT_ROUNDS: f64 = 63.0;
/// The slope of inflight_longterm doubles at most this often in one probe.
const MOST_DOUBLINGS: u32 = 30;

impl Bbr {
    pub(super) fn start_probe_down(&mut self, now: Instant) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = INFINITY;
        self.pick_probe_wait();
        self.cycle_stamp = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::ProbeDown;
    }

    pub(super) fn start_probe_cruise(&mut self) {
        self.state = State::ProbeCruise;
    }

    pub(super) fn start_probe_refill(&mut self) {
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::ProbeRefill;
    }

    fn start_probe_up(&mut self, sample: &Sample, window: &Window) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = delivery_rate(sample);
        self.state = State::ProbeUp;
        self.raise_inflight_longterm_slope(window);
    }

    fn pick_probe_wait(&mut self) {
        self.rounds_since_probe_up = self.draws.below(2) as u32;
        self.bw_probe_wait = LEAST_WAIT + Span::ns(self.draws.below(Span::s(1).as_ns()));
    }

    pub(super) fn update_probe_bw_cycle_phase(
        &mut self,
        sample: &Sample,
        window: &Window,
        profile: &Profile,
    ) {
        if !self.full_bw_reached || self.adapt_long_term_model(sample, window) {
            return;
        }
        match self.state {
            State::ProbeDown => {
                if !self.is_time_to_probe_bw(sample.now, window) && self.is_time_to_cruise(sample, profile) {
                    self.start_probe_cruise();
                }
            }
            State::ProbeCruise => _ = self.is_time_to_probe_bw(sample.now, window),
            State::ProbeRefill => {
                if self.round_start {
                    self.is_bw_probe_sample = true;
                    self.start_probe_up(sample, window);
                }
            }
            State::ProbeUp => {
                if self.is_time_to_go_down(sample, window) {
                    self.prev_probe_too_high = false;
                    self.start_probe_down(sample.now);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    fn is_time_to_probe_bw(&mut self, now: Instant, window: &Window) -> bool {
        let due = now > self.cycle_stamp + self.bw_probe_wait
            || f64::from(self.rounds_since_probe_up) >= self.target_inflight(window).min(MOST_WAIT_ROUNDS);
        if due {
            self.start_probe_refill();
        }
        due
    }

    /// TargetInflight.
    pub(super) fn target_inflight(&self, window: &Window) -> f64 {
        self.bdp().min(window.cwnd())
    }

    fn is_time_to_cruise(&self, sample: &Sample, profile: &Profile) -> bool {
        let in_flight = f64::from(sample.in_flight);
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(self.max_bw, 1.0, profile)
    }

    fn is_time_to_go_down(&mut self, sample: &Sample, window: &Window) -> bool {
        if self.prev_probe_too_high && f64::from(sample.in_flight) >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if sample.limited_by_window && window.cwnd() >= self.inflight_longterm {
            self.reset_full_bw(); // the rate is limited by inflight_longterm
            self.full_bw = delivery_rate(sample);
            return false;
        }
        self.full_bw_now
    }

    pub(super) fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm == INFINITY {
            return INFINITY;
        }
        let headroom = (HEADROOM * self.inflight_longterm).max(1.0);
        (self.inflight_longterm - headroom).max(MIN_PIPE_CWND)
    }

    fn raise_inflight_longterm_slope(&mut self, window: &Window) {
        let growth_this_round = f64::from(1_u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(MOST_DOUBLINGS);
        self.probe_up_acked_per_inc = (window.cwnd() / growth_this_round).max(1.0);
    }

    fn probe_inflight_longterm_upward(&mut self, sample: &Sample, window: &Window) {
        if !sample.limited_by_window || window.cwnd() < self.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked += f64::from(sample.newly_acked);
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = libm::floor(self.bw_probe_up_acked / self.probe_up_acked_per_inc);
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.inflight_longterm += delta;
        }
        if self.round_start {
            self.raise_inflight_longterm_slope(window);
        }
    }

    /// AdaptLongTermModel. Returns whether it has decided the next state.
    fn adapt_long_term_model(&mut self, sample: &Sample, window: &Window) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !sample.app_limited {
                self.advance_max_bw_filter();
            }
            if self.state.is_probe_bw() && self.prev_probe_precautionary && !self.prev_probe_too_high {
                self.start_probe_refill();
                return true;
            }
        }
        if self.inflight_longterm < INFINITY && !Self::sample_is_too_high(sample) {
            self.inflight_longterm = self.inflight_longterm.max(f64::from(sample.tx_in_flight));
            if self.state == State::ProbeUp {
                self.probe_inflight_longterm_upward(sample, window);
            }
        }
        false
    }
}
