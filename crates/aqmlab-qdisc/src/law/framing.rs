//! The length of a packet on a link whose lower layers add headers and cells.

use aqmlab_units::Bytes;

/// How a link divides packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cells {
    /// Not at all.
    None,
    /// Into ATM cells: 48 bytes of payload each, 53 bytes in all (ITU-T I.361); the last one is padded.
    Atm,
    /// PTM (VDSL2): one byte for each 64 bytes or part of them (IEEE 802.3, section 61.3).
    Ptm,
}

/// The overhead of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// Bytes added to each packet.
    pub overhead: Bytes,
    /// Length, overhead included, of the shortest packet; shorter ones are padded.
    pub shortest: Bytes,
    /// How packets are divided.
    pub cells: Cells,
}

impl Framing {
    /// Returns the bytes that a packet takes on the link.
    #[inline]
    pub fn length(&self, size: Bytes) -> u64 {
        let framed = (size + self.overhead).max(self.shortest).get();
        match self.cells {
            Cells::None => framed,
            Cells::Atm => framed.div_ceil(48) * 53,
            Cells::Ptm => framed + framed.div_ceil(64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ATM by hand: a 1500-byte packet with 40 bytes of PPPoE over LLC/SNAP is 1540 bytes, 33 cells, 1749
    /// bytes; an acknowledgement of 40 bytes with 8 of overhead fills one cell.
    #[test]
    fn lengths_are_those_of_the_links() {
        let of = |overhead, shortest, cells, size| {
            let framing = Framing { overhead: Bytes::new(overhead), shortest: Bytes::new(shortest), cells };
            framing.length(Bytes::new(size))
        };
        assert_eq!(of(40, 0, Cells::Atm, 1500), 1749);
        assert_eq!([of(8, 0, Cells::Atm, 40), of(8, 0, Cells::Atm, 41)], [53, 106]);
        assert_eq!([of(38, 84, Cells::None, 40), of(38, 84, Cells::None, 47)], [84, 85]);
        assert_eq!([of(0, 0, Cells::Ptm, 64), of(0, 0, Cells::Ptm, 65)], [65, 67]);
    }
}
