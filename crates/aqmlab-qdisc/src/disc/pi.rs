//! PI: the [`Early`] queue with a [`PiLaw`], its parameters and their automatic values.

use alloc::format;

use aqmlab_params::{ParamError, Row, Settings, params};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Rate, Span};

use super::controller::{Controller, Gauge, Shared, Target};
use super::table::{NS2, NS2_TITLE, names, ns2, ns2_in, ns2_switch, packets, presets};
use super::words::{Gains, OldQueue};
use super::{Early, EarlyLaw, EarlyQueue, Measure};
use crate::info::{Derive, Effective, Info, Maturity, Preset};
use crate::law::{Decision, PiLaw, PiParams, Sampling, TcpLoop};
use crate::resolve::{self, Common, LimitRule};
use crate::{Backlog, LawSamples, LinkContext, Packet};

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
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || {
        let (a, b) = (Parameters::a().is(0.01), Parameters::b().is(0.008));
        resolve::sample(&[Parameters::ecn().is(true), a, b])
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
    let designed = Parameters::gains().read(pi.all)? == Gains::Auto;
    the_loop(&mut pi, designed)?;
    frequencies(&mut pi, designed)?;
    gains(&mut pi, designed)?;
    check(pi.all)
}

/// Resolves N and R, which the design rule needs.
fn the_loop(pi: &mut Controller<'_>, designed: bool) -> Result<(), ParamError> {
    let (flows, rtt) = (Parameters::flows(), Parameters::rtt());
    if flows.is_auto(pi.all) {
        let (known, rule) = match pi.link.flows {
            Some(known) => (known, "TCP flows whose data crosses the link"),
            None if designed => return Err(unknown(flows, "the number of TCP flows")),
            None => (1, "no TCP flow is known to cross the link"),
        };
        flows.derive(pi.all, known.max(1), rule);
    }
    if rtt.is_auto(pi.all) {
        let base = match pi.link.rtt {
            Some(known) => known,
            None if designed => return Err(unknown(rtt, "the round-trip time")),
            None => Span::ZERO,
        };
        let queue = pi.packets(Parameters::q_ref())? / pi.link.rate.packets_per_s(pi.mean);
        let queue = Span::try_from_secs_f64(queue).unwrap_or(Span::s(3600));
        let rule =
            format!("base round-trip time {base} plus {queue}, the time that the link takes to send q_ref");
        rtt.derive(pi.all, (base + queue).max(Span::us(1)), rule);
    }
    Ok(())
}

fn unknown<T>(row: Row<T>, what: &str) -> ParamError {
    let name = row.name();
    row.error(format!("gains `auto` needs {what} of this link, which is not known; write {name}"))
}

/// Resolves w_g and w.
fn frequencies(pi: &mut Controller<'_>, designed: bool) -> Result<(), ParamError> {
    let (w_g, w, tcp) = (Parameters::w_g(), Parameters::w(), tcp_loop(pi.all, pi.link)?);
    if w_g.is_auto(pi.all) {
        let (pole, most) = (tcp.window_pole(), CAUTIOUS / tcp.rtt_s);
        let rule = if pole <= most { "2N / (R^2 C)" } else { "0.4 / R, less than 2N / (R^2 C)" };
        w_g.derive(pi.all, pole.min(most), rule);
    }
    if w.is_auto(pi.all) {
        let designed_for = SAMPLES_PER_RADIAN * w_g.read(pi.all)?;
        if designed && designed_for > FREQUENCY {
            let rounded = libm::rint(1000.0 * designed_for.min(1e6)) / 1000.0;
            w.derive(pi.all, rounded, format!("{SAMPLES_PER_RADIAN} w_g, to the nearest millihertz"));
        } else {
            w.derive(pi.all, FREQUENCY, format!("{FREQUENCY} Hz, as in the paper"));
        }
    }
    Ok(())
}

/// Resolves a and b.
fn gains(pi: &mut Controller<'_>, designed: bool) -> Result<(), ParamError> {
    let tcp = tcp_loop(pi.all, pi.link)?;
    let w = Parameters::w().read(pi.all)?;
    let ((a, b), rule) = if designed {
        let (a, b) = tcp.gains(Parameters::w_g().read(pi.all)?, w);
        for (row, derived) in [(Parameters::a(), a), (Parameters::b(), b)] {
            agrees(pi.all, row, derived)?;
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
    for (row, value) in [(Parameters::a(), a), (Parameters::b(), b)] {
        if row.is_auto(pi.all) {
            row.derive(pi.all, value, rule.clone());
        }
    }
    Ok(())
}

/// Checks a gain that is given in addition to gains `auto`: it must equal the derived one, as it does in
/// settings that are written out in full.
fn agrees(all: &Settings, row: Row<f64>, derived: f64) -> Result<(), ParamError> {
    if row.is_auto(all) || row.read(all)? == derived {
        return Ok(());
    }
    let (name, given) = (row.name(), row.read(all)?);
    Err(row.error(format!(
        "gains `auto` derives {name} `{derived}`, but `{given}` is given; leave one of them out"
    )))
}

fn check(all: &Settings) -> Result<(), ParamError> {
    let Parameters { a, b, .. } = Parameters::read(all)?;
    if b < a {
        return Ok(());
    }
    Err(Parameters::b().error(format!(
        "b `{b}` is not less than a `{a}`, so nothing drives the queue to q_ref; write a smaller b"
    )))
}

/// Returns the loop that the effective values of flows and rtt describe.
fn tcp_loop(s: &Settings, link: &LinkContext) -> Result<TcpLoop, ParamError> {
    Ok(TcpLoop {
        flows: Parameters::flows().read(s)? as f64,
        packets_per_s: link.rate.packets_per_s(Parameters::mean_packet().read(s)?),
        rtt_s: Parameters::rtt().read(s)?.as_secs_f64(),
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
    if !known(Parameters::flows().name(), link.flows.is_some())
        || !known(Parameters::rtt().name(), link.rtt.is_some())
    {
        return Ok(None);
    }
    let tcp = tcp_loop(effective, link)?;
    let Parameters { a, b, w, .. } = Parameters::read(effective)?;
    Ok(Some((tcp, tcp.phase_margin(a, b, w))))
}

/// Builds a PI queue from these parameters.
pub(crate) fn build_pi<P: Packet>(s: &Effective, draws: Stream) -> Result<Pi<P>, ParamError> {
    let Parameters { a, b, w, q_old, ecn, .. } = Parameters::read(s)?;
    let gauge = Gauge::new(s)?;
    let law = PiLaw::new(PiParams {
        a,
        b,
        q_ref: gauge.q_ref,
        q_old: match q_old {
            OldQueue::Zero => 0.0,
            OldQueue::QRef => gauge.q_ref,
        },
        unit: gauge.unit,
        sampling: Sampling::at_millihertz(libm::rint(1000.0 * w) as u64),
        byte_mode: gauge.byte_mode,
    });
    // Hollot et al. and ns-2: the check for a full buffer comes first.
    let queue = EarlyQueue { limit: resolve::limit(s)?, ecn, overflow_first: true, spares_not_ect: false };
    Ok(Pi::new(PiControl { law, measure: gauge.measure }, queue, draws))
}

const HOLLOT: &str = "Hollot, Misra, Towsley, Gong 2001, section V";
const DESIGN: &str = "Hollot, Misra, Towsley, Gong 2001, section IV";

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<3>(PRESETS) }),
        ..Shared { limit },
        limit_rule: LimitRule = Common::limit_rule(),
        q_ref: Size = Shared::q_ref().auto("200 packets, but at most half of a given limit")
            .aliases(&[ns2_in("p", "qref_")])
            .source(HOLLOT),
        /// source of a and b unless they are given: the paper's example, or its design rule for this link's
        /// flows, capacity and round-trip time
        gains: Gains = Row::choice("published").source(DESIGN),
        /// weight of the present sample's distance from q_ref, per packet
        a: f64 = Row::above(0.0, 1.0).auto("1.822e-5; gains `auto`: by the design rule")
            .aliases(&[ns2("a_")])
            .source(HOLLOT),
        /// weight of the previous sample's distance from q_ref, per packet; less than a
        b: f64 = Row::above(0.0, 1.0).auto("1.816e-5; gains `auto`: by the design rule")
            .aliases(&[ns2("b_")])
            .source(HOLLOT),
        /// sampling frequency in Hz
        w: f64 = Row::number(0.01, 1e6)
            .auto("160; gains `auto`: 100 samples per radian at the crossover, but at least 160 per second")
            .aliases(&[ns2("w_")])
            .source("Hollot, Misra, Towsley, Gong 2001, section V; ns-2.35 tcl/ex/pi"),
        /// the sample that is assumed to precede the first one; `zero` adds b q_ref to the first update
        q_old: OldQueue = Row::choice("zero").source("zero: ns-2.35; the paper does not say"),
        /// N in the design rule and the phase margin: the smallest expected number of long-lived flows
        flows: u64 = Row::integer(1, 1_000_000_000).auto("the TCP flows whose data crosses the link")
            .source(DESIGN),
        /// R in the design rule and the phase margin: the largest expected round-trip time, including
        /// queueing
        rtt: Span = Row::span(Span::us(1), Span::s(3600))
            .auto("the base round-trip time of the link's paths plus the time that the link takes to send q_ref")
            .source(DESIGN),
        /// crossover frequency of the design rule in rad/s, at which the loop's gain falls to 1
        w_g: f64 = Row::above(0.0, 1e6).auto("the window's pole 2N / (R^2 C), but at most 0.4 / R")
            .source("the pole: ns-2.35 tcl/ex/pi; 0.4 / R, ours: 45 degrees of phase margin"),
        /// mark ECN-capable packets instead of dropping them
        ecn: bool = Row::flag(false).aliases(&[ns2_switch("setbit_")]).source("RFC 3168"),
        ..Shared { measure },
        mean_packet: Bytes = Shared::mean_packet(),
        ..Shared { byte_mode, max_packet },
    }
}

/// PI's presets.
const PRESETS: &[Preset] = &[
    Preset { name: "paper", title: "Hollot, Misra, Towsley and Gong 2001", values: &[] },
    Preset {
        name: NS2,
        title: NS2_TITLE,
        values: &[
            Shared::limit().is(packets(50)),
            Parameters::limit_rule().is("reached"),
            Parameters::q_ref().is(packets(50)),
            Parameters::w().is(170.0),
            Parameters::mean_packet().is(Bytes::new(500)),
        ],
    },
    Preset {
        name: "le2003",
        title: "Le, Aikat, Jeffay and Smith 2003 with q_ref 24; their gains are not known, and those of ns-2 replace them",
        values: &[
            Parameters::q_ref().is(packets(24)),
            Parameters::w().is(170.0),
            Shared::byte_mode().is("mean"),
        ],
    },
];
