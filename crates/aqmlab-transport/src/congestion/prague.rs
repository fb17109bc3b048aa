//! Prague (draft-briscoe-iccrg-prague-congestion-control, sections as in version 04), the scalable control of L4S:
//! additive increase, and at a mark a decrease by half of the share of marks. It differs from DCTCP in what may
//! share a path of the Internet: rates that depend less on round-trip times, an increase that does not pause
//! after a decrease, windows below two segments, and the rules of Reno or CUBIC wherever marks are not those
//! of an L4S queue.

mod classic;

use aqmlab_units::{Instant, Span};

use super::cubic::Cubic;
use super::reno::Reno;
use super::window::{self, Ack, AckReport, Control, Cut, Pause, Sign, Window};
use crate::profile::{PragueClassic, PragueRtt, Profile};
use classic::Classic;

pub(super) const VERSION: u32 = 1;

/// The estimate of congestion, and what is known about the path.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Prague {
    /// alpha, once there has been a mark.
    alpha: Option<f64>,
    /// The period that the next update of alpha covers, and the segments acknowledged in it and marked among
    /// them.
    period: Period,
    acked: u64,
    marked: u64,
    /// The period after a decrease in which no further one occurs: CWR state.
    reduced: Option<Period>,
    /// Number of round trips so far, up to [`Profile::prague_rtt_from`], and the end of the current one.
    rounds: u32,
    round_end: u64,
    /// rtt_virt in units of the smoothed round-trip time: at least 1.
    stretch: f64,
    /// Share of the segments of the latest acknowledgment that are not marked.
    unmarked: f64,
    /// The receiver does not report how many segments are marked.
    coarse: bool,
    classic: Classic,
    /// What determines the window instead, if that is CUBIC.
    cubic: Cubic,
}

/// A virtual round trip: it lasts until data that had not been sent at its beginning is acknowledged, but at
/// least for the virtual round-trip time.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Period {
    began: Instant,
    /// SND.NXT at its beginning.
    end: u64,
}

impl Period {
    fn is_over(&self, report: &AckReport, rtt: Span) -> bool {
        report.una > self.end && report.now >= self.began.saturating_add(rtt)
    }
}

impl Prague {
    pub(super) fn new() -> Self {
        Prague {
            alpha: None,
            period: Period { began: Instant::ZERO, end: 1 },
            acked: 0,
            marked: 0,
            reduced: None,
            rounds: 0,
            round_end: 1,
            stretch: 1.0,
            unmarked: 1.0,
            coarse: false,
            classic: Classic::default(),
            cubic: Cubic::default(),
        }
    }

    /// Returns whether the rules of Reno or CUBIC apply, to marks as well.
    fn is_classic(&self) -> bool {
        self.coarse || self.classic.is_found()
    }

    /// Returns rtt_virt (section 2.4.4): in the first rounds, so that a new flow gets its share sooner, and with
    /// the rules of Reno or CUBIC, this is the smoothed round-trip time itself.
    fn virtual_rtt(&self, srtt: Span, profile: &Profile) -> Span {
        if self.rounds < profile.prague_rtt_from || self.is_classic() {
            return srtt;
        }
        match profile.prague_rtt_rule {
            PragueRtt::Max => srtt.max(profile.prague_rtt),
            PragueRtt::Sum => srtt + profile.prague_rtt,
        }
    }

    /// Section 2.3.2: updates alpha once per virtual round trip. It is 1 at the first mark.
    fn update_alpha(&mut self, report: &AckReport, rtt: Span, profile: &Profile) {
        if self.alpha.is_none() {
            if report.ce == 0 {
                return;
            }
            self.alpha = Some(1.0);
            self.period = Period { began: report.now, end: report.sent };
            return;
        }
        self.acked += u64::from(report.segments);
        self.marked += u64::from(report.ce);
        if !self.period.is_over(report, rtt) {
            return;
        }
        let share = self.marked as f64 / self.acked.max(1) as f64;
        self.alpha = self.alpha.map(|alpha| alpha + profile.prague_gain * (share - alpha));
        self.classic.end_period(self.marked > 0, profile);
        self.period = Period { began: report.now, end: report.sent };
        (self.acked, self.marked) = (0, 0);
    }

    /// Section 2.4.2: decreases the window for marks, once per virtual round trip.
    fn decrease(&mut self, window: &mut Window, report: &AckReport, rtt: Span, profile: &Profile) {
        if report.ce == 0 || self.reduced.is_some_and(|reduced| !reduced.is_over(report, rtt)) {
            return;
        }
        let cwnd = window.cwnd();
        let (left, least) = if self.is_classic() {
            let cut = self.classic_cut(Sign::Mark, window, profile);
            (cwnd * cut.share, 2.0)
        } else {
            let alpha = self.alpha.unwrap_or(1.0);
            (cwnd * (1.0 - alpha / 2.0), profile.prague_least_window)
        };
        window.reduce(left.max(least).min(cwnd));
        self.reduced = Some(Period { began: report.now, end: report.sent });
    }

    /// Returns the reduction of the control that applies to losses.
    fn classic_cut(&mut self, sign: Sign, window: &Window, profile: &Profile) -> Cut {
        match profile.prague_classic {
            PragueClassic::Reno => Reno.congestion(sign, window, profile),
            PragueClassic::Cubic => self.cubic.congestion(sign, window, profile),
        }
    }
}

/// Returns whether the application limits the flow: less than half of the window was in flight (RFC 7661, section
/// 4.3). Pacing leaves more of the window unused than one segment, so that a fuller window cannot be required.
fn is_unused(window: &Window, ack: &Ack, profile: &Profile) -> bool {
    2.0 * f64::from(ack.flight) < window.cwnd() * f64::from(profile.mss)
}

impl Control for Prague {
    fn on_report(&mut self, window: &mut Window, report: &AckReport, profile: &Profile) {
        if report.segments == 0 {
            return;
        }
        if report.una > self.round_end {
            self.rounds = self.rounds.saturating_add(1).min(profile.prague_rtt_from);
            self.round_end = report.sent;
        }
        let srtt = report.srtt.or(report.rtt).unwrap_or(Span::ZERO);
        let rtt = self.virtual_rtt(srtt, profile);
        self.stretch = if srtt.is_zero() { 1.0 } else { rtt.as_ns() as f64 / srtt.as_ns() as f64 };
        if let Some(rtt) = report.rtt.filter(|_| profile.prague_fallback) {
            self.classic.measured(rtt);
        }
        self.update_alpha(report, rtt, profile);
        self.decrease(window, report, rtt, profile);
        self.unmarked = 1.0 - f64::from(report.ce.min(report.segments)) / f64::from(report.segments);
    }

    fn slow_start(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        if !is_unused(window, ack, profile) {
            window::slow_start(window, ack, profile);
        }
    }

    /// Section 2.4.3: unmarked segments open the window, also in CWR state. The window that spans a virtual round
    /// trip opens by one segment in that time, so the actual window, which is smaller by the factor
    /// `stretch`, opens by 1 / stretch^2 per actual round trip (section 2.4.4).
    fn avoid(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        if self.is_classic() && profile.prague_classic == PragueClassic::Cubic {
            if self.unmarked == 1.0 {
                self.cubic.avoid(window, ack, profile);
            }
        } else if !is_unused(window, ack, profile) {
            let increase = self.unmarked / (self.stretch * self.stretch);
            window.open(ack.segments(profile) * increase / window.cwnd());
        }
    }

    /// Section 2.4.1: a loss reduces the window as with Reno or CUBIC, also after a decrease for marks.
    fn congestion(&mut self, sign: Sign, window: &Window, profile: &Profile) -> Cut {
        self.classic_cut(sign, window, profile)
    }

    fn resumed(&mut self, pause: Pause, window: &mut Window, profile: &Profile) {
        self.cubic.resumed(pause, window, profile);
    }

    fn set_feedback(&mut self, accurate: bool) {
        self.coarse = !accurate;
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_params::{Origin, Value};

    use super::*;

    fn profile(given: &[(&'static str, Value)]) -> Profile {
        let mut settings = crate::profile_settings("prague").expect("built in");
        given.iter().for_each(|(name, value)| settings.set(name, value.clone(), Origin::Given));
        Profile::resolve(&mut settings).expect("consistent")
    }

    /// A flow whose virtual round-trip time takes effect at once.
    struct Flow {
        prague: Prague,
        window: Window,
        profile: Profile,
        rtt: Span,
        now: Instant,
        una: u64,
    }

    impl Flow {
        fn new(cwnd: f64, rtt: Span, given: &[(&'static str, Value)]) -> Self {
            let mut given = given.to_vec();
            given.push(("prague_rtt_from", Value::Integer(0)));
            let profile = profile(&given);
            let mut window = Window::new(&profile);
            window.reduce(cwnd);
            Flow { prague: Prague::new(), window, profile, rtt, now: Instant::ZERO + Span::s(1), una: 2 }
        }

        /// Acknowledges `segments` segments after a whole round trip.
        fn round(&mut self, segments: u32, ce: u32) -> f64 {
            self.now += self.rtt;
            self.una += 1000;
            let Flow { prague, window, profile, now, una, .. } = self;
            let (now, una, srtt, bytes) = (*now, *una, Some(self.rtt), segments * profile.mss);
            let (marked, sent) = (ce > 0, una + 999);
            let report = AckReport { now, bytes, segments, marked, ce, una, sent, rtt: None, srtt };
            prague.on_report(window, &report, profile);
            window.cwnd()
        }

        /// Does the same, and lets the acknowledgment open the window.
        fn opening(&mut self, segments: u32, ce: u32) -> f64 {
            let before = self.round(segments, ce);
            let bytes = segments * self.profile.mss;
            let ack = Ack { now: self.now, bytes, flight: bytes, srtt: None, after_timeout: false };
            self.prague.avoid(&mut self.window, &ack, &self.profile);
            self.window.cwnd() - before
        }
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12 * expected.abs().max(1.0), "{found}, not {expected}");
    }

    /// Sections 2.3.2 and 2.4.2: alpha += g (frac - alpha) once per round trip, and (1 - alpha / 2) of the window
    /// remains.
    #[test]
    fn a_mark_takes_half_of_alpha() {
        let mut flow = Flow::new(40.0, Span::ms(50), &[]);
        near(flow.round(40, 0), 40.0);
        near(flow.round(40, 1), 20.0); // alpha is 1 at the first mark
        let mut alpha = 1.0;
        for (ce, expected) in [(2, 0.1), (0, 0.0), (5, 0.25)] {
            let before = flow.window.cwnd();
            alpha += (expected - alpha) / 16.0;
            near(flow.round(20, ce), if ce > 0 { before * (1.0 - alpha / 2.0) } else { before });
            near(flow.prague.alpha.expect("marked"), alpha);
        }
        near(alpha, 0.845_092_773_437_5);
    }

    /// Section 2.4.4: with a round trip of 5 ms, alpha and the window change once in 25 ms.
    #[test]
    fn decreases_are_a_virtual_round_trip_apart() {
        let mut flow = Flow::new(64.0, Span::ms(5), &[]);
        let windows = [(); 7].map(|()| flow.round(64, 64));
        assert_eq!(windows, [32.0, 32.0, 32.0, 32.0, 32.0, 16.0, 16.0]);
        let mut flow = Flow::new(64.0, Span::ms(30), &[]);
        assert_eq!([(); 3].map(|()| flow.round(64, 64)), [32.0, 16.0, 8.0]);
    }

    /// Section 2.4.4: M is 25 / 5, and a round trip opens the window by 1 / M^2. Section 2.4.3: only unmarked
    /// segments open it.
    #[test]
    fn a_round_trip_opens_the_window_by_the_square_of_its_share_of_a_virtual_one() {
        for (rtt, rule, expected) in
            [(5, "max", 0.04), (25, "max", 1.0), (80, "max", 1.0), (5, "sum", 1.0 / 36.0), (25, "sum", 0.25)]
        {
            let rule = ("prague_rtt_rule", Value::Choice(rule));
            let mut flow = Flow::new(10.0, Span::ms(rtt), &[rule]);
            near(flow.opening(10, 0), expected);
        }
        let mut flow = Flow::new(20.0, Span::ms(50), &[]);
        flow.round(10, 1);
        near(flow.window.cwnd(), 10.0);
        flow.prague.reduced = Some(Period { began: flow.now, end: u64::MAX });
        near(flow.opening(10, 4), 0.6); // in CWR state
    }

    /// RFC 9331, section 4.3: the window may be less than a segment.
    #[test]
    fn windows_go_down_to_the_least() {
        for (least, expected) in [(2.0, [2.0, 2.0, 2.0]), (0.3, [1.5, 0.75, 0.375])] {
            let least = ("prague_least_window", Value::Number(least));
            let mut flow = Flow::new(3.0, Span::ms(25), &[least]);
            assert_eq!([(); 3].map(|()| flow.round(2, 2)), expected);
        }
    }

    /// Without accurate feedback, a mark is a loss, and round-trip times are as they are.
    #[test]
    fn without_accurate_feedback_the_rules_are_those_of_reno_or_cubic() {
        for (classic, left) in [("reno", 0.5), ("cubic", 0.7)] {
            let mut flow = Flow::new(40.0, Span::ms(5), &[("prague_classic", Value::Choice(classic))]);
            flow.prague.set_feedback(false);
            near(flow.round(40, 40), 40.0 * left);
            near(flow.round(28, 28), 40.0 * left * left);
            let cut = flow.prague.congestion(Sign::Loss, &flow.window, &flow.profile);
            near(cut.share, left);
        }
        let mut flow = Flow::new(40.0, Span::ms(5), &[]);
        flow.prague.set_feedback(false);
        near(flow.opening(40, 0), 1.0);
    }

    /// RFC 7661, section 4.3: a window of which less than half is in flight does not open.
    #[test]
    fn an_unused_window_does_not_open() {
        let mut flow = Flow::new(40.0, Span::ms(50), &[]);
        near(flow.opening(19, 0), 0.0);
        near(flow.opening(20, 0), 0.5);
    }
}
