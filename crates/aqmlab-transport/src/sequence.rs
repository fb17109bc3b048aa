//! 32-bit sequence numbers on the wire, 64-bit offsets inside.
//!
//! Offset 0 is the SYN, offset 1 the first byte of the stream, so that a connection never wraps around
//! inside. A wire number represents the offset nearest to a known one (RFC 9293, section 3.4, which
//! compares modulo 2^32); that is unambiguous while windows are below 2 GiB.

/// Returns the wire number of `offset` in the direction that began with `initial`.
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
