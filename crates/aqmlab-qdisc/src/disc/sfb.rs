//! Stochastic Fair BLUE and its parameters: a FIFO whose law ([`SfbLaw`]) counts packets by bins of hashed flows.

use alloc::format;

use aqmlab_params::{ParamError, Row, Settings, params};
use aqmlab_random::{Numbered, Stream, unit_from_bits};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Rate, Span};

use super::table::{LINUX, names, packets, presets, tc};
use super::words::{BinDrop, Overload, Precedence, SfbClock};
use crate::info::{Decides, Derive, Effective, Info, Maturity, Preset};
use crate::law::{Decision, FullBin, Notice, SfbKeys, SfbLaw, SfbParams};
use crate::resolve::{self, Common, LimitRule, in_bytes};
use crate::{
    Arrived, Backlog, Cause, Dscp, Ecn, Fifo, LawSamples, Limit, LinkContext, Observer, Packet, Qdisc,
    Reason, Side,
};

/// A packet with its hashes.
#[derive(Clone, Debug)]
struct Binned<P> {
    keys: SfbKeys,
    packet: P,
}

impl<P: Packet> Packet for Binned<P> {
    #[inline]
    fn wire_len(&self) -> Bytes {
        self.packet.wire_len()
    }
    fn flow_hash(&self, salt: u64) -> u64 {
        self.packet.flow_hash(salt)
    }
    fn host_hash(&self, side: Side, salt: u64) -> u64 {
        self.packet.host_hash(side, salt)
    }
    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }
    fn mark_ce(&mut self) {
        self.packet.mark_ce();
    }
    fn dscp(&self) -> Dscp {
        self.packet.dscp()
    }
    fn set_dscp(&mut self, dscp: Dscp) {
        self.packet.set_dscp(dscp);
    }
}

/// The parameters of an SFB queue other than those of its law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SfbQueue {
    /// Buffer limit.
    pub limit: Limit,
    /// Whether ECN-capable packets are marked instead of dropped if the law allows it.
    pub ecn: bool,
    /// Whether an arrival that finds the buffer full is lost without a call to the law.
    pub limit_first: bool,
}

/// Stochastic Fair BLUE.
#[derive(Clone, Debug)]
pub struct Sfb<P> {
    law: SfbLaw,
    queue: SfbQueue,
    fifo: Fifo<Binned<P>>,
    stream: Stream,
    draws: Numbered,
    /// Salts of the hashes of the current epoch and the next one, and the number of the current one.
    salts: ([u64; 2], u64),
    /// Number of the next arrival, which is also the number of its draw, whether or not the draw is used.
    arrivals: u64,
}

/// The salt of epoch `n` is the draw of this number minus `n`; the numbers of arrivals never reach it.
const SALT_DRAWS: u64 = u64::MAX;

impl<P: Packet> Sfb<P> {
    /// Creates an empty queue.
    pub fn new(law: SfbLaw, queue: SfbQueue, draws: Stream) -> Self {
        let salt = |epoch: u64| draws.at(SALT_DRAWS - epoch);
        Sfb {
            law,
            queue,
            fifo: Fifo::for_limit(queue.limit),
            stream: draws,
            draws: draws.numbered(),
            salts: ([salt(0), salt(1)], 0),
            arrivals: 0,
        }
    }

    /// Returns the law.
    pub const fn law(&self) -> &SfbLaw {
        &self.law
    }

    fn accept(&mut self, pkt: P, keys: SfbKeys) {
        self.law.on_queued(&keys);
        self.fifo.push(Binned { keys, packet: pkt });
    }

    /// Marks or drops `pkt`.
    #[inline(never)]
    fn notify(
        &mut self,
        now: Instant,
        mut pkt: P,
        keys: SfbKeys,
        (notice, full): (Notice, bool),
        obs: &mut dyn Observer<P>,
    ) {
        if !notice.marks(self.queue.ecn, pkt.ecn()) {
            return obs.dropped(now, pkt, Cause::of(notice.reason));
        }
        if full {
            return obs.dropped(now, pkt, Cause::of(Reason::Overflow));
        }
        if pkt.ecn() != Ecn::Ce {
            pkt.mark_ce();
            obs.marked(now, &pkt, Cause::of(notice.reason));
        }
        self.accept(pkt, keys);
    }
}

impl<P: Arrived> Qdisc<P> for Sfb<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let number = self.arrivals;
        self.arrivals += 1;
        let full = !self.queue.limit.admits(self.fifo.backlog(), pkt.wire_len());
        if full && self.queue.limit_first {
            return obs.dropped(now, pkt, Cause::of(Reason::Overflow));
        }
        let epoch = self.law.epoch_at(now);
        if epoch != self.salts.1 {
            let salt = |epoch: u64| self.stream.at(SALT_DRAWS - epoch);
            self.salts = ([salt(epoch), salt(epoch + 1)], epoch);
        }
        let [current, next] = self.salts.0;
        let draws = &mut self.draws;
        let draw = || unit_from_bits(draws.at(number));
        let key = pkt.flow_hash(current);
        match self.law.on_arrival(now, key, || pkt.flow_hash(next), draw) {
            (Decision::Admit, keys) if !full => self.accept(pkt, keys),
            (Decision::Admit, _) => obs.dropped(now, pkt, Cause::of(Reason::Overflow)),
            (Decision::Notify(notice), keys) => self.notify(now, pkt, keys, (notice, full), obs),
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        let Binned { keys, packet } = self.fifo.pop()?;
        self.law.on_departure(&keys);
        Some(packet)
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn rate_changed(&mut self, _now: Instant, _rate: Rate) {}

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

    fn reserve(&mut self, packets: usize, _flows: usize) {
        self.fifo.reserve(self.queue.limit, packets);
    }

    /// Appends `p` (the largest probability of a bin), `bin` (the largest number of packets of a bin), and the
    /// packets so far that were lost because of full bins (`full`) and in the penalty box (`penalised`).
    fn observe(&self, _now: Instant, out: &mut LawSamples) {
        out.extend([
            ("p", self.law.largest_probability()),
            ("bin", self.law.longest() as f64),
            ("full", self.law.full() as f64),
            ("penalised", self.law.penalised() as f64),
        ]);
    }
}

/// SFB's entry in the catalogue.
pub(crate) const SFB_INFO: Info = Info {
    name: "sfb",
    title: "SFB",
    summary: "Stochastic Fair BLUE: a BLUE for each bin of hashed flows, and a rate limit for flows that do not respond",
    version: 1,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: Decides::Enqueue,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || {
        let (up, size) = (Parameters::increment().is(0.05), Parameters::bin_size().is(3));
        resolve::sample(&[Parameters::ecn().is(true), up, size])
    },
};

const PAPER: &str = "Feng, Kandlur, Saha, Shin 2001, figure 2";

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        /// buffer size, excluding the packet in transmission
        limit: Size = Common::limit().default(Size::Bdp(1.0)).aliases(&[tc("limit")])
            .source("one bandwidth-delay product: Villamizar and Song 1994"),
        limit_rule: LimitRule = Common::limit_rule(),
        /// number of levels, each with a hash function of its own
        levels: u64 = Row::integer(1, 32).default(2).source("Feng, Kandlur, Saha, Shin 2001 (from memory); Linux: 8"),
        /// number of bins at each level
        bins: u64 = Row::integer(1, 65_536).default(23)
            .source("Feng, Kandlur, Saha, Shin 2001 (from memory); Linux: 16"),
        /// number of waiting packets of a bin above which its probability rises
        bin_size: u64 = Row::integer(0, 1_000_000).auto("1.5 limit / bins in packets, rounded down; Linux preset: 20")
            .aliases(&[tc("target")])
            .source("Feng, Kandlur, Saha, Shin 2001 (from memory): 50 % more than a bin's part of the buffer"),
        /// increase of a bin's probability at each arrival that finds too many of its packets waiting
        increment: f64 = Row::above(0.0, 1.0).default(0.005).aliases(&[tc("increment")])
            .source("Feng, Kandlur, Saha, Shin 2001, figure 2; value: from memory"),
        /// decrease of a bin's probability at each arrival that finds none of its packets waiting
        decrement: f64 = Row::above(0.0, 1.0).default(0.005).aliases(&[tc("decrement")])
            .source("Feng, Kandlur, Saha, Shin 2001, figure 2: the same delta"),
        /// arrivals that are lost because of full bins: `any` those of which any bin holds more than bin_size
        /// packets; `all` those of which all bins hold at least bin_max packets
        bin_drop: BinDrop = Row::choice("any").source("any: Feng, Kandlur, Saha, Shin 2001, figure 2; all: Linux"),
        /// with bin_drop `all`, the number of waiting packets of a flow's bins at which its arrivals are lost; a
        /// bin's probability then also rises at exactly bin_size packets
        bin_max: u64 = Row::integer(1, 1_000_000).default(25).aliases(&[tc("max")]).source("Linux"),
        /// number of packets per second that pass the penalty box, which all flows with probability 1 share
        penalty_rate: f64 = Row::number(0.0, 1e9).default(10.0).aliases(&[tc("penalty_rate")])
            .source("the paper leaves it open; Linux"),
        /// largest number of packets that pass the penalty box at once
        penalty_burst: u64 = Row::integer(0, 1_000_000).default(20).aliases(&[tc("penalty_burst")])
            .source("the paper leaves it open; Linux"),
        /// time between changes of the hash functions; 0: they never change
        rehash: Span = Row::span(Span::ZERO, Span::s(1_000_000)).default(Span::s(20)).aliases(&[tc("rehash")])
            .source("Feng, Kandlur, Saha, Shin 2001, section on moving hash functions; value: ours"),
        /// the last part of this time, in which unresponsive flows are hashed into the next set of bins, too
        warmup: Span = Row::span(Span::ZERO, Span::s(1_000_000)).auto("rehash").aliases(&[tc("db")])
            .source("Feng, Kandlur, Saha, Shin 2001, double buffering: always; Linux"),
        /// `exact`: changes at multiples of rehash, to bins that are empty but for the warm-up, and a token bucket;
        /// `linux`: whole milliseconds, changes at the first arrival more than rehash after the last one, to bins with
        /// their old probabilities, and a penalty box that is refilled, by whole packets, only when it is empty
        clock: SfbClock = Row::choice("exact").source("exact: ours; Linux with HZ 1000"),
        /// the probability is rounded to a multiple of 1/steps; 0: no rounding
        steps: u64 = Row::integer(0, 1_000_000_000).default(0).source("ours; Linux: 65535"),
        /// what happens to ECN-capable packets of flows whose probability exceeds one half: `mark`, as otherwise, or
        /// `drop`, with twice the excess
        overload: Overload = Row::choice("mark").source("mark: Feng, Kandlur, Saha, Shin 2001; drop: Linux"),
        /// the decision at an arrival that finds the buffer full: `law` first the law's; with `limit`, the law does
        /// not see the packet
        precedence: Precedence = Row::choice("law").source("Feng, Kandlur, Saha, Shin 2001; limit: Linux"),
        /// mark ECN-capable packets that are chosen at random, instead of dropping them
        ecn: bool = Row::flag(false).source("Feng, Kandlur, Saha, Shin 2001; Linux always marks"),
        mean_packet: Bytes = Common::mean_packet(),
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "paper", title: PAPER, values: &[] },
    Preset {
        name: LINUX,
        title: "Linux's sfb as shipped",
        values: &[
            Parameters::limit().is(packets(1000)),
            Parameters::levels().is(8),
            Parameters::bins().is(16),
            Parameters::increment().is(0.001),
            Parameters::decrement().is(0.000_17),
            Parameters::bin_drop().is("all"),
            Parameters::rehash().is(Span::s(600)),
            Parameters::warmup().is(Span::s(60)),
            Parameters::clock().is("linux"),
            Parameters::steps().is(65_535),
            Parameters::overload().is("drop"),
            Parameters::precedence().is("limit"),
            Parameters::ecn().is(true),
        ],
    },
];

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mean = resolve::mean_packet(all, link)?;
    let (limit, bin_size, warmup) = (Parameters::limit(), Parameters::bin_size(), Parameters::warmup());
    resolve::absolute_size(all, limit, link)?;
    resolve::check_buffer(all, link.mean_packet.max(mean))?;
    if bin_size.is_auto(all) {
        if Parameters::preset().read(all)? == LINUX {
            bin_size.derive(all, 20, "20, as in Linux");
        } else {
            let share =
                in_bytes(limit.read(all)?, mean) / mean.as_f64() / Parameters::bins().read(all)? as f64;
            bin_size.derive(all, (1.5 * share) as u64, "1.5 limit / bins");
        }
    }
    if warmup.is_auto(all) {
        let rehash = Parameters::rehash().read(all)?;
        warmup.derive(all, rehash, "rehash");
    }
    let p = Parameters::read(all)?;
    if p.warmup > p.rehash && !p.rehash.is_zero() {
        return Err(warmup.error(format!("warmup `{}` exceeds rehash `{}`", p.warmup, p.rehash)));
    }
    let most = 56.0;
    if p.levels as f64 * libm::log2(p.bins as f64) > most {
        return Err(Parameters::levels().error(format!(
            "{} levels of {} bins need more than {most} bits of a hash; write fewer levels or bins",
            p.levels, p.bins
        )));
    }
    if p.steps > 0 {
        for (row, change) in [(Parameters::increment(), p.increment), (Parameters::decrement(), p.decrement)]
        {
            if change * (p.steps as f64) < 0.5 {
                return Err(row.error(format!(
                    "{} `{change}` is rounded to 0 steps of 1/{}",
                    row.name(),
                    p.steps
                )));
            }
        }
    }
    Ok(())
}

/// Builds an SFB queue from these parameters.
pub(crate) fn build_sfb<P: Packet>(s: &Effective, draws: Stream) -> Result<Sfb<P>, ParamError> {
    let p = Parameters::read(s)?;
    let all = p.bin_drop == BinDrop::All;
    let law = SfbLaw::new(SfbParams {
        levels: p.levels as usize,
        bins: p.bins as usize,
        bin_size: p.bin_size,
        at_bin_size: all,
        increment: p.increment,
        decrement: p.decrement,
        steps: Some(p.steps as f64).filter(|steps| *steps > 0.0),
        full_bin: if all { FullBin::All(p.bin_max) } else { FullBin::Any },
        drops_above_half: p.overload == Overload::Drop,
        penalty_rate: p.penalty_rate,
        penalty_burst: p.penalty_burst as f64,
        rehash: Some(p.rehash).filter(|time| !time.is_zero()),
        warmup: p.warmup,
        linux_time: p.clock == SfbClock::Linux,
    });
    let limit_first = p.precedence == Precedence::Limit;
    Ok(Sfb::new(law, SfbQueue { limit: resolve::limit(s)?, ecn: p.ecn, limit_first }, draws))
}
