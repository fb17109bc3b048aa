//! One outstanding segment: when it left, and what is known about it.

use aqmlab_units::Instant;

/// An outstanding segment, kept in only two machine words because a flow has many segments. It begins
/// where the previous one ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sent {
    /// One past its last offset.
    pub end: u64,
    /// The time in nanoseconds at which it was last sent, shifted left by [`MARKS`] bits, and its
    /// marks in the low bits.
    left: u64,
}

/// Number of bits for the marks, which leaves enough bits for instants up to 36 years.
const MARKS: u32 = 4;

/// The other side has reported that it has the segment.
pub(super) const SACKED: u8 = 1;
/// The segment is considered lost; a retransmission does not clear this mark.
pub(super) const LOST: u8 = 1 << 1;
/// The segment was retransmitted, and the retransmitted copy is in flight.
pub(super) const AGAIN: u8 = 1 << 2;
/// The segment has been retransmitted: Segment.retransmitted.
pub(super) const REPEATED: u8 = 1 << 3;

impl Sent {
    #[inline]
    pub(super) fn new(at: Instant, end: u64, marks: u8) -> Self {
        debug_assert!(at.as_ns() >> (u64::BITS - MARKS) == 0, "a run must be shorter than 36 years");
        Sent { end, left: at.as_ns() << MARKS | u64::from(marks) }
    }

    /// Returns when the segment was last sent: Segment.xmit_ts.
    #[inline]
    pub(super) fn at(&self) -> Instant {
        Instant::from_ns(self.left >> MARKS)
    }

    #[inline]
    pub(super) fn marks(&self) -> u8 {
        self.left as u8 & ((1 << MARKS) - 1)
    }

    pub(super) fn mark(&mut self, marks: u8) {
        *self = Sent::new(self.at(), self.end, marks);
    }

    pub(super) fn has(&self, marks: u8) -> bool {
        self.marks() & marks != 0
    }

    /// Returns whether the segment may still arrive: it is neither SACKed nor lost, or a copy of it
    /// is in flight.
    pub(super) fn may_arrive(&self) -> bool {
        !self.has(SACKED) && self.marks() & (LOST | AGAIN) != LOST
    }
}
