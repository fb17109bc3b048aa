//! A token bucket filter: a shaper in front of the link, with a queue inside.

use alloc::boxed::Box;
use alloc::format;

use aqmlab_params::{Kind, ParamError, Row, Settings, params, words};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};

use super::inner::{BuildInner, Inner, needs, quick_red, replace, resolve_inner};
use super::policer::policed;
use super::table::{names, presets, tc, tc_bytes};
use crate::info::{Catalogue, Decides, Derive, Effective, Info, Maturity, Preset};
use crate::law::{Arithmetic, Cells, Framing, Tariff, TokenBucket};
use crate::resolve::Common;
use crate::{
    Arrived, Backlog, Cause, Inside, LawSamples, LinkContext, Observer, Packet, Qdisc, Reason, resolve,
};

/// The rules of a token bucket filter.
#[derive(Clone, Copy, Debug)]
pub struct TbfRules {
    /// The bucket of the rate and, if there is one, that of the peak rate.
    pub buckets: [Option<TokenBucket>; 2],
    /// Packets of this many bytes fill the first bucket.
    pub burst: Bytes,
    /// How the time of a packet is computed.
    pub arithmetic: Arithmetic,
    /// The rate at which the inner queue is emptied.
    pub rate: Rate,
    /// Bytes of the link's header, which count as part of each packet.
    pub header: Bytes,
    /// What the lower layers add to each packet.
    pub framing: Framing,
    /// The longest packet that can ever leave, header included.
    pub longest: Bytes,
    /// Whether the next packet is taken from the inner queue while it still has to wait here.
    pub takes: bool,
    /// Whether an empty inner queue is asked for a packet.
    pub asks_empty: bool,
}

/// A token bucket filter. A packet leaves the inner queue when the buckets hold enough tokens for it.
#[derive(Clone, Debug)]
pub struct Tbf<P, Q> {
    rules: TbfRules,
    queue: Q,
    /// The next packet, if it has been taken from the inner queue.
    taken: Option<P>,
    /// When the next packet may leave, if it has been looked at.
    due: Option<Instant>,
    /// Whether the inner queue knows that it is empty.
    told: bool,
    /// Number of packets that were too long.
    too_long: u64,
}

impl<P: Packet, Q: Qdisc<P>> Tbf<P, Q> {
    /// Creates a filter with full buckets.
    pub const fn new(rules: TbfRules, queue: Q) -> Self {
        Tbf { rules, queue, taken: None, due: None, told: false, too_long: 0 }
    }

    /// Returns the bytes of a packet of this length that the buckets count.
    fn charged(&self, size: Bytes) -> u64 {
        self.rules.framing.length(size + self.rules.header)
    }

    /// Returns the time until a packet of this many bytes may leave.
    fn wait(&self, now: Instant, bytes: u64) -> Span {
        let waits = self.rules.buckets.iter().flatten().map(|bucket| bucket.wait(now, bytes));
        waits.max().unwrap_or(Span::ZERO)
    }

    /// Returns the length of the next packet, for which it may have to be taken from the inner queue.
    fn look(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<Bytes> {
        if self.taken.is_none() && !self.rules.takes {
            let length = self.queue.next_len();
            if length.is_some() {
                return length;
            }
        }
        if self.taken.is_none() && !self.queue.backlog().packets.is_zero() {
            self.taken = self.queue.dequeue(now, obs);
        }
        self.taken.as_ref().map(P::wire_len)
    }
}

impl<P: Arrived, Q: Qdisc<P>> Qdisc<P> for Tbf<P, Q> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if pkt.wire_len() + self.rules.header > self.rules.longest {
            self.too_long += 1;
            return obs.dropped(now, pkt, Cause::of(Reason::Forced));
        }
        self.told = false;
        self.queue.enqueue(now, pkt, obs);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.due = None;
        loop {
            let Some(length) = self.look(now, obs) else {
                // The inner queue has lost its packets just now, holds them back, or is empty.
                let empty = self.queue.backlog().packets.is_zero();
                if empty && self.rules.asks_empty && !core::mem::replace(&mut self.told, true) {
                    let none = self.queue.dequeue(now, obs);
                    debug_assert!(none.is_none(), "an empty queue returns no packet");
                }
                return None;
            };
            let wait = self.wait(now, self.charged(length));
            if !wait.is_zero() {
                self.due = Some(now.saturating_add(wait));
                return None;
            }
            // The law of the inner queue may drop the packet that was looked at.
            if let Some(pkt) = self.taken.take().or_else(|| self.queue.dequeue(now, obs)) {
                let bytes = self.charged(pkt.wire_len());
                self.rules.buckets.iter_mut().flatten().for_each(|bucket| bucket.charge(now, bytes));
                return Some(pkt);
            }
            if !self.queue.backlog().packets.is_zero() {
                return None;
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        if Qdisc::<P>::backlog(self).packets.is_zero() {
            None
        } else {
            self.due.or_else(|| self.queue.deadline())
        }
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        self.queue.rate_changed(now, rate.min(self.rules.rate));
    }

    /// DEVIATES from Linux, where each change fills the buckets, so that a shaper that is changed often sends more than its
    /// rate: the bucket keeps its tokens.
    fn shape(&mut self, now: Instant, rate: Rate) -> bool {
        let TbfRules { burst, arithmetic, framing, .. } = self.rules;
        self.rules.rate = rate;
        if let Some(bucket) = &mut self.rules.buckets[0] {
            let tariff = Tariff::of(arithmetic, rate);
            bucket.change(now, tariff, tariff.price(framing.length(burst)));
        }
        self.queue.rate_changed(now, rate);
        true
    }

    fn backlog(&self) -> Backlog {
        let mut all = self.queue.backlog();
        if let Some(pkt) = &self.taken {
            all.packets += Packets::new(1);
            all.bytes += pkt.wire_len();
        }
        all
    }

    fn holds_back(&self) -> bool {
        true
    }

    fn reserve(&mut self, packets: usize, flows: usize) {
        self.queue.reserve(packets, flows);
    }

    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        self.queue.each_inner(visit);
    }

    /// Appends `tokens` and, with a peak rate, `peak_tokens` (bytes), `too_long` (packets so far), and the values
    /// of the inner queue.
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        for (name, bucket) in ["tokens", "peak_tokens"].into_iter().zip(&self.rules.buckets) {
            out.extend(bucket.map(|bucket| (name, bucket.bytes_at(now))));
        }
        out.push(("too_long", self.too_long as f64));
        self.queue.observe(now, out);
    }
}

words! {
    /// How a shaper learns the length of the next packet.
    pub(super) enum Peek { Length = "length", Linux = "linux" }
}

/// The filter's entry in the catalogue.
pub(crate) const TBF_INFO: Info = Info {
    name: "tbf",
    title: "Token bucket filter",
    summary: "a shaper with one or two token buckets, and a queue inside that waits for tokens",
    version: 1,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: Decides::Both,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Containing(derive),
    samples: || {
        let values = [
            Parameters::rate().is(Rate::mbit(8)),
            Parameters::burst().is(Bytes::new(3000)),
            Parameters::queue().pair(quick_red()),
        ];
        let fifo = [
            Parameters::rate().is(Rate::mbit(4)),
            Parameters::burst().is(Bytes::new(20_000)),
            Parameters::peakrate().pair(Some(Rate::mbit(9))),
            Parameters::mtu().pair(Some(Bytes::new(1600))),
            Parameters::queue().pair(policed(quick_red(), None)),
        ];
        alloc::vec![("", resolve::given(&values)), ("with a peak rate", resolve::given(&fifo))]
    },
};

const TC: &str = "tc-tbf(8)";

params! {
    /// The parameters that both shapers share.
    pub(super) struct Shaping {
        /// bytes of the link's header, which count in all lengths
        header: u64 = Row::integer(0, 256).default(0).source("Linux"),
        /// bytes that the lower layers add to each packet
        overhead: u64 = Row::integer(0, 256).default(0).aliases(&[tc("overhead")]).source("tc-tbf(8), tc-htb(8)"),
        /// length, overhead included, of the shortest packet on the link, in bytes
        mpu: u64 = Row::integer(0, 256).default(0).aliases(&[tc("mpu")]).source("tc-tbf(8), tc-htb(8)"),
        /// the cells of the link: `atm`, 53 bytes for each 48; `ptm`, one byte more for each 64
        framing: Cells = Row::choice("none").source("tc-tbf(8), tc-htb(8)"),
        /// `exact`, or `linux`: transmission times with 32 significant bits, rounded down to nanoseconds, from a
        /// rate in whole bytes per second
        arithmetic: Arithmetic = Row::choice("exact").source("Linux"),
        /// whether the queue is asked for a packet when it is empty, by which it learns that it is idle
        asks_empty: bool = Row::flag(true).source("ours; Linux: false"),
    }
}

impl Shaping {
    /// Returns the framing that these values describe.
    pub(super) const fn framing_of(overhead: u64, mpu: u64, cells: Cells) -> Framing {
        Framing { overhead: Bytes::new(overhead), shortest: Bytes::new(mpu), cells }
    }
}

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        /// rate at which the bucket fills, in bytes on the link as overhead, mpu and framing count them
        rate: Rate = Row::rate(Rate::bps(8), Rate::gbit(1000)).aliases(&[tc("rate")]).source(TC),
        /// packets of this many bytes fill the bucket, which is full at first; longer packets are lost
        burst: Bytes = Row::bytes(1, 1_000_000_000)
            .aliases(&[tc_bytes("burst"), tc_bytes("buffer"), tc_bytes("maxburst")]).source(TC),
        /// rate of a second bucket, which limits how fast the burst leaves
        peakrate: Option<Rate> = Row::rate(Rate::bps(8), Rate::gbit(1000)).aliases(&[tc("peakrate")])
            .source(TC).optional("a burst leaves at the link's rate"),
        /// packets of this many bytes fill the second bucket; longer packets are lost
        mtu: Option<Bytes> = Row::bytes(1, 1_000_000_000).aliases(&[tc_bytes("mtu"), tc_bytes("minburst")])
            .source(TC).optional("there is no second bucket"),
        /// buffer size of the queue inside, if it is not given as queue
        limit: Option<Size> = Common::limit().aliases(&[tc_bytes("limit")]).source(TC)
            .optional("from latency, or queue has its own"),
        /// the longest time that a packet waits for tokens, instead of limit: the buffer holds what arrives as
        /// tokens in this time, plus the bucket
        latency: Option<Span> = Row::span(Span::us(1), Span::s(1000)).aliases(&[tc("latency")]).source(TC)
            .optional("limit or queue is given"),
        header: u64 = Shaping::header(),
        overhead: u64 = Shaping::overhead(),
        mpu: u64 = Shaping::mpu(),
        framing: Cells = Shaping::framing(),
        arithmetic: Arithmetic = Shaping::arithmetic(),
        /// how the filter learns the length of the next packet: `length` asks the queue, and takes the packet only
        /// if the queue does not know; `linux` takes it early from all queues except those that have a peek of their
        /// own in Linux (droptail, red, choke, sfb)
        peek: Peek = Row::choice("length").source("ours; Linux"),
        asks_empty: bool = Shaping::asks_empty(),
        /// the queue: any discipline
        queue: Inner = Row::of(Kind::Discipline).auto("droptail with limit").source(TC),
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "exact", title: "the definition, without rounding", values: &[] },
    Preset {
        name: "linux",
        title: "Linux's tbf on Ethernet",
        values: &[
            Parameters::header().is(14),
            Parameters::arithmetic().is("linux"),
            Parameters::peek().is("linux"),
            Parameters::asks_empty().is(false),
        ],
    },
];

/// Disciplines whose next packet Linux looks at without taking it.
const PEEKABLE: [&str; 4] = ["droptail", "red", "choke", "sfb"];

/// Resolves the queue, and refuses contradictory settings.
fn derive(all: &mut Settings, link: &LinkContext, catalogue: &Catalogue) -> Result<(), ParamError> {
    needs(all, Parameters::rate(), "a rate such as \"2Mbit\"")?;
    needs(all, Parameters::burst(), "an amount such as \"10kB\"")?;
    let (rate, burst) = (Parameters::rate().read(all)?, Parameters::burst().read(all)?);
    let (peak, mtu) = (Parameters::peakrate().read(all)?, Parameters::mtu().read(all)?);
    match (peak, mtu) {
        (Some(peak), _) if peak <= rate => {
            return Err(Parameters::peakrate().error(format!(
                "peakrate `{peak}` does not exceed rate `{rate}`, so the first bucket would never matter; write a \
                 higher one, or leave it out"
            )));
        }
        (Some(_), None) => {
            return Err(Parameters::peakrate()
                .error("peakrate needs `mtu`, the bytes that its bucket holds; write at least one packet"));
        }
        (None, Some(mtu)) => {
            return Err(Parameters::mtu()
                .error(format!("mtu `{mtu}` is the bucket of `peakrate`, which is not given")));
        }
        _ => {}
    }
    let largest = link.mean_packet + Bytes::new(Parameters::header().read(all)?);
    for (row, depth) in [(Parameters::burst(), Some(burst)), (BUCKET_OF_MTU, mtu)] {
        if let Some(depth) = depth.filter(|depth| *depth < largest) {
            return Err(row.error(format!(
                "{} `{depth}` is smaller than a packet of `{largest}`, header included, which would never leave; \
                 write at least the size of the packet",
                row.name()
            )));
        }
    }
    let link = LinkContext { rate: rate.min(link.rate), ..*link };
    let row = Parameters::queue();
    let (limit, latency) = (Parameters::limit().read(all)?, Parameters::latency().read(all)?);
    // A queue of its own that an earlier resolution has derived is derived again.
    match (!all.is_given(row.name()), limit, latency) {
        (true, None, None) => {
            return Err(Parameters::limit().error(
                "the buffer has no size; write `limit` (\"100p\"), `latency` (\"50ms\") or a `queue` of its own",
            ));
        }
        (_, Some(_), Some(latency)) => {
            return Err(Parameters::latency()
                .error(format!("latency `{latency}` and limit both set the buffer; write one of them")));
        }
        (false, Some(limit), _) => {
            return Err(Parameters::limit()
                .error(format!("limit `{limit}` is that of the filter's own FIFO, which `queue` replaces")));
        }
        (false, _, Some(latency)) => {
            return Err(Parameters::latency().error(format!(
                "latency `{latency}` is that of the filter's own FIFO, which `queue` replaces"
            )));
        }
        (true, Some(limit), None) => own_fifo(all, limit, &link, catalogue)?,
        (true, None, Some(latency)) => {
            let mut limit = Bytes::new(u64::MAX);
            for (rate, bucket) in [(rate, burst)].into_iter().chain(peak.zip(mtu)) {
                let shaped = LinkContext { rate, ..link };
                let arrives = shaped.relative_bytes(Parameters::latency().name(), Size::Time(latency))?;
                limit = limit.min(Bytes::new(arrives.unwrap_or(0.0) as u64) + bucket);
            }
            own_fifo(all, Size::Bytes(limit), &link, catalogue)?;
        }
        (false, None, None) => {
            let queue = resolve_inner(row.read(all)?, &link, catalogue)?;
            replace(all, row, queue);
        }
    }
    Ok(())
}

/// `mtu` as a number of bytes that is given.
const BUCKET_OF_MTU: Row<Bytes> = Row::bytes(1, 1_000_000_000).named("mtu", "");

/// Sets the queue to a FIFO with this limit.
fn own_fifo(
    all: &mut Settings,
    limit: Size,
    link: &LinkContext,
    catalogue: &Catalogue,
) -> Result<(), ParamError> {
    let given = resolve::given(&[Common::limit().is(limit)]);
    let queue = resolve_inner(("droptail", given), link, catalogue)?;
    Parameters::queue().derive(all, queue, "droptail with limit");
    Ok(())
}

/// Builds a filter from these parameters; `build` makes the queue inside.
pub(crate) fn build_tbf<P: Packet, Q>(
    s: &Effective,
    draws: Stream,
    build: BuildInner<'_, Q>,
) -> Result<Tbf<P, Box<Q>>, ParamError>
where
    Box<Q>: Qdisc<P>,
{
    let p = Parameters::read(s)?;
    let framing = Shaping::framing_of(p.overhead, p.mpu, p.framing);
    let bucket = |rate: Rate, depth: Bytes| {
        let tariff = Tariff::of(p.arithmetic, rate);
        TokenBucket::with_depth(tariff, tariff.price(framing.length(depth)))
    };
    let link = LinkContext { rate: p.rate.min(s.link().rate), ..*s.link() };
    let (kind, _) = p.queue;
    let queue = build(&Effective::inner(p.queue, link), draws)?;
    let rules = TbfRules {
        buckets: [Some(bucket(p.rate, p.burst)), p.peakrate.zip(p.mtu).map(|(peak, mtu)| bucket(peak, mtu))],
        burst: p.burst,
        arithmetic: p.arithmetic,
        rate: p.rate,
        header: Bytes::new(p.header),
        framing,
        longest: p.mtu.map_or(p.burst, |mtu| mtu.min(p.burst)),
        takes: p.peek == Peek::Linux && !PEEKABLE.contains(&kind),
        asks_empty: p.asks_empty,
    };
    Ok(Tbf::new(rules, Box::new(queue)))
}
