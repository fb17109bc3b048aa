//! A timing wheel: the fast event queue.
//!
//! Time is divided into slots whose width in nanoseconds is a power of two. Events of the near
//! future wait unsorted in their slot; when a slot is reached, its few events are sorted by key.
//! Timers that are not due soon wait in a coarser ring ([`crate::timer_ring`]), and events beyond
//! the horizons of the wheel and the ring wait in a heap. Both join the slots of the wheel when
//! time reaches them. Adding an event takes constant time, and removing one takes nearly constant
//! time. Events leave in exactly the same order as from a heap, by the complete key;
//! [`crate::event::HeapQueue`] is the reference.
//!
//! Slots are lists in one pool of nodes, so nothing is allocated once the pool has grown to the
//! largest number of pending events.

use std::collections::BinaryHeap;

use aqmlab_units::{Instant, Span};

use crate::event::{Event, EventQueue, Item, Key, Notice};
use crate::packet::SimPacket;
use crate::timer_ring::{NEVER, NONE, TimerRing, boxed};

/// One event in a slot's list.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Node {
    key: Key,
    event: Event,
    next: u32,
}

const _: () = assert!(size_of::<Node>() == 64, "a node takes one cache line");

/// Number of slots: a constant power of two, so that an index needs no check.
const SLOTS: usize = 1 << 16;
const MASK: u64 = SLOTS as u64 - 1;

/// Number of slots in a group. Each group has one flag, which records whether it may contain
/// events.
const GROUP: usize = 16;
const GROUPS: usize = SLOTS / GROUP;

/// A slot of the ring for later timers is as wide as `2^COARSE` slots of the wheel.
const COARSE: u32 = 12;

/// Events, stored by time slot.
pub struct Wheel {
    /// A slot is `2^shift` ns wide.
    shift: u32,
    /// The current slot, counted from time zero.
    cursor: u64,
    /// The first event of the current slot, whose list is sorted.
    current: u32,
    /// The first free node.
    free: u32,
    pool: Vec<Node>,
    /// The first node of each slot. The lists of these slots are not sorted.
    heads: Box<[u32; SLOTS]>,
    /// The flag of each group of slots: 0 if no slot of the group has events, otherwise 1. When a
    /// group has become empty, its flag is cleared only when the group is next examined.
    filled: Box<[u8; GROUPS]>,
    /// Timers whose coarse slot is later than that of the cursor.
    ring: TimerRing,
    /// Events beyond the horizons of the wheel and the ring.
    far: BinaryHeap<Item>,
    /// The first slot in which one of the later timers or far events may be due.
    far_slot: u64,
    /// The buffer for sorting long lists.
    scratch: Vec<(Key, u32)>,
    /// The nodes of all slots before this one have been prefetched into the cache.
    fetched: u64,
}

/// Lists longer than this are sorted in an array.
const LONG: usize = 8;

/// A pool with more nodes than this does not stay in the cache.
const CACHED: usize = 1 << 13;
/// Number of slots whose nodes are prefetched together.
const FETCHED: usize = 16;

impl Wheel {
    /// Creates a wheel for events that are about `gap` apart and mostly less than `horizon` ahead.
    /// The two values are hints, which affect the cost but never the order.
    pub fn new(gap: Span, horizon: Span) -> Self {
        // A slot holds about one event, but is wide enough for the horizon to lie within the wheel.
        let wide = gap.as_ns().clamp(1 << 4, 1 << 23).ilog2() + 1;
        let reaching = (horizon.as_ns() / SLOTS as u64).max(1).ilog2() + 1;
        let shift = wide.max(reaching.min(32));
        Wheel {
            shift,
            cursor: 0,
            current: NONE,
            free: NONE,
            pool: Vec::new(),
            heads: boxed(NONE),
            filled: boxed(0),
            ring: TimerRing::new(),
            far: BinaryHeap::new(),
            far_slot: NEVER,
            scratch: Vec::new(),
            fetched: 0,
        }
    }

    #[inline]
    fn slot_of(&self, key: &Key) -> u64 {
        key.at.as_ns() >> self.shift
    }

    /// Returns whether the wheel reaches this slot. Its reach starts at the slot after the
    /// cursor's, because time does not go back.
    #[inline]
    fn reaches(&self, slot: u64) -> bool {
        slot.wrapping_sub(self.cursor).wrapping_sub(1) < MASK
    }

    /// Allocates a node with this event and returns its place.
    #[inline]
    fn node(&mut self, key: Key, event: Event, next: u32) -> u32 {
        let place = self.free;
        // The value that ends the list of free nodes is not a place in the pool.
        match self.pool.get_mut(place as usize) {
            Some(node) => {
                self.free = node.next;
                *node = Node { key, event, next };
                place
            }
            None => self.grow(Node { key, event, next }),
        }
    }

    #[cold]
    fn grow(&mut self, node: Node) -> u32 {
        self.pool.push(node);
        (self.pool.len() - 1) as u32
    }

    /// Adds an event to its slot, which must be within reach of the wheel.
    fn hang(&mut self, slot: u64, key: Key, event: Event) {
        let index = (slot & MASK) as usize;
        self.heads[index] = self.node(key, event, self.heads[index]);
        self.filled[index / GROUP] = 1;
    }

    /// Adds an event that [`EventQueue::push_arrival`] does not add itself, because the event is
    /// not in the near future or there is no free node for it.
    #[inline(never)]
    fn push_seldom(&mut self, key: Key, event: Event) {
        let slot = self.slot_of(&key);
        if self.reaches(slot) {
            self.hang(slot, key, event);
        } else if slot <= self.cursor {
            self.insert_current(key, event);
        } else {
            self.push_far(key, event);
        }
    }

    fn push_far(&mut self, key: Key, event: Event) {
        self.far_slot = self.far_slot.min(self.slot_of(&key));
        self.far.push(Item { key, event });
    }

    /// Inserts an event into the sorted list of the current slot.
    fn insert_current(&mut self, key: Key, event: Event) {
        let (mut before, mut next) = (NONE, self.current);
        while next != NONE && self.pool[next as usize].key < key {
            before = next;
            next = self.pool[next as usize].next;
        }
        let place = self.node(key, event, next);
        if before == NONE {
            self.current = place;
        } else {
            self.pool[before as usize].next = place;
        }
    }

    /// Moves on to the next slot with events, and sorts its events. Returns false if there are no
    /// further events.
    #[inline]
    fn next_slot(&mut self) -> bool {
        let near = self.next_near();
        if near >= self.far_slot {
            return self.next_far_slot(near);
        }
        self.take_near(near);
        let (first, second) = (self.current, self.pool[self.current as usize].next);
        if second != NONE {
            self.sort_from(first, second);
        }
        true
    }

    /// Returns the next slot of the wheel with events, or [`NEVER`] if there is none. It is usually
    /// one of the next few slots.
    #[inline(always)]
    fn next_near(&mut self) -> u64 {
        let mut slot = self.cursor + 1;
        loop {
            if self.heads[(slot & MASK) as usize] != NONE {
                return slot;
            }
            slot += 1;
            if slot.is_multiple_of(GROUP as u64) {
                return self.next_group(slot);
            }
        }
    }

    /// Returns the next slot with events within one turn from the cursor, starting at `slot`, which
    /// is the first of its group. The cursor's group is examined last.
    #[inline(never)]
    fn next_group(&mut self, slot: u64) -> u64 {
        let start = (slot & MASK) as usize / GROUP;
        let mut looked = 0;
        while looked < GROUPS {
            let group = (start + looked) % GROUPS;
            if group.is_multiple_of(8) && self.filled[group..][..8] == [0; 8] {
                looked += 8;
                continue;
            }
            if self.filled[group] != 0 {
                let slots = &self.heads[group * GROUP..][..GROUP];
                if let Some(n) = slots.iter().position(|&head| head != NONE) {
                    return slot + (looked * GROUP + n) as u64;
                }
                self.filled[group] = 0;
            }
            looked += 1;
        }
        NEVER
    }

    /// Sorts the current list, which begins with these two events and usually has no others.
    #[inline(always)]
    fn sort_from(&mut self, first: u32, second: u32) {
        if self.pool[second as usize].next != NONE {
            self.sort_current();
        } else if self.pool[second as usize].key < self.pool[first as usize].key {
            self.current = second;
            self.pool[second as usize].next = first;
            self.pool[first as usize].next = NONE;
        }
    }

    /// Turns the list of a slot, which must not be empty, into the current list, without sorting
    /// it.
    #[inline]
    fn take_near(&mut self, slot: u64) {
        self.cursor = slot;
        self.current = std::mem::replace(&mut self.heads[(slot & MASK) as usize], NONE);
    }

    /// Moves on to the next events, which are later timers or events from beyond the horizon. If
    /// they are due in the slot `near`, that slot's own events join them. Returns false if there
    /// are no events at all.
    #[cold]
    fn next_far_slot(&mut self, near: u64) -> bool {
        if self.far_slot == NEVER {
            return false;
        }
        let coarse = self.ring.first();
        if coarse != NEVER && self.far_slot == coarse << COARSE {
            self.bring_near(coarse);
            return self.next_slot();
        }
        if near == self.far_slot {
            self.take_near(near);
        }
        self.cursor = self.far_slot;
        self.take_far();
        self.sort_current();
        true
    }

    /// Moves the timers of a coarse slot into the wheel; nothing is due before that slot.
    fn bring_near(&mut self, coarse: u64) {
        self.cursor = (coarse << COARSE) - 1;
        while let Some((key, notice)) = self.ring.pop(coarse) {
            self.hang(self.slot_of(&key), key, Event::Other(notice));
        }
        self.look_far();
    }

    /// Adds to the current list, without sorting it, the events from beyond the horizon that are
    /// due in the cursor's slot.
    fn take_far(&mut self) {
        while self.far.peek().is_some_and(|item| self.slot_of(&item.key) == self.cursor) {
            let Some(Item { key, event }) = self.far.pop() else { break };
            self.current = self.node(key, event, self.current);
        }
        self.look_far();
    }

    /// Computes the first slot in which later timers or far events may be due.
    fn look_far(&mut self) {
        let far = self.far.peek().map_or(NEVER, |item| self.slot_of(&item.key));
        let coarse = self.ring.first();
        self.far_slot = if coarse == NEVER { far } else { far.min(coarse << COARSE) };
    }

    /// Sorts the current list: by insertion while it is short, otherwise in an array.
    #[inline(never)]
    fn sort_current(&mut self) {
        if self.pool.len() > CACHED && self.fetched <= self.cursor {
            self.fetch_slots();
        }
        let mut rest = std::mem::replace(&mut self.current, NONE);
        let mut sorted = 0;
        while rest != NONE {
            if sorted == LONG {
                self.sort_long(rest);
                return;
            }
            let place = rest;
            let key = self.pool[place as usize].key;
            rest = self.pool[place as usize].next;
            let (mut before, mut next) = (NONE, self.current);
            while next != NONE && self.pool[next as usize].key < key {
                before = next;
                next = self.pool[next as usize].next;
            }
            self.pool[place as usize].next = next;
            if before == NONE {
                self.current = place;
            } else {
                self.pool[before as usize].next = place;
            }
            sorted += 1;
        }
    }

    /// Traverses the lists of this slot and of the next ones in parallel, so that their cache
    /// misses overlap. Otherwise, cache misses would take most of the time of a run with very many
    /// flows.
    #[inline(never)]
    fn fetch_slots(&mut self) {
        let list = |n| self.heads[((self.cursor + n as u64) & MASK) as usize];
        let mut places: [u32; FETCHED] = std::array::from_fn(list);
        places[0] = self.current;
        while places != [NONE; FETCHED] {
            for place in &mut places {
                *place = self.pool.get(*place as usize).map_or(NONE, |node| node.next);
            }
        }
        self.fetched = self.cursor + FETCHED as u64;
    }

    /// Sorts the current list together with `rest`: sorts keys and places in an array, and rebuilds
    /// the list.
    #[inline(never)]
    fn sort_long(&mut self, rest: u32) {
        let mut scratch = std::mem::take(&mut self.scratch);
        for list in [self.current, rest] {
            let mut place = list;
            while place != NONE {
                let node = &self.pool[place as usize];
                scratch.push((node.key, place));
                place = node.next;
            }
        }
        scratch.sort_unstable_by_key(|&(key, _)| key);
        self.current = NONE;
        for &(_, place) in scratch.iter().rev() {
            self.pool[place as usize].next = self.current;
            self.current = place;
        }
        scratch.clear();
        self.scratch = scratch;
    }
}

impl EventQueue for Wheel {
    /// The packet is written only once, to the place where it stays.
    #[inline(always)]
    fn push_arrival(&mut self, key: Key, packet: SimPacket) {
        let slot = self.slot_of(&key);
        let near = self.reaches(slot);
        match self.pool.get_mut(self.free as usize) {
            Some(node) if near => {
                let index = (slot & MASK) as usize;
                let place = self.free;
                self.free = node.next;
                node.next = self.heads[index];
                node.key = key;
                node.event = Event::Arrive(packet);
                self.heads[index] = place;
                self.filled[index / GROUP] = 1;
            }
            _ => self.push_seldom(key, Event::Arrive(packet)),
        }
    }

    /// An event before the next coarse slot counts as near.
    #[inline]
    fn push(&mut self, key: Key, notice: Notice) {
        let slot = self.slot_of(&key);
        let (now, coarse) = (self.cursor >> COARSE, slot >> COARSE);
        if coarse <= now {
            self.push_seldom(key, Event::Other(notice));
        } else if self.ring.reaches(now, coarse) {
            self.ring.push(coarse, key, notice);
            self.far_slot = self.far_slot.min(coarse << COARSE);
        } else {
            self.push_far(key, Event::Other(notice));
        }
    }

    #[inline(always)]
    fn advance(&mut self) -> Option<Instant> {
        if self.current == NONE && !self.next_slot() {
            return None;
        }
        Some(self.pool[self.current as usize].key.at)
    }

    #[inline(always)]
    fn first(&self) -> (Key, &Event) {
        let node = &self.pool[self.current as usize];
        (node.key, &node.event)
    }

    #[inline(always)]
    fn release(&mut self) {
        let place = self.current;
        let node = &mut self.pool[place as usize];
        self.current = std::mem::replace(&mut node.next, self.free);
        self.free = place;
    }

    fn for_each_packet(&self, look: &mut dyn FnMut(&SimPacket)) {
        for &list in self.heads.iter().chain([&self.current]) {
            let mut place = list;
            while let Some(node) = self.pool.get(place as usize) {
                node.event.packet().into_iter().for_each(&mut *look);
                place = node.next;
            }
        }
        self.far.iter().for_each(|item| item.event.packet().into_iter().for_each(&mut *look));
    }

    fn memory_bytes(&self) -> usize {
        self.pool.capacity() * size_of::<Node>()
            + self.ring.memory_bytes()
            + self.far.capacity() * size_of::<Item>()
            + self.scratch.capacity() * size_of::<(Key, u32)>()
            + size_of_val(&*self.heads)
            + size_of_val(&*self.filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{HeapQueue, Rank};
    use crate::packet::{Begin, FlowId, Toward};
    use aqmlab_qdisc::Ecn;
    use aqmlab_units::Bytes;
    use proptest::prelude::*;

    fn pop(queue: &mut impl EventQueue) -> Option<(Key, Event)> {
        let at = queue.advance()?;
        let (key, &event) = queue.first();
        assert_eq!(key.at, at);
        queue.release();
        Some((key, event))
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// Pushes an event that is due this long after the last one popped, has this rank and this
        /// object, and carries a packet if `true`.
        Push(u64, u8, u64, bool),
        Pop,
    }

    fn step() -> impl Strategy<Value = Step> {
        let ahead = prop_oneof![
            0u64..50,
            0u64..5_000,
            0u64..3_000_000,
            0u64..10_000_000_000,
            0u64..1_000_000_000_000
        ];
        let push = (ahead, 1u8..5, 0u64..4, any::<bool>()).prop_map(|(a, r, o, p)| Step::Push(a, r, o, p));
        prop_oneof![3 => push, 2 => Just(Step::Pop)]
    }

    fn push(queue: &mut impl EventQueue, key: Key, n: u32, with_packet: bool) {
        if with_packet {
            let id = FlowId { slot: n, number: n, class: 0 };
            queue.push_arrival(
                key,
                SimPacket::datagram(id, Toward::Receiver, Begin::default(), 0, Bytes::new(100), Ecn::NotEct),
            );
        } else {
            queue.push(key, Notice::Start { class: n, user: 0 });
        }
    }

    fn packets(queue: &impl EventQueue) -> usize {
        let mut count = 0;
        queue.for_each_packet(&mut |_| count += 1);
        count
    }

    /// Flows that start together have timers at the same instant, beyond the horizon. If the work
    /// grew with the square of their number, this test would take minutes.
    #[test]
    fn a_multitude_at_one_far_instant_comes_in_order() {
        let mut wheel = Wheel::new(Span::us(30), Span::ms(200));
        let n = 300_000;
        let at = Instant::ZERO + Span::s(30);
        for i in 0..n {
            let object = i * 7919 % n; // scrambled, each object once: 7919 is prime
            wheel.push(Key::new(at, Rank::Timer, object, 0), Notice::Start { class: object as u32, user: 0 });
        }
        for object in 0..n {
            let (key, event) = pop(&mut wheel).expect("as many as went in");
            assert_eq!(
                (key, event),
                (
                    Key::new(at, Rank::Timer, object, 0),
                    Event::Other(Notice::Start { class: object as u32, user: 0 })
                )
            );
        }
        assert_eq!(pop(&mut wheel), None);
    }

    proptest! {
        #[test]
        fn gives_what_the_heap_gives(steps in prop::collection::vec(step(), 1..400), gap in 1u64..100_000, horizon in 1u64..10_000_000) {
            let (mut wheel, mut heap) = (Wheel::new(Span::ns(gap), Span::ns(horizon)), HeapQueue::default());
            let mut now = 0;
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(ahead, rank, object, with_packet) => {
                        let rank = [Rank::Departure, Rank::Arrival, Rank::Timer, Rank::Sampler][usize::from(rank) - 1];
                        let key = Key::new(Instant::from_ns(now + ahead), rank, object, n as u64);
                        push(&mut wheel, key, n as u32, with_packet);
                        push(&mut heap, key, n as u32, with_packet);
                    }
                    Step::Pop => {
                        let expected = pop(&mut heap);
                        prop_assert_eq!(pop(&mut wheel), expected);
                        now = expected.map_or(now, |(key, _)| key.at.as_ns());
                    }
                }
            }
            prop_assert_eq!(packets(&wheel), packets(&heap));
            while let Some(expected) = pop(&mut heap) {
                prop_assert_eq!(pop(&mut wheel), Some(expected));
            }
            prop_assert_eq!(pop(&mut wheel), None);
        }
    }
}
