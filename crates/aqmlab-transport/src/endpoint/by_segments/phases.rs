//! Reactions to congestion: recoveries and reductions, and whether these were spurious.

use crate::congestion::{Outstanding, Sign, Window};
use crate::endpoint::Endpoint;
use crate::profile::{Profile, PrrBase};
use crate::recovery::{Delivery, Found, Frto, News, Phase, Tracking, Undo};

impl Endpoint {
    /// Returns whether an acknowledgment shows that a probe has repaired a loss (RFC 8985, section
    /// 7.4.2).
    pub(super) fn probe_has_repaired(&mut self, ack: u64, news: bool, twice: bool) -> bool {
        let tracking = self.tracking_mut();
        let Some(probe) = tracking.probe.filter(|probe| ack >= probe.end) else { return false };
        if !probe.again || !news || twice {
            tracking.probe = None; // the probe was new data, or both copies have arrived
            return false;
        }
        if ack > probe.end {
            tracking.probe = None;
            return true;
        }
        false
    }

    /// Reduces the window immediately, because a loss that a probe has repaired is a sign of
    /// congestion although no data is missing any longer.
    pub(super) fn reduce_at_once(&mut self, news: &News, profile: &Profile) {
        if matches!(self.tracking().phase, Phase::Open | Phase::Reduction) {
            self.begin_phase(Phase::Reduction, Some(Sign::Mark), news.delivered, profile);
            self.settle_window(profile);
            self.tracking_mut().phase = Phase::Open;
        }
    }

    /// Decides whether a timeout was spurious (RFC 5682, section 3.1, steps 2 and 3).
    pub(super) fn judge_timeout(&mut self, ack: u64, news: &News, profile: &Profile) {
        if self.tracking().frto == Frto::Off || self.tracking().phase != Phase::Loss {
            return;
        }
        let (sent, has_data) = (self.sent(), self.has_data() && self.fits(self.reach(profile), profile));
        let advances = news.acked > 0;
        let tracking = self.tracking_mut();
        // The arrival of segments sent after the timeout proves nothing.
        if news.original.is_some_and(|end| end <= tracking.recover) {
            self.go_back(true, profile);
            return;
        }
        match tracking.frto {
            Frto::First if advances && ack < tracking.recover && has_data => {
                tracking.frto = Frto::Second;
                tracking.recover = sent;
            }
            Frto::First if !advances && news.delivered == 0 => {}
            _ => tracking.frto = Frto::Off,
        }
    }

    /// Decides whether the latest reduction was spurious: it was if new data is acknowledged by an
    /// acknowledgment that echoes a time stamp from before the first retransmission (RFC 3522, 3.2), or if both
    /// copies of every retransmitted segment have arrived (RFC 3708, section 3). Returns false if this
    /// acknowledgment must not lead to further retransmissions, because segments that seemed to be lost are only
    /// late, but copies are still in flight.
    pub(super) fn judge_reduction(&mut self, ack: u64, news: &News, profile: &Profile) -> bool {
        let Tracking { undo, segments, phase, .. } = self.tracking();
        let (recovers, copies) = (*phase == Phase::Recovery, segments.copies());
        let by_first_copy = profile.eifel
            && profile.timestamps
            && news.acked > 0
            && undo.begin.is_some()
            && self.tracking().echoes_before_first_again(ack, news.stamp);
        if by_first_copy && recovers {
            let from = ack - u64::from(news.acked);
            self.tracking_mut().segments.note_reordering(from, profile);
        }
        if by_first_copy && copies == 0 {
            self.go_back(true, profile);
        } else if profile.dsack_undo && self.tracking().undo.is_due() {
            self.go_back(self.tracking().phase == Phase::Loss, profile);
        }
        !(by_first_copy && recovers && copies > 0)
    }

    /// Undoes a spurious reduction: restores the window and, with `none_lost`, also the state of the
    /// segments that were considered lost.
    fn go_back(&mut self, none_lost: bool, profile: &Profile) {
        let tracking = self.tracking_mut();
        tracking.frto = Frto::Off;
        if tracking.is_recovering() {
            tracking.phase = Phase::Open;
        }
        if none_lost {
            tracking.segments.none_lost();
        }
        self.undo_reduction(profile);
    }

    /// Saves the window before a reduction that may turn out to be spurious.
    pub(super) fn remember_window(&mut self, profile: &Profile) {
        let (cwnd, ssthresh) = (self.window.cwnd(), self.window.ssthresh());
        let begin = Some(self.una);
        self.tracking_mut().undo = Undo { cwnd, ssthresh, begin, unreported: None };
        self.troubles.note().control.remember(profile);
    }

    /// Undoes a spurious reduction by restoring everything that determines the window.
    fn undo_reduction(&mut self, profile: &Profile) {
        let Undo { cwnd, ssthresh, .. } = self.tracking().undo;
        self.tracking_mut().undo.begin = None;
        if !profile.samples() {
            self.window.restore(cwnd, ssthresh);
        }
        let rates = self.tracking().segments.rates.as_ref();
        let delivered = rates.map_or(0, |rates| rates.delivered());
        let Endpoint { window, troubles, .. } = self;
        troubles.note().control.restore(delivered, window);
    }

    /// Ends the phase if `ack` covers the data that was outstanding when the phase began. A reduction
    /// for a mark continues until data sent after the mark is acknowledged.
    pub(super) fn leave_phase(&mut self, ack: u64, profile: &Profile) {
        let by_sack = self.uses_sack();
        let tracking = self.tracking_mut();
        let over = match tracking.phase {
            Phase::Open => false,
            Phase::Reduction => ack > tracking.recover,
            Phase::Recovery | Phase::Loss if by_sack => ack >= tracking.recover,
            // Spurious retransmissions cause duplicate ACKs with exactly this acknowledgment number (RFC
            // 6582, section 3.2, step 2).
            Phase::Recovery | Phase::Loss => ack > tracking.recover,
        };
        if over {
            let settles = tracking.reduces();
            if tracking.is_recovering() {
                tracking.segments.recovered();
            }
            tracking.phase = Phase::Open;
            tracking.frto = Frto::Off;
            if settles {
                self.settle_window(profile);
            }
        }
    }

    /// Ends a gradual reduction, unless the control alone determines the window.
    fn settle_window(&mut self, profile: &Profile) {
        if !profile.samples() {
            self.window.settle();
        }
    }

    /// Begins fast recovery if segments are lost (after a timeout, only if a retransmission is
    /// lost), or only a reduction if there is an ECN echo.
    pub(super) fn enter_phase(&mut self, found: Found, delivered: u32, echo: bool, profile: &Profile) {
        let tracking = self.tracking();
        let lost = tracking.segments.lost() > 0;
        let (phase, sign) = match tracking.phase {
            Phase::Open if lost => (Phase::Recovery, Some(Sign::Loss)),
            Phase::Reduction if lost => (Phase::Recovery, None),
            Phase::Loss if found.copies > 0 => (Phase::Recovery, Some(Sign::Loss)),
            Phase::Open if echo && !profile.answers_marks() => {
                self.troubles.note().counts.ecn_reductions += 1;
                (Phase::Reduction, Some(Sign::Mark))
            }
            _ => return,
        };
        self.begin_phase(phase, sign, delivered, profile);
    }

    /// Begins a phase; reduces the window if there is a `sign` of congestion that has not yet
    /// caused a reduction.
    #[inline(never)]
    fn begin_phase(&mut self, phase: Phase, sign: Option<Sign>, delivered: u32, profile: &Profile) {
        let (sent, by_sack) = (self.sent(), self.uses_sack());
        self.troubles.note().counts.fast_retransmits += u32::from(phase == Phase::Recovery);
        let tracking = self.tracking_mut();
        // RFC 9937, section 6: RecoverFS.
        let flight = tracking.segments.outstanding() - tracking.segments.sacked() + delivered;
        let Some(sign) = sign else {
            tracking.phase = phase;
            if by_sack && !profile.recovery_ends_with_mark {
                tracking.recover = sent;
            }
            if profile.exact_echo {
                self.halve_after_mark(flight, profile);
            }
            return;
        };
        if phase == Phase::Recovery {
            self.remember_window(profile);
        } else {
            self.tracking_mut().undo.begin = None;
        }
        let cwnd = self.window.cwnd() as u32;
        let tracking = self.tracking_mut();
        let base = match profile.prr_base {
            PrrBase::Flight => flight,
            PrrBase::CongestionWindow => cwnd,
        };
        tracking.begin(phase, sent, base);
        tracking.retransmission_due = phase == Phase::Recovery && !profile.prr;
        let outstanding = Outstanding { flight: flight.saturating_mul(profile.mss), inflation: 0 };
        let (window, algorithm) = self.congestion(profile);
        window.lower(algorithm, sign, outstanding, profile);
        if !profile.prr {
            self.settle_window(profile);
        }
        self.ecn.reduced();
    }

    /// Lowers the window again when a loss occurs during a reduction for a mark, because that
    /// reduction may be smaller than a loss requires (RFC 8257, 3.5).
    #[cold]
    fn halve_after_mark(&mut self, flight: u32, profile: &Profile) {
        let outstanding = Outstanding { flight: flight.saturating_mul(profile.mss), inflation: 0 };
        let (window, algorithm) = self.congestion(profile);
        window.lower(algorithm, Sign::Loss, outstanding, profile);
    }

    /// Continues a reduction in progress, according to the number of segments that have arrived.
    pub(super) fn reduce_window(&mut self, delivered: u32, safe: bool, profile: &Profile) {
        let Endpoint { window, troubles, .. } = self;
        let tracking = troubles.tracking_mut().expect("tracking has begun");
        reduce_window(window, tracking, delivered, safe, profile);
    }
}

/// Continues a reduction in progress, according to the number of segments that have arrived.
#[inline(always)]
pub(super) fn reduce_window(
    window: &mut Window,
    tracking: &mut Tracking,
    delivered: u32,
    safe: bool,
    profile: &Profile,
) {
    if profile.prr && tracking.reduces() && delivered > 0 && !profile.samples() {
        let in_flight = tracking.segments.in_flight();
        let ack = Delivery { segments: delivered, in_flight, safe };
        let segments = tracking.prr.window(ack, window.ssthresh() as u32);
        window.set(segments);
    }
}
