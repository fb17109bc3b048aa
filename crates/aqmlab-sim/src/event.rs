//! Events and their order.
//!
//! Events are ordered by *content*: (time, rank, object, the object's own count of its events with that rank
//! at that instant), never by the order in which different objects scheduled them. A different event queue,
//! fused hops or one more flow therefore cannot change how a tie is resolved.
//!
//! Ranks at one instant, first to last:
//!
//! 1. law updates (they have no events: a law whose update is due at t catches up before it judges
//!    a packet at t)
//! 2. [`Rank::Rate`]: the rate of a link changes, or that of the shaper in front of it
//! 3. [`Rank::Departure`]: a transmission ends, and the link takes its next packet, or has a chance to send
//! 4. [`Rank::Arrival`]: a packet reaches a queue or an endpoint
//! 5. [`Rank::Timer`]: timers of endpoints, packets due at sources, starts of flows
//! 6. [`Rank::Sampler`]: samples, the end of the warm-up, the end of the run; they see everything
//!    that happened at t
//!
//! The object of an arrival is the link from which the packet comes, not the place that it reaches:
//! two packets that reach a queue in the same nanosecond enter in the order of their links'
//! numbers.
//!
//! No two valid events have the same key. A superseded event, left over from a timer, a shaper's deadline or
//! the end of a transmission that has moved, has no effect when it fires. A superseded event may have the key of its
//! successor because the two represent the same event.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use aqmlab_network::{End, Milestone};
use aqmlab_units::Instant;

use crate::packet::SimPacket;

/// The rank of an event among the events of one instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Rank {
    /// The rate of a link changes, or that of the shaper in front of it.
    Rate = 0,
    /// A transmission ends.
    Departure = 1,
    /// A packet arrives.
    Arrival = 2,
    /// A timer fires.
    Timer = 3,
    /// A sampler observes.
    Sampler = 4,
}

/// The position of an event in time and among simultaneous events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    /// The instant.
    pub at: Instant,
    /// The rank, then the object's number, then the number of the event among the object's events
    /// with that rank at that instant.
    order: u64,
}

const OBJECT_BITS: u32 = 41;
const TURN_BITS: u32 = 20;
/// The number of turns of an object at one instant.
pub const MOST_TURNS: u64 = 1 << TURN_BITS;

impl Key {
    /// Returns the key of an object's event. `turn` numbers the object's events with one rank at
    /// one instant, in the order in which the object made them.
    #[inline]
    pub fn new(at: Instant, rank: Rank, object: u64, turn: u64) -> Self {
        debug_assert!(turn < 1 << TURN_BITS, "an object makes fewer than 2^{TURN_BITS} events per instant");
        Key { at, order: Key::order(rank, object) | turn }
    }

    /// Returns the key of an event of the object whose number is `object` plus the object number in
    /// `order`.
    #[inline]
    pub fn of_order(at: Instant, order: u64, object: u64, turn: u64) -> Self {
        debug_assert!(turn < 1 << TURN_BITS, "an object makes fewer than 2^{TURN_BITS} events per instant");
        Key { at, order: order + (object << TURN_BITS) + turn }
    }

    /// Returns the part that is common to the keys of all events of one object with one rank.
    #[inline]
    pub fn order(rank: Rank, object: u64) -> u64 {
        debug_assert!(object < 1 << OBJECT_BITS, "object numbers have {OBJECT_BITS} bits");
        (rank as u64) << (OBJECT_BITS + TURN_BITS) | object << TURN_BITS
    }
}

/// Counts an object's events at one instant; the count gives the `turn` of each event's key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Turns {
    at: Instant,
    next: u32,
}

impl Turns {
    /// Returns the turn of the object's next event, which takes place at `at`. The caller must not
    /// pass an earlier `at` than in the previous call.
    #[inline]
    pub fn take(&mut self, at: Instant) -> u64 {
        if at != self.at {
            *self = Turns { at, next: 0 };
        }
        let turn = self.next;
        self.next += 1;
        u64::from(turn)
    }
}

/// A slot of the flow table, and the slot's generation when an event was made. If the slot has
/// another generation when the event fires, the event belongs to an earlier occupant and has no
/// effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRef {
    /// Index into the flow table.
    pub slot: u32,
    /// The generation, which distinguishes the successive occupants of the slot.
    pub generation: u32,
}

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A packet reaches the next place on its path.
    Arrive(SimPacket),
    /// Anything else.
    Other(Notice),
}

impl Event {
    /// Returns the packet that arrives, if the event is an arrival.
    #[inline]
    pub(crate) fn packet(&self) -> Option<&SimPacket> {
        match self {
            Event::Arrive(packet) => Some(packet),
            Event::Other(_) => None,
        }
    }
}

/// An event without a packet: the object that it concerns, and what is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The link has sent the last bit of its packet.
    LinkFree {
        /// index of the link
        link: u32,
    },
    /// The rate of a link changes.
    RateChange {
        /// index of the link
        link: u32,
    },
    /// A controller adjusts the shaper in front of a link.
    Autorate {
        /// its index in the plan
        link: u32,
    },
    /// A link has a chance to send.
    Chance {
        /// index of the link
        link: u32,
    },
    /// A shaper may release a held packet.
    LinkDeadline {
        /// index of the link
        link: u32,
    },
    /// An endpoint has reached the deadline that it had when the event was made; the deadline may
    /// have moved since.
    EndpointTimer {
        /// the flow
        flow: FlowRef,
        /// the end
        end: End,
    },
    /// An endpoint may now send the data that it has held back.
    SendDelayed {
        /// the flow
        flow: FlowRef,
        /// the end
        end: End,
    },
    /// A packet source is due.
    Emit {
        /// the flow
        flow: FlowRef,
    },
    /// A population opens its next flow or connection.
    Start {
        /// index of the class
        class: u32,
        /// index of the user within the class
        user: u32,
    },
    /// A class stops sending.
    StopClass {
        /// index of the class
        class: u32,
    },
    /// A flow stops sending because its class does.
    StopSending {
        /// index of the class
        class: u16,
        /// the flow
        flow: FlowRef,
    },
    /// A milestone of the run's schedule is reached.
    Milestone(Milestone),
}

/// Pending events, in ascending order of keys.
pub trait EventQueue {
    /// Adds an event that carries no packet.
    fn push(&mut self, key: Key, notice: Notice);
    /// Adds the arrival of a packet, by far the most frequent event.
    fn push_arrival(&mut self, key: Key, packet: SimPacket);
    /// Finds the event with the smallest key, which becomes the first event. Returns the
    /// instant at which it is due, or `None` if there is no event.
    fn advance(&mut self) -> Option<Instant>;
    /// Returns the event that [`EventQueue::advance`] found. This must not be called after another
    /// event has been added.
    fn first(&self) -> (Key, &Event);
    /// Removes the first event.
    fn release(&mut self);
    /// Visits all packets whose arrival is pending, in any order.
    fn for_each_packet(&self, look: &mut dyn FnMut(&SimPacket));
    /// Returns the memory of the queue's own tables in bytes.
    fn memory_bytes(&self) -> usize;
}

/// A plain binary heap: slow but simple, and the reference for any faster queue.
#[derive(Default)]
pub struct HeapQueue {
    heap: BinaryHeap<Item>,
}

/// An event with its key. The order is such that a heap, which returns its largest item, returns
/// the event with the smallest key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) key: Key,
    pub(crate) event: Event,
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Item {}
impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Item {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

impl EventQueue for HeapQueue {
    fn push(&mut self, key: Key, notice: Notice) {
        self.heap.push(Item { key, event: Event::Other(notice) });
    }

    fn push_arrival(&mut self, key: Key, packet: SimPacket) {
        self.heap.push(Item { key, event: Event::Arrive(packet) });
    }

    fn advance(&mut self) -> Option<Instant> {
        self.heap.peek().map(|item| item.key.at)
    }

    fn first(&self) -> (Key, &Event) {
        let item = self.heap.peek().expect("`advance` has found an event");
        (item.key, &item.event)
    }

    fn release(&mut self) {
        self.heap.pop();
    }

    fn for_each_packet(&self, look: &mut dyn FnMut(&SimPacket)) {
        self.heap.iter().for_each(|item| item.event.packet().into_iter().for_each(&mut *look));
    }

    fn memory_bytes(&self) -> usize {
        self.heap.capacity() * size_of::<Item>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(mut keys: Vec<Key>) -> Vec<Key> {
        let mut queue = HeapQueue::default();
        keys.reverse();
        for k in keys {
            queue.push(k, Notice::Milestone(Milestone::End));
        }
        let pop = || {
            queue.advance()?;
            let key = queue.first().0;
            queue.release();
            Some(key)
        };
        std::iter::from_fn(pop).collect()
    }

    #[test]
    fn time_then_rank_then_object_then_counter() {
        let at = Instant::from_ns;
        let keys = vec![
            Key::new(at(1), Rank::Sampler, 9, 9),
            Key::new(at(2), Rank::Departure, 5, 0),
            Key::new(at(2), Rank::Arrival, 0, 7),
            Key::new(at(2), Rank::Arrival, 1, 0),
            Key::new(at(2), Rank::Arrival, 1, 1),
            Key::new(at(2), Rank::Timer, 0, 0),
            Key::new(at(2), Rank::Sampler, 0, 0),
            Key::new(at(3), Rank::Departure, 0, 0),
        ];
        assert_eq!(order(keys.clone()), keys);
    }
}
