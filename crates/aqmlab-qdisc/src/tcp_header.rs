//! The fields of a TCP header that disciplines may read, where a host shows them.

/// The part of a TCP segment's header from which a queue learns whether a later segment replaces it
/// (RFC 9293, section 3.1; SACK: RFC 2018; time stamps: RFC 7323).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpHeader {
    /// The next sequence number expected from the other side; significant with [`TcpHeader::ACK`].
    pub ack: u32,
    /// The eight flags from CWR to FIN, and above them the four reserved bits.
    pub flags: u16,
    /// Whether the segment has payload.
    pub payload: bool,
    /// The Timestamps option: TSval and TSecr.
    pub stamps: Option<[u32; 2]>,
    /// The blocks of the SACK option, each with its first sequence number and the one behind its last; the first
    /// `blocks` of them count.
    sack: [[u32; 2]; TcpHeader::MOST_BLOCKS],
    blocks: u8,
    /// Whether there are other options than these two and MD5 signatures, or one of these two has a wrong length.
    pub other_options: bool,
}

// Kinds of options (RFC 9293, section 3.2; RFC 2018; RFC 7323; RFC 2385).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const MD5_SIGNATURE: u8 = 19;

impl TcpHeader {
    /// The flag SYN.
    pub const SYN: u16 = 0x02;
    /// The flag ACK.
    pub const ACK: u16 = 0x10;
    /// The two flags of ECN (RFC 3168, section 6.1): ECE and CWR.
    pub const ECN: u16 = 0xc0;
    /// All flags and reserved bits.
    pub const ALL: u16 = 0xfff;
    /// The most blocks for which a header has room.
    pub const MOST_BLOCKS: usize = 4;

    /// Returns a header without options.
    pub fn new(ack: u32, flags: u16, payload: bool) -> Self {
        TcpHeader { ack, flags, payload, ..TcpHeader::default() }
    }

    /// Reads the header at the beginning of a whole segment; `None` if it is too short or its length is
    /// impossible.
    pub fn read(segment: &[u8]) -> Option<Self> {
        let fixed: &[u8; 20] = segment.first_chunk()?;
        let length = 4 * usize::from(fixed[12] >> 4);
        let options = segment.get(fixed.len()..length)?;
        let ack = u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]);
        let flags = u16::from_be_bytes([fixed[12], fixed[13]]) & TcpHeader::ALL;
        let mut header = TcpHeader::new(ack, flags, segment.len() > length);
        header.read_options(options);
        Some(header)
    }

    /// Of two options of the same kind, the first counts. An option of an impossible length ends the options, as in
    /// Linux.
    fn read_options(&mut self, mut rest: &[u8]) {
        let mut seen = [false; 2];
        while let [kind, more @ ..] = rest {
            if *kind == END {
                return;
            }
            if *kind == NO_OPERATION {
                rest = more;
                continue;
            }
            let length = more.first().map_or(0, |length| usize::from(*length));
            let (Some(content), Some(after)) = (rest.get(2..length), rest.get(length..)) else { return };
            rest = after;
            let (numbers, odd) = content.as_chunks::<4>();
            let number = |at: usize| u32::from_be_bytes(numbers[at]);
            match *kind {
                SACK => {
                    self.other_options |= content.len() % 8 != 0;
                    if !core::mem::replace(&mut seen[0], true) {
                        (0..numbers.len() / 2)
                            .for_each(|i| self.push_block(number(2 * i), number(2 * i + 1)));
                    }
                }
                TIMESTAMPS => {
                    let fits = numbers.len() == 2 && odd.is_empty();
                    self.other_options |= !fits;
                    if !core::mem::replace(&mut seen[1], true) && fits {
                        self.stamps = Some([number(0), number(1)]);
                    }
                }
                MD5_SIGNATURE => {}
                _ => self.other_options = true,
            }
        }
    }

    /// Adds a block to the SACK option, for which there must be room.
    pub fn push_block(&mut self, first: u32, behind: u32) {
        self.sack[usize::from(self.blocks)] = [first, behind];
        self.blocks += 1;
    }

    /// Returns the blocks of the SACK option.
    pub fn blocks(&self) -> &[[u32; 2]] {
        &self.sack[..usize::from(self.blocks)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn segment(flags: u16, options: &[u8], payload: usize) -> Vec<u8> {
        let words = 5 + options.len().div_ceil(4);
        let mut bytes = alloc::vec![0; 20];
        bytes[8..12].copy_from_slice(&0xfffe_fdfc_u32.to_be_bytes());
        bytes[12..14].copy_from_slice(&((words as u16) << 12 | flags).to_be_bytes());
        bytes.extend(options);
        bytes.resize(4 * words + payload, 0);
        bytes
    }

    /// The layout of RFC 9293, section 3.1, and the options of RFC 2018 and RFC 7323, appendix A.
    #[test]
    fn fields_are_where_the_standards_put_them() {
        let options = [1, 1, 8, 10, 0, 0, 1, 2, 0, 0, 3, 4, 1, 1, 5, 10, 0, 0, 0, 9, 0, 0, 1, 0];
        let header = TcpHeader::read(&segment(0x150, &options, 0)).unwrap();
        assert_eq!((header.ack, header.flags), (0xfffe_fdfc, 0x150));
        assert_eq!((header.payload, header.other_options), (false, false));
        assert_eq!((header.stamps, header.blocks()), (Some([0x102, 0x304]), &[[9, 256]][..]));
        assert!(TcpHeader::read(&segment(0x10, &[], 1)).unwrap().payload);
    }

    #[test]
    fn an_option_that_is_neither_is_noticed() {
        let others = |options: &[u8]| TcpHeader::read(&segment(0x10, options, 0)).unwrap().other_options;
        let mut signature = [0; 18];
        signature[..2].copy_from_slice(&[19, 18]);
        for known in
            [&[][..], &[0, 2, 4, 5], &[1, 1, 1, 0], &signature, &[5, 2], &[253, 0], &[253, 9], &[1, 1, 1, 5]]
        {
            assert!(!others(known), "{known:?}");
        }
        for other in [&[2, 4, 5, 180][..], &[253, 4, 1, 2], &[8, 4, 0, 0], &[5, 3, 0]] {
            assert!(others(other), "{other:?}");
        }
    }

    #[test]
    fn a_header_that_is_no_header_is_not_read() {
        let whole = segment(0x10, &[], 0);
        assert_eq!(TcpHeader::read(&whole[..19]), None);
        for words in [0_u8, 4, 6] {
            let mut bytes = whole.clone();
            bytes[12] = words << 4;
            assert_eq!(TcpHeader::read(&bytes), None, "{words} words");
        }
    }
}
