//! A port with classes: a classifier, a queue per class, and a scheduler.

use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;

use aqmlab_units::{Bytes, Instant, Rate};

use crate::law::RoundRobin;
use crate::{Arrived, Backlog, Cause, Inside, LawSamples, Limit, Observer, Packet, Qdisc, Reason};

/// The field by which packets are classified, and the class of each value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Classifier {
    /// By traffic class; holds the queue of each class.
    TrafficClass(Vec<u16>),
    /// By differentiated-services code point; holds the queue of each code point.
    Dscp(Vec<u16>),
    /// By destination port or, if that belongs to no class, by source port; holds pairs of port and queue, in
    /// ascending order.
    Port(Vec<(u16, u16)>),
}

/// The order in which the classes send.
#[derive(Clone, Debug)]
pub enum Scheduler {
    /// The first class that has something to send.
    Strict,
    /// In turn, this many packets per round.
    WeightedRoundRobin(RoundRobin),
    /// In turn, this many bytes per round, plus the unused credit of earlier rounds.
    DeficitRoundRobin(RoundRobin),
}

/// One class: its name, its queue, and its share of the link.
#[derive(Clone, Debug)]
pub struct ClassQueue<Q> {
    /// Its name.
    pub name: String,
    /// Its queue.
    pub queue: Q,
    /// The fraction of the link's rate that its queue assumes: numerator and denominator.
    pub share: [u64; 2],
}

/// A class with its state in this port.
#[derive(Clone, Debug)]
struct Inner<Q> {
    class: ClassQueue<Q>,
    /// Its number among the inner queues.
    number: u16,
    /// Whether its queue itself contains queues.
    nested: bool,
}

/// A port with classes.
#[derive(Clone, Debug)]
pub struct Classes<P, Q> {
    classes: Vec<Inner<Q>>,
    classifier: Classifier,
    /// The class of packets that match none of the classifier's values.
    rest: u16,
    scheduler: Scheduler,
    /// The buffer that all classes share, in addition to their own limits.
    limit: Option<Limit>,
    /// The backlog of all classes together.
    backlog: Backlog,
    /// Classes that have something to send, one bit each.
    waiting: u64,
    /// Classes, one bit each, whose queues have had an arrival since a `dequeue` last found them empty. Once
    /// such a queue is empty, it must still be notified that the link found no packet in it.
    busy: u64,
    packets: PhantomData<fn(P)>,
}

/// Largest number of classes per port: one bit each in a word.
pub const MOST_CLASSES: usize = 64;

impl<P: Packet, Q: Qdisc<P>> Classes<P, Q> {
    /// Creates empty queues. `rest` is the class of packets that match none of the classifier's
    /// values. An arrival for which a shared `limit` has no room is refused before it reaches its
    /// class, whichever class fills the buffer.
    ///
    /// # Panics
    /// If there are no classes, or more than [`MOST_CLASSES`].
    pub fn new(
        classes: Vec<ClassQueue<Q>>,
        (classifier, rest): (Classifier, u16),
        scheduler: Scheduler,
        limit: Option<Limit>,
    ) -> Self {
        assert!(
            (1..=MOST_CLASSES).contains(&classes.len()),
            "a port has between 1 and {MOST_CLASSES} classes"
        );
        let mut next = 1;
        let numbered = classes.into_iter().map(|class| {
            let (number, inside) = (next, inner_count(&class.queue));
            next += 1 + inside;
            Inner { class, number, nested: inside > 0 }
        });
        Classes {
            classes: numbered.collect(),
            classifier,
            rest,
            scheduler,
            limit,
            backlog: Backlog::default(),
            waiting: 0,
            busy: 0,
            packets: PhantomData,
        }
    }
}

/// Returns the number of queues inside `queue`, at all levels.
pub(crate) fn inner_count<P: Packet>(queue: &dyn Qdisc<P>) -> u16 {
    let mut count = 0;
    queue.each_inner(&mut |_, inner| {
        count += 1;
        if let Inside::Queue(queue) = inner {
            count += inner_count(queue);
        }
    });
    count
}

impl Classifier {
    fn class_of(&self, pkt: &impl Arrived) -> Option<u16> {
        match self {
            Classifier::TrafficClass(classes) => classes.get(pkt.class()).copied(),
            Classifier::Dscp(classes) => classes.get(usize::from(pkt.dscp().0)).copied(),
            Classifier::Port(classes) => {
                let of = |port| classes.binary_search_by_key(&port, |(port, _)| *port).ok();
                let [source, destination] = pkt.ports()?;
                of(destination).or_else(|| of(source)).map(|place| classes[place].1)
            }
        }
    }
}

impl<P: Arrived, Q: Qdisc<P>> Classes<P, Q> {
    /// Runs `call` on the queue of one class and updates the total backlog of all classes.
    fn with<T>(
        &mut self,
        index: usize,
        obs: &mut dyn Observer<P>,
        call: impl FnOnce(&mut Q, &mut InnerObserver<'_, P>) -> T,
    ) -> T {
        let inner = &mut self.classes[index];
        let before = inner.class.queue.backlog();
        let mut obs = InnerObserver { obs, number: inner.number, nested: inner.nested };
        let answer = call(&mut inner.class.queue, &mut obs);
        let after = inner.class.queue.backlog();
        self.backlog.packets += after.packets;
        self.backlog.packets -= before.packets;
        self.backlog.bytes += after.bytes;
        self.backlog.bytes -= before.bytes;
        let bit = 1 << index;
        self.waiting = if after.packets.is_zero() { self.waiting & !bit } else { self.waiting | bit };
        answer
    }

    /// Polls each queue that has become empty since the last `dequeue`, so that the queue knows that the link
    /// found no packet in it.
    fn notify_idle(&mut self, now: Instant, obs: &mut dyn Observer<P>) {
        let mut idle = self.busy & !self.waiting;
        while idle != 0 {
            let index = idle.trailing_zeros() as usize;
            idle &= idle - 1;
            self.busy &= !(1 << index);
            let none = self.with(index, obs, |queue, obs| queue.dequeue(now, obs));
            debug_assert!(none.is_none(), "an empty queue returns no packet");
        }
    }

    /// Returns the class that sends next.
    fn next(&mut self) -> Option<usize> {
        let classes = &mut self.classes;
        match &mut self.scheduler {
            Scheduler::Strict => (self.waiting != 0).then(|| self.waiting.trailing_zeros() as usize),
            Scheduler::WeightedRoundRobin(robin) => robin.turn(|_| Some(1)),
            Scheduler::DeficitRoundRobin(robin) => {
                robin.turn(|index| classes[index].class.queue.next_len().map(Bytes::get))
            }
        }
    }

    /// Records that the class whose turn it was has sent `pkt`, or has lost all its packets.
    fn account(&mut self, index: usize, pkt: Option<&P>) {
        let (robin, cost) = match &mut self.scheduler {
            Scheduler::Strict => return,
            Scheduler::WeightedRoundRobin(robin) => (robin, pkt.map_or(0, |_| 1)),
            Scheduler::DeficitRoundRobin(robin) => (robin, pkt.map_or(0, |pkt| pkt.wire_len().get())),
        };
        robin.charge(index, cost);
        if self.waiting & 1 << index == 0 {
            robin.deactivate(index);
        }
    }
}

/// Adds an inner queue's number to everything that the queue reports.
struct InnerObserver<'a, P> {
    obs: &'a mut dyn Observer<P>,
    number: u16,
    nested: bool,
}

impl<P> InnerObserver<'_, P> {
    fn seen_from_outside(&self, at: Cause) -> Cause {
        Cause { reason: at.reason, inner: self.number + if self.nested { at.inner } else { 0 } }
    }
}

impl<P> Observer<P> for InnerObserver<'_, P> {
    fn dropped(&mut self, now: Instant, pkt: P, at: Cause) {
        self.obs.dropped(now, pkt, self.seen_from_outside(at));
    }
    fn marked(&mut self, now: Instant, pkt: &P, at: Cause) {
        self.obs.marked(now, pkt, self.seen_from_outside(at));
    }
    fn entered(&mut self, now: Instant, pkt: &P, inner: u16) {
        self.obs.entered(now, pkt, self.number + inner);
    }
    fn left(&mut self, now: Instant, pkt: &P, inner: u16) {
        self.obs.left(now, pkt, self.number + inner);
    }
}

impl<P: Arrived, Q: Qdisc<P>> Qdisc<P> for Classes<P, Q> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.limit.is_some_and(|limit| !limit.admits(self.backlog, pkt.wire_len())) {
            return obs.dropped(now, pkt, Cause::of(Reason::Overflow));
        }
        let index = usize::from(self.classifier.class_of(&pkt).unwrap_or(self.rest));
        let was_empty = self.waiting & 1 << index == 0;
        obs.entered(now, &pkt, self.classes[index].number);
        self.with(index, obs, |queue, obs| queue.enqueue(now, pkt, obs));
        self.busy |= 1 << index;
        if was_empty && self.waiting & 1 << index != 0 {
            match &mut self.scheduler {
                Scheduler::Strict => {}
                Scheduler::WeightedRoundRobin(robin) | Scheduler::DeficitRoundRobin(robin) => {
                    robin.activate(index);
                }
            }
        }
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.notify_idle(now, obs);
        while let Some(index) = self.next() {
            let pkt = self.with(index, obs, |queue, obs| queue.dequeue(now, obs));
            self.account(index, pkt.as_ref());
            if let Some(pkt) = pkt {
                obs.left(now, &pkt, self.classes[index].number);
                return Some(pkt);
            }
            // The queue lost all its packets in this call, which also told it that the link found
            // none.
            self.busy &= !(1 << index);
        }
        None
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        for inner in &mut self.classes {
            let share = share_of(rate, inner.class.share);
            inner.class.queue.rate_changed(now, share);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn next_len(&mut self) -> Option<Bytes> {
        let index = self.next()?;
        self.classes[index].class.queue.next_len()
    }

    fn reserve(&mut self, packets: usize, flows: usize) {
        self.classes.iter_mut().for_each(|inner| inner.class.queue.reserve(packets, flows));
    }

    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        self.classes.iter().for_each(|inner| visit(&inner.class.name, Inside::Queue(&inner.class.queue)));
    }

    /// A port with classes has no law of its own; each of its queues reports the values of its own law.
    fn observe(&self, _now: Instant, _out: &mut LawSamples) {}
}

/// Returns a fraction of a rate, at least one bit per second.
pub(crate) fn share_of(rate: Rate, [part, whole]: [u64; 2]) -> Rate {
    let bps = u128::from(rate.as_bps()) * u128::from(part) / u128::from(whole);
    Rate::bps(u64::try_from(bps).unwrap_or(u64::MAX).max(1))
}
