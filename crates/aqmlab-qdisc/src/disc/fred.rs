//! FRED and its parameters: a FIFO whose law ([`FredLaw`]) knows the number of waiting packets per
//! flow.

use alloc::format;

use aqmlab_params::{ParamError, Row, Settings, params};
use aqmlab_random::{Numbered, Stream, unit_from_bits};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Rate};

use super::table::{names, presets};
use super::words::ManyFlowsRule;
use crate::flow_table::{FlowTable, Keyed};
use crate::info::{Decides, Derive, Effective, Info, Maturity, Preset};
use crate::law::{Decision, FredFlow, FredLaw, FredParams, ManyFlows, Notice};
use crate::resolve::{self, Common, LimitRule, in_bytes, whole};
use crate::{Backlog, Cause, Ecn, Fifo, LawSamples, Limit, LinkContext, Observer, Packet, Qdisc, Reason};

/// The parameters of a FRED queue other than those of its law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FredQueue {
    /// Buffer limit.
    pub limit: Limit,
    /// Whether ECN-capable packets are marked instead of dropped if the law allows it.
    pub ecn: bool,
    /// Mean packet size, which converts the link's rate to packets per second.
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
    /// Salt of this queue's hashes.
    salt: u64,
    draws: Numbered,
    /// Number of the next arrival, which is also the number of its draw, whether or not the draw is
    /// used.
    arrivals: u64,
}

/// Number of the draw that gives the salt; the numbers of arrivals never reach it.
const SALT_DRAW: u64 = u64::MAX;

impl<P: Packet> Fred<P> {
    /// Creates an empty queue behind an idle link.
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

    /// Returns the law.
    pub const fn law(&self) -> &FredLaw {
        &self.law
    }

    /// Returns the state of the flow of `pkt`, or `None` if the flow has no packets waiting.
    pub fn flow(&self, pkt: &P) -> Option<FredFlow> {
        self.flows.get(pkt.flow_hash(self.salt)).copied()
    }

    #[inline]
    fn decision(&mut self, now: Instant, key: u64, size: Bytes) -> Decision {
        let number = self.arrivals;
        self.arrivals += 1;
        let draw = || unit_from_bits(self.draws.at(number));
        let active = self.flows.len() as u64;
        // A flow without waiting packets gets no strike, so it needs no state.
        let mut unknown = FredFlow::default();
        let flow = self.flows.get_mut(key).unwrap_or(&mut unknown);
        self.law.on_arrival(now, flow, active, size, draw)
    }

    /// Queues `pkt`, or drops it if there is no room.
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

    fn next_len(&mut self) -> Option<Bytes> {
        self.fifo.head().map(Packet::wire_len)
    }

    fn settles_at_enqueue(&self) -> bool {
        true
    }

    /// A flow has state while it has packets waiting, so there are no more flows than packets.
    fn reserve(&mut self, packets: usize, _flows: usize) {
        self.fifo.reserve(self.queue.limit, packets);
        self.flows.reserve(self.queue.limit.most_of(packets));
    }

    /// Appends `avg` and `avgcq` (packets), `p` (before spacing, of a flow that is not spared),
    /// `flows` (with packets waiting) and `count`.
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

/// FRED's entry in the catalogue.
pub(crate) const FRED_INFO: Info = Info {
    name: "fred",
    title: "FRED",
    summary: "Flow Random Early Drop: RED that spares flows with few waiting packets and cuts off those with too many",
    version: 1,
    applies: &[],
    maturity: Maturity::Experimental,
    decides: Decides::Enqueue,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || resolve::sample(&[Parameters::ecn().is(true), Parameters::w_q().is(0.2)]),
};

const PRESETS: &[Preset] = &[Preset { name: "paper", title: "Lin and Morris 1997", values: &[] }];

const FIGURE: &str = "Lin and Morris 1997, figure 6";

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<1>(PRESETS) }),
        /// buffer size, excluding the packet in transmission
        limit: Size = Common::limit().default(Size::Bdp(1.0))
            .source("one bandwidth-delay product: Villamizar and Song 1994"),
        limit_rule: LimitRule = Common::limit_rule(),
        /// average queue below which no packet is chosen at random
        min_th: Size = Row::size().auto("limit / 4, but at most one bandwidth-delay product")
            .source("Lin and Morris 1997, figure 6 (from memory): the smaller of a quarter of the buffer \
             and what the link sends in a round-trip time"),
        /// average queue at and above which every arrival is lost, unless many_flows replaces this rule
        max_th: Size = Row::size().auto("2 min_th").source("Lin and Morris 1997, figure 6 (from memory)"),
        /// probability at max_th
        max_p: f64 = Row::above(0.0, 1.0).default(0.02)
            .source("Lin and Morris 1997, figure 6 (from memory)"),
        /// weight of a new sample in the average; a sample is taken when a packet is queued and when one
        /// leaves
        w_q: f64 = Row::above(0.0, 1.0).default(0.002).source("Lin and Morris 1997, figure 6 (from memory)"),
        /// number of packets that a flow may have waiting without its arrivals being chosen at random
        min_q: u64 = Row::integer(1, 1_000_000).auto("4, or 2 where max_q is below 4 packets")
            .source("Lin and Morris 1997, figure 6 (from memory): 2 for small buffers, 4 for large"),
        /// number of waiting packets at which a flow is cut off and gets a strike
        max_q: Size = Row::size().auto("min_th").source(FIGURE),
        /// when to limit each flow to two waiting packets, instead of dropping every arrival while the
        /// average is at max_th or above: `off` never, `average` while the average is at max_th or above,
        /// `count` while at least many_flows_from flows have packets waiting
        many_flows: ManyFlowsRule = Row::choice("off")
            .source("Lin and Morris 1997, section 6 (from memory); J-Sim 1.3 has `average`, but keeps the \
             drops above max_th"),
        /// with many_flows `count`: the smallest number of flows with packets waiting that counts as many
        /// flows
        many_flows_from: u64 = Row::integer(1, 1_000_000_000).auto("limit / min_q in packets, rounded up")
            .source("ours: this many flows can fill the buffer without any of their packets being chosen at \
             random"),
        mean_packet: Bytes = Common::mean_packet(),
        /// mark, rather than drop, ECN-capable packets that are chosen at random; packets beyond a flow's
        /// limit are still dropped
        ecn: bool = Row::flag(false).source("ours: the paper drops; RFC 3168, section 7"),
    }
}

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mean = resolve::mean_packet(all, link)?;
    let (limit, min_th, max_th) = (Parameters::limit(), Parameters::min_th(), Parameters::max_th());
    let (min_q, max_q, flows) = (Parameters::min_q(), Parameters::max_q(), Parameters::many_flows_from());
    for row in [limit, min_th, max_th, max_q] {
        if !row.is_auto(all) {
            resolve::absolute_size(all, row, link)?;
        }
    }
    let packets =
        |all: &Settings, row: Row<Size>| row.read(all).map(|size| in_bytes(size, mean) / mean.as_f64());
    if min_th.is_auto(all) {
        let quarter = packets(all, limit)? / 4.0;
        let bdp = link.rtt.map(|_| link.bdp_bytes(min_th.name(), 1.0)).transpose()?;
        let bdp = bdp.map_or(f64::INFINITY, |b| b / mean.as_f64());
        let rule = if bdp < quarter { "one bandwidth-delay product" } else { "limit / 4" };
        min_th.derive(all, size(quarter.min(bdp)), rule);
    }
    if max_th.is_auto(all) {
        let twice = 2.0 * packets(all, min_th)?;
        max_th.derive(all, size(twice), "2 min_th");
    }
    if max_q.is_auto(all) {
        let size = min_th.read(all)?;
        max_q.derive(all, size, "min_th");
    }
    if min_q.is_auto(all) {
        let packets = if packets(all, max_q)? < 4.0 { 2 } else { 4 };
        min_q.derive(all, packets, "4, or 2 where max_q is below 4 packets");
    }
    if flows.is_auto(all) {
        let many = libm::ceil(packets(all, limit)? / min_q.read(all)? as f64);
        flows.derive(all, (many as u64).max(1), "limit / min_q");
    }
    check(all, link, mean)
}

fn check(all: &Settings, link: &LinkContext, mean: Bytes) -> Result<(), ParamError> {
    resolve::check_buffer(all, link.mean_packet.max(mean))?;
    resolve::check_order(all, Parameters::min_th(), Parameters::max_th(), mean)?;
    resolve::check_order(all, Parameters::max_th(), Parameters::limit(), mean)?;
    let Parameters { min_q, max_q, .. } = Parameters::read(all)?;
    if all.is_given(Parameters::min_q().name()) && min_q as f64 > in_bytes(max_q, mean) / mean.as_f64() {
        return Err(Parameters::min_q().error(format!(
            "min_q `{min_q}` exceeds max_q `{max_q}`: flows would be cut off before any of their packets is chosen at random"
        )));
    }
    Ok(())
}

/// Returns a size in packets, rounded to the nearest whole number but at least one.
fn size(packets: f64) -> Size {
    Size::Packets(Packets::new(whole(packets)))
}

/// Builds a FRED queue from these parameters.
pub(crate) fn build_fred<P: Packet>(s: &Effective, draws: Stream) -> Result<Fred<P>, ParamError> {
    let p = Parameters::read(s)?;
    let mean_packet = p.mean_packet;
    let packets = |size| in_bytes(size, mean_packet) / mean_packet.as_f64();
    let params = FredParams {
        min_th: packets(p.min_th),
        max_th: packets(p.max_th),
        max_p: p.max_p,
        weight: p.w_q,
        min_q: p.min_q as f64,
        max_q: packets(p.max_q),
        many_flows: match p.many_flows {
            ManyFlowsRule::Off => ManyFlows::Off,
            ManyFlowsRule::Average => ManyFlows::Average,
            ManyFlowsRule::Count => ManyFlows::Count(p.many_flows_from),
        },
        packets_per_s: s.link().rate.packets_per_s(mean_packet),
    };
    let queue = FredQueue { limit: resolve::limit(s)?, ecn: p.ecn, mean_packet };
    Ok(Fred::new(FredLaw::new(params), queue, draws))
}
