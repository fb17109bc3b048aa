//! A token-bucket policer in front of a queue.

use aqmlab_units::{Instant, Rate};

use crate::law::TokenBucket;
use crate::{Arrived, Backlog, Cause, Dscp, LawSamples, Observer, Qdisc, Reason};

/// What becomes of packets that exceed the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exceed {
    /// They are lost, as [`Reason::Forced`].
    Drop,
    /// They go on with this code point.
    Remark(Dscp),
}

/// Arrivals that keep to a rate and a burst come to the queue inside as they are; what becomes of the others is [`Exceed`].
#[derive(Clone, Debug)]
pub struct Policer<Q> {
    bucket: TokenBucket,
    exceed: Exceed,
    queue: Q,
    /// Packets that exceeded.
    exceeded: u64,
}

impl<Q> Policer<Q> {
    /// A policer in front of `queue`.
    pub const fn new(bucket: TokenBucket, exceed: Exceed, queue: Q) -> Self {
        Policer { bucket, exceed, queue, exceeded: 0 }
    }
}

impl<P: Arrived, Q: Qdisc<P>> Qdisc<P> for Policer<Q> {
    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        if !self.bucket.conforms(now, pkt.wire_len()) {
            self.exceeded += 1;
            match self.exceed {
                Exceed::Drop => return obs.dropped(now, pkt, Cause::of(Reason::Forced)),
                Exceed::Remark(dscp) => pkt.set_dscp(dscp),
            }
        }
        self.queue.enqueue(now, pkt, obs);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.queue.dequeue(now, obs)
    }

    fn deadline(&self) -> Option<Instant> {
        self.queue.deadline()
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        self.queue.rate_changed(now, rate);
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Not where it re-marks: of a port that looks ahead the host keeps the packet as it came.
    fn settles_at_enqueue(&self) -> bool {
        self.exceed == Exceed::Drop && self.queue.settles_at_enqueue()
    }

    fn reserve(&mut self, packets: usize, flows: usize) {
        self.queue.reserve(packets, flows);
    }

    fn each_inner(&self, visit: &mut dyn FnMut(&str, &dyn Qdisc<P>)) {
        self.queue.each_inner(visit);
    }

    /// `tokens` (bytes), `exceeded` (packets so far), and the values of the queue inside.
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        out.extend([("tokens", self.bucket.bytes_at(now)), ("exceeded", self.exceeded as f64)]);
        self.queue.observe(now, out);
    }
}
