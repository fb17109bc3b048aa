//! Interprets arbitrary bytes as a packet: the parser must return a result and agree with another parser, and
//! setting a mark must change only the traffic class and the checksum. Also interprets the bytes as a
//! super-segment: if its segments are joined and split again, they must be unchanged.
#![no_main]

use std::net::IpAddr;

use aqmlab_live::frame::offload::{SuperSegment, packets_in, split};
use aqmlab_live::frame::{Headers, internet_checksum, parse, set_traffic_class, traffic_class};
use etherparse::{Ipv4HeaderSlice, Ipv6HeaderSlice, LaxSlicedPacket, TransportSlice};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    look_at(bytes);
    // Random bytes seldom have a correct checksum: without this step, nearly all of IPv4 would remain
    // untested.
    if let Some(repaired) = repaired(bytes) {
        look_at(&repaired);
    }
    join_and_split(bytes);
});

fn segments(read: &[u8]) -> Vec<Vec<u8>> {
    let (mut read, mut segments) = (read.to_vec(), Vec::new());
    split(&mut read, |segment| segments.push(segment.to_vec()));
    segments
}

fn join_and_split(read: &[u8]) {
    packets_in(read);
    let first = segments(read);
    let mut joined = SuperSegment::new();
    let mut again = Vec::new();
    for segment in &first {
        if !joined.append(segment) {
            again.extend(if joined.segments() > 0 { segments(joined.octets()) } else { Vec::new() });
            joined.begin(segment);
        }
    }
    again.extend(segments(joined.octets()));
    assert_eq!(again, first);
}

/// Returns the bytes as an IPv4 packet with the correct checksum, if the header is complete.
fn repaired(bytes: &[u8]) -> Option<Vec<u8>> {
    let first = *bytes.first().filter(|first| **first >> 4 == 4)?;
    let mut packet = bytes.to_vec();
    let header = packet.get_mut(..usize::from(first & 0x0f) * 4).filter(|header| header.len() >= 20)?;
    header[10..12].fill(0);
    let checksum = internet_checksum(header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    Some(packet)
}

fn look_at(bytes: &[u8]) {
    let Ok(headers) = parse(bytes) else { return };
    let packet = &bytes[..usize::from(headers.total_len)];
    assert_eq!(parse(packet), Ok(headers), "bytes after the packet are ignored");
    assert_eq!(traffic_class(packet), headers.traffic_class);
    another_reader_agrees(packet, &headers);
    // Each value of the ECN field, and one traffic class that depends on the packet.
    let last = packet[packet.len() - 1];
    for class in [0, 1, 2, 3].map(|ecn| headers.traffic_class & !3 | ecn).into_iter().chain([last]) {
        a_mark_changes_nothing_else(packet, &headers, class);
    }
}

fn another_reader_agrees(packet: &[u8], headers: &Headers) {
    match headers.source {
        IpAddr::V4(source) => {
            let theirs = Ipv4HeaderSlice::from_slice(packet).expect("it is an IPv4 header");
            assert_eq!((theirs.source_addr(), theirs.total_len()), (source, headers.total_len));
            assert_eq!(theirs.is_fragmenting_payload(), headers.fragment);
            assert_eq!(theirs.protocol().0, headers.protocol);
            assert_eq!(theirs.dcp().value() << 2 | theirs.ecn().value(), headers.traffic_class);
        }
        IpAddr::V6(source) => {
            let theirs = Ipv6HeaderSlice::from_slice(packet).expect("it is an IPv6 header");
            assert_eq!(theirs.source_addr(), source);
            assert_eq!(u32::from(theirs.payload_length()) + 40, u32::from(headers.total_len));
            assert_eq!(theirs.traffic_class(), headers.traffic_class);
        }
    }
    // The ports must agree if both parsers have found a complete header.
    let Some(ports) = headers.ports else { return };
    match LaxSlicedPacket::from_ip(packet).ok().and_then(|theirs| theirs.transport) {
        Some(TransportSlice::Tcp(tcp)) => assert_eq!((tcp.source_port(), tcp.destination_port()), ports),
        Some(TransportSlice::Udp(udp)) => assert_eq!((udp.source_port(), udp.destination_port()), ports),
        _ => {}
    }
}

fn a_mark_changes_nothing_else(packet: &[u8], headers: &Headers, class: u8) {
    let mut marked = packet.to_vec();
    set_traffic_class(&mut marked, class);
    let expected = Headers { traffic_class: class, ..*headers };
    assert_eq!(parse(&marked), Ok(expected), "the checksum included");
    let is_v4 = headers.source.is_ipv4();
    for (at, (old, new)) in packet.iter().zip(&marked).enumerate() {
        let may_change = match (is_v4, at) {
            (true, 1 | 10 | 11) => 0xff,
            (false, 0) => 0x0f,
            (false, 1) => 0xf0,
            _ => 0,
        };
        assert_eq!((old ^ new) & !may_change, 0, "octet {at}");
    }
    if is_v4 {
        let header = usize::from(packet[0] & 0x0f) * 4;
        assert_eq!(internet_checksum(&marked[..header]), 0);
    }
}
