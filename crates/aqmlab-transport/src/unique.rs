//! Counts the bytes of a stream that pass a point on their path for the first time.

use crate::ranges::Ranges;
use crate::sequence::from_wire;

/// Counts the bytes of one direction of a TCP connection as its segments pass, each byte once.
///
/// With it, an observer on the path, such as a router in front of a host, arrives at the same count as
/// [`Endpoint::received`](crate::Endpoint::received) within the host. Both count each byte once, whether or
/// not it is in order.
#[derive(Clone, PartialEq, Debug)]
pub struct UniqueBytes {
    /// All offsets below this one have passed.
    next: u64,
    /// The sequence number of the SYN; known once a segment has passed. If the SYN did not pass,
    /// the stream begins with the first segment.
    initial: Option<u32>,
    /// Offsets that have passed although they lie beyond a hole.
    beyond: Ranges,
}

impl UniqueBytes {
    /// Returns the initial state. It already has memory for up to `holes` simultaneous holes.
    pub fn with_room(holes: usize) -> Self {
        UniqueBytes { next: 1, initial: None, beyond: Ranges::with_room(holes) }
    }

    /// Starts over for another connection; the allocated memory is kept.
    pub fn reset(&mut self) {
        self.next = 1;
        self.initial = None;
        self.beyond.clear();
    }

    /// Returns whether any segment has passed.
    pub const fn has_begun(&self) -> bool {
        self.initial.is_some()
    }

    /// Processes a segment, given the sequence number in its header and the length of its payload.
    /// Returns the number of new bytes.
    pub fn pass(&mut self, seq: u32, syn: bool, len: u32) -> u32 {
        let first = seq.wrapping_add(u32::from(syn));
        let initial = *self.initial.get_or_insert(first.wrapping_sub(1));
        let Some(from) = from_wire(initial, first, self.next) else { return 0 };
        let (from, to) = (from.max(self.next), from + u64::from(len));
        if to <= from {
            return 0;
        }
        let new = if from == self.next && self.beyond.is_empty() {
            self.next = to;
            to - from
        } else {
            let new = self.beyond.insert(from, to);
            self.next = self.beyond.gap_from(self.next);
            self.beyond.remove_below(self.next);
            new
        };
        new as u32 // at most `len`
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use aqmlab_random::Stream;
    use aqmlab_units::Instant;

    use super::*;
    use crate::profile::Profile;
    use crate::receiver::Receiver;
    use crate::sequence::to_wire;
    use crate::trouble::Troubles;

    #[test]
    fn holes_duplicates_and_overlaps_count_each_byte_once() {
        let initial = u32::MAX - 150;
        let mut bytes = UniqueBytes::with_room(2);
        let mut pass = |from, to: u64| bytes.pass(to_wire(initial, from), false, (to - from) as u32);
        assert_eq!(pass(1, 101), 100);
        assert_eq!(pass(201, 301), 100, "beyond a hole");
        assert_eq!(pass(201, 301), 0, "again");
        assert_eq!(pass(251, 351), 50, "the first half is there");
        assert_eq!(pass(51, 151), 50, "around the wrap of the numbers");
        assert_eq!(pass(101, 201), 50, "the rest of the hole");
        assert_eq!(pass(1, 351), 0, "all of it again");
        assert_eq!(pass(351, 351), 0, "an acknowledgment");
        assert_eq!(pass(351, 451), 100);
    }

    #[test]
    fn a_syn_counts_nothing_and_says_where_the_stream_begins() {
        let mut bytes = UniqueBytes::with_room(0);
        assert_eq!((bytes.pass(7, true, 0), bytes.pass(7, true, 0)), (0, 0));
        assert_eq!((bytes.pass(108, false, 100), bytes.pass(8, false, 100)), (100, 100));
        assert_eq!(bytes.pass(7, false, 1), 0, "a keep-alive probe");
    }

    #[test]
    fn the_next_connection_begins_anew_and_takes_no_memory() {
        let mut bytes = UniqueBytes::with_room(2);
        assert!(!bytes.has_begun());
        bytes.pass(7, true, 0);
        assert_eq!((bytes.pass(8, false, 100), bytes.pass(208, false, 100)), (100, 100));
        assert!(bytes.has_begun());
        bytes.reset();
        assert_eq!(bytes, UniqueBytes::with_room(2));
        assert_eq!(
            (bytes.pass(900, true, 0), bytes.pass(901, false, 50), bytes.pass(901, false, 50)),
            (0, 50, 0)
        );
    }

    /// For two thousand segments of a stream with holes and repetitions, the observer, the receiver
    /// and a plain set agree on the count.
    #[test]
    fn observer_and_receiver_count_alike() {
        let profile = Profile::named("rfc").expect("built in");
        let mut draws = Stream::new(5, "unique");
        let (mut receiver, mut troubles) = (Receiver::new(), Troubles::new());
        let (mut bytes, mut known) = (UniqueBytes::with_room(8), BTreeSet::new());
        let initial = u32::MAX - 9_000;
        receiver.synchronise(initial);
        bytes.pass(initial, true, 0);
        let mut observed = 0;
        for _ in 0..2_000 {
            let from = (receiver.next() + draws.below(900)).saturating_sub(300).max(1);
            let to = from + 1 + draws.below(120);
            receiver.on_segment(Instant::ZERO, from, to, false, &mut troubles, &profile);
            observed += u64::from(bytes.pass(to_wire(initial, from), false, (to - from) as u32));
            known.extend(from..to);
            assert_eq!(observed, known.len() as u64, "{from} to {to}");
            assert_eq!(receiver.received(&troubles), observed, "{from} to {to}");
        }
        assert!(receiver.delivered() > 20_000 && observed > receiver.delivered(), "{observed}");
    }
}
