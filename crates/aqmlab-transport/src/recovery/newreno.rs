//! Fast retransmit and fast recovery by NewReno (RFC 6582).

use super::Verdict;
use crate::profile::{FastRetransmitGuard, PartialAck, Profile};

/// Why the window was last reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    Nothing,
    Loss,
    Mark,
    Timeout,
}

/// Are we in fast recovery?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Open,
    /// `partials`: a partial ACK has come.
    Recovery {
        partials: bool,
    },
}

/// Duplicate ACKs, and the window of data in which congestion was last found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NewReno {
    /// One past the highest offset sent when the window was last reduced: `recover` of RFC 6582. An ECN
    /// reaction sets it too, for loss and mark within one window are one congestion.
    recover: u64,
    /// Bytes sent by limited transmit since the last new acknowledgment.
    limited: u32,
    dup_acks: u16,
    phase: Phase,
    cause: Cause,
}

impl NewReno {
    pub(crate) const fn new() -> Self {
        // DEVIATES from RFC 6582, 3.2, step 1, which sets `recover` to the initial sequence number: then
        // the first data segment could not be retransmitted fast, which was not meant (ns-2 `bugfix_ss_`).
        NewReno { recover: 0, dup_acks: 0, limited: 0, phase: Phase::Open, cause: Cause::Nothing }
    }

    /// An acknowledgment of new data up to `ack`.
    #[inline]
    pub(crate) fn on_new_ack(&mut self, ack: u64, profile: &Profile) -> Verdict {
        self.limited = 0;
        match self.phase {
            Phase::Open => {
                self.dup_acks = 0;
                Verdict::Advance
            }
            // A mark on data sent since the loss opens a new chapter: `recover` is its own then.
            Phase::Recovery { partials } if ack < self.recover && self.cause == Cause::Loss => {
                self.phase = Phase::Recovery { partials: true };
                let restart_timer = !partials || profile.partial_ack == PartialAck::SlowButSteady;
                Verdict::Partial { restart_timer }
            }
            Phase::Recovery { .. } => {
                self.dup_acks = 0;
                self.phase = Phase::Open;
                Verdict::Finish
            }
        }
    }

    /// A duplicate acknowledgment of `una`; `sent` is one past the highest offset sent.
    pub(crate) fn on_duplicate(&mut self, una: u64, sent: u64, profile: &Profile) -> Verdict {
        if self.is_recovering() {
            return Verdict::Inflate;
        }
        self.dup_acks = self.dup_acks.saturating_add(1);
        let count = u32::from(self.dup_acks);
        if count < profile.dupthresh {
            return Verdict::Early { nth: count };
        }
        if count > profile.dupthresh || una == sent {
            return Verdict::Ignore;
        }
        self.third_duplicate(una, sent, profile)
    }

    /// RFC 6582, 3.2, step 2: only if more than `recover` is covered, so that segments sent twice after a
    /// timeout do not cause another fast retransmit.
    fn third_duplicate(&mut self, una: u64, sent: u64, profile: &Profile) -> Verdict {
        let ns2 = profile.fast_retransmit_guard == FastRetransmitGuard::Ns2;
        let nothing_acked = una <= 1;
        let marked = self.cause == Cause::Mark;
        // What begins at a mark's `recover` was sent after that reduction, CWR with it (RFC 3168, 6.1.2).
        let sent_since = marked && una == self.recover && !ns2;
        let covered = una > self.recover || sent_since || (ns2 && nothing_acked);
        if !covered && !marked {
            return Verdict::Ignore;
        }
        if covered || !ns2 {
            self.recover = sent;
        }
        self.cause = Cause::Loss;
        self.phase = Phase::Recovery { partials: false };
        Verdict::Enter { reduce: covered }
    }

    /// May an ECN echo on an acknowledgment of `ack` reduce the window? Once per window of data, whether
    /// the last reduction was for a mark or a loss (RFC 3168, 6.1.2); ns-2 also right after a timeout.
    #[inline]
    pub(crate) fn may_react_to_mark(&self, ack: u64, profile: &Profile) -> bool {
        let ns2 = profile.fast_retransmit_guard == FastRetransmitGuard::Ns2;
        // ns-2's `recover_` starts at the SYN, so its first reaction needs data acknowledged.
        let recover = if ns2 { self.recover.max(1) } else { self.recover };
        ack > recover || (ns2 && self.cause == Cause::Timeout)
    }

    /// The window has been reduced because of a mark, with data up to `sent` outstanding.
    pub(crate) fn marked(&mut self, sent: u64) {
        self.recover = sent;
        self.cause = Cause::Mark;
    }

    /// The retransmission timer has fired (RFC 6582, 3.2, step 4). True if this window of data has already
    /// cost a reduction because of a mark; for ns-2, if the last reduction was for a mark, however old.
    pub(crate) fn timeout(&mut self, una: u64, sent: u64, profile: &Profile) -> bool {
        let ns2 = profile.fast_retransmit_guard == FastRetransmitGuard::Ns2;
        let reduced = self.cause == Cause::Mark && (ns2 || una < self.recover);
        *self = NewReno { recover: sent, dup_acks: 0, limited: 0, phase: Phase::Open, cause: Cause::Timeout };
        reduced
    }

    /// ns-2's timer has fired with nothing outstanding.
    pub(crate) fn idle(&mut self, sent: u64, profile: &Profile) {
        self.timeout(sent, sent, profile);
    }

    /// Limited transmit has sent `bytes`.
    pub(crate) fn sent_limited(&mut self, bytes: u32) {
        self.limited += bytes;
    }

    /// Bytes of limited transmit, which do not count as flight (RFC 5681, 3.2, step 2).
    pub(crate) fn limited(&self) -> u32 {
        self.limited
    }

    #[inline]
    pub(crate) fn is_recovering(&self) -> bool {
        matches!(self.phase, Phase::Recovery { .. })
    }

    /// Is the latest reduction a timeout's?
    #[inline]
    pub(crate) fn after_timeout(&self) -> bool {
        self.cause == Cause::Timeout
    }
}
