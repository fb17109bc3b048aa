//! Timers of the far future: the coarse ring behind the wheel.
//!
//! Most timers never fire as they were set, or fire long after: they wait here in half the memory of an event with a
//! packet, and come into the wheel when its time has come near. A slot of this ring is many of the wheel's; within a
//! slot nothing is sorted, for the wheel sorts.

use crate::event::{Key, Notice};

/// No node.
pub(crate) const NONE: u32 = u32::MAX;
/// The slot of no event.
pub(crate) const NEVER: u64 = u64::MAX;

/// How many slots there are; a power of two.
const SLOTS: usize = 1 << 12;
const MASK: u64 = SLOTS as u64 - 1;

#[derive(Clone, Copy)]
struct Node {
    key: Key,
    notice: Notice,
    next: u32,
}

const _: () = assert!(size_of::<Node>() == 32, "a timer that waits is half a cache line");

/// Notices by slot of time, numbered from time zero; all lie within one turn of the ring.
pub(crate) struct TimerRing {
    pool: Vec<Node>,
    /// The first free node.
    free: u32,
    /// First node of each slot.
    heads: Box<[u32; SLOTS]>,
    /// A bit for each slot that has notices.
    occupied: Box<[u64; SLOTS / 64]>,
    /// The first slot that has notices; [`NEVER`] if none has.
    first: u64,
}

impl TimerRing {
    pub(crate) fn new() -> Self {
        TimerRing { pool: Vec::new(), free: NONE, heads: boxed(NONE), occupied: boxed(0), first: NEVER }
    }

    /// Whether the ring reaches from slot `from` to `slot`.
    #[inline]
    pub(crate) fn reaches(&self, from: u64, slot: u64) -> bool {
        slot - from <= MASK
    }

    /// The first slot that has notices; [`NEVER`] if none has.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Adds a notice to a slot.
    pub(crate) fn push(&mut self, slot: u64, key: Key, notice: Notice) {
        let index = (slot & MASK) as usize;
        let node = Node { key, notice, next: self.heads[index] };
        let place = self.free;
        self.heads[index] = match self.pool.get_mut(place as usize) {
            Some(free) => {
                self.free = free.next;
                *free = node;
                place
            }
            None => {
                self.pool.push(node);
                (self.pool.len() - 1) as u32
            }
        };
        self.occupied[index / 64] |= 1 << (index % 64);
        self.first = self.first.min(slot);
    }

    /// Takes a notice out of `slot`, the first that has any. `None` if it has no more: then the first slot is
    /// another.
    pub(crate) fn pop(&mut self, slot: u64) -> Option<(Key, Notice)> {
        let index = (slot & MASK) as usize;
        let place = self.heads[index];
        let Some(node) = self.pool.get_mut(place as usize) else {
            self.occupied[index / 64] &= !(1 << (index % 64));
            self.first = self.next_occupied(slot + 1);
            return None;
        };
        self.heads[index] = std::mem::replace(&mut node.next, self.free);
        self.free = place;
        Some((node.key, node.notice))
    }

    /// The first slot from `start` on with notices, within one turn; the word in which the search starts is looked
    /// at twice: its upper bits first, its lower ones last.
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

    /// Bytes that the ring's tables take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.pool.capacity() * size_of::<Node>() + size_of_val(&*self.heads) + size_of_val(&*self.occupied)
    }
}

/// An array on the heap, never on the stack.
pub(crate) fn boxed<T: Copy, const N: usize>(value: T) -> Box<[T; N]> {
    match vec![value; N].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("a vector of N elements is an array of N"),
    }
}
