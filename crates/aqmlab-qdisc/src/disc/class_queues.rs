//! The queues of the classes of a port, with their backlogs and numbers.

use alloc::string::String;
use alloc::vec::Vec;

use aqmlab_units::{Bytes, Instant};

use crate::{Backlog, Cause, Inside, Observer, Packet, Qdisc, TcpHeader};

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

/// The queues of the classes. A class is identified by its index.
#[derive(Clone, Debug)]
pub(super) struct ClassQueues<Q> {
    classes: Vec<Inner<Q>>,
    /// The backlog of all classes together.
    backlog: Backlog,
    /// Classes that have packets, one bit each.
    waiting: u64,
    /// Classes with packets, one bit each, whose queues hold them back.
    held: u64,
    /// Classes, one bit each, whose queues have had an arrival since a `dequeue` last found them empty. Once
    /// such a queue is empty, it must still be notified that the link found no packet in it.
    busy: u64,
}

/// Largest number of classes per port: one bit each in a word.
pub const MOST_CLASSES: usize = 64;

impl<Q> ClassQueues<Q> {
    /// Creates empty queues.
    ///
    /// # Panics
    /// If there are no classes, or more than [`MOST_CLASSES`].
    pub fn new<P: Packet>(classes: Vec<ClassQueue<Q>>) -> Self
    where
        Q: Qdisc<P>,
    {
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
        ClassQueues { classes: numbered.collect(), backlog: Backlog::default(), waiting: 0, held: 0, busy: 0 }
    }

    /// Returns the backlog of all classes together.
    pub const fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Returns the classes with packets that may leave, one bit each.
    pub const fn ready(&self) -> u64 {
        self.waiting & !self.held
    }

    /// Returns whether the queue of a class has no packets.
    pub const fn is_empty(&self, index: usize) -> bool {
        self.waiting & 1 << index == 0
    }

    /// Iterates over the queues, each with its class.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut ClassQueue<Q>> {
        self.classes.iter_mut().map(|inner| &mut inner.class)
    }

    /// Returns the length of a class's next packet, if it is known.
    pub fn next_len<P: Packet>(&mut self, index: usize) -> Option<Bytes>
    where
        Q: Qdisc<P>,
    {
        self.classes[index].class.queue.next_len()
    }

    /// Runs `call` on the queue of one class and updates the total backlog of all classes.
    fn with<P: Packet, T>(
        &mut self,
        index: usize,
        obs: &mut dyn Observer<P>,
        call: impl FnOnce(&mut Q, &mut InnerObserver<'_, P>) -> T,
    ) -> T
    where
        Q: Qdisc<P>,
    {
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

    /// Passes a packet to the queue of its class. Returns whether the class has now a packet that may leave, and
    /// had none before.
    pub fn enqueue<P: Packet>(
        &mut self,
        index: usize,
        now: Instant,
        pkt: P,
        obs: &mut dyn Observer<P>,
    ) -> bool
    where
        Q: Qdisc<P>,
    {
        let bit = 1 << index;
        let was_ready = self.ready() & bit != 0;
        obs.entered(now, &pkt, self.classes[index].number);
        self.with(index, obs, |queue, obs| queue.enqueue(now, pkt, obs));
        self.busy |= bit;
        self.held &= !bit;
        !was_ready && self.waiting & bit != 0
    }

    /// Takes the next packet of a class. Without one, the class has lost its packets in this call or, if it is not
    /// empty, holds them back until its deadline.
    pub fn dequeue<P: Packet>(&mut self, index: usize, now: Instant, obs: &mut dyn Observer<P>) -> Option<P>
    where
        Q: Qdisc<P>,
    {
        let pkt = self.with(index, obs, |queue, obs| queue.dequeue(now, obs));
        let bit = 1 << index;
        match &pkt {
            Some(pkt) => obs.left(now, pkt, self.classes[index].number),
            None if self.is_empty(index) => self.busy &= !bit,
            None => self.held |= bit,
        }
        pkt
    }

    /// Polls each queue that has become empty since the last call, so that the queue knows that the link
    /// found no packet in it.
    pub fn notify_idle<P: Packet>(&mut self, now: Instant, obs: &mut dyn Observer<P>)
    where
        Q: Qdisc<P>,
    {
        for index in bits(self.busy & !self.waiting) {
            self.busy &= !(1 << index);
            let none = self.with(index, obs, |queue, obs| queue.dequeue(now, obs));
            debug_assert!(none.is_none(), "an empty queue returns no packet");
        }
    }

    /// Returns the classes, one bit each, whose queues have held packets back until now.
    pub fn released<P: Packet>(&mut self, now: Instant) -> u64
    where
        Q: Qdisc<P>,
    {
        let is_due = |index: &usize| self.classes[*index].class.queue.deadline().is_none_or(|at| at <= now);
        let due = bits(self.held).filter(is_due).fold(0, |all, index| all | 1 << index);
        self.held &= !due;
        due
    }

    /// Returns the first instant at which a queue that holds packets back may release one.
    pub fn deadline<P: Packet>(&self) -> Option<Instant>
    where
        Q: Qdisc<P>,
    {
        bits(self.held).filter_map(|index| self.classes[index].class.queue.deadline()).min()
    }

    /// Returns whether a queue may hold packets back.
    pub fn holds_back<P: Packet>(&self) -> bool
    where
        Q: Qdisc<P>,
    {
        self.classes.iter().any(|inner| inner.class.queue.holds_back())
    }

    /// Visits the queues.
    pub fn each_inner<P: Packet>(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>))
    where
        Q: Qdisc<P>,
    {
        self.classes.iter().for_each(|inner| visit(&inner.class.name, Inside::Queue(&inner.class.queue)));
    }
}

/// Iterates over the numbers of the bits that are set.
pub(super) fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let index = mask.trailing_zeros() as usize;
        let found = mask != 0;
        mask &= mask.wrapping_sub(1);
        found.then_some(index)
    })
}

/// Returns the number of queues inside `queue`, at all levels.
pub(crate) fn inner_count<P: Packet>(queue: &dyn Qdisc<P>) -> u16 {
    let mut count = 0;
    queue.each_inner(&mut |_, inner| {
        count += 1 + match inner {
            Inside::Queue(queue) => inner_count(queue),
            Inside::Divided(_, parts) => parts.len() as u16,
            Inside::Group(_) | Inside::Observed(..) => 0,
        };
    });
    count
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
    fn tcp_header(&self, pkt: &P) -> Option<TcpHeader> {
        self.obs.tcp_header(pkt)
    }
}
