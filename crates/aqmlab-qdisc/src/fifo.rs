//! A first-in first-out queue that knows its length in packets and bytes.

use alloc::collections::VecDeque;

use aqmlab_units::{Bytes, Packets};

use crate::{Backlog, Limit, Packet};

/// Packets in order of arrival.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    waiting: VecDeque<P>,
    bytes: Bytes,
}

impl<P: Packet> Fifo<P> {
    /// Creates an empty queue with room for the packets that `limit` admits (up to a few thousand),
    /// so that a queue in steady state never allocates.
    pub fn for_limit(limit: Limit) -> Self {
        Fifo { waiting: VecDeque::with_capacity(limit.room()), bytes: Bytes::ZERO }
    }

    /// Reserves room for as many packets as `limit` admits, but for at most `packets`.
    pub fn reserve(&mut self, limit: Limit, packets: usize) {
        self.waiting.reserve_exact(limit.most_of(packets).saturating_sub(self.waiting.len()));
    }

    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, pkt: P) {
        self.bytes += pkt.wire_len();
        self.waiting.push_back(pkt);
    }

    /// Removes and returns the oldest packet.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        let pkt = self.waiting.pop_front()?;
        self.bytes -= pkt.wire_len();
        Some(pkt)
    }

    /// Removes and returns the packet at a position in the queue, if there is one; position 0 is the oldest
    /// packet. The packets on the shorter side of the gap move to close it.
    pub fn take(&mut self, place: usize) -> Option<P> {
        let pkt = self.waiting.remove(place)?;
        self.bytes -= pkt.wire_len();
        Some(pkt)
    }

    /// Returns the number of waiting packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the oldest packet.
    pub fn head(&self) -> Option<&P> {
        self.waiting.front()
    }

    /// Returns the backlog.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: Packets::new(self.waiting.len() as u64), bytes: self.bytes }
    }

    /// Returns whether the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
