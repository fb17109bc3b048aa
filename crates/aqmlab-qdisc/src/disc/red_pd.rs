//! RED-PD: a RED queue behind a filter for individual flows ([`RedPdLaw`]), and its parameters.

use alloc::format;
use core::cell::{Ref, RefCell};

use aqmlab_params::{Default, Kind, Origin, Param, ParamError, Settings, Value};
use aqmlab_random::{Stream, unit_from_bits};
use aqmlab_units::{Bytes, Instant, Rate, Span};

use super::Red;
use super::red_resolve::{build_red, derive_red};
use super::red_table::{
    ARITHMETIC, BURST, BYTE_MODE, COUNTING, ECN, ECN_REGION, IDLE, LIMIT, MARK_P, MAX_P, MAX_PACKET, MAX_TH,
    MEAN_PACKET, MEASURE, MIN_TH, RED_NS2, SPACING, W_P, W_Q, gentle, target, w_rule,
};
use super::table::{NS2, NS2_TITLE, PROBABILITY, names, ns2, ns2_in, ns2_switch, preset};
use crate::info::{Decides, Effective, Info, Maturity, Preset};
use crate::law::{RedPdLaw, RedPdParams};
use crate::resolve::LIMIT_RULE;
use crate::{Arrived, Backlog, Cause, LawSamples, LinkContext, Observer, Packet, Qdisc, Reason};

/// RED with Preferential Dropping.
#[derive(Clone, Debug)]
pub struct RedPd<P> {
    /// When the queue is observed, this law itself is brought up to date, which does not affect later
    /// calls. Working on a copy instead would mean copying the state of all flows.
    filter: RefCell<RedPdLaw>,
    red: Red<P>,
    /// Whether RED's marks count as drops.
    marks_count: bool,
    /// Salt of this queue's flow hashes.
    salt: u64,
    draws: Stream,
    arrivals: u64,
}

/// Number of the filter's first draw in the queue's stream; each later arrival uses the next
/// number. RED's draws begin at 0, and the last draw gives the salt.
const FILTER_DRAWS: u64 = 1 << 63;
const SALT_DRAW: u64 = u64::MAX;

impl<P: Packet> RedPd<P> {
    /// Creates a filter in front of `red`, both empty; `draws` is the stream from which `red`
    /// draws.
    pub fn new(filter: RedPdLaw, red: Red<P>, marks_count: bool, draws: Stream) -> Self {
        let filter = RefCell::new(filter);
        RedPd { filter, red, marks_count, salt: draws.at(SALT_DRAW), draws, arrivals: 0 }
    }

    /// Returns the filter's law in its state after the last call.
    pub fn filter(&self) -> Ref<'_, RedPdLaw> {
        self.filter.borrow()
    }

    /// Returns the hash by which the filter identifies the flow of `pkt`.
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
        // As in ns-2.35, `above` depends on the average at the last packet that reached RED. The
        // decay up to `now` makes no difference: the average decays only while no packet waits, and
        // the filter does not use `above` then.
        let above = law.average().at(now) >= law.params().min_th;
        let waits = control.measure.of(self.red.backlog()) > 1.0;
        let draw = || unit_from_bits(self.draws.at(draw_number));
        self.filter.get_mut().on_arrival(now, flow, pkt.wire_len(), above, waits, draw)
    }
}

/// Records what RED does with an arrival, and passes the report on.
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

    fn next_len(&mut self) -> Option<Bytes> {
        self.red.next_len()
    }

    fn settles_at_enqueue(&self) -> bool {
        self.red.settles_at_enqueue()
    }

    fn reserve(&mut self, packets: usize, flows: usize) {
        self.red.reserve(packets, flows);
        self.filter.get_mut().reserve(flows);
    }

    /// Appends RED's `avg`, `p`, `max_p` and `count`, then `drop_rate` (RED's, averaged),
    /// `monitored` (number of monitored flows) and `filter_p` (the highest probability among them).
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        self.red.observe(now, out);
        let mut filter = self.filter.borrow_mut();
        filter.catch_up(now);
        let (flows, most) = filter.monitored();
        out.extend([("drop_rate", filter.drop_rate()), ("monitored", flows as f64), ("filter_p", most)]);
    }
}

/// RED-PD's entry in the catalogue.
pub(crate) const RED_PD_INFO: Info = Info {
    name: "redpd",
    title: "RED-PD",
    summary: "RED behind a filter that drops packets of flows that RED's own drops identify as high-bandwidth",
    version: 1,
    applies: &["red"],
    maturity: Maturity::ReferenceChecked,
    decides: Decides::Enqueue,
    params: RED_PD,
    presets: PRESETS,
    derive,
    samples: || {
        crate::resolve::sample(&[
            ("ecn", Value::Flag(true)),
            ("w_q", Value::Number(0.2)),
            ("start", Value::Span(Span::ms(1))),
            ("hits", Value::Integer(1)),
            ("min_interval", Value::Span(Span::ms(2))),
            ("max_interval", Value::Span(Span::ms(20))),
            ("min_change", Value::Span(Span::ZERO)),
        ])
    },
};

const PRESETS: &[Preset] = &[
    Preset {
        name: "paper",
        title: "Mahajan and Floyd 2001, with the constants of their ns-2 scripts, on top of the RED of 1993",
        values: &[],
    },
    Preset { name: NS2, title: NS2_TITLE, values: RED_NS2 },
];

const SCRIPTS: &str = "the authors' scripts in ns-2.35";

const fn interval(name: &'static str, auto: &'static str, help: &'static str) -> Param {
    Param {
        name,
        kind: Kind::Span { min: Span::ms(2), max: Span::s(1000) },
        default: Default::Auto(auto),
        aliases: &[],
        source: SCRIPTS,
        help,
    }
}

static RED_PD: &[Param] = &[
    Param {
        help: "the preset whose variants of RED apply unless others are given",
        ..preset(const { &names::<2>(PRESETS) })
    },
    LIMIT,
    LIMIT_RULE,
    Param {
        name: "target_rtt",
        kind: Kind::Span { min: Span::ms(1), max: Span::s(100) },
        default: Default::Span(Span::ms(40)),
        aliases: &[ns2_in("s", "target_rtt_")],
        source: "Mahajan and Floyd 2001, section 3: R; value from memory",
        help: "round-trip time of the TCP connection whose rate, at RED's drop rate, a flow must exceed to \
               be identified",
    },
    Param {
        name: "lists",
        kind: Kind::Integer { min: 1, max: 8 },
        default: Default::Integer(5),
        aliases: &[ns2("MaxHighDRFlowHist_")],
        source: "Mahajan and Floyd 2001, section 3: M; the authors' scripts in ns-2.35",
        help: "lists in the drop history, one per interval",
    },
    Param {
        name: "hits",
        kind: Kind::Integer { min: 1, max: 8 },
        default: Default::Integer(3),
        aliases: &[ns2("XinRegular_")],
        source: "Mahajan and Floyd 2001, section 3: K; the authors' scripts in ns-2.35",
        help: "a flow on at least this many lists is monitored",
    },
    Param {
        name: "list_flows",
        kind: Kind::Integer { min: 1, max: 1_000_000 },
        default: Default::Integer(50),
        aliases: &[ns2("MaxDropList_")],
        source: SCRIPTS,
        help: "largest number of flows per list; a list contains the flows with the most dropped bytes",
    },
    interval(
        "min_interval",
        "2 target_rtt",
        "shortest interval between identifications; a longer interval is the fraction hits / lists of the \
         congestion epoch target_rtt / sqrt(1.5 p), where p is the average drop rate",
    ),
    interval(
        "max_interval",
        "10 target_rtt",
        "longest interval between identifications, even when nothing is dropped",
    ),
    Param {
        name: "start",
        kind: Kind::Span { min: Span::ms(1), max: Span::s(1_000_000) },
        default: Default::Span(Span::us(10_100_000)),
        aliases: &[],
        source: SCRIPTS,
        help: "time at which flows are first identified",
    },
    Param {
        name: "drop_rate_weight",
        kind: Kind::Number { min: 0.05, max: 1.0 },
        default: Default::Number(0.5),
        aliases: &[],
        source: SCRIPTS,
        help: "weight of an interval's drop rate in the average from which the next interval is computed",
    },
    Param {
        name: "min_drop_rate",
        kind: Kind::Number { min: 0.0, max: 1.0 },
        default: Default::Number(0.001),
        aliases: &[],
        source: SCRIPTS,
        help: "drop rate that RED must exceed in an interval before the filter monitors further flows or \
               raises the probabilities of monitored ones",
    },
    Param {
        name: "min_change",
        kind: Kind::Span { min: Span::ZERO, max: Span::s(1000) },
        default: Default::Span(Span::ms(400)),
        aliases: &[ns2_in("s", "minTimetoConsider_")],
        source: SCRIPTS,
        help: "minimum time between two changes of a flow's probability; if the last few intervals together \
               are longer, their total length applies instead (4 intervals before an increase, 3 before a \
               decrease, and 5 before a decrease for an unresponsive flow)",
    },
    Param {
        name: "max_reduction",
        kind: PROBABILITY,
        default: Default::Number(0.05),
        aliases: &[ns2("maxPReduction_")],
        source: SCRIPTS,
        help: "largest reduction of a flow's probability per step; a small probability is halved instead \
               (unresponsive: divided by 1.5)",
    },
    Param {
        name: "release",
        kind: PROBABILITY,
        default: Default::Number(0.005),
        aliases: &[],
        source: SCRIPTS,
        help: "probability at or below which a flow is released rather than given a lower probability; for \
               unresponsive flows, half this value applies",
    },
    Param {
        name: "unresponsive_test",
        kind: Kind::Flag,
        default: Default::Flag(true),
        aliases: &[ns2_switch("unresponsiveTestOn_")],
        source: "Mahajan and Floyd 2001, section 4",
        help: "test whether monitored flows lower their rate when they lose more; unresponsive flows lose \
               packets even while the queue is short, and their probability rises faster and falls more \
               slowly",
    },
    Param {
        name: "no_idle",
        kind: Kind::Flag,
        default: Default::Flag(false),
        aliases: &[ns2_switch("noidle_")],
        source: "ns-2.35, queue/red-pd.cc",
        help: "also spare unresponsive flows while at most one packet (or byte) waits",
    },
    Param {
        name: "marks_count",
        kind: Kind::Flag,
        default: Default::Flag(false),
        aliases: &[],
        source: "ours; in ns-2 only drops are counted",
        help: "count RED's marks as drops in the drop history",
    },
    MIN_TH,
    MAX_TH,
    MAX_P,
    W_Q,
    w_rule("fixed"),
    W_P,
    gentle(false),
    ECN,
    ECN_REGION,
    MARK_P,
    MEASURE,
    MEAN_PACKET,
    BYTE_MODE,
    MAX_PACKET,
    SPACING,
    COUNTING,
    IDLE,
    ARITHMETIC,
    target(Default::Span(Span::ZERO), "target delay for automatic thresholds; 0: min_th is 5 packets"),
    BURST,
];

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    derive_red(all, link)?;
    let rtt = all.span("target_rtt")?;
    for (name, multiple) in [("min_interval", 2), ("max_interval", 10)] {
        if all.is_auto(name) {
            let rule = Origin::Derived(format!("{multiple} target_rtt").into());
            all.set(name, Value::Span(rtt.saturating_mul(multiple)), rule);
        }
    }
    let (shortest, longest) = (all.span("min_interval")?, all.span("max_interval")?);
    if shortest > longest {
        let message = format!("min_interval `{shortest}` exceeds max_interval `{longest}`");
        return Err(ParamError::new("min_interval", message));
    }
    let (hits, lists) = (all.integer("hits")?, all.integer("lists")?);
    if hits > lists {
        let message = format!("hits `{hits}` exceeds lists `{lists}`; no flow can be on that many lists");
        return Err(ParamError::new("hits", message));
    }
    Ok(())
}

/// Builds a RED-PD queue from these parameters.
pub(crate) fn build_red_pd<P: Packet>(s: &Effective, draws: Stream) -> Result<RedPd<P>, ParamError> {
    let count = |name| s.integer(name).map(|n| n as usize);
    let filter = RedPdLaw::new(RedPdParams {
        target_rtt: s.span("target_rtt")?,
        lists: count("lists")?,
        hits: count("hits")?,
        list_flows: count("list_flows")?,
        min_interval: s.span("min_interval")?,
        max_interval: s.span("max_interval")?,
        start: s.span("start")?,
        drop_rate_weight: s.number("drop_rate_weight")?,
        min_drop_rate: s.number("min_drop_rate")?,
        min_change: s.span("min_change")?,
        max_reduction: s.number("max_reduction")?,
        release: s.number("release")?,
        unresponsive_test: s.flag("unresponsive_test")?,
        no_idle: s.flag("no_idle")?,
    });
    Ok(RedPd::new(filter, build_red(s, draws)?, s.flag("marks_count")?, draws))
}
