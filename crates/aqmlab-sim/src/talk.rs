//! A flow of datagrams between two ends that both send.

use aqmlab_media::{Datagram, Dialogue};
use aqmlab_network::{End, FlowCounts};
use aqmlab_qdisc::{Ecn, Packet};
use aqmlab_units::{Bytes, Instant};

use crate::packet::SimPacket;

/// A dialogue, with the counts of what its ends have sent and received.
pub struct Talk {
    /// What both ends say.
    pub dialogue: Dialogue,
    /// The ECN field of packets with data.
    ecn: Ecn,
    /// Packets with data that each end has sent, and their bytes at the network layer.
    sent: [(u64, Bytes); 2],
    /// Bytes of data that each end has received, and packets with CE.
    received: [(Bytes, u64); 2],
    /// The instant for which an event is pending.
    pub armed: Instant,
}

impl Talk {
    /// Creates the counts for a dialogue that has not begun.
    pub fn new(dialogue: Dialogue, ecn: Ecn) -> Self {
        let (sent, received) = ([(0, Bytes::ZERO); 2], [(Bytes::ZERO, 0); 2]);
        Talk { dialogue, ecn, sent, received, armed: Instant::FAR_FUTURE }
    }

    /// Returns a datagram that is due, the end that sends it, and its ECN field.
    pub fn poll(&mut self, now: Instant) -> Option<(End, Datagram, Ecn)> {
        let (end, datagram) = self.dialogue.poll(now)?;
        if !datagram.is_data {
            return Some((end, datagram, Ecn::NotEct));
        }
        let (packets, bytes) = &mut self.sent[end as usize];
        *packets += 1;
        *bytes += datagram.wire_len;
        Some((end, datagram, self.ecn))
    }

    /// Handles the arrival of a datagram at `end`.
    pub fn arrive(&mut self, now: Instant, end: End, packet: &SimPacket) {
        let marked = packet.ecn() == Ecn::Ce;
        if self.dialogue.takes_data(end) {
            let (bytes, marks) = &mut self.received[end as usize];
            *bytes += packet.wire_len();
            *marks += u64::from(marked);
        }
        let number = packet.datagram_number().expect("the packets of dialogues are datagrams");
        self.dialogue.arrive(now, end, number, marked);
    }

    /// Returns one end's counts so far.
    pub fn counts(&self, end: End) -> FlowCounts {
        let ((packets, sent), (received, marks)) = (self.sent[end as usize], self.received[end as usize]);
        FlowCounts {
            sent_segments: packets,
            sent_bytes: sent.get(),
            // Every arriving datagram is new.
            received_bytes: received.get(),
            delivered_bytes: received.get(),
            received_by_client_bytes: if end == End::Client { received.get() } else { 0 },
            ce_received: marks,
            ..FlowCounts::default()
        }
    }
}
