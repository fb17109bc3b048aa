//! The control parameters: pacing rate, send quantum and window.

use aqmlab_units::Span;

use super::super::super::window::{Sample, Window};
use super::{Bbr, INFINITY, MIN_PIPE_CWND, State};
use crate::profile::Profile;

/// 1 - BBR.PacingMarginPercent / 100.
const PACED: f64 = 0.99;
/// Most bytes of a send quantum.
const MOST_QUANTUM: f64 = 65_536.0;
/// BBR.ExtraAckedFilterLen, and its value in Startup, in rounds.
const EXTRA_ACKED_FILTER_LEN: u32 = 10;
const EXTRA_ACKED_IN_STARTUP: u32 = 1;
/// The SYN, which counts as delivered here.
const SYN: u64 = 1;

/// Returns this time in seconds.
#[inline]
fn seconds(span: Span) -> f64 {
    span.as_ns() as f64 * 1e-9
}

impl Bbr {
    /// InitPacingRate, again with the first round-trip time measured.
    pub(super) fn init_pacing_rate(&mut self, srtt: Option<Span>, profile: &Profile) {
        self.has_seen_rtt = srtt.is_some();
        let nominal_bandwidth =
            profile.initial_window / seconds(srtt.unwrap_or(Span::ms(1)).max(Span::ns(1)));
        self.pacing_rate = State::Startup.pacing_gain() * nominal_bandwidth;
    }

    /// SetPacingRateWithGain.
    #[inline]
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw * PACED;
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// SetSendQuantum, in segments.
    #[inline]
    pub(super) fn send_quantum(&self, profile: &Profile) -> f64 {
        (self.pacing_rate * 0.001).min(MOST_QUANTUM / f64::from(profile.mss)).max(2.0)
    }

    /// UpdateACKAggregation.
    pub(super) fn update_ack_aggregation(&mut self, sample: &Sample, window: &Window) {
        let interval = sample.now.saturating_since(self.extra_acked_interval_start);
        let mut expected_delivered = self.bw * seconds(interval);
        if self.extra_acked_delivered <= expected_delivered {
            self.extra_acked_delivered = 0.0;
            self.extra_acked_interval_start = sample.now;
            expected_delivered = 0.0;
        }
        self.extra_acked_delivered += f64::from(sample.newly_acked);
        let extra = (self.extra_acked_delivered - expected_delivered).min(window.cwnd());
        let rounds = if self.full_bw_reached { EXTRA_ACKED_FILTER_LEN } else { EXTRA_ACKED_IN_STARTUP };
        self.extra_acked.add(self.round_count, extra, rounds);
    }

    /// BBR.bdp.
    #[inline]
    pub(super) fn bdp(&self) -> f64 {
        self.bw * seconds(self.min_rtt)
    }

    /// BDPMultiple.
    #[inline]
    pub(super) fn bdp_multiple(&self, bw: f64, gain: f64, profile: &Profile) -> f64 {
        if self.min_rtt == Span::MAX {
            return profile.initial_window;
        }
        gain * (bw * seconds(self.min_rtt))
    }

    /// QuantizationBudget, with the offload budget of TCP.
    #[inline]
    fn quantization_budget(&self, inflight_cap: f64, profile: &Profile) -> f64 {
        let offload_budget = 3.0 * self.send_quantum(profile);
        let cap = inflight_cap.max(offload_budget).max(MIN_PIPE_CWND);
        if self.state == State::ProbeUp { cap + 2.0 } else { cap }
    }

    /// Inflight.
    pub(super) fn inflight(&self, bw: f64, gain: f64, profile: &Profile) -> f64 {
        self.quantization_budget(self.bdp_multiple(bw, gain, profile), profile)
    }

    /// UpdateMaxInflight.
    fn max_inflight(&self, profile: &Profile) -> f64 {
        let cap = self.bdp_multiple(self.bw, self.state.cwnd_gain(), profile) + self.extra_acked.get();
        self.quantization_budget(cap, profile)
    }

    /// SetCwnd.
    pub(super) fn set_cwnd(&mut self, sample: &Sample, window: &mut Window, profile: &Profile) {
        let max_inflight = self.max_inflight(profile);
        let acked = f64::from(sample.newly_acked);
        let mut cwnd = window.cwnd();
        if self.full_bw_reached {
            cwnd = (cwnd + acked).min(max_inflight);
        } else if cwnd < max_inflight || ((sample.delivered - SYN) as f64) < profile.initial_window {
            cwnd += acked;
        }
        cwnd = cwnd.max(MIN_PIPE_CWND);
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd(profile)); // BoundCwndForProbeRTT
        }
        window.set(cwnd.min(self.cap_by_model()));
    }

    /// The bound of BoundCwndForModel.
    fn cap_by_model(&self) -> f64 {
        let cap = match self.state {
            State::ProbeDown | State::ProbeRefill | State::ProbeUp => self.inflight_longterm,
            State::ProbeRtt | State::ProbeCruise => self.inflight_with_headroom(),
            State::Startup | State::Drain => INFINITY,
        };
        cap.min(self.inflight_shortterm).max(MIN_PIPE_CWND)
    }
}
