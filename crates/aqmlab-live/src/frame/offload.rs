//! Super-segments: a host's kernel and the router exchange several TCP segments of one connection
//! as one packet, as a kernel does with a network card that splits segments (TSO) and a driver that
//! joins them (GRO).
//!
//! Each packet is preceded by the header that section 5.1.6 of the Virtual I/O Device specification, version
//! 1.2, defines. Inside the router, segments look as they would on a wire: [`split`] completes headers and
//! checksums, and [`SuperSegment`] joins only segments that `split` would restore bit by bit.

use std::ops::Range;

use aqmlab_qdisc::Ecn;

use super::headers::{TCP, UDP, folded, internet_checksum, ones_sum, traffic_class};

/// Length of the header in front of each packet.
pub const HEADER: usize = 10;
/// Length of the longest super-segment, excluding that header.
pub const LONGEST: usize = 65_535;
/// Maximum number of segments in a super-segment; the kernel counts them in 16 bits.
pub const MOST_SEGMENTS: usize = 64;

/// Flag: the checksum field still covers only the pseudo-header.
const NEEDS_CSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// Flag: the first segment has CWR.
const GSO_ECN: u8 = 0x80;

/// Offsets in a TCP header (RFC 9293, section 3.1).
const SEQ: usize = 4;
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;
/// Total length of the longest IPv4 and TCP headers; without extension headers, IPv6 and TCP headers are
/// shorter.
const LONGEST_HEADERS: usize = 120;

/// The header in front of a packet, with its fields in native byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OffloadHeader {
    flags: u8,
    gso_type: u8,
    header_len: u16,
    /// Number of payload octets in each segment except the last.
    gso_size: u16,
    checksum_from: u16,
    /// Offset of the checksum, counted from `checksum_from`.
    checksum_at: u16,
}

impl OffloadHeader {
    /// Returns the header with these octets.
    pub fn parse(octets: &[u8; HEADER]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([octets[at], octets[at + 1]]);
        OffloadHeader {
            flags: octets[0],
            gso_type: octets[1],
            header_len: word(2),
            gso_size: word(4),
            checksum_from: word(6),
            checksum_at: word(8),
        }
    }

    /// Returns the header's octets.
    pub fn octets(self) -> [u8; HEADER] {
        let mut octets = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0];
        let words = [self.header_len, self.gso_size, self.checksum_from, self.checksum_at];
        for (to, word) in octets[2..].chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        octets
    }
}

/// Calls `each` for every packet in `read`, which holds an offload header followed by a packet or
/// super-segment. A super-segment that cannot be split is passed on as a whole; the router refuses it,
/// because it is longer than any packet of its class.
pub fn split(read: &mut [u8], mut each: impl FnMut(&[u8])) {
    let Some((header, packet)) = read.split_first_chunk_mut::<HEADER>() else { return each(&[]) };
    let header = OffloadHeader::parse(header);
    let size = usize::from(header.gso_size);
    let layout = matches!(header.gso_type & !GSO_ECN, GSO_TCPV4 | GSO_TCPV6)
        .then(|| Layout::of(packet))
        .flatten()
        .filter(|layout| size > 0 && layout.payload + size < packet.len());
    match layout {
        Some(layout) => split_tcp(packet, layout, size, each),
        None => {
            if header.flags & NEEDS_CSUM != 0 {
                complete_checksum(packet, header);
            }
            each(packet);
        }
    }
}

/// Returns the number of packets in `read`, which holds an offload header followed by a packet or
/// super-segment.
pub fn packets_in(read: &[u8]) -> u64 {
    let Some((header, packet)) = read.split_first_chunk::<HEADER>() else { return 0 };
    let size = usize::from(OffloadHeader::parse(header).gso_size);
    match Layout::of(packet) {
        Some(layout) if size > 0 => ((packet.len() - layout.payload).div_ceil(size) as u64).max(1),
        _ => 1,
    }
}

/// Offsets in an unfragmented TCP packet without extension headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Layout {
    is_ipv6: bool,
    /// First octet of the TCP header.
    tcp: usize,
    /// First octet of the payload.
    payload: usize,
}

impl Layout {
    fn of(packet: &[u8]) -> Option<Self> {
        let word = |at: usize| usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
        let (is_ipv6, tcp) = match packet.first()? >> 4 {
            4 if packet.len() >= 20 => {
                let header = 4 * usize::from(packet[0] & 0x0f);
                let whole = word(2) == packet.len() && word(6) & 0x3fff == 0;
                (header >= 20 && packet[9] == TCP && whole).then_some((false, header))?
            }
            6 if packet.len() >= 40 => {
                (packet[6] == TCP && word(4) + 40 == packet.len()).then_some((true, 40))?
            }
            _ => return None,
        };
        let payload = tcp + 4 * usize::from(packet.get(tcp + 12)? >> 4);
        (tcp + 20..=packet.len()).contains(&payload).then_some(Layout { is_ipv6, tcp, payload })
    }

    fn seq(self, packet: &[u8]) -> u32 {
        let at = self.tcp + SEQ;
        u32::from_be_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]])
    }

    /// Returns the identification of an IPv4 packet; zero for IPv6.
    fn id(self, packet: &[u8]) -> u16 {
        if self.is_ipv6 { 0 } else { u16::from_be_bytes([packet[4], packet[5]]) }
    }

    /// Returns whether a segment may be joined with others: it must have data, no IP options and no
    /// flag that applies to it alone. Packets with CE are not joined, because a kernel counts a
    /// super-segment from a device as one packet with CE.
    fn may_be_joined(self, packet: &[u8]) -> bool {
        let plain = packet[self.tcp + FLAGS] & !(PSH | ECE) == ACK;
        let without_options = self.is_ipv6 || self.tcp == 20;
        plain && without_options && self.payload < packet.len() && traffic_class(packet) & 3 != Ecn::Ce as u8
    }

    /// Returns whether the headers of two segments are equal except for length, identification, sequence number, PSH
    /// and checksums.
    fn have_equal_headers(self, a: &[u8], b: &[u8]) -> bool {
        let Layout { is_ipv6, tcp, payload } = self;
        let equal = |range: Range<usize>| a[range.clone()] == b[range];
        let ip = match is_ipv6 {
            true => equal(0..4) && equal(6..40),
            false => equal(0..2) && equal(6..10) && equal(12..20),
        };
        let flags = (a[tcp + FLAGS] ^ b[tcp + FLAGS]) & !PSH;
        ip && equal(tcp..tcp + SEQ)
            && equal(tcp + 8..tcp + FLAGS)
            && flags == 0
            && equal(tcp + 14..tcp + CHECKSUM)
            && equal(tcp + 18..payload)
    }

    /// Returns the sum over the pseudo-header of a packet (RFC 9293, section 3.1; RFC 8200, section 8.1).
    fn pseudo_sum(self, packet: &[u8]) -> u64 {
        let addresses = if self.is_ipv6 { &packet[8..40] } else { &packet[12..20] };
        ones_sum(addresses) + u64::from(TCP) + (packet.len() - self.tcp) as u64
    }

    /// Writes the packet's length into its IP header, and updates the checksum of an IPv4 header.
    fn set_length(self, packet: &mut [u8]) {
        let len = packet.len() as u16;
        if self.is_ipv6 {
            packet[4..6].copy_from_slice(&(len - 40).to_be_bytes());
        } else {
            packet[2..4].copy_from_slice(&len.to_be_bytes());
            packet[10..12].fill(0);
            let checksum = internet_checksum(&packet[..self.tcp]);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

fn split_tcp(packet: &mut [u8], layout: Layout, size: usize, mut each: impl FnMut(&[u8])) {
    let Layout { is_ipv6, tcp, payload } = layout;
    let mut headers = [0; LONGEST_HEADERS];
    let headers = &mut headers[..payload];
    headers.copy_from_slice(&packet[..payload]);
    let (id, seq) = (layout.id(headers), layout.seq(headers));
    let flags = headers[tcp + FLAGS];
    let end = packet.len();
    for (number, at) in (payload..end).step_by(size).enumerate() {
        let until = (at + size).min(end);
        // The segment's headers overwrite the end of the previous segment, which is no longer needed.
        let segment = &mut packet[at - payload..until];
        let first = if number == 0 { 0 } else { CWR };
        let last = if until == end { 0 } else { FIN | PSH };
        headers[tcp + FLAGS] = flags & !(first | last);
        let seq = seq.wrapping_add((number * size) as u32);
        headers[tcp + SEQ..][..4].copy_from_slice(&seq.to_be_bytes());
        headers[tcp + CHECKSUM..][..2].fill(0);
        if !is_ipv6 {
            headers[4..6].copy_from_slice(&id.wrapping_add(number as u16).to_be_bytes());
        }
        segment[..payload].copy_from_slice(headers);
        layout.set_length(segment);
        let checksum = !folded(layout.pseudo_sum(segment) + ones_sum(&segment[tcp..]));
        segment[tcp + CHECKSUM..][..2].copy_from_slice(&checksum.to_be_bytes());
        each(segment);
    }
}

/// Completes a checksum that the packet's sender has left to the device. A position outside the packet is
/// ignored.
fn complete_checksum(packet: &mut [u8], header: OffloadHeader) {
    let from = usize::from(header.checksum_from);
    let at = from + usize::from(header.checksum_at);
    if at + 2 > packet.len() {
        return;
    }
    // The checksum field already holds the sum over the pseudo-header.
    let checksum = internet_checksum(&packet[from..]);
    let protocol = if packet[0] >> 4 == 6 { packet.get(6) } else { packet.get(9) };
    // RFC 768: if a datagram's checksum is zero, it is sent as all ones.
    let checksum = if checksum == 0 && protocol == Some(&UDP) { 0xffff } else { checksum };
    packet[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// A packet, or consecutive segments of one connection, to be written to a host in one call.
#[derive(Debug)]
pub struct SuperSegment {
    octets: Box<[u8]>,
    len: usize,
    segments: usize,
    /// Present while another segment may be added.
    open: Option<Open>,
}

/// The conditions that the next segment must meet.
#[derive(Clone, Copy, Debug)]
struct Open {
    layout: Layout,
    /// Number of payload octets in each segment except the last.
    size: usize,
    next_seq: u32,
    next_id: u16,
}

/// Contents of a new super-segment. They are not zero, because the system would allocate pages of zeros only
/// at the first write, during the run.
const FRESH: u8 = 0xa5;

impl SuperSegment {
    /// Returns an empty super-segment.
    pub fn new() -> Self {
        let octets = vec![FRESH; HEADER + LONGEST].into_boxed_slice();
        SuperSegment { octets, len: 0, segments: 0, open: None }
    }

    /// Replaces the contents with one packet.
    ///
    /// # Panics
    /// If the packet is longer than an IP packet can be.
    pub fn begin(&mut self, packet: &[u8]) {
        self.octets[..HEADER].fill(0);
        self.octets[HEADER..HEADER + packet.len()].copy_from_slice(packet);
        (self.len, self.segments) = (packet.len(), 1);
        self.open = Layout::of(packet).filter(|layout| layout.may_be_joined(packet)).map(|layout| {
            let size = packet.len() - layout.payload;
            let next_seq = layout.seq(packet).wrapping_add(size as u32);
            Open { layout, size, next_seq, next_id: layout.id(packet).wrapping_add(1) }
        });
        self.close_behind(packet);
    }

    /// Adds a segment if it continues the contents; returns whether it was added.
    pub fn append(&mut self, packet: &[u8]) -> bool {
        let Some(Open { layout, size, next_seq, next_id }) = self.open else { return false };
        let payload = packet.len().saturating_sub(layout.payload);
        let continues = self.len + payload <= LONGEST
            && self.segments < MOST_SEGMENTS
            && payload <= size
            && Layout::of(packet) == Some(layout)
            && layout.may_be_joined(packet)
            && layout.seq(packet) == next_seq
            && (layout.is_ipv6 || layout.id(packet) == next_id)
            && layout.have_equal_headers(&self.octets[HEADER..], packet);
        if !continues {
            return false;
        }
        let end = HEADER + self.len;
        self.octets[end..end + payload].copy_from_slice(&packet[layout.payload..]);
        (self.len, self.segments) = (self.len + payload, self.segments + 1);
        // The joined packet has the PSH flag if its last segment has it.
        self.octets[HEADER + layout.tcp + FLAGS] |= packet[layout.tcp + FLAGS] & PSH;
        let (next_seq, next_id) = (next_seq.wrapping_add(payload as u32), next_id.wrapping_add(1));
        self.open = (payload == size).then_some(Open { layout, size, next_seq, next_id });
        self.complete(layout, size);
        self.close_behind(packet);
        true
    }

    /// Returns the number of packets in the super-segment.
    pub const fn segments(&self) -> usize {
        self.segments
    }

    /// Returns the octets to be written: the header, and the packet or super-segment.
    pub fn octets(&self) -> &[u8] {
        &self.octets[..HEADER + self.len]
    }

    /// Ends the super-segment if this segment has PSH, because, as in a kernel, nothing may follow such a
    /// segment.
    fn close_behind(&mut self, packet: &[u8]) {
        self.open = self.open.filter(|open| packet[open.layout.tcp + FLAGS] & PSH == 0);
    }

    /// Writes the headers that describe the joined segments as one packet.
    fn complete(&mut self, layout: Layout, size: usize) {
        let (header, packet) = self.octets.split_at_mut(HEADER);
        let packet = &mut packet[..self.len];
        layout.set_length(packet);
        let sum = folded(layout.pseudo_sum(packet));
        packet[layout.tcp + CHECKSUM..][..2].copy_from_slice(&sum.to_be_bytes());
        let offload = OffloadHeader {
            flags: NEEDS_CSUM,
            gso_type: if layout.is_ipv6 { GSO_TCPV6 } else { GSO_TCPV4 },
            header_len: layout.payload as u16,
            gso_size: size as u16,
            checksum_from: layout.tcp as u16,
            checksum_at: CHECKSUM as u16,
        };
        header.copy_from_slice(&offload.octets());
    }
}

impl Default for SuperSegment {
    fn default() -> Self {
        SuperSegment::new()
    }
}
