//! The packets that have been sent, and which of them are lost (RFC 9002, section 6.1 and appendix A).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use aqmlab_units::{Instant, Span};

use super::frame::{AckFrame, REACH};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    InFlight,
    Acknowledged,
    Lost,
}

/// A packet that has been sent: sent_packets of appendix A.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SentPacket {
    pub number: u64,
    pub at: Instant,
    /// The offsets of the stream that it carries, `[from, to)`.
    pub from: u64,
    pub to: u64,
    /// Bytes of payload, and of the datagram.
    pub len: u32,
    pub size: u32,
    fate: Fate,
}

/// All packets that may still be acknowledged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SentPackets {
    /// In the order of their numbers, without gaps.
    list: VecDeque<SentPacket>,
    /// The number of the next packet; the first has number 1.
    next: u64,
    /// largest_acked_packet; 0 if there is none.
    largest: u64,
    /// bytes_in_flight, and the number of these packets.
    bytes: u64,
    count: u32,
    /// loss_time: when the next packet is declared lost if it is not acknowledged before.
    pub loss_time: Option<Instant>,
    /// time_of_last_ack_eliciting_packet
    pub latest: Instant,
}

/// What an acknowledgment reports for the first time.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Newly {
    /// The packets that are acknowledged, in the order of their numbers.
    pub acked: Vec<SentPacket>,
    /// The packets that are acknowledged although they had been declared lost.
    pub spurious: Vec<SentPacket>,
    /// The largest number in the frame is among the acknowledged packets.
    pub largest: bool,
}

impl SentPackets {
    pub(crate) fn new() -> Self {
        SentPackets {
            list: VecDeque::new(),
            next: 1,
            largest: 0,
            bytes: 0,
            count: 0,
            loss_time: None,
            latest: Instant::ZERO,
        }
    }

    /// Records a packet that carries `[from, to)`, with `len` bytes of payload in a datagram of `size` bytes; returns its
    /// number.
    pub(crate) fn send(&mut self, at: Instant, (from, to): (u64, u64), len: u32, size: u32) -> u64 {
        let number = self.next;
        self.next += 1;
        self.bytes += u64::from(size);
        self.count += 1;
        self.latest = at;
        self.list.push_back(SentPacket { number, at, from, to, len, size, fate: Fate::InFlight });
        number
    }

    pub(crate) fn bytes_in_flight(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.count
    }

    /// Returns the largest number acknowledged.
    pub(crate) fn largest_acked(&self) -> Option<u64> {
        (self.largest > 0).then_some(self.largest)
    }

    /// Returns the lowest number that may still be acknowledged.
    pub(crate) fn lowest(&self) -> u64 {
        self.list.front().map_or(self.next, |first| first.number)
    }

    /// Returns the first packet in flight.
    pub(crate) fn first(&self) -> Option<&SentPacket> {
        self.list.iter().find(|packet| packet.fate == Fate::InFlight)
    }

    /// Processes an ACK frame (appendix A.7: DetectAndRemoveAckedPackets).
    pub(crate) fn acknowledge(&mut self, frame: &AckFrame) -> Newly {
        let mut newly = Newly::default();
        if frame.largest >= self.next {
            return newly; // RFC 9000, section 13.1: the packet was not sent
        }
        self.largest = self.largest.max(frame.largest);
        let begin = self.lowest();
        let from = (frame.lowest().max(begin) - begin) as usize;
        let to = (frame.largest + 1).saturating_sub(begin) as usize;
        for packet in self.list.range_mut(from.min(to)..to) {
            if packet.fate == Fate::Acknowledged || !frame.covers(packet.number) {
                continue;
            }
            if packet.fate == Fate::InFlight {
                self.bytes -= u64::from(packet.size);
                self.count -= 1;
                newly.largest |= packet.number == frame.largest;
                newly.acked.push(*packet);
            } else {
                newly.spurious.push(*packet);
            }
            packet.fate = Fate::Acknowledged;
        }
        newly
    }

    /// Declares lost what was sent `threshold` packets or at least `delay` before the largest packet that is acknowledged
    /// (section 6.1, appendix A.10: DetectAndRemoveLostPackets). Returns the lost packets in the order of their numbers.
    pub(crate) fn find_lost(&mut self, now: Instant, threshold: u64, delay: Span) -> Vec<SentPacket> {
        let mut lost = Vec::new();
        self.loss_time = None;
        for packet in self.list.iter_mut().take_while(|packet| packet.number <= self.largest) {
            if packet.fate != Fate::InFlight {
                continue;
            }
            let late_at = packet.at.saturating_add(delay);
            if late_at <= now || self.largest >= packet.number + threshold {
                packet.fate = Fate::Lost;
                self.bytes -= u64::from(packet.size);
                self.count -= 1;
                lost.push(*packet);
            } else {
                self.loss_time = Some(self.loss_time.map_or(late_at, |at| at.min(late_at)));
            }
        }
        self.forget();
        lost
    }

    /// Forgets the packets of which no acknowledgment can report anything new.
    fn forget(&mut self) {
        let largest = self.largest;
        let over = |packet: &SentPacket| match packet.fate {
            Fate::InFlight => false,
            Fate::Acknowledged => true,
            Fate::Lost => packet.number + REACH <= largest,
        };
        while self.list.front().is_some_and(over) {
            self.list.pop_front();
        }
    }
}

/// Returns whether lost packets, in the order of their numbers, establish persistent congestion: all packets sent in a
/// `period` are lost (section 7.6.2). Packets sent before the first round-trip sample do not count.
pub(crate) fn is_persistent(lost: &[SentPacket], first_sample: Instant, period: Span) -> bool {
    let counted = |packet: &SentPacket| packet.at > first_sample;
    lost.chunk_by(|one, next| next.number == one.number + 1).any(|run| {
        let first = run.iter().find(|packet| counted(packet));
        first.zip(run.last()).is_some_and(|(first, last)| last.at.saturating_since(first.at) > period)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Span::ms(n)
    }

    /// Packets with these numbers have arrived.
    fn frame(numbers: &[u64]) -> AckFrame {
        let mut received = super::super::Received::new();
        numbers.iter().for_each(|number| _ = received.arrives(Instant::ZERO, *number, false, 2));
        received.take(Instant::ZERO).expect("something has arrived")
    }

    fn sent(times: impl Iterator<Item = u64>) -> SentPackets {
        let mut packets = SentPackets::new();
        times.for_each(|at| _ = packets.send(ms(at), (at, at + 1), 1000, 1035));
        packets
    }

    fn numbers(packets: &[SentPacket]) -> Vec<u64> {
        packets.iter().map(|packet| packet.number).collect()
    }

    /// RFC 9002, section 6.1.1, with kPacketThreshold of 3: when packet 4 is acknowledged, packet 1 is lost, but 2 and 3
    /// are not.
    #[test]
    fn three_packets_later_is_lost() {
        let mut packets = sent([0, 0, 0, 0, 0].into_iter());
        packets.acknowledge(&frame(&[3]));
        assert_eq!(packets.find_lost(ms(10), 3, Span::ms(90)), []);
        packets.acknowledge(&frame(&[3, 4]));
        assert_eq!(numbers(&packets.find_lost(ms(10), 3, Span::ms(90))), [1]);
        assert_eq!((packets.in_flight(), packets.bytes_in_flight()), (2, 2070));
        assert_eq!(packets.loss_time, Some(ms(90)), "packet 2 is waited for");
    }

    /// Section 6.1.2: with round trips of 80 ms, a packet is lost 90 ms after it left if a later one is acknowledged; one
    /// that left after all acknowledged packets is never lost.
    #[test]
    fn nine_eighths_of_a_round_trip_later_is_lost() {
        let mut packets = sent([0, 5, 10, 15].into_iter());
        packets.acknowledge(&frame(&[3]));
        assert_eq!(packets.find_lost(ms(89), 3, Span::ms(90)), []);
        assert_eq!(packets.loss_time, Some(ms(90)));
        assert_eq!(numbers(&packets.find_lost(ms(90), 3, Span::ms(90))), [1]);
        assert_eq!(packets.loss_time, Some(ms(95)));
        assert_eq!(numbers(&packets.find_lost(ms(500), 3, Span::ms(90))), [2]);
        assert_eq!(packets.loss_time, None);
    }

    /// There is no ambiguity: the acknowledgment of a packet that had been declared lost says so, and the data that was
    /// sent again in another packet stays in flight.
    #[test]
    fn the_acknowledgment_of_a_lost_packet_is_not_that_of_its_repetition() {
        let mut packets = sent([0, 1, 2, 3].into_iter());
        packets.acknowledge(&frame(&[2, 3, 4]));
        assert_eq!(numbers(&packets.find_lost(ms(10), 3, Span::ms(90))), [1]);
        assert_eq!(packets.send(ms(11), (0, 1), 1000, 1035), 5);
        let newly = packets.acknowledge(&frame(&[1, 2, 3, 4]));
        assert_eq!((numbers(&newly.acked), numbers(&newly.spurious)), (Vec::new(), [1].to_vec()));
        assert_eq!(packets.in_flight(), 1);
        let newly = packets.acknowledge(&frame(&[1, 2, 3, 4, 5]));
        assert_eq!((numbers(&newly.acked), newly.largest), ([5].to_vec(), true));
        assert_eq!(packets.acknowledge(&frame(&[7])), Newly::default(), "packet 7 was never sent");
    }

    /// The example of RFC 9002, section 7.6.3: packets 1 to 8 leave at 0, 1, 2, ..., of which 2 to 8 are declared lost
    /// when 9 is acknowledged at 12.2; the period from packet 2 (sent at 1) to packet 8 (sent at 8) exceeds three PTOs of
    /// 2 s each.
    #[test]
    fn persistent_congestion_is_that_of_the_example() {
        let mut packets = sent([0, 1000, 2000, 3000, 4000, 5000, 6000, 8000, 12_000].into_iter());
        packets.acknowledge(&frame(&[1]));
        assert_eq!(packets.find_lost(ms(1200), 3, Span::ms(1350)), []);
        packets.acknowledge(&frame(&[1, 9]));
        let lost = packets.find_lost(ms(12_200), 3, Span::ms(1350));
        assert_eq!(numbers(&lost), [2, 3, 4, 5, 6, 7, 8]);
        assert!(is_persistent(&lost, ms(200), Span::s(6)));
        assert!(!is_persistent(&lost, ms(200), Span::s(7)), "the period must be exceeded");
        assert!(!is_persistent(&lost, ms(2500), Span::s(6)), "before the first sample");
        let without_5: Vec<_> = lost.into_iter().filter(|packet| packet.number != 5).collect();
        assert!(!is_persistent(&without_5, ms(200), Span::s(6)), "packet 5 has arrived");
    }
}
