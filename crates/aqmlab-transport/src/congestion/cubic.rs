//! CUBIC (RFC 9438).

use aqmlab_units::{Instant, Span};

use super::window::{self, Ack, Control, Cut, Pause, Sign, Window};
use crate::profile::{Increase, Profile};

pub(super) const VERSION: u32 = 2;

/// State of CUBIC; amounts are in segments, and times in seconds.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Cubic {
    /// W_max; 0 while it is undefined: before the first reduction (4.10) and after a timeout (4.8).
    w_max: f64,
    /// cwnd_prior: the window when `ssthresh` was last set; 0 before that.
    prior: f64,
    /// The congestion avoidance stage, starting with its first acknowledgment.
    stage: Option<Stage>,
}

/// A stage of congestion avoidance, which lasts from a reduction or the end of slow start to the
/// next reduction.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Stage {
    /// t_epoch, shifted by the time that must not count as elapsed.
    epoch: Instant,
    /// K: time after which the window is back at `w_max`.
    k: f64,
    /// W_max in this stage.
    w_max: f64,
    /// W_est.
    w_est: f64,
    /// The latest acknowledgment.
    latest: Instant,
}

impl Stage {
    /// Equation 2. If W_max is undefined or not above the window, the stage begins at the plateau
    /// (4.8, 4.10).
    #[inline(always)]
    fn begin(now: Instant, cwnd: f64, w_max: f64, profile: &Profile) -> Self {
        let (w_max, k) =
            if w_max > cwnd { (w_max, libm::cbrt((w_max - cwnd) / profile.cubic_c)) } else { (cwnd, 0.0) };
        Stage { epoch: now, k, w_max, w_est: cwnd, latest: now }
    }

    /// Sections 4.2 to 4.5; `prior` is cwnd_prior.
    #[inline(always)]
    fn acked(&mut self, prior: f64, window: &mut Window, ack: &Ack, profile: &Profile) {
        if ack.leaves_room(window, profile) {
            self.skip(ack.now);
            return;
        }
        let cwnd = window.cwnd();
        self.latest = ack.now;
        let t = seconds(ack.now - self.epoch);
        let segments = ack.segments(profile);
        let alpha = if self.w_est >= prior { 1.0 } else { profile.cubic_alpha };
        self.w_est += alpha * segments / cwnd; // equation 4
        if profile.cubic_reno_friendly && self.w_cubic(t, profile) < self.w_est {
            // DEVIATES from 4.3, which sets cwnd to W_est: because cwnd follows W_cubic one round trip ahead,
            // it may already be above W_est, and is then left as it is.
            window.open((self.w_est - cwnd).max(0.0));
            return;
        }
        let rtt = ack.srtt.map_or(0.0, seconds);
        let target = self.w_cubic(t + rtt, profile).max(cwnd).min(1.5 * cwnd);
        let acks = match profile.increase {
            Increase::PerAck | Increase::SegmentPerAck => 1.0, // 4.4, 4.5: "for each received new ACK"
            Increase::ByteCounting => segments.min(cwnd),
        };
        window.open(acks * (target - cwnd) / cwnd);
    }

    /// Equation 1.
    fn w_cubic(&self, t: f64, profile: &Profile) -> f64 {
        let from_k = t - self.k;
        profile.cubic_c * (from_k * from_k * from_k) + self.w_max
    }

    /// Prevents the time since the latest acknowledgment from counting as elapsed, because the
    /// application limited sending in that time (4.2, 5.8).
    fn skip(&mut self, now: Instant) {
        self.epoch += now - self.latest;
        self.latest = now;
    }
}

/// Converts a time within a run to seconds. Such times are far below 2^63 ns, so they fit in a
/// signed number, which is converted in one instruction.
fn seconds(span: Span) -> f64 {
    span.as_ns() as i64 as f64 / Span::s(1).as_ns() as f64
}

impl Control for Cubic {
    /// Slow start of RFC 5681, which 4.10 allows; a window that is not fully used does not grow
    /// (5.8).
    fn slow_start(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        self.stage = None;
        if !ack.leaves_room(window, profile) {
            window::slow_start(window, ack, profile);
        }
    }

    fn avoid(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        let cwnd = window.cwnd();
        let w_max = self.w_max;
        let stage = self.stage.get_or_insert_with(|| Stage::begin(ack.now, cwnd, w_max, profile));
        if self.prior == 0.0 {
            self.prior = cwnd; // 4.10: slow start ended without a loss
        }
        stage.acked(self.prior, window, ack, profile);
    }

    #[inline(always)]
    fn continue_stage(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) -> bool {
        let Some(stage) = &mut self.stage else { return false };
        stage.acked(self.prior, window, ack, profile);
        true
    }

    fn resumed(&mut self, pause: Pause, _window: &mut Window, _profile: &Profile) {
        if let Some(stage) = &mut self.stage {
            stage.skip(pause.now);
        }
    }

    /// RFC 9438, 4.9.
    fn undone(&mut self, _delivered: u64, _window: &mut Window) -> bool {
        true
    }

    /// Sections 4.6 to 4.8.
    fn congestion(&mut self, sign: Sign, window: &Window, profile: &Profile) -> Cut {
        let cwnd = window.cwnd();
        self.stage = None;
        if sign != (Sign::Timeout { held: true }) {
            self.prior = cwnd;
        }
        self.w_max = match sign {
            Sign::Timeout { .. } => 0.0,
            _ if profile.cubic_fast_convergence && cwnd < self.w_max => {
                cwnd * (1.0 + profile.cubic_beta) / 2.0
            }
            _ => cwnd,
        };
        let least = if sign == Sign::Loss { 2.0 } else { 1.0 };
        Cut { share: profile.cubic_beta, least, left: None }
    }
}
