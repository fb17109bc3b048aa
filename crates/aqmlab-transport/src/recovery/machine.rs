//! Fast retransmit and fast recovery: what acknowledgments mean for Reno (RFC 5681, section 3.2),
//! for NewReno (RFC 6582) and with SACK (RFC 6675).

use super::AckAction;
use crate::profile::{FastRetransmitGuard, PartialAck, Profile, Recovery, SackPipe};

/// Cause of the latest reduction of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    Nothing,
    Loss,
    Mark,
    Timeout,
}

/// Whether fast recovery is in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Open,
    /// Fast recovery is in progress; `partials` is true once a partial ACK has arrived.
    Recovery {
        partials: bool,
    },
}

/// State that follows from duplicate ACKs, and the window of data in which congestion was last
/// detected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Machine {
    /// One past the highest offset sent when the window was last reduced: `recover` of RFC 6582, RecoveryPoint
    /// of RFC 6675. An ECN reaction also sets it, because a loss and a mark in the same window are one
    /// congestion event.
    recover: u64,
    /// Bytes sent by limited transmit since new data was last acknowledged.
    limited: u32,
    /// Segments that have left the network during fast recovery, according to duplicate ACKs.
    inflation: u32,
    dup_acks: u16,
    /// The position of the duplicate ACK that makes limited transmit due, counted from 1 within its series of
    /// duplicates.
    pub due_at: u8,
    /// Number of timeouts in a row, without new data acknowledged in between, or 65,535 if it is larger; valid while
    /// [`RtoTimer::has_fired`](crate::rto::RtoTimer::has_fired).
    pub timeouts_in_a_row: u16,
    phase: Phase,
    cause: Cause,
    /// A timeout has occurred, and no new data has been acknowledged since.
    timed_out: bool,
}

impl Machine {
    pub(crate) const fn new() -> Self {
        // DEVIATES from RFC 6582, 3.2, step 1, which sets `recover` to the initial sequence number. A
        // fast retransmit of the first data segment would then be impossible, which is not intended
        // (ns-2 `bugfix_ss_`).
        let (phase, cause) = (Phase::Open, Cause::Nothing);
        Machine {
            recover: 0,
            dup_acks: 0,
            due_at: 0,
            timeouts_in_a_row: 0,
            limited: 0,
            inflation: 0,
            phase,
            cause,
            timed_out: false,
        }
    }

    /// Processes an acknowledgment of new data up to `ack`.
    #[inline]
    pub(crate) fn on_new_ack(&mut self, ack: u64, scheme: Recovery, profile: &Profile) -> AckAction {
        self.limited = 0;
        self.timed_out = false;
        if let Phase::Recovery { partials } = self.phase {
            if self.stays(ack, scheme) {
                self.phase = Phase::Recovery { partials: true };
                // RFC 6675, section 6: each acknowledgment that advances SND.UNA restarts the
                // timer.
                let restart_timer =
                    scheme == Recovery::Sack || !partials || profile.partial_ack == PartialAck::SlowButSteady;
                return AckAction::Partial { restart_timer };
            }
            self.dup_acks = 0;
            self.inflation = 0;
            self.phase = Phase::Open;
            if scheme == Recovery::Sack && profile.sack_pipe == SackPipe::Ns2 {
                self.recover = 0; // ns-2's Sack1 agent forgets it
            }
            return AckAction::Finish;
        }
        self.dup_acks = 0;
        AckAction::Advance
    }

    /// Returns whether an acknowledgment of new data up to `ack` is only a partial one, after which
    /// fast recovery continues.
    #[inline]
    fn stays(&self, ack: u64, scheme: Recovery) -> bool {
        match scheme {
            // RFC 5681, 3.2, step 6: the next acknowledgment of new data ends recovery, whatever
            // else is missing.
            Recovery::Tahoe | Recovery::Reno => false,
            // A mark on data sent since the loss replaces the value that the loss gave to
            // `recover`.
            Recovery::NewReno => ack < self.recover && self.cause == Cause::Loss,
            // RFC 6675, section 5, step (A)
            Recovery::Sack => ack < self.recover,
        }
    }

    /// Processes a duplicate acknowledgment of `una`; `sent` is one past the highest offset sent.
    pub(crate) fn on_duplicate(&mut self, una: u64, sent: u64, profile: &Profile) -> AckAction {
        if self.is_recovering() {
            return AckAction::Inflate;
        }
        self.dup_acks = self.dup_acks.saturating_add(1);
        let count = u32::from(self.dup_acks);
        if count < profile.dupthresh {
            return AckAction::Early { nth: count };
        }
        if count > profile.dupthresh || una == sent {
            return AckAction::Ignore;
        }
        self.third_duplicate(una, sent, profile)
    }

    /// RFC 6582, 3.2, step 2: enters fast recovery only if the acknowledgment covers more than `recover`, so
    /// that segments retransmitted after a timeout do not cause another fast retransmit.
    fn third_duplicate(&mut self, una: u64, sent: u64, profile: &Profile) -> AckAction {
        let guard = profile.fast_retransmit_guard;
        let nothing_acked = una <= 1;
        let marked = self.cause == Cause::Mark;
        // Data at or above the `recover` that a mark has set was sent after the mark's reduction,
        // and the first segment of that data carried CWR (RFC 3168, 6.1.2).
        let since_mark = una >= self.recover;
        let covered = match guard {
            FastRetransmitGuard::Rfc5681 => !marked || since_mark,
            FastRetransmitGuard::Rfc6582 => una > self.recover || (marked && since_mark),
            FastRetransmitGuard::Ns2 => una > self.recover || nothing_acked,
        };
        if !covered && !marked {
            return AckAction::Ignore;
        }
        let moves = covered || guard != FastRetransmitGuard::Ns2;
        self.begin(moves.then_some(sent));
        AckAction::Enter { reduce: covered }
    }

    /// With SACK, outside recovery, processes an acknowledgment of `una` that reports further
    /// arrivals: steps (1) and (2) of RFC 6675, section 5. `first_is_lost` is IsLost(HighACK +
    /// 1).
    pub(crate) fn on_news(
        &mut self,
        una: u64,
        sent: u64,
        first_is_lost: bool,
        profile: &Profile,
    ) -> AckAction {
        if self.is_recovering() {
            return AckAction::Inflate;
        }
        self.dup_acks = self.dup_acks.saturating_add(1);
        let count = u32::from(self.dup_acks);
        if count < profile.dupthresh && !first_is_lost {
            return AckAction::Early { nth: count };
        }
        // RFC 6675, 5.1: after a timeout, recovery begins only once all data sent before the timeout is
        // acknowledged. If a mark has already reduced the window, a loss is recovered without another
        // reduction (RFC 3168, 6.1.2).
        let covered = una >= self.recover;
        if !covered && self.cause != Cause::Mark {
            return AckAction::Ignore;
        }
        self.begin(Some(sent));
        AckAction::Enter { reduce: covered }
    }

    /// Begins fast recovery; RFC 6675, 4.1: RecoveryPoint = HighData.
    fn begin(&mut self, recover: Option<u64>) {
        self.recover = recover.unwrap_or(self.recover);
        self.cause = Cause::Loss;
        self.phase = Phase::Recovery { partials: false };
    }

    /// Ends fast recovery as soon as it has begun, because sending starts over; further duplicates are ignored.
    pub(crate) fn starts_over(&mut self) {
        self.phase = Phase::Open;
    }

    /// Returns whether duplicates are to be ignored: ns-2's Sack1 agent ignores them from a timeout
    /// until new data is acknowledged.
    pub(crate) fn is_deaf(&self) -> bool {
        self.timed_out
    }

    /// Returns whether an ECN echo on an acknowledgment of `ack` may reduce the window. It may do
    /// so once per window of data, regardless of whether the last reduction was for a mark or for a
    /// loss (RFC 3168, 6.1.2); in ns-2, it may also do so directly after a timeout.
    #[inline]
    pub(crate) fn may_react_to_mark(&self, ack: u64, profile: &Profile) -> bool {
        let ns2 = profile.fast_retransmit_guard == FastRetransmitGuard::Ns2;
        // ns-2's `recover_` starts at the SYN, so its first reaction requires that data has been
        // acknowledged.
        let recover = if ns2 { self.recover.max(1) } else { self.recover };
        ack > recover || (ns2 && self.cause == Cause::Timeout)
    }

    /// Notes that the window has been reduced because of a mark, with data up to `sent`
    /// outstanding.
    pub(crate) fn marked(&mut self, sent: u64) {
        self.recover = sent;
        self.cause = Cause::Mark;
    }

    /// Notes that the retransmission timer has fired (RFC 6582, 3.2, step 4). Returns true if a
    /// mark has already reduced the congestion window for this window of data or, in ns-2, if the
    /// last reduction was for a mark, however long ago.
    pub(crate) fn timeout(&mut self, una: u64, sent: u64, profile: &Profile) -> bool {
        let ns2 = profile.fast_retransmit_guard == FastRetransmitGuard::Ns2;
        let reduced = self.cause == Cause::Mark && (ns2 || una < self.recover);
        // In ns-2, only Tahoe goes on counting duplicates.
        let dup_acks = if ns2 && profile.recovery == Recovery::Tahoe { self.dup_acks } else { 0 };
        let Machine { timeouts_in_a_row, .. } = *self;
        *self = Machine {
            recover: sent,
            cause: Cause::Timeout,
            timed_out: true,
            timeouts_in_a_row,
            dup_acks,
            ..Machine::new()
        };
        reduced
    }

    /// Notes that ns-2's timer has fired while nothing was outstanding.
    pub(crate) fn idle(&mut self, sent: u64, profile: &Profile) {
        self.timeout(sent, sent, profile);
    }

    /// Inflates the window when fast recovery begins, because `dupthresh` segments have left the
    /// network (RFC 5681, 3.2, step 3).
    pub(crate) fn inflate_to(&mut self, segments: u32) {
        self.inflation = segments;
    }

    /// Processes another duplicate ACK in fast recovery (RFC 5681, 3.2, step 4).
    #[inline]
    pub(crate) fn inflate(&mut self) {
        self.inflation += 1;
    }

    /// Processes a partial ACK of `acked` bytes: deflates the window by the amount acknowledged and adds
    /// back one segment (RFC 6582, 3.2, step 3). Returns the number of segments by which the window itself
    /// must also change.
    pub(crate) fn deflate(&mut self, acked: u32, profile: &Profile) -> f64 {
        let segments = f64::from(acked) / f64::from(profile.mss);
        let add_back = if acked >= profile.mss { 1.0 } else { 0.0 };
        let whole = acked.div_ceil(profile.mss);
        if self.inflation > whole {
            self.inflation -= whole - 1;
            (f64::from(whole) - segments) + (add_back - 1.0)
        } else {
            // The inflation is used up, except for one segment, which allows for the segment that
            // is retransmitted now.
            let beyond = segments - f64::from(self.inflation);
            self.inflation = 1;
            -(beyond + (1.0 - add_back))
        }
    }

    /// Processes a partial ACK after which the window is not inflated and recovery lasts until all data sent so
    /// far, up to `sent`, is acknowledged.
    pub(crate) fn extend(&mut self, sent: u64) {
        self.inflation = 0;
        self.recover = sent;
    }

    /// Returns the number of segments by which the window is inflated.
    #[inline]
    pub(crate) fn inflation(&self) -> u32 {
        self.inflation
    }

    /// Notes that limited transmit has sent `bytes`.
    pub(crate) fn sent_limited(&mut self, bytes: u32) {
        self.limited += bytes;
    }

    /// Returns the number of bytes sent by limited transmit, which do not count as FlightSize (RFC
    /// 5681, 3.2, step 2).
    pub(crate) fn limited(&self) -> u32 {
        self.limited
    }

    /// Returns one past the highest offset sent when recovery began: RecoveryPoint of RFC 6675.
    pub(crate) fn recover(&self) -> u64 {
        self.recover
    }

    #[inline]
    pub(crate) fn is_recovering(&self) -> bool {
        matches!(self.phase, Phase::Recovery { .. })
    }

    /// Returns whether a timeout caused the latest reduction.
    #[inline]
    pub(crate) fn after_timeout(&self) -> bool {
        self.cause == Cause::Timeout
    }
}
