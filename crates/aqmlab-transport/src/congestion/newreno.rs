//! Slow start, congestion avoidance and the window rules of fast recovery (RFC 5681, RFC 6582).

use crate::profile::{
    EcnAtOne, Increase, InitialSsthresh, Profile, Recovery, RecoveryExit, ReductionBase, TimeoutSsthresh,
};

/// "Arbitrarily high" (RFC 5681, 3.1).
const UNLIMITED: f64 = f64::INFINITY;

/// The congestion window, in segments of the profile's size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Window {
    cwnd: f64,
    ssthresh: f64,
    /// Segments that have left the network during fast recovery, as duplicate ACKs tell.
    inflation: u32,
    /// Acknowledged bytes not yet turned into window (RFC 3465, 2.1).
    credit: u32,
}

impl Window {
    pub(crate) fn new(profile: &Profile) -> Self {
        let ssthresh = match profile.initial_ssthresh {
            InitialSsthresh::Unlimited => UNLIMITED,
            InitialSsthresh::MaxWindow => f64::from(profile.max_window),
        };
        // One segment, the SYN, until the handshake sets the initial window.
        Window { cwnd: 1.0, ssthresh, inflation: 0, credit: 0 }
    }

    /// The congestion window without inflation.
    #[inline]
    pub(crate) fn cwnd(&self) -> f64 {
        self.cwnd
    }

    #[inline]
    pub(crate) fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// Whole segments that may be in flight.
    #[inline]
    pub(crate) fn usable(&self, profile: &Profile) -> u64 {
        // Nothing beyond `max_window`, which is 32 bits wide, matters.
        (u64::from(self.cwnd as u32) + u64::from(self.inflation)).min(u64::from(profile.max_window))
    }

    /// The handshake is over. RFC 5681, 3.1: after a lost SYN the initial window is one segment.
    pub(crate) fn established(&mut self, syn_lost: bool, profile: &Profile) {
        self.cwnd = if syn_lost { 1.0 } else { profile.initial_window };
    }

    /// New data is acknowledged outside fast recovery.
    #[inline]
    pub(crate) fn increase(&mut self, acked: u32, after_timeout: impl FnOnce() -> bool, profile: &Profile) {
        let segments = || f64::from(acked) / f64::from(profile.mss);
        match (self.cwnd < self.ssthresh, profile.increase) {
            // RFC 5681, equation 2: min(N, SMSS)
            (true, Increase::PerAck) => self.cwnd += segments().min(1.0),
            (true, Increase::ByteCounting) => {
                // RFC 3465, 2.3: L is 1 in the slow start that follows a timeout
                let limit = if after_timeout() { 1 } else { profile.abc_limit };
                self.cwnd += segments().min(f64::from(limit));
            }
            // RFC 5681, equation 3
            (false, Increase::PerAck) => self.cwnd += 1.0 / self.cwnd,
            (false, Increase::ByteCounting) => self.count_bytes(acked, profile),
        }
    }

    /// RFC 3465, 2.1: one segment for each window of acknowledged bytes.
    #[inline(never)] // keeps the way of an ACK short without it
    fn count_bytes(&mut self, acked: u32, profile: &Profile) {
        let credit = f64::from(self.credit) + f64::from(acked);
        let window = self.cwnd * f64::from(profile.mss);
        if credit >= window {
            self.cwnd += 1.0;
            self.credit = (credit - window).min(window) as u32;
        } else {
            self.credit = credit as u32;
        }
    }

    /// Half of what RFC 5681, equation 4, or ns-2 halves. `flight`: bytes outstanding.
    ///
    /// DEVIATES from RFC 5681, section 2, by default: equation 4 is about "outstanding data in the network",
    /// and the window has been inflated by the segments that have left it, so these are not halved. Its
    /// definition of FlightSize counts them (`reduction_base = "outstanding"`).
    fn half(&self, flight: u32, profile: &Profile) -> f64 {
        let segments = f64::from(flight) / f64::from(profile.mss);
        match profile.reduction_base {
            ReductionBase::Flight => (segments - f64::from(self.inflation)).max(0.0) / 2.0,
            ReductionBase::Outstanding => segments / 2.0,
            ReductionBase::Window => {
                (self.cwnd + f64::from(self.inflation)).min(f64::from(profile.max_window)) / 2.0
            }
        }
    }

    fn set_ssthresh(&mut self, half: f64, profile: &Profile) {
        let half = match profile.reduction_base {
            ReductionBase::Flight | ReductionBase::Outstanding => half,
            ReductionBase::Window => libm::floor(half),
        };
        self.ssthresh = half.max(2.0); // RFC 5681, equation 4
    }

    /// A fast retransmit that is the first sign of congestion in its window (RFC 5681, 3.2, steps 2 and 3).
    pub(crate) fn loss(&mut self, flight: u32, profile: &Profile) {
        let half = self.half(flight, profile);
        self.set_ssthresh(half, profile);
        self.cwnd = match profile.reduction_base {
            ReductionBase::Flight | ReductionBase::Outstanding => self.ssthresh,
            ReductionBase::Window => half.max(1.0),
        };
        self.credit = 0;
    }

    /// An ECN echo (RFC 3168, 6.1.2): as for a loss, but the window may come down to one segment, in ns-2
    /// below it.
    pub(crate) fn marked(&mut self, flight: u32, profile: &Profile) {
        let half = self.half(flight, profile);
        self.set_ssthresh(half, profile);
        self.cwnd = match profile.ecn_at_one {
            EcnAtOne::WaitForRto | EcnAtOne::Keep => half.max(1.0).min(self.cwnd),
            EcnAtOne::Ssthresh => self.ssthresh,
            EcnAtOne::Ns2 => half,
        };
        self.credit = 0;
    }

    /// Has a mark left less than a segment?
    #[inline]
    pub(crate) fn is_shut(&self) -> bool {
        self.cwnd < 1.0
    }

    /// A retransmission timeout. `again`: the segment has timed out before; `reduced`: this window of data
    /// has already cost a reduction because of a mark.
    pub(crate) fn timeout(&mut self, flight: u32, again: bool, reduced: bool, profile: &Profile) {
        if profile.reduction_base == ReductionBase::Window {
            self.inflation = 0; // ns-2 forgets it first
        }
        let hold = reduced || (again && profile.timeout_ssthresh == TimeoutSsthresh::Rfc5681);
        if !hold {
            let half = self.half(flight, profile);
            self.set_ssthresh(half, profile);
        }
        self.inflation = 0;
        self.cwnd = 1.0; // the loss window
        self.credit = 0;
    }

    /// The SYN timed out. ns-2 treats it as it treats data.
    pub(crate) fn syn_timeout(&mut self, profile: &Profile) {
        if profile.timeout_ssthresh == TimeoutSsthresh::Ns2 {
            self.timeout(0, false, false, profile);
        }
    }

    /// Fast recovery begins: `dupthresh` segments have left the network (RFC 5681, 3.2, step 3).
    pub(crate) fn inflate_to(&mut self, segments: u32) {
        self.inflation = segments;
    }

    /// Another duplicate ACK in fast recovery (RFC 5681, 3.2, step 4).
    #[inline]
    pub(crate) fn inflate(&mut self) {
        self.inflation += 1;
    }

    /// A partial ACK: deflate by the amount acknowledged, add back one segment (RFC 6582, 3.2, step 3).
    pub(crate) fn deflate(&mut self, acked: u32, profile: &Profile) {
        let segments = f64::from(acked) / f64::from(profile.mss);
        let add_back = if acked >= profile.mss { 1.0 } else { 0.0 };
        let whole = acked.div_ceil(profile.mss);
        if self.inflation > whole {
            self.inflation -= whole - 1;
            self.cwnd += (f64::from(whole) - segments) + (add_back - 1.0);
        } else {
            // The inflation is used up; one stays for the segment that is retransmitted now.
            self.cwnd -= (segments - f64::from(self.inflation)) + (1.0 - add_back);
            self.inflation = 1;
        }
        self.cwnd = self.cwnd.max(1.0);
    }

    /// Fast recovery ends; `flight` bytes are outstanding after the ACK that ends it. True if that ACK also
    /// opens the window as an ordinary one does.
    pub(crate) fn exit_recovery(&mut self, flight: u32, scheme: Recovery, profile: &Profile) -> bool {
        self.inflation = 0;
        match (scheme, profile.recovery_exit) {
            // RFC 6675, section 5: the window has been where it shall be since recovery began.
            (Recovery::Sack, _) => false,
            (_, RecoveryExit::Ns2) => true,
            (Recovery::NewReno, RecoveryExit::Flight) => {
                let flight = f64::from(flight) / f64::from(profile.mss);
                self.cwnd = self.ssthresh.min(flight.max(1.0) + 1.0);
                false
            }
            // RFC 5681, 3.2, step 6
            (Recovery::Reno, _) | (Recovery::NewReno, RecoveryExit::Ssthresh) => {
                self.cwnd = self.ssthresh;
                false
            }
        }
    }

    /// After a pause of so many timeouts: halved for each (RFC 2861, 3.2), but not below `restart` segments.
    pub(crate) fn validate(&mut self, timeouts: u64, restart: f64) {
        self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
        let mut left = timeouts;
        while left > 0 && self.cwnd > restart {
            self.cwnd = (self.cwnd / 2.0).max(restart);
            left -= 1;
        }
        self.credit = 0;
    }

    /// After a pause: the window may not exceed `restart` segments, and is one at least.
    pub(crate) fn restart(&mut self, restart: f64) {
        self.cwnd = self.cwnd.min(restart).max(1.0);
        self.credit = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqmlab_params::{Origin, Value};

    /// 40 segments in flight; 30 of them arrive behind a hole and let 30 new ones out; then the timer fires.
    #[test]
    fn a_timeout_in_fast_recovery_halves_what_is_in_the_network() {
        for (base, expected) in [("flight", 20.0), ("outstanding", 35.0), ("window", 10.0)] {
            let mut settings = crate::profile_settings("rfc").expect("built in");
            settings.set("reduction_base", Value::Choice(base), Origin::Given);
            let profile = Profile::from_settings(&settings).expect("consistent");
            let mss = profile.mss;
            let mut window = Window::new(&profile);
            window.cwnd = 40.0;
            window.loss(40 * mss, &profile);
            assert_eq!((window.ssthresh, window.cwnd), (20.0, 20.0));
            window.inflate_to(3);
            (0..27).for_each(|_| window.inflate());
            window.timeout(70 * mss, false, false, &profile);
            assert_eq!((window.ssthresh, window.cwnd, window.inflation), (expected, 1.0, 0), "{base}");
        }
    }
}
