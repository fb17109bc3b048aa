//! A segment with all that its TCP header says.

use aqmlab_units::Ecn;

use crate::ecn::AccEcnOption;
use crate::sack::Sack;
use crate::segment::Flags;

/// The options of a TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WireOptions {
    /// Maximum segment size (RFC 9293, 3.7.1).
    pub mss: Option<u16>,
    /// Window scale (RFC 7323, 2.2).
    pub scale: Option<u8>,
    /// SACK-permitted (RFC 2018, 2).
    pub sack_permitted: bool,
    /// Timestamps: TSval and TSecr (RFC 7323, 3.2).
    pub stamps: Option<(u32, u32)>,
    /// SACK (RFC 2018, 3).
    pub sack: Sack,
    /// AccECN (RFC 9768, 3.2.3).
    pub accurate_ecn: AccEcnOption,
}

/// A TCP segment as it is on the wire: header fields, options, and the length of the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WireSegment {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// The window field, without scaling.
    pub window: u16,
    /// Payload bytes.
    pub len: u32,
    /// The ECN field of the packet.
    pub ecn: Ecn,
    /// The options.
    pub options: WireOptions,
}

impl WireSegment {
    /// Returns the sequence number after the segment (RFC 9293, 3.4).
    pub fn end(&self) -> u32 {
        let control = u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN));
        self.seq.wrapping_add(self.len + control)
    }

    /// Returns the reset that answers this segment where there is no connection, or none that it could belong
    /// to (RFC 9293, 3.10.7.1); a reset is not answered.
    pub fn refusal(&self) -> Option<WireSegment> {
        if self.flags.has(Flags::RST) {
            return None;
        }
        let (seq, ack, flags) = match self.flags.has(Flags::ACK) {
            true => (self.ack, 0, Flags::RST),
            false => (0, self.end(), Flags::RST | Flags::ACK),
        };
        let options = WireOptions::default();
        Some(WireSegment { seq, ack, flags, window: 0, len: 0, ecn: Ecn::NotEct, options })
    }
}

/// Returns whether the sequence number `a` is below `b` (RFC 9293, 3.4).
pub(super) fn is_below(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
