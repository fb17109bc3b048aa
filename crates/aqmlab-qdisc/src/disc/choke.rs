//! CHOKe and its parameters: a FIFO whose arrivals are compared with waiting packets before RED decides.

use alloc::collections::VecDeque;

use aqmlab_params::{ParamError, Row, Settings, params};
use aqmlab_random::{Numbered, Stream, unit_from_bits};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Rate};

use super::red_resolve::{resolve_burst, resolve_weight};
use super::table::{LINUX, names, presets, tc};
use super::words::{Candidate, Region, WeightRule};
use crate::flow_table::Keyed;
use crate::info::{Decides, Derive, Effective, Info, Maturity, Preset};
use crate::law::{
    ByteMode, ChokeLaw, Comparisons, Counting, Decision, EcnRegion, IdleRule, Notice, RedArithmetic,
    RedParams, SpacingRule,
};
use crate::resolve::{self, Common, LimitRule, in_bytes, whole};
use crate::{Backlog, Cause, Ecn, LawSamples, Limit, LinkContext, Observer, Packet, Qdisc, Reason};

/// The parameters of a CHOKe queue other than those of its law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChokeQueue {
    /// Buffer limit.
    pub limit: Limit,
    /// Whether ECN-capable packets are marked instead of dropped if the law allows it.
    pub ecn: bool,
    /// Mean packet size, which converts the link's rate to packets per second.
    pub mean_packet: Bytes,
    /// Whether packets that are lost from the middle of the queue leave gaps, as in Linux: a drawn gap is drawn
    /// again, up to [`DRAWS_OVER_GAPS`] times in all, and then the oldest packet is taken.
    pub gaps: bool,
}

/// The number of draws in Linux until the oldest packet is taken.
pub const DRAWS_OVER_GAPS: usize = 3;

/// CHOose and Keep for responsive flows, CHOose and Kill for unresponsive flows.
#[derive(Clone, Debug)]
pub struct Choke<P> {
    law: ChokeLaw,
    queue: ChokeQueue,
    /// The packets in order of arrival; the first and the last place are never gaps.
    places: VecDeque<Option<Keyed<P>>>,
    backlog: Backlog,
    /// Salt of this queue's hashes.
    salt: u64,
    draws: Numbered,
    /// Number of the next arrival, which is also the number of its draw for RED, whether or not the draw is used.
    arrivals: u64,
    /// Number of draws for comparisons so far.
    drawn: u64,
    /// Number of arrivals that have met a packet of their own flow.
    matched: u64,
}

/// Number of the first draw for comparisons; the numbers of arrivals never reach it.
const CANDIDATE_DRAWS: u64 = 1 << 62;
/// Number of the draw that gives the salt.
const SALT_DRAW: u64 = u64::MAX;

impl<P: Packet> Choke<P> {
    /// Creates an empty queue behind an idle link.
    pub fn new(law: ChokeLaw, queue: ChokeQueue, draws: Stream) -> Self {
        Choke {
            law,
            queue,
            places: VecDeque::with_capacity(queue.limit.room()),
            backlog: Backlog::default(),
            salt: draws.at(SALT_DRAW),
            draws: draws.numbered(),
            arrivals: 0,
            drawn: 0,
            matched: 0,
        }
    }

    /// Returns the law.
    pub const fn law(&self) -> &ChokeLaw {
        &self.law
    }

    /// Draws the place of a waiting packet. The queue is not empty.
    fn candidate(&mut self) -> usize {
        for _ in 0..DRAWS_OVER_GAPS {
            let bits = self.draws.at(CANDIDATE_DRAWS + self.drawn);
            self.drawn += 1;
            // Uniform on 0 .. places.
            let place = ((u128::from(bits) * self.places.len() as u128) >> 64) as usize;
            if self.places[place].is_some() {
                return place;
            }
        }
        0
    }

    /// Removes and returns the packet at this place, which is not a gap.
    fn take(&mut self, place: usize) -> P {
        let taken =
            if self.queue.gaps { self.places[place].take() } else { self.places.remove(place).flatten() };
        while matches!(self.places.back(), Some(None)) {
            self.places.pop_back();
        }
        while matches!(self.places.front(), Some(None)) {
            self.places.pop_front();
        }
        let pkt = taken.expect("a candidate is a packet").packet;
        self.backlog.packets -= Packets::new(1);
        self.backlog.bytes -= pkt.wire_len();
        pkt
    }

    /// Compares an arrival of the flow `key` with `comparisons` waiting packets, drops those of its own flow, and
    /// returns whether there was any.
    fn meets_its_flow(
        &mut self,
        now: Instant,
        key: u64,
        comparisons: u64,
        obs: &mut dyn Observer<P>,
    ) -> bool {
        let mut met = false;
        for _ in 0..comparisons {
            if self.places.is_empty() {
                break;
            }
            let place = self.candidate();
            if self.places[place].as_ref().is_some_and(|waiting| waiting.key == key) {
                met = true;
                obs.dropped(now, self.take(place), Cause::of(Reason::Early));
            }
        }
        met
    }

    /// Queues `pkt`, or drops it if there is no room.
    #[inline]
    fn accept(&mut self, now: Instant, pkt: P, key: u64, obs: &mut dyn Observer<P>) {
        if !self.queue.limit.admits(self.backlog, pkt.wire_len()) {
            return obs.dropped(now, pkt, Cause::of(Reason::Overflow));
        }
        self.backlog.packets += Packets::new(1);
        self.backlog.bytes += pkt.wire_len();
        self.places.push_back(Some(Keyed { key, packet: pkt }));
    }

    /// Marks or drops `pkt`.
    #[inline(never)]
    fn notify(&mut self, now: Instant, mut pkt: P, key: u64, notice: Notice, obs: &mut dyn Observer<P>) {
        if !notice.marks(self.queue.ecn, pkt.ecn()) {
            return obs.dropped(now, pkt, Cause::of(notice.reason));
        }
        if self.queue.limit.admits(self.backlog, pkt.wire_len()) && pkt.ecn() != Ecn::Ce {
            pkt.mark_ce();
            obs.marked(now, &pkt, Cause::of(notice.reason));
        }
        self.accept(now, pkt, key, obs);
    }
}

impl<P: Packet> Qdisc<P> for Choke<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let key = pkt.flow_hash(self.salt);
        let number = self.arrivals;
        self.arrivals += 1;
        let queued = self.backlog.packets.as_f64();
        let avg = self.law.on_arrival(now, queued);
        let comparisons = self.law.comparisons(avg);
        if comparisons > 0 && self.meets_its_flow(now, key, comparisons, obs) {
            self.matched += 1;
            return obs.dropped(now, pkt, Cause::of(Reason::Early));
        }
        let draw = || unit_from_bits(self.draws.at(number));
        match self.law.decide(avg, queued, pkt.wire_len(), draw) {
            Decision::Admit => self.accept(now, pkt, key, obs),
            Decision::Notify(notice) => self.notify(now, pkt, key, notice, obs),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        if self.places.is_empty() {
            self.law.on_idle(now);
            return None;
        }
        let pkt = self.places.pop_front().flatten().expect("the first place is never a gap").packet;
        self.backlog.packets -= Packets::new(1);
        self.backlog.bytes -= pkt.wire_len();
        while matches!(self.places.front(), Some(None)) {
            self.places.pop_front();
        }
        Some(pkt)
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        self.law.rate_changed(now, rate.packets_per_s(self.queue.mean_packet));
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn next_len(&mut self) -> Option<Bytes> {
        self.places.front().and_then(Option::as_ref).map(|first| first.packet.wire_len())
    }

    fn reserve(&mut self, packets: usize, _flows: usize) {
        let most = self.queue.limit.most_of(packets);
        self.places.reserve_exact(most.saturating_sub(self.places.len()));
    }

    /// Appends `avg` (packets), `p` (RED's, before spacing), `count`, and `matched` (arrivals so far that have met a
    /// packet of their own flow).
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        let red = self.law.red();
        let avg = red.average().at(now);
        out.extend([
            ("avg", avg),
            ("p", red.probability(avg)),
            ("count", red.count() as f64),
            ("matched", self.matched as f64),
        ]);
    }
}

/// CHOKe's entry in the catalogue.
pub(crate) const CHOKE_INFO: Info = Info {
    name: "choke",
    title: "CHOKe",
    summary: "RED that first compares each arrival with a random waiting packet and drops both if they are of one flow",
    version: 1,
    applies: &["red"],
    maturity: Maturity::ReferenceChecked,
    decides: Decides::Enqueue,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || resolve::sample(&[Parameters::ecn().is(true), Parameters::w_q().is(0.2)]),
};

const PAPER: &str = "Pan, Prabhakar, Psounis 2000";
/// The rules for RED's automatic weight that suit a queue in packets.
const WEIGHTS: &[&str] = &[WeightRule::Fixed.word(), WeightRule::Paper.word(), WeightRule::Linux.word()];
const REGIONS: &[&str] = &[Region::Rfc3168.word(), Region::Linux.word()];

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        limit: Size = Common::limit().auto("one bandwidth-delay product, but at least 4 max_th if that is given")
            .aliases(&[tc("limit")])
            .source("ours: room above max_th; Linux preset: one bandwidth-delay product"),
        limit_rule: LimitRule = Common::limit_rule(),
        /// average queue up to which every packet is queued without a comparison
        min_th: Size = Row::size().auto("5 packets; Linux preset: max_th / 3")
            .aliases(&[tc("min")])
            .source("Pan, Prabhakar, Psounis 2000, figure 1; 5: Floyd, \"RED: discussions of setting parameters\", 1997"),
        /// average queue above which every packet is chosen
        max_th: Size = Row::size().auto("3 min_th; Linux preset: limit / 4")
            .aliases(&[tc("max")])
            .source("Pan, Prabhakar, Psounis 2000, figure 1; three times min_th: Floyd 1997"),
        /// probability at max_th
        max_p: f64 = Row::above(0.0, 1.0).default(0.1)
            .aliases(&[tc("probability")])
            .source("Pan, Prabhakar, Psounis 2000, section 2: as in RED; 0.1: Floyd 1997"),
        /// weight of a new sample in the average
        w_q: f64 = Row::above(0.0, 1.0).auto("by w_rule").source("Floyd and Jacobson 1993, section 6"),
        /// automatic w_q: `fixed` 0.002; `paper` 1 - exp(-1/C); `linux` the largest 2^-k that lets `burst` pass
        w_rule: WeightRule = Row::choice("fixed").only(WEIGHTS)
            .source("0.002: Floyd and Jacobson 1993; 1 - exp(-1/C): Floyd, Gummadi, Shenker 2001; linux: tc"),
        /// number of waiting packets with which each arrival is compared
        comparisons: u64 = Row::integer(1, 1000).default(1)
            .source("Pan, Prabhakar, Psounis 2000, section 2: one; section 4, `m` (from memory)"),
        /// with a number k above 0, the range between the thresholds is divided into k regions; in region i, each
        /// arrival is compared with 2 i packets, whatever `comparisons` says
        regions: u64 = Row::integer(0, 1000).default(0)
            .source("Pan, Prabhakar, Psounis 2000, section 4, self-adjusting CHOKe (from memory)"),
        /// the waiting packet with which an arrival is compared: `random` each with the same probability; `linux` a
        /// place in the kernel's table, in which packets lost from the middle leave gaps, drawn up to three times
        /// until it holds a packet, and then the oldest packet
        candidate: Candidate = Row::choice("random").source("Pan, Prabhakar, Psounis 2000, figure 1; Linux"),
        ecn: bool = Row::flag(false).aliases(&[tc("ecn")])
            .help("mark ECN-capable packets that RED chooses, where ecn_region allows, instead of dropping them; a \
                packet that meets its own flow is dropped in any case")
            .source("ours: the paper drops; RFC 3168, section 7; Linux"),
        /// where marks replace drops: `rfc3168` below max_th; `linux` everywhere except at overflow
        ecn_region: Region = Row::choice("rfc3168").only(REGIONS).source("RFC 3168, section 7; Linux"),
        mean_packet: Bytes = Common::mean_packet()
            .source("Floyd and Jacobson 1993, section 11; tc takes 1000 B"),
        /// gaps between RED's notices at constant pb: `paper` 1 .. 1/pb - 1, `ns2_wait` 1/pb .. 2/pb - 1, `linux`
        /// 1 .. 1/pb, `off` geometric
        uniformisation: SpacingRule = Row::choice("paper")
            .source("Floyd and Jacobson 1993, section 8; ns-2.35; Linux"),
        /// when packets are counted: `paper` between the thresholds; `linux` like `paper`, but the count restarts
        /// after a forced notice
        counting: Counting = Row::choice("paper").only(COUNTINGS).source("Floyd and Jacobson 1993, figure 2; Linux"),
        /// decay of the average over an idle time: `paper` by m virtual packets, `ns2` by m + 1, `linux` by its table
        /// of shifts
        idle: IdleRule = Row::choice("paper").source("Floyd and Jacobson 1993, section 11; ns-2.35; Linux"),
        /// arithmetic: `exact` uses real numbers; `linux` uses a fixed-point average, and a probability that rises
        /// per packet by a whole number of units of 2^-32, at least one
        arithmetic: RedArithmetic = Row::choice("exact").source("Floyd and Jacobson 1993; Linux"),
        /// with w_rule `linux`, the length, in packets, of a burst that the average tolerates
        burst: u64 = Row::integer(1, 1_000_000)
            .auto("(2 min_th + max_th) / 3, rounded down; at least one packet")
            .aliases(&[tc("burst")])
            .source("tc-choke(8)"),
    }
}

const COUNTINGS: &[&str] = &["paper", "linux"];

const PRESETS: &[Preset] = &[
    Preset { name: "paper", title: PAPER, values: &[] },
    Preset {
        name: LINUX,
        title: "Linux's choke with the defaults of tc",
        values: &[
            Parameters::max_p().is(0.02),
            Parameters::w_rule().is("linux"),
            Parameters::candidate().is("linux"),
            Parameters::ecn_region().is("linux"),
            Parameters::mean_packet().is(Bytes::new(1000)),
            Parameters::uniformisation().is("linux"),
            Parameters::counting().is("linux"),
            Parameters::idle().is("linux"),
            Parameters::arithmetic().is("linux"),
        ],
    },
];

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mean = resolve::mean_packet(all, link)?;
    let (limit, min_th, max_th) = (Parameters::limit(), Parameters::min_th(), Parameters::max_th());
    for row in [limit, min_th, max_th] {
        resolve::absolute_in_queue_unit(all, row, link, super::Measure::Packets, mean)?;
    }
    let packets = |all: &Settings, row: Row<Size>| -> Result<f64, ParamError> {
        Ok(in_bytes(row.read(all)?, mean) / mean.as_f64())
    };
    let linux = Parameters::preset().read(all)? == LINUX;
    if linux {
        // tc-choke(8): limit, max and min, in this order, in whole packets.
        if limit.is_auto(all) {
            one_bdp(all, link, mean, 0.0)?;
        }
        if max_th.is_auto(all) {
            let size = size(packets(all, limit)? / 4.0);
            max_th.derive(all, size, "limit / 4");
        }
        if min_th.is_auto(all) {
            let size = size(packets(all, max_th)? / 3.0);
            min_th.derive(all, size, "max_th / 3");
        }
    } else {
        if min_th.is_auto(all) {
            min_th.derive(all, size(5.0), "5 packets");
        }
        if max_th.is_auto(all) {
            let size = size(3.0 * packets(all, min_th)?);
            max_th.derive(all, size, "3 min_th");
        }
        if limit.is_auto(all) {
            let least = 4.0 * packets(all, max_th)?;
            one_bdp(all, link, mean, least)?;
        }
    }
    resolve_burst(all)?;
    resolve_weight(all, link)?;
    resolve::check_buffer(all, mean)?;
    resolve::check_order(all, min_th, max_th, mean)?;
    if linux { Ok(()) } else { resolve::check_order(all, max_th, limit, mean) }
}

/// Sets limit to one bandwidth-delay product, but at least to `least` packets.
fn one_bdp(all: &mut Settings, link: &LinkContext, mean: Bytes, least: f64) -> Result<(), ParamError> {
    let limit = Parameters::limit();
    if link.rtt.is_none() && least > 0.0 {
        limit.derive(all, size(least), "4 max_th");
        return Ok(());
    }
    let bdp = link.bdp_bytes(limit.name(), 1.0)? / mean.as_f64();
    let rule = if bdp > least { "one bandwidth-delay product" } else { "4 max_th" };
    limit.derive(all, Size::Packets(Packets::new(whole(bdp.max(least)))), rule);
    Ok(())
}

/// Returns a size in packets, rounded down but at least one.
fn size(packets: f64) -> Size {
    Size::Packets(Packets::new((packets as u64).max(1)))
}

/// Builds a CHOKe queue from these parameters.
pub(crate) fn build_choke<P: Packet>(s: &Effective, draws: Stream) -> Result<Choke<P>, ParamError> {
    let p = Parameters::read(s)?;
    let mean_packet = p.mean_packet;
    let packets = |size| in_bytes(size, mean_packet) / mean_packet.as_f64();
    let red = RedParams {
        min_th: packets(p.min_th),
        max_th: packets(p.max_th),
        max_p: p.max_p,
        weight: p.w_q,
        gentle: false,
        spacing: p.uniformisation,
        byte_mode: ByteMode::Off,
        idle: p.idle,
        counting: p.counting,
        ecn_region: match p.ecn_region {
            Region::Linux | Region::Feng => EcnRegion::Everywhere,
            Region::Rfc3168 | Region::Ns2MarkP => EcnRegion::BelowMaxTh,
        },
        arithmetic: p.arithmetic,
        packets_per_s: s.link().rate.packets_per_s(mean_packet),
    };
    let comparisons =
        if p.regions == 0 { Comparisons::Fixed(p.comparisons) } else { Comparisons::Regions(p.regions) };
    let queue = ChokeQueue {
        limit: resolve::limit(s)?,
        ecn: p.ecn,
        mean_packet,
        gaps: p.candidate == Candidate::Linux,
    };
    Ok(Choke::new(ChokeLaw::new(red, comparisons), queue, draws))
}
