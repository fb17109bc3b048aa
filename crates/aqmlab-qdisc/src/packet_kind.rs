//! The kinds of packets, by their role in their connection.

/// The kinds of packets that books distinguish. Every packet has exactly one of these kinds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum PacketKind {
    /// A TCP segment that has no payload and none of the flags SYN, FIN and RST: a pure ACK.
    Ack,
    /// A TCP segment with payload, with or without FIN.
    Data,
    /// A TCP segment that opens a connection: SYN, with or without ACK.
    Syn,
    /// A TCP segment without payload that closes one direction of a connection: FIN.
    Fin,
    /// Any other packet: RST, datagrams, fragments, packets of other protocols.
    #[default]
    Other,
}

// TCP flags (RFC 9293, section 3.1).
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;

impl PacketKind {
    /// Number of kinds.
    pub const COUNT: usize = PacketKind::ALL.len();

    /// Number of values that [`Classed::class_and_kind`](crate::Classed::class_and_kind) sets aside
    /// for each class; a power of two.
    pub const PLACES: usize = PacketKind::COUNT.next_power_of_two();

    /// All kinds, in the order of their numbers.
    pub const ALL: [PacketKind; 5] =
        [PacketKind::Ack, PacketKind::Data, PacketKind::Syn, PacketKind::Fin, PacketKind::Other];

    /// Returns the kind of a TCP segment, given the flags in its header and whether it has payload.
    /// A reset is [`PacketKind::Other`], whatever its other flags.
    #[inline]
    pub const fn of_tcp(flags: u8, has_payload: bool) -> Self {
        match (flags & RST != 0, flags & SYN != 0, has_payload, flags & FIN != 0) {
            (true, ..) => PacketKind::Other,
            (_, true, ..) => PacketKind::Syn,
            (_, _, true, _) => PacketKind::Data,
            (_, _, _, true) => PacketKind::Fin,
            (_, _, _, false) => PacketKind::Ack,
        }
    }

    /// Returns the word that recordings use for this kind.
    pub const fn name(self) -> &'static str {
        match self {
            PacketKind::Syn => "syn",
            PacketKind::Data => "data",
            PacketKind::Ack => "ack",
            PacketKind::Fin => "fin",
            PacketKind::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks every combination of flags against the order in which the text of RFC 9293 treats them: RST
    /// before SYN before payload before FIN.
    #[test]
    fn each_segment_is_of_the_kind_that_its_flags_and_payload_make_it() {
        for flags in 0..=u8::MAX {
            for payload in [false, true] {
                let has = |flag| flags & flag != 0;
                let expected = if has(RST) {
                    PacketKind::Other
                } else if has(SYN) {
                    PacketKind::Syn
                } else if payload {
                    PacketKind::Data
                } else if has(FIN) {
                    PacketKind::Fin
                } else {
                    PacketKind::Ack
                };
                assert_eq!(
                    PacketKind::of_tcp(flags, payload),
                    expected,
                    "flags {flags:#04x}, payload {payload}"
                );
            }
        }
        for (number, kind) in PacketKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number, "{}", kind.name());
        }
    }
}
