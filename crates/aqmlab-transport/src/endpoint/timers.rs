//! What happens when nothing arrives.

use aqmlab_units::Instant;

use super::{Endpoint, NO_BURST_LIMIT};
use crate::connection::State;
use crate::event::End;
use crate::profile::Profile;

impl Endpoint {
    /// The time `now` has come: call at or after [`Endpoint::deadline`]. Early calls do nothing.
    pub fn on_timer(&mut self, now: Instant, profile: &Profile) {
        self.receiver.on_timer(now);
        if now < self.rto.deadline() {
            return;
        }
        self.burst = NO_BURST_LIMIT;
        match self.state {
            State::TimeWait => self.finish(End::Closed),
            State::SynSent | State::SynReceived => self.on_syn_timeout(profile),
            _ => self.on_data_timeout(now, profile),
        }
    }

    /// RFC 6298, 5.5 and 5.7 for the SYN.
    fn on_syn_timeout(&mut self, profile: &Profile) {
        if self.counters.syn_retransmissions >= profile.syn_retries {
            self.finish(End::Aborted);
            return;
        }
        self.rto.back_off(profile);
        self.window.syn_timeout(profile);
        self.next = 0;
    }

    /// RFC 6298, 5.4 to 5.6: retransmit the earliest segment, back off, start over from there.
    fn on_data_timeout(&mut self, now: Instant, profile: &Profile) {
        let waited = self.ecn.stop_waiting();
        if self.una == self.sent {
            // Only a sender that an ECN echo has stopped keeps a timer without data: it may go on.
            debug_assert!(waited || self.window.is_shut(), "a timer without a reason");
            self.rto.stop();
            if self.window.is_shut() {
                self.pause_in_ns2(profile);
            }
            return;
        }
        if self.rto.timeouts_in_a_row() >= profile.data_retries {
            self.due.reset = true;
            self.finish(End::Aborted);
            return;
        }
        self.counters.timeouts += 1;
        let again = self.rto.timeouts_in_a_row() > 0;
        let flight = self.outstanding();
        let reduced = self.recovery.timeout(self.una, self.sent, profile);
        self.window.timeout(flight, again, reduced, profile);
        self.ecn.reduced();
        self.rto.back_off(profile);
        self.rto.stop_timing();
        self.rto.arm(now, profile);
        self.due.retransmission = false;
        self.due.limited = None;
        self.next = self.una;
    }

    /// What ns-2's timer does with nothing outstanding: one segment, as after a timeout.
    pub(super) fn pause_in_ns2(&mut self, profile: &Profile) {
        self.window.restart(1.0);
        self.recovery.idle(self.sent, profile);
        self.ecn.reduced();
    }
}
