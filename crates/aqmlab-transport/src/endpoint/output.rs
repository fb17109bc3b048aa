//! What leaves.

use aqmlab_units::Instant;

use super::{ENDLESS, Endpoint};
use crate::connection::State;
use crate::ecn::ClassicEcn;
use crate::profile::{IdleRestart, Profile};
use crate::segment::{Flags, Segment};
use crate::sequence::to_wire;

impl Endpoint {
    /// The next segment to send, until `None`.
    pub fn poll_transmit(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if core::mem::take(&mut self.due.reset) {
            return Some(self.control(Flags::RST | Flags::ACK, self.next, profile));
        }
        match self.state {
            State::Closed | State::Listen => None,
            State::SynSent | State::SynReceived => self.transmit_syn(now, profile),
            _ => self.transmit(now, profile),
        }
    }

    /// SYN or SYN-ACK, when `next` stands on it.
    fn transmit_syn(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if self.next > 0 {
            return None;
        }
        let flags = match self.state {
            State::SynSent => ClassicEcn::syn_flags(profile),
            _ => self.ecn.syn_ack_flags(),
        };
        let again = self.sent > 0;
        self.counters.syn_retransmissions += u32::from(again);
        (self.next, self.sent) = (1, 1);
        if again {
            self.rto.stop_timing();
        } else {
            self.rto.time_segment(now, 1);
        }
        self.rto.arm(now, profile);
        self.last_activity = now;
        let mut segment = self.control(flags, 0, profile);
        segment.ect = flags.has(Flags::ACK) && self.ecn.agreed() && profile.ect_on_syn_ack;
        Some(segment)
    }

    /// In a synchronised state: what is urgent, then data, then an acknowledgment of its own.
    fn transmit(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if core::mem::take(&mut self.due.handshake_ack) {
            return Some(self.pure_ack(profile));
        }
        if !self.ecn.is_waiting() {
            if core::mem::take(&mut self.due.retransmission) {
                return Some(self.data(now, self.una, profile));
            }
            if let Some(nth) = self.due.limited.take()
                && self.fits(u64::from(nth.get()), profile)
            {
                let segment = self.new_data(now, profile);
                self.recovery.sent_limited(segment.len);
                return Some(segment);
            }
            if self.burst > 0 && self.has_data() {
                self.restart_after_idle(now, profile);
                if self.fits(0, profile) {
                    self.burst -= 1;
                    return Some(self.new_data(now, profile));
                }
            }
        }
        self.receiver.owes_ack().then(|| self.pure_ack(profile))
    }

    /// Is there anything to send at `next`: a byte, or the FIN?
    #[inline]
    fn has_data(&self) -> bool {
        self.next < self.stream_end || (self.closing && self.next == self.stream_end)
    }

    /// Does the segment at `next` fit into the windows, the congestion window enlarged by `extra` segments?
    #[inline]
    fn fits(&self, extra: u64, profile: &Profile) -> bool {
        let len = self.segment_len(self.next, profile);
        if len == 0 {
            // A FIN of its own; it takes no window.
            return self.has_data() && self.state.is_synchronised();
        }
        let mss = u64::from(profile.mss);
        let segments = (self.window.usable(profile) + extra).min(u64::from(profile.max_window));
        let window = (segments * mss).min(u64::from(self.peer_window));
        let partial = len < mss && !self.closing && profile.nagle;
        self.outstanding() + len <= window && !(partial && self.outstanding() > 0)
    }

    /// Payload of the segment at `from`.
    #[inline]
    fn segment_len(&self, from: u64, profile: &Profile) -> u64 {
        (self.stream_end - from.min(self.stream_end)).min(u64::from(profile.mss))
    }

    fn new_data(&mut self, now: Instant, profile: &Profile) -> Segment {
        let from = self.next;
        let segment = self.data(now, from, profile);
        self.next = from + segment.sequence_len();
        segment
    }

    /// The segment at `from` with what the stream holds there, and its bookkeeping.
    fn data(&mut self, now: Instant, from: u64, profile: &Profile) -> Segment {
        let len = self.segment_len(from, profile);
        let fin = self.closing && from + len == self.stream_end && self.stream_end != ENDLESS;
        let end = from + len + u64::from(fin);
        let again = from < self.sent;
        if self.una == self.sent {
            self.rto.arm(now, profile);
        } else {
            self.rto.arm_if_idle(now, profile);
        }
        if again {
            self.counters.retransmitted += 1;
            self.counters.bytes_retransmitted += len;
        } else {
            self.rto.time_segment(now, end);
        }
        self.sent = self.sent.max(end);
        if fin {
            self.enter(now, self.state.fin_sent(), profile);
        }
        if profile.idle_restart != IdleRestart::Ns2 {
            self.last_activity = now;
        }
        let mut segment = self.control(Flags::ACK.with_if(Flags::FIN, fin), from, profile);
        if len > 0 {
            self.counters.data_segments_sent += 1;
            self.counters.bytes_sent += len;
            segment.len = len as u32;
            segment.ect = self.ecn.ect(again, fin, profile);
            segment.flags = segment.flags.with_if(Flags::CWR, self.ecn.take_cwr(again, profile));
        }
        segment
    }

    /// After a pause the window shrinks before anything is sent.
    #[inline]
    fn restart_after_idle(&mut self, now: Instant, profile: &Profile) {
        if self.una < self.sent || self.una <= 1 {
            return;
        }
        let idle = now.saturating_since(self.last_activity);
        match profile.idle_restart {
            IdleRestart::Off => {}
            // RFC 5681, 4.1: not sent data in an interval exceeding the retransmission timeout
            IdleRestart::Rfc5681 => {
                if idle > self.rto.rto(profile) {
                    self.window.restart(profile.initial_window);
                }
            }
            IdleRestart::Ns2 => {
                if idle >= self.rto.rto(profile) {
                    self.pause_in_ns2(profile);
                }
            }
        }
    }

    /// When the pause that may follow this acknowledgment begins: with the last sending by RFC 5681, with
    /// the last acknowledgment in ns-2, whose timer keeps running.
    #[inline]
    pub(super) fn activity_on_ack(&self, now: Instant, profile: &Profile) -> Instant {
        if profile.idle_restart == IdleRestart::Ns2 { now } else { self.last_activity }
    }

    fn pure_ack(&mut self, profile: &Profile) -> Segment {
        self.counters.acks_sent += 1;
        self.control(Flags::ACK, self.sent, profile)
    }

    /// A segment without payload at `from`; whatever has the ACK bit acknowledges all that has arrived.
    fn control(&mut self, flags: Flags, from: u64, profile: &Profile) -> Segment {
        self.counters.segments_sent += 1;
        let mut segment = Segment {
            seq: to_wire(self.initial, from),
            ack: 0,
            len: 0,
            flags,
            window: profile.receive_window,
            ect: false,
        };
        if flags.has(Flags::ACK) {
            segment.ack = to_wire(self.receiver.initial(), self.receiver.next());
            if !flags.has(Flags::SYN) {
                segment.flags = flags.with_if(Flags::ECE, self.ecn.take_echo());
            }
            self.receiver.ack_sent();
        }
        segment
    }
}
