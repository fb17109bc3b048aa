//! The octet that routers may change: DSCP and ECN field.

use super::checksum::adjusted;

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
