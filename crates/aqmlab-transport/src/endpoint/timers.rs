//! Timers of an endpoint.

use aqmlab_units::Instant;

use super::{Endpoint, LIMITED, NO_BURST_LIMIT, RESET, RETRANSMISSION, SELECTIVE};
use crate::connection::State;
use crate::event::Ending;
use crate::profile::{EcnAtOne, EcnFallback, Profile, ReductionBase};

impl Endpoint {
    /// Carries out the actions due at `now`. The host must call this at or soon after
    /// [`Endpoint::deadline`]; early calls do nothing.
    pub fn on_timer(&mut self, now: Instant, profile: &Profile) {
        let due = self.receiver.deadline();
        if self.receiver.on_timer(now) && profile.delayed_ack_adapts {
            self.note_waited_ack(due, profile);
        }
        if now < self.rto.deadline() {
            return;
        }
        self.burst = NO_BURST_LIMIT;
        match self.state {
            State::TimeWait => self.finish(Ending::Closed),
            State::SynSent | State::SynReceived => self.on_syn_timeout(now, profile),
            _ if profile.has_packet_numbers() => self.on_packet_timer(now, profile),
            _ => self.on_data_timeout(now, profile),
        }
    }

    /// Notes that a delayed acknowledgment has waited for its full delay, which ended at the time
    /// `at`.
    #[cold]
    fn note_waited_ack(&mut self, at: Instant, profile: &Profile) {
        let rto = self.rto.rto(profile);
        if let Some(quick) = &mut self.troubles.note().quick
            && !quick.reports_at(at)
        {
            quick.waited(rto, profile);
        }
    }

    /// RFC 6298, 5.5 and 5.7 for the SYN.
    fn on_syn_timeout(&mut self, now: Instant, profile: &Profile) {
        if self.syns_repeated() >= profile.syn_retries {
            self.finish(Ending::Aborted);
            return;
        }
        if self.state == State::SynSent && self.syns_repeated() < profile.syn_linear_timeouts {
            self.rto.keep_timeout();
        } else {
            self.rto.back_off(profile);
        }
        let (window, algorithm) = self.congestion(profile);
        window.syn_timed_out(algorithm, profile);
        // RFC 3168, 6.1.1.1; RFC 9768, 3.1.4.1: AccECN is requested once more.
        let falls_back =
            profile.ecn_fallback != EcnFallback::Off && (!profile.accurate || self.syns_repeated() > 0);
        if self.state == State::SynSent && falls_back {
            self.ecn.refuse();
        }
        self.rto.start(now, profile);
        self.flight = 0; // the SYN again
    }

    /// RFC 6298, 5.4 to 5.6: retransmits the earliest segment, backs off the timer, and starts over
    /// from that segment.
    fn on_data_timeout(&mut self, now: Instant, profile: &Profile) {
        let waited = self.ecn.stop_waiting();
        if self.tracks(profile) && self.timer_was_no_timeout(now, profile) {
            return;
        }
        if self.unacked == 0 {
            // Without outstanding data, the timer runs only if an ECN echo has stopped the sender,
            // which may now continue. In ns-2, the ACK that opens a window closed by a mark leaves
            // the timer running.
            debug_assert!(waited || profile.ecn_at_one == EcnAtOne::Ns2, "a timer without a reason");
            self.rto.stop();
            if self.window.is_shut() {
                self.pause_in_ns2(profile);
            }
            return;
        }
        let before = if self.rto.has_fired() { self.troubles.get().recovery.timeouts_in_a_row } else { 0 };
        if u32::from(before) >= profile.data_retries {
            self.notes.set(RESET);
            self.finish(Ending::Aborted);
            return;
        }
        if self.tracks(profile) {
            self.troubles.note().recovery.timeouts_in_a_row = before.saturating_add(1);
            self.time_out_by_segments(now, before > 0, profile);
            return;
        }
        let (una, sent) = (self.una, self.sent());
        let outstanding = self.outstanding(self.flight_of_timeout(profile));
        let trouble = self.troubles.note();
        trouble.counts.timeouts += 1;
        trouble.recovery.timeouts_in_a_row = before.saturating_add(1);
        let reduced = trouble.recovery.timeout(una, sent, profile);
        if let Some(board) = &mut trouble.board {
            board.clear(una);
        }
        self.unsettled = true;
        let (window, algorithm) = self.congestion(profile);
        window.timed_out(algorithm, outstanding, before > 0, reduced, profile);
        self.ecn.reduced();
        self.rto.back_off(profile);
        self.rto.stop_timing();
        self.rto.arm(now, profile);
        self.notes.clear(RETRANSMISSION | LIMITED | SELECTIVE);
        self.flight = 0;
    }

    /// Returns the number of bytes on which the reduction at a timeout is based. Bytes that have
    /// left the network according to SACK do not count if reductions are based on
    /// [`ReductionBase::Flight`].
    fn flight_of_timeout(&self, profile: &Profile) -> u32 {
        let board = self.troubles.get().board.as_ref();
        let sacked = match profile.reduction_base {
            ReductionBase::Flight => board.map_or(0, |board| board.sacked_below(self.next())),
            ReductionBase::Outstanding | ReductionBase::Window | ReductionBase::CongestionWindow => 0,
        };
        self.flight - sacked as u32
    }

    /// Does what ns-2 does when its timer fires while nothing is outstanding: the window becomes
    /// one segment, as after a timeout.
    pub(super) fn pause_in_ns2(&mut self, profile: &Profile) {
        self.window.restart(1.0);
        let sent = self.sent();
        self.troubles.note().recovery.idle(sent, profile);
        self.unsettled = true;
        self.ecn.reduced();
    }
}
