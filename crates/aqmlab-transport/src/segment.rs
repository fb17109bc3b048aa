//! Segments that two endpoints exchange.

use core::ops::{BitOr, BitOrAssign};

use aqmlab_units::{Bytes, Ecn};

/// The control bits of a TCP header that matter here (RFC 9293, section 3.1; ECE and CWR: RFC 3168; AE: RFC
/// 9768).
///
/// A header has AE in the octet before the other flags. Here, AE has the place of URG, which is never used, so
/// that one octet holds all flags.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags(u8);

/// The place of AE in a header, counted from FIN.
const AE_IN_HEADER: u16 = 0x100;

impl Flags {
    /// No bit set.
    pub const NONE: Flags = Flags(0);
    /// no more data from the sender
    pub const FIN: Flags = Flags(0x01);
    /// synchronise sequence numbers
    pub const SYN: Flags = Flags(0x02);
    /// reset the connection
    pub const RST: Flags = Flags(0x04);
    /// The segment is a packet with a number of its own, which has the place of the window (`packet_numbers`). In TCP, this
    /// bit is PSH, which never occurs without ACK: [`Flags::is_numbered`].
    pub const NUMBERED: Flags = Flags(0x08);
    /// the sender has pushed the data up to here to the other side
    pub const PSH: Flags = Flags(0x08);
    /// the acknowledgment field is significant
    pub const ACK: Flags = Flags(0x10);
    /// ECN echo
    pub const ECE: Flags = Flags(0x40);
    /// congestion window reduced
    pub const CWR: Flags = Flags(0x80);
    /// accurate ECN
    pub const AE: Flags = Flags(0x20);
    /// the three flags of ECN, which AccECN combines into the field ACE (RFC 9768, section 3.2.2)
    pub const ACE: Flags = Flags(0x80 | 0x40 | 0x20);

    /// Returns whether the segment is a [packet with a number](Flags::NUMBERED).
    #[inline]
    pub const fn is_numbered(self) -> bool {
        self.0 & (Flags::NUMBERED.0 | Flags::ACK.0) == Flags::NUMBERED.0
    }

    /// Returns whether all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the bits in the order of the TCP header's flag octet, which does not contain AE.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0 & !Flags::AE.0
    }

    /// Returns the flags that are set in a TCP header's flag octet.
    #[inline]
    pub const fn from_bits(bits: u8) -> Flags {
        Flags(bits & !Flags::AE.0)
    }

    /// Returns the bits in the order of the TCP header, with AE above those of [`Flags::bits`].
    #[inline]
    pub const fn header_bits(self) -> u16 {
        self.bits() as u16 | if self.has(Flags::AE) { AE_IN_HEADER } else { 0 }
    }

    /// Returns the flags that are set in the lower bits of a TCP header's 13th and 14th octet.
    #[inline]
    pub const fn from_header_bits(bits: u16) -> Flags {
        Flags::from_bits(bits as u8).with_if(Flags::AE, bits & AE_IN_HEADER != 0)
    }

    /// Returns all flags in one octet, for a host that passes them on.
    #[inline]
    pub const fn packed(self) -> u8 {
        self.0
    }

    /// Returns the flags that [`Flags::packed`] has packed.
    #[inline]
    pub const fn from_packed(octet: u8) -> Flags {
        Flags(octet)
    }

    /// Returns the value of the three flags AE, CWR and ECE as a number, AE being the highest bit (RFC 9768,
    /// figure 3).
    #[inline]
    pub const fn ace(self) -> u8 {
        (self.has(Flags::AE) as u8) << 2 | (self.0 >> 6 & 1) | (self.0 >> 6 & 2)
    }

    /// Returns these flags with AE, CWR and ECE as the lowest three bits of `ace` say.
    #[inline]
    pub const fn with_ace(self, ace: u8) -> Flags {
        let others = Flags(self.0 & !Flags::ACE.0);
        let (ae, cwr, ece) = (ace & 4 != 0, ace & 2 != 0, ace & 1 != 0);
        others.with_if(Flags::AE, ae).with_if(Flags::CWR, cwr).with_if(Flags::ECE, ece)
    }

    /// Returns these flags, together with those of `other` if `condition` is true.
    #[inline]
    pub const fn with_if(self, other: Flags, condition: bool) -> Flags {
        if condition { Flags(self.0 | other.0) } else { self }
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

/// What a segment says in options, other than SACK blocks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Extras(u8);

impl Extras {
    /// Nothing.
    pub const NONE: Extras = Extras(0);
    /// SACK-permitted, on a SYN (RFC 2018, section 2).
    pub const SACK_PERMITTED: Extras = Extras(1);
    /// The Timestamps option says something that the other side could not infer. What it says is kept apart
    /// from the segment ([`crate::Endpoint::options`]).
    pub const STAMPED: Extras = Extras(1 << 1);
    /// The upper two bits hold the length of the AccECN option, in words of four bytes; 0 if there is none. Its
    /// contents are kept apart from the segment.
    const ACC_ECN: u8 = 6;

    /// Returns this with an AccECN option that takes `bytes` bytes of the header, a multiple of four up to 12; without
    /// one if this is 0.
    #[must_use]
    pub const fn with_accurate_ecn(self, bytes: u8) -> Extras {
        Extras(self.0 & ((1 << Extras::ACC_ECN) - 1) | (bytes / 4) << Extras::ACC_ECN)
    }

    /// Returns how many bytes of the header the AccECN option takes, if there is one.
    #[inline]
    pub const fn accurate_ecn_len(self) -> u8 {
        (self.0 >> Extras::ACC_ECN) * 4
    }

    /// Returns whether this contains all of `other`.
    #[inline]
    pub const fn has(self, other: Extras) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns this, together with `other` if `condition` is true.
    #[inline]
    pub const fn with_if(self, other: Extras, condition: bool) -> Extras {
        if condition { Extras(self.0 | other.0) } else { self }
    }
}

/// One TCP segment: header fields and the length of its payload, but not the payload itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Sequence number of the first payload byte (or of the SYN or FIN if there is no payload).
    pub seq: u32,
    /// Next sequence number expected from the other side; significant with [`Flags::ACK`].
    pub ack: u32,
    /// Payload bytes.
    pub len: u32,
    /// Control bits.
    pub flags: Flags,
    /// Receive window in bytes, after any scaling (RFC 7323).
    pub window: u32,
    /// The ECN field of its packet: as it was sent or, at the other side, as it arrived.
    pub ecn: Ecn,
    /// What other options say.
    pub extras: Extras,
    /// Bytes of the SACK option. If there is one, its blocks are kept apart from the segment
    /// ([`crate::Endpoint::options`]).
    pub sack_len: u8,
}

const _: () =
    assert!(size_of::<Segment>() <= 20, "a segment has outgrown five words; each hop of a host copies it");

impl Segment {
    /// Returns the length at the network layer: `header` bytes of IP and TCP header, the options of SACK and AccECN,
    /// and the payload.
    #[inline]
    pub const fn wire_len(&self, header: u32) -> Bytes {
        Bytes::new(header as u64 + self.options_len() as u64 + self.len as u64)
    }

    /// Returns the length of the options of SACK and AccECN, which the profile's `header` does not include.
    #[inline]
    pub const fn options_len(&self) -> u8 {
        self.sack_len + self.extras.accurate_ecn_len()
    }

    /// Returns whether the segment has an option whose contents a host must transfer separately.
    #[inline]
    pub const fn has_options(&self) -> bool {
        self.sack_len > 0 || self.extras.0 != 0
    }

    /// Returns how many sequence numbers the segment occupies with its payload, SYN and FIN.
    #[inline]
    pub const fn sequence_len(&self) -> u64 {
        self.len as u64 + self.flags.has(Flags::SYN) as u64 + self.flags.has(Flags::FIN) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 2 and 3 of RFC 9768: AE, CWR and ECE are bits 7, 8 and 9 of the 16 that begin with the header's
    /// length, and the lowest bit of ACE is ECE.
    #[test]
    fn flags_have_their_places_in_a_header() {
        let bit = |offset: u32| 1_u16 << (15 - offset);
        for (flags, offsets) in [
            (Flags::AE, &[7][..]),
            (Flags::CWR, &[8]),
            (Flags::ECE, &[9]),
            (Flags::ACE | Flags::SYN, &[7, 8, 9, 14]),
            (Flags::ACK | Flags::FIN, &[11, 15]),
        ] {
            let bits = offsets.iter().map(|offset| bit(*offset)).sum::<u16>();
            assert_eq!((flags.header_bits(), Flags::from_header_bits(bits)), (bits, flags));
            assert_eq!(u16::from(flags.bits()), bits & 0xff);
            assert_eq!(Flags::from_packed(flags.packed()), flags);
        }
        for ace in 0..8 {
            let flags = (Flags::ACK | Flags::CWR).with_ace(ace);
            assert_eq!((flags.ace(), flags.has(Flags::ACK)), (ace, true));
            assert_eq!(flags.header_bits() >> 6 & 7, u16::from(ace));
        }
    }
}
