//! A FIFO of limited length that consults a law about each packet: the queue of RED, PI, REM, BLUE
//! and related disciplines.

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Rate};

use super::early_law::{EarlyLaw, EarlyQueue};
use super::law_queue::{DropLoop, LawQueue};
use crate::{Arrived, Backlog, Fifo, LawSamples, Observer, Packet, Qdisc};

/// A single queue and its law.
#[derive(Clone, Debug)]
pub struct Early<P, L> {
    queue: LawQueue<L, Fifo<P>>,
    drop_loop: DropLoop,
}

impl<P: Packet, L: EarlyLaw> Early<P, L> {
    /// Creates an empty queue behind an idle link.
    pub fn new(law: L, queue: EarlyQueue, draws: Stream) -> Self {
        let waiting = Fifo::for_limit(queue.limit);
        Early { queue: LawQueue { law, waiting }, drop_loop: DropLoop::new(queue, draws, ()) }
    }

    /// Returns the law in its state after the last call.
    pub const fn law(&self) -> &L {
        &self.queue.law
    }

    /// Returns the queue's parameters, without those of the law.
    pub const fn queue(&self) -> &EarlyQueue {
        self.drop_loop.rules()
    }
}

impl<P: Arrived, L: EarlyLaw> Qdisc<P> for Early<P, L> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let full = !self.drop_loop.rules.limit.admits(Qdisc::<P>::backlog(self), pkt.wire_len());
        self.queue.enqueue(now, (pkt, ()), full, &mut self.drop_loop, obs);
    }

    fn enqueue_spared(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let full = !self.drop_loop.rules.limit.admits(Qdisc::<P>::backlog(self), pkt.wire_len());
        self.queue.enqueue_spared(now, (pkt, ()), full, &mut self.drop_loop, obs);
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.queue.dequeue(now, &mut self.drop_loop, obs).map(|out| out.place)
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        self.queue.law.catch_up(now, Fifo::backlog(&self.queue.waiting));
        self.queue.law.rate_changed(now, rate);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Fifo::backlog(&self.queue.waiting)
    }

    fn next_len(&mut self) -> Option<Bytes> {
        self.queue.waiting.head().map(P::wire_len)
    }

    fn settles_at_enqueue(&self) -> bool {
        !self.queue.law.decides().at_departure() && !self.queue.law.evicts()
    }

    fn reserve(&mut self, packets: usize, _flows: usize) {
        self.queue.waiting.reserve(self.drop_loop.rules.limit, packets);
    }

    fn observe(&self, now: Instant, out: &mut LawSamples) {
        self.queue.law.observe(now, Fifo::backlog(&self.queue.waiting), out);
    }
}
