//! Fair queueing with pacing, as in Linux's fq: a FIFO per flow, served in turn, new flows first. A flow may have a
//! rate that it does not exceed.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Rate, Span};

use super::law_queue::{Waiting, mark};
use crate::flow_store::{Chain, FlowStore, Group, NONE, Weigh};
use crate::flow_table::FlowTable;
use crate::links::{Linked, Links, List};
use crate::{Arrived, Backlog, Cause, Inside, LawSamples, Limit, Observer, Packet, Qdisc, Reason};

/// The rules.
#[derive(Clone, Copy, Debug)]
pub struct FqRules {
    /// The limit on all flows together.
    pub limit: Limit,
    /// Most packets of a flow.
    pub flow_limit: u32,
    /// Credit per round, in bytes.
    pub quantum: i64,
    /// Credit of a new flow, in bytes.
    pub initial_quantum: i64,
    /// How long a flow must have been away to get a quantum of credit at once.
    pub refill_delay: Span,
    /// The unit of the times with which this delay is compared.
    pub tick: Span,
    /// Number of hashes among which flows are distributed, unless each is on its own.
    pub flows: Option<u32>,
    /// The rate of each flow.
    pub maxrate: Option<Rate>,
    /// The rate up to which a flow pauses after each packet.
    pub low_rate_threshold: Rate,
    /// The time, from the instant at which a packet could have left, after which it is marked.
    pub ce_threshold: Option<Span>,
    /// Bytes of the link's header, which count as part of each packet.
    pub header: Bytes,
}

/// The longest pause of a flow (Linux's sch_fq).
const LONGEST_PAUSE: Span = Span::s(1);
/// The number of flows from which on those are forgotten that have long been away (Linux's sch_fq: twice its 1024
/// buckets).
const MANY_FLOWS: usize = 2048;
/// The time after which they are (Linux's sch_fq).
const LONG_AWAY: Span = Span::s(3);

/// The list that holds a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum On {
    /// It has been found empty, or is new.
    Away,
    New,
    Old,
    /// It pauses.
    Held,
}

/// A flow, or all flows with the same hash.
#[derive(Clone, Debug)]
struct Flow<P> {
    waiting: Chain<P>,
    /// Credit, in bytes.
    credit: i64,
    /// The end of its latest pause; [`Instant::ZERO`] if there was none.
    until: Instant,
    /// When it was last found empty.
    away_since: Instant,
    /// The hash by which the flow is found.
    key: u64,
    /// The whole hash of the flow whose packet arrived last.
    hash: u64,
    links: Links,
    on: On,
}

impl<P> Linked for Flow<P> {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// Fair queueing with pacing.
#[derive(Clone, Debug)]
pub struct Fq<P> {
    rules: FqRules,
    flows: Vec<Flow<P>>,
    /// The place of each flow, plus one.
    places: FlowTable<u32>,
    /// Flows that are away, the one that left first at the head.
    away: List,
    away_flows: usize,
    new: List,
    old: List,
    /// Flows that pause, by the end of the pause and the order in which they began it.
    held: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    pauses: u64,
    store: FlowStore<P>,
    salt: u64,
    collisions: u64,
    overflows: u64,
    flow_overflows: u64,
}

impl<P: Packet> Fq<P> {
    /// Creates an empty queue.
    pub fn new(rules: FqRules, draws: &Stream) -> Self {
        let mut fq = Fq {
            rules,
            flows: Vec::new(),
            places: FlowTable::with_room(0),
            away: List::EMPTY,
            away_flows: 0,
            new: List::EMPTY,
            old: List::EMPTY,
            held: BinaryHeap::new(),
            pauses: 0,
            store: FlowStore::new(Weigh::Length, false),
            salt: draws.at(0),
            collisions: 0,
            overflows: 0,
            flow_overflows: 0,
        };
        fq.store.reserve(rules.limit.room());
        fq
    }

    /// Takes note that a flow, which is on no list, has been found empty.
    fn go_away(&mut self, now: Instant, at: u32) {
        let flow = &mut self.flows[at as usize];
        (flow.on, flow.away_since) = (On::Away, now);
        self.away_flows += 1;
        self.away.append(&mut self.flows, at);
    }

    /// Returns the flow of a packet with this hash. If there are many flows, and most of them away, a new one takes the
    /// place of one that has long been away.
    fn flow_for(&mut self, now: Instant, hash: u64) -> u32 {
        let key = match self.rules.flows {
            Some(flows) => ((u128::from(hash) * u128::from(flows)) >> 64) as u64,
            None => hash,
        };
        if let Some(place) = self.places.get(key) {
            let flow = &mut self.flows[*place as usize - 1];
            if flow.hash != hash {
                self.collisions += u64::from(flow.waiting.packets > 0);
                flow.hash = hash;
            }
            return place - 1;
        }
        let fresh = Flow {
            waiting: Chain::EMPTY,
            credit: self.rules.initial_quantum,
            until: Instant::ZERO,
            away_since: now,
            key,
            hash,
            links: Links::NONE,
            on: On::Away,
        };
        let many = self.flows.len() >= MANY_FLOWS && self.away_flows > self.flows.len() / 2;
        let longest = self.away.head;
        let at = match self.flows.get(longest as usize) {
            Some(flow) if many && now.saturating_since(flow.away_since) > LONG_AWAY => {
                self.places.remove(flow.key);
                self.away.unlink(&mut self.flows, longest);
                self.away_flows -= 1;
                self.flows[longest as usize] = fresh;
                longest
            }
            _ => {
                self.flows.push(fresh);
                (self.flows.len() - 1) as u32
            }
        };
        self.go_away(now, at);
        *self.places.get_or_default(key) = at + 1;
        at
    }

    /// Lets a flow that was away, and now has a packet, take its turn.
    fn come_back(&mut self, now: Instant, at: u32) {
        self.away.unlink(&mut self.flows, at);
        self.away_flows -= 1;
        let flow = &mut self.flows[at as usize];
        let ticks = |time: Instant| time.as_ns() / self.rules.tick.as_ns();
        let delay = self.rules.refill_delay.div_span(self.rules.tick);
        if ticks(now) > ticks(flow.away_since) + delay {
            flow.credit = flow.credit.max(self.rules.quantum);
        }
        flow.on = On::New;
        self.new.append(&mut self.flows, at);
    }

    /// Lets the flows whose pauses have ended take their turns.
    fn release(&mut self, now: Instant) {
        while let Some(Reverse((until, _, at))) = self.held.peek().copied()
            && until <= now
        {
            self.held.pop();
            self.flows[at as usize].on = On::Old;
            self.old.append(&mut self.flows, at);
        }
    }

    /// Moves the first flow of the list that is served to the end of the old ones.
    fn move_to_old(&mut self, at: u32) {
        self.take_off(at);
        self.flows[at as usize].on = On::Old;
        self.old.append(&mut self.flows, at);
    }

    fn take_off(&mut self, at: u32) {
        let list = if self.flows[at as usize].on == On::New { &mut self.new } else { &mut self.old };
        list.unlink(&mut self.flows, at);
    }

    /// Returns the flow whose first packet may leave.
    fn next(&mut self, now: Instant) -> Option<u32> {
        loop {
            let at = if self.new.head == NONE { self.old.head } else { self.new.head };
            let flow = self.flows.get_mut(at as usize)?;
            if flow.credit <= 0 {
                flow.credit += self.rules.quantum;
                self.move_to_old(at);
            } else if flow.waiting.packets == 0 {
                // A flow that was new passes through the old ones, so that it cannot be new again at once.
                if flow.on == On::New && self.old.head != NONE {
                    self.move_to_old(at);
                } else {
                    self.take_off(at);
                    self.go_away(now, at);
                }
            } else if now < flow.until {
                let until = flow.until;
                self.take_off(at);
                self.flows[at as usize].on = On::Held;
                self.pauses += 1;
                self.held.push(Reverse((until, self.pauses, at)));
            } else {
                return Some(at);
            }
        }
    }

    /// Charges a flow for a packet that leaves, and lets it pause if it must.
    fn charge(&mut self, now: Instant, at: u32, size: Bytes) {
        let rules = self.rules;
        let flow = &mut self.flows[at as usize];
        let mut length = size + rules.header;
        flow.credit -= length.get() as i64;
        let Some(rate) = rules.maxrate else { return };
        if rate <= rules.low_rate_threshold {
            flow.credit = 0;
        } else if flow.credit > 0 {
            return;
        } else {
            length = length.max(Bytes::new(rules.quantum as u64));
        }
        let mut pause = rate.time_for(length).min(LONGEST_PAUSE);
        if flow.until != Instant::ZERO {
            pause = pause.saturating_sub(now.saturating_since(flow.until).min(pause.div(2)));
        }
        flow.until = now.saturating_add(pause);
    }
}

impl<P: Arrived> Qdisc<P> for Fq<P> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if !self.rules.limit.admits(self.store.all(), pkt.wire_len()) {
            self.overflows += 1;
            return obs.dropped(now, pkt, Cause::of(Reason::Overflow));
        }
        let at = self.flow_for(now, pkt.flow_hash(self.salt));
        let flow = &self.flows[at as usize];
        let group = if matches!(flow.on, On::Away | On::New) { Group::Sparse } else { Group::Bulk };
        obs.entered(now, &pkt, group.number());
        if flow.waiting.packets >= self.rules.flow_limit {
            self.flow_overflows += 1;
            return obs.dropped(now, pkt, Cause { reason: Reason::Forced, inner: group.number() });
        }
        if flow.on == On::Away {
            self.come_back(now, at);
        }
        self.flows[at as usize].waiting.push(&mut self.store, pkt, group);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        if self.store.all().packets.is_zero() {
            return None;
        }
        self.release(now);
        let at = self.next(now)?;
        let Flow { waiting, until, .. } = &mut self.flows[at as usize];
        let could_leave = *until;
        let (place, group) = waiting.pop(&mut self.store)?;
        let mut packet = self.store.release(place, |_| ())?;
        let could_leave = could_leave.max(packet.arrived());
        if self.rules.ce_threshold.is_some_and(|above| now.saturating_since(could_leave) > above)
            && packet.ecn().is_capable()
        {
            mark(now, &mut packet, Cause { reason: Reason::Forced, inner: group.number() }, obs);
        }
        self.charge(now, at, packet.wire_len());
        obs.left(now, &packet, group.number());
        Some(packet)
    }

    /// The end of the first pause. Flows that do not pause need no call.
    fn deadline(&self) -> Option<Instant> {
        self.held.peek().map(|Reverse((until, ..))| *until)
    }

    fn rate_changed(&mut self, _now: Instant, _rate: Rate) {}

    fn backlog(&self) -> Backlog {
        self.store.all()
    }

    fn holds_back(&self) -> bool {
        self.rules.maxrate.is_some()
    }

    fn reserve(&mut self, packets: usize, flows: usize) {
        self.store.reserve(self.rules.limit.most_of(packets));
        self.flows.reserve(flows);
        self.places.reserve(flows);
        self.held.reserve(flows);
    }

    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        for (name, backlog) in Group::NAMES.into_iter().zip(self.store.groups()) {
            visit(name, Inside::Group(backlog));
        }
    }

    /// Appends `held` (flows that pause) and, since the start, `collisions` (packets that arrived behind packets of another
    /// flow), `overflows` (packets lost at the limit) and `flow_overflows` (at the limit of their flow).
    fn observe(&self, _now: Instant, out: &mut LawSamples) {
        out.extend([
            ("held", self.held.len() as f64),
            ("collisions", self.collisions as f64),
            ("overflows", self.overflows as f64),
            ("flow_overflows", self.flow_overflows as f64),
        ]);
    }
}
