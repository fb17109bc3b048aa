//! A port with classes: a classifier, a queue per class, and a scheduler.

use alloc::vec::Vec;
use core::marker::PhantomData;

use aqmlab_units::{Bytes, Instant, Rate};

use super::class_queues::{ClassQueue, ClassQueues, bits};
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

/// A port with classes.
#[derive(Clone, Debug)]
pub struct Classes<P, Q> {
    queues: ClassQueues<Q>,
    classifier: Classifier,
    /// The class of packets that match none of the classifier's values.
    rest: u16,
    scheduler: Scheduler,
    /// The buffer that all classes share, in addition to their own limits.
    limit: Option<Limit>,
    packets: PhantomData<fn(P)>,
}

impl<P: Packet, Q: Qdisc<P>> Classes<P, Q> {
    /// Creates empty queues. `rest` is the class of packets that match none of the classifier's
    /// values. An arrival for which a shared `limit` has no room is refused before it reaches its
    /// class, whichever class fills the buffer.
    ///
    /// # Panics
    /// If there are no classes, or more than [`MOST_CLASSES`](super::MOST_CLASSES).
    pub fn new(
        classes: Vec<ClassQueue<Q>>,
        (classifier, rest): (Classifier, u16),
        scheduler: Scheduler,
        limit: Option<Limit>,
    ) -> Self {
        Classes {
            queues: ClassQueues::new(classes),
            classifier,
            rest,
            scheduler,
            limit,
            packets: PhantomData,
        }
    }
}

impl Classifier {
    /// Returns the class of a packet, if one of the values matches it.
    pub(super) fn class_of(&self, pkt: &impl Arrived) -> Option<u16> {
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
    /// Returns the class that sends next.
    fn next(&mut self) -> Option<usize> {
        let queues = &mut self.queues;
        match &mut self.scheduler {
            Scheduler::Strict => bits(queues.ready()).next(),
            Scheduler::WeightedRoundRobin(robin) => robin.turn(|_| Some(1)),
            Scheduler::DeficitRoundRobin(robin) => robin.turn(|index| queues.next_len(index).map(Bytes::get)),
        }
    }

    /// Records that the class whose turn it was has sent `pkt`, has lost all its packets, or holds them back.
    fn account(&mut self, index: usize, pkt: Option<&P>) {
        let (robin, cost) = match &mut self.scheduler {
            Scheduler::Strict => return,
            Scheduler::WeightedRoundRobin(robin) => (robin, pkt.map_or(0, |_| 1)),
            Scheduler::DeficitRoundRobin(robin) => (robin, pkt.map_or(0, |pkt| pkt.wire_len().get())),
        };
        robin.charge(index, cost);
        if self.queues.is_empty(index) {
            robin.deactivate(index);
        } else if pkt.is_none() {
            robin.suspend(index);
        }
    }

    /// Lets a class take its turns that has a packet, and had none that could leave.
    fn activate(&mut self, index: usize, was_empty: bool) {
        match &mut self.scheduler {
            Scheduler::Strict => {}
            Scheduler::WeightedRoundRobin(robin) | Scheduler::DeficitRoundRobin(robin) => {
                if was_empty {
                    robin.activate(index);
                } else {
                    robin.resume(index);
                }
            }
        }
    }
}

impl<P: Arrived, Q: Qdisc<P>> Qdisc<P> for Classes<P, Q> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.limit.is_some_and(|limit| !limit.admits(self.queues.backlog(), pkt.wire_len())) {
            return obs.dropped(now, pkt, Cause::of(Reason::Overflow));
        }
        let index = usize::from(self.classifier.class_of(&pkt).unwrap_or(self.rest));
        let was_empty = self.queues.is_empty(index);
        if self.queues.enqueue(index, now, pkt, obs) {
            self.activate(index, was_empty);
        }
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.queues.notify_idle(now, obs);
        for index in bits(self.queues.released(now)) {
            self.activate(index, false);
        }
        while let Some(index) = self.next() {
            let pkt = self.queues.dequeue(index, now, obs);
            self.account(index, pkt.as_ref());
            if pkt.is_some() {
                return pkt;
            }
        }
        None
    }

    fn deadline(&self) -> Option<Instant> {
        self.queues.deadline()
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        for class in self.queues.iter_mut() {
            let share = share_of(rate, class.share);
            class.queue.rate_changed(now, share);
        }
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn next_len(&mut self) -> Option<Bytes> {
        let index = self.next()?;
        self.queues.next_len(index)
    }

    fn holds_back(&self) -> bool {
        self.queues.holds_back()
    }

    fn reserve(&mut self, packets: usize, flows: usize) {
        self.queues.iter_mut().for_each(|class| class.queue.reserve(packets, flows));
    }

    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        self.queues.each_inner(visit);
    }

    /// A port with classes has no law of its own; each of its queues reports the values of its own law.
    fn observe(&self, _now: Instant, _out: &mut LawSamples) {}
}

/// Returns a fraction of a rate, at least one bit per second.
pub(crate) fn share_of(rate: Rate, [part, whole]: [u64; 2]) -> Rate {
    let bps = u128::from(rate.as_bps()) * u128::from(part) / u128::from(whole);
    Rate::bps(u64::try_from(bps).unwrap_or(u64::MAX).max(1))
}
