//! The shortest round-trip time, and ProbeRTT, which drains the queue to measure it.

use aqmlab_units::{Instant, Span};

use super::super::super::window::{Sample, Window};
use super::{AckPhase, Bbr, MIN_PIPE_CWND, State, delivered};
use crate::profile::Profile;

/// BBR.MinRTTFilterLen.
const MIN_RTT_FILTER_LEN: Span = Span::s(10);
/// BBR.ProbeRTTInterval.
const PROBE_RTT_INTERVAL: Span = Span::s(5);
/// BBR.ProbeRTTDuration.
const PROBE_RTT_DURATION: Span = Span::ms(200);

impl Bbr {
    pub(super) fn update_min_rtt(&mut self, sample: &Sample) {
        self.probe_rtt_expired = sample.now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rtt
            && (rtt < self.probe_rtt_min_delay || self.probe_rtt_expired)
        {
            (self.probe_rtt_min_delay, self.probe_rtt_min_stamp) = (rtt, sample.now);
        }
        let min_rtt_expired = sample.now > self.min_rtt_stamp + MIN_RTT_FILTER_LEN;
        if self.probe_rtt_min_delay < self.min_rtt || min_rtt_expired {
            (self.min_rtt, self.min_rtt_stamp) = (self.probe_rtt_min_delay, self.probe_rtt_min_stamp);
        }
    }

    /// CheckProbeRTT. Returns whether what is in flight counts as limited by the application.
    pub(super) fn check_probe_rtt(
        &mut self,
        sample: &Sample,
        window: &mut Window,
        profile: &Profile,
    ) -> bool {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd(window);
            self.probe_rtt_done_stamp = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        let probes = self.state == State::ProbeRtt;
        if probes {
            self.handle_probe_rtt(sample, window, profile);
        }
        if delivered(sample) > 0.0 {
            self.idle_restart = false;
        }
        probes
    }

    fn handle_probe_rtt(&mut self, sample: &Sample, window: &mut Window, profile: &Profile) {
        if self.probe_rtt_done_stamp.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(sample.now, window);
            }
        } else if f64::from(sample.in_flight) <= self.probe_rtt_cwnd(profile) {
            self.probe_rtt_done_stamp = Some(sample.now + PROBE_RTT_DURATION);
            self.probe_rtt_round_done = false;
            self.start_round();
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Instant, window: &mut Window) {
        if self.probe_rtt_done_stamp.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt_min_stamp = now;
        self.restore_cwnd(window);
        // ExitProbeRTT
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_probe_down(now);
            self.start_probe_cruise();
        } else {
            self.state = State::Startup;
        }
    }

    /// ProbeRTTCwnd.
    pub(super) fn probe_rtt_cwnd(&self, profile: &Profile) -> f64 {
        self.bdp_multiple(self.bw, State::ProbeRtt.cwnd_gain(), profile).max(MIN_PIPE_CWND)
    }
}
