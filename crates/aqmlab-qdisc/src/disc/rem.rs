//! REM: the [`Early`] queue with a [`RemLaw`], which decides at arrivals or at departures, and its
//! parameters.

use alloc::format;

use aqmlab_params::{ParamError, Reading, Row, Settings, params};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Rate, Span};

use super::controller::{Controller, Gauge, Shared, Target};
use super::table::{NS2, NS2_TITLE, names, ns2, ns2_in, ns2_switch, packets, presets};
use super::words::{ByteScale, Decide, NotEct};
use super::{Early, EarlyLaw, EarlyQueue, Leaving, Measure};
use crate::info::{Decides, Derive, Effective, Info, Maturity, Preset};
use crate::law::{Decision, RemLaw, RemParams, Sampling};
use crate::resolve::{self, LIMIT_RULE_OR_BELOW, LimitRule};
use crate::{Backlog, LawSamples, LinkContext, Packet};

/// REM.
pub type Rem<P> = Early<P, RemControl>;

/// REM's law for a real queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RemControl {
    /// The law.
    pub law: RemLaw,
    /// The unit of the queue length and of the arrivals.
    pub measure: Measure,
    /// Mean packet size, which converts the link's rate to packets per second.
    pub mean_packet: Bytes,
    /// Whether packets are chosen when they leave rather than when they arrive.
    pub at_departure: bool,
}

impl EarlyLaw for RemControl {
    const DECIDES: Decides = Decides::Both;

    #[inline(always)]
    fn decides(&self) -> Decides {
        if self.at_departure { Decides::Dequeue } else { Decides::Enqueue }
    }

    #[inline]
    fn catch_up(&mut self, now: Instant, backlog: Backlog) {
        self.law.catch_up(now, || self.measure.of(backlog));
    }

    /// As in ns-2.35, arrivals count whether they find room or not.
    #[inline]
    fn on_arrival(&mut self, _now: Instant, _backlog: Backlog, size: Bytes) {
        self.law.on_arrival(match self.measure {
            Measure::Packets => 1,
            Measure::Bytes => size.get(),
        });
    }

    #[inline]
    fn decide_at_arrival(
        &mut self,
        _now: Instant,
        _backlog: Backlog,
        size: Bytes,
        draw: impl FnOnce() -> f64,
    ) -> Decision {
        self.law.judge(size, draw)
    }

    #[inline]
    fn decide_at_departure(&mut self, _now: Instant, pkt: Leaving, draw: impl FnOnce() -> f64) -> Decision {
        self.law.judge(pkt.size, draw)
    }

    fn rate_changed(&mut self, _now: Instant, rate: Rate) {
        self.law.rate_changed(rate.packets_per_s(self.mean_packet));
    }

    /// Appends `price` and `p`.
    fn observe(&self, now: Instant, backlog: Backlog, out: &mut LawSamples) {
        let mut copy = *self;
        copy.catch_up(now, backlog);
        out.extend([("price", copy.law.price()), ("p", copy.law.probability())]);
    }
}

/// REM's entry in the catalogue.
pub(crate) const REM_INFO: Info = Info {
    name: "rem",
    title: "REM",
    summary: "Random Exponential Marking: a price that rises with the queue and the input rate sets the \
              drop or mark probability",
    version: 1,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: RemControl::DECIDES,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || resolve::sample(&[Parameters::ecn().is(true), Parameters::gamma().is(0.5)]),
};

const TARGET: Target = Target { packets: 20, source: "20 packets, as in the paper" };

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mut rem = Controller::new(all, link)?;
    rem.sizes(TARGET)?;
    let decide = Parameters::decide();
    if decide.is_auto(rem.all) {
        let late = Parameters::preset().read(rem.all)? == NS2 && Parameters::ecn().read(rem.all)?;
        let (value, rule) =
            if late { (Decide::Dequeue, "where ns-2 marks") } else { (Decide::Enqueue, "on arrival") };
        decide.derive(rem.all, value, rule);
    }
    check_room(rem.all)
}

/// Checks that a buffer that holds one packet or byte less than its limit can still hold a packet.
fn check_room(all: &Settings) -> Result<(), ParamError> {
    let Parameters { limit, mean_packet, .. } = Parameters::read(all)?;
    if resolve::limit(all)?.admits_any(mean_packet) {
        return Ok(());
    }
    Err(Parameters::limit()
        .error(format!("limit `{limit}` with limit_rule `below` admits no packet; write a larger limit")))
}

/// Builds a REM queue from these parameters.
pub(crate) fn build_rem<P: Packet>(s: &Effective, draws: Stream) -> Result<Rem<P>, ParamError> {
    let p = Parameters::read(s)?;
    let gauge = Gauge::new(s)?;
    let law = RemLaw::new(RemParams {
        gamma: p.gamma,
        alpha: p.alpha,
        phi: p.phi,
        q_ref: gauge.q_ref,
        inw: p.inw,
        unit: gauge.unit,
        sampling: Sampling::every(p.period),
        packets_per_s: s.link().rate.packets_per_s(gauge.mean),
        byte_mode: gauge.byte_mode,
    });
    let control = RemControl {
        law,
        measure: gauge.measure,
        mean_packet: gauge.mean,
        at_departure: p.decide == Decide::Dequeue,
    };
    let queue = EarlyQueue {
        limit: resolve::limit(s)?,
        ecn: p.ecn,
        // ns-2: the check for a full buffer comes first.
        overflow_first: true,
        spares_not_ect: p.ecn && p.not_ect == NotEct::Pass,
    };
    Ok(Rem::new(control, queue, draws))
}

const PAPER: &str = "Athuraliya, Li, Low, Yin 2001";

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        limit: Size = Shared::limit().aliases(&[ns2_in("p", "limit_").implies(LIMIT_RULE_OR_BELOW, "below")]),
        limit_rule: LimitRule = LIMIT_RULE_OR_BELOW,
        /// the target queue length, b*
        q_ref: Size = Shared::q_ref().auto("20 packets, but at most half of a given limit")
            .aliases(&[ns2_in("p", "pbo_")])
            .source(PAPER),
        /// step size of the price
        gamma: f64 = Row::above(0.0, 1000.0).default(0.001)
            .aliases(&[ns2("gamma_")])
            .source(PAPER),
        /// weight of the queue's distance from q_ref relative to the mismatch between input and capacity
        alpha: f64 = Row::above(0.0, 1000.0).default(0.1)
            .source("Athuraliya, Li, Low, Yin 2001; a constant in ns-2"),
        /// base of the exponential: the probability is 1 - phi^-price
        phi: f64 = Row::above(1.0, 1000.0).default(1.001)
            .aliases(&[ns2("phi_")])
            .source(PAPER),
        /// time between updates of the price
        period: Span = Row::span(Span::us(1), Span::s(3600)).default(Span::ms(2))
            .aliases(&[ns2_in("s", "pupdtime_")])
            .source("ns-2.35"),
        /// weight of one period's arrivals in the average over the periods
        inw: f64 = Row::number(0.01, 1.0).default(1.0)
            .aliases(&[ns2("inw_")])
            .source("ns-2.35; 1 is the paper's rule"),
        /// when packets are chosen
        decide: Decide = Row::words().auto("enqueue; preset `ns2` with ecn: dequeue")
            .source("ns-2.35 drops at enqueue and marks at dequeue; the paper does not say"),
        /// mark ECN-capable packets instead of dropping them
        ecn: bool = Row::flag(false).aliases(&[ns2_switch("markpkts_")]).source("RFC 3168"),
        /// treatment of a chosen packet that is not ECN-capable, if ecn is on
        not_ect: NotEct = Row::choice("drop").source("drop: RFC 3168, section 5; pass: ns-2.35"),
        /// unit of the queue length and of the arrivals; an amount in `bytes` is divided by mean_packet
        measure: Measure = Shared::measure().aliases(&[ns2("qib_").reads(Reading::Words("bytes", "packets"))]),
        mean_packet: Bytes = Shared::mean_packet(),
        byte_mode: ByteScale = Shared::byte_mode().aliases(&[]),
        ..Shared { max_packet },
    }
}

/// REM's presets.
const PRESETS: &[Preset] = &[
    Preset { name: "paper", title: "Athuraliya, Li, Low and Yin 2001", values: &[] },
    Preset {
        name: NS2,
        title: NS2_TITLE,
        values: &[
            Parameters::limit().is(packets(50)),
            Parameters::limit_rule().is("below"),
            Parameters::not_ect().is("pass"),
            Parameters::mean_packet().is(Bytes::new(1000)),
        ],
    },
];
