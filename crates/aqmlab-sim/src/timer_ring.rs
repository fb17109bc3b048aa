//! The coarse ring for timers in the far future, beyond the near future that the wheel covers.
//!
//! Most timers never fire, or fire long after the instant for which they were first set. They wait
//! here in half the memory that an event with a packet takes, and move into the wheel shortly
//! before they are due. A slot of this ring corresponds to many slots of the wheel. The ring sorts
//! nothing within a slot because the wheel does so later.

use crate::event::{Key, Notice};

/// No node.
pub(crate) const NONE: u32 = u32::MAX;
/// Stands in for the number of a slot if there are no events.
pub(crate) const NEVER: u64 = u64::MAX;

/// Number of slots, a power of two.
const SLOTS: usize = 1 << 12;
const MASK: u64 = SLOTS as u64 - 1;

#[derive(Clone, Copy)]
struct Node {
    key: Key,
    notice: Notice,
    next: u32,
}

const _: () = assert!(size_of::<Node>() == 32, "a waiting timer takes half a cache line");

/// Notices, stored by time slot. Slots are numbered from time zero, and all notices are within one
/// turn of the ring.
pub(crate) struct TimerRing {
    pool: Vec<Node>,
    /// The first free node.
    free: u32,
    /// First node of each slot.
    heads: Box<[u32; SLOTS]>,
    /// One bit per slot, set if the slot has notices.
    occupied: Box<[u64; SLOTS / 64]>,
    /// The first slot that has notices, or [`NEVER`] if there is none.
    first: u64,
}

impl TimerRing {
    pub(crate) fn new() -> Self {
        TimerRing { pool: Vec::new(), free: NONE, heads: boxed(NONE), occupied: boxed(0), first: NEVER }
    }

    /// Returns whether `slot` is within one turn of the ring, starting at slot `from`.
    #[inline]
    pub(crate) fn reaches(&self, from: u64, slot: u64) -> bool {
        slot - from <= MASK
    }

    /// Returns the first slot with notices, or [`NEVER`] if there is none.
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

    /// Removes a notice from `slot`, which must be the first slot with notices, and returns it. If
    /// the slot has become empty, moves on to the next slot with notices and returns `None`.
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

    /// Returns the first slot with notices within one turn, starting at `start`. The word in which
    /// the search starts is examined twice: its upper bits first, and its lower bits last.
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

    /// Returns the memory that the ring's tables take, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.pool.capacity() * size_of::<Node>() + size_of_val(&*self.heads) + size_of_val(&*self.occupied)
    }
}

/// Creates an array directly on the heap, without a copy on the stack.
pub(crate) fn boxed<T: Copy, const N: usize>(value: T) -> Box<[T; N]> {
    match vec![value; N].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("a vector of N elements is an array of N"),
    }
}
