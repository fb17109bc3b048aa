//! A FIFO of limited length that consults a law about each packet: the queue of RED, PI, REM, BLUE
//! and related disciplines.

use aqmlab_random::{Numbered, Stream, unit_from_bits};
use aqmlab_units::{Bytes, Instant, Rate, Span};

use crate::info::Decides;
use crate::law::{Decision, Notice};
use crate::{Arrived, Backlog, Cause, Ecn, Fifo, LawSamples, Limit, Observer, Packet, Qdisc, Reason};

/// A law that decides on individual packets. Every law *sees* all arrivals and departures. It
/// *decides* only at arrivals, only at departures, or at both, as [`EarlyLaw::decides`] returns.
///
/// Whenever the queue is called, it first calls [`EarlyLaw::catch_up`], so the other methods see a
/// law that is up to date. Each decision has its own draw, a number in [0, 1) that `draw` returns,
/// whether or not the law uses it.
///
/// A port may look ahead unless the law decides at departures or names victims. A port that looks ahead still
/// reports each departure at the instant of that departure, so the law sees no difference.
pub trait EarlyLaw {
    /// The occasions (arrivals, departures or both) on which laws of this type may decide, whatever
    /// their parameters.
    const DECIDES: Decides = Decides::Enqueue;

    /// Returns the occasions on which this law decides, given its parameters. The result never
    /// changes.
    #[inline(always)]
    fn decides(&self) -> Decides {
        Self::DECIDES
    }

    /// Performs all updates that are due up to and including `now`. `backlog` has been constant since the
    /// last call.
    #[inline(always)]
    fn catch_up(&mut self, _now: Instant, _backlog: Backlog) {}

    /// Records that a packet of `size` arrives and finds `backlog` waiting, whether or not there is
    /// room for the packet.
    #[inline(always)]
    fn on_arrival(&mut self, _now: Instant, _backlog: Backlog, _size: Bytes) {}

    /// Decides on the packet that [`EarlyLaw::on_arrival`] has just seen, even if there is no room for it.
    #[inline(always)]
    fn decide_at_arrival(
        &mut self,
        _now: Instant,
        _backlog: Backlog,
        _size: Bytes,
        _draw: impl FnOnce() -> f64,
    ) -> Decision {
        Decision::Admit
    }

    /// Records that a packet is lost because there is no room for the arrival.
    #[inline(always)]
    fn on_overflow(&mut self, _now: Instant) {}

    /// Returns whether [`EarlyLaw::victim`] may name a packet other than the arrival. The result never
    /// changes; if it is true, the limit must be in packets.
    #[inline(always)]
    fn evicts(&self) -> bool {
        false
    }

    /// Returns which packet is lost for lack of room: a position among the `waiting` packets, 0 being the
    /// oldest, or `waiting` itself for the arrival.
    #[inline(always)]
    fn victim(&mut self, waiting: usize) -> usize {
        waiting
    }

    /// Records that a packet chosen by the law is dropped, not marked.
    #[inline(always)]
    fn on_early_drop(&mut self, _now: Instant) {}

    /// Records that the link polled the empty queue.
    #[inline(always)]
    fn on_idle(&mut self, _now: Instant) {}

    /// Decides on a packet that is about to leave. A packet that the law chooses but that cannot be
    /// marked is dropped ([`EarlyLaw::on_early_drop`]), and the next one is judged at the same
    /// instant.
    #[inline(always)]
    fn decide_at_departure(&mut self, _now: Instant, _pkt: Leaving, _draw: impl FnOnce() -> f64) -> Decision {
        Decision::Admit
    }

    /// Records that a packet leaves for the link.
    #[inline(always)]
    fn on_departure(&mut self, _now: Instant, _pkt: Leaving) {}

    /// Changes the link's rate.
    fn rate_changed(&mut self, _now: Instant, _rate: Rate) {}

    /// Appends the law's values at `now`, given the `backlog`, which has been constant since the last call.
    fn observe(&self, now: Instant, backlog: Backlog, out: &mut LawSamples);
}

/// The properties of a leaving packet that a law sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaving {
    /// Its length.
    pub size: Bytes,
    /// Its waiting time.
    pub sojourn: Span,
    /// The backlog behind it.
    pub backlog: Backlog,
}

/// The parameters of the queue other than those of its law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EarlyQueue {
    /// Buffer limit.
    pub limit: Limit,
    /// Whether ECN-capable packets are marked instead of dropped if the law allows it.
    pub ecn: bool,
    /// Whether the loss of a packet that finds the buffer full counts as an overflow even if the
    /// law has chosen the packet.
    pub overflow_first: bool,
    /// Whether a chosen packet that is not ECN-capable passes untouched.
    pub spares_not_ect: bool,
}

/// The queue and its law.
#[derive(Clone, Debug)]
pub struct Early<P, L> {
    law: L,
    queue: EarlyQueue,
    fifo: Fifo<P>,
    draws: Numbered,
    /// Number of the next decision, which is also the number of its draw, whether or not the draw
    /// is used.
    decisions: u64,
}

impl<P: Packet, L: EarlyLaw> Early<P, L> {
    /// Creates an empty queue behind an idle link.
    pub fn new(law: L, queue: EarlyQueue, draws: Stream) -> Self {
        let fifo = Fifo::for_limit(queue.limit);
        Early { law, queue, fifo, draws: draws.numbered(), decisions: 0 }
    }

    /// Returns the law in its state after the last call.
    pub const fn law(&self) -> &L {
        &self.law
    }

    /// Returns the queue's parameters, without those of the law.
    pub const fn queue(&self) -> &EarlyQueue {
        &self.queue
    }

    /// Marks or drops the arrival `pkt` as the law requires. This function is not inlined because few packets
    /// need it.
    #[cold]
    fn notify(&mut self, now: Instant, mut pkt: P, notice: Notice, full: bool, obs: &mut dyn Observer<P>) {
        let marks = notice.marks(self.queue.ecn, pkt.ecn());
        let passes = marks || self.spared(pkt.ecn());
        if full && (passes || self.queue.overflow_first) {
            return self.overflow(now, pkt, Some(notice), obs);
        }
        if !passes {
            return self.drop_early(now, pkt, notice, obs);
        }
        if marks {
            mark(now, &mut pkt, notice, obs);
        }
        self.fifo.push(pkt);
    }

    /// Drops `pkt`, or drops the law's victim in its place and queues `pkt`, marked if the law chose it.
    #[cold]
    fn overflow(&mut self, now: Instant, mut pkt: P, notice: Option<Notice>, obs: &mut dyn Observer<P>) {
        self.law.on_overflow(now);
        let victim = self.law.victim(self.fifo.len());
        if let Some(evicted) = self.fifo.take(victim) {
            if let Some(notice) = notice.filter(|n| n.marks(self.queue.ecn, pkt.ecn())) {
                mark(now, &mut pkt, notice, obs);
            }
            self.fifo.push(pkt);
            pkt = evicted;
        }
        obs.dropped(now, pkt, Cause::of(Reason::Overflow));
    }

    fn drop_early(&mut self, now: Instant, pkt: P, notice: Notice, obs: &mut dyn Observer<P>) {
        self.law.on_early_drop(now);
        obs.dropped(now, pkt, Cause::of(notice.reason));
    }

    fn spared(&self, ecn: Ecn) -> bool {
        self.queue.spares_not_ect && !ecn.is_capable()
    }
}

impl<P: Arrived, L: EarlyLaw> Early<P, L> {
    /// Removes the oldest packet and returns it with the properties that the law sees.
    #[inline(always)]
    fn pop(&mut self, now: Instant) -> Option<(P, Leaving)> {
        let pkt = self.fifo.pop()?;
        let sojourn = now.saturating_since(pkt.arrived());
        let leaving = Leaving { size: pkt.wire_len(), sojourn, backlog: self.fifo.backlog() };
        Some((pkt, leaving))
    }

    /// Returns the next packet that the law allows to leave. The caller must first have brought the law up to
    /// date.
    fn next_decided(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<(P, Leaving)> {
        while let Some((mut pkt, leaving)) = self.pop(now) {
            let number = self.decisions;
            self.decisions += 1;
            let draw = || unit_from_bits(self.draws.at(number));
            let Decision::Notify(notice) = self.law.decide_at_departure(now, leaving, draw) else {
                return Some((pkt, leaving));
            };
            if notice.marks(self.queue.ecn, pkt.ecn()) {
                mark(now, &mut pkt, notice, obs);
                return Some((pkt, leaving));
            }
            if self.spared(pkt.ecn()) {
                return Some((pkt, leaving));
            }
            self.drop_early(now, pkt, notice, obs);
        }
        None
    }
}

/// Sets CE and reports the mark, unless CE is already set.
fn mark<P: Packet>(now: Instant, pkt: &mut P, notice: Notice, obs: &mut dyn Observer<P>) {
    if pkt.ecn() != Ecn::Ce {
        pkt.mark_ce();
        obs.marked(now, pkt, Cause::of(notice.reason));
    }
}

impl<P: Arrived, L: EarlyLaw> Qdisc<P> for Early<P, L> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let (backlog, size) = (self.fifo.backlog(), pkt.wire_len());
        self.law.catch_up(now, backlog);
        let full = !self.queue.limit.admits(backlog, size);
        self.law.on_arrival(now, backlog, size);
        let mut decision = Decision::Admit;
        if self.law.decides().at_arrival() {
            let number = self.decisions;
            self.decisions += 1;
            let draw = || unit_from_bits(self.draws.at(number));
            decision = self.law.decide_at_arrival(now, backlog, size, draw);
        }
        match decision {
            Decision::Admit if !full => self.fifo.push(pkt),
            Decision::Admit => self.overflow(now, pkt, None, obs),
            Decision::Notify(notice) => self.notify(now, pkt, notice, full, obs),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.law.catch_up(now, self.fifo.backlog());
        let next =
            if self.law.decides().at_departure() { self.next_decided(now, obs) } else { self.pop(now) };
        let Some((pkt, leaving)) = next else {
            self.law.on_idle(now);
            return None;
        };
        self.law.on_departure(now, leaving);
        Some(pkt)
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        self.law.catch_up(now, self.fifo.backlog());
        self.law.rate_changed(now, rate);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn next_len(&mut self) -> Option<Bytes> {
        self.fifo.head().map(P::wire_len)
    }

    fn settles_at_enqueue(&self) -> bool {
        !self.law.decides().at_departure() && !self.law.evicts()
    }

    fn reserve(&mut self, packets: usize, _flows: usize) {
        self.fifo.reserve(self.queue.limit, packets);
    }

    fn observe(&self, now: Instant, out: &mut LawSamples) {
        self.law.observe(now, self.fifo.backlog(), out);
    }
}
