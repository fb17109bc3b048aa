//! Splitting and joining of TCP segments, checked against an independent reader and writer of packets.

use aqmlab_live::frame::offload::{HEADER, MOST_SEGMENTS, OffloadHeader, SuperSegment, packets_in, split};
use aqmlab_live::frame::set_traffic_class;
use etherparse::{
    IpNumber, Ipv4Header, Ipv6Header, NetSlice, SlicedPacket, TcpHeader, TcpOptions, TransportSlice,
    UdpHeader,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// A connection and its next segment.
#[derive(Clone, Debug)]
struct Connection {
    ipv6: bool,
    addresses: [[u8; 16]; 2],
    traffic_class: u8,
    tcp: TcpHeader,
    id: u16,
}

fn connection() -> impl Strategy<Value = Connection> {
    let class = any::<u8>().prop_map(|class| if class & 3 == 3 { class & !1 } else { class });
    let numbers = any::<(u16, u16, u32, u32, u16, u16)>();
    // A segment has either timestamps or no options.
    let options = prop_oneof![
        Just(vec![]),
        vec(any::<u8>(), 10).prop_map(|value| [vec![1, 1, 8, 10], value[..8].to_vec()].concat())
    ];
    (any::<bool>(), any::<[[u8; 16]; 2]>(), class, numbers, options).prop_map(
        |(ipv6, addresses, traffic_class, (from, to, seq, ack, window, id), options)| {
            let mut tcp = TcpHeader::new(from, to, seq, window);
            (tcp.ack, tcp.acknowledgment_number) = (true, ack);
            tcp.options = TcpOptions::try_from_slice(&options).unwrap();
            Connection { ipv6, addresses, traffic_class, tcp, id }
        },
    )
}

impl Connection {
    /// Returns the IP header of a packet that carries this TCP segment or datagram.
    fn ip(&self, protocol: IpNumber, upper: &[u8]) -> Vec<u8> {
        let [source, destination] = self.addresses;
        if self.ipv6 {
            let header = Ipv6Header {
                traffic_class: self.traffic_class,
                payload_length: upper.len() as u16,
                next_header: protocol,
                hop_limit: 64,
                source,
                destination,
                ..Default::default()
            };
            header.to_bytes().to_vec()
        } else {
            let first = |octets: [u8; 16]| [octets[0], octets[1], octets[2], octets[3]];
            let mut header =
                Ipv4Header::new(upper.len() as u16, 64, protocol, first(source), first(destination)).unwrap();
            (header.identification, header.dont_fragment) = (self.id, true);
            let mut octets = header.to_bytes().to_vec();
            octets[10..12].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
            set_traffic_class(&mut octets, self.traffic_class);
            octets
        }
    }

    fn tcp_checksum(&self, payload: &[u8]) -> u16 {
        let [source, destination] = self.addresses;
        let first = |octets: [u8; 16]| [octets[0], octets[1], octets[2], octets[3]];
        match self.ipv6 {
            true => self.tcp.calc_checksum_ipv6_raw(source, destination, payload).unwrap(),
            false => self.tcp.calc_checksum_ipv4_raw(first(source), first(destination), payload).unwrap(),
        }
    }

    /// Returns the packet that carries `payload`, with its checksum.
    fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let tcp = TcpHeader { checksum: self.tcp_checksum(payload), ..self.tcp.clone() };
        let segment = [tcp.to_bytes().to_vec(), payload.to_vec()].concat();
        [self.ip(IpNumber::TCP, &segment), segment].concat()
    }

    /// Records that the connection has sent a packet with `payload` bytes of payload.
    fn advance(&mut self, payload: usize) {
        self.tcp.sequence_number = self.tcp.sequence_number.wrapping_add(payload as u32);
        self.id = self.id.wrapping_add(1);
    }
}

/// Returns the header that a kernel puts in front of a super-segment.
fn header(ipv6: bool, size: u16, cwr: bool) -> [u8; HEADER] {
    let mut octets = [0; HEADER];
    octets[0] = 1;
    octets[1] = if ipv6 { 4 } else { 1 } | if cwr { 0x80 } else { 0 };
    octets[4..6].copy_from_slice(&size.to_ne_bytes());
    octets[6..8].copy_from_slice(&(if ipv6 { 40u16 } else { 20 }).to_ne_bytes());
    octets[8..10].copy_from_slice(&16u16.to_ne_bytes());
    octets
}

fn split_all(read: &[u8]) -> Vec<Vec<u8>> {
    let (mut read, mut packets) = (read.to_vec(), Vec::new());
    split(&mut read, |packet| packets.push(packet.to_vec()));
    packets
}

/// Returns the packets that arrive when `packets` are written, joined as far as possible, and the number of
/// packets in each write.
fn joined_and_split(packets: &[Vec<u8>]) -> (Vec<Vec<u8>>, Vec<usize>) {
    let (mut arrived, mut joined) = (Vec::new(), Vec::new());
    let mut waiting = SuperSegment::new();
    for packet in packets {
        if !waiting.append(packet) {
            if waiting.segments() > 0 {
                arrived.extend(split_all(waiting.octets()));
                joined.push(waiting.segments());
            }
            waiting.begin(packet);
        }
    }
    arrived.extend(split_all(waiting.octets()));
    joined.push(waiting.segments());
    (arrived, joined)
}

proptest! {
    /// Splitting a super-segment yields the packets that its sender would have made.
    #[test]
    fn a_super_segment_becomes_the_segments_of_its_sender(
        start in connection(), payload in vec(any::<u8>(), 1..20_000), size in 1u16..1500, flags in any::<[bool; 4]>(),
    ) {
        let mut sender = start.clone();
        [sender.tcp.cwr, sender.tcp.psh, sender.tcp.fin, sender.tcp.ece] = flags;
        let mut whole = sender.packet(&payload);
        let checksum_at = if start.ipv6 { 56 } else { 36 };
        whole[checksum_at..checksum_at + 2].copy_from_slice(&[0x12, 0x34]);
        let read = [header(start.ipv6, size, flags[0]).to_vec(), whole].concat();
        let chunks: Vec<&[u8]> = payload.chunks(size.into()).collect();
        prop_assert_eq!(packets_in(&read), chunks.len() as u64);
        let segments = split_all(&read);
        prop_assert_eq!(segments.len(), chunks.len());
        if chunks.len() == 1 {
            return Ok(());
        }
        for (number, chunk) in chunks.iter().enumerate() {
            let last = number + 1 == chunks.len();
            sender.tcp.cwr = flags[0] && number == 0;
            (sender.tcp.psh, sender.tcp.fin) = (flags[1] && last, flags[2] && last);
            prop_assert_eq!(&segments[number], &sender.packet(chunk), "segment {}", number);
            sender.advance(chunk.len());
        }
    }

    /// Packets arrive unchanged after they have been joined, even if some segments are lost, marked or short,
    /// or are pure acknowledgments.
    #[test]
    fn what_is_joined_arrives_as_it_was(
        start in connection(), steps in vec((0u8..12, 1usize..1448), 1..100),
    ) {
        let (mut sender, mut packets) = (start, Vec::new());
        for (kind, size) in steps {
            let payload = match kind {
                0 => size,
                1 => 0,
                _ => 1448,
            };
            let class = sender.traffic_class;
            sender.tcp.psh = kind == 2;
            sender.tcp.ece = kind == 3;
            sender.tcp.fin = kind == 4 && size < 100;
            if kind == 5 {
                sender.traffic_class |= 3;
            }
            if kind != 6 {
                packets.push(sender.packet(&vec![size as u8; payload]));
            }
            sender.traffic_class = class;
            sender.advance(payload);
        }
        prop_assume!(!packets.is_empty());
        let (arrived, joined) = joined_and_split(&packets);
        prop_assert_eq!(joined.iter().sum::<usize>(), packets.len());
        prop_assert_eq!(arrived, packets);
    }

    /// Splitting arbitrary octets yields at least one packet, and split packets can be joined and split
    /// again.
    #[test]
    fn any_octets_are_split_and_joined(mut read in vec(any::<u8>(), 0..3000), as_tcp in any::<bool>()) {
        if as_tcp && read.len() > HEADER + 40 {
            read[1] = 1;
            let len = (read.len() - HEADER) as u16;
            let packet = &mut read[HEADER..];
            packet[0] = 0x45;
            packet[2..4].copy_from_slice(&len.to_be_bytes());
            packet[6..8].fill(0);
            (packet[9], packet[32]) = (6, 0x50);
        }
        let packets = split_all(&read);
        prop_assert!(!packets.is_empty());
        if packets.len() > 1 {
            let (arrived, _) = joined_and_split(&packets);
            prop_assert_eq!(arrived, packets);
        }
    }

    /// Splitting completes a checksum that the kernel has left to the device.
    #[test]
    fn a_single_packet_gets_its_checksum(start in connection(), payload in vec(any::<u8>(), 0..1400), udp in any::<bool>()) {
        let mut packet = if udp {
            let header = UdpHeader { source_port: 1, destination_port: 2, length: 8 + payload.len() as u16, checksum: 0 };
            let datagram = [header.to_bytes().to_vec(), payload.clone()].concat();
            [start.ip(IpNumber::UDP, &datagram), datagram].concat()
        } else {
            start.packet(&payload)
        };
        let from = if start.ipv6 { 40 } else { 20 };
        let at = if udp { 6 } else { 16 };
        // The sum over the pseudo-header, folded and not complemented.
        let addresses = if start.ipv6 { packet[8..40].to_vec() } else { packet[12..20].to_vec() };
        let words = addresses.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let mut sum = words.sum::<u32>() + if udp { 17 } else { 6 } + (packet.len() - from) as u32;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        packet[from + at..from + at + 2].copy_from_slice(&(sum as u16).to_be_bytes());
        let mut front = header(start.ipv6, 0, false);
        front[1] = 0;
        front[8..10].copy_from_slice(&(at as u16).to_ne_bytes());
        let packets = split_all(&[front.to_vec(), packet].concat());
        prop_assert_eq!(packets.len(), 1);
        let sliced = SlicedPacket::from_ip(&packets[0]).unwrap();
        let (found, expected) = match (sliced.transport.unwrap(), sliced.net.unwrap()) {
            (TransportSlice::Tcp(tcp), _) => (tcp.checksum(), start.tcp_checksum(&payload)),
            (TransportSlice::Udp(theirs), NetSlice::Ipv4(ip)) => {
                (theirs.checksum(), theirs.to_header().calc_checksum_ipv4(&ip.header().to_header(), &payload).unwrap())
            }
            (TransportSlice::Udp(theirs), NetSlice::Ipv6(ip)) => {
                (theirs.checksum(), theirs.to_header().calc_checksum_ipv6(&ip.header().to_header(), &payload).unwrap())
            }
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(found, expected);
    }
}

fn plain() -> Connection {
    let mut tcp = TcpHeader::new(1024, 5001, u32::MAX - 3000, 1000);
    tcp.ack = true;
    Connection { ipv6: false, addresses: [[1; 16], [2; 16]], traffic_class: 2, tcp, id: u16::MAX - 1 }
}

/// Sequence numbers and identifications wrap around, and the numbers of segments and octets that
/// are joined are limited.
#[test]
fn consecutive_segments_are_joined_up_to_a_limit() {
    for (ipv6, payload, most) in [(false, 1448, 45), (true, 1428, 45), (false, 100, MOST_SEGMENTS)] {
        let mut sender = Connection { ipv6, ..plain() };
        let packets: Vec<Vec<u8>> = (0..3 * most)
            .map(|n| {
                let packet = sender.packet(&vec![n as u8; payload]);
                sender.advance(payload);
                packet
            })
            .collect();
        let (arrived, joined) = joined_and_split(&packets);
        assert_eq!(joined, [most; 3], "{payload}");
        assert_eq!(arrived, packets);
    }
}

#[test]
fn a_packet_with_ce_stays_alone() {
    let mut sender = plain();
    let mut packets = Vec::new();
    for n in 0..9 {
        sender.traffic_class = if n == 4 { 3 } else { 2 };
        packets.push(sender.packet(&[n; 1000]));
        sender.advance(1000);
    }
    let (arrived, joined) = joined_and_split(&packets);
    assert_eq!(joined, [4, 1, 4]);
    assert_eq!(arrived, packets);
}

#[test]
fn a_header_is_read_as_it_was_written() {
    let octets: [u8; HEADER] = [1, 0x81, 2, 3, 4, 5, 6, 7, 8, 9];
    assert_eq!(OffloadHeader::parse(&octets).octets(), octets);
    assert_eq!(OffloadHeader::default().octets(), [0; HEADER]);
}
