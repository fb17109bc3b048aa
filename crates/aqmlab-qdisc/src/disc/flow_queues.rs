//! A queue with a law for each flow, served by deficit round robin that prefers new queues (RFC 8290,
//! section 4): the scheduler of FQ-CoDel and FQ-PIE.

use alloc::vec::Vec;

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Packets, Rate};

use super::early_law::{EarlyLaw, EarlyQueue};
use super::law_queue::{DropLoop, LawQueue, Out, Waiting};
use super::words::{EmptyNew, HalfOf, Queues};
use crate::flow_store::{Chain, FlowStore, Group, NONE, Place, Weigh};
use crate::flow_table::FlowTable;
use crate::{Arrived, Backlog, Cause, Inside, LawSamples, Observer, Packet, Qdisc, Reason};

/// The rules of the scheduler, and of the drops for lack of room.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowRules {
    /// Credit per round, in bytes.
    pub quantum: i64,
    /// Number of queues among which flows are distributed, unless each has its own.
    pub flows: u32,
    pub queues: Queues,
    /// The limit on the memory of all packets.
    pub memory_limit: u64,
    pub weigh: Weigh,
    pub no_room: NoRoom,
    pub empty_new: EmptyNew,
    /// Whether the law of a queue sees the backlog of all queues instead of its own.
    pub law_sees_all: bool,
}

/// What is lost for lack of room.
#[derive(Clone, Copy, Debug)]
pub(super) enum NoRoom {
    /// The arrival is queued. Then, packets are lost at the head of the queue with the most bytes: half of the
    /// queue, at least one packet and at most a batch (RFC 8290, section 4.1).
    FromFattest { batch: u32, half_of: HalfOf },
    /// The arrival is lost.
    Arrival,
}

/// The list that holds a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum On {
    /// It has been empty for a round, or has never held a packet.
    Idle,
    New,
    Old,
}

/// The queue of a flow, or of all flows with the same hash.
#[derive(Clone, Debug)]
struct FlowQueue<P, L> {
    inside: LawQueue<L, Chain<P>>,
    /// Credit, in bytes.
    deficit: i64,
    /// The hash of the flow whose packet arrived last.
    key: u64,
    before: u32,
    after: u32,
    on: On,
}

/// The queues of one list in order, as a ring: the last one names the first.
#[derive(Clone, Copy, Debug)]
struct List {
    /// The first queue, or [`NONE`].
    head: u32,
    /// The last queue, if there is any.
    tail: u32,
}

impl List {
    const EMPTY: List = List { head: NONE, tail: NONE };

    /// Appends the queue `at`, which is on no list.
    #[inline]
    fn append<P, L>(&mut self, queues: &mut [FlowQueue<P, L>], at: u32) {
        if self.head == NONE {
            self.head = at;
        } else {
            queues[self.tail as usize].after = at;
            queues[at as usize].before = self.tail;
        }
        self.tail = at;
        queues[at as usize].after = self.head;
        queues[self.head as usize].before = at;
    }

    fn unlink<P, L>(&mut self, queues: &mut [FlowQueue<P, L>], at: u32) {
        let FlowQueue { before, after, .. } = queues[at as usize];
        if self.head == self.tail {
            self.head = NONE;
            return;
        }
        (queues[before as usize].after, queues[after as usize].before) = (after, before);
        if self.head == at {
            self.head = after;
        }
        if self.tail == at {
            self.tail = before;
        }
    }

    /// Iterates over the queues in order.
    fn iter<P, L>(self, queues: &[FlowQueue<P, L>]) -> impl Iterator<Item = u32> {
        let first = (self.head != NONE).then_some(self.head);
        core::iter::successors(first, move |&at| (at != self.tail).then(|| queues[at as usize].after))
    }
}

/// The flow's queue, plus one; 0 for a flow without a queue.
type Known = u32;

/// A queue with a law `L` for each flow.
#[derive(Clone, Debug)]
pub struct FlowQueues<P, L> {
    queues: Vec<FlowQueue<P, L>>,
    /// The queues of the known flows, if each flow has its own.
    places: FlowTable<Known>,
    new: List,
    old: List,
    /// Queues that may be given to other flows once their laws are as new, in the order in which they became
    /// idle; used only if each flow has its own queue.
    idle: List,
    own: DropLoop<FlowStore<P>>,
    rules: FlowRules,
    salt: u64,
    /// The law of a new queue.
    fresh: L,
    /// Number of times that a queue became new.
    new_queues: u64,
    /// Number of packets that arrived at a queue in which packets of another flow were waiting.
    collisions: u64,
    /// Number of packets lost for lack of room.
    overflows: u64,
}

/// Number of the draw that gives the salt; the numbers of decisions never reach it.
const SALT_DRAW: u64 = u64::MAX;

impl<P: Packet, L: EarlyLaw + Clone> FlowQueues<P, L> {
    pub(super) fn new(law: L, queue: EarlyQueue, rules: FlowRules, draws: Stream) -> Self {
        let salt = draws.at(SALT_DRAW);
        let mut store = FlowStore::new(rules.weigh, rules.law_sees_all);
        store.reserve(queue.limit.room() + 1);
        let mut queues = FlowQueues {
            queues: Vec::new(),
            places: FlowTable::with_room(0),
            new: List::EMPTY,
            old: List::EMPTY,
            idle: List::EMPTY,
            own: DropLoop::new(queue, draws, store),
            rules,
            salt,
            fresh: law,
            new_queues: 0,
            collisions: 0,
            overflows: 0,
        };
        if rules.queues == Queues::Hashed {
            queues.queues.reserve_exact(rules.flows as usize);
            (0..rules.flows).for_each(|_| _ = queues.add_queue(0));
        }
        queues
    }

    /// Returns the law of the queue in which the packets of the flow of `pkt` wait, if that queue exists.
    pub fn law_of(&self, pkt: &P) -> Option<&L> {
        let key = pkt.flow_hash(self.salt);
        let at = match self.rules.queues {
            Queues::Hashed => self.hashed(key),
            Queues::Perfect => self.places.get(key)?.checked_sub(1)?,
        };
        Some(&self.queues[at as usize].inside.law)
    }

    /// Adds a queue, which is idle.
    fn add_queue(&mut self, key: u64) -> u32 {
        let inside = LawQueue { law: self.fresh.clone(), waiting: Chain::EMPTY };
        self.queues.push(FlowQueue { inside, deficit: 0, key, before: NONE, after: NONE, on: On::Idle });
        let at = (self.queues.len() - 1) as u32;
        if self.rules.queues == Queues::Perfect {
            self.idle.append(&mut self.queues, at);
        }
        at
    }

    /// Returns the queue of a hash: the high bits of the hash, as a fraction of the number of queues.
    #[inline]
    fn hashed(&self, key: u64) -> u32 {
        ((u128::from(key) * u128::from(self.rules.flows)) >> 64) as u32
    }

    /// Returns the queue for a packet of the flow with this hash.
    #[inline]
    fn queue_for(&mut self, now: Instant, key: u64) -> u32 {
        match self.rules.queues {
            Queues::Hashed => {
                let at = self.hashed(key);
                let queue = &mut self.queues[at as usize];
                if queue.key != key {
                    self.collisions += u64::from(queue.inside.waiting.packets > 0);
                    queue.key = key;
                }
                at
            }
            Queues::Perfect => self.own_queue(now, key),
        }
    }

    /// Returns the flow's own queue. A new flow gets a queue that has long been idle, or an additional one.
    fn own_queue(&mut self, now: Instant, key: u64) -> u32 {
        if let Some(place) = self.places.get(key) {
            return place - 1;
        }
        let first = self.idle.head;
        let at = match self.queues.get_mut(first as usize) {
            Some(queue) if queue.inside.law.is_as_new(now) => {
                queue.inside.law = self.fresh.clone();
                let former = core::mem::replace(&mut queue.key, key);
                self.places.remove(former);
                first
            }
            _ => self.add_queue(key),
        };
        *self.places.get_or_default(key) = at + 1;
        at
    }

    /// Returns the queue whose turn it is, if there is one: new queues come first. Queues without credit get some and
    /// move to the end of the old ones.
    #[inline(always)]
    fn next_with_credit(&mut self) -> u32 {
        if self.new.head != NONE && self.next_new() {
            return self.new.head;
        }
        loop {
            let at = self.old.head;
            let Some(queue) = self.queues.get_mut(at as usize) else { return NONE };
            if queue.deficit > 0 {
                return at;
            }
            queue.deficit += self.rules.quantum;
            self.old = List { head: queue.after, tail: at };
        }
    }

    /// Moves new queues without credit to the old ones. Returns whether there is a new one with credit.
    #[cold]
    fn next_new(&mut self) -> bool {
        while let Some(queue) = self.queues.get_mut(self.new.head as usize) {
            if queue.deficit > 0 {
                return true;
            }
            queue.deficit += self.rules.quantum;
            self.age(self.new.head);
        }
        false
    }

    /// Moves the first new queue to the end of the old ones.
    fn age(&mut self, at: u32) {
        self.new.unlink(&mut self.queues, at);
        self.queues[at as usize].on = On::Old;
        self.old.append(&mut self.queues, at);
    }

    /// Takes the queue whose turn it is, and which is empty, off its list.
    #[cold]
    fn retire(&mut self, at: u32) {
        let is_new = self.queues[at as usize].on == On::New;
        // A queue that has just been new passes through the old ones, so that a flow cannot be new again at
        // once and starve them.
        let passes = match self.rules.empty_new {
            EmptyNew::Old => true,
            EmptyNew::Linux => self.old.head != NONE,
        };
        if is_new && passes {
            return self.age(at);
        }
        let list = if is_new { &mut self.new } else { &mut self.old };
        list.unlink(&mut self.queues, at);
        self.queues[at as usize].on = On::Idle;
        if self.rules.queues == Queues::Perfect {
            self.idle.append(&mut self.queues, at);
        }
    }

    /// Makes an idle queue, whose first packet has just arrived, a new one.
    #[cold]
    fn set_new(&mut self, at: u32) {
        if self.rules.queues == Queues::Perfect {
            self.idle.unlink(&mut self.queues, at);
        }
        let queue = &mut self.queues[at as usize];
        queue.deficit = self.rules.quantum;
        queue.on = On::New;
        self.new.append(&mut self.queues, at);
        self.new_queues += 1;
    }

    /// Returns the active queue with the most bytes, the first of several, and its bytes.
    fn fattest(&self) -> Option<(u32, Bytes)> {
        let active = self.new.iter(&self.queues).chain(self.old.iter(&self.queues));
        let sizes = active.map(|at| (at, self.queues[at as usize].inside.waiting.bytes));
        sizes.reduce(|best, found| if found.1 > best.1 { found } else { best })
    }

    fn is_over(&self) -> bool {
        let store = &self.own.store;
        !self.own.rules.limit.holds(store.all(), Bytes::ZERO) || store.memory() > self.rules.memory_limit
    }

    /// Returns whether there is room for a packet of `size` beyond those that wait.
    fn admits(&self, size: Bytes) -> bool {
        let store = &self.own.store;
        self.own.rules.limit.admits(store.all(), size)
            && store.memory_of(size).saturating_add(store.memory()) <= self.rules.memory_limit
    }

    /// Drops packets from the head of the queue with the most bytes, as [`NoRoom::FromFattest`] says.
    #[cold]
    fn drop_from_fattest(&mut self, now: Instant, obs: &mut dyn Observer<P>) {
        let NoRoom::FromFattest { batch, half_of } = self.rules.no_room else { return };
        let Some((at, bytes)) = self.fattest() else { return };
        let inside = &mut self.queues[at as usize].inside;
        let (mut dropped, mut dropped_bytes) = (0, Bytes::ZERO);
        let half_bytes = Bytes::new(bytes.get() / 2);
        let half_packets = inside.waiting.packets / 2;
        while let Some((place, group)) = inside.waiting.pop(&mut self.own.store) {
            let Some(packet) = self.own.store.release(place, |_| ()) else { break };
            (dropped, dropped_bytes) = (dropped + 1, dropped_bytes + packet.wire_len());
            inside.law.on_overflow(now);
            obs.dropped(now, packet, Cause { reason: Reason::Overflow, inner: group.number() });
            let halved = match half_of {
                HalfOf::Packets => dropped >= half_packets,
                HalfOf::Bytes => dropped_bytes >= half_bytes,
            };
            if halved || dropped >= batch {
                break;
            }
        }
        self.overflows += u64::from(dropped);
    }
}

impl<P: Arrived, L: EarlyLaw + Clone> FlowQueues<P, L> {
    /// Removes the next packet of a queue that may leave, and returns its place.
    #[inline(always)]
    fn serve(&mut self, at: u32, now: Instant, obs: &mut dyn Observer<P>) -> Option<(Place, Group)> {
        let queue = self.queues.get_mut(at as usize)?;
        let Out { place, group, leaving } = queue.inside.dequeue(now, &mut self.own, obs)?;
        queue.deficit -= leaving.size.get() as i64;
        Some((place, group))
    }

    /// Removes the next packet of the queues behind `at`, which is empty.
    #[cold]
    fn serve_another(
        &mut self,
        mut at: u32,
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) -> Option<(Place, Group)> {
        while at != NONE {
            self.retire(at);
            at = self.next_with_credit();
            let out = self.serve(at, now, obs);
            if out.is_some() {
                return out;
            }
        }
        None
    }
}

impl<P: Arrived, L: EarlyLaw + Clone> Qdisc<P> for FlowQueues<P, L> {
    #[inline]
    fn enqueue(&mut self, now: Instant, packet: P, obs: &mut dyn Observer<P>) {
        let at = self.queue_for(now, packet.flow_hash(self.salt));
        let (drops_arrivals, mut full) = (matches!(self.rules.no_room, NoRoom::Arrival), false);
        if drops_arrivals {
            full = !self.admits(packet.wire_len());
            self.overflows += u64::from(full);
        }
        let queue = &mut self.queues[at as usize];
        let group = if queue.on == On::Old { Group::Bulk } else { Group::Sparse };
        obs.entered(now, &packet, group.number());
        queue.inside.enqueue(now, (packet, group), full, &mut self.own, obs);
        if queue.on == On::Idle && queue.inside.waiting.packets > 0 {
            self.set_new(at);
        }
        while !drops_arrivals && self.is_over() {
            self.drop_from_fattest(now, obs);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        let at = self.next_with_credit();
        let (place, group) = match self.serve(at, now, obs) {
            Some(out) => out,
            None => self.serve_another(at, now, obs)?,
        };
        self.own.store.release(place, |packet| obs.left(now, packet, group.number()))
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        for queue in &mut self.queues {
            queue.inside.law.rate_changed(now, rate);
        }
        self.fresh.rate_changed(now, rate);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.own.store.all()
    }

    fn reserve(&mut self, packets: usize, flows: usize) {
        // The packet that exceeds the limit is stored before another one is dropped.
        self.own.store.reserve(self.own.rules.limit.most_of(packets).saturating_add(1));
        if self.rules.queues == Queues::Perfect {
            self.queues.reserve(flows);
            self.places.reserve(flows);
        }
    }

    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        for (name, backlog) in Group::NAMES.into_iter().zip(self.own.store.groups()) {
            visit(name, Inside::Group(backlog));
        }
    }

    /// Appends `new` and `old` (numbers of queues on the two lists), `fattest` (bytes in the longest queue),
    /// `memory` (bytes), and, since the start, `new_queues` (times that a queue became new), `collisions`
    /// (packets that arrived behind packets of another flow) and `overflows` (packets lost for lack of room).
    fn observe(&self, _now: Instant, out: &mut LawSamples) {
        let fattest = self.fattest().map_or(Bytes::ZERO, |(_, bytes)| bytes);
        out.extend([
            ("new", self.new.iter(&self.queues).count() as f64),
            ("old", self.old.iter(&self.queues).count() as f64),
            ("fattest", fattest.as_f64()),
            ("memory", Packets::new(self.own.store.memory()).as_f64()),
            ("new_queues", self.new_queues as f64),
            ("collisions", self.collisions as f64),
            ("overflows", self.overflows as f64),
        ]);
    }
}

/// Returns the size of an empty queue, in bytes.
pub const fn idle_queue_bytes<P, L>() -> usize {
    size_of::<FlowQueue<P, L>>()
}
