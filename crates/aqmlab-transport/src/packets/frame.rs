//! The ACK frame (RFC 9000, section 19.3), in the place of TCP's options.

use aqmlab_units::Span;

use crate::sack::{MAX_BLOCKS, Options, Sack};
use crate::stamps::Stamps;

/// The number of words of a bitmap, which is as large as the blocks of a SACK option.
const WORDS: usize = 2 * MAX_BLOCKS;
/// The number of packet numbers, counted down from the largest, that a frame reports.
pub(crate) const REACH: u64 = 32 * WORDS as u64;

/// Bytes of a frame with one range: type, largest number (4), delay (2), count, first range (2).
const FRAME: u32 = 10;
/// Bytes of each further range: a gap and a length.
const RANGE: u32 = 4;
/// Bytes of the ECN counts.
const COUNTS: u32 = 6;
/// Bytes of the header of a STREAM frame, which a profile's `header` includes (type, stream, offset, length).
const STREAM: u32 = 8;

/// What an ACK frame says.
///
/// DEVIATES from RFC 9000, section 19.3: the ranges are a bitmap, so a frame reports at most the latest 256 numbers, in
/// any number of ranges. Each number is thus reported until 256 later packets have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct AckFrame {
    /// Largest Acknowledged.
    pub largest: u64,
    /// Bit k: whether the number `largest` - k has arrived.
    pub bits: [u32; WORDS],
    /// ACK Delay, in microseconds.
    pub delay: u32,
    /// The count of packets that arrived with CE.
    pub ce: u32,
}

impl AckFrame {
    /// Returns whether the packet `number` is acknowledged.
    pub(crate) fn covers(&self, number: u64) -> bool {
        let below = self.largest.checked_sub(number).filter(|below| *below < REACH);
        below.is_some_and(|below| self.bits[below as usize / 32] >> (below % 32) & 1 == 1)
    }

    /// Returns the lowest number that the frame may report.
    pub(crate) fn lowest(&self) -> u64 {
        (self.largest + 1).saturating_sub(REACH)
    }

    /// Returns how long the receiver has delayed the acknowledgment.
    pub(crate) fn delay(&self) -> Span {
        Span::us(self.delay.into())
    }

    /// Returns the number of ranges.
    pub(crate) fn ranges(&self) -> u32 {
        let mut carry = 0;
        let begins = |word: &u32| {
            let count = (word & !(word << 1 | carry)).count_ones();
            carry = word >> 31;
            count
        };
        self.bits.iter().map(begins).sum()
    }

    /// Returns how many bytes the frame adds to a packet, which `carries_data` or not.
    pub(crate) fn len(&self, carries_data: bool) -> u8 {
        let counts = if self.ce > 0 { COUNTS } else { 0 };
        let own = FRAME + RANGE * self.ranges().saturating_sub(1) + counts;
        let saved = if carries_data { 0 } else { STREAM };
        (own - saved).min(u8::MAX.into()) as u8
    }

    /// Returns the options that carry the frame.
    pub(crate) fn options(&self) -> Options {
        let mut sack = Sack::NONE;
        self.bits.chunks_exact(2).for_each(|pair| sack.push(pair[0], pair[1]));
        Options { sack, stamps: Stamps { value: Some(self.delay), echo: Some(self.ce) }, ..Options::NONE }
    }

    /// Returns the frame with this largest number that the options carry.
    pub(crate) fn of(largest: u32, options: &Options) -> AckFrame {
        let mut bits = [0; WORDS];
        for (words, (low, high)) in bits.chunks_exact_mut(2).zip(options.sack.blocks()) {
            (words[0], words[1]) = (*low, *high);
        }
        let Stamps { value, echo } = options.stamps;
        AckFrame { largest: largest.into(), bits, delay: value.unwrap_or(0), ce: echo.unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 18 bytes: 10 for the frame, and 4 for each of the two further ranges. One of them lies across two words.
    #[test]
    fn ranges_are_the_runs_of_the_bitmap() {
        let mut frame = AckFrame { largest: 400, ..AckFrame::default() };
        (frame.bits[0], frame.bits[1]) = (1 << 31 | 0b1101, 1);
        assert_eq!((frame.ranges(), frame.len(true), frame.len(false)), (3, 18, 10));
        let covered: std::vec::Vec<_> = (300..=400).rev().filter(|number| frame.covers(*number)).collect();
        assert_eq!(covered, [400, 398, 397, 369, 368]);
        assert_eq!(AckFrame::of(400, &frame.options()), frame);
        assert!(!frame.covers(401) && !frame.covers(400 - REACH) && frame.lowest() == 401 - REACH);
    }
}
