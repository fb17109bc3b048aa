//! FRED and its parameters: a FIFO whose law ([`FredLaw`]) knows the number of waiting packets per
//! flow.

use alloc::format;

use aqmlab_params::{Default, Kind, Origin, Param, ParamError, Settings, Value};
use aqmlab_random::{Numbered, Stream, unit_from_bits};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Rate};

use super::table::{MEAN_PACKET, PROBABILITY, ecn, names, preset};
use super::words::ManyFlowsRule;
use crate::flow_table::{FlowTable, Keyed};
use crate::info::{Decides, Effective, Info, Maturity, Preset};
use crate::law::{Decision, FredFlow, FredLaw, FredParams, ManyFlows, Notice};
use crate::resolve::{self, LIMIT_RULE, in_bytes, whole};
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
    params: FRED,
    presets: PRESETS,
    derive,
    samples: || resolve::sample(&[("ecn", Value::Flag(true)), ("w_q", Value::Number(0.2))]),
};

const PRESETS: &[Preset] = &[Preset { name: "paper", title: "Lin and Morris 1997", values: &[] }];

const FIGURE: &str = "Lin and Morris 1997, figure 6";

static FRED: &[Param] = &[
    preset(const { &names::<1>(PRESETS) }),
    Param {
        name: "limit",
        kind: Kind::Size { min: Packets::new(1) },
        default: Default::Bdp(1.0),
        aliases: &[],
        source: "one bandwidth-delay product: Villamizar and Song 1994",
        help: "buffer size, excluding the packet in transmission",
    },
    LIMIT_RULE,
    Param {
        name: "min_th",
        kind: Kind::Size { min: Packets::new(1) },
        default: Default::Auto("limit / 4, but at most one bandwidth-delay product"),
        aliases: &[],
        source: "Lin and Morris 1997, figure 6 (from memory): the smaller of a quarter of the buffer and what the \
                 link sends in a round-trip time",
        help: "average queue below which no packet is chosen at random",
    },
    Param {
        name: "max_th",
        kind: Kind::Size { min: Packets::new(1) },
        default: Default::Auto("2 min_th"),
        aliases: &[],
        source: "Lin and Morris 1997, figure 6 (from memory)",
        help: "average queue at and above which every arrival is lost, unless many_flows replaces this rule",
    },
    Param {
        name: "max_p",
        kind: PROBABILITY,
        default: Default::Number(0.02),
        aliases: &[],
        source: "Lin and Morris 1997, figure 6 (from memory)",
        help: "probability at max_th",
    },
    Param {
        name: "w_q",
        kind: PROBABILITY,
        default: Default::Number(0.002),
        aliases: &[],
        source: "Lin and Morris 1997, figure 6 (from memory)",
        help: "weight of a new sample in the average; a sample is taken when a packet is queued and when one leaves",
    },
    Param {
        name: "min_q",
        kind: Kind::Integer { min: 1, max: 1_000_000 },
        default: Default::Auto("4, or 2 where max_q is below 4 packets"),
        aliases: &[],
        source: "Lin and Morris 1997, figure 6 (from memory): 2 for small buffers, 4 for large",
        help: "number of packets that a flow may have waiting without its arrivals being chosen at random",
    },
    Param {
        name: "max_q",
        kind: Kind::Size { min: Packets::new(1) },
        default: Default::Auto("min_th"),
        aliases: &[],
        source: FIGURE,
        help: "number of waiting packets at which a flow is cut off and gets a strike",
    },
    Param {
        name: "many_flows",
        kind: Kind::Choice(ManyFlowsRule::WORDS),
        default: Default::Choice("off"),
        aliases: &[],
        source: "Lin and Morris 1997, section 6 (from memory); J-Sim 1.3 has `average`, but keeps the drops above max_th",
        help: "when to limit each flow to two waiting packets, instead of dropping every arrival while the \
               average is at max_th or above: `off` never, `average` while the average is at max_th or \
               above, `count` while at least many_flows_from flows have packets waiting",
    },
    Param {
        name: "many_flows_from",
        kind: Kind::Integer { min: 1, max: 1_000_000_000 },
        default: Default::Auto("limit / min_q in packets, rounded up"),
        aliases: &[],
        source: "ours: this many flows can fill the buffer without any of their packets being chosen at \
                 random",
        help: "with many_flows `count`: the smallest number of flows with packets waiting that counts as \
               many flows",
    },
    MEAN_PACKET,
    ecn(
        "ours: the paper drops; RFC 3168, section 7",
        "mark, rather than drop, ECN-capable packets that are chosen at random; packets beyond a flow's \
         limit are still dropped",
        &[],
    ),
];

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mean = resolve::mean_packet(all, link)?;
    for name in ["limit", "min_th", "max_th", "max_q"] {
        if !all.is_auto(name) {
            resolve::absolute_size(all, name, link)?;
        }
    }
    let packets = |all: &Settings, name| all.size(name).map(|size| in_bytes(size, mean) / mean.as_f64());
    if all.is_auto("min_th") {
        let quarter = packets(all, "limit")? / 4.0;
        let bdp = link.rtt.map(|_| link.bdp_bytes("min_th", 1.0)).transpose()?;
        let bdp = bdp.map_or(f64::INFINITY, |b| b / mean.as_f64());
        let rule = if bdp < quarter { "one bandwidth-delay product" } else { "limit / 4" };
        set(all, "min_th", size(quarter.min(bdp)), rule);
    }
    if all.is_auto("max_th") {
        let twice = 2.0 * packets(all, "min_th")?;
        set(all, "max_th", size(twice), "2 min_th");
    }
    if all.is_auto("max_q") {
        let min_th = all.size("min_th")?;
        set(all, "max_q", Value::Size(min_th), "min_th");
    }
    let max_q = packets(all, "max_q")?;
    if all.is_auto("min_q") {
        let min_q = if max_q < 4.0 { 2 } else { 4 };
        set(all, "min_q", Value::Integer(min_q), "4, or 2 where max_q is below 4 packets");
    }
    if all.is_auto("many_flows_from") {
        let flows = libm::ceil(packets(all, "limit")? / all.integer("min_q")? as f64);
        set(all, "many_flows_from", Value::Integer((flows as u64).max(1)), "limit / min_q");
    }
    check(all, link, mean, max_q)
}

fn check(all: &Settings, link: &LinkContext, mean: Bytes, max_q: f64) -> Result<(), ParamError> {
    resolve::check_buffer(all, link.mean_packet.max(mean))?;
    resolve::check_order(all, "min_th", "max_th", mean)?;
    resolve::check_order(all, "max_th", "limit", mean)?;
    let min_q = all.integer("min_q")?;
    if all.is_given("min_q") && min_q as f64 > max_q {
        let message = format!(
            "min_q `{min_q}` exceeds max_q `{}`: flows would be cut off before any of their packets is chosen at random",
            all.size("max_q")?
        );
        return Err(ParamError::new("min_q", message));
    }
    Ok(())
}

fn set(all: &mut Settings, name: &'static str, value: Value, rule: &'static str) {
    all.set(name, value, Origin::Derived(rule.into()));
}

/// Returns a size in packets, rounded to the nearest whole number but at least one.
fn size(packets: f64) -> Value {
    Value::Size(Size::Packets(Packets::new(whole(packets))))
}

/// Builds a FRED queue from these parameters.
pub(crate) fn build_fred<P: Packet>(s: &Effective, draws: Stream) -> Result<Fred<P>, ParamError> {
    let mean_packet = resolve::bytes(s, "mean_packet")?;
    let packets = |name| s.size(name).map(|size| in_bytes(size, mean_packet) / mean_packet.as_f64());
    let params = FredParams {
        min_th: packets("min_th")?,
        max_th: packets("max_th")?,
        max_p: s.number("max_p")?,
        weight: s.number("w_q")?,
        min_q: s.integer("min_q")? as f64,
        max_q: packets("max_q")?,
        many_flows: match ManyFlowsRule::read(s, "many_flows")? {
            ManyFlowsRule::Off => ManyFlows::Off,
            ManyFlowsRule::Average => ManyFlows::Average,
            ManyFlowsRule::Count => ManyFlows::Count(s.integer("many_flows_from")?),
        },
        packets_per_s: s.link().rate.packets_per_s(mean_packet),
    };
    let ecn = s.flag("ecn")?;
    let queue = FredQueue { limit: resolve::limit(s)?, ecn, mean_packet };
    Ok(Fred::new(FredLaw::new(params), queue, draws))
}
