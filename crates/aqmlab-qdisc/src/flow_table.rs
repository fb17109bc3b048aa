//! State per flow: a hash table for disciplines that keep such state.

use alloc::vec::Vec;

use aqmlab_units::{Bytes, Instant};

use crate::{Arrived, Classed, Dscp, Ecn, Packet, PacketKind, Side};

/// The state of each flow, by the flow's hash. Two flows whose 64-bit hashes are equal count as one flow.
///
/// The table uses open addressing with linear probing and is at most half full. Removal moves later
/// entries back into the gap, so no gaps remain, and a table that has once reached its largest
/// number of flows never allocates again. Nothing depends on memory addresses: the same calls give
/// the same table.
#[derive(Clone, Debug)]
pub(crate) struct FlowTable<V> {
    /// The slots, whose number is a power of two.
    slots: Vec<Option<(u64, V)>>,
    flows: usize,
}

/// Number of slots of the smallest table.
const FEWEST_SLOTS: usize = 16;
/// 2^64 divided by the golden ratio. Multiplication by it spreads keys that differ in few bits over
/// the high bits of the product.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

impl<V: Default> FlowTable<V> {
    /// Creates an empty table with room for this many `flows`.
    pub(crate) fn with_room(flows: usize) -> Self {
        let slots = (2 * flows).next_power_of_two().max(FEWEST_SLOTS);
        FlowTable { slots: vacant(slots), flows: 0 }
    }

    /// Reserves room for at least this many flows.
    pub(crate) fn reserve(&mut self, flows: usize) {
        while self.slots.len() < 2 * flows {
            self.grow();
        }
    }

    /// Returns the state of the flow with this hash, if it has any.
    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<&V> {
        self.slots[self.find(key)].as_ref().map(|(_, state)| state)
    }

    /// Returns the same state as [`FlowTable::get`], as a mutable reference.
    #[inline]
    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        let at = self.find(key);
        self.slots[at].as_mut().map(|(_, state)| state)
    }

    /// Returns the state of the flow with this hash, or the default for a new flow.
    #[inline]
    pub(crate) fn get_or_default(&mut self, key: u64) -> &mut V {
        let mut at = self.find(key);
        if self.slots[at].is_none() {
            if 2 * (self.flows + 1) > self.slots.len() {
                self.grow();
                at = self.find(key);
            }
            self.flows += 1;
        }
        &mut self.slots[at].get_or_insert_with(|| (key, V::default())).1
    }

    /// Removes the flow with this hash.
    #[inline]
    pub(crate) fn remove(&mut self, key: u64) {
        let mut hole = self.find(key);
        if self.slots[hole].take().is_none() {
            return;
        }
        self.flows -= 1;
        // A later entry may move back into the hole unless that would put it before its home slot.
        let mut at = self.after(hole);
        while let Some((follower, _)) = &self.slots[at] {
            let home = self.home(*follower);
            if self.distance(home, at) >= self.distance(hole, at) {
                self.slots.swap(hole, at);
                hole = at;
            }
            at = self.after(at);
        }
    }

    /// Iterates over all flows, in an order that depends on their hashes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &V)> {
        self.slots.iter().flatten().map(|(key, state)| (*key, state))
    }

    /// Iterates over all flows like [`FlowTable::iter`], with mutable references to their states.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut V)> {
        self.slots.iter_mut().flatten().map(|(key, state)| (*key, state))
    }

    /// Returns the number of flows.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.flows
    }

    /// Returns the slot of the flow or, if the flow is not in the table, the vacant slot for it.
    #[inline]
    fn find(&self, key: u64) -> usize {
        let mut at = self.home(key);
        while let Some((other, _)) = &self.slots[at] {
            if *other == key {
                break;
            }
            at = self.after(at);
        }
        at
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(SPREAD) >> 32) as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    /// Returns the number of probing steps from one slot to another.
    #[inline]
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.slots.len() - 1)
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vacant(2 * self.slots.len());
        for (key, state) in core::mem::replace(&mut self.slots, larger).into_iter().flatten() {
            let at = self.find(key);
            self.slots[at] = Some((key, state));
        }
    }
}

fn vacant<V>(slots: usize) -> Vec<Option<(u64, V)>> {
    core::iter::repeat_with(|| None).take(slots).collect()
}

/// A packet with what its queue knew when it arrived, for queues with state per flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed<P, K = u64> {
    /// What the queue knew: usually the hash of the packet's flow, computed with the queue's own salt.
    pub key: K,
    /// The packet.
    pub packet: P,
}

impl<P: Arrived, K> Arrived for Keyed<P, K> {
    #[inline]
    fn arrived(&self) -> Instant {
        self.packet.arrived()
    }
}

impl<P: Classed, K> Classed for Keyed<P, K> {
    #[inline]
    fn class(&self) -> usize {
        self.packet.class()
    }
    #[inline]
    fn kind(&self) -> PacketKind {
        self.packet.kind()
    }
    #[inline]
    fn class_and_kind(&self) -> usize {
        self.packet.class_and_kind()
    }
}

impl<P: Packet, K> Packet for Keyed<P, K> {
    #[inline]
    fn wire_len(&self) -> Bytes {
        self.packet.wire_len()
    }
    #[inline]
    fn flow_hash(&self, salt: u64) -> u64 {
        self.packet.flow_hash(salt)
    }
    #[inline]
    fn host_hash(&self, side: Side, salt: u64) -> u64 {
        self.packet.host_hash(side, salt)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }
    #[inline]
    fn mark_ce(&mut self) {
        self.packet.mark_ce();
    }
    #[inline]
    fn dscp(&self) -> Dscp {
        self.packet.dscp()
    }
    #[inline]
    fn set_dscp(&mut self, dscp: Dscp) {
        self.packet.set_dscp(dscp);
    }
    #[inline]
    fn ports(&self) -> Option<[u16; 2]> {
        self.packet.ports()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use aqmlab_random::Stream;

    /// Compares the table with an ordered map over half a million random calls. Keys collide: there are few
    /// of them, and many share a home slot in the initial, small table.
    #[test]
    fn agrees_with_an_ordered_map() {
        for seed in 0..50 {
            let mut draws = Stream::new(seed, "flow table");
            let (mut table, mut map) = (FlowTable::<u64>::with_room(0), BTreeMap::new());
            let keys = 2 + draws.below(300);
            for n in 0..10_000 {
                let key = draws.below(keys) << 32;
                match draws.below(3) {
                    0 => {
                        table.remove(key);
                        map.remove(&key);
                    }
                    _ => {
                        *table.get_or_default(key) += n;
                        *map.entry(key).or_default() += n;
                    }
                }
                let asked = draws.below(keys) << 32;
                assert_eq!(table.get(asked), map.get(&asked));
                assert_eq!(table.get_mut(asked).copied(), map.get(&asked).copied());
                assert_eq!(table.len(), map.len());
            }
            let mut all: Vec<(u64, u64)> = table.iter().map(|(key, state)| (key, *state)).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(map.clone()));
            table.iter_mut().for_each(|(_, state)| *state += 1);
            assert!(map.iter().all(|(key, state)| table.get(*key) == Some(&(state + 1))));
        }
    }

    #[test]
    fn a_table_that_is_not_exceeded_keeps_its_size() {
        let mut table = FlowTable::<u8>::with_room(100);
        let slots = table.slots.len();
        for round in 0..1000u64 {
            (0..100).for_each(|n| *table.get_or_default(round * 100 + n) = 1);
            (0..100).for_each(|n| table.remove(round * 100 + n));
        }
        assert_eq!((table.slots.len(), table.len()), (slots, 0));
    }
}
