//! CoDel: the [`Early`] queue with a [`CodelLaw`], which decides at departures; its parameters and
//! their conversion to a queue.

use alloc::format;
use alloc::sync::Arc;

use aqmlab_params::{ParamError, Row, Settings, params};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Span};

use super::table::{names, ns2_in, ns3, packets, presets, tc};
use super::words::CeFor;
use super::{Early, EarlyLaw, EarlyQueue, Leaving};
use crate::info::{Decides, Derive, Effective, Info, Maturity, Preset};
use crate::law::{Arithmetic, CodelLaw, CodelParams, Decision, Notice};
use crate::resolve::{self, Common, LimitRule};
use crate::{Backlog, Ecn, LawSamples, LinkContext, Packet};

/// CoDel.
pub type Codel<P> = Early<P, CodelControl>;

/// CoDel's law for a real queue. Copies share their extras.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodelControl {
    /// The law.
    pub law: CodelLaw,
    extras: Arc<CodelExtras>,
}

/// What a queue does in addition to the law.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodelExtras {
    /// The marks in addition to the law's.
    pub ce_threshold: CeThreshold,
    /// Whether a packet that is lost for lack of room raises the law's count.
    pub overflow_counts: bool,
}

impl CodelControl {
    /// Creates the law for an empty queue.
    pub fn new(params: CodelParams, extras: CodelExtras) -> Self {
        CodelControl { law: CodelLaw::new(params), extras: Arc::new(extras) }
    }
}

/// The waiting time above which packets are marked whatever the law decides (RFC 8290, section 5.2.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CeThreshold {
    above: Span,
    only_ect1: bool,
}

impl CeThreshold {
    pub(super) fn new(above: Option<Span>, packets: CeFor) -> Self {
        CeThreshold { above: above.unwrap_or(Span::MAX), only_ect1: packets == CeFor::Ect1 }
    }

    /// The parameter `ce_threshold`.
    pub(super) const fn row() -> Row<Option<Span>> {
        Row::span(Span::ns(1), Span::s(100))
            .aliases(const { &[tc("ce_threshold"), ns3("CeThreshold")] })
            .source("RFC 8290, section 5.2.7")
            .help(
                "waiting time above which every ECN-capable packet is marked as it leaves, with ecn on or off \
                 and whatever CoDel decides; for senders such as DCTCP that expect marks at a low threshold",
            )
            .optional("no such marks")
    }

    /// The parameter `ce_threshold_for`.
    pub(super) const fn selector_row() -> Row<CeFor> {
        Row::choice("ect")
            .source("tc-fq_codel(8): `ce_threshold_selector 1/3` is `ect1`")
            .help("packets that ce_threshold marks: all ECN-capable ones (`ect`), or ECT(1) alone (`ect1`)")
    }
}

impl EarlyLaw for CodelControl {
    const DECIDES: Decides = Decides::Dequeue;

    #[inline]
    fn decide_at_departure(&mut self, now: Instant, pkt: Leaving, _draw: impl FnOnce() -> f64) -> Decision {
        if self.law.on_departure(now, pkt.sojourn, pkt.backlog.bytes) {
            Decision::Notify(Notice::EARLY)
        } else {
            Decision::Admit
        }
    }

    fn on_early_drop(&mut self, _now: Instant) {
        self.law.on_drop();
    }

    fn on_overflow(&mut self, _now: Instant) {
        if self.extras.overflow_counts {
            self.law.on_overflow();
        }
    }

    #[inline]
    fn marks_admitted(&self, now: Instant, pkt: Leaving, ecn: Ecn) -> bool {
        let CeThreshold { above, only_ect1 } = self.extras.ce_threshold;
        above < Span::MAX && (!only_ect1 || ecn == Ecn::Ect1) && self.law.exceeds(now, pkt.sojourn, above)
    }

    fn is_as_new(&self, now: Instant) -> bool {
        self.law.is_as_new(now)
    }

    #[inline]
    fn on_idle(&mut self, _now: Instant) {
        self.law.on_empty();
    }

    /// Appends `dropping` (1 in the dropping state), `count` and `drop_next` (seconds since the
    /// start).
    fn observe(&self, _now: Instant, _backlog: Backlog, out: &mut LawSamples) {
        let law = &self.law;
        out.extend([
            ("dropping", f64::from(u8::from(law.is_dropping()))),
            ("count", law.count() as f64),
            ("drop_next", law.drop_next().as_secs_f64()),
        ]);
    }
}

/// CoDel's entry in the catalogue.
pub(crate) const CODEL_INFO: Info = Info {
    name: "codel",
    title: "CoDel",
    summary: "Controlled Delay: drops or marks at departure, ever more often while packets wait longer than target",
    version: 1,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: CodelControl::DECIDES,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || {
        let (target, interval) = (Parameters::target(), Parameters::interval());
        resolve::sample(&[Parameters::ecn().is(true), target.is(Span::us(200)), interval.is(Span::ms(2))])
    },
};

const RFC: &str = "RFC 8289";

params! {
    pub(super) struct Parameters {
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        /// buffer size, excluding the packet in transmission; an arrival that finds no room is lost
        limit: Size = Common::limit().default(packets(1000))
            .aliases(&[ns2_in("p", "limit_"), tc("limit"), ns3("MaxSize")])
            .source("tc-codel(8); the RFC leaves it open"),
        limit_rule: LimitRule = Common::limit_rule(),
        /// acceptable waiting time; a packet that waits this long or longer has waited too long
        target: Span = Row::span(Span::ns(1), Span::s(100)).default(Span::ms(5))
            .aliases(&[ns2_in("s", "target_"), tc("target"), ns3("Target")])
            .source("RFC 8289, section 4.2: 5 % to 10 % of interval"),
        /// period throughout which every packet must have waited for target or longer before the first packet
        /// is chosen; the time to each further choice is interval divided by the square root of the count so
        /// far
        interval: Span = Row::span(Span::us(1), Span::s(1000)).default(Span::ms(100))
            .aliases(&[ns2_in("s", "interval_"), tc("interval"), ns3("Interval")])
            .source("RFC 8289, section 4.2: a large round-trip time"),
        /// a packet is not chosen if the backlog that it leaves behind is no larger than this
        mtu: Bytes = Row::bytes(1, 1_000_000).default(Bytes::new(1500))
            .aliases(&[ns3("MinBytes")])
            .source("RFC 8289, `maxpacket_`; tc takes the device's MTU plus its link header"),
        /// arithmetic: `exact` uses nanoseconds and exact square roots; `linux` uses units of 1024 ns and,
        /// for each chosen packet, one step of Newton's method in 16 bits
        arithmetic: Arithmetic = Row::choice("exact").source("RFC 8289; Linux"),
        /// mark ECN-capable packets instead of dropping them; only an overflow still drops them
        ecn: bool = Row::flag(false).aliases(&[tc("ecn"), ns3("UseEcn")]).source(RFC),
        ce_threshold: Option<Span> = CeThreshold::row(),
        ce_threshold_for: CeFor = CeThreshold::selector_row(),
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "rfc8289", title: RFC, values: &[] },
    Preset {
        name: "linux",
        title: "Linux's codel as tc configures it on Ethernet",
        values: &[Parameters::mtu().is(Bytes::new(1514)), Parameters::arithmetic().is("linux")],
    },
];

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    resolve::absolute_size(all, Parameters::limit(), link)?;
    resolve::check_buffer(all, link.mean_packet)?;
    let Parameters { target, interval, .. } = Parameters::read(all)?;
    if target > interval {
        return Err(Parameters::target().error(format!(
            "target `{target}` exceeds interval `{interval}`; RFC 8289 sets the target to 5 % to 10 % of the interval"
        )));
    }
    Ok(())
}

/// Builds a CoDel queue from these parameters.
pub(crate) fn build_codel<P: Packet>(s: &Effective, draws: Stream) -> Result<Codel<P>, ParamError> {
    let p = Parameters::read(s)?;
    let Parameters { target, interval, mtu, arithmetic, ecn, .. } = p;
    let params = CodelParams { target, interval, mtu, arithmetic };
    let queue = EarlyQueue { limit: resolve::limit(s)?, ecn, overflow_first: false, spares_not_ect: false };
    let ce_threshold = CeThreshold::new(p.ce_threshold, p.ce_threshold_for);
    let extras = CodelExtras { ce_threshold, overflow_counts: false };
    Ok(Codel::new(CodelControl::new(params, extras), queue, draws))
}
