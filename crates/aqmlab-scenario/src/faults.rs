//! Deterministic faults in front of a queue: chosen packets are dropped or marked before the queue sees them.

use aqmlab_qdisc::{Arrived, Backlog, Cause, Discipline, Inside, LawSamples, Observer, Qdisc, Reason};
use aqmlab_units::{Bytes, Instant, Rate};

use crate::plan::Faults;

/// A discipline with deterministic faults in front of it: chosen arrivals are lost, or are marked
/// if they are ECN-capable. Such faults serve teaching ("what if packet 12 is lost?") and exactness
/// tests.
pub(crate) struct FaultInjector<P: Arrived> {
    inner: Discipline<P>,
    arrivals: u64,
    drop: Vec<u64>,
    mark: Vec<u64>,
}

impl<P: Arrived> FaultInjector<P> {
    /// Puts `faults` in front of `inner`.
    pub(crate) fn new(inner: Discipline<P>, faults: &Faults) -> Self {
        let sorted = |list: &[u64]| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list
        };
        FaultInjector { inner, arrivals: 0, drop: sorted(&faults.drop), mark: sorted(&faults.mark) }
    }
}

impl<P: Arrived> Qdisc<P> for FaultInjector<P> {
    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        self.arrivals += 1;
        if self.drop.binary_search(&self.arrivals).is_ok() {
            obs.dropped(now, pkt, Cause::of(Reason::Injected));
            return;
        }
        if self.mark.binary_search(&self.arrivals).is_ok() && pkt.ecn().is_capable() {
            pkt.mark_ce();
            obs.marked(now, &pkt, Cause::of(Reason::Injected));
        }
        self.inner.enqueue(now, pkt, obs);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.inner.dequeue(now, obs)
    }

    fn deadline(&self) -> Option<Instant> {
        self.inner.deadline()
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        self.inner.rate_changed(now, rate);
    }

    fn shape(&mut self, now: Instant, rate: Rate) -> bool {
        self.inner.shape(now, rate)
    }

    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }

    fn next_len(&mut self) -> Option<Bytes> {
        self.inner.next_len()
    }

    fn settles_at_enqueue(&self) -> bool {
        self.inner.settles_at_enqueue()
    }

    fn reserve(&mut self, packets: usize, flows: usize) {
        self.inner.reserve(packets, flows);
    }

    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        self.inner.each_inner(visit);
    }

    fn observe(&self, now: Instant, out: &mut LawSamples) {
        self.inner.observe(now, out);
    }
}
