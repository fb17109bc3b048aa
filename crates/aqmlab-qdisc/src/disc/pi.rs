//! PI: the [`Early`] queue with a [`PiLaw`], its parameters and their automatic values.

use alloc::format;

use aqmlab_params::{Default, Kind, Param, ParamError, Settings, Value};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};

use super::controller::{BYTE_MODE, Controller, Gauge, LARGEST, LIMIT, MEAN_PACKET, Target, UNIT};
use super::table::{NS2, NS2_TITLE, ecn, names, ns2, ns2_in, ns2_switch, preset, word};
use super::words::{Gains, OldQueue};
use super::{Early, EarlyLaw, EarlyQueue, Measure};
use crate::info::{Effective, Info, Maturity, Preset};
use crate::law::{Decision, PiLaw, PiParams, Sampling, TcpLoop};
use crate::resolve::LIMIT_RULE;
use crate::{Backlog, LawSamples, LinkContext, Packet, resolve};

/// PI.
pub type Pi<P> = Early<P, PiControl>;

/// PI's law for a real queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PiControl {
    /// The law.
    pub law: PiLaw,
    /// The unit of the queue length.
    pub measure: Measure,
}

impl EarlyLaw for PiControl {
    #[inline]
    fn catch_up(&mut self, now: Instant, backlog: Backlog) {
        self.law.catch_up(now, || self.measure.of(backlog));
    }

    #[inline]
    fn decide_at_arrival(
        &mut self,
        _now: Instant,
        _backlog: Backlog,
        size: Bytes,
        draw: impl FnOnce() -> f64,
    ) -> Decision {
        self.law.on_arrival(size, draw)
    }

    /// Does nothing: the gains were chosen for one rate and do not change.
    fn rate_changed(&mut self, _now: Instant, _rate: Rate) {}

    /// Appends `p`.
    fn observe(&self, now: Instant, backlog: Backlog, out: &mut LawSamples) {
        let mut copy = *self;
        copy.catch_up(now, backlog);
        out.push(("p", copy.law.probability()));
    }
}

/// PI's entry in the catalogue.
pub(crate) const PI_INFO: Info = Info {
    name: "pi",
    title: "PI",
    summary: "proportional-integral controller: adjusts a drop or mark probability to hold the queue at q_ref",
    version: 1,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: PiControl::DECIDES,
    params: PI,
    presets: PI_PRESETS,
    derive,
    samples: || {
        let gains = [("a", Value::Number(0.01)), ("b", Value::Number(0.008))];
        resolve::sample(&[("ecn", Value::Flag(true)), gains[0].clone(), gains[1].clone()])
    },
};

/// Hollot et al. 2001, section V.
const PUBLISHED: (f64, f64) = (1.822e-5, 1.816e-5);
const TARGET: Target = Target { packets: 200, source: "200 packets, as in the paper" };
/// The paper's sampling frequency in Hz.
const FREQUENCY: f64 = 160.0;
/// ns-2.35 tcl/ex/pi: samples per radian at the crossover.
const SAMPLES_PER_RADIAN: f64 = 100.0;
/// The value of w_g R that leaves 90 - atan(0.4) - 0.4 = 45.3 degrees of phase margin.
const CAUTIOUS: f64 = 0.4;

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mut pi = Controller::new(all, link)?;
    pi.sizes(TARGET)?;
    let designed = Gains::read(pi.all, "gains")? == Gains::Auto;
    the_loop(&mut pi, designed)?;
    frequencies(&mut pi, designed)?;
    gains(&mut pi, designed)?;
    check(pi.all)
}

/// Resolves N and R, which the design rule needs.
fn the_loop(pi: &mut Controller<'_>, designed: bool) -> Result<(), ParamError> {
    if pi.all.is_auto("flows") {
        let (flows, rule) = match pi.link.flows {
            Some(flows) => (flows, "TCP flows whose data crosses the link"),
            None if designed => return Err(unknown("flows", "the number of TCP flows")),
            None => (1, "no TCP flow is known to cross the link"),
        };
        pi.derive("flows", Value::Integer(flows.max(1)), rule.into());
    }
    if pi.all.is_auto("rtt") {
        let base = match pi.link.rtt {
            Some(rtt) => rtt,
            None if designed => return Err(unknown("rtt", "the round-trip time")),
            None => Span::ZERO,
        };
        let queue = pi.packets("q_ref")? / pi.link.rate.packets_per_s(pi.mean);
        let queue = Span::try_from_secs_f64(queue).unwrap_or(Span::s(3600));
        let rule =
            format!("base round-trip time {base} plus {queue}, the time that the link takes to send q_ref");
        pi.derive("rtt", Value::Span((base + queue).max(Span::us(1))), rule);
    }
    Ok(())
}

fn unknown(name: &'static str, what: &str) -> ParamError {
    ParamError::new(name, format!("gains `auto` needs {what} of this link, which is not known; write {name}"))
}

/// Resolves w_g and w.
fn frequencies(pi: &mut Controller<'_>, designed: bool) -> Result<(), ParamError> {
    let tcp = tcp_loop(pi.all, pi.link)?;
    if pi.all.is_auto("w_g") {
        let (pole, most) = (tcp.window_pole(), CAUTIOUS / tcp.rtt_s);
        let rule = if pole <= most { "2N / (R^2 C)" } else { "0.4 / R, less than 2N / (R^2 C)" };
        pi.derive("w_g", Value::Number(pole.min(most)), rule.into());
    }
    if pi.all.is_auto("w") {
        let designed_for = SAMPLES_PER_RADIAN * pi.all.number("w_g")?;
        if designed && designed_for > FREQUENCY {
            let w = libm::rint(1000.0 * designed_for.min(1e6)) / 1000.0;
            pi.derive("w", Value::Number(w), format!("{SAMPLES_PER_RADIAN} w_g, to the nearest millihertz"));
        } else {
            pi.derive("w", Value::Number(FREQUENCY), format!("{FREQUENCY} Hz, as in the paper"));
        }
    }
    Ok(())
}

/// Resolves a and b.
fn gains(pi: &mut Controller<'_>, designed: bool) -> Result<(), ParamError> {
    let tcp = tcp_loop(pi.all, pi.link)?;
    let w = pi.all.number("w")?;
    let ((a, b), rule) = if designed {
        let (a, b) = tcp.gains(pi.all.number("w_g")?, w);
        for (name, derived) in [("a", a), ("b", b)] {
            agrees(pi.all, name, derived)?;
        }
        let margin = tcp.phase_margin(a, b, w);
        let rule = format!(
            "design rule for N = {} flows, C = {:.1} packets/s, R = {:.4} s: phase margin {margin:.1} degrees",
            tcp.flows, tcp.packets_per_s, tcp.rtt_s
        );
        ((a, b), rule)
    } else {
        (PUBLISHED, "as published".into())
    };
    for (name, value) in [("a", a), ("b", b)] {
        if pi.all.is_auto(name) {
            pi.derive(name, Value::Number(value), rule.clone());
        }
    }
    Ok(())
}

/// Checks a gain that is given in addition to gains `auto`: it must equal the derived one, as it does in
/// settings that are written out in full.
fn agrees(all: &Settings, name: &'static str, derived: f64) -> Result<(), ParamError> {
    if all.is_auto(name) || all.number(name)? == derived {
        return Ok(());
    }
    let given = all.number(name)?;
    let message =
        format!("gains `auto` derives {name} `{derived}`, but `{given}` is given; leave one of them out");
    Err(ParamError::new(name, message))
}

fn check(all: &Settings) -> Result<(), ParamError> {
    let (a, b) = (all.number("a")?, all.number("b")?);
    if b < a {
        return Ok(());
    }
    let message =
        format!("b `{b}` is not less than a `{a}`, so nothing drives the queue to q_ref; write a smaller b");
    Err(ParamError::new("b", message))
}

/// Returns the loop that the effective values of flows and rtt describe.
fn tcp_loop(s: &Settings, link: &LinkContext) -> Result<TcpLoop, ParamError> {
    Ok(TcpLoop {
        flows: s.integer("flows")? as f64,
        packets_per_s: link.rate.packets_per_s(resolve::bytes(s, "mean_packet")?),
        rtt_s: s.span("rtt")?.as_secs_f64(),
    })
}

/// Returns the phase margin, in degrees, of the control loop of TCP and a PI controller with these
/// parameters. If the margin is negative, the queue oscillates even without a disturbance. Returns `None` if
/// the flows or the round-trip time are not known.
///
/// # Errors
/// If the parameters are not those of PI.
pub fn pi_phase_margin(effective: &Effective) -> Result<Option<(TcpLoop, f64)>, ParamError> {
    let link = effective.link();
    let known = |name, value: bool| value || effective.is_given(name);
    if !known("flows", link.flows.is_some()) || !known("rtt", link.rtt.is_some()) {
        return Ok(None);
    }
    let tcp = tcp_loop(effective, link)?;
    let (a, b, w) = (effective.number("a")?, effective.number("b")?, effective.number("w")?);
    Ok(Some((tcp, tcp.phase_margin(a, b, w))))
}

/// Builds a PI queue from these parameters.
pub(crate) fn build_pi<P: Packet>(s: &Effective, draws: Stream) -> Result<Pi<P>, ParamError> {
    let gauge = Gauge::new(s)?;
    let law = PiLaw::new(PiParams {
        a: s.number("a")?,
        b: s.number("b")?,
        q_ref: gauge.q_ref,
        q_old: match OldQueue::read(s, "q_old")? {
            OldQueue::Zero => 0.0,
            OldQueue::QRef => gauge.q_ref,
        },
        unit: gauge.unit,
        sampling: Sampling::at_millihertz(libm::rint(1000.0 * s.number("w")?) as u64),
        byte_mode: gauge.byte_mode,
    });
    let queue = EarlyQueue {
        limit: resolve::limit(s)?,
        ecn: s.flag("ecn")?,
        // Hollot et al. and ns-2: the check for a full buffer comes first.
        overflow_first: true,
        spares_not_ect: false,
    };
    Ok(Pi::new(PiControl { law, measure: gauge.measure }, queue, draws))
}

const HOLLOT: &str = "Hollot, Misra, Towsley, Gong 2001, section V";
const DESIGN: &str = "Hollot, Misra, Towsley, Gong 2001, section IV";

/// PI's parameters.
pub(super) static PI: &[Param] = &[
    preset(const { &names::<3>(PI_PRESETS) }),
    LIMIT,
    LIMIT_RULE,
    Param {
        name: "q_ref",
        kind: Kind::Size { min: Packets::new(1) },
        default: Default::Auto("200 packets, but at most half of a given limit"),
        aliases: &[ns2_in("p", "qref_")],
        source: HOLLOT,
        help: "the target queue length",
    },
    Param {
        name: "gains",
        kind: Kind::Choice(Gains::WORDS),
        default: Default::Choice("published"),
        aliases: &[],
        source: DESIGN,
        help: "source of a and b unless they are given: the paper's example, or its design rule for this link's flows, \
               capacity and round-trip time",
    },
    Param {
        name: "a",
        kind: Kind::NumberAbove { above: 0.0, max: 1.0 },
        default: Default::Auto("1.822e-5; gains `auto`: by the design rule"),
        aliases: &[ns2("a_")],
        source: HOLLOT,
        help: "weight of the present sample's distance from q_ref, per packet",
    },
    Param {
        name: "b",
        kind: Kind::NumberAbove { above: 0.0, max: 1.0 },
        default: Default::Auto("1.816e-5; gains `auto`: by the design rule"),
        aliases: &[ns2("b_")],
        source: HOLLOT,
        help: "weight of the previous sample's distance from q_ref, per packet; less than a",
    },
    Param {
        name: "w",
        kind: Kind::Number { min: 0.01, max: 1e6 },
        default: Default::Auto(
            "160; gains `auto`: 100 samples per radian at the crossover, but at least 160 per second",
        ),
        aliases: &[ns2("w_")],
        source: "Hollot, Misra, Towsley, Gong 2001, section V; ns-2.35 tcl/ex/pi",
        help: "sampling frequency in Hz",
    },
    Param {
        name: "q_old",
        kind: Kind::Choice(OldQueue::WORDS),
        default: Default::Choice("zero"),
        aliases: &[],
        source: "zero: ns-2.35; the paper does not say",
        help: "the sample that is assumed to precede the first one; `zero` adds b q_ref to the first update",
    },
    Param {
        name: "flows",
        kind: Kind::Integer { min: 1, max: 1_000_000_000 },
        default: Default::Auto("the TCP flows whose data crosses the link"),
        aliases: &[],
        source: DESIGN,
        help: "N in the design rule and the phase margin: the smallest expected number of long-lived flows",
    },
    Param {
        name: "rtt",
        kind: Kind::Span { min: Span::us(1), max: Span::s(3600) },
        default: Default::Auto(
            "the base round-trip time of the link's paths plus the time that the link takes to send q_ref",
        ),
        aliases: &[],
        source: DESIGN,
        help: "R in the design rule and the phase margin: the largest expected round-trip time, including \
               queueing",
    },
    Param {
        name: "w_g",
        kind: Kind::NumberAbove { above: 0.0, max: 1e6 },
        default: Default::Auto("the window's pole 2N / (R^2 C), but at most 0.4 / R"),
        aliases: &[],
        source: "the pole: ns-2.35 tcl/ex/pi; 0.4 / R, ours: 45 degrees of phase margin",
        help: "crossover frequency of the design rule in rad/s, at which the loop's gain falls to 1",
    },
    ecn("RFC 3168", "mark ECN-capable packets instead of dropping them", &[ns2_switch("setbit_")]),
    UNIT,
    MEAN_PACKET,
    BYTE_MODE,
    LARGEST,
];

const fn packets(name: &'static str, n: u64) -> (&'static str, Value) {
    (name, Value::Size(Size::Packets(Packets::new(n))))
}

/// PI's presets.
pub(super) const PI_PRESETS: &[Preset] = &[
    Preset { name: "paper", title: "Hollot, Misra, Towsley and Gong 2001", values: &[] },
    Preset {
        name: NS2,
        title: NS2_TITLE,
        values: &[
            packets("limit", 50),
            word("limit_rule", "reached"),
            packets("q_ref", 50),
            ("w", Value::Number(170.0)),
            ("mean_packet", Value::Size(Size::Bytes(Bytes::new(500)))),
        ],
    },
    Preset {
        name: "le2003",
        title: "Le, Aikat, Jeffay and Smith 2003 with q_ref 24; their gains are not known, and those of ns-2 replace them",
        values: &[packets("q_ref", 24), ("w", Value::Number(170.0)), word("byte_mode", "mean")],
    },
];
