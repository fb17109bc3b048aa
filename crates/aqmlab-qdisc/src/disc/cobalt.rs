//! COBALT as a single queue: the [`Early`] queue with a [`CobaltLaw`], which decides at departures; its
//! parameters and their conversion to a queue.

use alloc::format;

use aqmlab_params::{ParamError, Row, Settings, params};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Span};

use super::table::{names, ns3, presets, tc};
use super::{Early, EarlyLaw, EarlyQueue, Leaving};
use crate::info::{Decides, Derive, Effective, Info, Maturity, Preset};
use crate::law::{Arithmetic, CobaltChoice, CobaltLaw, CobaltParams, Decision, Notice};
use crate::resolve::{self, Common, LimitRule};
use crate::{Backlog, LawSamples, LinkContext, Packet};

/// COBALT.
pub type Cobalt<P> = Early<P, CobaltControl>;

/// COBALT's law for a real queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CobaltControl {
    /// The law.
    pub law: CobaltLaw,
    /// Whether ECN-capable packets are marked.
    pub ecn: bool,
    /// Whether a packet that leaves the queue empty is never dropped.
    pub keep_last: bool,
}

impl EarlyLaw for CobaltControl {
    const DECIDES: Decides = Decides::Dequeue;

    #[inline]
    fn decide_at_departure(&mut self, now: Instant, pkt: Leaving, draw: impl FnOnce() -> f64) -> Decision {
        let can_mark = self.ecn && pkt.ecn.is_capable();
        match self.law.on_departure(now, pkt.sojourn, 0, can_mark, draw) {
            CobaltChoice::Pass => Decision::Admit,
            CobaltChoice::Mark => Decision::Notify(Notice::EARLY),
            CobaltChoice::Drop if self.keep_last && pkt.backlog.packets.is_zero() => Decision::Admit,
            CobaltChoice::Drop => Decision::Notify(Notice { markable: false, ..Notice::EARLY }),
        }
    }

    fn on_overflow(&mut self, now: Instant) {
        self.law.on_overflow(now);
    }

    fn on_idle(&mut self, now: Instant) {
        self.law.on_empty(now);
    }

    fn is_as_new(&self, now: Instant) -> bool {
        self.law.is_at_rest(now)
    }

    /// Appends `dropping` (1 in the dropping state), `count`, `drop_next` (seconds since the start) and `p_drop`
    /// (BLUE's probability).
    fn observe(&self, _now: Instant, _backlog: Backlog, out: &mut LawSamples) {
        let law = &self.law;
        out.extend([
            ("dropping", f64::from(u8::from(law.is_dropping()))),
            ("count", f64::from(law.count())),
            ("drop_next", law.drop_next().as_secs_f64()),
            ("p_drop", law.p_drop()),
        ]);
    }
}

/// COBALT's entry in the catalogue.
pub(crate) const COBALT_INFO: Info = Info {
    name: "cobalt",
    title: "COBALT",
    summary: "CoDel and BLUE combined: signals at departure while packets wait long, random drops after overflows",
    version: 2,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: CobaltControl::DECIDES,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || {
        let (target, interval) = (Parameters::target(), Parameters::interval());
        resolve::sample(&[Parameters::ecn().is(true), target.is(Span::us(200)), interval.is(Span::ms(2))])
    },
};

const PAPER: &str = "Palmei et al. 2019";
const CAKE: &str = "Høiland-Jørgensen et al. 2018";

params! {
    pub(super) struct Parameters {
        preset: &'static str = presets(const { &names::<3>(PRESETS) }),
        /// buffer size, excluding the packet in transmission; an arrival that finds no room is lost
        limit: Size = Common::limit().default(Size::Bytes(Bytes::new(1_500_000)))
            .aliases(&[ns3("MaxSize")])
            .source("ns-3; the papers leave it open"),
        limit_rule: LimitRule = Common::limit_rule(),
        /// acceptable waiting time, and the shortest time between two changes of BLUE's probability
        target: Span = Row::span(Span::ns(1), Span::s(100)).default(Span::ms(5))
            .aliases(&[tc("target"), ns3("Target")])
            .source(PAPER),
        /// time from the first packet that waits longer than target to the first signal; the time to each further
        /// signal is interval divided by the square root of the count so far
        interval: Span = Row::span(Span::us(1), Span::s(1000)).default(Span::ms(100))
            .aliases(&[tc("rtt"), ns3("Interval")])
            .source(PAPER),
        /// added to BLUE's probability at an overflow
        increment: f64 = Row::number(0.0, 1.0).default(1.0 / 256.0)
            .aliases(&[ns3("Increment")])
            .source("Palmei et al. 2019; Linux: 1/256"),
        /// subtracted from BLUE's probability when the link polls the empty queue
        decrement: f64 = Row::number(0.0, 1.0).default(1.0 / 4096.0)
            .aliases(&[ns3("Decrement")])
            .source("Palmei et al. 2019; Linux: 1/4096"),
        /// waiting time of a leaving packet above which BLUE's probability rises as at an overflow
        blue_threshold: Option<Span> = Row::span(Span::ns(1), Span::s(1000))
            .aliases(&[ns3("BlueThreshold")])
            .source("ns-3: 400 ms")
            .optional("only overflows raise it"),
        /// never drop a packet that leaves the queue empty
        keep_last: bool = Row::flag(true).source("Linux's CAKE; ns-3 drops it"),
        /// arithmetic: `exact` uses exact square roots; `linux` uses 32-bit fractions, refined by Newton's method,
        /// and starts a new queue with an interval of no length
        arithmetic: Arithmetic = Row::choice("exact").source("Linux"),
        /// mark ECN-capable packets instead of dropping them; BLUE and an overflow still drop them
        ecn: bool = Row::flag(true).aliases(&[ns3("UseEcn")]).source(CAKE),
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "paper", title: PAPER, values: &[] },
    Preset {
        name: "linux",
        title: "a queue of Linux's CAKE without a shaper",
        values: &[Parameters::arithmetic().is("linux")],
    },
    Preset {
        name: "ns3",
        title: "CobaltQueueDisc of ns-3",
        values: &[
            Parameters::keep_last().is(false),
            Parameters::ecn().is(false),
            (Parameters::blue_threshold().param.name, aqmlab_params::Value::Span(Span::ms(400))),
        ],
    },
];

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    resolve::absolute_size(all, Parameters::limit(), link)?;
    resolve::check_buffer(all, link.mean_packet)?;
    let Parameters { target, interval, .. } = Parameters::read(all)?;
    if target > interval {
        return Err(Parameters::target().error(format!(
            "target `{target}` exceeds interval `{interval}`; the target is usually 5 % of the interval"
        )));
    }
    Ok(())
}

/// Builds a COBALT queue from these parameters.
pub(crate) fn build_cobalt<P: Packet>(s: &Effective, draws: Stream) -> Result<Cobalt<P>, ParamError> {
    let p = Parameters::read(s)?;
    let law = CobaltLaw::new(CobaltParams {
        target: p.target,
        interval: p.interval,
        mtu_time: Span::ZERO,
        increment: p.increment,
        decrement: p.decrement,
        blue_threshold: p.blue_threshold,
        arithmetic: p.arithmetic,
    });
    let queue =
        EarlyQueue { limit: resolve::limit(s)?, ecn: p.ecn, overflow_first: false, spares_not_ect: false };
    Ok(Cobalt::new(CobaltControl { law, ecn: p.ecn, keep_last: p.keep_last }, queue, draws))
}
