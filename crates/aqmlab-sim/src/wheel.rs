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

use aqmlab_units::Span;

use crate::event::{Event, EventQueue, Item, Key};

const NONE: u32 = u32::MAX;
/// The slot of no event.
const NEVER: u64 = u64::MAX;

/// One event in a slot's list: half a cache line.
#[derive(Clone, Copy)]
struct Node {
    key: Key,
    event: Event,
    next: u32,
}

const _: () = assert!(size_of::<Node>() == 32, "a node is half a cache line");

/// Events by slot of time.
pub struct Wheel {
    /// A slot is `2^shift` ns wide.
    shift: u32,
    /// Number of slots minus one; the number is a power of two.
    mask: u64,
    /// The slot that is being worked off, counted from time zero.
    cursor: u64,
    /// Its first event; its list is sorted.
    current: u32,
    /// The first free node.
    free: u32,
    pool: Vec<Node>,
    /// First node of each slot; these lists are not sorted.
    heads: Box<[u32]>,
    /// A bit for each slot that has events.
    occupied: Box<[u64]>,
    /// Events beyond the horizon.
    far: BinaryHeap<Item>,
    /// The slot of the first of them.
    far_slot: u64,
    /// Where long lists are sorted.
    scratch: Vec<Item>,
}

/// Longer lists are sorted in an array.
const LONG: usize = 16;

impl Wheel {
    /// A wheel for events that come about `gap` apart and mostly lie less than `horizon` ahead. Both are
    /// advice: they move the cost, never the order.
    pub fn new(gap: Span, horizon: Span) -> Self {
        let shift = gap.as_ns().clamp(1 << 4, 1 << 24).ilog2();
        let wanted = (horizon.as_ns() >> shift).clamp(1 << 8, 1 << 16);
        let slots = wanted.next_power_of_two() as usize;
        Wheel {
            shift,
            mask: slots as u64 - 1,
            cursor: 0,
            current: NONE,
            free: NONE,
            pool: Vec::new(),
            heads: vec![NONE; slots].into(),
            occupied: vec![0; slots / 64].into(),
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
        let node = Node { key, event, next };
        let place = self.free;
        if place == NONE {
            return self.grow(node);
        }
        let old = &mut self.pool[place as usize];
        self.free = old.next;
        *old = node;
        place
    }

    #[cold]
    fn grow(&mut self, node: Node) -> u32 {
        self.pool.push(node);
        (self.pool.len() - 1) as u32
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

    /// Moves on to the next slot that has events, and sorts them.
    fn advance(&mut self) {
        let near = self.next_occupied();
        let next = near.min(self.far_slot);
        if next == NEVER {
            return;
        }
        self.cursor = next;
        if near == next {
            let index = (near & self.mask) as usize;
            self.current = std::mem::replace(&mut self.heads[index], NONE);
            self.occupied[index / 64] &= !(1 << (index % 64));
        }
        if self.far_slot == next {
            self.take_far();
        }
        if self.pool[self.current as usize].next != NONE {
            self.sort_current();
        }
    }

    /// Adds what lay beyond the horizon and is in the cursor's slot to the current list, which is not sorted yet.
    #[cold]
    fn take_far(&mut self) {
        while self.far_slot == self.cursor {
            if let Some(Item { key, event }) = self.far.pop() {
                self.current = self.node(key, event, self.current);
            }
            self.far_slot = self.far.peek().map_or(NEVER, |item| self.slot_of(&item.key));
        }
    }

    /// Sorts the current list: by insertion while it is short, else in an array.
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

    /// Sorts the current list and `rest` together.
    #[cold]
    fn sort_long(&mut self, rest: u32) {
        let mut scratch = std::mem::take(&mut self.scratch);
        for list in [self.current, rest] {
            let mut place = list;
            while place != NONE {
                let Node { key, event, next } = self.pool[place as usize];
                scratch.push(Item { key, event });
                self.release(place);
                place = next;
            }
        }
        scratch.sort_unstable();
        self.current = NONE;
        for Item { key, event } in scratch.drain(..) {
            self.current = self.node(key, event, self.current);
        }
        self.scratch = scratch;
    }

    #[inline]
    fn release(&mut self, place: u32) {
        self.pool[place as usize].next = self.free;
        self.free = place;
    }

    /// The first slot after the cursor with events, within one turn of the wheel.
    #[inline]
    fn next_occupied(&self) -> u64 {
        let start = (self.cursor + 1) & self.mask;
        let words = self.occupied.len() - 1;
        let mut index = (start / 64) as usize;
        // The word in which the search starts is looked at twice: its upper bits first, its lower ones last.
        let mut word = self.occupied[index] & (!0 << (start % 64));
        let mut looked = 0;
        while word == 0 {
            if looked > words {
                return NEVER;
            }
            looked += 1;
            index = (index + 1) & words;
            word = self.occupied[index];
        }
        let found = index as u64 * 64 + u64::from(word.trailing_zeros());
        self.cursor + 1 + (found.wrapping_sub(start) & self.mask)
    }
}

impl EventQueue for Wheel {
    #[inline]
    fn push(&mut self, key: Key, event: Event) {
        let slot = self.slot_of(&key);
        if slot <= self.cursor {
            self.insert_current(key, event);
        } else if slot - self.cursor <= self.mask {
            let index = (slot & self.mask) as usize;
            self.heads[index] = self.node(key, event, self.heads[index]);
            self.occupied[index / 64] |= 1 << (index % 64);
        } else {
            self.far_slot = self.far_slot.min(slot);
            self.far.push(Item { key, event });
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<(Key, Event)> {
        if self.current == NONE {
            self.advance();
            if self.current == NONE {
                return None;
            }
        }
        let Node { key, event, next } = self.pool[self.current as usize];
        self.release(self.current);
        self.current = next;
        Some((key, event))
    }

    fn memory_bytes(&self) -> usize {
        self.pool.capacity() * size_of::<Node>()
            + (self.far.capacity() + self.scratch.capacity()) * size_of::<Item>()
            + self.heads.len() * size_of::<u32>()
            + self.occupied.len() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{HeapQueue, Rank};
    use aqmlab_units::Instant;
    use proptest::prelude::*;

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
            let (key, event) = wheel.pop().expect("as many as went in");
            assert_eq!(
                (key, event),
                (Key::new(at, Rank::Timer, object, 0), Event::Start { class: object as u32 })
            );
        }
        assert_eq!(wheel.pop(), None);
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
                        wheel.push(key, Event::Arrive { packet: n as u32 });
                        heap.push(key, Event::Arrive { packet: n as u32 });
                    }
                    Step::Pop => {
                        let expected = heap.pop();
                        prop_assert_eq!(wheel.pop(), expected);
                        now = expected.map_or(now, |(key, _)| key.at.as_ns());
                    }
                }
            }
            while let Some(expected) = heap.pop() {
                prop_assert_eq!(wheel.pop(), Some(expected));
            }
            prop_assert_eq!(wheel.pop(), None);
        }
    }
}
