//! What leaves: probes, data of lost packets, new data, and acknowledgments; and when it leaves (RFC 9002, sections
//! 6.2.4, 7 and 7.7).

use aqmlab_units::{Bytes, Instant, Rate, Span};

use crate::endpoint::Endpoint;
use crate::profile::Profile;
use crate::segment::{Flags, Segment};

impl Endpoint {
    /// Returns the next packet.
    #[cold]
    pub(in crate::endpoint) fn transmit_by_packets(
        &mut self,
        now: Instant,
        profile: &Profile,
    ) -> Option<Segment> {
        self.packets_mut().waits_until = None;
        let segment = self.transmit_packet(now, profile);
        if self.packets().waits_until.is_some() || segment.is_some() {
            self.set_packet_timer(now, profile);
        }
        segment.or_else(|| self.receiver.owes_ack().then(|| self.packet_ack(now, profile)))
    }

    fn transmit_packet(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        let probes = self.packets().probes_due > 0;
        let Some((from, to)) = self.next_range(probes, profile) else {
            let packets = self.packets_mut();
            (packets.app_limited, packets.probes_due) = (true, 0);
            return None;
        };
        let idle = self.packets().sent.in_flight() == 0;
        if idle {
            self.restart_after_idle(now, profile);
        }
        if !probes {
            let size = profile.datagram_with((to - from).min(profile.mss.into()) as u32);
            let allowed = self.window.cwnd() * f64::from(profile.datagram());
            let in_flight = self.packets().sent.bytes_in_flight() + u64::from(size);
            if !core::mem::take(&mut self.packets_mut().one_due) && in_flight as f64 > allowed {
                self.packets_mut().app_limited = false;
                return None;
            }
            if let Some(at) = self.packets().pace.waits(now) {
                let packets = self.packets_mut();
                (packets.app_limited, packets.waits_until) = (false, Some(at));
                return None;
            }
        }
        Some(self.send_packet(now, (from, to), idle, profile))
    }

    /// Returns the offsets that the next packet carries: those of a lost packet, new data or, for a probe without either,
    /// those of the first packet in flight (section 6.2.4).
    fn next_range(&mut self, probes: bool, profile: &Profile) -> Option<(u64, u64)> {
        let una = self.una;
        let packets = self.packets_mut();
        while let Some((from, to)) = packets.lost.first() {
            let missing = packets.acked.gap_from(from.max(una));
            packets.lost.remove_below(missing);
            if missing < to {
                let end = packets.acked.end_of_gap(missing).map_or(to, |end| end.min(to));
                return Some((missing, end));
            }
        }
        if self.has_data() && self.fits(self.reach(profile), profile) {
            let len = self.segment_len(self.next(), profile).max(1);
            return Some((self.next(), self.next() + u64::from(len)));
        }
        let first = self.packets().sent.first().filter(|_| probes);
        // If the data of that packet has arrived in another one, the probe is a PING.
        first.map(|packet| if packet.to > una { (packet.from.max(una), packet.to) } else { (una, una) })
    }

    fn send_packet(
        &mut self,
        now: Instant,
        (from, to): (u64, u64),
        idle: bool,
        profile: &Profile,
    ) -> Segment {
        let (ahead, most) = ((from - self.una) as u32, (to - from).min(u64::from(u32::MAX)) as u32);
        let again = ahead < self.flight;
        let (segment, end) =
            if from < to { self.data(now, ahead, most, profile) } else { (self.pure_ack(profile), ahead) };
        if !again {
            self.flight = self.flight.max(end);
        }
        let end = self.una + u64::from(end);
        let size = profile.datagram_with(segment.len);
        let packets = self.packets_mut();
        packets.probes_due = packets.probes_due.saturating_sub(1);
        let number = packets.sent.send(now, (from, end), segment.len, size);
        packets.lost.remove_below(end.min(to).max(from));
        let in_flight = packets.sent.in_flight();
        if let Some(rates) = &mut packets.rates {
            rates.sent(now, number, number + 1, in_flight, idle);
        }
        if let Some(controller) = self.foreign() {
            controller.on_sent(now, size.into(), number);
        }
        self.pace_packet(now, segment.len, size, profile);
        self.numbered(now, segment, number as u32)
    }

    /// Returns a packet that only acknowledges.
    pub(in crate::endpoint) fn packet_ack(&mut self, now: Instant, profile: &Profile) -> Segment {
        let segment = self.pure_ack(profile);
        self.numbered(now, segment, 0)
    }

    /// Returns the segment as a packet with this number and, if anything has arrived since the latest one, an ACK frame.
    fn numbered(&mut self, now: Instant, mut segment: Segment, number: u32) -> Segment {
        let packets = self.packets_mut();
        segment.flags = Flags::NUMBERED.with_if(Flags::FIN, segment.flags.has(Flags::FIN));
        (segment.window, segment.ack, segment.sack_len) = (number, 0, 0);
        if let Some(frame) = packets.received.take(now) {
            packets.frame = frame;
            (segment.ack, segment.sack_len) = (frame.largest as u32, frame.len(segment.len > 0));
        }
        segment
    }

    /// Determines when the packet after one of `len` bytes of payload may leave (section 7.7). The rate is that of the
    /// congestion control if it has one, and otherwise `pacing_gain` windows per round trip.
    fn pace_packet(&mut self, now: Instant, len: u32, size: u32, profile: &Profile) {
        let by_foreign = self.foreign().map(|controller| controller.pacing_rate());
        let by_control = self.troubles.get().control.pacing(profile);
        let (takes, burst) = match (by_foreign, by_control) {
            (Some(Some(rate)), _) => {
                let rate = Rate::of(Bytes::new(rate.max(1)), Span::s(1));
                (rate.time_for(Bytes::new(size.into())), profile.pacing_burst)
            }
            (None, Some(pacing)) => (pacing.rate.time_for(Bytes::new(len.into())), pacing.burst),
            _ if !profile.pacing => return,
            _ => {
                let Some(srtt) = self.rto.srtt() else { return };
                let share = f64::from(len) / f64::from(profile.mss);
                let takes = Span::ns((srtt.as_ns() as f64 * share / self.paced_window(profile)) as u64);
                (takes, profile.pacing_burst)
            }
        };
        self.packets_mut().pace.sent(now, takes, burst);
    }
}
