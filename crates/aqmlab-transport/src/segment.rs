//! Segments that two endpoints exchange.

use core::ops::{BitOr, BitOrAssign};

use aqmlab_units::{Bytes, Ecn};

/// The control bits of a TCP header that matter here (RFC 9293, section 3.1; ECE and CWR: RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags(u8);

impl Flags {
    /// No bit set.
    pub const NONE: Flags = Flags(0);
    /// no more data from the sender
    pub const FIN: Flags = Flags(0x01);
    /// synchronise sequence numbers
    pub const SYN: Flags = Flags(0x02);
    /// reset the connection
    pub const RST: Flags = Flags(0x04);
    /// the acknowledgment field is significant
    pub const ACK: Flags = Flags(0x10);
    /// ECN echo
    pub const ECE: Flags = Flags(0x40);
    /// congestion window reduced
    pub const CWR: Flags = Flags(0x80);

    /// Returns whether all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the bits in the order of the TCP header's flag octet.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the flags that are set in a TCP header's flag octet.
    #[inline]
    pub const fn from_bits(bits: u8) -> Flags {
        Flags(bits)
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
    /// Returns the length at the network layer: `header` bytes of IP and TCP header, the SACK
    /// option and the payload.
    #[inline]
    pub const fn wire_len(&self, header: u32) -> Bytes {
        Bytes::new(header as u64 + self.sack_len as u64 + self.len as u64)
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
