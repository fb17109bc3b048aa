//! The bytes that a simulated packet would have on a real link. The simulator moves fields, whereas
//! a capture shows headers.
//!
//! Hosts have the addresses and ports of the live router: class c has client 198.18.c.1 and server
//! 198.19.c.1 (RFC 2544, appendix C.2.2); its flow i uses the client's port 1024 + i and the
//! server's port 5001. The payload is all zeros.
//!
//! Headers are as long as in the simulation, if real headers can have that length. The bytes of a
//! profile's header beyond the first 40 are options: first TCP options, then IP options. They
//! contain the packet's own options (SACK, RFC 2018; AccECN, RFC 9768), and no-operations otherwise. A header length
//! that no packet can have (less than 40 bytes, or not a multiple of four) becomes the nearest
//! possible one, and a comment in the capture then gives the length that the packet has in the
//! simulation.

use aqmlab_qdisc::{Ecn, Packet};
use aqmlab_transport::{Extras, Flags, Segment};

use crate::options::Kept;
use crate::packet::{SimPacket, Toward};

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
/// Length of an IPv4 or a TCP header without options (RFC 791, section 3.1; RFC 9293, section 3.1).
const PLAIN: usize = 20;
const UDP_HEADER: usize = 8;
/// Bytes of options for which each of the two headers has room.
const MOST_OPTIONS: usize = 40;
const LARGEST_PACKET: usize = 65_535;
const TTL: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;

/// The option that fills the rest of either header (RFC 791; RFC 9293, section 3.2).
const NO_OPERATION: u8 = 1;
const SACK_PERMITTED: [u8; 2] = [4, 2];
const SACK: u8 = 5;

const CLIENT_NET: u8 = 18;
const SERVER_NET: u8 = 19;
const FIRST_CLIENT_PORT: u32 = 1024;
const CLIENT_PORTS: u32 = 65_536 - FIRST_CLIENT_PORT;

/// The addresses and ports of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Addresses {
    from: ([u8; 4], u16),
    to: ([u8; 4], u16),
}

impl Addresses {
    /// Returns the addresses and ports of flow `index` of a class. If the number of the class does
    /// not fit in the third octet, the fourth octet holds the rest; if the client has too few
    /// ports, further flows use further ports of the server.
    fn of((class, port): (u16, u16), index: u32, toward: Toward) -> Self {
        let [high, low] = class.to_be_bytes();
        let host = |net| [198, net, low, 1 + high % 254];
        let client = (host(CLIENT_NET), (FIRST_CLIENT_PORT + index % CLIENT_PORTS) as u16);
        let server = (host(SERVER_NET), (u32::from(port) + index / CLIENT_PORTS) as u16);
        match toward {
            Toward::Receiver => Addresses { from: client, to: server },
            Toward::Sender => Addresses { from: server, to: client },
        }
    }
}

/// Replaces the contents of `out` with the first `limit` bytes of `packet`, whose flow is number
/// `index` of its class. The servers of that class listen on `server_port`. Returns the number of
/// bytes of the whole packet.
pub fn write(
    out: &mut Vec<u8>,
    packet: &SimPacket,
    options: Option<&Kept>,
    (index, server_port): (u32, u16),
    limit: usize,
) -> usize {
    let addresses = Addresses::of((packet.flow().class, server_port), index, packet.toward());
    let wire_len = packet.wire_len().get() as usize;
    out.clear();
    let payload = match packet.segment() {
        Some(segment) => {
            let segment = options.map_or(segment, |options| options.complete(segment));
            write_tcp(out, packet, &segment, options, addresses, wire_len)
        }
        None => write_udp(out, packet, addresses, wire_len),
    };
    let len = out.len() + payload;
    out.resize(len.min(limit), 0);
    len
}

/// Writes the headers of a segment, and returns the number of payload bytes that follow.
fn write_tcp(
    out: &mut Vec<u8>,
    packet: &SimPacket,
    segment: &Segment,
    options: Option<&Kept>,
    addresses: Addresses,
    wire_len: usize,
) -> usize {
    let room = wire_len.saturating_sub(segment.len as usize + 2 * PLAIN);
    let tcp_options = room.min(MOST_OPTIONS) & !3;
    let ip_options = (room - tcp_options).min(MOST_OPTIONS) & !3;
    let header = PLAIN + tcp_options;
    let payload = (segment.len as usize).min(LARGEST_PACKET - PLAIN - ip_options - header);
    write_ip(out, packet, PROTOCOL_TCP, addresses, ip_options, header + payload);
    let begin = out.len();
    out.extend(addresses.from.1.to_be_bytes());
    out.extend(addresses.to.1.to_be_bytes());
    out.extend(segment.seq.to_be_bytes());
    let ack = if segment.flags.has(Flags::ACK) { segment.ack } else { 0 };
    out.extend(ack.to_be_bytes());
    out.extend((((header / 4) as u16) << 12 | segment.flags.header_bits()).to_be_bytes());
    // A window above 65,535 would need the window scale option, for which simulated headers have no room.
    out.extend((segment.window.min(0xffff) as u16).to_be_bytes());
    out.extend([0; 4]); // checksum, urgent pointer
    write_tcp_options(out, segment, options, tcp_options);
    set_checksum(out, begin, 16, pseudo_header(PROTOCOL_TCP, addresses, header + payload));
    payload
}

/// Writes `room` bytes of options: no-operations, followed by those of the segment's own options that fit.
fn write_tcp_options(out: &mut Vec<u8>, segment: &Segment, options: Option<&Kept>, room: usize) {
    let mut own = Vec::with_capacity(MOST_OPTIONS);
    let accurate_ecn = options.map(|kept| &kept.options.accurate_ecn).filter(|option| option.is_present());
    if let Some(option) = accurate_ecn.filter(|option| option.wire_len() <= room) {
        own.resize(option.wire_len(), 0);
        option.write(&mut own);
    }
    let blocks = options.map_or(&[][..], |kept| kept.options.sack.blocks());
    let sack_len = 2 + 8 * blocks.len();
    if !blocks.is_empty() && own.len() + sack_len <= room {
        own.extend([SACK, sack_len as u8]);
        own.extend(blocks.iter().flat_map(|&(left, right)| [left, right]).flat_map(u32::to_be_bytes));
    } else if segment.extras.has(Extras::SACK_PERMITTED) && own.len() + SACK_PERMITTED.len() <= room {
        own.extend(SACK_PERMITTED);
    }
    out.resize(out.len() + room - own.len(), NO_OPERATION);
    out.extend(own);
}

/// Writes the headers of a datagram, and returns the number of payload bytes that follow.
fn write_udp(out: &mut Vec<u8>, packet: &SimPacket, addresses: Addresses, wire_len: usize) -> usize {
    let len = wire_len.clamp(PLAIN + UDP_HEADER, LARGEST_PACKET) - PLAIN;
    write_ip(out, packet, PROTOCOL_UDP, addresses, 0, len);
    let begin = out.len();
    out.extend(addresses.from.1.to_be_bytes());
    out.extend(addresses.to.1.to_be_bytes());
    out.extend((len as u16).to_be_bytes());
    out.extend([0; 2]);
    set_checksum(out, begin, 6, pseudo_header(PROTOCOL_UDP, addresses, len));
    if out[begin + 6..] == [0, 0] {
        out[begin + 6..].fill(0xff); // zero would mean that there is no checksum (RFC 768)
    }
    len - UDP_HEADER
}

/// Writes an IPv4 header for a payload of `len` bytes.
fn write_ip(
    out: &mut Vec<u8>,
    packet: &SimPacket,
    protocol: u8,
    addresses: Addresses,
    options: usize,
    len: usize,
) {
    let begin = out.len();
    let header = PLAIN + options;
    out.push(0x40 | (header / 4) as u8); // version 4
    out.push(packet.dscp().0 << 2 | ecn_field(packet.ecn()));
    out.extend(((header + len) as u16).to_be_bytes());
    // Never fragmented, so the identification has no meaning (RFC 6864, section 4.1).
    out.extend([0; 2]);
    out.extend(DONT_FRAGMENT.to_be_bytes());
    out.extend([TTL, protocol, 0, 0]);
    out.extend(addresses.from.0);
    out.extend(addresses.to.0);
    out.resize(out.len() + options, NO_OPERATION);
    set_checksum(out, begin, 10, 0);
}

/// Returns the bits of the ECN field (RFC 3168, section 5).
const fn ecn_field(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b00,
        Ecn::Ect1 => 0b01,
        Ecn::Ect0 => 0b10,
        Ecn::Ce => 0b11,
    }
}

/// Returns the sum of the IP fields that the checksums of TCP and UDP cover (RFC 9293, section
/// 3.1).
fn pseudo_header(protocol: u8, addresses: Addresses, len: usize) -> u32 {
    words(&addresses.from.0) + words(&addresses.to.0) + u32::from(protocol) + len as u32
}

/// Computes the Internet checksum (RFC 1071) over the bytes starting at `begin`, plus the sum
/// `more`, and writes it into the two bytes at offset `place` from `begin`. The payload is all
/// zeros, so it adds nothing.
fn set_checksum(out: &mut [u8], begin: usize, place: usize, more: u32) {
    let mut sum = words(&out[begin..]) + more;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    out[begin + place..begin + place + 2].copy_from_slice(&(!sum as u16).to_be_bytes());
}

/// Returns the sum of 16-bit words. Headers have an even number of bytes, and so few that the sum
/// fits in 32 bits.
fn words(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
}
