//! Buffer limits, which decide whether there is room for one more packet.

use aqmlab_units::{Bytes, Packets};

use crate::Backlog;

/// The limit of a buffer. The packet in transmission does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// At most this many packets.
    Packets(Packets),
    /// At most this many bytes: a packet that does not fit completely is refused (Linux bfifo).
    Bytes(Bytes),
    /// Refuses arrivals of any size once the backlog has reached this many bytes (ns-2 with its queue in
    /// bytes), so the backlog can exceed the limit by less than one packet.
    BytesReached(Bytes),
}

/// Largest number of packets for which room is reserved in advance; longer queues grow by doubling.
const RESERVED_AT_MOST: usize = 4096;
/// The size of the smallest packet that these reservations assume: an acknowledgement without options.
const SMALL_PACKET: Bytes = Bytes::new(40);
/// The size of the smallest possible packet: an IPv4 header (RFC 791).
const SMALLEST_PACKET: Bytes = Bytes::new(20);

impl Limit {
    /// Returns whether there is room for a packet of `size` behind `backlog`.
    #[inline]
    pub fn admits(self, backlog: Backlog, size: Bytes) -> bool {
        match self {
            Limit::Packets(most) => backlog.packets < most,
            Limit::Bytes(most) => backlog.bytes.get().saturating_add(size.get()) <= most.get(),
            Limit::BytesReached(level) => backlog.bytes < level,
        }
    }

    /// Returns whether there can ever be room for a packet of `size`.
    #[inline]
    pub fn admits_any(self, size: Bytes) -> bool {
        self.admits(Backlog::default(), size)
    }

    /// Returns whether `backlog` is possible under this limit if no packet is larger than `largest`.
    pub fn holds(self, backlog: Backlog, largest: Bytes) -> bool {
        match self {
            Limit::Packets(most) => backlog.packets <= most,
            Limit::Bytes(most) => backlog.bytes <= most,
            Limit::BytesReached(level) => backlog.bytes.get() < level.get().saturating_add(largest.get()),
        }
    }

    /// Returns the number of packets for which a queue with this limit reserves room: as many as
    /// the limit admits, up to a few thousand.
    pub(crate) fn room(self) -> usize {
        self.lets_in(SMALL_PACKET).min(RESERVED_AT_MOST)
    }

    /// Returns how many packets, out of a total of `packets`, a queue with this limit can hold.
    pub(crate) fn most_of(self, packets: usize) -> usize {
        self.lets_in(SMALLEST_PACKET).min(packets)
    }

    /// Returns the largest number of packets of at least `size` that this limit admits.
    fn lets_in(self, size: Bytes) -> usize {
        let packets = match self {
            Limit::Packets(most) => most.get(),
            Limit::Bytes(most) | Limit::BytesReached(most) => most.get() / size.get() + 1,
        };
        usize::try_from(packets).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog(packets: u64, bytes: u64) -> Backlog {
        Backlog { packets: Packets::new(packets), bytes: Bytes::new(bytes) }
    }

    #[test]
    fn each_limit_refuses_at_its_own_edge() {
        let size = Bytes::new(100);
        assert!(Limit::Packets(Packets::new(3)).admits(backlog(2, 5000), size));
        assert!(!Limit::Packets(Packets::new(3)).admits(backlog(3, 300), size));
        assert!(Limit::Bytes(Bytes::new(1000)).admits(backlog(9, 900), size));
        assert!(!Limit::Bytes(Bytes::new(1000)).admits(backlog(9, 901), size));
        assert!(Limit::BytesReached(Bytes::new(1000)).admits(backlog(9, 999), size));
        assert!(!Limit::BytesReached(Bytes::new(1000)).admits(backlog(10, 1000), size));
    }

    #[test]
    fn no_backlog_overflows_the_sum() {
        assert!(!Limit::Bytes(Bytes::new(u64::MAX - 1)).admits(backlog(1, u64::MAX - 1), Bytes::new(2)));
    }
}
