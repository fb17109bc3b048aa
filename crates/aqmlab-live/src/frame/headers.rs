//! The headers of an IP packet: the fields that a router needs, and the octet that it may change.
//!
//! The parser is total: it returns a result for any bytes and never panics. When the DSCP or ECN field
//! changes, the Internet checksum (RFC 1071) is updated incrementally (RFC 1624).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aqmlab_qdisc::PacketKind;

/// Contents of a packet's headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    /// Length of the packet as given in its header, which is the length that is transmitted.
    pub total_len: u16,
    /// Traffic class (IPv4: type of service): DSCP in the upper six bits, ECN field in the lower two.
    pub traffic_class: u8,
    /// The protocol above IP, or the extension header beyond which the chain could not be followed.
    pub protocol: u8,
    /// Whether the packet is a fragment of a larger datagram. Fragments have no ports here, so that all
    /// fragments of a datagram take the same path.
    pub fragment: bool,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Source and destination port of an unfragmented TCP segment or UDP datagram.
    pub ports: Option<(u16, u16)>,
    /// The packet's role in its connection, if it is an unfragmented TCP segment.
    pub kind: PacketKind,
}

/// Reason why bytes are not an IP packet that can be forwarded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Malformed {
    /// The bytes are shorter than the header.
    Short,
    /// Neither IPv4 nor IPv6.
    Version,
    /// The header's length is impossible.
    HeaderLength,
    /// The packet's length is impossible, or exceeds the bytes read.
    TotalLength,
    /// The header's checksum is wrong (RFC 1812, section 5.2.2).
    Checksum,
}

impl Malformed {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Malformed; 5] = [
        Malformed::Short,
        Malformed::Version,
        Malformed::HeaderLength,
        Malformed::TotalLength,
        Malformed::Checksum,
    ];

    /// Returns the word for this reason in messages and recordings.
    pub const fn name(self) -> &'static str {
        match self {
            Malformed::Short => "short",
            Malformed::Version => "version",
            Malformed::HeaderLength => "header length",
            Malformed::TotalLength => "total length",
            Malformed::Checksum => "checksum",
        }
    }
}

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// Reads the headers of the packet in `bytes`. Bytes beyond the packet's total length are ignored.
///
/// # Errors
/// If `bytes` do not hold a packet that a router may forward.
pub fn parse(bytes: &[u8]) -> Result<Headers, Malformed> {
    match bytes.first() {
        None => Err(Malformed::Short),
        Some(first) => match first >> 4 {
            4 => ipv4(bytes),
            6 => ipv6(bytes),
            _ => Err(Malformed::Version),
        },
    }
}

/// What a TCP segment states about its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpPayload {
    /// The sequence number in its header.
    pub seq: u32,
    /// Whether the segment's SYN flag is set.
    pub syn: bool,
    /// The acknowledgment number, if the segment's ACK flag is set.
    pub ack: Option<u32>,
    /// Number of octets of payload.
    pub len: u32,
}

/// Returns the TCP segment in a packet that [`parse`] accepts; `None` if it has none, or only a fragment.
pub fn tcp_segment(packet: &[u8]) -> Option<&[u8]> {
    let (protocol, fragment, payload) = match packet.first()? >> 4 {
        4 => {
            let payload = packet.get(4 * usize::from(packet[0] & 0x0f)..)?;
            (*packet.get(9)?, is_fragment([*packet.get(6)?, *packet.get(7)?]), payload)
        }
        6 => {
            let Upper { protocol, fragment, payload } = upper_layer(*packet.get(6)?, packet.get(40..)?);
            (protocol, fragment, payload)
        }
        _ => return None,
    };
    (protocol == TCP && !fragment).then_some(payload)
}

/// Returns the sequence number and length of the payload of a packet that [`parse`] accepts; `None` if it is
/// not a whole TCP segment.
pub fn tcp_payload(packet: &[u8]) -> Option<TcpPayload> {
    let segment = tcp_segment(packet)?;
    // RFC 9293, section 3.1.
    let header: &[u8; TCP_HEADER] = segment.first_chunk()?;
    let payload = segment.len().checked_sub(4 * usize::from(header[12] >> 4))?;
    Some(TcpPayload {
        seq: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        syn: header[13] & 0x02 != 0,
        ack: (header[13] & 0x10 != 0)
            .then(|| u32::from_be_bytes([header[8], header[9], header[10], header[11]])),
        len: u32::try_from(payload).ok()?,
    })
}

/// RFC 791, section 3.1.
fn ipv4(bytes: &[u8]) -> Result<Headers, Malformed> {
    let fixed: &[u8; 20] = bytes.first_chunk().ok_or(Malformed::Short)?;
    let header_len = usize::from(fixed[0] & 0x0f) * 4;
    if header_len < fixed.len() {
        return Err(Malformed::HeaderLength);
    }
    let header = bytes.get(..header_len).ok_or(Malformed::Short)?;
    let total_len = u16::from_be_bytes([fixed[2], fixed[3]]);
    if usize::from(total_len) < header_len {
        return Err(Malformed::TotalLength);
    }
    let packet = bytes.get(..usize::from(total_len)).ok_or(Malformed::TotalLength)?;
    if internet_checksum(header) != 0 {
        return Err(Malformed::Checksum);
    }
    let fragment = is_fragment([fixed[6], fixed[7]]);
    let protocol = fixed[9];
    let address = |at: usize| {
        let octets = [fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]];
        IpAddr::V4(Ipv4Addr::from(octets))
    };
    Ok(Headers {
        total_len,
        traffic_class: fixed[1],
        protocol,
        fragment,
        source: address(12),
        destination: address(16),
        ports: if fragment { None } else { ports(protocol, &packet[header_len..]) },
        kind: if fragment { PacketKind::Other } else { kind(protocol, &packet[header_len..]) },
    })
}

/// Returns whether other fragments of the datagram follow or precede this one, given the two octets of its IPv4
/// header that contain flags and offset.
const fn is_fragment(octets: [u8; 2]) -> bool {
    u16::from_be_bytes(octets) & 0x3fff != 0
}

/// RFC 8200, section 3.
fn ipv6(bytes: &[u8]) -> Result<Headers, Malformed> {
    let fixed: &[u8; 40] = bytes.first_chunk().ok_or(Malformed::Short)?;
    // The payload is below 64 KiB, but with its header the packet may exceed that. No link here accepts such
    // a packet.
    let total_len = u16::from_be_bytes([fixed[4], fixed[5]]).checked_add(40).ok_or(Malformed::TotalLength)?;
    let packet = bytes.get(..usize::from(total_len)).ok_or(Malformed::TotalLength)?;
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&fixed[at..at + 16]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    let Upper { protocol, fragment, payload } = upper_layer(fixed[6], &packet[40..]);
    Ok(Headers {
        total_len,
        traffic_class: fixed[0] << 4 | fixed[1] >> 4,
        protocol,
        fragment,
        source: address(8),
        destination: address(24),
        ports: if fragment { None } else { ports(protocol, payload) },
        kind: if fragment { PacketKind::Other } else { kind(protocol, payload) },
    })
}

/// The part of an IPv6 packet that follows its extension headers.
struct Upper<'a> {
    protocol: u8,
    fragment: bool,
    payload: &'a [u8],
}

/// Maximum number of extension headers that are followed: one of each kind, but two of destination options
/// (RFC 8200, section 4.1).
const MOST_EXTENSIONS: usize = 8;

/// Follows the chain of extension headers. If the chain is broken or too long, the last header reached counts
/// as the protocol, because such errors are for the receiver to report, not for the router.
fn upper_layer(mut protocol: u8, mut payload: &[u8]) -> Upper<'_> {
    for _ in 0..MOST_EXTENSIONS {
        let &[next, length, ..] = payload else { break };
        let extension = match protocol {
            // Hop-by-hop options, routing, destination options, mobility, HIP, Shim6: the length is in units
            // of 8 octets.
            0 | 43 | 60 | 135 | 139 | 140 => 8 * (usize::from(length) + 1),
            // Authentication: the length is in units of 4 octets, minus 2 (RFC 4302, section 2.2).
            51 => 4 * (usize::from(length) + 2),
            44 => {
                let Some(&[_, _, high, low, ..]) = payload.first_chunk::<8>() else { break };
                // The upper 13 bits are the offset; the last bit means that more fragments follow. If both
                // are zero, this is an atomic fragment, which is the whole datagram (RFC 6946).
                if u16::from_be_bytes([high, low]) & 0xfff9 != 0 {
                    return Upper { protocol: next, fragment: true, payload: &[] };
                }
                8
            }
            _ => break,
        };
        let Some(rest) = payload.get(extension..) else { break };
        (protocol, payload) = (next, rest);
    }
    Upper { protocol, fragment: false, payload }
}

/// Returns the source and destination port, if there is a whole TCP or UDP header.
fn ports(protocol: u8, payload: &[u8]) -> Option<(u16, u16)> {
    let header = match protocol {
        TCP => TCP_HEADER,
        UDP => UDP_HEADER,
        _ => return None,
    };
    match payload {
        &[a, b, c, d, ..] if payload.len() >= header => {
            Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
        }
        _ => None,
    }
}

/// Determines the kind of a packet from the bytes after its IP header.
fn kind(protocol: u8, segment: &[u8]) -> PacketKind {
    // RFC 9293, section 3.1.
    let header: Option<&[u8; TCP_HEADER]> = segment.first_chunk();
    let payload_at = header.map(|header| 4 * usize::from(header[12] >> 4));
    match (protocol, header, payload_at) {
        (TCP, Some(header), Some(at)) if (TCP_HEADER..=segment.len()).contains(&at) => {
            PacketKind::of_tcp(header[13], at < segment.len())
        }
        _ => PacketKind::Other,
    }
}

/// Returns the traffic class of a packet that has been parsed (IPv4: type of service).
pub fn traffic_class(packet: &[u8]) -> u8 {
    match packet {
        [first, second, ..] if first >> 4 == 4 => *second,
        [first, second, ..] => first << 4 | second >> 4,
        _ => 0,
    }
}

/// Changes the traffic class of a packet that has been parsed, and, in IPv4, also the header's checksum. IPv6
/// has no checksum in the header, and neither version's pseudo-header covers this octet.
pub fn set_traffic_class(packet: &mut [u8], class: u8) {
    match packet {
        [first, second, _, _, _, _, _, _, _, _, high, low, ..] if *first >> 4 == 4 => {
            let old = u16::from_be_bytes([*first, *second]);
            *second = class;
            let new = u16::from_be_bytes([*first, *second]);
            [*high, *low] = adjusted(u16::from_be_bytes([*high, *low]), old, new).to_be_bytes();
        }
        [first, second, ..] if *first >> 4 == 6 => {
            *first = *first & 0xf0 | class >> 4;
            *second = *second & 0x0f | class << 4;
        }
        _ => debug_assert!(false, "only a packet that has been parsed is changed"),
    }
}

/// Returns the one's complement of the one's complement sum of the 16-bit words in `octets`, with a trailing
/// odd octet padded with zero. For a header that carries its own checksum, zero means that the checksum is
/// right.
pub fn internet_checksum(octets: &[u8]) -> u16 {
    !folded(ones_sum(octets))
}

/// Returns the sum of the 16-bit words in `octets`, with a trailing odd octet padded with zero; the sum must
/// still be [`folded`].
pub(super) fn ones_sum(octets: &[u8]) -> u64 {
    let (chunks, rest) = octets.as_chunks::<4>();
    // RFC 1071, section 2: words of 32 bits give the same sum, and words in the opposite byte order give the
    // byte-swapped sum.
    let mut sum: u64 = chunks.iter().map(|chunk| u64::from(u32::from_ne_bytes(*chunk))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    sum += u64::from(u32::from_ne_bytes(last));
    u64::from(u16::from_be(folded(sum)))
}

/// Returns the checksum after a 16-bit word that it covers has changed from `old` to `new`.
#[inline]
pub const fn adjusted(checksum: u16, old: u16, new: u16) -> u16 {
    // RFC 1624, Eqn. 3: HC' = ~(~HC + ~m + m'). Equation 2 of RFC 1141 would give 0xffff where this equation
    // gives 0.
    !folded((!checksum) as u64 + (!old) as u64 + new as u64)
}

#[inline]
pub(super) const fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071, section 3.
    #[test]
    fn the_sum_of_rfc_1071() {
        let octets = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(internet_checksum(&octets), !0xddf2);
        assert_eq!(internet_checksum(&[0x12]), !0x1200);
        assert_eq!(internet_checksum(&[]), 0xffff);
    }

    /// The example of RFC 1624, section 4, which RFC 1141 gets wrong.
    #[test]
    fn the_update_of_rfc_1624() {
        assert_eq!(adjusted(0xdd2f, 0x5555, 0x3285), 0x0000);
    }
}
