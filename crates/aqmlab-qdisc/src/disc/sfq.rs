//! Stochastic Fair Queueing: a queue per hashed flow, served in turn; for lack of room, the longest queue loses a
//! packet. Each queue may have a RED of its own.

use alloc::vec::Vec;

use aqmlab_random::{Numbered, Stream, unit_from_bits};
use aqmlab_units::{Bytes, Instant, Span};

use super::law_queue::{Waiting, mark};
use crate::flow_store::{Chain, FlowStore, Group, NONE, Place, Weigh};
use crate::flow_table::Keyed;
use crate::law::{Decision, Notice, RedLaw, Sampling};
use crate::{Backlog, Cause, Inside, LawSamples, Limit, Observer, Packet, Qdisc, Reason};

/// What a turn gives to a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// One packet.
    Packet,
    /// This credit, in bytes.
    Credit(u64),
}

/// The parameters of an SFQ.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SfqQueue {
    /// The limit on all queues together.
    pub limit: Limit,
    /// Most packets in a queue.
    pub depth: u32,
    /// Most queues in use at once; the packet of a further flow is lost.
    pub flows: u32,
    /// Number of different hashes.
    pub divisor: u32,
    /// What a turn gives to a queue.
    pub turn: Turn,
    /// Whether packets are lost at the head of a queue instead of its tail.
    pub head_drop: bool,
    /// Time after which flows get other hashes.
    pub perturb: Option<Span>,
    /// Whether a mark replaces a drop where RED allows it.
    pub ecn: bool,
    /// The law of a queue that has just come into use.
    pub red: Option<RedLaw>,
}

/// A queue, in use by the flows of one hash, or free.
#[derive(Clone, Debug)]
struct Slot<P> {
    chain: Chain<P>,
    credit: i64,
    /// The next queue in turn.
    next: u32,
    /// The neighbours in the list of queues of the same length.
    newer: u32,
    older: u32,
    hash: u32,
    /// The flow whose packet arrived last.
    key: u64,
    red: Option<RedLaw>,
}

/// Stochastic Fair Queueing (McKenney 1990), and the variant of Linux.
#[derive(Clone, Debug)]
pub struct Sfq<P> {
    queue: SfqQueue,
    slots: Vec<Slot<P>>,
    /// The queue in use of each hash.
    of_hash: Vec<u32>,
    /// The first queue of each length; that which reached this length last comes first. Those of length 0 are
    /// free.
    of_length: Vec<u32>,
    /// The length of the longest queue.
    longest: u32,
    /// The queue that was served last; the one after it is next.
    last: u32,
    store: FlowStore<P>,
    salt: u64,
    draws: Numbered,
    arrivals: u64,
    perturb: Option<Sampling>,
    /// Number of perturbations so far.
    perturbed: u64,
    /// Packets on their way to other queues; empty between two calls.
    moving: Vec<Keyed<P, Group>>,
    /// Number of packets that arrived at a queue in which packets of another flow were waiting.
    collisions: u64,
    /// Number of packets lost for lack of room.
    overflows: u64,
}

/// Number of the draw that gives the first salt; later salts have the numbers below it. The numbers of arrivals never
/// reach them.
const SALT_DRAW: u64 = u64::MAX;

impl<P: Packet> Sfq<P> {
    /// Creates an empty queue.
    pub fn new(queue: SfqQueue, draws: Stream) -> Self {
        let free = || Slot {
            chain: Chain::EMPTY,
            credit: 0,
            next: NONE,
            newer: NONE,
            older: NONE,
            hash: 0,
            key: 0,
            red: queue.red,
        };
        let mut sfq = Sfq {
            queue,
            slots: Vec::with_capacity(queue.flows as usize),
            of_hash: alloc::vec![NONE; queue.divisor as usize],
            of_length: alloc::vec![NONE; queue.depth as usize + 1],
            longest: 0,
            last: NONE,
            store: FlowStore::new(Weigh::Length, false),
            salt: draws.at(SALT_DRAW),
            draws: draws.numbered(),
            arrivals: 0,
            perturb: queue.perturb.map(Sampling::every),
            perturbed: 0,
            moving: Vec::new(),
            collisions: 0,
            overflows: 0,
        };
        sfq.store.reserve(queue.limit.room() + 1);
        for at in 0..queue.flows {
            sfq.slots.push(free());
            sfq.link(at);
        }
        sfq
    }

    /// Returns the parameters.
    pub const fn queue(&self) -> &SfqQueue {
        &self.queue
    }

    fn hash(&self, key: u64) -> u32 {
        ((u128::from(key) * u128::from(self.queue.divisor)) >> 64) as u32
    }

    /// Puts a queue first among those of its length.
    fn link(&mut self, at: u32) {
        let length = self.slots[at as usize].chain.packets;
        let first = core::mem::replace(&mut self.of_length[length as usize], at);
        let slot = &mut self.slots[at as usize];
        (slot.older, slot.newer) = (first, NONE);
        if let Some(slot) = self.slots.get_mut(first as usize) {
            slot.newer = at;
        }
        self.longest = self.longest.max(length);
    }

    /// Removes a queue, whose length is still that of its list, from this list.
    fn unlink(&mut self, at: u32) {
        let Slot { older: after, newer: before, ref chain, .. } = self.slots[at as usize];
        let length = chain.packets;
        match self.slots.get_mut(before as usize) {
            Some(slot) => slot.older = after,
            None => self.of_length[length as usize] = after,
        }
        if let Some(slot) = self.slots.get_mut(after as usize) {
            slot.newer = before;
        }
        if length == self.longest && self.of_length[length as usize] == NONE {
            self.longest = self.longest.saturating_sub(1);
        }
    }

    /// Returns the queue for the flow `key`, if it has one or there is a free one.
    fn slot_for(&mut self, key: u64) -> Option<u32> {
        let hash = self.hash(key);
        let found = self.of_hash[hash as usize];
        let at = if found == NONE { self.of_length[0] } else { found };
        let slot = self.slots.get_mut(at as usize)?;
        if found == NONE {
            self.of_hash[hash as usize] = at;
            (slot.hash, slot.key, slot.red) = (hash, key, self.queue.red);
        } else if slot.key != key {
            self.collisions += 1;
            slot.key = key;
        }
        Some(at)
    }

    /// Appends a packet to a queue, which comes last in turn if it was empty.
    fn push(&mut self, at: u32, packet: Keyed<P, Group>) {
        self.unlink(at);
        let quantum = self.quantum();
        let slot = &mut self.slots[at as usize];
        slot.chain.push(&mut self.store, packet.packet, packet.key);
        if slot.chain.packets == 1 {
            slot.credit = quantum;
            let after = match self.slots.get_mut(self.last as usize) {
                Some(last) => core::mem::replace(&mut last.next, at),
                None => at,
            };
            self.slots[at as usize].next = after;
            self.last = at;
        }
        self.link(at);
    }

    /// Removes the first or the last packet of a queue. An empty queue is free, but still has its turn.
    fn pull(&mut self, at: u32, head: bool) -> Keyed<P, Group> {
        self.unlink(at);
        let slot = &mut self.slots[at as usize];
        let place = if head { 0 } else { slot.chain.packets as usize - 1 };
        let removed = slot.chain.take(&mut self.store, place);
        if slot.chain.packets == 0 {
            self.of_hash[slot.hash as usize] = NONE;
        }
        self.link(at);
        self.released(removed)
    }

    /// Takes the turn from the queue that is next.
    fn skip_turn(&mut self, at: u32) {
        let after = self.slots[at as usize].next;
        if after == at {
            self.last = NONE;
        } else {
            self.slots[self.last as usize].next = after;
        }
    }

    fn quantum(&self) -> i64 {
        match self.queue.turn {
            Turn::Packet => 1,
            Turn::Credit(quantum) => quantum as i64,
        }
    }

    fn charge(&self, size: Bytes) -> i64 {
        match self.queue.turn {
            Turn::Packet => 1,
            Turn::Credit(_) => size.get() as i64,
        }
    }

    /// Drops `packet`, or the first packet of its queue in its place.
    #[cold]
    fn lose(
        &mut self,
        now: Instant,
        at: u32,
        packet: Keyed<P, Group>,
        reason: Reason,
        obs: &mut dyn Observer<P>,
    ) {
        let lost = if self.queue.head_drop {
            let first = self.pull_to_replace(at);
            self.push_behind(at, packet);
            first
        } else {
            packet
        };
        obs.dropped(now, lost.packet, Cause { reason, inner: lost.key.number() });
    }

    /// Removes the first packet of a queue to which another one is appended at once.
    fn pull_to_replace(&mut self, at: u32) -> Keyed<P, Group> {
        let removed = self.slots[at as usize].chain.pop(&mut self.store);
        self.released(removed)
    }

    /// Releases the packet that has been removed from a queue in use.
    fn released(&mut self, removed: Option<(Place, Group)>) -> Keyed<P, Group> {
        let out =
            removed.and_then(|(place, key)| Some(Keyed { key, packet: self.store.release(place, |_| ())? }));
        out.expect("a queue in use has packets")
    }

    fn push_behind(&mut self, at: u32, packet: Keyed<P, Group>) {
        self.slots[at as usize].chain.push(&mut self.store, packet.packet, packet.key);
    }

    /// Drops a packet of the longest queue, of that which reached this length last; if all have one packet, that of
    /// the queue that is next in turn.
    #[cold]
    fn drop_from_longest(&mut self, now: Instant, obs: &mut dyn Observer<P>) {
        let mut at = self.of_length[self.longest as usize];
        if self.longest == 1 {
            at = self.slots[self.last as usize].next;
            self.skip_turn(at);
        }
        let lost = self.pull(at, self.queue.head_drop);
        self.overflows += 1;
        obs.dropped(now, lost.packet, Cause { reason: Reason::Overflow, inner: lost.key.number() });
    }

    /// Makes the perturbations that are due.
    fn catch_up(&mut self, now: Instant, obs: &mut dyn Observer<P>) {
        let Some(perturb) = self.perturb.as_mut().filter(|perturb| perturb.is_due(now)) else { return };
        for _ in 0..perturb.take(now) {
            self.perturbed += 1;
            self.salt = self.draws.at(SALT_DRAW - self.perturbed);
            if self.last != NONE {
                self.rehash(now, obs);
            }
        }
    }

    /// Moves the waiting packets to the queues of their flows' new hashes, as Linux does. A packet that finds no queue
    /// or a full one is lost.
    #[cold]
    fn rehash(&mut self, now: Instant, obs: &mut dyn Observer<P>) {
        let mut moving = core::mem::take(&mut self.moving);
        for at in 0..self.queue.flows {
            while self.slots[at as usize].chain.packets > 0 {
                moving.push(self.pull(at, true));
            }
        }
        self.last = NONE;
        for packet in moving.drain(..) {
            let at = self.slot_for(packet.packet.flow_hash(self.salt));
            let Some(at) = at.filter(|at| self.slots[*at as usize].chain.packets < self.queue.depth) else {
                self.overflows += 1;
                let inner = packet.key.number();
                obs.dropped(now, packet.packet, Cause { reason: Reason::Overflow, inner });
                continue;
            };
            self.push(at, packet);
            let slot = &mut self.slots[at as usize];
            if let Some(red) = &mut slot.red {
                red.update_average(now, slot.chain.bytes.as_f64());
            }
        }
        self.moving = moving;
    }

    /// Lets RED decide on an arrival, and marks it or the first packet of its queue. Returns the reason if a packet
    /// must be dropped.
    fn red(
        &mut self,
        now: Instant,
        at: u32,
        pkt: &mut P,
        group: Group,
        obs: &mut dyn Observer<P>,
    ) -> Option<Reason> {
        let number = self.arrivals;
        self.arrivals += 1;
        let slot = &mut self.slots[at as usize];
        let draws = &mut self.draws;
        let draw = || unit_from_bits(draws.at(number));
        let decision = slot.red.as_mut()?.on_arrival(now, slot.chain.bytes.as_f64(), pkt.wire_len(), draw);
        let Decision::Notify(notice) = decision else { return None };
        let Notice { reason, .. } = notice;
        if self.queue.head_drop
            && let Some((first, group)) = slot.chain.first_mut(&mut self.store)
            && notice.marks(self.queue.ecn, first.ecn())
        {
            mark(now, first, Cause { reason, inner: group.number() }, obs);
            return None;
        }
        if notice.marks(self.queue.ecn, pkt.ecn()) {
            mark(now, pkt, Cause { reason, inner: group.number() }, obs);
            return None;
        }
        Some(reason)
    }
}

impl<P: Packet> Qdisc<P> for Sfq<P> {
    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        self.catch_up(now, obs);
        let slot = self.slot_for(pkt.flow_hash(self.salt));
        let waiting = slot.map_or(0, |at| self.slots[at as usize].chain.packets);
        let group = if waiting == 0 { Group::Sparse } else { Group::Bulk };
        obs.entered(now, &pkt, group.number());
        let Some(at) = slot else {
            self.overflows += 1;
            return obs.dropped(now, pkt, Cause { reason: Reason::Overflow, inner: group.number() });
        };
        if let Some(reason) = self.red(now, at, &mut pkt, group, obs) {
            return self.lose(now, at, Keyed { key: group, packet: pkt }, reason, obs);
        }
        if waiting >= self.queue.depth {
            self.overflows += 1;
            return self.lose(now, at, Keyed { key: group, packet: pkt }, Reason::Overflow, obs);
        }
        self.push(at, Keyed { key: group, packet: pkt });
        while !self.queue.limit.holds(self.store.all(), Bytes::ZERO) {
            self.drop_from_longest(now, obs);
        }
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.catch_up(now, obs);
        let quantum = self.quantum();
        let at = loop {
            let at = self.slots.get(self.last as usize)?.next;
            let slot = &mut self.slots[at as usize];
            if slot.credit > 0 {
                break at;
            }
            slot.credit += quantum;
            self.last = at;
        };
        let Keyed { key, packet } = self.pull(at, true);
        if self.slots[at as usize].chain.packets == 0 {
            self.skip_turn(at);
        } else {
            self.slots[at as usize].credit -= self.charge(packet.wire_len());
        }
        obs.left(now, &packet, key.number());
        Some(packet)
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn rate_changed(&mut self, _now: Instant, _rate: aqmlab_units::Rate) {}

    fn backlog(&self) -> Backlog {
        self.store.all()
    }

    fn reserve(&mut self, packets: usize, _flows: usize) {
        // The packet that exceeds the limit is stored before another one is dropped.
        let most = self.queue.limit.most_of(packets).saturating_add(1);
        self.store.reserve(most);
        if self.perturb.is_some() {
            self.moving.reserve(most);
        }
    }

    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        for (name, backlog) in Group::NAMES.into_iter().zip(self.store.groups()) {
            visit(name, Inside::Group(backlog));
        }
    }

    /// Appends `queues` (in use), `longest` (packets in the longest one) and, since the start, `collisions` (packets
    /// that arrived behind packets of another flow) and `overflows` (packets lost for lack of room).
    fn observe(&self, _now: Instant, out: &mut LawSamples) {
        let used = self.slots.iter().filter(|slot| slot.chain.packets > 0).count();
        out.extend([
            ("queues", used as f64),
            ("longest", f64::from(self.longest)),
            ("collisions", self.collisions as f64),
            ("overflows", self.overflows as f64),
        ]);
    }
}
