//! The filter of acknowledgments of CAKE: which waiting one a new segment of its connection makes unnecessary.

use crate::TcpHeader;

/// Returns the place of the acknowledgment to drop, if `newest` makes one unnecessary that waits before it.
///
/// `waiting` iterates over the queue from its head, without `newest`: the headers of segments of the same
/// connection, and `None` for other packets. Of each two waiting acknowledgments that `newest` replaces, with no
/// change of the flags of ECN in the connection between them, the one closer to the head is dropped. If
/// `aggressive`, a single one is dropped as well, provided that it is the last packet in the queue and has the
/// flags of ECN of `newest`.
pub fn superseded(
    newest: &TcpHeader,
    waiting: impl Iterator<Item = Option<TcpHeader>>,
    aggressive: bool,
) -> Option<usize> {
    if newest.flags & (TcpHeader::ACK | TcpHeader::SYN) != TcpHeader::ACK {
        return None;
    }
    let (mut length, mut candidate) = (0, None);
    for header in waiting {
        let place = length;
        length += 1;
        let Some(header) = header else { continue };
        let ecn = header.flags & TcpHeader::ECN;
        // A change of these flags is information that the candidate alone may carry.
        candidate = candidate.filter(|(_, before)| *before == ecn);
        if replaces(newest, &header) {
            if let Some((first, _)) = candidate {
                return Some(first);
            }
            candidate = Some((place, ecn));
        }
    }
    let (place, ecn) = candidate?;
    (aggressive && place + 1 == length && ecn == newest.flags & TcpHeader::ECN).then_some(place)
}

/// Returns whether a segment says everything that the earlier one of its connection says, if the latter is a
/// pure acknowledgment, apart from the flags of ECN.
fn replaces(newest: &TcpHeader, earlier: &TcpHeader) -> bool {
    let is_pure = earlier.flags & (TcpHeader::ALL & !TcpHeader::ECN) == TcpHeader::ACK
        && !earlier.payload
        && !earlier.other_options;
    is_pure
        && !is_after(earlier.ack, newest.ack)
        && has_no_later_stamps(newest, earlier)
        && match sacked_more(newest, earlier) {
            None => false,
            Some(more) => more || earlier.ack != newest.ack,
        }
}

/// Returns whether the number `a` comes after `b` (RFC 9293, section 3.4).
const fn is_after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

/// Stamps that `newest` lacks count as 0.
fn has_no_later_stamps(newest: &TcpHeader, earlier: &TcpHeader) -> bool {
    let new = newest.stamps.unwrap_or_default();
    earlier.stamps.is_none_or(|old| !is_after(old[0], new[0]) && !is_after(old[1], new[1]))
}

/// Returns whether the blocks of `newest` have more bytes than those of the earlier segment; `None` if they do
/// not contain all of these, or if a block of the latter reports a duplicate (RFC 2883), which is told only once.
fn sacked_more(newest: &TcpHeader, earlier: &TcpHeader) -> Option<bool> {
    let bytes = |header: &TcpHeader| {
        let length = |[first, behind]: &[u32; 2]| behind.wrapping_sub(*first);
        header.blocks().iter().map(length).fold(0, u32::wrapping_add)
    };
    let is_kept = |[first, behind]: &[u32; 2]| {
        let holds = |[from, to]: &[u32; 2]| !is_after(*from, *first) && !is_after(*behind, *to);
        !is_after(earlier.ack, *first) && newest.blocks().iter().any(holds)
    };
    if earlier.blocks().is_empty() {
        return Some(!newest.blocks().is_empty());
    }
    earlier.blocks().iter().all(is_kept).then(|| bytes(newest) > bytes(earlier))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(number: u32) -> TcpHeader {
        TcpHeader::new(number, TcpHeader::ACK, false)
    }

    fn with_blocks(number: u32, blocks: &[[u32; 2]]) -> TcpHeader {
        let mut header = ack(number);
        blocks.iter().for_each(|[first, behind]| header.push_block(*first, *behind));
        header
    }

    fn dropped(newest: TcpHeader, waiting: &[Option<TcpHeader>]) -> [Option<usize>; 2] {
        [false, true].map(|aggressive| superseded(&newest, waiting.iter().copied(), aggressive))
    }

    #[test]
    fn one_acknowledgment_is_left_before_the_newest_unless_aggressive() {
        assert_eq!(dropped(ack(3), &[]), [None, None]);
        assert_eq!(dropped(ack(3), &[Some(ack(1))]), [None, Some(0)]);
        assert_eq!(dropped(ack(3), &[Some(ack(1)), Some(ack(2))]), [Some(0), Some(0)]);
        // Packets of other connections count only as neighbours.
        assert_eq!(dropped(ack(3), &[None, Some(ack(1)), None]), [None, None]);
        assert_eq!(dropped(ack(3), &[None, Some(ack(1)), None, Some(ack(2))]), [Some(1), Some(1)]);
        // Numbers wrap, and an older number replaces nothing; nor does the same one.
        assert_eq!(dropped(ack(5), &[Some(ack(u32::MAX))]), [None, Some(0)]);
        assert_eq!(dropped(ack(u32::MAX), &[Some(ack(5))]), [None, None]);
        assert_eq!(dropped(ack(5), &[Some(ack(5))]), [None, None]);
    }

    #[test]
    fn news_of_congestion_is_not_lost() {
        let ece = |number| TcpHeader::new(number, TcpHeader::ACK | 0x40, false);
        assert_eq!(dropped(ack(3), &[Some(ack(1)), Some(ece(2))]), [None, None]);
        assert_eq!(dropped(ece(3), &[Some(ack(1)), Some(ece(2))]), [None, Some(1)]);
        assert_eq!(dropped(ece(9), &[Some(ack(1)), Some(ece(2)), Some(ece(3))]), [Some(1), Some(1)]);
        // Data tell of it, too.
        let data = TcpHeader::new(1, TcpHeader::ACK | 0x40, true);
        assert_eq!(dropped(ack(9), &[Some(ack(1)), Some(data), Some(ack(2))]), [None, Some(2)]);
    }

    /// RFC 2018 and RFC 2883, section 4.
    #[test]
    fn blocks_must_be_repeated() {
        let old = Some(with_blocks(1, &[[10, 20]]));
        for (newest, replaced) in [
            (ack(1), false),
            (ack(2), false),
            (with_blocks(1, &[[10, 20]]), false),
            (with_blocks(2, &[[10, 20]]), true),
            (with_blocks(1, &[[10, 30]]), true),
            (with_blocks(1, &[[30, 40], [10, 20]]), true),
            (with_blocks(1, &[[10, 19], [30, 90]]), false),
        ] {
            assert_eq!(dropped(newest, &[old])[1].is_some(), replaced, "{newest:?}");
        }
        let duplicate = Some(with_blocks(50, &[[10, 20]]));
        assert_eq!(dropped(with_blocks(60, &[[10, 20], [70, 80]]), &[duplicate]), [None, None]);
    }
}
