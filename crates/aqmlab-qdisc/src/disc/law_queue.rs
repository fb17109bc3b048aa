//! A law, the packets that wait under it, and the drop loop that applies the one to the others.

use aqmlab_random::{Numbered, Stream, unit_from_bits};
use aqmlab_units::Instant;

use super::early_law::{EarlyLaw, EarlyQueue, Leaving};
use crate::law::{Decision, Notice};
use crate::{Arrived, Backlog, Cause, Ecn, Fifo, Observer, Packet, Reason};

/// The packets of one queue in order of arrival. A queue among many keeps them in its owner's store, where a packet
/// stays, in its place, while it leaves.
pub trait Waiting {
    /// A packet.
    type Packet;
    /// The inner queues of the owner in which a packet arrives.
    type Group: Copy;
    /// What the owner keeps for all its queues.
    type Store;
    /// Where a packet is that has been removed from its queue. It must be released before another one is pushed.
    type Place;
    /// Appends a packet.
    fn push(&mut self, store: &mut Self::Store, pkt: Self::Packet, group: Self::Group);
    /// Removes the oldest packet.
    fn pop(&mut self, store: &mut Self::Store) -> Option<(Self::Place, Self::Group)>;
    /// Removes the packet at a position in the queue, if there is one; position 0 is the oldest packet.
    fn take(&mut self, store: &mut Self::Store, position: usize) -> Option<(Self::Place, Self::Group)>;
    /// Returns the packet at a place.
    fn packet<'a>(store: &'a mut Self::Store, place: &'a mut Self::Place) -> Option<&'a mut Self::Packet>;
    /// Frees a place and returns its packet.
    fn release(store: &mut Self::Store, place: Self::Place) -> Option<Self::Packet>;
    /// Returns the number of a group, as in [`Cause::inner`].
    fn inner(group: Self::Group) -> u16;
    /// Returns the number of packets.
    fn packets(&self) -> usize;
    /// Returns the backlog that the law sees.
    fn backlog(&self, store: &Self::Store) -> Backlog;
}

impl<P: Packet> Waiting for Fifo<P> {
    type Packet = P;
    type Group = ();
    type Store = ();
    type Place = P;
    #[inline(always)]
    fn push(&mut self, (): &mut (), pkt: P, (): ()) {
        Fifo::push(self, pkt);
    }
    #[inline(always)]
    fn pop(&mut self, (): &mut ()) -> Option<(P, ())> {
        Some((Fifo::pop(self)?, ()))
    }
    fn take(&mut self, (): &mut (), position: usize) -> Option<(P, ())> {
        Some((Fifo::take(self, position)?, ()))
    }
    #[inline(always)]
    fn packet<'a>((): &'a mut (), place: &'a mut P) -> Option<&'a mut P> {
        Some(place)
    }
    #[inline(always)]
    fn release((): &mut (), place: P) -> Option<P> {
        Some(place)
    }
    #[inline(always)]
    fn inner((): ()) -> u16 {
        0
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

/// A packet that has been removed from its queue.
pub struct Out<W: Waiting> {
    /// Where it is.
    pub place: W::Place,
    /// The group in which it arrived.
    pub group: W::Group,
    /// What the law sees of it.
    pub leaving: Leaving,
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
    /// Accepts `pkt`, which arrives in `group`, as [`crate::Qdisc::enqueue`] does. `full` says whether the owner's
    /// limit leaves no room for the packet.
    #[inline(always)]
    pub fn enqueue(
        &mut self,
        now: Instant,
        (pkt, group): (P, W::Group),
        full: bool,
        own: &mut DropLoop<W::Store>,
        obs: &mut dyn Observer<P>,
    ) {
        match self.decide_arrival(now, &pkt, own) {
            Decision::Admit if !full => self.waiting.push(&mut own.store, pkt, group),
            Decision::Admit => self.overflow(now, (pkt, group), None, own, obs),
            Decision::Notify(notice) => self.notify(now, (pkt, group), (notice, full), own, obs),
        }
    }

    /// Accepts a packet as [`crate::Qdisc::enqueue_spared`] does.
    pub fn enqueue_spared(
        &mut self,
        now: Instant,
        (pkt, group): (P, W::Group),
        full: bool,
        own: &mut DropLoop<W::Store>,
        obs: &mut dyn Observer<P>,
    ) {
        self.decide_arrival(now, &pkt, own);
        if full {
            return self.overflow(now, (pkt, group), None, own, obs);
        }
        self.waiting.push(&mut own.store, pkt, group);
    }

    /// Returns the law's decision about an arrival.
    #[inline(always)]
    fn decide_arrival(&mut self, now: Instant, pkt: &P, own: &mut DropLoop<W::Store>) -> Decision {
        let (backlog, size) = (self.waiting.backlog(&own.store), pkt.wire_len());
        self.law.catch_up(now, backlog);
        self.law.on_arrival(now, backlog, size);
        if !self.law.decides().at_arrival() {
            return Decision::Admit;
        }
        // A closure of this function has a type of its own for each type of packet, so the law's decision is
        // inlined.
        let (draws, number) = own.next_draw();
        let draw = || unit_from_bits(draws.at(number));
        self.law.decide_at_arrival(now, backlog, size, draw)
    }

    /// Removes the next packet that may leave, as [`crate::Qdisc::dequeue`] does.
    #[inline(always)]
    pub fn dequeue(
        &mut self,
        now: Instant,
        own: &mut DropLoop<W::Store>,
        obs: &mut dyn Observer<P>,
    ) -> Option<Out<W>> {
        self.law.catch_up(now, self.waiting.backlog(&own.store));
        let Some(Out { mut place, group, leaving }) = self.pop(now, own) else {
            self.law.on_idle(now);
            return None;
        };
        if self.law.decides().at_departure() {
            if let Decision::Notify(notice) = self.decide_departure(now, leaving, own) {
                return self.notify_leaving(now, Out { place, group, leaving }, notice, own, obs);
            }
            if self.law.marks_admitted(now, leaving, leaving.ecn) {
                Self::mark_admitted(now, &mut place, group, own, obs);
            }
        }
        self.law.on_departure(now, leaving);
        Some(Out { place, group, leaving })
    }

    /// Marks or drops the arrival `pkt` as the law requires. This function is not inlined because few packets
    /// need it.
    #[cold]
    fn notify(
        &mut self,
        now: Instant,
        (mut pkt, group): (P, W::Group),
        (notice, full): (Notice, bool),
        own: &mut DropLoop<W::Store>,
        obs: &mut dyn Observer<P>,
    ) {
        let marks = notice.marks(own.rules.ecn, pkt.ecn());
        let passes = marks || own.spares(pkt.ecn());
        if full && (passes || own.rules.overflow_first) {
            return self.overflow(now, (pkt, group), Some(notice), own, obs);
        }
        let at = Cause { reason: notice.reason, inner: W::inner(group) };
        if !passes {
            self.law.on_early_drop(now);
            return obs.dropped(now, pkt, at);
        }
        if marks {
            mark(now, &mut pkt, at, obs);
        }
        self.waiting.push(&mut own.store, pkt, group);
    }

    /// Drops `pkt`, or drops the law's victim in its place and queues `pkt`, marked if the law chose it.
    #[cold]
    fn overflow(
        &mut self,
        now: Instant,
        (mut pkt, mut group): (P, W::Group),
        notice: Option<Notice>,
        own: &mut DropLoop<W::Store>,
        obs: &mut dyn Observer<P>,
    ) {
        self.law.on_overflow(now);
        let victim = self.law.victim(self.waiting.packets());
        if let Some((place, of_evicted)) = self.waiting.take(&mut own.store, victim)
            && let Some(evicted) = W::release(&mut own.store, place)
        {
            if let Some(notice) = notice.filter(|n| n.marks(own.rules.ecn, pkt.ecn())) {
                mark(now, &mut pkt, Cause { reason: notice.reason, inner: W::inner(group) }, obs);
            }
            self.waiting.push(&mut own.store, pkt, group);
            (pkt, group) = (evicted, of_evicted);
        }
        obs.dropped(now, pkt, Cause { reason: Reason::Overflow, inner: W::inner(group) });
    }

    /// Removes the oldest packet.
    #[inline(always)]
    fn pop(&mut self, now: Instant, own: &mut DropLoop<W::Store>) -> Option<Out<W>> {
        let (mut place, group) = self.waiting.pop(&mut own.store)?;
        let pkt = W::packet(&mut own.store, &mut place)?;
        let sojourn = now.saturating_since(pkt.arrived());
        let (size, ecn) = (pkt.wire_len(), pkt.ecn());
        let leaving = Leaving { size, ecn, sojourn, backlog: self.waiting.backlog(&own.store) };
        Some(Out { place, group, leaving })
    }

    /// Lets the law, which is up to date, decide on a packet that has been removed.
    #[inline(always)]
    fn decide_departure(&mut self, now: Instant, leaving: Leaving, own: &mut DropLoop<W::Store>) -> Decision {
        let (draws, number) = own.next_draw();
        let draw = || unit_from_bits(draws.at(number));
        self.law.decide_at_departure(now, leaving, draw)
    }

    /// Marks a packet that the law has not chosen.
    #[inline]
    fn mark_admitted(
        now: Instant,
        place: &mut W::Place,
        group: W::Group,
        own: &mut DropLoop<W::Store>,
        obs: &mut dyn Observer<P>,
    ) {
        if let Some(pkt) = W::packet(&mut own.store, place).filter(|pkt| pkt.ecn().is_capable()) {
            mark(now, pkt, Cause { reason: Reason::Forced, inner: W::inner(group) }, obs);
        }
    }

    /// Marks or drops a packet that has been removed, as the law requires. After a drop, the law decides on the
    /// packets behind it, until one may leave. Like the other functions for packets that the law has chosen, this one
    /// is not inlined.
    #[cold]
    fn notify_leaving(
        &mut self,
        now: Instant,
        mut out: Out<W>,
        mut notice: Notice,
        own: &mut DropLoop<W::Store>,
        obs: &mut dyn Observer<P>,
    ) -> Option<Out<W>> {
        loop {
            let at = Cause { reason: notice.reason, inner: W::inner(out.group) };
            if notice.marks(own.rules.ecn, out.leaving.ecn) {
                mark(now, W::packet(&mut own.store, &mut out.place)?, at, obs);
                break;
            }
            if own.spares(out.leaving.ecn) {
                break;
            }
            self.law.on_early_drop(now);
            obs.dropped(now, W::release(&mut own.store, out.place)?, at);
            let Some(next) = self.pop(now, own) else {
                self.law.on_idle(now);
                return None;
            };
            out = next;
            match self.decide_departure(now, out.leaving, own) {
                Decision::Notify(further) => notice = further,
                Decision::Admit => {
                    if self.law.marks_admitted(now, out.leaving, out.leaving.ecn) {
                        Self::mark_admitted(now, &mut out.place, out.group, own, obs);
                    }
                    break;
                }
            }
        }
        self.law.on_departure(now, out.leaving);
        Some(out)
    }
}

/// Sets CE and reports the mark, unless CE is already set.
pub(super) fn mark<P: Packet>(now: Instant, pkt: &mut P, at: Cause, obs: &mut dyn Observer<P>) {
    if pkt.ecn() != Ecn::Ce {
        pkt.mark_ce();
        obs.marked(now, pkt, at);
    }
}
