//! The retransmission timer: round-trip estimate, timeout, back-off (RFC 6298).

use aqmlab_units::{Instant, Span};

use crate::profile::{Profile, RttArithmetic};
use crate::stamps::{Stamp, since, stamp};
use crate::ticks::fires_at;

/// No deadline is pending.
const NEVER: Instant = Instant::FAR_FUTURE;
/// After this many doublings, the timeout exceeds every bound.
const MAX_DOUBLINGS: u8 = 62;

/// The deviations of the round-trip time, as Linux computes them, in nanoseconds; each is stored
/// multiplied by four.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Deviation {
    smoothed: u64,
    /// The largest deviation in this round trip, at least `min_rto`.
    largest: u64,
    /// The end of the data that had been sent when this round trip began.
    round: u64,
}

impl Deviation {
    /// Creates the state; `rtt` is the first measurement, taken when the data up to `sent` had been
    /// sent.
    pub(crate) fn new(rtt: Option<Span>, sent: u64, profile: &Profile) -> Self {
        let smoothed = 2 * rtt.unwrap_or(Span::ZERO).as_ns();
        Deviation { smoothed, largest: smoothed.max(profile.min_rto.as_ns()), round: sent }
    }

    /// Processes a round-trip time of `r`. Returns the new value of four times RTTVAR; `rttvar4` is
    /// the previous one.
    fn measured(&mut self, r: u64, srtt: u64, rttvar4: u64) -> u64 {
        let (error, before) = (r.abs_diff(srtt), self.smoothed / 4);
        self.smoothed = match error.checked_sub(before) {
            Some(more) if r < srtt => self.smoothed + more / 8,
            _ => self.smoothed + error - before,
        };
        self.largest = self.largest.max(self.smoothed);
        rttvar4.max(self.largest)
    }

    /// Lets RTTVAR decrease, once per round trip.
    fn round_trip(&mut self, una: u64, sent: u64, rttvar4: u64, profile: &Profile) -> u64 {
        if una <= self.round {
            return rttvar4;
        }
        let down = rttvar4.saturating_sub(self.largest) / 4;
        (self.round, self.largest) = (sent, profile.min_rto.as_ns());
        rttvar4 - down
    }
}

/// Estimator and timer. One segment at a time is timed, never a retransmitted one (Karn's algorithm).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RtoTimer {
    /// 8 * SRTT in nanoseconds; 0 before the first sample. With ns-2's arithmetic, it is a whole
    /// number of ticks.
    srtt8: u64,
    /// 4 * RTTVAR in nanoseconds; with ns-2's arithmetic, it is a whole number of ticks.
    rttvar4: u64,
    deadline: Instant,
    /// The time at which the timed segment was sent; [`NEVER`] if none is timed.
    timed_at: Instant,
    /// The acknowledgment that ends the current measurement; its lower 32 bits are enough because
    /// it lies within the window.
    timed: u32,
    /// Number of times that the timeout has been doubled.
    doublings: u8,
    /// The timer has fired, and no new data has been acknowledged since.
    fired: bool,
    /// The SYN timed out and there is no sample yet (RFC 6298, 5.7).
    syn_timed_out: bool,
}

impl RtoTimer {
    pub(crate) const fn new() -> Self {
        RtoTimer {
            srtt8: 0,
            rttvar4: 0,
            deadline: NEVER,
            timed_at: NEVER,
            timed: 0,
            doublings: 0,
            fired: false,
            syn_timed_out: false,
        }
    }

    /// Starts or restarts the timer.
    #[inline]
    pub(crate) fn arm(&mut self, now: Instant, profile: &Profile) {
        self.deadline = now.saturating_add(self.rto(profile));
    }

    /// Returns whether the timer is running.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.deadline != NEVER
    }

    /// Starts the timer because data leaves (RFC 6298, 5.1).
    #[cold]
    pub(crate) fn start(&mut self, now: Instant, profile: &Profile) {
        self.arm(now, profile);
        if profile.by_segments() {
            let span = self.deadline.saturating_since(now);
            self.arm_by_ticks(now, span, profile);
        }
    }

    /// Sets the timer to fire `span` from now, at a tick of the profile's clock.
    #[inline]
    pub(crate) fn arm_by_ticks(&mut self, now: Instant, span: Span, profile: &Profile) {
        self.deadline = fires_at(now, span, profile.timer_tick);
    }

    /// Sets the timer to fire `span` from now, regardless of the estimate; TIME-WAIT, for example, also
    /// uses this timer.
    pub(crate) fn arm_for(&mut self, now: Instant, span: Span) {
        self.deadline = now.saturating_add(span);
    }

    pub(crate) fn stop(&mut self) {
        self.deadline = NEVER;
    }

    /// Returns the time at which the timer fires; [`Instant::FAR_FUTURE`] while it is stopped.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Begins to time the segment that ends at `end`, unless another is being timed.
    #[inline]
    pub(crate) fn time_segment(&mut self, now: Instant, end: u64) {
        if self.timed_at == NEVER {
            self.timed = end as u32;
            self.timed_at = now;
        }
    }

    /// Stops timing because a segment is retransmitted: an acknowledgment of the timed segment
    /// could now refer to either copy.
    pub(crate) fn stop_timing(&mut self) {
        self.timed_at = NEVER;
    }

    /// Notes that everything from `from` up to `to` is retransmitted, possibly including the timed
    /// segment.
    pub(crate) fn retransmitted(&mut self, from: u64, to: u64) {
        if self.covers_timed(to) && !self.covers_timed(from) {
            self.timed_at = NEVER;
        }
    }

    /// Ends the back-off at an acknowledgment of new data that measures nothing.
    pub(crate) fn forget_backoff(&mut self) {
        self.fired = false;
        self.doublings = 0;
    }

    /// Returns whether a segment is being timed and `ack` acknowledges it.
    #[inline]
    fn covers_timed(&self, ack: u64) -> bool {
        self.timed_at != NEVER && (ack as u32).wrapping_sub(self.timed) as i32 >= 0
    }

    /// Notes that new data up to `ack` is acknowledged. Returns true if this includes the timed
    /// segment.
    #[inline]
    pub(crate) fn acked(&mut self, ack: u64) -> bool {
        self.fired = false;
        self.covers_timed(ack)
    }

    /// Takes the sample when the timed segment is acknowledged. `keep_backoff`: see
    /// [`crate::profile::EcnAtOne::Ns2`].
    pub(crate) fn measured(&mut self, now: Instant, keep_backoff: bool, clock: Clock, profile: &Profile) {
        let sent = core::mem::replace(&mut self.timed_at, NEVER);
        if !keep_backoff {
            self.doublings = 0;
        }
        self.sample(sent, now - sent, clock, profile);
    }

    /// Takes the sample of a SYN that was sent several times, measured by time stamps: from the copy that the
    /// acknowledgment echoes, or else from the first copy.
    pub(crate) fn measured_by_stamp(&mut self, now: Instant, echo: Stamp, profile: &Profile) {
        let first = core::mem::replace(&mut self.timed_at, NEVER);
        self.measured_besides(since(echo.unwrap_or(stamp(first)), now), profile);
    }

    /// Takes a sample from an acknowledgment of a segment that was sent `r` ago, regardless of
    /// which segment is being timed.
    #[inline(always)]
    pub(crate) fn measured_besides(&mut self, r: Span, profile: &Profile) {
        self.doublings = 0;
        self.sample(Instant::ZERO, r, Clock::OF_CLASS, profile);
    }

    /// Does the same as `measured_besides`, with Linux's arithmetic. Everything below `una` has
    /// arrived, and everything below `sent` has been sent.
    pub(crate) fn measured_by_linux(
        &mut self,
        r: Span,
        deviation: &mut Deviation,
        (una, sent): (u64, u64),
        profile: &Profile,
    ) {
        self.doublings = 0;
        let r = r.as_ns();
        if self.srtt8 == 0 {
            self.smooth(r, 1);
            *deviation = Deviation::new(Some(Span::ns(r)), sent, profile);
        } else {
            let srtt = self.srtt8 / 8;
            self.srtt8 = (self.srtt8 + r - srtt).max(1);
            self.rttvar4 = deviation.measured(r, srtt, self.rttvar4.max(profile.min_rto.as_ns()));
        }
        self.rttvar4 = deviation.round_trip(una, sent, self.rttvar4, profile);
    }

    /// Handles a partial acknowledgment: a segment whose timing began in an earlier window gives no
    /// valid sample.
    pub(crate) fn partially_acked(&mut self, ack: u64) {
        self.fired = false;
        if self.covers_timed(ack) {
            self.timed_at = NEVER;
            self.doublings = 0;
        }
    }

    /// Updates the estimate with the measurement `r` of a segment sent at `sent`.
    #[inline(always)]
    pub(crate) fn sample(&mut self, sent: Instant, r: Span, clock: Clock, profile: &Profile) {
        match profile.rtt_arithmetic {
            RttArithmetic::Rfc6298 | RttArithmetic::Linux => self.smooth(r.as_ns(), 1),
            RttArithmetic::Ns2 => {
                // ns-2 without timestamps counts the clock ticks that pass between sending and
                // acknowledgment.
                let tick = profile.granularity.as_ns();
                self.smooth(clock.passes(sent, r, profile).as_ns().max(tick), tick);
            }
        }
    }

    /// RFC 6298, 2.2 and 2.3, in integers: SRTT is stored multiplied by 8, and RTTVAR by 4 (Jacobson 1988,
    /// appendix A). All values are multiples of `unit` nanoseconds.
    #[inline(always)]
    fn smooth(&mut self, r: u64, unit: u64) {
        if self.srtt8 == 0 {
            self.srtt8 = 8 * r;
            self.rttvar4 = 2 * r;
            return;
        }
        let srtt = self.srtt8 / (8 * unit) * unit;
        let rttvar = self.rttvar4 / (4 * unit) * unit;
        self.srtt8 = (self.srtt8 + r - srtt).max(unit);
        // RFC 6298, 2.3: RTTVAR is computed with the SRTT from before this sample.
        self.rttvar4 = (self.rttvar4 + srtt.abs_diff(r) - rttvar).max(unit);
    }

    /// Returns the timeout as it is now, backed off and within its bounds.
    #[inline]
    pub(crate) fn rto(&self, profile: &Profile) -> Span {
        let base = self.unbounded_rto(profile).max(profile.min_rto);
        let backed_off = if self.doublings == 0 { base } else { base.saturating_mul(1 << self.doublings) };
        let bounded = backed_off.min(profile.max_rto);
        if profile.rtt_arithmetic == RttArithmetic::Ns2 {
            // In ns-2, the timer never fires earlier than two ticks of its clock after it was set.
            return bounded.max(profile.granularity.saturating_mul(2));
        }
        bounded
    }

    /// Returns SRTT plus four times RTTVAR, or the initial timeout before the first sample.
    #[inline]
    pub(crate) fn unbounded_rto(&self, profile: &Profile) -> Span {
        if self.rttvar4 == 0 {
            return if self.syn_timed_out { profile.syn_fallback_rto } else { profile.initial_rto };
        }
        if profile.rtt_arithmetic == RttArithmetic::Ns2 {
            let tick = profile.granularity.as_ns();
            return Span::ns((8 * self.rttvar4 + self.srtt8) / (8 * tick) * tick);
        }
        // RFC 6298, 2.3: SRTT + max(G, 4 * RTTVAR).
        Span::ns(self.srtt8 / 8) + Span::ns(self.rttvar4).max(profile.least_variance)
    }

    /// Doubles the timeout after the timer has fired for data (RFC 6298, 5.5).
    pub(crate) fn back_off(&mut self, profile: &Profile) {
        self.fired = true;
        self.double(profile);
    }

    /// Handles an expiry that does not double the timeout.
    pub(crate) fn keep_timeout(&mut self) {
        self.fired = true;
    }

    /// Doubles the timeout up to its bound.
    pub(crate) fn double(&mut self, profile: &Profile) {
        let ns2 = profile.rtt_arithmetic == RttArithmetic::Ns2;
        if self.rto(profile) < profile.max_rto || (ns2 && self.doublings < 6) {
            self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
        }
        // RFC 6298, 5.7 allows SRTT to be cleared; ns-2, following BSD, moves it into the variance and keeps
        // the current timeout until the next sample.
        if ns2 && self.doublings > 3 {
            let tick = profile.granularity.as_ns();
            self.rttvar4 += self.srtt8 / (8 * tick) * tick;
            self.srtt8 = 0;
        }
    }

    /// Stops the timer at the end of the handshake. If a SYN had to be retransmitted and time stamps do not
    /// tell its copies apart, there is no sample, and data begins with a separate initial timeout (RFC 6298,
    /// 5.7); with [`Profile::keep_syn_backoff`], the timeout remains backed off until the first sample.
    pub(crate) fn handshake_done(&mut self, syn_timed_out: bool, profile: &Profile) {
        self.stop();
        self.fired = false;
        if syn_timed_out && !profile.keep_syn_backoff {
            self.doublings = 0;
            self.syn_timed_out = profile.rtt_arithmetic != RttArithmetic::Ns2;
        }
    }

    /// Returns whether the timer has fired since new data was last acknowledged.
    pub(crate) fn has_fired(&self) -> bool {
        self.fired
    }

    /// Returns RTTVAR.
    pub(crate) fn variance(&self) -> Span {
        Span::ns(self.rttvar4 / 4)
    }

    /// Returns the smoothed round-trip time, once there is one.
    pub(crate) fn srtt(&self) -> Option<Span> {
        (self.srtt8 > 0).then(|| Span::ns(self.srtt8 / 8))
    }
}

/// An endpoint's clock with the ns-2 arithmetic: how far it is ahead of the clock with the profile's
/// `tick_phase`, as a share of a tick in units of 2^-32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Clock(u32);

impl Clock {
    /// The clock with the phase that the profile gives.
    pub(crate) const OF_CLASS: Clock = Clock(0);

    /// Creates a clock that is ahead by this share of a tick, from 0 to below 1.
    pub(crate) fn ahead(share: f64) -> Self {
        Clock((share * (1u64 << 32) as f64) as u32)
    }

    /// Returns the time `span` after `from`, as it passes on this clock: from tick to tick.
    pub(crate) fn passes(self, from: Instant, span: Span, profile: &Profile) -> Span {
        let tick = profile.granularity.as_ns();
        let ahead = (u128::from(tick) * u128::from(self.0)) >> 32;
        let into_tick = (from.as_ns() + profile.tick_phase.as_ns() + ahead as u64) % tick;
        Span::ns((span.as_ns() + into_tick) / tick * tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With ticks of 10 ms, a segment sent at 2 ms and acknowledged at 18 ms passes one tick of a clock that
    /// ticks at 0 ms, one of a clock that is a tenth of a tick ahead (9 ms), and two of a clock that is half a
    /// tick ahead (5 and 15 ms).
    #[test]
    fn a_clock_of_its_own_ticks_earlier_by_its_share_of_a_tick() {
        let profile = Profile::named("ns2").expect("built in");
        let measured = [0.0, 0.1, 0.5, 0.79, 0.81].map(|share| {
            let mut rto = RtoTimer::new();
            rto.time_segment(Instant::ZERO + Span::ms(2), 1);
            rto.measured(Instant::ZERO + Span::ms(18), false, Clock::ahead(share), &profile);
            rto.srtt()
        });
        // Beyond 0.8, the first tick (at 1.9 ms) comes before the segment.
        assert_eq!(measured, [1, 1, 2, 2, 1].map(|ticks| Some(Span::ms(10 * ticks))));
    }

    /// The expected values were computed by hand, in milliseconds: four times the smoothed
    /// deviation is 400, 300, 225 and then 230.46875, because a round-trip time below SRTT raises
    /// the deviation only an eighth as fast as one above SRTT.
    #[test]
    fn the_variance_of_linux_is_the_largest_deviation_and_comes_down_by_quarters() {
        let profile = Profile::named("linux").expect("built in");
        let (mut rto, mut deviation) = (RtoTimer::new(), Deviation::new(None, 1, &profile));
        let mut after = |(ms, reach): (u64, (u64, u64))| {
            rto.measured_by_linux(Span::ms(ms), &mut deviation, reach, &profile);
            rto.rto(&profile)
        };
        let samples = [(200, (2, 10)), (200, (11, 20)), (200, (21, 30)), (100, (22, 31))];
        let timeouts = samples.map(&mut after);
        assert_eq!(timeouts, [600_000, 600_000, 556_250, 543_750].map(Span::us));
        assert_eq!(deviation.smoothed, 230_468_750);
    }
}
