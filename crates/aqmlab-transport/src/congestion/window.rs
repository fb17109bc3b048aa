//! The congestion window and its bounds: how it changes, and the rules that all controls share (RFC
//! 5681, RFC 6582, RFC 3168).

use aqmlab_units::{Instant, Rate, Span};

use super::model::PathModel;
use crate::profile::{
    EcnAtOne, Increase, InitialSsthresh, Profile, Recovery, RecoveryExit, RecoveryWindow, ReductionBase,
    TimeoutSsthresh,
};

/// "Arbitrarily high" (RFC 5681, 3.1).
const UNLIMITED: f64 = f64::INFINITY;

/// Tolerance within which a product such as 0.7 × 90 counts as a whole number.
const ROUNDING: f64 = 1e-9;

/// The congestion window, in segments of the profile's size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Window {
    cwnd: f64,
    ssthresh: f64,
    /// Acknowledged bytes that have not yet opened the window (RFC 3465, 2.1).
    credit: u32,
}

/// An acknowledgment of new data outside fast recovery, without an ECN echo.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Ack {
    pub now: Instant,
    /// Number of newly acknowledged bytes of the stream.
    pub bytes: u32,
    /// Bytes in flight before this acknowledgment.
    pub flight: u32,
    /// The smoothed round-trip time, once there is one.
    pub srtt: Option<Span>,
    /// Whether a timeout caused the latest reduction.
    pub after_timeout: bool,
}

impl Ack {
    /// Returns the number of segments acknowledged, including any fraction.
    #[inline]
    pub(crate) fn segments(&self, profile: &Profile) -> f64 {
        f64::from(self.bytes) / f64::from(profile.mss)
    }

    /// Returns the number of segments acknowledged; a partial segment counts as one.
    pub(crate) fn whole_segments(&self, profile: &Profile) -> u32 {
        self.bytes.div_ceil(profile.mss)
    }

    /// Returns whether the window had room for another segment, which means that sending was
    /// limited not by this window but by the application or the other side's window.
    pub(crate) fn leaves_room(&self, window: &Window, profile: &Profile) -> bool {
        let usable = u64::from(window.cwnd() as u32) * u64::from(profile.mss);
        let held_back = u64::from(1 + profile.held_back(window.cwnd())) * u64::from(profile.mss);
        u64::from(self.flight) + held_back <= usable
    }
}

/// Contents of any acknowledgment, whether or not it may open the window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct AckReport {
    pub now: Instant,
    /// Bytes newly acknowledged by the cumulative acknowledgment.
    pub bytes: u32,
    /// Number of segments acknowledged or SACKed for the first time, if each segment is tracked.
    pub segments: u32,
    /// Whether it carries an ECN echo.
    pub marked: bool,
    /// Number of segments that it newly reports as marked. With the classic echo, these are all segments that an
    /// acknowledgment with the echo newly acknowledges.
    pub ce: u32,
    /// SND.UNA after the acknowledgment, and SND.NXT.
    pub una: u64,
    pub sent: u64,
    /// The round-trip time measured on the latest segment that this acknowledgment covers, and the smoothed one.
    pub rtt: Option<Span>,
    pub srtt: Option<Span>,
}

/// What the sender is repairing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Repair {
    Nothing,
    /// Losses that acknowledgments have reported: fast recovery.
    Recovery,
    /// What a timeout has declared lost.
    Timeout,
}

/// What an acknowledgment shows about the delivery of data, after all losses that it reports have been found
/// (draft-cheng-iccrg-delivery-rate-estimation-02; draft-ietf-ccwg-bbr, section 2). Amounts are in segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sample<'l> {
    pub now: Instant,
    /// C.delivered and C.lost.
    pub delivered: u64,
    pub lost: u64,
    /// RS.prior_delivered: C.delivered when the newest segment that this acknowledgment reports left.
    pub prior_delivered: u64,
    /// RS.delivered, and the time that this took (RS.interval); `None` if no rate is measured.
    pub rate: Option<(u64, Span)>,
    /// RS.is_app_limited.
    pub app_limited: bool,
    /// RS.tx_in_flight, which is zero if the acknowledgment reports no segment, and RS.lost.
    pub tx_in_flight: u32,
    pub lost_since: u64,
    /// C.is_cwnd_limited, and C.has_selective_acks.
    pub limited_by_window: bool,
    pub selective: bool,
    /// The segments declared lost, in that order, for a control that [hears of
    /// each](crate::Congestion::follows_draft).
    pub losses: &'l [Lost],
    /// RS.newly_acked.
    pub newly_acked: u32,
    /// RS.newly_lost.
    pub newly_lost: u32,
    /// C.inflight before and after the acknowledgment.
    pub prior_in_flight: u32,
    pub in_flight: u32,
    /// RS.rtt, and the smoothed round-trip time.
    pub rtt: Option<Span>,
    pub srtt: Option<Span>,
    /// Whether the acknowledgment carries an ECN echo.
    pub marked: bool,
    /// How many segments have been reported as marked so far, and by this acknowledgment for the first time
    /// ([`AckReport::ce`]).
    pub delivered_ce: u64,
    pub newly_ce: u32,
    pub repair: Repair,
    /// The earliest time at which pacing permits the next segment to leave.
    pub departs: Instant,
}

/// A segment that has been declared lost, and what was known when it left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lost {
    /// Its offsets. For the first outstanding segment, `from` is only the offset before `end`.
    pub from: u64,
    pub end: u64,
    /// P.tx_in_flight, and C.lost - P.lost; both include this segment.
    pub tx_in_flight: u32,
    pub lost_since: u64,
    /// P.is_app_limited.
    pub app_limited: bool,
    /// C.has_selective_acks.
    pub selective: bool,
}

/// A pause with nothing outstanding, which ends now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pause {
    pub now: Instant,
    /// When the last segment before the pause left.
    pub left: Instant,
    /// Whether the application caused the pause, for a control that [uses rate
    /// samples](crate::Congestion::samples_rates).
    pub app_limited: bool,
}

/// A sign of congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sign {
    /// A fast retransmit that is the first sign of congestion in its window.
    Loss,
    /// An ECN echo that is the first sign of congestion in its window.
    Mark,
    /// An expiry of the retransmission timer.
    Timeout {
        /// Whether this loss has already lowered `ssthresh`, which is then left unchanged.
        held: bool,
    },
}

/// How a control determines the window after a reduction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Cut {
    /// Share of the base of the reduction that remains.
    pub share: f64,
    /// Minimum number of segments that remain.
    pub least: f64,
    /// Number of segments that remain, if the share does not determine it.
    pub left: Option<f64>,
}

/// How fast segments may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pacing {
    /// The rate of payload.
    pub rate: Rate,
    /// Number of segments that leave together.
    pub burst: u32,
    /// Whether the first segments are not paced, and late ones shorten the wait for the next, as in Linux.
    pub as_linux: bool,
}

/// A congestion control algorithm. It decides how the [`Window`] changes; the window's bounds are
/// enforced elsewhere.
pub(crate) trait Control {
    /// Processes an acknowledgment, before the other methods are called for it.
    #[inline]
    fn on_report(&mut self, _window: &mut Window, _report: &AckReport, _profile: &Profile) {}

    /// Processes new data acknowledged while the window is below `ssthresh`.
    #[inline]
    fn slow_start(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        slow_start(window, ack, profile);
        if window.has_left_slow_start(profile) {
            let bytes = (window.cwnd - window.ssthresh) * f64::from(profile.mss);
            window.cwnd = window.ssthresh;
            self.avoid(window, &Ack { bytes: bytes as u32, ..*ack }, profile);
        }
    }

    /// Processes new data acknowledged in congestion avoidance.
    fn avoid(&mut self, window: &mut Window, ack: &Ack, profile: &Profile);

    /// Does the same as [`Control::avoid`] during a stage that has begun, faster. Returns false, and does
    /// nothing, if the control knows no stages, or if this acknowledgment begins one.
    #[inline(always)]
    fn continue_stage(&mut self, _window: &mut Window, _ack: &Ack, _profile: &Profile) -> bool {
        false
    }

    /// Returns how far to reduce the window for a sign of congestion.
    fn congestion(&mut self, sign: Sign, window: &Window, profile: &Profile) -> Cut;

    /// Records that sending restarts after a pause.
    fn resumed(&mut self, _pause: Pause, _window: &mut Window, _profile: &Profile) {}

    /// Records that a reduction has been undone; `delivered` is C.delivered, for a control that uses rate samples.
    /// Returns whether the control's state from before the reduction is to come back.
    fn undone(&mut self, _delivered: u64, _window: &mut Window) -> bool {
        false
    }

    /// Records that the connection is established, for a control that
    /// [uses rate samples](crate::Congestion::samples_rates).
    fn established(&mut self, _now: Instant, _window: &Window, _srtt: Option<Span>, _profile: &Profile) {}

    /// Records whether the other side reports how many segments are marked, for a control that
    /// [answers marks](crate::Congestion::answers_marks).
    fn set_feedback(&mut self, _accurate: bool) {}

    /// Sets the seed of the control's draws.
    fn set_seed(&mut self, _seed: u64) {}

    /// Processes a rate sample, for a control that uses them; such a control alone determines the window, except
    /// after a timeout. Returns whether what is in flight counts as limited by the application.
    fn on_sample(&mut self, _window: &mut Window, _sample: &Sample, _profile: &Profile) -> bool {
        false
    }

    /// Processes losses that the timer has found, for a control that [hears of
    /// each](crate::Congestion::follows_draft).
    fn on_losses(&mut self, _now: Instant, _window: &mut Window, _losses: &[Lost], _profile: &Profile) {}

    /// Returns what the control knows about the path, if it is version 3 of BBR.
    fn model(&self) -> Option<PathModel> {
        None
    }

    /// Returns the rate at which segments may leave, for a control that determines it.
    fn pacing(&self, _profile: &Profile) -> Option<Pacing> {
        None
    }
}

/// Opens the window by one segment per acknowledged segment, up to a limit per acknowledgment.
#[inline]
pub(crate) fn slow_start(window: &mut Window, ack: &Ack, profile: &Profile) {
    let limit = match profile.increase {
        // RFC 5681, equation 2: min(N, SMSS)
        Increase::PerAck => 1,
        Increase::SegmentPerAck => {
            window.open(1.0);
            return;
        }
        // RFC 3465, 2.3: L is 1 in the slow start that follows a timeout
        Increase::ByteCounting if ack.after_timeout => 1,
        Increase::ByteCounting => profile.abc_limit,
    };
    window.open(ack.segments(profile).min(f64::from(limit)));
}

/// Outstanding data at a sign of congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outstanding {
    /// Bytes sent and not acknowledged, as the window counts them.
    pub flight: u32,
    /// Number of segments of this data that have left the network during fast recovery,
    /// according to duplicate ACKs.
    pub inflation: u32,
}

impl Window {
    pub(crate) fn new(profile: &Profile) -> Self {
        let ssthresh = match profile.initial_ssthresh {
            InitialSsthresh::Unlimited => UNLIMITED,
            InitialSsthresh::MaxWindow => f64::from(profile.max_window),
        };
        // The window is one segment, for the SYN, until the handshake sets the initial window.
        Window { cwnd: 1.0, ssthresh, credit: 0 }
    }

    /// Returns the congestion window, without inflation.
    #[inline]
    pub(crate) fn cwnd(&self) -> f64 {
        self.cwnd
    }

    #[inline]
    pub(crate) fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// Returns the number of whole segments that may be in flight, including `inflation` segments that have
    /// left the network.
    #[inline]
    pub(crate) fn usable(&self, inflation: u32, profile: &Profile) -> u64 {
        // The cast may truncate, but values above `max_window`, which is 32 bits wide, do not
        // matter.
        (u64::from(self.cwnd as u32) + u64::from(inflation)).min(u64::from(profile.max_window))
    }

    /// Does the same as [`Window::usable`] for a sender that lists its segments. If the control may reduce the window
    /// below two segments, the fraction counts as a segment, and pacing keeps to the rate of the window.
    #[inline]
    pub(crate) fn usable_if_paced(&self, profile: &Profile) -> u64 {
        if self.cwnd < 2.0 && profile.answers_marks() {
            return libm::ceil(self.cwnd).max(1.0) as u64;
        }
        self.usable(0, profile)
    }

    /// Sets the window after the handshake. RFC 5681, 3.1: after a lost SYN, the initial window is
    /// one segment.
    pub(crate) fn established(&mut self, syn_lost: bool, profile: &Profile) {
        self.cwnd = if syn_lost { 1.0 } else { profile.initial_window };
    }

    /// Returns whether the window is in slow start.
    #[inline]
    pub(crate) fn is_below_ssthresh(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Processes an acknowledgment.
    pub(crate) fn on_report(&mut self, mut algorithm: impl Control, report: &AckReport, profile: &Profile) {
        algorithm.on_report(self, report, profile);
    }

    /// Processes new data acknowledged outside fast recovery.
    #[inline(always)]
    pub(crate) fn acked(&mut self, mut algorithm: impl Control, ack: &Ack, profile: &Profile) {
        if self.is_below_ssthresh() {
            algorithm.slow_start(self, ack, profile);
        } else {
            algorithm.avoid(self, ack, profile);
        }
    }

    /// Returns whether the window exceeds `ssthresh` after slow start, and what exceeds it counts for congestion
    /// avoidance instead.
    #[inline]
    fn has_left_slow_start(&self, profile: &Profile) -> bool {
        profile.split_at_ssthresh && self.cwnd > self.ssthresh
    }

    /// Opens the window by `segments` segments.
    #[inline]
    pub(crate) fn open(&mut self, segments: f64) {
        self.cwnd += segments;
    }

    /// RFC 3465, 2.1: opens the window by one segment for each window of acknowledged bytes.
    #[inline(never)] // keeps the code path of an ordinary ACK short
    pub(crate) fn count_bytes(&mut self, acked: u32, profile: &Profile) {
        let credit = f64::from(self.credit) + f64::from(acked);
        let window = self.cwnd * f64::from(profile.mss);
        if credit >= window {
            let segments = if profile.open_by_windows { libm::floor(credit / window) } else { 1.0 };
            self.cwnd += segments;
            self.credit = (credit - segments * window).min(window) as u32;
        } else {
            self.credit = credit as u32;
        }
    }

    /// Reduces the window and `ssthresh` to `segments`, which may be a fraction.
    pub(crate) fn reduce(&mut self, segments: f64) {
        (self.cwnd, self.ssthresh, self.credit) = (segments, segments, 0);
    }

    /// Ends slow start.
    pub(crate) fn end_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    /// Keeps only this share of the window's growth since the window was `before`.
    pub(crate) fn slow_growth(&mut self, before: f64, share: f64) {
        self.cwnd = before + (self.cwnd - before) * share;
    }

    /// Opens the window by one segment for every `count` acknowledged segments.
    pub(crate) fn count_segments(&mut self, acked: u32, count: u32) {
        if self.credit >= count {
            self.credit = 0; // these segments were counted while `count` was larger
            self.cwnd += 1.0;
        }
        let credit = self.credit + acked;
        self.cwnd += f64::from(credit / count);
        self.credit = credit % count;
    }

    /// Returns the base of a reduction in segments: the amount that RFC 5681, equation 4, or ns-2
    /// halves.
    ///
    /// DEVIATES from RFC 5681, section 2, by default: equation 4 is about "outstanding data in the
    /// network". Segments that have left the network have only inflated the window, so they do not
    /// belong to the base. The RFC's definition of FlightSize counts them (`reduction_base =
    /// "outstanding"`).
    fn base(&self, outstanding: Outstanding, profile: &Profile) -> f64 {
        let segments = f64::from(outstanding.flight) / f64::from(profile.mss);
        let inflation = f64::from(outstanding.inflation);
        match profile.reduction_base {
            ReductionBase::Flight => (segments - inflation).max(0.0),
            ReductionBase::Outstanding => segments,
            ReductionBase::Window => (self.cwnd + inflation).min(f64::from(profile.max_window)),
            ReductionBase::CongestionWindow => self.cwnd,
        }
    }

    /// Returns the number of segments that remain after a reduction.
    fn kept(&self, cut: Cut, outstanding: Outstanding, profile: &Profile) -> f64 {
        cut.left.unwrap_or_else(|| self.base(outstanding, profile) * cut.share)
    }

    fn set_ssthresh(&mut self, kept: f64, profile: &Profile) {
        let kept = match profile.reduction_base {
            ReductionBase::Window => libm::floor(kept),
            _ if profile.whole_segments => libm::floor(kept + ROUNDING),
            _ => kept,
        };
        self.ssthresh = kept.max(2.0); // RFC 5681, equation 4
    }

    /// Reduces the window for a fast retransmit that is the first sign of congestion in its window
    /// (RFC 5681, 3.2, steps 2 and 3).
    pub(crate) fn lost(&mut self, mut algorithm: impl Control, outstanding: Outstanding, profile: &Profile) {
        let cut = algorithm.congestion(Sign::Loss, self, profile);
        let kept = self.kept(cut, outstanding, profile);
        self.set_ssthresh(kept, profile);
        self.cwnd = match profile.reduction_base {
            ReductionBase::Flight | ReductionBase::Outstanding | ReductionBase::CongestionWindow => {
                self.ssthresh
            }
            ReductionBase::Window if profile.recovery_window == RecoveryWindow::Ssthresh => self.ssthresh,
            ReductionBase::Window => kept.max(cut.least),
        };
        self.credit = 0;
    }

    /// Reduces the window for an ECN echo (RFC 3168, 6.1.2): as for a loss, but the window may fall to one
    /// segment or, under ns-2's rule, even below one.
    pub(crate) fn marked(
        &mut self,
        mut algorithm: impl Control,
        outstanding: Outstanding,
        profile: &Profile,
    ) {
        let cut = algorithm.congestion(Sign::Mark, self, profile);
        let kept = self.kept(cut, outstanding, profile);
        self.set_ssthresh(kept, profile);
        self.cwnd = match profile.ecn_at_one {
            EcnAtOne::WaitForRto | EcnAtOne::Keep => kept.max(cut.least).min(self.cwnd),
            EcnAtOne::Ssthresh => self.ssthresh,
            EcnAtOne::Ns2 => kept,
        };
        self.credit = 0;
    }

    /// Lowers only `ssthresh`, for a loss or mark after which the window is reduced gradually.
    pub(crate) fn lower(
        &mut self,
        mut algorithm: impl Control,
        sign: Sign,
        outstanding: Outstanding,
        profile: &Profile,
    ) {
        let cut = algorithm.congestion(sign, self, profile);
        self.set_ssthresh(self.kept(cut, outstanding, profile), profile);
        self.credit = 0;
    }

    /// Sets the window to a number of segments, after a gradual reduction, after a timeout with segments in
    /// flight, or after a pause.
    pub(crate) fn set(&mut self, segments: impl Into<f64>) {
        self.cwnd = segments.into();
    }

    /// Sets the window to a number of segments that need not be whole.
    pub(crate) fn set_exactly(&mut self, segments: f64) {
        self.cwnd = segments;
    }

    /// Reduces the window for persistent congestion, after the reduction for the loss: to two segments (RFC 9002, section
    /// 7.6.2).
    pub(crate) fn collapse(&mut self, mut algorithm: impl Control, profile: &Profile) {
        algorithm.congestion(Sign::Timeout { held: true }, self, profile);
        self.cwnd = 2.0;
        self.credit = 0;
    }

    /// Ends a gradual reduction, or the inflation of fast recovery.
    pub(crate) fn settle(&mut self) {
        self.cwnd = self.ssthresh;
    }

    /// Undoes an unnecessary reduction: raises the window and `ssthresh` to their earlier values,
    /// unless they are higher by now.
    pub(crate) fn restore(&mut self, cwnd: f64, ssthresh: f64) {
        self.cwnd = self.cwnd.max(cwnd);
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    /// Returns whether a mark has reduced the window to less than one segment.
    #[inline]
    pub(crate) fn is_shut(&self) -> bool {
        self.cwnd < 1.0
    }

    /// Reduces the window for a retransmission timeout. `again` means that the segment has timed out
    /// before, and `reduced` that a mark has already reduced the congestion window for this window of
    /// data.
    pub(crate) fn timed_out(
        &mut self,
        mut algorithm: impl Control,
        mut outstanding: Outstanding,
        again: bool,
        reduced: bool,
        profile: &Profile,
    ) {
        if profile.reduction_base == ReductionBase::Window
            && profile.timeout_ssthresh != TimeoutSsthresh::Inflated
        {
            outstanding.inflation = 0; // ns-2 first forgets the inflation
        }
        let held = reduced || (again && profile.timeout_ssthresh == TimeoutSsthresh::Rfc5681);
        let cut = algorithm.congestion(Sign::Timeout { held }, self, profile);
        if !held {
            self.set_ssthresh(self.kept(cut, outstanding, profile), profile);
        }
        self.cwnd = 1.0; // the loss window
        self.credit = 0;
    }

    /// Reduces the window for a timeout of the SYN, which ns-2 treats like a timeout of data.
    pub(crate) fn syn_timed_out(&mut self, algorithm: impl Control, profile: &Profile) {
        if profile.timeout_ssthresh != TimeoutSsthresh::Rfc5681 {
            let nothing = Outstanding { flight: 0, inflation: 0 };
            self.timed_out(algorithm, nothing, false, false, profile);
        }
    }

    /// Changes the window, after a partial ACK, by this number of segments (negative if the window
    /// shrinks).
    pub(crate) fn deflate(&mut self, segments: f64) {
        self.cwnd = (self.cwnd + segments).max(1.0);
    }

    /// Ends fast recovery; `flight` bytes are outstanding after the ACK that ends it. Returns true
    /// if that ACK also opens the window as an ordinary ACK does.
    pub(crate) fn recovered(&mut self, flight: u32, scheme: Recovery, profile: &Profile) -> bool {
        match (scheme, profile.recovery_exit) {
            // RFC 6675, section 5: the window has had its final value since recovery began.
            (Recovery::Sack, _) => false,
            (_, RecoveryExit::Ns2) => true,
            (Recovery::NewReno, RecoveryExit::Flight) => {
                let flight = f64::from(flight) / f64::from(profile.mss);
                self.cwnd = self.ssthresh.min(flight.max(1.0) + 1.0);
                false
            }
            // RFC 5681, 3.2, step 6
            (Recovery::Tahoe | Recovery::Reno, _) | (Recovery::NewReno, RecoveryExit::Ssthresh) => {
                self.cwnd = self.ssthresh;
                false
            }
        }
    }

    /// Reduces the window after a pause that was as long as this number of timeouts: halves it once
    /// per timeout (RFC 2861, 3.2), but not below `restart` segments. As in Linux, acknowledged
    /// bytes that have not yet opened the window are kept.
    pub(crate) fn validate(&mut self, timeouts: u64, restart: f64, profile: &Profile) {
        let kept = if profile.whole_segments {
            libm::floor(self.cwnd / 2.0) + libm::floor(self.cwnd / 4.0)
        } else {
            0.75 * self.cwnd
        };
        self.ssthresh = self.ssthresh.max(kept);
        let mut left = timeouts;
        while left > 0 && self.cwnd > restart {
            self.cwnd = (self.cwnd / 2.0).max(restart);
            left -= 1;
        }
    }

    /// Limits the window after a pause: to at most `restart` segments and at least one.
    pub(crate) fn restart(&mut self, restart: f64) {
        self.cwnd = self.cwnd.min(restart).max(1.0);
        self.credit = 0;
    }

    /// Sets the window to `segments` after a pause, also if it was smaller.
    pub(crate) fn begin_again(&mut self, segments: f64) {
        self.cwnd = segments;
        self.credit = 0;
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_params::{Origin, Value};

    use super::super::Algorithm;
    use super::*;

    /// 40 segments are in flight; 30 of them arrive after a hole and release 30 new ones; then the
    /// timer fires.
    #[test]
    fn a_timeout_in_fast_recovery_halves_what_is_in_the_network() {
        for (base, expected) in [("flight", 20.0), ("outstanding", 35.0), ("window", 10.0)] {
            let mut settings = crate::profile_settings("rfc").expect("built in");
            settings.set("reduction_base", Value::Choice(base), Origin::Given);
            let profile = Profile::resolve(&mut settings).expect("consistent");
            let mss = profile.mss;
            let mut window = Window::new(&profile);
            window.cwnd = 40.0;
            let reno = || Algorithm::of(&profile, || unreachable!("it needs no memory"));
            window.lost(reno(), Outstanding { flight: 40 * mss, inflation: 0 }, &profile);
            assert_eq!((window.ssthresh, window.cwnd), (20.0, 20.0));
            let outstanding = Outstanding { flight: 70 * mss, inflation: 3 + 27 };
            window.timed_out(reno(), outstanding, false, false, &profile);
            assert_eq!((window.ssthresh, window.cwnd), (expected, 1.0), "{base}");
        }
    }

    /// Measured on Linux 6.1 after timeouts, with a window of one segment: two segments that arrive open it to
    /// `ssthresh`, two; with a third, congestion avoidance opens it to three.
    #[test]
    fn segments_beyond_ssthresh_open_the_window_as_in_congestion_avoidance() {
        let mut settings = crate::profile_settings("linux").expect("built in");
        let profile = Profile::resolve(&mut settings).expect("consistent");
        for (segments, expected) in [(1, 2.0), (2, 2.0), (3, 3.0)] {
            let mut window = Window { cwnd: 1.0, ssthresh: 2.0, credit: 0 };
            let bytes = segments * profile.mss;
            let ack = Ack { now: Instant::ZERO, bytes, flight: bytes, srtt: None, after_timeout: false };
            window.acked(super::super::Reno, &ack, &profile);
            assert_eq!(window.cwnd, expected, "{segments}");
        }
    }
}
