//! The choice of what an endpoint sends.

use aqmlab_units::{Ecn, Instant};

use super::{
    CLOSING, DUE, ENDLESS, Endpoint, HANDSHAKE_ACK, LIMITED, LONE_FIN, REFLECTING, RESET, RETRANSMISSION,
    SELECTIVE,
};
use crate::congestion::Pause;
use crate::connection::State;
use crate::profile::{
    Fin, HandshakeAck, IdleRestart, NagleRule, Profile, PromptAck, Recovery, RttArithmetic,
};
use crate::sack::BLOCK_BYTES;
use crate::segment::{Extras, Flags, Segment};
use crate::sequence::to_wire;
use crate::stamps::{self, Stamps};

impl Endpoint {
    /// Returns the next segment to send, or `None` if there is none.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if self.notes.any(DUE) || !self.state.is_synchronised() {
            return self.transmit_due(now, profile);
        }
        self.transmit_ordinary(now, profile)
    }

    /// Does the same as [`Endpoint::poll_transmit`], but faster for a sender that [lists its
    /// segments](Profile::lists_segments).
    #[inline(always)]
    pub fn poll_transmit_by_segments(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        let by_list = self.notes.any(SELECTIVE) && !self.notes.any(DUE & !SELECTIVE);
        if by_list && self.state.is_synchronised() {
            debug_assert!(self.tracks(profile), "with such a profile, only a list selects segments");
            self.transmit_listed(now, profile)
        } else {
            self.transmit_otherwise(now, profile)
        }
    }

    /// Returns true if it is already known that [`Endpoint::poll_transmit_by_segments`] would return nothing,
    /// which is the case after the last segment that the window permits.
    #[inline(always)]
    pub fn has_ended_burst(&self) -> bool {
        self.burst == 0 && !self.notes.any(DUE & !SELECTIVE) && !self.receiver.owes_ack()
    }

    #[cold]
    #[inline(never)]
    fn transmit_otherwise(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        self.poll_transmit(now, profile)
    }

    /// Returns the segment that is due or, if there is a list of segments, the one that the list
    /// permits.
    #[cold] // keeps the code path of other senders short
    fn transmit_due(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if self.notes.any(REFLECTING) {
            return self.reflecting(|endpoint| endpoint.poll_transmit(now, profile), profile);
        }
        let seldom = self.notes.any(DUE & !SELECTIVE) || !self.state.is_synchronised();
        if seldom || !self.tracks(profile) {
            return self.transmit_seldom(now, profile);
        }
        self.transmit_listed(now, profile)
    }

    /// Returns the segment that the list of segments permits, or a separate acknowledgment if it
    /// permits none.
    #[inline(always)]
    fn transmit_listed(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if self.burst > 0 {
            if self.sends_calmly(profile) {
                if let Some(segment) = self.transmit_calmly(now, profile) {
                    return Some(segment);
                }
            } else if let Some(segment) = self.transmit_by_segments(now, profile) {
                return Some(segment);
            }
        }
        if self.receiver.owes_ack() { self.ack_beside_list(profile) } else { None }
    }

    /// Returns a pure acknowledgment, for an endpoint that keeps a list of segments.
    #[inline(never)]
    fn ack_beside_list(&mut self, profile: &Profile) -> Option<Segment> {
        Some(self.pure_ack(profile))
    }

    /// Returns the next segment that does not wait for the sender's delay ([`Profile::send_jitter`]): an
    /// acknowledgment, a SYN-ACK, a RST, a fast retransmission or a segment of limited transmit. Returns
    /// `None` if there is no such segment. A host with such a delay first requests these segments, then asks
    /// whether there [are more](Endpoint::wants_to_send), and requests the rest after the delay.
    #[cold]
    pub fn poll_prompt(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if self.notes.any(REFLECTING) {
            return self.reflecting(|endpoint| endpoint.poll_prompt(now, profile), profile);
        }
        if !self.state.is_synchronised() && self.state != State::SynSent || self.notes.any(RESET) {
            return self.transmit_seldom(now, profile);
        }
        if self.state == State::SynSent {
            return None;
        }
        if let Some(segment) = self.transmit_urgent(now, profile) {
            return Some(segment);
        }
        // As in ns-2, the first data acknowledges the SYN-ACK; no pure acknowledgment leaves while
        // that data is being delayed.
        let answers = profile.handshake_ack == HandshakeAck::Piggyback && self.sent() == 1 && self.has_data();
        if answers && self.receiver.next() == 1 { None } else { self.owed_ack(profile) }
    }

    /// Returns whether [`Endpoint::poll_transmit`] would return a SYN or data now.
    #[cold]
    pub fn wants_to_send(&mut self, profile: &Profile) -> bool {
        match self.state {
            State::SynSent => self.next() == 0,
            state if !state.is_synchronised() || self.ecn.is_waiting() || self.burst == 0 => false,
            _ if self.tracks(profile) => self.wants_to_send_by_segments(profile),
            _ if self.notes.any(SELECTIVE) => self.wants_to_send_selectively(profile),
            _ => self.has_data() && self.fits(self.usable_window(0, profile), profile),
        }
    }

    /// Ends the sender's delay: segments that an arrival has released may leave now.
    pub fn release(&mut self, profile: &Profile) {
        self.burst = profile.max_burst;
    }

    /// Returns data, or a separate acknowledgment if no data may leave.
    #[inline(always)]
    fn transmit_ordinary(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if self.burst > 0
            && self.has_data()
            && let Some(segment) = self.transmit_data(now, profile)
        {
            return Some(segment);
        }
        self.owed_ack(profile)
    }

    /// Returns new data, if the windows permit it.
    #[inline(always)]
    fn transmit_data(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if self.ecn.is_waiting() {
            return None;
        }
        self.restart_after_idle(now, profile);
        let window = self.usable_window(0, profile);
        if !self.fits(window, profile) {
            return None;
        }
        let segment = self.new_data(now, profile);
        self.burst -= 1;
        let following = self.flight + self.segment_len(self.next(), profile);
        if u64::from(following) > window {
            self.burst = 0; // no room left: whatever opens the window starts a new burst
        }
        Some(segment)
    }

    /// Returns the next segment if it is urgent, or if it opens or closes a connection.
    #[cold]
    fn transmit_seldom(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if self.notes.take(RESET) {
            self.troubles.note().counts.control_segments += 1;
            let mut segment = self.control(Flags::RST | Flags::ACK, self.next(), profile);
            segment.ecn = code_point(self.ecn.agreed() && profile.ect_on_reset);
            return Some(segment);
        }
        match self.state {
            State::Closed | State::Listen => None,
            State::SynSent | State::SynReceived => {
                let waits = self.state == State::SynReceived && !profile.answer_repeated_syn;
                let syn = self.transmit_syn(now, profile);
                if waits { syn } else { syn.or_else(|| self.owed_ack(profile)) }
            }
            _ => self.transmit_synchronised(now, profile),
        }
    }

    /// Returns the SYN or SYN-ACK, if that is to be sent next.
    fn transmit_syn(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if self.next() > 0 {
            return None;
        }
        let flags = match self.state {
            State::SynSent => self.ecn.syn_flags(profile),
            _ => self.ecn.syn_ack_flags(),
        };
        let again = self.sent() > 0;
        (self.flight, self.unacked) = (1, 1);
        if again {
            self.troubles.note().counts.syn_retransmissions += 1;
            if !profile.timestamps {
                self.rto.stop_timing();
            }
        } else {
            self.rto.time_segment(now, 1);
        }
        // The sender's delay holds back the SYN, but not its timer.
        let armed = !profile.send_jitter.is_zero() && self.rto.is_running();
        if (self.state == State::SynSent || profile.syn_ack_timer) && !armed {
            self.rto.start(now, profile);
        }
        self.last_activity = now;
        let mut segment = self.control(flags, 0, profile);
        let permits_sack = match self.state {
            State::SynSent => profile.recovery == Recovery::Sack,
            _ => self.uses_sack(),
        };
        segment.extras = segment.extras.with_if(Extras::SACK_PERMITTED, permits_sack);
        let capable = match self.state {
            State::SynSent => self.ecn.asks(profile) && profile.ect_on_syn,
            _ => self.ecn.agreed() && profile.ect_on_syn_ack,
        };
        segment.ecn = code_point(capable);
        if self.state == State::SynReceived && self.ecn.is_accurate() {
            segment.ecn = self.scalable(segment.ecn, profile);
            self.accurate_syn_ack(&mut segment, again, profile);
        }
        if again {
            segment.extras = self.stamp(now, segment.extras, profile);
        }
        Some(segment)
    }

    /// Returns the next segment in a synchronised state: an urgent one first, then data, then a
    /// separate acknowledgment.
    fn transmit_synchronised(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if let Some(segment) = self.transmit_urgent(now, profile) {
            return Some(segment);
        }
        if profile.has_packet_numbers() {
            return self.transmit_by_packets(now, profile);
        }
        if self.notes.any(SELECTIVE) && self.tracks(profile) {
            return self.transmit_listed(now, profile);
        }
        if self.notes.any(SELECTIVE) && !self.ecn.is_waiting() {
            return self.transmit_selectively(now, profile).or_else(|| self.owed_ack(profile));
        }
        self.transmit_ordinary(now, profile)
    }

    /// Returns a fast retransmission, a segment of limited transmit, or an acknowledgment that must precede
    /// any data.
    #[cold]
    fn transmit_urgent(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if self.notes.take(HANDSHAKE_ACK) {
            let numbered = profile.has_packet_numbers();
            return Some(if numbered { self.packet_ack(now, profile) } else { self.urgent_ack(profile) });
        }
        if self.ecn.is_waiting() {
            return None;
        }
        if self.notes.take(RETRANSMISSION) {
            return Some(self.retransmit_first(now, profile));
        }
        let extra = self.troubles.get().recovery.due_at;
        if self.notes.take(LIMITED) && self.fits(self.usable_window(extra, profile), profile) {
            let segment = self.new_data(now, profile);
            self.troubles.note().recovery.sent_limited(segment.len);
            self.unsettled = true;
            return Some(segment);
        }
        None
    }

    /// The host must call this before it notifies the application of what has arrived. An acknowledgment that
    /// is due at this point then precedes the application's answer, unless waiting data carries it
    /// ([`Profile::prompt_ack`]).
    pub fn acknowledge_apart(&mut self, profile: &Profile) {
        if profile.prompt_ack == PromptAck::Apart && self.receiver.owes_ack() && !self.has_data() {
            self.notes.set(HANDSHAKE_ACK);
        }
    }

    /// Returns whether there is anything to send at `next`, either a byte or the FIN.
    #[inline]
    pub(super) fn has_data(&self) -> bool {
        let next = self.next();
        next < self.stream_end || (self.notes.any(CLOSING) && next == self.stream_end)
    }

    /// Returns the number of bytes that may be in flight according to both the congestion window,
    /// enlarged by `extra` segments, and the other side's window.
    #[inline]
    pub(super) fn usable_window(&self, extra: u8, profile: &Profile) -> u64 {
        let segments = (self.usable_segments(profile) + u64::from(extra)).min(u64::from(profile.max_window));
        (segments * u64::from(profile.mss)).min(u64::from(self.peer_window))
    }

    /// Returns the number of segments that may be in flight according to the congestion window,
    /// inflated in fast recovery.
    #[inline]
    pub(super) fn usable_segments(&self, profile: &Profile) -> u64 {
        let inflation = if self.unsettled { self.troubles.get().recovery.inflation() } else { 0 };
        self.window.usable(inflation, profile)
    }

    /// Returns whether the segment at `next` fits into `window` bytes.
    #[inline]
    pub(super) fn fits(&self, window: u64, profile: &Profile) -> bool {
        let len = self.segment_len(self.next(), profile);
        if len == 0 {
            // A separate FIN takes no space in the window.
            let waits = profile.fin == Fin::Apart && self.flight > 0;
            return self.has_data() && self.state.is_synchronised() && !waits;
        }
        if u64::from(self.flight + len) > window || (len == 1 && profile.hold_last_byte && self.flight > 0) {
            return false;
        }
        let held_back = profile.nagle && len < profile.mss && !self.notes.any(CLOSING) && self.flight > 0;
        !(held_back && self.is_nagled(profile))
    }

    /// Returns whether a partial segment has to wait for the acknowledgment of outstanding data.
    #[cold]
    fn is_nagled(&self, profile: &Profile) -> bool {
        match profile.nagle_rule {
            NagleRule::Minshall if self.tracks(profile) => self.partial_is_outstanding(),
            NagleRule::Rfc1122 | NagleRule::Minshall => true,
        }
    }

    /// Returns the payload length of the segment at `from`.
    #[inline]
    pub(super) fn segment_len(&self, from: u64, profile: &Profile) -> u32 {
        self.stream_end.saturating_sub(from).min(u64::from(profile.mss)) as u32
    }

    #[inline(always)]
    pub(super) fn new_data(&mut self, now: Instant, profile: &Profile) -> Segment {
        let (segment, end) = self.data(now, self.flight, u32::MAX, profile);
        self.flight = end;
        segment
    }

    /// Does the same as [`Endpoint::new_data`] for a full segment beyond all data sent so far,
    /// while data is outstanding. Returns `None`, and changes nothing, if the next segment is not
    /// of this kind, may be the last one, or does not fit.
    #[inline(always)]
    pub(super) fn new_full_data(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        let (from, end) = (self.next(), self.flight + profile.mss);
        let full = from + u64::from(profile.mss) < self.stream_end && self.flight == self.unacked;
        if !full || u64::from(end) > self.reach(profile) || !self.rto.is_running() {
            return None;
        }
        self.rto.time_segment(now, self.una + u64::from(end));
        (self.flight, self.unacked) = (end, end);
        if profile.idle_restart.begins_with_sending() {
            self.last_activity = now;
        }
        let mut segment = self.control(Flags::ACK, from, profile);
        self.tally.data_segments += 1;
        segment.len = profile.mss;
        segment.ecn = code_point(self.ecn.ect(false, false, profile));
        if self.ecn.has_news() {
            segment.flags = segment.flags.with_if(Flags::CWR, self.ecn.take_cwr(false, profile));
        }
        Some(segment)
    }

    /// Builds and records the segment that begins `ahead` sequence numbers after `una`, with at most `most`
    /// bytes of the stream. Also returns the distance from `una` to the segment's end.
    #[inline(always)] // compiled once for new data, and once for rare cases
    pub(super) fn data(&mut self, now: Instant, ahead: u32, most: u32, profile: &Profile) -> (Segment, u32) {
        let from = self.una + u64::from(ahead);
        let len = self.segment_len(from, profile).min(most);
        let last = from + u64::from(len) == self.stream_end;
        let fin = last && self.closes_with(len, profile);
        let end = ahead + len + u32::from(fin);
        if self.unacked == 0 || !self.rto.is_running() {
            self.rto.start(now, profile);
        }
        let again = ahead < self.unacked;
        if again {
            self.count_again(from, len);
        } else {
            self.rto.time_segment(now, self.una + u64::from(end));
        }
        self.unacked = self.unacked.max(end);
        if fin {
            self.enter(now, self.state.fin_sent(), profile);
        }
        if profile.idle_restart.begins_with_sending() {
            self.last_activity = now;
        }
        let mut segment = self.control(Flags::ACK.with_if(Flags::FIN, fin), from, profile);
        if len > 0 {
            self.tally.data_segments += 1;
            segment.len = len;
            segment.ecn = code_point(self.ecn.ect(again, fin, profile));
            if self.ecn.has_news() {
                segment.flags = segment.flags.with_if(Flags::CWR, self.ecn.take_cwr(again, profile));
            }
        } else {
            segment.ecn = self.code_point_of_bare_fin(again, profile);
            self.count_empty(fin && !again);
            self.note_cwr_without_data(&mut segment, profile);
        }
        if again {
            segment.extras = self.stamp(now, segment.extras, profile);
        }
        (segment, end)
    }

    #[cold]
    #[inline(never)]
    fn code_point_of_bare_fin(&self, again: bool, profile: &Profile) -> Ecn {
        code_point(profile.ect_on_bare_fin && self.ecn.ect(again, true, profile))
    }

    /// Gives a segment with these `extras` its time stamp. Here and in [`Endpoint::report`], the segment
    /// itself is not passed: otherwise, all segments would be built in memory instead of registers.
    #[cold]
    pub(super) fn stamp(&mut self, now: Instant, extras: Extras, profile: &Profile) -> Extras {
        if profile.timestamps {
            let echo = self.receiver.echo(&self.troubles);
            self.troubles.note().stamps = Stamps { value: Some(stamps::stamp(now)), echo };
        }
        extras.with_if(Extras::STAMPED, profile.timestamps)
    }

    /// Returns what an acknowledgment that has more to report than its number says in options: the bytes of its
    /// SACK option, and extras.
    #[cold]
    fn report(&mut self, profile: &Profile) -> (u8, Extras) {
        let echo = self.receiver.echo(&self.troubles);
        if echo.is_some() {
            self.troubles.note().stamps = Stamps { value: None, echo };
        }
        (self.sack_len(profile), Extras::NONE.with_if(Extras::STAMPED, echo.is_some()))
    }

    /// Returns whether the last segment of the stream, of `len` bytes, carries the FIN.
    #[cold]
    fn closes_with(&self, len: u32, profile: &Profile) -> bool {
        let closing = self.notes.any(CLOSING) && self.stream_end != ENDLESS;
        let apart = profile.fin == Fin::Apart && len > 0;
        closing && (!apart || self.unacked == 0 || self.sent() > self.stream_end)
    }

    /// Counts a segment with `len` bytes at `from`, some or all of which have been sent before.
    #[cold]
    fn count_again(&mut self, from: u64, len: u32) {
        let sent = self.sent().min(self.stream_end);
        let end = self.sent();
        let trouble = self.troubles.note();
        let several = trouble.loss_window.again(from, end);
        let counts = &mut trouble.counts;
        counts.multiple_loss_windows += u32::from(several);
        counts.retransmitted += 1;
        counts.bytes_retransmitted += u64::from(len);
        counts.bytes_repeated += sent.saturating_sub(from).min(u64::from(len));
    }

    /// Counts a segment without payload at the end of the stream.
    #[cold]
    fn count_empty(&mut self, first_fin: bool) {
        if first_fin {
            self.notes.set(LONE_FIN);
        } else {
            self.troubles.note().counts.control_segments += 1;
        }
    }

    /// Shrinks the window after a pause, before anything is sent.
    #[inline]
    pub(super) fn restart_after_idle(&mut self, now: Instant, profile: &Profile) {
        if self.unacked == 0 && self.una > 1 {
            self.restart_window(now, profile);
        }
    }

    #[cold]
    fn restart_window(&mut self, now: Instant, profile: &Profile) {
        if profile.samples() && !self.has_data() || self.waits_for_window(profile) {
            return;
        }
        if profile.remembers() {
            let rates = self.troubles.tracking().and_then(|tracking| tracking.segments.rates.as_ref());
            let app_limited = rates.is_some_and(|rates| rates.is_app_limited());
            let pause = Pause { now, left: self.last_activity, app_limited };
            let Endpoint { window, troubles, .. } = self;
            troubles.control().resumed(pause, window, profile);
        }
        if profile.samples() {
            return; // the control alone determines the window
        }
        let idle = now.saturating_since(self.last_activity);
        match profile.idle_restart {
            IdleRestart::Off => {}
            // RFC 5681, 4.1: "has not sent data in an interval exceeding the retransmission timeout"
            IdleRestart::Rfc5681 => {
                if idle > self.rto.rto(profile) {
                    self.window.restart(profile.initial_window);
                }
            }
            IdleRestart::WithoutLeast => {
                let has_bytes = self.next() < self.stream_end; // not only a FIN
                let idle = match profile.rtt_arithmetic {
                    RttArithmetic::Ns2 => self.clock().passes(self.last_activity, idle, profile),
                    RttArithmetic::Rfc6298 | RttArithmetic::Linux => idle,
                };
                if has_bytes && idle > self.rto.unbounded_rto(profile) {
                    self.window.set(profile.initial_window as u32);
                    self.ecn.reduced();
                }
            }
            IdleRestart::Rfc2861 => {
                let rto = self.rto.rto(profile);
                if idle > rto {
                    let timeouts = idle.as_ns() / rto.as_ns().max(1);
                    self.window.validate(timeouts, profile.initial_window, profile);
                    self.last_activity = now; // RFC 2861, 3.2: T_last, so that a pause counts once
                }
            }
            IdleRestart::Ns2 => {
                if idle >= self.rto.rto(profile) {
                    self.pause_in_ns2(profile);
                }
            }
            IdleRestart::FreeBsd => {
                if idle >= self.rto.rto(profile) {
                    self.window.begin_again(profile.initial_window);
                }
            }
        }
    }

    /// Notes that an acknowledgment has arrived. In ns-2, whose timer keeps running, a pause begins with the
    /// last acknowledgment; according to RFC 5681, it begins with the last transmission.
    #[inline]
    pub(super) fn note_activity_on_ack(&mut self, now: Instant, profile: &Profile) {
        if profile.idle_restart == IdleRestart::Ns2 {
            self.last_activity = now;
        }
    }

    /// Notes that a segment of any kind has arrived: in FreeBSD, a pause begins with the last one.
    #[inline(always)]
    pub(super) fn note_any_arrival(&mut self, now: Instant, profile: &Profile) {
        if profile.idle_restart == IdleRestart::FreeBsd {
            self.last_activity = now;
        }
    }

    /// Returns the length, in bytes, of the next segment's SACK option; 0 if there is nothing to
    /// report, or if SACK is not in use.
    ///
    /// DEVIATES from RFC 6691, section 2: in a segment with payload, the option makes the segment larger and
    /// leaves the payload as it is. Otherwise, a host that both sends and receives, with losses in both
    /// directions, would shift its segments' boundaries each time an option appears or changes.
    #[cold]
    fn sack_len(&mut self, profile: &Profile) -> u8 {
        if !self.uses_sack() {
            return 0;
        }
        let blocks = self.receiver.report_blocks(&mut self.troubles, profile);
        if blocks == 0 {
            return 0;
        }
        (profile.sack_overhead + blocks * BLOCK_BYTES) as u8
    }

    /// Returns a separate acknowledgment, if one is due.
    #[inline]
    fn owed_ack(&mut self, profile: &Profile) -> Option<Segment> {
        if !self.receiver.owes_ack() {
            return None;
        }
        let mut segment = self.pure_ack(profile);
        self.note_cwr_without_data(&mut segment, profile);
        Some(segment)
    }

    /// Lets a segment without data carry CWR, if the profile permits it.
    #[inline]
    fn note_cwr_without_data(&mut self, segment: &mut Segment, profile: &Profile) {
        if profile.cwr_without_data && self.ecn.has_news() {
            segment.flags = segment.flags.with_if(Flags::CWR, self.ecn.take_cwr(false, profile));
        }
    }

    #[inline]
    pub(super) fn pure_ack(&mut self, profile: &Profile) -> Segment {
        self.tally.acks += 1;
        self.control(Flags::ACK, self.sent(), profile)
    }

    /// Returns the acknowledgment that must precede any data. If that acknowledgment is for the
    /// segments before a change of CE, the acknowledgment of the segment with the change is still
    /// due (RFC 8257, 3.2).
    #[cold]
    fn urgent_ack(&mut self, profile: &Profile) -> Segment {
        let mut segment = self.pure_ack(profile);
        let due = self.troubles.get().quick.is_some();
        let quick = due.then(|| self.troubles.note()).and_then(|trouble| trouble.quick.as_mut());
        if let Some(ack) = quick.and_then(|quick| quick.earlier.take()) {
            let marked = segment.flags.has(Flags::ECE);
            (segment.ack, segment.flags) = (ack, Flags::ACK.with_if(Flags::ECE, !marked));
            self.receiver.ack_now();
        }
        segment
    }

    /// Returns a segment without payload at `from`; with the ACK bit, it acknowledges everything that
    /// has arrived in order.
    #[inline(always)]
    fn control(&mut self, flags: Flags, from: u64, profile: &Profile) -> Segment {
        let mut segment = Segment {
            seq: to_wire(profile.initial_sequence, from),
            ack: 0,
            len: 0,
            flags,
            window: profile.receive_window,
            ecn: Ecn::NotEct,
            extras: Extras::NONE,
            sack_len: 0,
        };
        if flags.has(Flags::ACK) {
            segment.ack = self.receiver.next_on_wire();
            if !self.receiver.is_orderly() {
                (segment.sack_len, segment.extras) = self.report(profile);
            }
            if self.ecn.has_news() && !flags.has(Flags::SYN) {
                segment.flags = flags.with_if(Flags::ECE, self.ecn.take_echo());
            }
            self.receiver.ack_sent();
        }
        segment
    }
}

/// Returns the code point of a segment that is ECN-capable or not.
#[inline(always)]
pub(super) fn code_point(capable: bool) -> Ecn {
    if capable { Ecn::Ect0 } else { Ecn::NotEct }
}
