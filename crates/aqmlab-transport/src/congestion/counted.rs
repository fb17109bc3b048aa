//! CUBIC in whole segments: its window opens by one segment after a number of acknowledged segments that the
//! cubic function determines (S. Ha, I. Rhee, L. Xu, "CUBIC: A New TCP-Friendly High-Speed TCP Variant", ACM
//! SIGOPS Operating Systems Review 42 (5), 2008, figure 2). The resolution of time and window, and the
//! details that the paper leaves open, are as observed on Linux 6.1.

use aqmlab_units::{Instant, Span};

use super::window::{Ack, AckReport, Control, Cut, Pause, Sign, Window};
use crate::profile::{CubicAhead, Profile};

/// Resolution: number of steps per second (for times), and per unit (for beta).
const STEPS: f64 = 1024.0;
/// Number of steps per unit for C, which is rounded to a multiple of 10/1024.
const STEPS_OF_C: f64 = STEPS / 10.0;
/// Number of acknowledged segments per segment of growth where the function is flat, as a multiple of the
/// window.
const FLAT: u32 = 100;

/// State, in segments.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Counted {
    /// W_last_max; 0 before the first loss.
    w_max: u32,
    /// dMin.
    least_rtt: Option<Span>,
    /// cnt: number of acknowledged segments that opens the window by one.
    count: u32,
    usage: Usage,
    stage: Option<Stage>,
}

/// How much of the congestion window each window of data uses.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Usage {
    /// Segments in flight.
    most: u32,
    /// Whether these segments filled the window.
    full: bool,
    /// SND.NXT at that time.
    end: u64,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Stage {
    /// epoch_start plus the pauses since then, in milliseconds.
    epoch: u64,
    /// Instant up to which `epoch` already includes pauses.
    resumed: u64,
    /// K, in steps.
    k: f64,
    /// origin_point.
    origin: u32,
    /// W_tcp.
    w_est: u32,
    /// ack_cnt: number of acknowledged segments that `w_est` does not reflect yet.
    acked: u32,
    /// Time, in milliseconds, at which `count` was last set, and the window at that time.
    looked: Option<(u64, u32)>,
}

fn in_steps(share: f64, steps: f64) -> f64 {
    libm::round(share * steps) / steps
}

/// Returns the share of a window that remains after a reduction.
fn beta(profile: &Profile) -> f64 {
    in_steps(profile.cubic_beta, STEPS)
}

fn whole_ms(at: Instant) -> u64 {
    at.as_ns() / Span::ms(1).as_ns()
}

fn in_ms(span: Span) -> u64 {
    span.as_ns() / Span::ms(1).as_ns()
}

impl Stage {
    fn begin(now: Instant, cwnd: u32, w_max: u32, profile: &Profile) -> Self {
        let origin = w_max.max(cwnd);
        let k = libm::cbrt(f64::from(origin - cwnd) / in_steps(profile.cubic_c, STEPS_OF_C));
        let k = libm::floor(k * STEPS);
        let epoch = whole_ms(now);
        Stage { epoch, resumed: epoch, k, origin, w_est: cwnd, acked: 0, looked: None }
    }

    /// Returns the number of acknowledged segments after which the window must open by one segment
    /// to reach, within a round trip, the value that the cubic function has at the end of this
    /// round trip.
    fn by_function(&self, now: Instant, cwnd: u32, ahead: Span, profile: &Profile) -> u32 {
        let ms = whole_ms(now) - self.epoch + ahead.as_ns().div_ceil(Span::ms(1).as_ns());
        let from_k = libm::floor(ms as f64 * STEPS / 1e3) - self.k;
        let seconds = from_k.abs() / STEPS;
        let c = in_steps(profile.cubic_c, STEPS_OF_C);
        let away = libm::floor(c * (seconds * seconds * seconds)).copysign(from_k);
        let target = f64::from(self.origin) + away;
        if target > f64::from(cwnd) {
            (f64::from(cwnd) / (target - f64::from(cwnd))) as u32
        } else {
            FLAT * cwnd
        }
    }

    /// Returns the largest number of acknowledged segments that may be required per segment of
    /// growth if the window is to keep up with Reno's window.
    fn by_reno(&mut self, cwnd: u32, profile: &Profile) -> u32 {
        // 1 / alpha, in eighths
        let eighths = libm::floor(8.0 * (1.0 + beta(profile)) / (3.0 * (1.0 - beta(profile)))) as u32;
        let each = (cwnd * eighths / 8).max(1);
        let more = self.acked.saturating_sub(1) / each;
        self.w_est += more;
        self.acked -= more * each;
        if self.w_est > cwnd { cwnd / (self.w_est - cwnd) } else { u32::MAX }
    }
}

impl Usage {
    /// Records how many segments were in flight before an acknowledgment.
    fn on_report(&mut self, window: &Window, report: &AckReport, profile: &Profile) {
        let before = report.una - u64::from(report.bytes);
        let flight = (report.sent - before).div_ceil(u64::from(profile.mss)) as u32;
        let full = flight + profile.held_back(window.cwnd()) >= window.cwnd() as u32;
        if full || before >= self.end || !self.full && flight > self.most {
            *self = Usage { most: flight, full, end: report.sent };
        }
    }
}

impl Counted {
    /// cubic_update().
    fn look(&mut self, window: &Window, acked: u32, ack: &Ack, profile: &Profile) {
        let cwnd = window.cwnd() as u32;
        let ms = whole_ms(ack.now);
        let least = self.least_rtt.filter(|_| profile.cubic_ahead == CubicAhead::MinRtt);
        let ahead = least.or(ack.srtt).unwrap_or(Span::ZERO);
        let w_max = self.w_max;
        let stage = self.stage.get_or_insert_with(|| Stage::begin(ack.now, cwnd, w_max, profile));
        stage.acked += acked;
        if stage.looked.is_some_and(|(at, before)| before == cwnd && ms - at <= in_ms(profile.cubic_interval))
        {
            return;
        }
        if stage.looked.is_none_or(|(at, _)| at != ms) {
            stage.looked = Some((ms, cwnd));
            self.count = stage.by_function(ack.now, cwnd, ahead, profile);
            if self.w_max == 0 {
                self.count = self.count.min(profile.cubic_first_count);
            }
        }
        if profile.cubic_reno_friendly {
            self.count = self.count.min(stage.by_reno(cwnd, profile));
        }
        self.count = self.count.max(profile.cubic_least_count);
    }
}

impl Control for Counted {
    fn on_report(&mut self, window: &mut Window, report: &AckReport, profile: &Profile) {
        self.usage.on_report(window, report, profile);
        let settled = |stage: Stage| stage.epoch + in_ms(profile.cubic_settling);
        let settling = self.stage.is_some_and(|stage| whole_ms(report.now) < settled(stage));
        if let Some(rtt) = report.rtt.filter(|_| !settling) {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// Opens the window in slow start, unless it is already at least twice the data in flight. Acknowledged
    /// segments that would open the window beyond `ssthresh` count towards its growth in congestion avoidance
    /// instead.
    fn slow_start(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        if !self.usage.full && window.cwnd() as u32 >= 2 * self.usage.most {
            return;
        }
        let acked = ack.whole_segments(profile);
        let room = window.ssthresh() - window.cwnd();
        let opened = f64::from(acked).min(room);
        window.open(opened);
        let left = acked - opened as u32;
        if left > 0 {
            self.look(window, left, ack, profile);
            window.count_segments(left, self.count);
        }
    }

    fn avoid(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        if !self.usage.full {
            return;
        }
        let acked = ack.whole_segments(profile);
        self.look(window, acked, ack, profile);
        window.count_segments(acked, self.count);
    }

    fn congestion(&mut self, sign: Sign, window: &Window, profile: &Profile) -> Cut {
        let cwnd = window.cwnd();
        self.stage = None;
        let lost_ground = profile.cubic_fast_convergence && cwnd < f64::from(self.w_max);
        let kept = if lost_ground { (1.0 + beta(profile)) / 2.0 } else { 1.0 };
        self.w_max = (cwnd * kept) as u32;
        if matches!(sign, Sign::Timeout { .. }) {
            *self = Counted { usage: self.usage, ..Counted::default() };
        }
        let least = if sign == Sign::Loss { 2.0 } else { 1.0 };
        Cut { share: beta(profile), least, left: None }
    }

    /// The pause does not count as elapsed time.
    fn resumed(&mut self, pause: Pause, _window: &mut Window, _profile: &Profile) {
        if let Some(stage) = &mut self.stage {
            let now = whole_ms(pause.now);
            stage.epoch += now - whole_ms(pause.left).max(stage.resumed);
            stage.resumed = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With W_max at 100 and the window reduced to 70, K is (30 / 0.4004)^(1/3) = 4.216 s, and 60 ms into the
    /// stage, the function is 28 segments below 100. Reno's window grows by one after 70 * 15 / 8 = 131
    /// acknowledged segments.
    #[test]
    fn counts_are_those_computed_by_hand() {
        let profile = Profile::named("linux").expect("built in");
        let mut stage = Stage::begin(Instant::ZERO, 70, 100, &profile);
        assert_eq!(stage.k, 4316.0);
        assert_eq!(stage.by_function(Instant::ZERO, 70, Span::ms(60), &profile), 70 / 2);
        assert_eq!(stage.by_function(Instant::ZERO + Span::s(4), 99, Span::ms(216), &profile), 99);
        assert_eq!(
            stage.by_function(Instant::ZERO, 73, Span::ms(60), &profile),
            7300,
            "it is above the function"
        );
        for (acked, count) in [(131, u32::MAX), (132, 70), (263, 35)] {
            (stage.w_est, stage.acked) = (70, acked);
            assert_eq!(stage.by_reno(70, &profile), count, "{acked} acknowledged");
        }
    }
}
