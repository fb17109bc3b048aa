//! The endpoint whose transmissions have numbers of their own (`packet_numbers`), as in QUIC: loss detection as in RFC
//! 9002, section 6 and appendix A, and acknowledgments as in RFC 9000, section 13.2. It replaces most of
//! [`super::input`], [`super::output`] and [`super::timers`] once the connection is established; the handshake, the
//! stream and its end are those of TCP. [`control`] contains its congestion control, and [`output`] what it sends.
//!
//! DEVIATES from RFC 9000: packets that only acknowledge have no number, since they are never acknowledged by
//! themselves; there is one stream; and its flow control is TCP's window, which never closes.

mod control;
mod output;

use alloc::boxed::Box;
use alloc::vec::Vec;

use aqmlab_units::{Ecn, Instant};

use super::{Endpoint, RESET, SELECTIVE};
use crate::connection::State;
use crate::event::Ending;
use crate::packets::{AckFrame, Due, Newly, Packets, SentPacket};
use crate::profile::Profile;
use crate::sack::Options;
use crate::segment::{Flags, Segment};

impl Endpoint {
    /// Creates the state, now that the connection is established.
    #[cold]
    pub(in crate::endpoint) fn begin_packets(&mut self, now: Instant, profile: &Profile) {
        let packets = Packets::new(now, self.rto.srtt(), profile);
        self.troubles.note().packets = Some(Box::new(packets));
        self.notes.set(SELECTIVE);
        let srtt = self.rto.srtt();
        let Endpoint { window, troubles, .. } = self;
        if profile.samples() {
            troubles.control().established(now, window, srtt, profile);
        }
        self.follow_foreign(profile);
    }

    pub(super) fn packets(&self) -> &Packets {
        self.troubles.get().packets.as_deref().expect("the connection is established")
    }

    pub(super) fn packets_mut(&mut self) -> &mut Packets {
        let packets = self.troubles.get_mut().and_then(|trouble| trouble.packets.as_deref_mut());
        packets.expect("the connection is established")
    }

    /// Processes a packet that carries data from the offset `from` on.
    #[cold]
    pub(in crate::endpoint) fn on_packet(
        &mut self,
        now: Instant,
        from: u64,
        seg: &Segment,
        options: &Options,
        profile: &Profile,
    ) {
        if self.state == State::SynReceived {
            self.establish(now, None, profile); // whatever the client sends has followed the SYN-ACK
        }
        if !seg.flags.is_numbered() {
            return;
        }
        if seg.sack_len > 0 {
            self.on_ack_frame(now, &AckFrame::of(seg.ack, options), profile);
        }
        if self.state == State::Closed || seg.window == 0 {
            return; // a packet that only acknowledges
        }
        let marked = seg.ecn == Ecn::Ce && self.ecn.agreed();
        let received = &mut self.packets_mut().received;
        let at_once = received.arrives(now, seg.window.into(), marked, profile.ack_every);
        let before = self.receiver.owed();
        if seg.len > 0 || seg.flags.has(Flags::FIN) {
            self.on_payload(now, from, seg, profile);
        }
        if self.state != State::Closed {
            self.receiver.owe_by_number(now, before, at_once, profile);
        }
    }

    /// Appendix A.7: OnAckReceived.
    fn on_ack_frame(&mut self, now: Instant, frame: &AckFrame, profile: &Profile) {
        let Newly { acked, spurious, largest } = self.packets_mut().sent.acknowledge(frame);
        let bytes = self.note_arrived(&acked, &spurious);
        for packet in &spurious {
            if let Some(controller) = self.foreign() {
                controller.on_spurious(now, packet.at, packet.size.into());
            }
        }
        let Some(last) = acked.last().copied() else { return };
        let before = self.before_packets();
        if largest {
            let Endpoint { troubles, rto, .. } = self;
            let packets = troubles.note().packets.as_deref_mut().expect("the connection is established");
            packets.measured(now, now - last.at, frame.delay(), rto, profile);
        }
        let ce = self.on_marks(now, frame.ce, last, profile);
        let lost = self.find_lost_packets(now, profile);
        self.on_packets_lost(now, &lost, profile);
        self.on_packets_acked(now, &acked, (bytes, ce), profile);
        self.sample_packets(now, &acked, lost.len() as u32, (before, ce), profile);
        self.packets_mut().probes = 0;
        self.rto.forget_backoff();
        if self.fin_is_acked() {
            self.enter(now, self.state.fin_acked(), profile);
        }
        self.set_packet_timer(now, profile);
    }

    /// Notes that the data of these packets has arrived; returns how many bytes now have without a gap.
    fn note_arrived(&mut self, acked: &[SentPacket], spurious: &[SentPacket]) -> u32 {
        let una = self.una;
        let packets = self.packets_mut();
        for packet in acked.iter().chain(spurious).filter(|packet| packet.to > una) {
            packets.acked.insert(packet.from.max(una), packet.to);
        }
        let ack = packets.acked.gap_from(una);
        if ack == una {
            return 0;
        }
        packets.acked.remove_below(ack);
        packets.lost.remove_below(ack);
        self.advance(ack)
    }

    /// Appendix A.10: DetectAndRemoveLostPackets. The data of lost packets is to be sent again, unless another packet has
    /// delivered it.
    fn find_lost_packets(&mut self, now: Instant, profile: &Profile) -> Vec<SentPacket> {
        let (una, srtt) = (self.una, self.rto.srtt());
        let packets = self.packets_mut();
        let delay = packets.loss_delay(srtt, profile);
        let lost = packets.sent.find_lost(now, profile.dupthresh.into(), delay);
        for packet in lost.iter().filter(|packet| packet.to > una) {
            packets.lost.insert(packet.from.max(una), packet.to);
        }
        lost
    }

    /// Sets the timer to whatever is due first: a loss, a probe or a paced packet.
    pub(super) fn set_packet_timer(&mut self, now: Instant, profile: &Profile) {
        if matches!(self.state, State::TimeWait | State::Closed) {
            return;
        }
        let packets = self.packets();
        let due = packets.due(&self.rto, profile).map(|(Due::Loss(at) | Due::Probe(at))| at);
        match due.into_iter().chain(packets.waits_until).min() {
            Some(at) => self.rto.arm_for(now, at.saturating_since(now)),
            None => self.rto.stop(),
        }
    }

    /// Appendix A.9: OnLossDetectionTimeout.
    #[cold]
    pub(in crate::endpoint) fn on_packet_timer(&mut self, now: Instant, profile: &Profile) {
        let packets = self.packets_mut();
        packets.waits_until = packets.waits_until.filter(|at| *at > now);
        match self.packets().due(&self.rto, profile) {
            Some(Due::Loss(at)) if at <= now => {
                let lost = self.find_lost_packets(now, profile);
                self.on_packets_lost(now, &lost, profile);
                self.report_lost_packets(now, profile);
            }
            Some(Due::Probe(at)) if at <= now => {
                let packets = self.packets_mut();
                packets.probes += 1;
                packets.probes_due = 2; // section 6.2.4: one or two
                let gives_up = packets.probes > profile.data_retries;
                self.troubles.note().counts.timeouts += 1;
                if gives_up {
                    self.notes.set(RESET);
                    self.finish(Ending::Aborted);
                    return;
                }
            }
            _ => {}
        }
        self.set_packet_timer(now, profile);
    }
}
