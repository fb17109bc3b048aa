//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

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
