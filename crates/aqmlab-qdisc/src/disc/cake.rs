//! CAKE: tins, flow queues under COBALT with fairness between hosts, and a shaper (Høiland-Jørgensen, Täht and
//! Morton 2018, "Piece of CAKE").

use alloc::vec::Vec;

use aqmlab_random::{Stream, unit_from_bits};
use aqmlab_units::{Bytes, Instant, Packets, Rate};

use super::cake_tins::{TinRules, Tins};
use super::law_queue::Waiting;
use super::words::{AckFilter, Isolation};
use crate::flow_store::{Chain, FlowStore, Group, NONE, Weigh};
use crate::flow_table::Keyed;
use crate::law::{ByteTime, CobaltChoice, CobaltLaw, Framing, VirtualClock, superseded};
use crate::links::{Linked, Links, List};
use crate::{
    Arrived, Backlog, Cause, Dscp, Ecn, Inside, LawSamples, Limit, Observer, Packet, PacketKind, Qdisc,
    Reason, Side,
};

/// The rules of the discipline.
#[derive(Clone, Debug)]
pub(super) struct CakeRules {
    pub isolation: Isolation,
    /// The tin of each code point.
    pub tin_of: [u8; 64],
    /// Queues per tin, a multiple of [`WAYS`].
    pub queues: u32,
    pub framing: Framing,
    /// The shaper's rate; `None` if the link behind paces.
    pub rate: Option<ByteTime>,
    /// Whether dropped packets count as sent, because they have already crossed the bottleneck.
    pub ingress: bool,
    /// Whether code points are cleared.
    pub wash: bool,
    pub ack_filter: AckFilter,
    pub memory_limit: u64,
    pub weigh: Weigh,
    /// The parameters of the tins at each rate.
    pub tins: Tins,
}

/// Queues in which the flow of a hash may wait.
pub(super) const WAYS: u32 = 8;

/// The state of a flow queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Set {
    /// It is on no list.
    Idle,
    /// It has not used up its first quantum.
    Sparse,
    /// It has, but was empty then: it waits for its turn among the bulk queues without counting as one.
    SparseWait,
    Bulk,
    /// It is empty, and its law has not come to rest.
    Decaying,
}

#[derive(Clone, Debug)]
struct FlowQueue<P> {
    waiting: Chain<P>,
    law: CobaltLaw,
    deficit: i64,
    /// The hash of the flow for which the queue is reserved.
    tag: u64,
    set: Set,
    /// Number of its packets that are pure acknowledgments.
    acks: u32,
    /// Places of the hosts of its packets, by side.
    hosts: [u32; 2],
    links: Links,
}

/// Hosts with the same hash, of either side.
#[derive(Clone, Copy, Default, Debug)]
struct Host {
    tags: [u64; 2],
    /// Number of bulk queues of the host.
    bulk: [u32; 2],
}

impl<P> Linked for FlowQueue<P> {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// The lists of a tin, in the order in which they are served.
const NEW: usize = 0;
const OLD: usize = 1;
const DECAYING: usize = 2;

#[derive(Clone, Debug)]
struct Tin<P> {
    rules: TinRules,
    queues: Vec<FlowQueue<P>>,
    hosts: Vec<Host>,
    lists: [List; 3],
    /// When the tin has used up its rate so far.
    next: Instant,
    deficit: i64,
    /// The backlog by [`Group`].
    groups: [Backlog; 2],
    sparse: u32,
    bulk: u32,
    collisions: u64,
}

/// The sides whose hosts count in an isolation mode.
fn sides(isolation: Isolation) -> [bool; 2] {
    match isolation {
        Isolation::DualSrchost => [true, false],
        Isolation::DualDsthost => [false, true],
        Isolation::TripleIsolate => [true, true],
        Isolation::Flowblind
        | Isolation::Srchost
        | Isolation::Dsthost
        | Isolation::Hosts
        | Isolation::Flows => [false; 2],
    }
}

/// Iterates over the places of a set, beginning with that of the hash.
fn ways(reduced: u32) -> impl Iterator<Item = u32> {
    let inner = reduced % WAYS;
    (0..WAYS).map(move |i| reduced - inner + (inner + i) % WAYS)
}

impl<P: Packet> Tin<P> {
    fn new(rules: TinRules, queues: u32) -> Self {
        let queue = |_| FlowQueue {
            waiting: Chain::EMPTY,
            law: CobaltLaw::new(rules.law),
            deficit: 0,
            tag: 0,
            set: Set::Idle,
            acks: 0,
            hosts: [0; 2],
            links: Links::NONE,
        };
        Tin {
            rules,
            queues: (0..queues).map(queue).collect(),
            hosts: alloc::vec![Host::default(); queues as usize],
            lists: [List::EMPTY; 3],
            next: Instant::ZERO,
            deficit: 0,
            groups: [Backlog::default(); 2],
            sparse: 0,
            bulk: 0,
            collisions: 0,
        }
    }

    const fn is_active(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    fn backlog(&self) -> Backlog {
        let [sparse, bulk] = self.groups;
        Backlog { packets: sparse.packets + bulk.packets, bytes: sparse.bytes + bulk.bytes }
    }

    /// Returns the queue for a packet, and reserves it for the packet's flow. A flow keeps its queue as long as
    /// the queue is not idle; a new one gets an idle queue of its set, if there is one.
    fn queue_for(&mut self, flow: u64, hosts: [u64; 2], counted: [bool; 2]) -> u32 {
        let reduced = (flow % self.queues.len() as u64) as u32;
        let queue = &self.queues[reduced as usize];
        if queue.tag == flow && queue.set != Set::Idle {
            return reduced;
        }
        let reserved = ways(reduced).find(|at| self.queues[*at as usize].tag == flow);
        if let Some(at) = reserved
            && self.queues[at as usize].set != Set::Idle
        {
            return at;
        }
        let idle = || ways(reduced).find(|at| self.queues[*at as usize].set == Set::Idle);
        let at = reserved.or_else(idle).unwrap_or_else(|| {
            self.collisions += 1;
            reduced
        });
        let (former, set) = (self.queues[at as usize].hosts, self.queues[at as usize].set);
        for side in 0..2 {
            if counted[side] {
                // With a collision, a bulk queue passes from its former host to the new one.
                if set == Set::Bulk {
                    self.hosts[former[side] as usize].bulk[side] -= 1;
                }
                let host = self.host_for(hosts[side], side);
                if set == Set::Bulk {
                    self.hosts[host as usize].bulk[side] += 1;
                }
                self.queues[at as usize].hosts[side] = host;
            }
        }
        self.queues[at as usize].tag = flow;
        at
    }

    /// Returns the place of a host in the same way.
    fn host_for(&mut self, hash: u64, side: usize) -> u32 {
        let reduced = (hash % self.hosts.len() as u64) as u32;
        let known = ways(reduced).find(|at| self.hosts[*at as usize].tags[side] == hash);
        let free = || ways(reduced).find(|at| self.hosts[*at as usize].bulk[side] == 0);
        let at = known.or_else(free).unwrap_or(reduced);
        self.hosts[at as usize].tags[side] = hash;
        at
    }

    /// Counts a queue as a bulk queue of its hosts, or no longer.
    fn count_bulk(&mut self, at: u32, counted: [bool; 2], more: bool) {
        self.bulk = if more { self.bulk + 1 } else { self.bulk - 1 };
        let hosts = self.queues[at as usize].hosts;
        for side in 0..2 {
            if counted[side] {
                let bulk = &mut self.hosts[hosts[side] as usize].bulk[side];
                *bulk = if more { *bulk + 1 } else { *bulk - 1 };
            }
        }
    }

    /// Returns a queue's quantum, times 2^16: the flow's, divided by the number of bulk queues of the one of its
    /// hosts that has more.
    fn quantum(&self, at: u32, counted: [bool; 2]) -> u64 {
        let hosts = self.queues[at as usize].hosts;
        let load = |side: usize| if counted[side] { self.hosts[hosts[side] as usize].bulk[side] } else { 1 };
        self.rules.flow_quantum * (65_535 / u64::from(load(0).max(load(1)).max(1)))
    }

    fn move_to(&mut self, at: u32, from: Option<usize>, to: Option<usize>) {
        if let Some(from) = from {
            self.lists[from].unlink(&mut self.queues, at);
        }
        if let Some(to) = to {
            self.lists[to].append(&mut self.queues, at);
        }
    }

    /// Returns the queue with the most bytes, and its bytes.
    fn fattest(&self) -> Option<(u32, Bytes)> {
        let mut best = None;
        for list in [NEW, OLD] {
            let mut at = self.lists[list].head;
            while let Some(queue) = self.queues.get(at as usize) {
                if best.is_none_or(|(_, most)| queue.waiting.bytes > most) {
                    best = Some((at, queue.waiting.bytes));
                }
                at = queue.links.after;
            }
        }
        best
    }
}

/// CAKE.
#[derive(Clone, Debug)]
pub struct Cake<P> {
    tins: Vec<Tin<P>>,
    store: FlowStore<P>,
    rules: CakeRules,
    counted: [bool; 2],
    clock: VirtualClock,
    /// The tin whose turn it is, without a shaper.
    turn: usize,
    salt: u64,
    draws: Stream,
    /// Number of decisions of the laws, and of quanta that were added to deficits: each has its own draw.
    decisions: u64,
    quanta: u64,
    overflows: u64,
    /// Number of acknowledgments that the filter has dropped.
    filtered: u64,
}

/// Returns the number of a tin among the inner queues, if there are several tins.
const fn tin_number(tin: usize) -> u16 {
    1 + 3 * tin as u16
}

/// Number of the first draw that rounds a quantum; the decisions' draws begin at 0.
const QUANTUM_DRAWS: u64 = 1 << 63;
const SALT_DRAW: u64 = u64::MAX;

impl<P: Packet> Cake<P> {
    /// `bandwidth` is the shaper's rate, if there is a shaper.
    pub(super) fn new(rules: CakeRules, bandwidth: Option<Rate>, draws: Stream) -> Self {
        let mut store = FlowStore::new(rules.weigh, false);
        store.reserve(Limit::Bytes(Bytes::new(rules.memory_limit)).room());
        Cake {
            tins: rules.tins.at(bandwidth).map(|tin| Tin::new(tin, rules.queues)).collect(),
            store,
            counted: sides(rules.isolation),
            rules,
            clock: VirtualClock::NEW,
            turn: 0,
            salt: draws.at(SALT_DRAW),
            draws,
            decisions: 0,
            quanta: 0,
            overflows: 0,
            filtered: 0,
        }
    }

    /// Returns the hash by which packets share a queue, and those of the hosts.
    fn hashes(&self, pkt: &P) -> (u64, [u64; 2]) {
        let host = |side| pkt.host_hash(side, self.salt);
        let (source, destination) = (|| host(Side::Source), || host(Side::Destination));
        match self.rules.isolation {
            Isolation::Flowblind => (0, [0; 2]),
            Isolation::Srchost => (source(), [0; 2]),
            Isolation::Dsthost => (destination(), [0; 2]),
            Isolation::Hosts => (source().rotate_left(1) ^ destination(), [0; 2]),
            Isolation::Flows => (pkt.flow_hash(self.salt), [0; 2]),
            Isolation::DualSrchost => (pkt.flow_hash(self.salt), [source(), 0]),
            Isolation::DualDsthost => (pkt.flow_hash(self.salt), [0, destination()]),
            Isolation::TripleIsolate => (pkt.flow_hash(self.salt), [source(), destination()]),
        }
    }

    fn is_held_back(&self, now: Instant) -> bool {
        self.rules.rate.is_some() && self.clock.due() > now
    }

    /// Charges a packet of this length on the link to its tin and to the shaper.
    fn charge(&mut self, tin: usize, now: Instant, length: u64, dropped: bool) {
        let Some(rate) = self.rules.rate else { return };
        let tin = &mut self.tins[tin];
        if let Some(own) = tin.rules.rate {
            let time = own.time(length);
            if tin.next < now {
                tin.next = tin.next.saturating_add(time);
            } else if tin.next < now.saturating_add(time) {
                tin.next = now.saturating_add(time);
            }
        }
        self.clock.charge(rate.time(length), dropped);
    }

    /// Returns the tin that is served next: with a shaper, the last one that has not used up its rate or, if all
    /// have, the one that may send first; without one, each in turn, by deficit round robin.
    fn next_tin(&mut self, now: Instant) -> Option<usize> {
        if self.rules.rate.is_some() {
            let mut best: Option<(usize, Instant)> = None;
            for (number, tin) in self.tins.iter().enumerate().filter(|(_, tin)| tin.is_active()) {
                if tin.next <= now || best.is_none_or(|(_, first)| tin.next <= first) {
                    best = Some((number, tin.next));
                }
            }
            return best.map(|(number, _)| number);
        }
        if !self.tins.iter().any(Tin::is_active) {
            return None;
        }
        loop {
            let tin = &mut self.tins[self.turn];
            if tin.deficit >= 0 && tin.is_active() {
                return Some(self.turn);
            }
            if tin.deficit <= 0 {
                tin.deficit += tin.rules.quantum;
            }
            self.turn = (self.turn + 1) % self.tins.len();
        }
    }

    /// Takes an empty queue off its list, or moves it to the decaying ones until its law is at rest.
    fn on_empty(&mut self, tin: usize, at: u32, list: usize, now: Instant) {
        let (counted, tin) = (self.counted, &mut self.tins[tin]);
        let queue = &mut tin.queues[at as usize];
        queue.law.on_empty(now);
        let (rests, set) = (queue.law.is_at_rest(now), queue.set);
        queue.set = if rests { Set::Idle } else { Set::Decaying };
        match set {
            Set::Bulk => tin.count_bulk(at, counted, false),
            Set::Sparse | Set::SparseWait => tin.sparse -= 1,
            Set::Decaying | Set::Idle => {}
        }
        tin.move_to(at, Some(list), (!rests).then_some(DECAYING));
    }
}

impl<P: Arrived> Cake<P> {
    fn pop(&mut self, tin: usize, at: u32) -> Option<Keyed<P, Group>> {
        self.take(tin, at, 0)
    }

    /// Removes the packet at a position in a queue, counted from the oldest.
    fn take(&mut self, tin: usize, at: u32, position: usize) -> Option<Keyed<P, Group>> {
        let tin = &mut self.tins[tin];
        let queue = &mut tin.queues[at as usize];
        let (place, key) = queue.waiting.take(&mut self.store, position)?;
        let packet = self.store.release(place, |_| ())?;
        queue.acks -= u32::from(packet.kind() == PacketKind::Ack);
        let group = &mut tin.groups[key as usize];
        group.packets -= Packets::new(1);
        group.bytes -= packet.wire_len();
        Some(Keyed { key, packet })
    }

    /// Returns the number of a group among the inner queues: with several tins, each tin comes before its groups.
    fn number(&self, tin: usize, group: Group) -> u16 {
        if self.tins.len() == 1 { group.number() } else { tin_number(tin) + group.number() }
    }

    /// Drops the packet at the head of the queue with the most bytes.
    #[cold]
    fn drop_from_fattest(&mut self, now: Instant, obs: &mut dyn Observer<P>) {
        let fattest = |(number, tin): (usize, &Tin<P>)| tin.fattest().map(|(at, bytes)| (number, at, bytes));
        let all = self.tins.iter().enumerate().filter_map(fattest);
        let Some((tin, at, _)) = all.reduce(|best, found| if found.2 > best.2 { found } else { best }) else {
            return;
        };
        self.tins[tin].queues[at as usize].law.on_overflow(now);
        let Some(Keyed { key, packet }) = self.pop(tin, at) else { return };
        if self.rules.ingress {
            self.charge(tin, now, self.rules.framing.length(packet.wire_len()), true);
        }
        self.overflows += 1;
        obs.dropped(now, packet, Cause { reason: Reason::Overflow, inner: self.number(tin, key) });
    }

    /// Drops the acknowledgment in a queue that `newest`, which will enter it, makes unnecessary. If
    /// acknowledgments wait there, this may visit all packets of the queue.
    #[cold]
    fn filter(&mut self, tin: usize, at: u32, newest: &P, now: Instant, obs: &mut dyn Observer<P>) {
        let waiting = &self.tins[tin].queues[at as usize].waiting;
        let Some(header) = obs.tcp_header(newest) else { return };
        let flow = newest.flow_hash(self.salt);
        let of_flow = |pkt: &P| obs.tcp_header(pkt).filter(|_| pkt.flow_hash(self.salt) == flow);
        let aggressive = self.rules.ack_filter == AckFilter::Aggressive;
        let place = superseded(&header, waiting.iter(&self.store).map(of_flow), aggressive);
        let Some(Keyed { key, packet }) = place.and_then(|place| self.take(tin, at, place)) else { return };
        if self.rules.ingress {
            self.charge(tin, now, self.rules.framing.length(packet.wire_len()), true);
        }
        self.filtered += 1;
        obs.dropped(now, packet, Cause { reason: Reason::Early, inner: self.number(tin, key) });
    }

    /// Returns the next packet of a tin, or `None` if another tin must be tried. `first` says whether this
    /// is the first attempt of a call, which may visit a decaying queue.
    fn serve(&mut self, tin: usize, now: Instant, first: &mut bool, obs: &mut dyn Observer<P>) -> Option<P> {
        loop {
            let lists = self.tins[tin].lists;
            let has = |list: &usize| lists[*list].head != NONE;
            let order = if *first { [DECAYING, NEW, OLD] } else { [NEW, OLD, DECAYING] };
            let list = order.into_iter().find(has)?;
            *first = false;
            let at = lists[list].head;
            if self.tins[tin].queues[at as usize].deficit <= 0 {
                self.refill(tin, at, list);
                continue;
            }
            let Some(Keyed { key, mut packet }) = self.pop(tin, at) else {
                self.on_empty(tin, at, list, now);
                return None;
            };
            let (inner, length) = (self.number(tin, key), self.rules.framing.length(packet.wire_len()));
            let choice = self.decide(tin, at, now, &packet);
            if choice == CobaltChoice::Drop {
                if self.rules.ingress {
                    self.charge(tin, now, length, true);
                    self.pay(tin, at, length);
                }
                obs.dropped(now, packet, Cause { reason: Reason::Early, inner });
                // Except in ingress mode, the queue's deficit has not changed, so its next packet is judged.
                continue;
            }
            if choice == CobaltChoice::Mark && packet.ecn() != Ecn::Ce {
                packet.mark_ce();
                obs.marked(now, &packet, Cause { reason: Reason::Early, inner });
            }
            self.charge(tin, now, length, false);
            self.pay(tin, at, length);
            obs.left(now, &packet, inner);
            if self.tins.len() > 1 {
                obs.left(now, &packet, tin_number(tin));
            }
            return Some(packet);
        }
    }

    fn pay(&mut self, tin: usize, at: u32, length: u64) {
        let tin = &mut self.tins[tin];
        tin.deficit -= length as i64;
        tin.queues[at as usize].deficit -= length as i64;
    }

    /// Gives a queue its quantum for the next round, in which it is among the old ones. A random fraction of a
    /// byte makes the quanta of hosts with many flows exact on average.
    fn refill(&mut self, tin: usize, at: u32, list: usize) {
        let (counted, number) = (self.counted, QUANTUM_DRAWS + self.quanta);
        self.quanta += 1;
        let fraction = self.draws.at(number) >> 48;
        let tin = &mut self.tins[tin];
        let queue = &mut tin.queues[at as usize];
        if queue.set == Set::Sparse {
            if queue.waiting.packets > 0 {
                queue.set = Set::Bulk;
                tin.sparse -= 1;
                tin.count_bulk(at, counted, true);
            } else {
                queue.set = Set::SparseWait;
            }
        }
        let quantum = (tin.quantum(at, counted) + fraction) >> 16;
        tin.queues[at as usize].deficit += quantum as i64;
        tin.move_to(at, Some(list), Some(OLD));
    }

    /// Returns the law's decision on a packet that has just been removed from its queue. The last packet of a
    /// queue is never dropped.
    fn decide(&mut self, tin: usize, at: u32, now: Instant, packet: &P) -> CobaltChoice {
        let number = self.decisions;
        self.decisions += 1;
        let tin = &mut self.tins[tin];
        let bulk = if self.rules.ingress { u64::from(tin.bulk) } else { 0 };
        let queue = &mut tin.queues[at as usize];
        let draw = || unit_from_bits(self.draws.at(number));
        let sojourn = now.saturating_since(packet.arrived());
        let choice = queue.law.on_departure(now, sojourn, bulk, packet.ecn().is_capable(), draw);
        let last = queue.waiting.packets == 0;
        if choice == CobaltChoice::Drop && last { CobaltChoice::Pass } else { choice }
    }
}

impl<P: Arrived> Qdisc<P> for Cake<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, obs: &mut dyn Observer<P>) {
        let number = usize::from(self.rules.tin_of[usize::from(packet.dscp().0 & 63)]);
        if self.rules.wash && packet.dscp() != Dscp(0) {
            packet.set_dscp(Dscp(0));
        }
        let (flow, hosts) = self.hashes(&packet);
        let (counted, tin) = (self.counted, &mut self.tins[number]);
        let at = tin.queue_for(flow, hosts, counted);
        if tin.backlog().packets.is_zero() {
            tin.next = tin.next.max(now);
            if self.store.all().packets.is_zero() {
                self.clock.on_busy(now);
            }
        }
        let FlowQueue { set, acks, .. } = tin.queues[at as usize];
        let key = if matches!(set, Set::Bulk | Set::SparseWait) { Group::Bulk } else { Group::Sparse };
        if self.tins.len() > 1 {
            obs.entered(now, &packet, tin_number(number));
        }
        obs.entered(now, &packet, self.number(number, key));
        if self.rules.ack_filter != AckFilter::None && acks > 0 {
            self.filter(number, at, &packet, now, obs);
        }
        let tin = &mut self.tins[number];
        tin.groups[key as usize].packets += Packets::new(1);
        tin.groups[key as usize].bytes += packet.wire_len();
        let queue = &mut tin.queues[at as usize];
        queue.acks += u32::from(packet.kind() == PacketKind::Ack);
        queue.waiting.push(&mut self.store, packet, key);
        match set {
            Set::Idle | Set::Decaying => {
                let quantum = tin.quantum(at, counted) >> 16;
                let queue = &mut tin.queues[at as usize];
                (queue.set, queue.deficit) = (Set::Sparse, quantum as i64);
                tin.sparse += 1;
                tin.move_to(at, (set == Set::Decaying).then_some(DECAYING), Some(NEW));
            }
            Set::SparseWait => {
                tin.queues[at as usize].set = Set::Bulk;
                tin.sparse -= 1;
                tin.count_bulk(at, counted, true);
            }
            Set::Sparse | Set::Bulk => {}
        }
        while self.store.memory() > self.rules.memory_limit {
            self.drop_from_fattest(now, obs);
        }
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        let mut first = true;
        while !self.store.all().packets.is_zero() && !self.is_held_back(now) {
            let tin = self.next_tin(now)?;
            if let Some(packet) = self.serve(tin, now, &mut first, obs) {
                return Some(packet);
            }
        }
        None
    }

    fn deadline(&self) -> Option<Instant> {
        let waits = self.rules.rate.is_some() && !self.store.all().packets.is_zero();
        waits.then(|| self.clock.due())
    }

    /// CAKE has a rate of its own, and does not follow that of the link.
    fn rate_changed(&mut self, _now: Instant, _rate: Rate) {}

    /// Packets that have left count at the rate that they left with, as in Linux. (There, a change of the rate also changes the
    /// limit of the memory, unless that is given.)
    fn shape(&mut self, _now: Instant, rate: Rate) -> bool {
        if self.rules.rate.is_none() {
            return false;
        }
        self.rules.rate = Some(ByteTime::at(rate));
        for (tin, rules) in self.tins.iter_mut().zip(self.rules.tins.at(Some(rate))) {
            tin.rules = rules;
            tin.queues.iter_mut().for_each(|queue| queue.law.set_params(rules.law));
        }
        true
    }

    fn backlog(&self) -> Backlog {
        self.store.all()
    }

    fn holds_back(&self) -> bool {
        self.rules.rate.is_some()
    }

    fn reserve(&mut self, packets: usize, _flows: usize) {
        let limit = Limit::Bytes(Bytes::new(self.rules.memory_limit));
        // The packet that exceeds the limit is stored before another one is dropped.
        self.store.reserve(limit.most_of(packets).saturating_add(1));
    }

    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        for tin in &self.tins {
            let parts = [0, 1].map(|group| (Group::NAMES[group], tin.groups[group]));
            if self.tins.len() == 1 {
                parts.into_iter().for_each(|(name, backlog)| visit(name, Inside::Group(backlog)));
            } else {
                visit(tin.rules.name, Inside::Divided(tin.backlog(), &parts));
            }
        }
    }

    /// Appends `sparse` and `bulk` (numbers of queues), `fattest` (bytes in the longest queue), `memory` (bytes)
    /// and, since the start, `collisions` (packets that found all queues of their set taken by other flows),
    /// `overflows` (packets lost for lack of room) and `filtered` (acknowledgments dropped by the filter).
    fn observe(&self, _now: Instant, out: &mut LawSamples) {
        let sum = |of: fn(&Tin<P>) -> u64| self.tins.iter().map(of).sum::<u64>() as f64;
        let fattest = self.tins.iter().filter_map(Tin::fattest).map(|(_, bytes)| bytes).max();
        out.extend([
            ("sparse", sum(|tin| u64::from(tin.sparse))),
            ("bulk", sum(|tin| u64::from(tin.bulk))),
            ("fattest", fattest.unwrap_or(Bytes::ZERO).as_f64()),
            ("memory", self.store.memory() as f64),
            ("collisions", sum(|tin| tin.collisions)),
            ("overflows", self.overflows as f64),
            ("filtered", self.filtered as f64),
        ]);
    }
}
