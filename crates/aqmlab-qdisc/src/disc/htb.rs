//! Hierarchical token buckets: a tree of classes that lend rate to each other, and a queue per leaf.

use alloc::vec::Vec;
use core::marker::PhantomData;

use aqmlab_units::{Bytes, Instant, Rate};

use super::class_queues::{ClassQueue, ClassQueues, bits};
use super::classes::Classifier;
use crate::law::{Arithmetic, Framing, HtbLaw, Tariff, linux_depth};
use crate::{Arrived, Backlog, Inside, LawSamples, Observer, Packet, Qdisc};

/// The rules of a tree besides its law.
#[derive(Clone, Debug)]
pub struct HtbRules {
    /// Bytes of the link's header, which count as part of each packet.
    pub header: Bytes,
    /// What the lower layers add to each packet.
    pub framing: Framing,
    /// Whether an empty queue is asked for a packet.
    pub asks_empty: bool,
    /// How the time of a packet is computed.
    pub arithmetic: Arithmetic,
    /// The rates of all classes, as they were given.
    pub rates: Vec<ClassRates>,
    /// The number of the first class that has no parent.
    pub root: usize,
}

/// The rates of a class.
#[derive(Clone, Copy, Debug)]
pub struct ClassRates {
    /// Its own rate, and what fills the bucket.
    pub rate: (Rate, Bytes),
    /// The rate that it never exceeds, and what fills the bucket.
    pub ceil: (Rate, Bytes),
}

/// Returns the tariff and the depth of a class's bucket.
pub(super) fn bucket(arithmetic: Arithmetic, (rate, burst): (Rate, Bytes)) -> (Tariff, i128) {
    let tariff = Tariff::of(arithmetic, rate);
    match arithmetic {
        Arithmetic::Exact => (tariff, tariff.price(burst.get())),
        Arithmetic::Linux => (tariff, tariff.in_span(linux_depth(rate.as_bps() / 8, burst))),
    }
}

/// A leaf: its number among all classes of the tree, and the rate that its queue assumes.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// Its number.
    pub class: usize,
    /// Its own rate.
    pub rate: Rate,
}

/// A tree of classes.
#[derive(Clone, Debug)]
pub struct Htb<P, Q> {
    law: HtbLaw,
    rules: HtbRules,
    /// The queues of the leaves.
    queues: ClassQueues<Q>,
    leaves: Vec<Leaf>,
    /// The leaf of each class.
    leaf_of: Vec<u16>,
    classifier: Classifier,
    /// The leaf of packets that match none of the classifier's values.
    rest: u16,
    packets: PhantomData<fn(P)>,
}

impl<P: Packet, Q: Qdisc<P>> Htb<P, Q> {
    /// Creates empty queues, one for each of `leaves`. The classifier and `rest` count leaves.
    ///
    /// # Panics
    /// If there are no leaves, or more than [`MOST_CLASSES`](super::MOST_CLASSES).
    pub fn new(
        law: HtbLaw,
        rules: HtbRules,
        (queues, leaves): (Vec<ClassQueue<Q>>, Vec<Leaf>),
        (classifier, rest): (Classifier, u16),
    ) -> Self {
        let classes = leaves.iter().map(|leaf| leaf.class + 1).max().unwrap_or(0);
        let mut leaf_of = alloc::vec![0; classes];
        leaves.iter().enumerate().for_each(|(number, leaf)| leaf_of[leaf.class] = number as u16);
        let queues = ClassQueues::new(queues);
        Htb { law, rules, queues, leaves, leaf_of, classifier, rest, packets: PhantomData }
    }
}

impl<P: Arrived, Q: Qdisc<P>> Qdisc<P> for Htb<P, Q> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let index = usize::from(self.classifier.class_of(&pkt).unwrap_or(self.rest));
        if self.queues.enqueue(index, now, pkt, obs) {
            self.law.activate(self.leaves[index].class);
        }
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        if self.rules.asks_empty {
            self.queues.notify_idle(now, obs);
        }
        if self.queues.backlog().packets.is_zero() {
            return None;
        }
        for index in bits(self.queues.released(now)) {
            self.law.activate(self.leaves[index].class);
        }
        while let Some(turn) = self.law.next(now) {
            let index = usize::from(self.leaf_of[turn.class]);
            if let Some(pkt) = self.queues.dequeue(index, now, obs) {
                let length = pkt.wire_len() + self.rules.header;
                let charged = self.rules.framing.length(length);
                self.law.sent(now, turn, length.get(), charged, self.queues.is_empty(index));
                return Some(pkt);
            }
            // Its packets are lost, or held back.
            self.law.pass(turn);
            self.law.deactivate(turn.class);
        }
        None
    }

    fn deadline(&self) -> Option<Instant> {
        if self.queues.backlog().packets.is_zero() {
            return None;
        }
        [self.law.deadline(), self.queues.deadline()].into_iter().flatten().min()
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        for (class, leaf) in self.queues.iter_mut().zip(&self.leaves) {
            class.queue.rate_changed(now, rate.min(leaf.rate));
        }
    }

    /// The ceiling of the class without a parent gets this rate, and all other rates change in proportion.
    fn shape(&mut self, now: Instant, rate: Rate) -> bool {
        let HtbRules { arithmetic, rates, root, .. } = &self.rules;
        let base = u128::from(rates[*root].ceil.0.as_bps());
        let scaled = |(of, burst): (Rate, Bytes)| {
            let bps = u128::from(of.as_bps()) * u128::from(rate.as_bps()) / base;
            (Rate::bps(u64::try_from(bps).unwrap_or(u64::MAX).max(8)), burst)
        };
        self.law.change(now, |class, own, ceil| {
            for (bucket_of, of) in [(own, rates[class].rate), (ceil, rates[class].ceil)] {
                let (tariff, depth) = bucket(*arithmetic, scaled(of));
                bucket_of.change(now, tariff, depth);
            }
        });
        for (class, leaf) in self.queues.iter_mut().zip(&mut self.leaves) {
            leaf.rate = scaled(rates[leaf.class].rate).0;
            class.queue.rate_changed(now, leaf.rate);
        }
        true
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn holds_back(&self) -> bool {
        true
    }

    fn reserve(&mut self, packets: usize, flows: usize) {
        self.queues.iter_mut().for_each(|class| class.queue.reserve(packets, flows));
    }

    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        self.queues.each_inner(visit);
    }

    /// A tree reports no values of its own; each of its queues reports those of its own law.
    fn observe(&self, _now: Instant, _out: &mut LawSamples) {}
}
