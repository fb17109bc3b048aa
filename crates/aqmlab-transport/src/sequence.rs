//! 32-bit sequence numbers on the wire, and the 64-bit offsets used internally.
//!
//! Offset 0 is the SYN, and offset 1 is the first byte of the stream; offsets never wrap around. A
//! wire number can stand for many offsets; it is taken to mean the one that is nearest to a known
//! offset (RFC 9293, section 3.4, which compares modulo 2^32). This is unambiguous as long as
//! windows are below 2 GiB.

/// Returns the wire number of `offset` in the direction whose first sequence number was `initial`.
#[inline]
pub(crate) const fn to_wire(initial: u32, offset: u64) -> u32 {
    initial.wrapping_add(offset as u32)
}

/// Returns the offset nearest to `near` that has this wire number; `None` if it lies before the
/// SYN.
#[inline]
pub(crate) const fn from_wire(initial: u32, wire: u32, near: u64) -> Option<u64> {
    let ahead = wire.wrapping_sub(to_wire(initial, near)) as i32;
    near.checked_add_signed(ahead as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_around_on_the_wire_and_never_inside() {
        let initial = u32::MAX - 5;
        for near in [0u64, 6, 1 << 32, (1 << 33) + 17] {
            for ahead in [0i64, 1, 6, 1_000_000, (1 << 31) - 1, -1, -6] {
                let Some(offset) = near.checked_add_signed(ahead) else { continue };
                assert_eq!(from_wire(initial, to_wire(initial, offset), near), Some(offset));
            }
        }
        assert_eq!(from_wire(7, 6, 0), None, "before the SYN");
    }
}
