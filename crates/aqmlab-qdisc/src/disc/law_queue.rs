//! A law, the packets that wait under it, and the drop loop that applies the one to the others.

use aqmlab_random::{Numbered, Stream, unit_from_bits};
use aqmlab_units::Instant;

use super::early_law::{EarlyLaw, EarlyQueue, Leaving};
use crate::law::{Decision, Notice};
use crate::{Arrived, Backlog, Cause, Ecn, Fifo, Observer, Packet, Reason};

/// The packets of one queue in order of arrival. A queue among many keeps them in its owner's store.
pub trait Waiting {
    /// A packet.
    type Packet;
    /// What the owner keeps for all its queues.
    type Store;
    /// Appends a packet.
    fn push(&mut self, store: &mut Self::Store, pkt: Self::Packet);
    /// Removes and returns the oldest packet.
    fn pop(&mut self, store: &mut Self::Store) -> Option<Self::Packet>;
    /// Removes and returns the packet at a position in the queue, if there is one; position 0 is the oldest
    /// packet.
    fn take(&mut self, store: &mut Self::Store, place: usize) -> Option<Self::Packet>;
    /// Returns the number of packets.
    fn packets(&self) -> usize;
    /// Returns the backlog that the law sees.
    fn backlog(&self, store: &Self::Store) -> Backlog;
}

impl<P: Packet> Waiting for Fifo<P> {
    type Packet = P;
    type Store = ();
    #[inline(always)]
    fn push(&mut self, (): &mut (), pkt: P) {
        Fifo::push(self, pkt);
    }
    #[inline(always)]
    fn pop(&mut self, (): &mut ()) -> Option<P> {
        Fifo::pop(self)
    }
    fn take(&mut self, (): &mut (), place: usize) -> Option<P> {
        Fifo::take(self, place)
    }
    #[inline(always)]
    fn packets(&self) -> usize {
        self.len()
    }
    #[inline(always)]
    fn backlog(&self, (): &()) -> Backlog {
        Fifo::backlog(self)
    }
}

/// What all queues of one owner share: the rules, the draws, which are numbered across the queues, and the
/// store of their packets.
#[derive(Clone, Debug)]
pub struct DropLoop<S = ()> {
    pub(super) rules: EarlyQueue,
    draws: Numbered,
    /// Number of the next decision, which is also the number of its draw, whether or not the draw
    /// is used.
    decisions: u64,
    pub(super) store: S,
}

impl<S> DropLoop<S> {
    /// Creates the loop with these rules.
    pub fn new(rules: EarlyQueue, draws: Stream, store: S) -> Self {
        DropLoop { rules, draws: draws.numbered(), decisions: 0, store }
    }

    /// Returns the rules.
    pub const fn rules(&self) -> &EarlyQueue {
        &self.rules
    }

    /// Returns the draws, and the number of the draw of the next decision.
    #[inline(always)]
    const fn next_draw(&mut self) -> (&mut Numbered, u64) {
        let number = self.decisions;
        self.decisions += 1;
        (&mut self.draws, number)
    }

    fn spares(&self, ecn: Ecn) -> bool {
        self.rules.spares_not_ect && !ecn.is_capable()
    }
}

/// A law and the packets that wait under it. An owner has one such queue ([`super::Early`]), one per flow, or
/// a pair, but only one [`DropLoop`], which it passes to each call.
#[derive(Clone, Debug)]
pub struct LawQueue<L, W> {
    /// The law.
    pub law: L,
    /// The packets.
    pub waiting: W,
}

impl<P, L, W> LawQueue<L, W>
where
    P: Arrived,
    L: EarlyLaw,
    W: Waiting<Packet = P>,
{
    /// Accepts `pkt` as [`crate::Qdisc::enqueue`] does. `full` says whether the owner's limit leaves no room
    /// for the packet.
    #[inline(always)]
    pub fn enqueue(
        &mut self,
        now: Instant,
        pkt: P,
        full: bool,
        own: &mut DropLoop<W::Store>,
        obs: &mut dyn Observer<P>,
    ) {
        let (backlog, size) = (self.waiting.backlog(&own.store), pkt.wire_len());
        self.law.catch_up(now, backlog);
        self.law.on_arrival(now, backlog, size);
        let mut decision = Decision::Admit;
        if self.law.decides().at_arrival() {
            // A closure of this function has a type of its own for each type of packet, so the law's decision
            // has one caller and is inlined.
            let (draws, number) = own.next_draw();
            let draw = || unit_from_bits(draws.at(number));
            decision = self.law.decide_at_arrival(now, backlog, size, draw);
        }
        match decision {
            Decision::Admit if !full => self.waiting.push(&mut own.store, pkt),
            Decision::Admit => self.overflow(now, pkt, None, own, obs),
            Decision::Notify(notice) => self.notify(now, pkt, (notice, full), own, obs),
        }
    }

    /// Returns the next packet that may leave, as [`crate::Qdisc::dequeue`] does.
    #[inline(always)]
    pub fn dequeue(
        &mut self,
        now: Instant,
        own: &mut DropLoop<W::Store>,
        obs: &mut dyn Observer<P>,
    ) -> Option<P> {
        self.law.catch_up(now, self.waiting.backlog(&own.store));
        let at_departure = self.law.decides().at_departure();
        let next = if at_departure { self.next_decided(now, own, obs) } else { self.pop(now, own) };
        let Some((pkt, leaving)) = next else {
            self.law.on_idle(now);
            return None;
        };
        self.law.on_departure(now, leaving);
        Some(pkt)
    }

    /// Marks or drops the arrival `pkt` as the law requires. This function is not inlined because few packets
    /// need it.
    #[cold]
    fn notify(
        &mut self,
        now: Instant,
        mut pkt: P,
        (notice, full): (Notice, bool),
        own: &mut DropLoop<W::Store>,
        obs: &mut dyn Observer<P>,
    ) {
        let marks = notice.marks(own.rules.ecn, pkt.ecn());
        let passes = marks || own.spares(pkt.ecn());
        if full && (passes || own.rules.overflow_first) {
            return self.overflow(now, pkt, Some(notice), own, obs);
        }
        if !passes {
            return self.drop_early(now, pkt, notice, obs);
        }
        if marks {
            mark(now, &mut pkt, Cause::of(notice.reason), obs);
        }
        self.waiting.push(&mut own.store, pkt);
    }

    /// Drops `pkt`, or drops the law's victim in its place and queues `pkt`, marked if the law chose it.
    #[cold]
    fn overflow(
        &mut self,
        now: Instant,
        mut pkt: P,
        notice: Option<Notice>,
        own: &mut DropLoop<W::Store>,
        obs: &mut dyn Observer<P>,
    ) {
        self.law.on_overflow(now);
        let victim = self.law.victim(self.waiting.packets());
        if let Some(evicted) = self.waiting.take(&mut own.store, victim) {
            if let Some(notice) = notice.filter(|n| n.marks(own.rules.ecn, pkt.ecn())) {
                mark(now, &mut pkt, Cause::of(notice.reason), obs);
            }
            self.waiting.push(&mut own.store, pkt);
            pkt = evicted;
        }
        obs.dropped(now, pkt, Cause::of(Reason::Overflow));
    }

    fn drop_early(&mut self, now: Instant, pkt: P, notice: Notice, obs: &mut dyn Observer<P>) {
        self.law.on_early_drop(now);
        obs.dropped(now, pkt, Cause::of(notice.reason));
    }

    /// Removes the oldest packet and returns it with the properties that the law sees.
    #[inline(always)]
    fn pop(&mut self, now: Instant, own: &mut DropLoop<W::Store>) -> Option<(P, Leaving)> {
        let pkt = self.waiting.pop(&mut own.store)?;
        let sojourn = now.saturating_since(pkt.arrived());
        let leaving = Leaving {
            size: pkt.wire_len(),
            ecn: pkt.ecn(),
            sojourn,
            backlog: self.waiting.backlog(&own.store),
        };
        Some((pkt, leaving))
    }

    /// Returns the next packet that the law allows to leave. The law is up to date.
    #[inline(always)]
    fn next_decided(
        &mut self,
        now: Instant,
        own: &mut DropLoop<W::Store>,
        obs: &mut dyn Observer<P>,
    ) -> Option<(P, Leaving)> {
        while let Some((mut pkt, leaving)) = self.pop(now, own) {
            let (draws, number) = own.next_draw();
            let draw = || unit_from_bits(draws.at(number));
            let Decision::Notify(notice) = self.law.decide_at_departure(now, leaving, draw) else {
                if self.law.marks_admitted(now, leaving, pkt.ecn()) && pkt.ecn().is_capable() {
                    mark(now, &mut pkt, Cause::of(Reason::Forced), obs);
                }
                return Some((pkt, leaving));
            };
            if notice.marks(own.rules.ecn, pkt.ecn()) {
                mark(now, &mut pkt, Cause::of(notice.reason), obs);
                return Some((pkt, leaving));
            }
            if own.spares(pkt.ecn()) {
                return Some((pkt, leaving));
            }
            self.drop_early(now, pkt, notice, obs);
        }
        None
    }
}

/// Sets CE and reports the mark, unless CE is already set.
pub(super) fn mark<P: Packet>(now: Instant, pkt: &mut P, at: Cause, obs: &mut dyn Observer<P>) {
    if pkt.ecn() != Ecn::Ce {
        pkt.mark_ce();
        obs.marked(now, pkt, at);
    }
}
