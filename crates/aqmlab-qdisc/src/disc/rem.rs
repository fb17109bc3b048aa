//! REM: the [`Early`] queue with a [`RemLaw`], which decides at arrivals or at departures, and its
//! parameters.

use alloc::format;

use aqmlab_params::{Default, Kind, Param, ParamError, Reading, Settings, Value};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};

use super::controller::{BYTE_MODE, Controller, Gauge, LARGEST, LIMIT, MEAN_PACKET, Target, UNIT};
use super::table::{NS2, NS2_TITLE, ecn, names, ns2, ns2_in, ns2_switch, preset, word};
use super::words::{Decide, NotEct};
use super::{Early, EarlyLaw, EarlyQueue, Leaving, Measure};
use crate::info::{Decides, Effective, Info, Maturity, Preset};
use crate::law::{Decision, RemLaw, RemParams, Sampling};
use crate::resolve::LIMIT_RULE_OR_BELOW;
use crate::{Backlog, LawSamples, LinkContext, Packet, resolve};

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
    params: REM,
    presets: REM_PRESETS,
    derive,
    samples: || resolve::sample(&[("ecn", Value::Flag(true)), ("gamma", Value::Number(0.5))]),
};

const TARGET: Target = Target { packets: 20, source: "20 packets, as in the paper" };

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mut rem = Controller::new(all, link)?;
    rem.sizes(TARGET)?;
    if rem.all.is_auto("decide") {
        let late = rem.all.choice("preset")? == NS2 && rem.all.flag("ecn")?;
        let (decide, rule) =
            if late { (Decide::Dequeue, "where ns-2 marks") } else { (Decide::Enqueue, "on arrival") };
        rem.derive("decide", Value::Choice(decide.word()), rule.into());
    }
    check_room(rem.all)
}

/// Checks that a buffer that holds one packet or byte less than its limit can still hold a packet.
fn check_room(all: &Settings) -> Result<(), ParamError> {
    if resolve::limit(all)?.admits_any(resolve::bytes(all, "mean_packet")?) {
        return Ok(());
    }
    let limit = all.size("limit")?;
    Err(ParamError::new(
        "limit",
        format!("limit `{limit}` with limit_rule `below` admits no packet; write a larger limit"),
    ))
}

/// Builds a REM queue from these parameters.
pub(crate) fn build_rem<P: Packet>(s: &Effective, draws: Stream) -> Result<Rem<P>, ParamError> {
    let gauge = Gauge::new(s)?;
    let law = RemLaw::new(RemParams {
        gamma: s.number("gamma")?,
        alpha: s.number("alpha")?,
        phi: s.number("phi")?,
        q_ref: gauge.q_ref,
        inw: s.number("inw")?,
        unit: gauge.unit,
        sampling: Sampling::every(s.span("period")?),
        packets_per_s: s.link().rate.packets_per_s(gauge.mean),
        byte_mode: gauge.byte_mode,
    });
    let control = RemControl {
        law,
        measure: gauge.measure,
        mean_packet: gauge.mean,
        at_departure: Decide::read(s, "decide")? == Decide::Dequeue,
    };
    let ecn = s.flag("ecn")?;
    let queue = EarlyQueue {
        limit: resolve::limit(s)?,
        ecn,
        // ns-2: the check for a full buffer comes first.
        overflow_first: true,
        spares_not_ect: ecn && NotEct::read(s, "not_ect")? == NotEct::Pass,
    };
    Ok(Rem::new(control, queue, draws))
}

const PAPER: &str = "Athuraliya, Li, Low, Yin 2001";

/// REM's parameters.
pub(super) static REM: &[Param] = &[
    preset(const { &names::<2>(REM_PRESETS) }),
    Param { aliases: &[ns2_in("p", "limit_").implies(LIMIT_RULE_OR_BELOW, "below")], ..LIMIT },
    LIMIT_RULE_OR_BELOW.param,
    Param {
        name: "q_ref",
        kind: Kind::Size { min: Packets::new(1) },
        default: Default::Auto("20 packets, but at most half of a given limit"),
        aliases: &[ns2_in("p", "pbo_")],
        source: PAPER,
        help: "the target queue length, b*",
    },
    Param {
        name: "gamma",
        kind: Kind::NumberAbove { above: 0.0, max: 1000.0 },
        default: Default::Number(0.001),
        aliases: &[ns2("gamma_")],
        source: PAPER,
        help: "step size of the price",
    },
    Param {
        name: "alpha",
        kind: Kind::NumberAbove { above: 0.0, max: 1000.0 },
        default: Default::Number(0.1),
        aliases: &[],
        source: "Athuraliya, Li, Low, Yin 2001; a constant in ns-2",
        help: "weight of the queue's distance from q_ref relative to the mismatch between input and capacity",
    },
    Param {
        name: "phi",
        kind: Kind::NumberAbove { above: 1.0, max: 1000.0 },
        default: Default::Number(1.001),
        aliases: &[ns2("phi_")],
        source: PAPER,
        help: "base of the exponential: the probability is 1 - phi^-price",
    },
    Param {
        name: "period",
        kind: Kind::Span { min: Span::us(1), max: Span::s(3600) },
        default: Default::Span(Span::ms(2)),
        aliases: &[ns2_in("s", "pupdtime_")],
        source: "ns-2.35",
        help: "time between updates of the price",
    },
    Param {
        name: "inw",
        kind: Kind::Number { min: 0.01, max: 1.0 },
        default: Default::Number(1.0),
        aliases: &[ns2("inw_")],
        source: "ns-2.35; 1 is the paper's rule",
        help: "weight of one period's arrivals in the average over the periods",
    },
    Param {
        name: "decide",
        kind: Kind::Choice(Decide::WORDS),
        default: Default::Auto("enqueue; preset `ns2` with ecn: dequeue"),
        aliases: &[],
        source: "ns-2.35 drops at enqueue and marks at dequeue; the paper does not say",
        help: "when packets are chosen",
    },
    ecn("RFC 3168", "mark ECN-capable packets instead of dropping them", &[ns2_switch("markpkts_")]),
    Param {
        name: "not_ect",
        kind: Kind::Choice(NotEct::WORDS),
        default: Default::Choice("drop"),
        aliases: &[],
        source: "drop: RFC 3168, section 5; pass: ns-2.35",
        help: "treatment of a chosen packet that is not ECN-capable, if ecn is on",
    },
    Param {
        aliases: &[ns2("qib_").reads(Reading::Words("bytes", "packets"))],
        help: "unit of the queue length and of the arrivals; an amount in `bytes` is divided by mean_packet",
        ..UNIT
    },
    MEAN_PACKET,
    Param { aliases: &[], ..BYTE_MODE },
    LARGEST,
];

/// REM's presets.
pub(super) const REM_PRESETS: &[Preset] = &[
    Preset { name: "paper", title: "Athuraliya, Li, Low and Yin 2001", values: &[] },
    Preset {
        name: NS2,
        title: NS2_TITLE,
        values: &[
            ("limit", Value::Size(Size::Packets(Packets::new(50)))),
            word("limit_rule", "below"),
            word("not_ect", "pass"),
            ("mean_packet", Value::Size(Size::Bytes(Bytes::new(1000)))),
        ],
    },
];
