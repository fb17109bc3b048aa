//! The ECN field of a packet.

/// The ECN field of a packet (RFC 3168, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// 00: not ECN-capable
    #[default]
    NotEct = 0,
    /// 01: ECN-capable, L4S (RFC 9331)
    Ect1 = 1,
    /// 10: ECN-capable, classic
    Ect0 = 2,
    /// 11: congestion experienced
    Ce = 3,
}

impl Ecn {
    /// Returns whether a queue may mark this packet instead of dropping it. True for ECT(0), ECT(1)
    /// and CE.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}
