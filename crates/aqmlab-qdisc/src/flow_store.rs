//! The packets of many short queues in one store, so that an empty queue takes no more than its ends.

use alloc::vec::Vec;
use core::marker::PhantomData;

use aqmlab_units::{Bytes, Packets};

use crate::disc::Waiting;
use crate::{Backlog, Packet};

/// The group of the queues in which a packet arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Group {
    /// Those that had been empty, or were in their first round.
    Sparse,
    /// All others.
    Bulk,
}

impl Group {
    /// The names of the groups, in the order of their numbers among the inner queues, which begin at 1.
    pub(crate) const NAMES: [&'static str; 2] = ["sparse", "bulk"];

    /// Returns its number among the inner queues.
    pub(crate) const fn number(self) -> u16 {
        self as u16 + 1
    }
}

/// Marks the end of a chain of places, and a vacant place.
pub(crate) const NONE: u32 = u32::MAX;

/// A slot of the store, which is free without a packet.
#[derive(Clone, Debug)]
struct Slot<P> {
    packet: Option<P>,
    group: Group,
    /// The next slot of the same queue, or the next free one.
    next: u32,
}

/// The place of a packet that has left its queue, but not yet the store.
#[derive(Debug)]
#[must_use]
pub(crate) struct Place(u32);

/// How much memory a packet takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Weigh {
    /// Its length.
    Length,
    /// This function of its length.
    By(fn(Bytes) -> u64),
}

/// The packets of all queues of one owner, and their sums.
#[derive(Clone, Debug)]
pub(crate) struct FlowStore<P> {
    slots: Vec<Slot<P>>,
    /// The first free slot.
    free: u32,
    weigh: Weigh,
    /// Whether the law of a queue sees the backlog of all queues instead of its own.
    law_sees_all: bool,
    /// The backlog by [`Group`]. Packets and bytes are apart, so that each is one addition for a packet.
    packets: [Packets; 2],
    bytes: [Bytes; 2],
    /// The memory of all packets, unless it is their length.
    weighed: u64,
}

impl<P: Packet> FlowStore<P> {
    pub(crate) const fn new(weigh: Weigh, law_sees_all: bool) -> Self {
        FlowStore {
            slots: Vec::new(),
            free: NONE,
            weigh,
            law_sees_all,
            packets: [Packets::ZERO; 2],
            bytes: [Bytes::ZERO; 2],
            weighed: 0,
        }
    }

    /// Reserves room for this many packets.
    pub(crate) fn reserve(&mut self, packets: usize) {
        self.slots.reserve_exact(packets.saturating_sub(self.slots.len()));
    }

    /// Returns the backlog by [`Group`].
    pub(crate) fn groups(&self) -> [Backlog; 2] {
        [0, 1].map(|group| Backlog { packets: self.packets[group], bytes: self.bytes[group] })
    }

    /// Returns the backlog of all queues.
    #[inline]
    pub(crate) fn all(&self) -> Backlog {
        let ([sparse, bulk], [sparse_bytes, bulk_bytes]) = (self.packets, self.bytes);
        Backlog { packets: sparse + bulk, bytes: sparse_bytes + bulk_bytes }
    }

    /// Returns the memory of all packets.
    #[inline]
    pub(crate) fn memory(&self) -> u64 {
        match self.weigh {
            Weigh::Length => self.all().bytes.get(),
            Weigh::By(_) => self.weighed,
        }
    }

    /// Returns the memory that a packet of this length takes.
    #[inline]
    pub(crate) fn memory_of(&self, size: Bytes) -> u64 {
        match self.weigh {
            Weigh::Length => size.get(),
            Weigh::By(weigh) => weigh(size),
        }
    }

    /// Stores a packet and returns its slot.
    #[inline]
    fn put(&mut self, packet: P, group: Group) -> u32 {
        let size = packet.wire_len();
        self.packets[group as usize] += Packets::new(1);
        self.bytes[group as usize] += size;
        if let Weigh::By(weigh) = self.weigh {
            self.weighed += weigh(size);
        }
        let taken = Slot { packet: Some(packet), group, next: NONE };
        let at = self.free;
        if let Some(slot) = self.slots.get_mut(at as usize) {
            self.free = slot.next;
            *slot = taken;
            return at;
        }
        self.slots.push(taken);
        (self.slots.len() - 1) as u32
    }

    /// Removes the packet in a slot from the sums, and returns its size, its group and the next slot of its queue.
    #[inline]
    fn discount(&mut self, at: u32) -> Option<(Bytes, Group, u32)> {
        let Slot { packet, group, next } = self.slots.get(at as usize)?;
        let size = packet.as_ref()?.wire_len();
        self.packets[*group as usize] -= Packets::new(1);
        self.bytes[*group as usize] -= size;
        if let Weigh::By(weigh) = self.weigh {
            self.weighed -= weigh(size);
        }
        Some((size, *group, *next))
    }

    /// Returns the packet at a place.
    #[inline]
    pub(crate) fn packet(&mut self, place: &Place) -> Option<&mut P> {
        self.slots.get_mut(place.0 as usize)?.packet.as_mut()
    }

    /// Shows the packet at a place to `look`, removes it and returns it.
    #[inline]
    pub(crate) fn release(&mut self, place: Place, look: impl FnOnce(&P)) -> Option<P> {
        let slot = self.slots.get_mut(place.0 as usize)?;
        look(slot.packet.as_ref()?);
        slot.next = core::mem::replace(&mut self.free, place.0);
        slot.packet.take()
    }

    /// Returns the slot behind the one at `at`, as a reference that can be changed.
    #[inline]
    fn next(&mut self, at: u32) -> Option<&mut u32> {
        Some(&mut self.slots.get_mut(at as usize)?.next)
    }
}

/// One queue in a [`FlowStore`].
#[derive(Clone, Debug)]
pub(crate) struct Chain<P> {
    /// The first slot, or [`NONE`].
    head: u32,
    /// The last slot, if there is any.
    tail: u32,
    pub packets: u32,
    pub bytes: Bytes,
    of: PhantomData<fn(P)>,
}

impl<P> Chain<P> {
    pub(crate) const EMPTY: Chain<P> =
        Chain { head: NONE, tail: NONE, packets: 0, bytes: Bytes::ZERO, of: PhantomData };

    /// Iterates over the packets, from the oldest.
    pub(crate) fn iter<'a>(&self, store: &'a FlowStore<P>) -> impl Iterator<Item = &'a P> {
        let mut at = self.head;
        core::iter::from_fn(move || {
            let slot = store.slots.get(at as usize)?;
            at = slot.next;
            slot.packet.as_ref()
        })
    }

    /// Returns the oldest packet, and its group.
    pub(crate) fn first_mut<'a>(&self, store: &'a mut FlowStore<P>) -> Option<(&'a mut P, Group)> {
        let slot = store.slots.get_mut(self.head as usize)?;
        Some((slot.packet.as_mut()?, slot.group))
    }
}

impl<P: Packet> Waiting for Chain<P> {
    type Packet = P;
    type Group = Group;
    type Store = FlowStore<P>;
    type Place = Place;

    #[inline]
    fn push(&mut self, store: &mut FlowStore<P>, pkt: P, group: Group) {
        self.packets += 1;
        self.bytes += pkt.wire_len();
        let at = store.put(pkt, group);
        if self.head == NONE {
            self.head = at;
        } else if let Some(next) = store.next(self.tail) {
            *next = at;
        }
        self.tail = at;
    }

    #[inline]
    fn pop(&mut self, store: &mut FlowStore<P>) -> Option<(Place, Group)> {
        let at = self.head;
        let (size, group, next) = store.discount(at)?;
        self.head = next;
        self.packets -= 1;
        self.bytes -= size;
        Some((Place(at), group))
    }

    fn take(&mut self, store: &mut FlowStore<P>, position: usize) -> Option<(Place, Group)> {
        let Some(steps) = position.checked_sub(1) else { return self.pop(store) };
        if position >= self.packets as usize {
            return None;
        }
        let mut before = self.head;
        for _ in 0..steps {
            before = *store.next(before)?;
        }
        let at = *store.next(before)?;
        let (size, group, next) = store.discount(at)?;
        *store.next(before)? = next;
        if next == NONE {
            self.tail = before;
        }
        self.packets -= 1;
        self.bytes -= size;
        Some((Place(at), group))
    }

    #[inline]
    fn packet<'a>(store: &'a mut FlowStore<P>, place: &'a mut Place) -> Option<&'a mut P> {
        store.packet(place)
    }

    #[inline]
    fn release(store: &mut FlowStore<P>, place: Place) -> Option<P> {
        store.release(place, |_| ())
    }

    fn inner(group: Group) -> u16 {
        group.number()
    }

    fn packets(&self) -> usize {
        self.packets as usize
    }

    #[inline]
    fn backlog(&self, store: &FlowStore<P>) -> Backlog {
        if store.law_sees_all {
            return store.all();
        }
        Backlog { packets: Packets::new(u64::from(self.packets)), bytes: self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dscp, Ecn, Side};
    use alloc::collections::VecDeque;
    use aqmlab_random::Stream;

    /// A packet: its number and its size.
    struct Numbered(u64, u64);

    impl Packet for Numbered {
        fn wire_len(&self) -> Bytes {
            Bytes::new(self.1)
        }
        fn flow_hash(&self, salt: u64) -> u64 {
            salt
        }
        fn host_hash(&self, _: Side, salt: u64) -> u64 {
            salt
        }
        fn ecn(&self) -> Ecn {
            Ecn::NotEct
        }
        fn mark_ce(&mut self) {}
        fn dscp(&self) -> Dscp {
            Dscp(0)
        }
        fn set_dscp(&mut self, _: Dscp) {}
    }

    /// A queue in the store, and the numbers and sizes of its packets.
    type Pair = (Chain<Numbered>, VecDeque<(u64, u64)>);

    /// Compares ten queues in one store with ten deques over many random calls; the store has no more places
    /// than packets have waited at once.
    #[test]
    fn agrees_with_deques() {
        let mut draws = Stream::new(1, "flow store");
        let mut store = FlowStore::new(Weigh::By(|size| size.get() + 7), true);
        let mut queues: [Pair; 10] = core::array::from_fn(|_| (Chain::EMPTY, VecDeque::new()));
        let mut most = 0;
        for n in 0..20_000u64 {
            let (chain, deque) = &mut queues[draws.below(10) as usize];
            let size = 40 + draws.below(1000);
            match draws.below(5) {
                0 | 1 => {
                    chain.push(&mut store, Numbered(n, size), Group::Bulk);
                    deque.push_back((n, size));
                }
                2 | 3 => {
                    let found = chain
                        .pop(&mut store)
                        .and_then(|(place, _)| store.release(place, |_| ()))
                        .map(|pkt| pkt.0);
                    assert_eq!(found, deque.pop_front().map(|(n, _)| n));
                }
                _ => {
                    let position = draws.below(4) as usize;
                    let found = chain
                        .take(&mut store, position)
                        .and_then(|(place, _)| store.release(place, |_| ()))
                        .map(|pkt| pkt.0);
                    assert_eq!(found, deque.remove(position).map(|(n, _)| n));
                }
            }
            assert_eq!(chain.packets(), deque.len());
            assert_eq!(chain.bytes.get(), deque.iter().map(|(_, size)| size).sum::<u64>());
            let (mut packets, mut bytes) = (0, 0);
            for (_, deque) in &queues {
                packets += deque.len() as u64;
                bytes += deque.iter().map(|(_, size)| size).sum::<u64>();
            }
            let all = Backlog { packets: Packets::new(packets), bytes: Bytes::new(bytes) };
            most = most.max(packets);
            assert_eq!((store.all(), store.groups()), (all, [Backlog::default(), all]));
            assert_eq!((store.memory(), store.slots.len() as u64), (bytes + 7 * packets, most));
        }
    }
}
