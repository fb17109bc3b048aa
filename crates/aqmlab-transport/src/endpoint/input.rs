//! Processing of arriving segments (RFC 9293, section 3.10.7).

use alloc::boxed::Box;

use aqmlab_units::{Ecn, Instant};

use super::by_segments::Signs;
use super::{Endpoint, HANDSHAKE_ACK, LIMITED, NO_BURST_LIMIT, RESET, RETRANSMISSION};
use crate::congestion::{Ack, AckReport, Algorithm, Reno};
use crate::connection::State;
use crate::ecn::Feedback;
use crate::event::Ending;
use crate::profile::{
    EcnAtOne, EcnFallback, FastRetransmitGuard, HandshakeAck, Profile, Recovery, RecoveryWindow, SackPipe,
    SynLossWindow, TimeoutSsthresh,
};
use crate::quick::Quick;
use crate::recovery::AckAction;
use crate::sack::Options;
use crate::segment::{Flags, Segment};
use crate::sequence::from_wire;
use crate::stamps::{Stamp, Stamps};

/// Number of segments that are acknowledged individually, starting with a segment whose mark starts
/// an echo, or with one that is not ECN-capable (`quick_acks_again`).
const QUICK_AT_MARK: u32 = 2;

impl Endpoint {
    /// Processes any segment, on the full path.
    pub(super) fn on_any_segment(
        &mut self,
        now: Instant,
        seg: &Segment,
        options: &Options,
        profile: &Profile,
    ) {
        if seg.ecn == Ecn::Ce {
            self.troubles.note().counts.ce_received += 1;
        }
        self.burst = profile.max_burst;
        match self.state {
            State::Closed => self.on_segment_closed(seg, profile),
            State::Listen => self.on_segment_listen(now, seg, options.stamps, profile),
            State::SynSent => self.on_segment_syn_sent(now, seg, options, profile),
            _ => self.on_segment_synchronising(now, seg, options, profile),
        }
    }

    /// RFC 9293, 3.10.7.1: answers any segment for a closed connection with a RST that the other side
    /// accepts.
    fn on_segment_closed(&mut self, seg: &Segment, profile: &Profile) {
        if seg.flags.is_numbered() {
            let answers = self.sent() > 0 && seg.window > 0; // RFC 9000, section 10.3: a stateless reset
            self.notes.put(RESET, answers);
            return;
        }
        let expected = from_wire(profile.initial_sequence, seg.ack, self.una);
        if self.sent() > 0
            && seg.flags.has(Flags::ACK)
            && !seg.flags.has(Flags::RST)
            && let Some(expected) = expected.filter(|e| (self.una..=self.sent()).contains(e))
        {
            self.flight = (expected - self.una) as u32;
            self.notes.set(RESET);
        }
    }

    /// RFC 9293, 3.10.7.2. DEVIATES, here and in SYN-SENT and SYN-RECEIVED: a stray ACK is not answered with
    /// a RST, because both sides are created together, so half-open connections do not occur.
    fn on_segment_listen(&mut self, now: Instant, seg: &Segment, stamps: Stamps, profile: &Profile) {
        if !seg.flags.has(Flags::SYN) || seg.flags.has(Flags::ACK) || seg.flags.has(Flags::RST) {
            return;
        }
        self.receiver.synchronise(seg.seq);
        self.receiver.note_stamp(stamps.value, &mut self.troubles);
        self.peer_window = seg.window;
        self.agree_on_feedback(seg, profile);
        self.negotiate_sack(seg, profile);
        self.enter(now, State::SynReceived, profile);
    }

    /// RFC 9293, 3.10.7.3.
    fn on_segment_syn_sent(&mut self, now: Instant, seg: &Segment, options: &Options, profile: &Profile) {
        let stamps = options.stamps;
        let expected = from_wire(profile.initial_sequence, seg.ack, self.sent());
        let acks_syn = seg.flags.has(Flags::ACK) && expected == Some(1);
        if seg.flags.has(Flags::ACK) && !acks_syn {
            return;
        }
        if seg.flags.has(Flags::RST) {
            if acks_syn && self.ecn.asks(profile) && profile.ecn_fallback == EcnFallback::TimeoutOrReset {
                self.ecn.refuse(); // RFC 3168, 6.1.1.1
                self.flight = 0; // the SYN again
            } else if acks_syn {
                self.finish(Ending::Reset);
            }
            return;
        }
        if !seg.flags.has(Flags::SYN) {
            return;
        }
        self.receiver.synchronise(seg.seq);
        self.receiver.note_stamp(stamps.value, &mut self.troubles);
        self.peer_window = seg.window;
        self.negotiate_sack(seg, profile);
        if !acks_syn {
            // Simultaneous open: answer with a SYN-ACK.
            self.agree_on_feedback(seg, profile);
            self.flight = 0;
            self.enter(now, State::SynReceived, profile);
            return;
        }
        self.learn_feedback(seg, options, profile);
        self.receiver.ack_now();
        // RFC 9768, 3.2.2.1: with AccECN, a pure acknowledgment reports the code point of the SYN-ACK.
        let separate = profile.handshake_ack == HandshakeAck::Separate || self.ecn.is_accurate();
        self.notes.put(HANDSHAKE_ACK, separate);
        self.establish(now, stamps.echo, profile);
        let ns2 = profile.fast_retransmit_guard == FastRetransmitGuard::Ns2;
        if ns2 && profile.ecn_at_one == EcnAtOne::Ns2 && self.ecn.agreed() && self.syns_repeated() > 0 {
            // If the SYN timed out, ns-2's one-way agents take the ECE of an ECN-setup SYN-ACK for a mark.
            let sent = self.sent();
            self.troubles.note().recovery.marked(sent);
            self.ecn.reduced();
            self.ecn.reacted_at_one(true);
        }
    }

    /// Returns how often the SYN or SYN-ACK has been retransmitted.
    pub(super) fn syns_repeated(&self) -> u32 {
        self.troubles.get().counts.syn_retransmissions
    }

    /// Handles the acknowledgment of our SYN, which echoes the time stamp of a retransmission if there is
    /// an `echo`.
    pub(super) fn establish(&mut self, now: Instant, echo: Stamp, profile: &Profile) {
        let again = self.syns_repeated();
        let begins_with_one = match profile.syn_loss_window {
            // RFC 5681, 3.1
            SynLossWindow::Rfc5681 => again > 0,
            SynLossWindow::Linux => {
                let answers_first = profile.timestamps && echo.is_none();
                again > 1 && self.rto.has_fired() && !answers_first
            }
            SynLossWindow::Never => false,
        };
        (self.una, self.flight, self.unacked) = (1, 0, 0); // only the SYN has been sent
        let ambiguous = again > 0 && !profile.timestamps;
        if self.rto.acked(1) {
            match echo {
                _ if again > 0 => self.rto.measured_by_stamp(now, echo, profile),
                _ => self.rto.measured(now, false, self.clock(), profile),
            }
        }
        self.rto.handshake_done(ambiguous, profile);
        self.window.established(begins_with_one || self.own_syn_was_marked(), profile);
        if again > 0 && profile.timeout_ssthresh == TimeoutSsthresh::Inflated {
            self.ecn.reduced(); // in FullTcp, the timeout of a SYN reduces the window like any other
        }
        if self.state == State::SynReceived && self.notes.take(HANDSHAKE_ACK) {
            self.receiver.ack_now();
        }
        self.events.established();
        if profile.has_packet_numbers() {
            self.begin_packets(now, profile);
        } else {
            self.begin_tracking(now, profile);
        }
        self.enter(now, State::Established, profile);
    }

    /// RFC 9293, 3.10.7.4: processes a segment in SYN-RECEIVED or any later state.
    fn on_segment_synchronising(
        &mut self,
        now: Instant,
        seg: &Segment,
        options: &Options,
        profile: &Profile,
    ) {
        let Some(from) = from_wire(self.receiver.initial(), seg.seq, self.receiver.next()) else {
            return;
        };
        if seg.flags.has(Flags::RST) {
            self.on_reset(seg, from, profile);
            return;
        }
        if seg.flags.has(Flags::SYN) {
            self.on_syn_again(seg, options.stamps, profile);
            // A SYN-ACK may acknowledge our SYN in a simultaneous open.
            if self.state != State::SynReceived || !seg.flags.has(Flags::ACK) {
                return;
            }
        }
        if profile.has_packet_numbers() {
            self.on_packet(now, from, seg, options, profile);
            return;
        }
        if !seg.flags.has(Flags::ACK) || profile.paws && self.discards_old(from, seg, options.stamps) {
            return;
        }
        if !self.on_ack(now, seg, options, profile) || self.state == State::Closed {
            return;
        }
        if self.ecn.is_accurate() {
            self.reflect(from, seg, profile);
        }
        if seg.len > 0 || seg.flags.has(Flags::FIN) {
            if options.stamps.value.is_some() || self.receiver.is_echoing() {
                let end = from + seg.sequence_len();
                self.receiver.note_stamp_of_data(from, end, options.stamps.value, &mut self.troubles);
            }
            self.on_payload(now, from, seg, profile);
        }
    }

    /// Discards and acknowledges a segment whose time stamp is older than the latest one in order (RFC 7323, 5.3,
    /// R1). Returns false, and does nothing, if it is not. DEVIATES, as Linux does: a stamp may be one tick older,
    /// because ticks are coarse.
    #[cold]
    fn discards_old(&mut self, from: u64, seg: &Segment, stamps: Stamps) -> bool {
        let later = stamps.value.map(|value| value.wrapping_add(1));
        let old = later.is_some() && self.receiver.is_older(later, &self.troubles);
        if old {
            if seg.len > 0 && from < self.receiver.next() {
                self.receiver.report((from, from + u64::from(seg.len)), &mut self.troubles);
            }
            self.receiver.ack_now();
        }
        old
    }

    /// RFC 9293, 3.10.7.4, second: a RST with exactly the next expected number resets the connection; any
    /// other RST in the window is answered with a challenge ACK. DEVIATES in SYN-RECEIVED after a passive
    /// open: an endpoint is one connection and does not go back to LISTEN. If a side that has left TIME-WAIT
    /// answers our FIN with a reset that acknowledges it, the connection ends normally.
    fn on_reset(&mut self, seg: &Segment, from: u64, profile: &Profile) {
        let next = self.receiver.next();
        if from == next {
            if let Some(ack) = from_wire(profile.initial_sequence, seg.ack, self.una)
                && seg.flags.has(Flags::ACK)
                && self.una > 0 // the SYN is not a byte of the stream
                && (self.una + 1..=self.sent()).contains(&ack)
            {
                self.advance(ack);
            }
            self.finish(match self.state {
                State::Closing | State::LastAck if self.fin_is_acked() => Ending::Closed,
                State::TimeWait => Ending::Closed,
                _ => Ending::Reset,
            });
        } else if from > next && from < next + u64::from(profile.receive_window) {
            self.receiver.ack_now();
        }
    }

    /// Notes that everything below `ack` has arrived. Returns the number of newly acknowledged bytes of
    /// the stream.
    pub(super) fn advance(&mut self, ack: u64) -> u32 {
        let acked = (ack - self.una) as u32;
        let bytes = acked - u32::from(ack > self.stream_end);
        self.advance_by(acked, bytes);
        bytes
    }

    /// Processes the acknowledgment of `acked` sequence numbers, starting with `una`; `bytes` of
    /// them are bytes of the stream.
    #[inline]
    pub(super) fn advance_by(&mut self, acked: u32, bytes: u32) {
        self.una += u64::from(acked);
        self.unacked -= acked;
        self.flight = self.flight.saturating_sub(acked);
        self.events.acked(bytes);
    }

    /// Handles a repeated SYN, sent because our answer to the first was lost. A SYN that left before the one
    /// that was answered is only acknowledged (RFC 7323, 5.3, R1).
    fn on_syn_again(&mut self, seg: &Segment, stamps: Stamps, profile: &Profile) {
        if self.state == State::SynReceived && self.receiver.is_older(stamps.value, &self.troubles) {
            self.receiver.ack_now();
            return;
        }
        if !self.hear_syn_again(seg, profile) {
            return;
        }
        if self.state == State::SynReceived && !profile.answer_repeated_syn {
            self.notes.set(HANDSHAKE_ACK); // leaves once the connection is established
        } else if self.state == State::SynReceived && !seg.flags.has(Flags::ACK) {
            self.flight = 0;
        } else {
            self.receiver.ack_now();
            self.notes.set(HANDSHAKE_ACK);
        }
    }

    /// Processes the acknowledgment field. Returns false if the segment must be dropped because of it.
    fn on_ack(&mut self, now: Instant, seg: &Segment, options: &Options, profile: &Profile) -> bool {
        let Options { sack, stamps, .. } = options;
        let Some(ack) = from_wire(profile.initial_sequence, seg.ack, self.una) else {
            return true;
        };
        if ack > self.sent() {
            // RFC 9293: the segment acknowledges data that has not been sent.
            self.receiver.ack_now();
            return false;
        }
        if self.ecn.is_accurate() && ack >= self.una {
            self.note_marks(seg, options);
        }
        if self.state == State::SynReceived {
            if ack == 0 {
                return false;
            }
            self.hear_answer(seg, options, profile);
            self.establish(now, stamps.echo, profile);
        }
        let feedback = self.ecn.on_ack(seg.flags);
        let scheme = self.scheme(profile);
        if self.tracks(profile) {
            let says_nothing = ack == self.una && sack.blocks().is_empty() && seg.sequence_len() > 0;
            if says_nothing && !feedback.congestion && !self.ecn.is_accurate() {
                self.peer_window = seg.window;
                return true;
            }
            let repeated = !self.uses_sack() && self.unacked > 0 && self.is_duplicate(seg, ack, profile);
            let echo = feedback.congestion && ack >= self.una;
            self.on_ack_by_segments(now, ack, sack, Signs { echo, repeated, stamp: stamps.echo }, profile);
            if ack >= self.una {
                self.peer_window = seg.window;
            }
            return true;
        }
        let (segments, ce, marked) = self.marks_of(ack, feedback, profile);
        if profile.hears && ack > self.una {
            let (bytes, sent, srtt) = ((ack - self.una) as u32, self.sent(), self.rto.srtt());
            self.inform_control(
                &AckReport { now, bytes, segments, marked, ce, una: ack, sent, rtt: None, srtt },
                profile,
            );
        }
        if marked && ack >= self.una && self.troubles.get().recovery.may_react_to_mark(ack, profile) {
            self.react_to_mark(now, profile);
        }
        let duplicate = match scheme {
            Recovery::Sack => self.update_scoreboard(seg, ack, sack, profile),
            Recovery::Tahoe | Recovery::Reno | Recovery::NewReno => self.is_duplicate(seg, ack, profile),
        };
        let ends = scheme == Recovery::Sack && self.ends_by_repetition(ack, profile);
        if ack > self.una || ends {
            self.on_new_ack(now, ack, scheme, marked, profile);
        }
        if duplicate && !ends {
            self.on_duplicate_ack(now, scheme, profile);
        }
        if scheme == Recovery::Sack {
            self.note_scoreboard(profile);
        }
        if ack >= self.una {
            self.peer_window = seg.window;
        }
        true
    }

    /// Returns how many segments an acknowledgment newly acknowledges, how many it newly reports as marked, and
    /// whether it reports any.
    #[inline]
    fn marks_of(&mut self, ack: u64, feedback: Feedback, profile: &Profile) -> (u32, u32, bool) {
        let segments = (ack.saturating_sub(self.una) as u32).div_ceil(profile.mss);
        if self.ecn.is_accurate() {
            let ce = self.hear_marks(segments, ack.max(self.una), profile);
            return (segments, ce, ce > 0);
        }
        (segments, if feedback.congestion { segments } else { 0 }, feedback.congestion)
    }

    /// Returns whether an ACK is a duplicate (RFC 5681, section 2): data is outstanding (which
    /// ns-2 does not require), and the ACK has no payload, no SYN or FIN, and the same
    /// acknowledgment number and window as before.
    #[inline]
    fn is_duplicate(&self, seg: &Segment, ack: u64, profile: &Profile) -> bool {
        ack == self.una
            && (self.unacked > 0 || profile.fast_retransmit_guard == FastRetransmitGuard::Ns2)
            && seg.sequence_len() == 0
            && seg.window == self.peer_window
    }

    /// RFC 3168, 6.1.2: reduces the window as for a loss, without retransmitting.
    fn react_to_mark(&mut self, now: Instant, profile: &Profile) {
        let at_one = self.window.cwnd() <= 1.0;
        let sent = self.sent();
        let trouble = self.troubles.note();
        trouble.recovery.marked(sent);
        trouble.counts.ecn_reductions += 1;
        self.ecn.reduced();
        match profile.ecn_at_one {
            EcnAtOne::Ns2 => {
                if self.ecn.reacted_at_one(at_one) {
                    self.rto.double(profile);
                }
            }
            EcnAtOne::WaitForRto if at_one => {
                self.troubles.note().counts.ecn_waits += 1;
                self.ecn.wait();
                self.rto.arm(now, profile);
                return;
            }
            EcnAtOne::WaitForRto | EcnAtOne::Keep | EcnAtOne::Ssthresh => {}
        }
        let outstanding = self.outstanding(self.flight);
        let (window, algorithm) = self.congestion(profile);
        window.marked(algorithm, outstanding, profile);
        if self.window.is_shut() && !self.rto.is_running() {
            self.rto.arm(now, profile); // there is no outstanding data whose ACK could open the window
        }
        self.troubles.note().counts.ecn_waits += u32::from(self.window.is_shut());
    }

    fn on_new_ack(&mut self, now: Instant, ack: u64, scheme: Recovery, marked: bool, profile: &Profile) {
        let acked = (ack - self.una) as u32;
        let bytes = self.advance(ack);
        self.note_activity_on_ack(now, profile);
        match self.action_on_new_ack(ack, scheme, profile) {
            AckAction::Partial { .. } if scheme == Recovery::Sack => {
                self.on_partial_ack_with_sack(now, ack, profile);
            }
            AckAction::Partial { restart_timer } => {
                if profile.recovery_window == RecoveryWindow::Ssthresh {
                    let sent = self.sent();
                    self.troubles.note().recovery.extend(sent);
                    self.window.settle();
                } else {
                    let change = self.troubles.note().recovery.deflate(acked, profile);
                    self.window.deflate(change);
                }
                if restart_timer {
                    self.rto.arm(now, profile);
                }
                self.rto.partially_acked(ack);
                self.notes.set(RETRANSMISSION);
                self.burst = profile.recovery_burst;
            }
            action => {
                let opens =
                    action == AckAction::Advance || self.window.recovered(self.flight, scheme, profile);
                if scheme == Recovery::Sack {
                    self.forget_scoreboard_in_ns2(profile);
                }
                // RFC 3168, 6.1.2: acknowledgments with an echo do not open the window.
                self.go_on(now, bytes, opens && !marked, profile);
            }
        }
        if profile.ack_ends_backoff && !self.ecn.keeps_backoff() {
            self.rto.forget_backoff();
        }
        if self.fin_is_acked() {
            self.enter(now, self.state.fin_acked(), profile);
        }
    }

    fn action_on_new_ack(&mut self, ack: u64, scheme: Recovery, profile: &Profile) -> AckAction {
        if !self.unsettled {
            return AckAction::Advance;
        }
        let action = self.troubles.note().recovery.on_new_ack(ack, scheme, profile);
        self.unsettled = matches!(action, AckAction::Partial { .. });
        action
    }

    /// Handles the acknowledgment of `bytes` of the stream, up to `una`, while nothing is missing.
    #[inline(always)]
    pub(super) fn go_on(&mut self, now: Instant, bytes: u32, opens: bool, profile: &Profile) {
        if self.rto.acked(self.una) {
            self.go_on_with_sample(now, bytes, opens, profile);
        } else {
            self.go_on_without_sample(now, bytes, opens, profile);
        }
    }

    /// Does the same as `go_on_without_sample`, but first takes a round-trip sample; this happens once per
    /// round trip.
    #[cold]
    fn go_on_with_sample(&mut self, now: Instant, bytes: u32, opens: bool, profile: &Profile) {
        if profile.timer_uses_sample {
            self.rto.measured(now, self.ecn.keeps_backoff(), self.clock(), profile);
            self.go_on_without_sample(now, bytes, opens, profile);
        } else {
            self.go_on_without_sample(now, bytes, opens, profile);
            self.rto.measured(now, self.ecn.keeps_backoff(), self.clock(), profile);
        }
    }

    #[inline]
    fn go_on_without_sample(&mut self, now: Instant, bytes: u32, opens: bool, profile: &Profile) {
        self.restart_timer(now, profile);
        if opens {
            self.open_window(now, bytes, profile);
        }
    }

    /// Notifies the congestion control of an acknowledgment.
    pub(super) fn inform_control(&mut self, report: &AckReport, profile: &Profile) {
        if profile.hears {
            let before = self.window.cwnd();
            let (window, algorithm) = self.congestion(profile);
            window.on_report(algorithm, report, profile);
            if report.ce > 0 && self.window.cwnd() < before {
                self.troubles.note().counts.ecn_reductions += 1;
                self.ecn.reduced();
            }
        }
    }

    /// Notifies the congestion control that `bytes` have been acknowledged; `una` already includes them.
    #[inline(always)]
    pub(super) fn open_window(&mut self, now: Instant, bytes: u32, profile: &Profile) {
        if profile.remembers() {
            self.open_window_from_memory(now, bytes, profile);
        } else {
            self.window.acked(Reno, &self.ack(now, bytes), profile);
        }
    }

    /// Does the same as `open_window`, for a congestion control with a memory.
    #[inline(never)] // keeps the code path of Reno short
    fn open_window_from_memory(&mut self, now: Instant, bytes: u32, profile: &Profile) {
        let ack = self.ack(now, bytes);
        let Endpoint { window, troubles, .. } = self;
        let control = troubles.get_mut().map(|trouble| &mut trouble.control);
        if !control.is_some_and(|control| control.continue_stage(window, &ack, profile)) {
            self.open_window_seldom(now, bytes, profile);
        }
    }

    /// Does the same as `open_window`, for the less frequent cases: slow start, the first
    /// acknowledgment of a stage of CUBIC, and controls other than the CUBIC of RFC 9438.
    #[inline(never)]
    fn open_window_seldom(&mut self, now: Instant, bytes: u32, profile: &Profile) {
        let ack = self.ack(now, bytes);
        self.window.acked(Algorithm::kept(profile, self.troubles.control()), &ack, profile);
    }

    /// Returns the acknowledgment of `bytes` as the congestion control sees it; `una` already
    /// includes these bytes.
    #[inline(always)]
    fn ack(&self, now: Instant, bytes: u32) -> Ack {
        let after_timeout = self.troubles.get().recovery.after_timeout();
        Ack { now, bytes, flight: self.flight + bytes, srtt: self.rto.srtt(), after_timeout }
    }

    /// RFC 6298, 5.2 and 5.3. If a mark has closed the window, the timer is needed even if nothing
    /// is outstanding.
    #[inline]
    fn restart_timer(&mut self, now: Instant, profile: &Profile) {
        if self.unacked > 0 || self.window.is_shut() {
            self.rto.arm(now, profile);
        } else if !self.ecn.is_waiting() {
            self.rto.stop();
        }
    }

    fn on_duplicate_ack(&mut self, now: Instant, scheme: Recovery, profile: &Profile) {
        let (una, sent) = (self.una, self.sent());
        let by_scoreboard = scheme == Recovery::Sack && profile.sack_pipe == SackPipe::Rfc6675;
        let first_is_lost = by_scoreboard && self.first_is_lost(profile);
        let trouble = self.troubles.note();
        trouble.counts.duplicate_acks += 1;
        self.unsettled = true;
        let action = if by_scoreboard {
            trouble.recovery.on_news(una, sent, first_is_lost, profile)
        } else {
            trouble.recovery.on_duplicate(una, sent, profile)
        };
        match action {
            AckAction::Early { nth } if profile.limited_transmit && !by_scoreboard => {
                trouble.recovery.due_at = nth.min(255) as u8;
                self.notes.set(LIMITED);
            }
            AckAction::Enter { reduce } => self.enter_recovery(now, reduce, scheme, profile),
            AckAction::Inflate if scheme != Recovery::Sack => {
                trouble.recovery.inflate();
                self.limit_recovery_burst(scheme, profile);
            }
            _ => {}
        }
    }

    fn limit_recovery_burst(&mut self, scheme: Recovery, profile: &Profile) {
        if scheme == Recovery::NewReno {
            self.burst = profile.recovery_burst;
        }
    }

    /// Fast retransmit (RFC 5681, 3.2, steps 2 and 3; RFC 6675, section 5, step 4).
    fn enter_recovery(&mut self, now: Instant, reduce: bool, scheme: Recovery, profile: &Profile) {
        let trouble = self.troubles.note();
        trouble.counts.fast_retransmits += 1;
        if reduce {
            let flight = self.flight.saturating_sub(trouble.recovery.limited());
            let outstanding = self.outstanding(flight);
            let (window, algorithm) = self.congestion(profile);
            window.lost(algorithm, outstanding, profile);
            self.ecn.reduced();
        }
        if scheme == Recovery::Tahoe {
            self.start_over(now, profile);
            return;
        }
        if scheme == Recovery::Sack {
            self.begin_selective_recovery(profile);
        } else {
            self.troubles.note().recovery.inflate_to(profile.dupthresh);
            self.limit_recovery_burst(scheme, profile);
        }
        self.rto.stop_timing();
        if profile.fast_retransmit_restarts_timer {
            self.rto.arm(now, profile);
        }
        self.notes.set(RETRANSMISSION);
    }

    /// After a fast retransmit, starts over at the missing segment with a window of one segment (Jacobson 1988).
    #[cold]
    fn start_over(&mut self, now: Instant, profile: &Profile) {
        self.troubles.note().recovery.starts_over();
        self.window.restart(1.0);
        self.rto.stop_timing();
        self.rto.arm(now, profile);
        self.notes.clear(RETRANSMISSION | LIMITED);
        self.flight = 0;
    }

    /// Notes that payload, marked or not, has arrived at the offset `from`, and requests an
    /// immediate acknowledgment if one is needed.
    #[cold]
    fn note_arrival(&mut self, now: Instant, from: u64, seg: &Segment, marked: bool, profile: &Profile) {
        if profile.quick_acks_again == 0 {
            return;
        }
        let (rto, srtt) = (self.rto.rto(profile), self.rto.srtt());
        let (next, to) = (self.receiver.next(), from + u64::from(seg.len));
        let by_sack = self.uses_sack();
        // The sender may just have reduced its window to a few segments, or may have retransmitted this
        // segment.
        let first_mark = marked && (seg.flags.has(Flags::CWR) || !self.ecn.has_news());
        let concerns_ecn = self.ecn.agreed()
            && !self.ecn.is_accurate()
            && (first_mark && !profile.exact_echo || !seg.ecn.is_capable());
        let quick = self.troubles.note().quick.get_or_insert_with(|| Box::new(Quick::new(profile)));
        if to <= next {
            quick.raise(profile.quick_acks_again, profile);
        } else {
            if from <= next {
                quick.arrives(now, rto, srtt, profile);
            } else {
                quick.arrives_beyond_hole(now, profile);
            }
            if from <= next || by_sack {
                quick.grows(profile);
            }
            if concerns_ecn {
                quick.raise(QUICK_AT_MARK, profile);
            }
        }
        if quick.take(profile) {
            if from > next {
                self.receiver.ack_now();
            } else {
                self.receiver.quicken(profile);
            }
        }
    }

    /// Processes the next in-order data, for a receiver whose acknowledgments depend on more than a
    /// count of segments.
    #[cold]
    pub(super) fn on_next_by_rules(&mut self, now: Instant, seg: &Segment, profile: &Profile) {
        if profile.exact_echo {
            self.echo_exactly(false, profile);
        }
        self.note_arrival(now, self.receiver.next(), seg, false, profile);
        self.receiver.on_next_segment_by_rules(now, seg.len, &self.troubles, profile);
    }

    /// Processes a segment with payload, marked or not. If it is marked and the previous segment
    /// was not, or vice versa, any segments still unacknowledged are acknowledged immediately, with
    /// their own echo, and this segment is acknowledged separately (RFC 8257, 3.2, with two
    /// acknowledgments).
    #[cold]
    fn echo_exactly(&mut self, marked: bool, profile: &Profile) {
        if !self.ecn.turns(marked) {
            return;
        }
        if self.receiver.delays_ack() {
            let ack = self.receiver.next_on_wire();
            let quick = self.troubles.note().quick.get_or_insert_with(|| Box::new(Quick::new(profile)));
            quick.earlier = Some(ack);
            self.notes.set(HANDSHAKE_ACK);
        }
        self.receiver.ack_now();
    }

    /// Processes payload, marked or not, for a receiver whose acknowledgments depend on more than a
    /// count of segments. Returns whether the payload must be acknowledged immediately.
    #[cold]
    fn note_payload(
        &mut self,
        now: Instant,
        from: u64,
        seg: &Segment,
        marked: bool,
        profile: &Profile,
    ) -> bool {
        let to = from + u64::from(seg.len);
        let mut twice = false; // the segment also has new data, whose acknowledgment could be delayed
        if profile.dsack
            && self.uses_sack()
            && let Some(range) = self.receiver.overlap(from, to, &self.troubles)
        {
            self.receiver.report(range, &mut self.troubles);
            twice = to > self.receiver.next();
        }
        let accurate = self.ecn.is_accurate();
        if profile.exact_echo && !accurate {
            self.echo_exactly(marked, profile);
        }
        self.note_arrival(now, from, seg, marked, profile);
        if !profile.exact_echo {
            self.ecn.on_data(seg.flags, marked);
        }
        // The sender of CWR is waiting for an answer, so this segment is acknowledged immediately.
        twice || profile.quick_acks_again > 0 && seg.flags.has(Flags::CWR) && !accurate
    }

    /// Handles data that arrived beyond a hole while the amount `unacked` was unacknowledged; the
    /// report of this data may be delayed, to be combined with later reports.
    #[cold]
    fn hold_report(&mut self, now: Instant, unacked: u16, profile: &Profile) {
        // Measured: a Linux host whose route requests quick acknowledgments does not compress
        // SACKs.
        if profile.sack_delay.is_zero() || profile.ack_every == 1 || !self.uses_sack() {
            return;
        }
        let (next, srtt) = (self.receiver.next(), self.rto.srtt());
        let quick = self.troubles.note().quick.get_or_insert_with(|| Box::new(Quick::new(profile)));
        if let Some(until) = quick.report_waits(now, next, unacked == 0, srtt, profile) {
            self.receiver.hold_ack(unacked, until);
        }
    }

    /// Returns whether this side has recently sent data, and may therefore soon send more, which will carry
    /// acknowledgments.
    fn answers(&self, now: Instant, profile: &Profile) -> bool {
        let recently = now.saturating_since(self.last_activity) < profile.delayed_ack;
        self.tally.data_segments > 0 && (self.unacked > 0 || recently)
    }

    /// Processes payload or a FIN.
    #[inline(never)]
    pub(super) fn on_payload(&mut self, now: Instant, from: u64, seg: &Segment, profile: &Profile) {
        let to = from + u64::from(seg.len);
        let mut at_once = false;
        if seg.len > 0 {
            // RFC 3168, 6.1.5: the ECN field counts only on data within the window.
            let counts = seg.ecn == Ecn::Ce
                && (profile.echo_outside_window || self.receiver.accepts(from, to, profile));
            if profile.ack_rules {
                at_once = self.note_payload(now, from, seg, counts, profile);
            } else {
                self.ecn.on_data(seg.flags, counts);
            }
        }
        let fin = seg.flags.has(Flags::FIN);
        let pushed = profile.ack_pushed && seg.flags.has(Flags::PSH) && from == self.receiver.next();
        if pushed && !self.answers(now, profile) {
            self.receiver.quicken(profile);
        }
        let (unacked, prompt) = (self.receiver.unacked(), at_once || self.receiver.owes_ack());
        let may_wait = profile.ack_rules && !prompt && from > self.receiver.next();
        let arrival = self.receiver.on_segment(now, from, to, fin, &mut self.troubles, profile);
        if may_wait && seg.len > 0 && !fin {
            self.hold_report(now, unacked, profile);
        }
        if arrival.duplicate {
            self.troubles.note().counts.duplicates_received += 1;
        }
        if at_once {
            self.receiver.ack_now();
        }
        self.events.delivered(arrival.delivered);
        if arrival.finished {
            self.events.peer_closed();
            self.enter(now, self.state.peer_closed(), profile);
        } else if arrival.duplicate && self.state == State::TimeWait {
            // RFC 9293, 3.10.7.4: a repeated FIN is acknowledged, and TIME-WAIT starts over.
            self.rto.arm_for(now, profile.time_wait);
        }
        if self.state == State::SynReceived {
            self.burst = NO_BURST_LIMIT;
        }
    }
}
