//! The SACK option (RFC 2018), and what else is kept apart from a segment.

use crate::ecn::AccEcnOption;
use crate::stamps::Stamps;

/// "A SACK option that specifies n blocks will have a length of 8*n+2 bytes, so the 40 bytes available for TCP
/// options can specify a maximum of 4 blocks" (RFC 2018, section 3).
pub(crate) const MAX_BLOCKS: usize = 4;

/// Bytes of one block: two sequence numbers.
pub(crate) const BLOCK_BYTES: u32 = 8;

/// The blocks of a SACK option.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sack {
    blocks: [(u32, u32); MAX_BLOCKS],
    count: u8,
}

/// The TCP options of a segment that are kept apart from it, because most segments have none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// The blocks of its SACK option.
    pub sack: Sack,
    /// Its Timestamps option.
    pub stamps: Stamps,
    /// Its AccECN option.
    pub accurate_ecn: AccEcnOption,
}

impl Options {
    /// No option.
    pub const NONE: Options =
        Options { sack: Sack::NONE, stamps: Stamps::NONE, accurate_ecn: AccEcnOption::NONE };
}

impl Sack {
    /// No block.
    pub const NONE: Sack = Sack { blocks: [(0, 0); MAX_BLOCKS], count: 0 };

    /// Returns an option with a single block.
    #[inline]
    pub(crate) const fn one(from: u32, to: u32) -> Sack {
        Sack { blocks: [(from, to), (0, 0), (0, 0), (0, 0)], count: 1 }
    }

    /// Returns the blocks; each is given by its first sequence number and the one after its last.
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Returns whether the option `earlier` contains all blocks except the first, in the same
    /// order, either at its beginning or after one other block.
    #[inline]
    pub(crate) fn repeats_all_but_first(&self, earlier: &Sack) -> bool {
        let others = self.blocks().get(1..).unwrap_or_default();
        others.is_empty() || earlier.blocks[1..].starts_with(others) || earlier.blocks.starts_with(others)
    }

    /// Keeps as many blocks as an option of `len` bytes contains, `overhead` of which are no blocks.
    pub(crate) fn truncate(&mut self, len: u8, overhead: u32) {
        let blocks = u32::from(len).saturating_sub(overhead) / BLOCK_BYTES;
        self.count = self.count.min(blocks as u8);
    }

    /// Adds a block if there is room.
    pub fn push(&mut self, from: u32, to: u32) {
        if let Some(place) = self.blocks.get_mut(usize::from(self.count)) {
            *place = (from, to);
            self.count += 1;
        }
    }
}
