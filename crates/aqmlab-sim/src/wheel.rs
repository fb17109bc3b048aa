//! A timing wheel: the fast event queue.
//!
//! Time is cut into slots of a power of two nanoseconds. Events of the near future hang in their slot,
//! unsorted; when a slot comes up, its few events are sorted by key. What lies beyond the wheel's horizon
//! waits in a heap and joins its slot when that comes up. Pushing is constant work, popping nearly so, and the
//! order is the heap's, by key to the last bit: [`crate::event::HeapQueue`] is the twin that says so.
//!
//! Slots are lists in one pool of nodes, so that nothing is allocated once the pool has grown to the largest
//! number of pending events.

use std::collections::BinaryHeap;

use aqmlab_units::{Instant, Span};

use crate::event::{Event, EventQueue, Item, Key};
use crate::packet::SimPacket;

const NONE: u32 = u32::MAX;
/// The slot of no event.
const NEVER: u64 = u64::MAX;

/// One event in a slot's list.
#[derive(Clone, Copy)]
struct Node {
    key: Key,
    event: Event,
    next: u32,
}

const _: () = assert!(size_of::<Node>() <= 64, "a node fits a cache line");

/// How many slots there are; a constant power of two, so that an index needs no check.
const SLOTS: usize = 1 << 16;
const MASK: u64 = SLOTS as u64 - 1;

/// Events by slot of time.
pub struct Wheel {
    /// A slot is `2^shift` ns wide.
    shift: u32,
    /// The slot that is being worked off, counted from time zero.
    cursor: u64,
    /// Its first event; its list is sorted.
    current: u32,
    /// The first free node.
    free: u32,
    pool: Vec<Node>,
    /// First node of each slot; these lists are not sorted.
    heads: Box<[u32; SLOTS]>,
    /// A bit for each slot that has events.
    occupied: Box<[u64; SLOTS / 64]>,
    /// Events beyond the horizon.
    far: BinaryHeap<Item>,
    /// The slot of the first of them.
    far_slot: u64,
    /// Where long lists are sorted.
    scratch: Vec<(Key, u32)>,
}

/// Longer lists are sorted in an array.
const LONG: usize = 8;

impl Wheel {
    /// A wheel for events that come about `gap` apart and mostly lie less than `horizon` ahead. Both are
    /// advice: they move the cost, never the order.
    pub fn new(gap: Span, horizon: Span) -> Self {
        // Slots of one event or less, but not so narrow that the horizon lies beyond them all.
        let narrowest = horizon.as_ns() >> (SLOTS.trailing_zeros() - 1);
        let shift = gap.as_ns().max(narrowest).clamp(1 << 4, 1 << 23).ilog2() + 1;
        Wheel {
            shift,
            cursor: 0,
            current: NONE,
            free: NONE,
            pool: Vec::new(),
            heads: boxed(NONE),
            occupied: boxed(0),
            far: BinaryHeap::new(),
            far_slot: NEVER,
            scratch: Vec::new(),
        }
    }

    #[inline]
    fn slot_of(&self, key: &Key) -> u64 {
        key.at.as_ns() >> self.shift
    }

    /// A node with this event in it; its place.
    #[inline]
    fn node(&mut self, key: Key, event: Event, next: u32) -> u32 {
        let place = self.free;
        // The end of the list of free nodes is no place in the pool.
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

    #[inline(never)]
    fn push_seldom(&mut self, key: Key, event: Event) {
        self.push(key, event);
    }

    /// An event of the slot that is being worked off, or one beyond the horizon.
    #[inline(never)]
    fn push_elsewhere(&mut self, key: Key, event: Event) {
        let slot = self.slot_of(&key);
        if slot <= self.cursor {
            self.insert_current(key, event);
        } else {
            self.far_slot = self.far_slot.min(slot);
            self.far.push(Item { key, event });
        }
    }

    /// Into the sorted list of the slot that is being worked off.
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

    /// Moves on to the next slot that has events, and sorts them. False if there is none.
    #[inline]
    fn next_slot(&mut self) -> bool {
        // Most often the next event is in the same word of the map.
        let start = self.cursor + 1;
        let index = (start & MASK) as usize;
        let word = self.occupied[index / 64] >> (index % 64);
        let near =
            if word == 0 { self.next_occupied(start) } else { start + u64::from(word.trailing_zeros()) };
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

    /// Sorts the current list, which begins with these two and most often has no more.
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

    /// The list of a slot that has events becomes the current one, not sorted yet.
    #[inline]
    fn take_near(&mut self, slot: u64) {
        let index = (slot & MASK) as usize;
        self.cursor = slot;
        self.current = std::mem::replace(&mut self.heads[index], NONE);
        self.occupied[index / 64] &= !(1 << (index % 64));
    }

    /// The next events lie beyond the horizon: alone, or together with those of the slot `near`. False if there are
    /// none at all.
    #[cold]
    fn next_far_slot(&mut self, near: u64) -> bool {
        if self.far_slot == NEVER {
            return false;
        }
        if near == self.far_slot {
            self.take_near(near);
        }
        self.cursor = self.far_slot;
        self.take_far();
        self.sort_current();
        true
    }

    /// Adds what lay beyond the horizon and is in the cursor's slot to the current list, which is not sorted yet.
    fn take_far(&mut self) {
        while self.far_slot == self.cursor {
            if let Some(Item { key, event }) = self.far.pop() {
                self.current = self.node(key, event, self.current);
            }
            self.far_slot = self.far.peek().map_or(NEVER, |item| self.slot_of(&item.key));
        }
    }

    /// Sorts the current list: by insertion while it is short, else in an array.
    #[inline(never)]
    fn sort_current(&mut self) {
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

    /// Sorts the current list and `rest` together: keys and places in an array, then the list anew.
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

    /// The first slot from `start` on with events, within one turn of the wheel; [`NEVER`] if there is none. The
    /// word in which the search starts is looked at twice: its upper bits first, its lower ones last.
    #[inline(never)]
    fn next_occupied(&self, start: u64) -> u64 {
        let first = (start & MASK) as usize;
        let words = self.occupied.len();
        for looked in 0..=words {
            let index = (first / 64 + looked) % words;
            let mut word = self.occupied[index];
            if looked == 0 {
                word &= !0 << (first % 64);
            }
            if word != 0 {
                let found = index as u64 * 64 + u64::from(word.trailing_zeros());
                return start + (found.wrapping_sub(first as u64) & MASK);
            }
        }
        NEVER
    }
}

/// An array on the heap, never on the stack.
fn boxed<T: Copy, const N: usize>(value: T) -> Box<[T; N]> {
    match vec![value; N].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("a vector of N elements is an array of N"),
    }
}

impl EventQueue for Wheel {
    /// As [`Wheel::push`], with the packet written once, where it stays.
    #[inline(always)]
    fn push_arrival(&mut self, key: Key, packet: SimPacket) {
        let slot = self.slot_of(&key);
        let near = slot.wrapping_sub(self.cursor).wrapping_sub(1) < MASK;
        match self.pool.get_mut(self.free as usize) {
            Some(node) if near => {
                let index = (slot & MASK) as usize;
                let place = self.free;
                self.free = node.next;
                node.next = self.heads[index];
                node.key = key;
                node.event = Event::Arrive(packet);
                self.heads[index] = place;
                self.occupied[index / 64] |= 1 << (index % 64);
            }
            _ => self.push_seldom(key, Event::Arrive(packet)),
        }
    }

    #[inline(always)]
    fn push(&mut self, key: Key, event: Event) {
        let slot = self.slot_of(&key);
        // From the slot after the cursor's up to the horizon. Time does not go back, so no slot lies before.
        let ahead = slot.wrapping_sub(self.cursor);
        if ahead.wrapping_sub(1) < MASK {
            let index = (slot & MASK) as usize;
            self.heads[index] = self.node(key, event, self.heads[index]);
            self.occupied[index / 64] |= 1 << (index % 64);
        } else {
            self.push_elsewhere(key, event);
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

    fn for_each(&self, look: &mut dyn FnMut(&Event)) {
        for &list in self.heads.iter().chain([&self.current]) {
            let mut place = list;
            while let Some(node) = self.pool.get(place as usize) {
                look(&node.event);
                place = node.next;
            }
        }
        self.far.iter().for_each(|item| look(&item.event));
    }

    fn memory_bytes(&self) -> usize {
        self.pool.capacity() * size_of::<Node>()
            + self.far.capacity() * size_of::<Item>()
            + self.scratch.capacity() * size_of::<(Key, u32)>()
            + size_of_val(&*self.heads)
            + size_of_val(&*self.occupied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{HeapQueue, Rank};
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
        /// An event so far ahead of the last popped one.
        Push(u64, u8, u64),
        Pop,
    }

    fn step() -> impl Strategy<Value = Step> {
        let ahead = prop_oneof![0u64..50, 0u64..5_000, 0u64..3_000_000, 0u64..10_000_000_000];
        prop_oneof![3 => (ahead, 1u8..5, 0u64..4).prop_map(|(a, r, o)| Step::Push(a, r, o)), 2 => Just(Step::Pop)]
    }

    /// Flows that start together have their timers together, beyond the horizon. Work that grew with the square
    /// of their number would show here as minutes.
    #[test]
    fn a_multitude_at_one_far_instant_comes_in_order() {
        let mut wheel = Wheel::new(Span::us(30), Span::ms(200));
        let n = 300_000;
        let at = Instant::ZERO + Span::s(30);
        for i in 0..n {
            let object = i * 7919 % n; // any order but the right one: 7919 is prime
            wheel.push(Key::new(at, Rank::Timer, object, 0), Event::Start { class: object as u32 });
        }
        for object in 0..n {
            let (key, event) = pop(&mut wheel).expect("as many as went in");
            assert_eq!(
                (key, event),
                (Key::new(at, Rank::Timer, object, 0), Event::Start { class: object as u32 })
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
                    Step::Push(ahead, rank, object) => {
                        let rank = [Rank::Departure, Rank::Arrival, Rank::Timer, Rank::Sampler][usize::from(rank) - 1];
                        let key = Key::new(Instant::from_ns(now + ahead), rank, object, n as u64);
                        wheel.push(key, Event::Start { class: n as u32 });
                        heap.push(key, Event::Start { class: n as u32 });
                    }
                    Step::Pop => {
                        let expected = pop(&mut heap);
                        prop_assert_eq!(pop(&mut wheel), expected);
                        now = expected.map_or(now, |(key, _)| key.at.as_ns());
                    }
                }
            }
            while let Some(expected) = pop(&mut heap) {
                prop_assert_eq!(pop(&mut wheel), Some(expected));
            }
            prop_assert_eq!(pop(&mut wheel), None);
        }
    }
}
