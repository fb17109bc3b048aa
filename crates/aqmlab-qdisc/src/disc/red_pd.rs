//! RED-PD: a RED queue behind a filter of single flows ([`RedPdLaw`]).

use core::cell::{Ref, RefCell};

use aqmlab_random::{Stream, unit_from_bits};
use aqmlab_units::{Instant, Rate};

use super::Red;
use crate::law::RedPdLaw;
use crate::{Arrived, Backlog, Cause, LawSamples, Observer, Packet, Qdisc, Reason};

/// RED with Preferential Dropping.
#[derive(Clone, Debug)]
pub struct RedPd<P> {
    /// Who observes lets it catch up, which no later call can tell: a copy of it would be one of all its flows.
    filter: RefCell<RedPdLaw>,
    red: Red<P>,
    /// Do RED's marks count like its drops?
    marks_count: bool,
    /// Makes this queue's hashes of flows its own.
    salt: u64,
    draws: Stream,
    arrivals: u64,
}

/// Where the filter's draws begin in the queue's stream, one an arrival; RED's begin at 0. The last is the salt.
const FILTER_DRAWS: u64 = 1 << 63;
const SALT_DRAW: u64 = u64::MAX;

impl<P: Packet> RedPd<P> {
    /// A filter in front of `red`, both empty; `draws` is the stream that `red` draws from.
    pub fn new(filter: RedPdLaw, red: Red<P>, marks_count: bool, draws: Stream) -> Self {
        let filter = RefCell::new(filter);
        RedPd { filter, red, marks_count, salt: draws.at(SALT_DRAW), draws, arrivals: 0 }
    }

    /// The filter's law, as of the last call.
    pub fn filter(&self) -> Ref<'_, RedPdLaw> {
        self.filter.borrow()
    }

    /// The hash by which the filter knows the flow of `pkt`.
    pub fn flow_of(&self, pkt: &P) -> u64 {
        pkt.flow_hash(self.salt)
    }
}

impl<P: Arrived> RedPd<P> {
    #[inline]
    fn is_filtered(&mut self, now: Instant, flow: u64, pkt: &P) -> bool {
        let draw_number = FILTER_DRAWS + self.arrivals;
        self.arrivals += 1;
        let control = self.red.law();
        let law = control.law();
        // ns-2.35: RED's average as of the last packet that came to it. Nothing waits while it ages.
        let above = law.average().at(now) >= law.params().min_th;
        let waits = control.measure.of(self.red.backlog()) > 1.0;
        let draw = || unit_from_bits(self.draws.at(draw_number));
        self.filter.get_mut().on_arrival(now, flow, pkt.wire_len(), above, waits, draw)
    }
}

/// Hears what RED does with an arrival, and passes it on.
struct Hearing<'a, P> {
    obs: &'a mut dyn Observer<P>,
    dropped: bool,
    marked: bool,
}

impl<P> Observer<P> for Hearing<'_, P> {
    fn dropped(&mut self, now: Instant, pkt: P, at: Cause) {
        self.dropped = true;
        self.obs.dropped(now, pkt, at);
    }
    fn marked(&mut self, now: Instant, pkt: &P, at: Cause) {
        self.marked = true;
        self.obs.marked(now, pkt, at);
    }
}

impl<P: Arrived> Qdisc<P> for RedPd<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let (flow, size) = (self.flow_of(&pkt), pkt.wire_len());
        if self.is_filtered(now, flow, &pkt) {
            return obs.dropped(now, pkt, Cause::of(Reason::Early));
        }
        let mut hearing = Hearing { obs, dropped: false, marked: false };
        self.red.enqueue(now, pkt, &mut hearing);
        let notified = hearing.dropped || (hearing.marked && self.marks_count);
        self.filter.get_mut().on_red(flow, size, notified);
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.red.dequeue(now, obs)
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        self.filter.get_mut().catch_up(now);
        self.red.rate_changed(now, rate);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.red.backlog()
    }

    fn settles_at_enqueue(&self) -> bool {
        self.red.settles_at_enqueue()
    }

    fn reserve(&mut self, packets: usize, flows: usize) {
        self.red.reserve(packets, flows);
        self.filter.get_mut().reserve(flows);
    }

    /// RED's `avg`, `p`, `max_p`, `count`; `drop_rate` (RED's, averaged), `monitored` (flows), `filter_p` (the greatest
    /// probability among them).
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        self.red.observe(now, out);
        let mut filter = self.filter.borrow_mut();
        filter.catch_up(now);
        let (flows, most) = filter.monitored();
        out.extend([("drop_rate", filter.drop_rate()), ("monitored", flows as f64), ("filter_p", most)]);
    }
}
