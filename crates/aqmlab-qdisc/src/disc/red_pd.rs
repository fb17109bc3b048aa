//! RED-PD: a RED queue behind a filter for individual flows ([`RedPdLaw`]), and its parameters.

use alloc::format;
use core::cell::{Ref, RefCell};

use aqmlab_params::{ParamError, Row, Settings, params};
use aqmlab_random::{Stream, unit_from_bits};
use aqmlab_units::{Bytes, Instant, Rate, Span};

use super::Red;
use super::red_resolve::{build_red, derive_red};
use super::red_table::{RED_NS2, RedOwn, Shared};
use super::table::{NS2, NS2_TITLE, names, ns2, ns2_in, ns2_switch, presets};
use crate::info::{Decides, Derive, Effective, Info, Maturity, Preset};
use crate::law::{RedPdLaw, RedPdParams};
use crate::{
    Arrived, Backlog, Cause, LawSamples, LinkContext, Observer, Packet, Qdisc, Reason, TcpHeader, resolve,
};

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
    fn tcp_header(&self, pkt: &P) -> Option<TcpHeader> {
        self.obs.tcp_header(pkt)
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
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || {
        resolve::sample(&[
            Shared::ecn().is(true),
            Shared::w_q().is(0.2),
            Parameters::start().is(Span::ms(1)),
            Parameters::hits().is(1),
            Parameters::min_interval().is(Span::ms(2)),
            Parameters::max_interval().is(Span::ms(20)),
            Parameters::min_change().is(Span::ZERO),
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

const INTERVAL: Row<Span> = Row::span(Span::ms(2), Span::s(1000)).source(SCRIPTS);

params! {
    struct Parameters {
        /// the preset whose variants of RED apply unless others are given
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        ..Shared { limit, limit_rule },
        /// round-trip time of the TCP connection whose rate, at RED's drop rate, a flow must exceed to be
        /// identified
        target_rtt: Span = Row::span(Span::ms(1), Span::s(100)).default(Span::ms(40))
            .aliases(&[ns2_in("s", "target_rtt_")])
            .source("Mahajan and Floyd 2001, section 3: R; value from memory"),
        /// lists in the drop history, one per interval
        lists: u64 = Row::integer(1, 8).default(5)
            .aliases(&[ns2("MaxHighDRFlowHist_")])
            .source("Mahajan and Floyd 2001, section 3: M; the authors' scripts in ns-2.35"),
        /// a flow on at least this many lists is monitored
        hits: u64 = Row::integer(1, 8).default(3)
            .aliases(&[ns2("XinRegular_")])
            .source("Mahajan and Floyd 2001, section 3: K; the authors' scripts in ns-2.35"),
        /// largest number of flows per list; a list contains the flows with the most dropped bytes
        list_flows: u64 = Row::integer(1, 1_000_000).default(50)
            .aliases(&[ns2("MaxDropList_")])
            .source(SCRIPTS),
        /// shortest interval between identifications; a longer interval is the fraction hits / lists of the
        /// congestion epoch target_rtt / sqrt(1.5 p), where p is the average drop rate
        min_interval: Span = INTERVAL.auto("2 target_rtt"),
        /// longest interval between identifications, even when nothing is dropped
        max_interval: Span = INTERVAL.auto("10 target_rtt"),
        /// time at which flows are first identified
        start: Span = Row::span(Span::ms(1), Span::s(1_000_000)).default(Span::us(10_100_000))
            .source(SCRIPTS),
        /// weight of an interval's drop rate in the average from which the next interval is computed
        drop_rate_weight: f64 = Row::number(0.05, 1.0).default(0.5).source(SCRIPTS),
        /// drop rate that RED must exceed in an interval before the filter monitors further flows or raises
        /// the probabilities of monitored ones
        min_drop_rate: f64 = Row::number(0.0, 1.0).default(0.001).source(SCRIPTS),
        /// minimum time between two changes of a flow's probability; if the last few intervals together are
        /// longer, their total length applies instead (4 intervals before an increase, 3 before a decrease,
        /// and 5 before a decrease for an unresponsive flow)
        min_change: Span = Row::span(Span::ZERO, Span::s(1000)).default(Span::ms(400))
            .aliases(&[ns2_in("s", "minTimetoConsider_")])
            .source(SCRIPTS),
        /// largest reduction of a flow's probability per step; a small probability is halved instead
        /// (unresponsive: divided by 1.5)
        max_reduction: f64 = Row::above(0.0, 1.0).default(0.05)
            .aliases(&[ns2("maxPReduction_")])
            .source(SCRIPTS),
        /// probability at or below which a flow is released rather than given a lower probability; for
        /// unresponsive flows, half this value applies
        release: f64 = Row::above(0.0, 1.0).default(0.005).source(SCRIPTS),
        /// test whether monitored flows lower their rate when they lose more; unresponsive flows lose packets
        /// even while the queue is short, and their probability rises faster and falls more slowly
        unresponsive_test: bool = Row::flag(true)
            .aliases(&[ns2_switch("unresponsiveTestOn_")])
            .source("Mahajan and Floyd 2001, section 4"),
        /// also spare unresponsive flows while at most one packet (or byte) waits
        no_idle: bool = Row::flag(false)
            .aliases(&[ns2_switch("noidle_")])
            .source("ns-2.35, queue/red-pd.cc"),
        /// count RED's marks as drops in the drop history
        marks_count: bool = Row::flag(false).source("ours; in ns-2 only drops are counted"),
        ..Shared { min_th, max_th, max_p, w_q, w_rule },
        ..RedOwn { w_p },
        ..Shared { gentle, ecn, ecn_region, mark_p, measure, mean_packet, byte_mode, max_packet,
            uniformisation, counting, idle, arithmetic, target, burst },
    }
}

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    derive_red(all, link)?;
    let rtt = Parameters::target_rtt().read(all)?;
    for (row, multiple) in [(Parameters::min_interval(), 2), (Parameters::max_interval(), 10)] {
        if row.is_auto(all) {
            row.derive(all, rtt.saturating_mul(multiple), format!("{multiple} target_rtt"));
        }
    }
    let Parameters { min_interval, max_interval, hits, lists, .. } = Parameters::read(all)?;
    if min_interval > max_interval {
        return Err(Parameters::min_interval()
            .error(format!("min_interval `{min_interval}` exceeds max_interval `{max_interval}`")));
    }
    if hits > lists {
        return Err(Parameters::hits()
            .error(format!("hits `{hits}` exceeds lists `{lists}`; no flow can be on that many lists")));
    }
    Ok(())
}

/// Builds a RED-PD queue from these parameters.
pub(crate) fn build_red_pd<P: Packet>(s: &Effective, draws: Stream) -> Result<RedPd<P>, ParamError> {
    let p = Parameters::read(s)?;
    let filter = RedPdLaw::new(RedPdParams {
        target_rtt: p.target_rtt,
        lists: p.lists as usize,
        hits: p.hits as usize,
        list_flows: p.list_flows as usize,
        min_interval: p.min_interval,
        max_interval: p.max_interval,
        start: p.start,
        drop_rate_weight: p.drop_rate_weight,
        min_drop_rate: p.min_drop_rate,
        min_change: p.min_change,
        max_reduction: p.max_reduction,
        release: p.release,
        unresponsive_test: p.unresponsive_test,
        no_idle: p.no_idle,
    });
    Ok(RedPd::new(filter, build_red(s, draws)?, p.marks_count, draws))
}
