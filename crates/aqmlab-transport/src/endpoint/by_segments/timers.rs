//! The timer, which serves three purposes: timeouts, probes, and waiting for reordered segments.

use aqmlab_units::{Instant, Span};

use crate::congestion::Outstanding;
use crate::endpoint::Endpoint;
use crate::profile::Profile;
use crate::recovery::{Frto, Phase, Timer, Tracking};
use crate::rto::RtoTimer;

impl Endpoint {
    /// Sets the timer for a probe or for a retransmission timeout. The retransmission timeout
    /// counts from now in two cases: if the timer is now set for a probe and `anew` is true, or if
    /// it is now set for a timeout and was already set for one before. Otherwise, it counts from
    /// the time at which the first outstanding segment was sent.
    pub(super) fn rearm(&mut self, now: Instant, anew: bool, profile: &Profile) {
        let tracking = self.tracking();
        let probes = self.uses_sack() && tracking.may_probe(profile);
        let Endpoint { rto, troubles, unacked, .. } = self;
        let tracking = troubles.tracking_mut().expect("tracking has begun");
        rearm(rto, tracking, *unacked > 0, now, anew, probes && profile.tail_loss_probe, profile);
    }

    /// Handles the timer's expiry; returns true if this was not a retransmission timeout.
    #[inline(never)] // keeps the code path of other senders short
    pub(in crate::endpoint) fn timer_was_no_timeout(&mut self, now: Instant, profile: &Profile) -> bool {
        if profile.pacing && self.release_timer(now) && now < self.rto.deadline() {
            let tracking = self.tracking_mut();
            if profile.samples() && tracking.frto == Frto::Second {
                tracking.frto = Frto::SecondOfPaced;
            }
            return true;
        }
        if profile.samples() {
            self.check_application_again(profile);
        }
        match core::mem::replace(&mut self.tracking_mut().timer, Timer::Timeout) {
            Timer::Timeout => return false,
            Timer::Reordering => {
                let (found, wait) = self.find_lost(now, profile);
                if found.segments > 0 && self.tracking().phase != Phase::Recovery {
                    self.enter_phase(found, 0, false, profile);
                    self.reduce_window(1, false, profile);
                }
                if self.tracking().segments.has_losses() {
                    self.report_losses(now, profile);
                }
                self.tracking_mut().timer = Timer::Reordering;
                match wait {
                    Some(wait) => self.rto.arm_by_ticks(now, wait + profile.patience(), profile),
                    None => self.rearm(now, false, profile),
                }
            }
            Timer::Probe => {
                self.tracking_mut().probe_due = true;
                self.unsettled = true;
                self.rto.start(now, profile);
            }
        }
        true
    }

    /// Handles a retransmission timeout; `again` is true if nothing has been acknowledged since the
    /// previous timeout.
    #[inline(never)] // keeps the code path of other senders short
    pub(in crate::endpoint) fn time_out_by_segments(&mut self, now: Instant, again: bool, profile: &Profile) {
        let (una, sent) = (self.una, self.sent());
        let reduced = self.tracking().reduces() && una < self.tracking().recover;
        let keeps_undo = reduced && profile.undo_to_reduction;
        if !again && !keeps_undo {
            self.remember_window(profile);
        }
        self.troubles.note().counts.timeouts += 1;
        self.unsettled = true;
        let by_sack = self.uses_sack();
        let tracking = self.tracking_mut();
        let recovering = tracking.is_recovering();
        let outstanding = tracking.segments.outstanding() - tracking.segments.sacked();
        if !by_sack {
            tracking.segments.forget_duplicates();
        }
        if matches!(tracking.phase, Phase::Open) {
            tracking.segments.doubt_reordering(profile);
        }
        tracking.segments.find_lost_at_timeout(now, profile.rack && by_sack);
        tracking.phase = Phase::Loss;
        tracking.recover = sent;
        tracking.probe = None;
        (tracking.probe_due, tracking.retransmission_due) = (false, false);
        tracking.frto = if profile.frto && (!recovering || again) { Frto::First } else { Frto::Off };
        let in_flight = tracking.segments.in_flight();
        let outstanding = Outstanding { flight: outstanding.saturating_mul(profile.mss), inflation: 0 };
        let (window, algorithm) = self.congestion(profile);
        window.timed_out(algorithm, outstanding, again, reduced, profile);
        window.set(in_flight + 1);
        if self.tracking().segments.has_losses() {
            self.report_losses(now, profile);
        }
        self.ecn.reduced();
        self.rto.back_off(profile);
        self.rto.start(now, profile);
    }
}

/// Returns whether newly SACKed data with this round-trip time was sent before the latest transmission of
/// the first outstanding segment, which must then be a retransmission.
#[inline(always)]
pub(super) fn sacked_is_older_than_first(tracking: &Tracking, now: Instant, rtt: Span) -> bool {
    let left = tracking.segments.first_left();
    left.is_some_and(|left| rtt > now.saturating_since(left))
}

/// Returns whether the timer is already set as it would be for a new segment. This is so if the
/// timer was set for a probe at this same instant, more than one segment is `outstanding`, and the
/// retransmission timeout cannot be earlier than the probe.
#[inline(always)]
pub(super) fn probe_stands(
    rto: &RtoTimer,
    tracking: &Tracking,
    now: Instant,
    outstanding: u64,
    profile: &Profile,
) -> bool {
    let timeout = || tracking.segments.first_left().map(|left| left.saturating_add(profile.min_rto));
    tracking.timer == Timer::Probe
        && tracking.probe_set == now
        && outstanding > 1
        && timeout() >= Some(rto.deadline())
}

/// Sets the timer for a probe or for a timeout, or stops it if no data is `outstanding`.
#[inline(always)]
pub(super) fn rearm(
    rto: &mut RtoTimer,
    tracking: &mut Tracking,
    outstanding: bool,
    now: Instant,
    anew: bool,
    probes: bool,
    profile: &Profile,
) {
    if !outstanding {
        rto.stop();
        tracking.timer = Timer::Timeout;
        return;
    }
    let since_first = if probes { !anew } else { tracking.timer != Timer::Timeout };
    let first = if since_first { tracking.segments.first_left() } else { None };
    let timeout = |rto| first.map_or(rto, |first| first.saturating_add(rto).saturating_since(now));
    let wait = if probes {
        tracking.timer = Timer::Probe;
        let probe = tracking.probe_timeout(rto.srtt(), profile);
        // No timeout is shorter than `min_rto`.
        if probe <= timeout(profile.min_rto) {
            tracking.probe_set = now;
            probe
        } else {
            match timeout(rto.rto(profile)) {
                Span::ZERO => probe, // as in Linux: the timeout has been due since before the probe was
                timeout => probe.min(timeout),
            }
        }
    } else {
        tracking.timer = Timer::Timeout;
        timeout(rto.rto(profile))
    };
    rto.arm_by_ticks(now, wait, profile);
}
