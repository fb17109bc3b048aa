//! The RED queue: one FIFO that asks a [`crate::law::RedLaw`], fixed or adaptive, at each arrival.

use aqmlab_random::{Numbered, Stream, unit_from_bits};
use aqmlab_units::{Bytes, Instant, Rate};

use crate::ecn_policy::EcnPolicy;
use crate::law::{AdaptiveRed, Counting, Notice, RedLaw, Verdict};
use crate::{Backlog, Cause, Ecn, Fifo, LawSamples, Limit, Observer, Packet, Qdisc, Reason};

/// In what a queue's length is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

impl Measure {
    /// The length of `backlog`.
    #[inline]
    pub fn of(self, backlog: Backlog) -> f64 {
        match self {
            Measure::Packets => backlog.packets.get() as i64 as f64,
            Measure::Bytes => backlog.bytes.get() as i64 as f64,
        }
    }
}

/// The law of a RED queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RedControl {
    /// `max_p` is fixed.
    Fixed(RedLaw),
    /// `max_p` moves.
    Adaptive(AdaptiveRed),
}

/// What a RED queue has besides its law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedQueue {
    /// Buffer limit.
    pub limit: Limit,
    /// Unit of the average and the thresholds.
    pub measure: Measure,
    /// Marks or drops.
    pub ecn: EcnPolicy,
    /// Mean packet size: turns the link's rate into packets per second.
    pub mean_packet: Bytes,
}

/// RED and Adaptive RED.
#[derive(Clone, Debug)]
pub struct Red<P> {
    control: RedControl,
    queue: RedQueue,
    fifo: Fifo<P>,
    draws: Numbered,
    /// Number of the next arrival: its draw has the same number, taken or not.
    arrivals: u64,
}

impl<P: Packet> Red<P> {
    /// An empty queue behind an idle link.
    pub fn new(control: RedControl, queue: RedQueue, draws: Stream) -> Self {
        let fifo = Fifo::for_limit(queue.limit);
        Red { control, queue, fifo, draws: draws.numbered(), arrivals: 0 }
    }

    /// The law.
    pub const fn control(&self) -> &RedControl {
        &self.control
    }

    #[inline]
    fn verdict(&mut self, now: Instant, backlog: Backlog, size: Bytes) -> Verdict {
        let number = self.arrivals;
        self.arrivals += 1;
        let draw = || unit_from_bits(self.draws.at(number));
        let queued = self.queue.measure.of(backlog);
        let (law, avg) = match &mut self.control {
            RedControl::Fixed(law) => {
                let avg = law.update_average(now, queued);
                (law, avg)
            }
            RedControl::Adaptive(law) => {
                let avg = law.update(now, queued);
                (law.red_mut(), avg)
            }
        };
        law.decide(avg, queued, size, draw)
    }

    /// Marks or drops `pkt`, as the law wants it to be notified. Not inlined: few packets come here, and the
    /// others need not be moved aside for them.
    #[inline(never)]
    fn notify(&mut self, now: Instant, mut pkt: P, notice: Notice, full: bool, obs: &mut dyn Observer<P>) {
        // ns-2 counts a drop that finds the queue full as one of the queue's limit, whatever RED says.
        let overflow_first = full && self.control.red().params().counting == Counting::Ns2;
        if !overflow_first && !self.queue.ecn.marks(notice, pkt.ecn()) {
            obs.dropped(now, pkt, Cause::of(notice.reason));
            return;
        }
        if full {
            self.overflow(now, pkt, obs);
            return;
        }
        if pkt.ecn() != Ecn::Ce {
            pkt.mark_ce();
            obs.marked(now, &pkt, Cause::of(notice.reason));
        }
        self.fifo.push(pkt);
    }

    #[inline(never)]
    fn overflow(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        self.control.on_overflow();
        obs.dropped(now, pkt, Cause::of(Reason::Overflow));
    }
}

impl<P: Packet> Qdisc<P> for Red<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let backlog = self.fifo.backlog();
        let full = !self.queue.limit.admits(backlog, pkt.wire_len());
        match self.verdict(now, backlog, pkt.wire_len()) {
            Verdict::Admit if !full => self.fifo.push(pkt),
            Verdict::Admit => self.overflow(now, pkt, obs),
            Verdict::Notify(notice) => self.notify(now, pkt, notice, full, obs),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        let next = self.fifo.pop();
        if next.is_none() {
            self.control.on_idle(now);
        }
        next
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        self.control.rate_changed(now, rate.packets_per_s(self.queue.mean_packet));
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn settles_at_enqueue(&self) -> bool {
        true
    }

    /// `avg` (in the unit of the thresholds), `p` (before spacing), `max_p`, `count`.
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        let law = match &self.control {
            RedControl::Fixed(law) => *law,
            RedControl::Adaptive(law) => *law.at(now).red(),
        };
        let avg = law.average().at(now);
        out.extend([
            ("avg", avg),
            ("p", law.probability(avg)),
            ("max_p", law.max_p()),
            ("count", law.count() as f64),
        ]);
    }
}

impl RedControl {
    /// RED itself.
    pub const fn red(&self) -> &RedLaw {
        match self {
            RedControl::Fixed(law) => law,
            RedControl::Adaptive(law) => law.red(),
        }
    }

    fn on_overflow(&mut self) {
        match self {
            RedControl::Fixed(law) => law.on_overflow(),
            RedControl::Adaptive(law) => law.on_overflow(),
        }
    }

    #[inline]
    fn on_idle(&mut self, now: Instant) {
        match self {
            RedControl::Fixed(law) => law.on_idle(now),
            RedControl::Adaptive(law) => law.on_idle(now),
        }
    }

    fn rate_changed(&mut self, now: Instant, packets_per_s: f64) {
        match self {
            RedControl::Fixed(law) => law.rate_changed(now, packets_per_s),
            RedControl::Adaptive(law) => law.rate_changed(now, packets_per_s),
        }
    }
}
