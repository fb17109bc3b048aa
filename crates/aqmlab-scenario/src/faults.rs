//! A link's queue as every host builds it: its discipline, and in front of it deterministic faults,
//! which drop or mark chosen packets before the queue sees them.

use aqmlab_params::ParamError;
use aqmlab_qdisc::{Arrived, Backlog, Cause, Discipline, LawSamples, Observer, Qdisc, Reason, Registry};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Rate};

use crate::plan::{Faults, LinkPlan};

impl LinkPlan {
    /// Builds the link's discipline with its faults. The discipline draws from the stream that is
    /// named after the link and the discipline.
    ///
    /// # Errors
    /// If the registry has no such discipline, or if a user-defined discipline refuses the
    /// parameters.
    pub fn discipline<P: Arrived + Send + 'static>(
        &self,
        seed: u64,
        registry: &Registry<P>,
    ) -> Result<Discipline<P>, ParamError> {
        let draws = Stream::new(seed, format_args!("{}/{}", self.name, self.queue.kind()));
        let discipline = registry.build(&self.queue, draws)?;
        if self.faults.drop.is_empty() && self.faults.mark.is_empty() {
            return Ok(discipline);
        }
        Ok(Discipline::Custom(Box::new(FaultInjector::new(discipline, &self.faults))))
    }
}

/// A discipline with deterministic faults in front of it: chosen arrivals are lost, or are marked
/// if they are ECN-capable. Such faults serve teaching ("what if packet 12 is lost?") and exactness
/// tests.
struct FaultInjector<P: Arrived> {
    inner: Discipline<P>,
    arrivals: u64,
    drop: Vec<u64>,
    mark: Vec<u64>,
}

impl<P: Arrived> FaultInjector<P> {
    /// Puts `faults` in front of `inner`.
    fn new(inner: Discipline<P>, faults: &Faults) -> Self {
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

    fn each_inner(&self, visit: &mut dyn FnMut(&str, &dyn Qdisc<P>)) {
        self.inner.each_inner(visit);
    }

    fn observe(&self, now: Instant, out: &mut LawSamples) {
        self.inner.observe(now, out);
    }
}
