//! The octet that routers may change, DSCP and ECN field, and the Internet checksum (RFC 1071) with its incremental update
//! (RFC 1624), which changes with it.

/// The traffic class of a packet that has been parsed (IPv4: type of service).
pub fn traffic_class(packet: &[u8]) -> u8 {
    match packet {
        [first, second, ..] if first >> 4 == 4 => *second,
        [first, second, ..] => first << 4 | second >> 4,
        _ => 0,
    }
}

/// Changes the traffic class of a packet that has been parsed, and with IPv4 the header's checksum with it. IPv6 has
/// no checksum in the header, and neither version's pseudo-header covers this octet.
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
        _ => debug_assert!(false, "only what has been parsed is changed"),
    }
}

/// The one's complement of the one's complement sum of `words`, a trailing odd octet padded with zero. Zero over a
/// header that carries its own checksum means that the checksum is right.
pub fn internet_checksum(octets: &[u8]) -> u16 {
    let mut sum: u64 = 0;
    let (pairs, rest) = octets.as_chunks::<2>();
    for pair in pairs {
        sum += u64::from(u16::from_be_bytes(*pair));
    }
    if let [last] = rest {
        sum += u64::from(*last) << 8;
    }
    !folded(sum)
}

/// The checksum after a 16-bit word of what it covers has changed from `old` to `new`.
#[inline]
pub const fn adjusted(checksum: u16, old: u16, new: u16) -> u16 {
    // RFC 1624, Eqn. 3: HC' = ~(~HC + ~m + m'). Eqn. 2 of RFC 1141 would give 0xffff where this gives 0.
    !folded((!checksum) as u64 + (!old) as u64 + new as u64)
}

#[inline]
const fn folded(mut sum: u64) -> u16 {
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
