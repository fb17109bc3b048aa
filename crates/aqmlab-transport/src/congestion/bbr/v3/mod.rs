//! BBR, version 3 (draft-ietf-ccwg-bbr of August 2026): a model of the path with two time scales. The long-term
//! model is the largest delivery rate and the largest amount in flight that a probe has found safe; the short-term
//! model lowers both after losses, until the next probe.
//!
//! Names are those of the draft, as are sections in quotation marks. Amounts are in segments, which the draft
//! permits ("Terminology"), but not in whole ones; rates are in segments per second.
//!
//! [`rounds`] counts rounds and looks for a plateau, [`probe_bw`] and [`probe_rtt`] are the states in which the
//! flow spends its life, [`losses`] is the response to losses and its undoing, and [`control`] computes pacing rate
//! and window.

mod control;
mod losses;
mod probe_bw;
mod probe_rtt;
mod rounds;

use alloc::boxed::Box;

use aqmlab_units::{Instant, Rate, Span};

use super::super::model::PathModel;
use super::super::window::{Ack, Control, Cut, Lost, Pacing, Pause, Repair, Sample, Sign, Window};
use super::draws::Draws;
use super::largest::Largest;
use crate::profile::Profile;
use crate::ranges::Ranges;

pub(crate) const VERSION: u32 = 1;

const INFINITY: f64 = f64::INFINITY;
/// BBR.MinPipeCwnd, in segments.
const MIN_PIPE_CWND: f64 = 4.0;
/// BBR.Beta.
const BETA: f64 = 0.7;
const UNKNOWN: u64 = u64::MAX;

/// BBR.state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    ProbeDown,
    ProbeCruise,
    ProbeRefill,
    ProbeUp,
    ProbeRtt,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            State::Startup => "Startup",
            State::Drain => "Drain",
            State::ProbeDown => "ProbeBW_DOWN",
            State::ProbeCruise => "ProbeBW_CRUISE",
            State::ProbeRefill => "ProbeBW_REFILL",
            State::ProbeUp => "ProbeBW_UP",
            State::ProbeRtt => "ProbeRTT",
        }
    }

    /// BBR.pacing_gain: StartupPacingGain (4 ln 2), DrainPacingGain, and the table of "Summary of Control Behavior in
    /// the State Machine".
    const fn pacing_gain(self) -> f64 {
        match self {
            State::Startup => 2.77,
            State::Drain => 0.5,
            State::ProbeDown => 0.9,
            State::ProbeUp => 1.25,
            State::ProbeCruise | State::ProbeRefill | State::ProbeRtt => 1.0,
        }
    }

    /// BBR.cwnd_gain, from the same table.
    const fn cwnd_gain(self) -> f64 {
        match self {
            State::ProbeUp => 2.25,
            State::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }

    /// IsInAProbeBWState.
    const fn is_probe_bw(self) -> bool {
        matches!(self, State::ProbeDown | State::ProbeCruise | State::ProbeRefill | State::ProbeUp)
    }

    /// IsProbingBW.
    const fn is_probing(self) -> bool {
        matches!(self, State::Startup | State::ProbeRefill | State::ProbeUp)
    }
}

/// BBR.ack_phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// What is restored if a recovery proves to be spurious.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Undo {
    state: Option<State>,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

/// State of a flow.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Bbr {
    state: State,
    /// C.delivered, as of the latest acknowledgment.
    delivered: u64,
    round_count: u32,
    round_start: bool,
    next_round_delivered: u64,
    idle_restart: bool,
    drain_start_round: u32,

    /// BBR.max_bw, and BBR.max_bw_filter: the largest rates of the previous and of the current cycle.
    max_bw: f64,
    max_bw_filter: [f64; 2],
    bw_shortterm: f64,
    bw: f64,
    min_rtt: Span,
    min_rtt_stamp: Instant,
    extra_acked: Largest<f64>,
    extra_acked_interval_start: Instant,
    extra_acked_delivered: f64,
    inflight_longterm: f64,
    inflight_shortterm: f64,

    bw_latest: f64,
    inflight_latest: f64,
    loss_round_delivered: u64,
    loss_round_start: bool,
    is_loss_in_round: bool,
    /// The ranges of offsets lost in the current round, in Startup.
    lost_ranges: Ranges,
    /// C.delivered when the latest recovery began; [`UNKNOWN`] until the end of the acknowledgment that began it.
    recovery_delivered: u64,
    /// A mark has arrived, or a probe has repaired a loss, to which the flow has not responded yet.
    marked: bool,
    repair: Repair,
    undo: Undo,

    full_bw_reached: bool,
    full_bw_now: bool,
    full_bw: f64,
    full_bw_count: u8,

    ack_phase: AckPhase,
    is_bw_probe_sample: bool,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,
    bw_probe_up_rounds: u32,
    rounds_since_probe_up: u32,
    bw_probe_wait: Span,
    cycle_stamp: Instant,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,

    probe_rtt_min_delay: Span,
    probe_rtt_min_stamp: Instant,
    probe_rtt_expired: bool,
    probe_rtt_done_stamp: Option<Instant>,
    probe_rtt_round_done: bool,
    prior_cwnd: f64,

    /// C.pacing_rate, in segments per second.
    pacing_rate: f64,
    has_seen_rtt: bool,
    draws: Draws,
}

impl Bbr {
    /// OnInit, except for what is known only when the connection is established.
    pub(crate) fn new() -> Box<Self> {
        Box::new(Bbr {
            state: State::Startup,
            delivered: 0,
            round_count: 0,
            round_start: false,
            next_round_delivered: 0,
            idle_restart: false,
            drain_start_round: 0,
            max_bw: 0.0,
            max_bw_filter: [0.0; 2],
            bw_shortterm: INFINITY,
            bw: 0.0,
            min_rtt: Span::MAX,
            min_rtt_stamp: Instant::ZERO,
            extra_acked: Largest::new(0.0),
            extra_acked_interval_start: Instant::ZERO,
            extra_acked_delivered: 0.0,
            inflight_longterm: INFINITY,
            inflight_shortterm: INFINITY,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_round_delivered: 0,
            loss_round_start: false,
            is_loss_in_round: false,
            lost_ranges: Ranges::default(),
            recovery_delivered: 0,
            marked: false,
            repair: Repair::Nothing,
            undo: Undo { state: None, bw_shortterm: 0.0, inflight_shortterm: 0.0, inflight_longterm: 0.0 },
            full_bw_reached: false,
            full_bw_now: false,
            full_bw: 0.0,
            full_bw_count: 0,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: INFINITY,
            bw_probe_up_rounds: 0,
            rounds_since_probe_up: 0,
            bw_probe_wait: Span::ZERO,
            cycle_stamp: Instant::ZERO,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            probe_rtt_min_delay: Span::MAX,
            probe_rtt_min_stamp: Instant::ZERO,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            prior_cwnd: 0.0,
            pacing_rate: 0.0,
            has_seen_rtt: false,
            draws: Draws::default(),
        })
    }

    /// UpdateModelAndState. Returns whether what is in flight counts as limited by the application.
    fn update_model_and_state(&mut self, sample: &Sample, window: &mut Window, profile: &Profile) -> bool {
        self.update_latest_delivery_signals(sample);
        self.update_congestion_signals(sample, window);
        self.update_ack_aggregation(sample, window);
        self.check_full_bw_reached(sample);
        self.check_startup_done(sample);
        self.check_drain_done(sample, profile);
        self.update_probe_bw_cycle_phase(sample, window, profile);
        self.update_min_rtt(sample);
        let limits = self.check_probe_rtt(sample, window, profile);
        self.advance_latest_delivery_signals(sample);
        self.bw = self.max_bw.min(self.bw_shortterm); // BoundBWForModel
        limits
    }
}

/// RS.delivery_rate, in segments per second; zero if no rate is measured.
#[inline]
fn delivery_rate(sample: &Sample) -> f64 {
    sample.rate.map_or(0.0, |(segments, interval)| segments as f64 * 1e9 / interval.as_ns() as f64)
}

/// RS.delivered; zero if the acknowledgment reports no segment.
#[inline]
fn delivered(sample: &Sample) -> f64 {
    if has_data(sample) { (sample.delivered - sample.prior_delivered) as f64 } else { 0.0 }
}

/// RS.has_data.
#[inline]
fn has_data(sample: &Sample) -> bool {
    sample.tx_in_flight > 0
}

impl Control for Bbr {
    fn established(&mut self, now: Instant, _window: &Window, srtt: Option<Span>, profile: &Profile) {
        self.min_rtt = srtt.unwrap_or(Span::MAX);
        self.probe_rtt_min_delay = self.min_rtt;
        (self.min_rtt_stamp, self.probe_rtt_min_stamp) = (now, now);
        self.extra_acked_interval_start = now;
        self.init_pacing_rate(srtt, profile);
    }

    fn set_seed(&mut self, seed: u64) {
        self.draws.seed = seed;
    }

    fn slow_start(&mut self, _window: &mut Window, _ack: &Ack, _profile: &Profile) {}

    fn avoid(&mut self, _window: &mut Window, _ack: &Ack, _profile: &Profile) {}

    /// UpdateOnACK, after what the acknowledgment has shown about recoveries and losses.
    fn on_sample(&mut self, window: &mut Window, sample: &Sample, profile: &Profile) -> bool {
        self.delivered = sample.delivered;
        if !self.has_seen_rtt && sample.srtt.is_some() {
            self.init_pacing_rate(sample.srtt, profile);
        }
        let earlier = core::mem::replace(&mut self.repair, sample.repair);
        if earlier != Repair::Nothing && self.repair == Repair::Nothing {
            self.restore_cwnd(window);
        }
        if self.recovery_delivered == UNKNOWN {
            self.recovery_delivered = sample.delivered;
        }
        self.on_losses(sample.now, window, sample.losses, profile);
        if core::mem::take(&mut self.marked) {
            self.handle_mark(sample, window);
        }
        let limits = self.update_model_and_state(sample, window, profile);
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_cwnd(sample, window, profile);
        limits
    }

    fn on_losses(&mut self, now: Instant, window: &mut Window, losses: &[Lost], _profile: &Profile) {
        for lost in losses {
            self.handle_lost_packet(now, lost, window);
        }
    }

    /// OnEnterFastRecovery and OnEnterRTO. The draft specifies no response to marks, but that they count as
    /// congestion ("ECN"): as in RFC 3168, section 5, the first one of a round trip counts as the loss of one segment.
    fn congestion(&mut self, sign: Sign, window: &Window, _profile: &Profile) -> Cut {
        match sign {
            Sign::Mark => self.marked = true,
            // a further timeout of the same recovery
            Sign::Timeout { .. } if self.repair == Repair::Timeout => {}
            Sign::Loss | Sign::Timeout { .. } => {
                self.save_state_upon_loss(window);
                self.recovery_delivered = UNKNOWN;
                self.repair = if sign == Sign::Loss { Repair::Recovery } else { Repair::Timeout };
            }
        }
        Cut { share: 1.0, least: 1.0, left: Some(window.ssthresh()) }
    }

    /// HandleRestartFromIdle.
    fn resumed(&mut self, pause: Pause, window: &mut Window, _profile: &Profile) {
        if !pause.app_limited {
            return;
        }
        self.idle_restart = true;
        self.extra_acked_interval_start = pause.now;
        if self.state.is_probe_bw() {
            self.set_pacing_rate(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(pause.now, window);
        }
    }

    /// HandleSpuriousLossDetection.
    fn undone(&mut self, delivered: u64, window: &mut Window) -> bool {
        self.delivered = delivered;
        self.handle_spurious_loss_detection(window);
        false
    }

    fn pacing(&self, profile: &Profile) -> Option<Pacing> {
        let bytes = (self.pacing_rate * f64::from(profile.mss)).max(1.0) as u64; // per second
        let rate = Rate::bps(bytes.saturating_mul(8));
        let burst = profile.pacing_burst.min(self.send_quantum(profile) as u32);
        Some(Pacing { rate, burst, as_linux: false })
    }

    fn model(&self) -> Option<PathModel> {
        Some(PathModel {
            state: self.state.name(),
            pacing_gain: self.state.pacing_gain(),
            cwnd_gain: self.state.cwnd_gain(),
            max_bw: self.max_bw,
            bw_shortterm: self.bw_shortterm,
            min_rtt: self.min_rtt,
            extra_acked: self.extra_acked.get(),
            inflight_longterm: self.inflight_longterm,
            inflight_shortterm: self.inflight_shortterm,
            full_bw_reached: self.full_bw_reached,
            full_bw_now: self.full_bw_now,
            full_bw_count: self.full_bw_count,
            round_count: self.round_count,
            idle_restart: self.idle_restart,
        })
    }
}
