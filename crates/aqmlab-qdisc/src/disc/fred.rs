//! FRED: one FIFO whose law ([`FredLaw`]) knows how many packets each flow has waiting.

use aqmlab_random::{Numbered, Stream, unit_from_bits};
use aqmlab_units::{Bytes, Instant, Rate};

use crate::flow_table::FlowTable;
use crate::keyed::Keyed;
use crate::law::{Decision, FredFlow, FredLaw, Notice};
use crate::{Backlog, Cause, Ecn, Fifo, LawSamples, Limit, Observer, Packet, Qdisc, Reason};

/// What a FRED queue has besides its law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FredQueue {
    /// Buffer limit.
    pub limit: Limit,
    /// Whether ECN-capable packets are marked instead of dropped where the law allows it.
    pub ecn: bool,
    /// Mean packet size: turns the link's rate into packets per second.
    pub mean_packet: Bytes,
}

/// Flow Random Early Drop.
#[derive(Clone, Debug)]
pub struct Fred<P> {
    law: FredLaw,
    queue: FredQueue,
    fifo: Fifo<Keyed<P>>,
    /// The flows that have packets waiting, and no others.
    flows: FlowTable<FredFlow>,
    /// Makes this queue's hashes its own.
    salt: u64,
    draws: Numbered,
    /// Number of the next arrival: its draw has the same number, taken or not.
    arrivals: u64,
}

/// The draw that is the salt: no arrival gets so far.
const SALT_DRAW: u64 = u64::MAX;

impl<P: Packet> Fred<P> {
    /// An empty queue behind an idle link.
    pub fn new(law: FredLaw, queue: FredQueue, draws: Stream) -> Self {
        Fred {
            law,
            queue,
            fifo: Fifo::for_limit(queue.limit),
            flows: FlowTable::with_room(queue.limit.room()),
            salt: draws.at(SALT_DRAW),
            draws: draws.numbered(),
            arrivals: 0,
        }
    }

    /// The law.
    pub const fn law(&self) -> &FredLaw {
        &self.law
    }

    /// What is known of the flow that `pkt` belongs to: nothing, if none of its packets waits.
    pub fn flow(&self, pkt: &P) -> Option<FredFlow> {
        self.flows.get(pkt.flow_hash(self.salt)).copied()
    }

    #[inline]
    fn decision(&mut self, now: Instant, key: u64, size: Bytes) -> Decision {
        let number = self.arrivals;
        self.arrivals += 1;
        let draw = || unit_from_bits(self.draws.at(number));
        let active = self.flows.len() as u64;
        // A flow without waiting packets gets no strike, so nothing is to be kept of it.
        let mut unknown = FredFlow::default();
        let flow = self.flows.get_mut(key).unwrap_or(&mut unknown);
        self.law.on_arrival(now, flow, active, size, draw)
    }

    /// Queues `pkt`, or loses it if there is no room.
    #[inline]
    fn accept(&mut self, now: Instant, pkt: P, key: u64, obs: &mut dyn Observer<P>) {
        let backlog = self.fifo.backlog();
        if !self.queue.limit.admits(backlog, pkt.wire_len()) {
            return obs.dropped(now, pkt, Cause::of(Reason::Overflow));
        }
        self.flows.get_or_default(key).queued += 1;
        self.law.on_queued(now, backlog.packets.as_f64(), self.flows.len() as u64);
        self.fifo.push(Keyed { key, packet: pkt });
    }

    /// Marks or drops `pkt`.
    #[inline(never)]
    fn notify(&mut self, now: Instant, mut pkt: P, key: u64, notice: Notice, obs: &mut dyn Observer<P>) {
        let full = !self.queue.limit.admits(self.fifo.backlog(), pkt.wire_len());
        if !notice.marks(self.queue.ecn, pkt.ecn()) {
            return obs.dropped(now, pkt, Cause::of(notice.reason));
        }
        if !full && pkt.ecn() != Ecn::Ce {
            pkt.mark_ce();
            obs.marked(now, &pkt, Cause::of(notice.reason));
        }
        self.accept(now, pkt, key, obs);
    }
}

impl<P: Packet> Qdisc<P> for Fred<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let key = pkt.flow_hash(self.salt);
        match self.decision(now, key, pkt.wire_len()) {
            Decision::Admit => self.accept(now, pkt, key, obs),
            Decision::Notify(notice) => self.notify(now, pkt, key, notice, obs),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        let Some(Keyed { key, packet }) = self.fifo.pop() else {
            self.law.on_idle(now);
            return None;
        };
        self.law.on_departure(self.fifo.backlog().packets.as_f64(), self.flows.len() as u64);
        let flow = self.flows.get_mut(key).expect("a flow with a waiting packet is known");
        flow.queued -= 1;
        if flow.queued == 0 {
            self.flows.remove(key);
        }
        Some(packet)
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        self.law.rate_changed(now, rate.packets_per_s(self.queue.mean_packet));
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn settles_at_enqueue(&self) -> bool {
        true
    }

    /// A flow is known while it has packets waiting: there are no more flows than packets.
    fn reserve(&mut self, packets: usize, _flows: usize) {
        self.fifo.reserve(self.queue.limit, packets);
        self.flows.reserve(self.queue.limit.most_of(packets));
    }

    /// `avg` and `avgcq` (packets), `p` (before spacing, of a flow that is not spared), `flows` (with packets
    /// waiting), `count`.
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        let avg = self.law.average().at(now);
        out.extend([
            ("avg", avg),
            ("avgcq", self.law.fair_share()),
            ("p", self.law.probability(avg)),
            ("flows", self.flows.len() as f64),
            ("count", self.law.count() as f64),
        ]);
    }
}
