//! Converts a scenario's RED settings to effective parameters, and builds queues from those.

use alloc::format;
use alloc::string::String;

use aqmlab_params::{Origin, ParamError, Settings, Value};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets, Span};

use super::red_table::{ARED, ARED_PRESETS, RED, RED_PRESETS};
use super::scred_table::{SCRED, SCRED_PRESETS};
use super::table::{LINUX, NS2};
use super::words::{GentleLine, RedByteMode, Region, Start, WeightRule};
use super::{EarlyLaw, EarlyQueue, Measure, Red, RedControl, RedRule};
use crate::info::{Effective, Info, Maturity};
use crate::law::{
    Adaptation, AdaptiveRed, AimdRule, ByteMode, Counting, CrossingRule, EcnRegion, IdleRule, RedArithmetic,
    RedLaw, RedParams, SpacingRule, When,
};
use crate::resolve::{bytes, in_bytes, whole};
use crate::{LinkContext, Packet, resolve};

/// Settings that make the average follow the queue quickly in a test script.
const QUICK: &[(&str, Value)] = &[("ecn", Value::Flag(true)), ("w_q", Value::Number(0.2))];

/// RED's entry in the catalogue.
pub(crate) const RED_INFO: Info = Info {
    name: "red",
    title: "RED",
    summary: "Random Early Detection: drops or marks at random as the average queue grows",
    version: 2,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: RedControl::DECIDES,
    params: RED,
    presets: RED_PRESETS,
    derive: derive_red,
    samples: || resolve::sample(QUICK),
};

/// Adaptive RED's entry in the catalogue.
pub(crate) const ARED_INFO: Info = Info {
    name: "ared",
    title: "Adaptive RED",
    summary: "RED that sets its thresholds from a target delay and moves max_p to hold the average between them",
    version: 1,
    applies: &["red"],
    maturity: Maturity::ReferenceChecked,
    decides: RedControl::DECIDES,
    params: ARED,
    presets: ARED_PRESETS,
    derive: derive_ared,
    samples: || {
        let mut samples = resolve::sample(QUICK);
        samples[0].1.set("interval", Value::Span(Span::ms(2)), Origin::Given);
        samples
    },
};

/// Self-Configuring RED's entry in the catalogue.
pub(crate) const SCRED_INFO: Info = Info {
    name: "scred",
    title: "Self-Configuring RED",
    summary: "RED that divides max_p when the average falls below min_th and multiplies it when it rises above max_th",
    version: 1,
    applies: &["red"],
    maturity: Maturity::ReferenceChecked,
    decides: RedControl::DECIDES,
    params: SCRED,
    presets: SCRED_PRESETS,
    derive: derive_red,
    samples: || resolve::sample(QUICK),
};

/// Derives the values of the parameters that RED, Self-Configuring RED and RED-PD share.
pub(super) fn derive_red(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    Resolver::new(all, link)?.run()
}

fn derive_ared(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mut resolver = Resolver::new(all, link)?;
    resolver.bottom()?;
    resolver.run()?;
    let (bottom, top) = (all.number("bottom")?, all.number("top")?);
    if bottom > top {
        return Err(ParamError::new("bottom", format!("bottom `{bottom}` exceeds top `{top}`")));
    }
    Ok(())
}

/// The settings that are being resolved, and their context.
struct Resolver<'a> {
    all: &'a mut Settings,
    link: &'a LinkContext,
    linux: bool,
    mean: Bytes,
    measure: Measure,
}

impl<'a> Resolver<'a> {
    fn new(all: &'a mut Settings, link: &'a LinkContext) -> Result<Self, ParamError> {
        let linux = all.choice("preset")? == LINUX;
        let (mean, measure) = (resolve::mean_packet(all, link)?, Measure::read(all, "measure")?);
        Ok(Resolver { all, link, linux, mean, measure })
    }

    fn run(mut self) -> Result<(), ParamError> {
        for name in ["limit", "min_th", "max_th"] {
            resolve::absolute_in_queue_unit(
                self.all,
                aqmlab_params::Row::size().named(name, ""),
                self.link,
                self.measure,
                self.mean,
            )?;
        }
        if self.linux {
            self.linux_sizes()?;
        } else {
            self.sizes()?;
        }
        resolve_burst(self.all)?;
        resolve_weight(self.all, self.link)?;
        self.check()
    }

    /// Returns `C`: packets of RED's own mean size per second.
    fn capacity(&self) -> f64 {
        self.link.rate.packets_per_s(self.mean)
    }

    fn in_queue_unit(&self, bytes: f64) -> Size {
        resolve::in_queue_unit(bytes, self.measure, self.mean)
    }

    fn derive(&mut self, name: &'static str, size: Size, rule: String) {
        self.all.set(name, Value::Size(size), Origin::Derived(rule.into()));
    }

    /// Resolves min_th, max_th and limit, in this order, as in the papers and ns-2.
    fn sizes(&mut self) -> Result<(), ParamError> {
        if self.all.is_auto("min_th") {
            self.automatic_min_th()?;
        }
        if self.all.is_auto("max_th") {
            let min_th = self.all.size("min_th")?;
            self.derive("max_th", times(min_th, 3), format!("3 min_th ({min_th})"));
        }
        if self.all.is_auto("limit") {
            self.automatic_limit()?;
        }
        Ok(())
    }

    /// Resolves min_th according to Floyd, Gummadi, Shenker 2001, section 5.1: max(5, target C / 2) packets.
    /// A value in bytes is not rounded to whole packets.
    fn automatic_min_th(&mut self) -> Result<(), ParamError> {
        let target = self.all.span("target")?;
        let packets = target.as_secs_f64() * self.capacity() / 2.0;
        if packets <= 5.0 {
            let rule = if target.is_zero() {
                String::from("5 packets")
            } else {
                format!("5 packets, more than target * C / 2 = {packets:.3} packets")
            };
            self.derive("min_th", Size::Packets(Packets::new(5)), rule);
        } else {
            let rule = format!("target * C / 2 = {packets:.3} packets of {}", self.mean);
            self.derive("min_th", Size::Bytes(Bytes::new(whole(packets * self.mean.as_f64()))), rule);
        }
        Ok(())
    }

    fn automatic_limit(&mut self) -> Result<(), ParamError> {
        let max_th = self.all.size("max_th")?;
        let least = 4.0 * in_bytes(max_th, self.mean);
        let bdp = self.link.rtt.map(|_| self.link.bdp_bytes("limit", 1.0)).transpose()?;
        match bdp.filter(|bdp| *bdp > least) {
            Some(bdp) => {
                let size = self.in_queue_unit(bdp);
                self.derive(
                    "limit",
                    size,
                    "one bandwidth-delay product, rounded to the nearest whole number".into(),
                );
            }
            None => self.derive("limit", times(max_th, 4), format!("4 max_th ({max_th})")),
        }
        Ok(())
    }

    /// Resolves limit, max_th and min_th, in this order, according to tc-red(8).
    fn linux_sizes(&mut self) -> Result<(), ParamError> {
        if self.all.is_auto("limit") {
            let size = self.in_queue_unit(self.link.bdp_bytes("limit", 1.0)?);
            self.derive(
                "limit",
                size,
                "one bandwidth-delay product, rounded to the nearest whole number".into(),
            );
        }
        if self.all.is_auto("max_th") && !self.all.is_auto("min_th") {
            let min_th = self.all.size("min_th")?;
            self.derive("max_th", times(min_th, 3), format!("3 min_th ({min_th})"));
        }
        if self.all.is_auto("max_th") {
            let limit = self.all.size("limit")?;
            let size = Size::Bytes(Bytes::new((in_bytes(limit, self.mean) / 4.0) as u64));
            self.derive("max_th", size, format!("limit / 4 (limit {limit})"));
        }
        if self.all.is_auto("min_th") {
            let max_th = self.all.size("max_th")?;
            let size = Size::Bytes(Bytes::new((in_bytes(max_th, self.mean) / 3.0) as u64));
            self.derive("min_th", size, format!("max_th / 3 (max_th {max_th})"));
        }
        Ok(())
    }

    /// Resolves the lower bound on Adaptive RED's max_p: ns-2.35 takes min(0.01, 80 000 / rate).
    fn bottom(&mut self) -> Result<(), ParamError> {
        if !self.all.is_auto("bottom") {
            return Ok(());
        }
        if self.all.choice("preset")? == NS2 {
            let bottom = (80_000.0 / self.link.rate.as_bps() as f64).min(0.01);
            let rule = "80 000 bit/s divided by the link's rate, but at most 0.01";
            self.all.set("bottom", Value::Number(bottom), Origin::Derived(rule.into()));
        } else {
            self.all.set("bottom", Value::Number(0.01), Origin::Derived("0.01, as in the paper".into()));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), ParamError> {
        resolve::check_buffer(self.all, self.mean)?;
        resolve::check_order(
            self.all,
            aqmlab_params::Row::size().named("min_th", ""),
            aqmlab_params::Row::size().named("max_th", ""),
            self.mean,
        )?;
        if self.linux {
            return Ok(()); // Linux has no order of these two, and tc gives `min 1200` the `max` 3600 at any limit
        }
        resolve::check_order(
            self.all,
            aqmlab_params::Row::size().named("max_th", ""),
            aqmlab_params::Row::size().named("limit", ""),
            self.mean,
        )
    }
}

fn times(size: Size, factor: u64) -> Size {
    match size {
        Size::Packets(n) => Size::Packets(Packets::new(n.get().saturating_mul(factor))),
        Size::Bytes(n) => Size::Bytes(Bytes::new(n.get().saturating_mul(factor))),
        Size::Bdp(x) => Size::Bdp(x * factor as f64),
        Size::Time(t) => Size::Time(t * factor),
    }
}

/// Builds a RED queue from these parameters.
pub(crate) fn build_red<P: Packet>(s: &Effective, draws: Stream) -> Result<Red<P>, ParamError> {
    let law = RedLaw::new(params(s)?).low_passed(s.number("w_p")?);
    Ok(Red::new(control(s, RedRule::Fixed(law))?, queue(s)?, draws))
}

/// Builds an Adaptive RED queue from these parameters.
pub(crate) fn build_ared<P: Packet>(s: &Effective, draws: Stream) -> Result<Red<P>, ParamError> {
    build_adaptive(s, draws, aimd(s)?)
}

/// Builds a Self-Configuring RED queue from these parameters.
pub(crate) fn build_scred<P: Packet>(s: &Effective, draws: Stream) -> Result<Red<P>, ParamError> {
    build_adaptive(s, draws, crossings(s)?)
}

fn build_adaptive<P: Packet>(s: &Effective, draws: Stream, rule: Adaptation) -> Result<Red<P>, ParamError> {
    let law = AdaptiveRed::new(RedLaw::new(params(s)?), rule);
    Ok(Red::new(control(s, RedRule::Adaptive(law))?, queue(s)?, draws))
}

fn params(s: &Effective) -> Result<RedParams, ParamError> {
    let mean = bytes(s, "mean_packet")?;
    let unit = match Measure::read(s, "measure")? {
        Measure::Packets => mean.as_f64(),
        Measure::Bytes => 1.0,
    };
    Ok(RedParams {
        min_th: in_bytes(s.size("min_th")?, mean) / unit,
        max_th: in_bytes(s.size("max_th")?, mean) / unit,
        max_p: s.number("max_p")?,
        weight: s.number("w_q")?,
        gentle: s.flag("gentle")?,
        spacing: SpacingRule::read(s, "uniformisation")?,
        byte_mode: match RedByteMode::read(s, "byte_mode")? {
            RedByteMode::Off => ByteMode::Off,
            RedByteMode::Paper => ByteMode::Paper { largest: bytes(s, "max_packet")? },
            RedByteMode::Ns2 => ByteMode::Ns2 { mean },
        },
        idle: IdleRule::read(s, "idle")?,
        counting: Counting::read(s, "counting")?,
        ecn_region: match Region::read(s, "ecn_region")? {
            Region::Rfc3168 => EcnRegion::BelowMaxTh,
            Region::Ns2MarkP => EcnRegion::BelowMarkP(s.number("mark_p")?),
            Region::Feng | Region::Linux => EcnRegion::Everywhere,
        },
        arithmetic: RedArithmetic::read(s, "arithmetic")?,
        packets_per_s: s.link().rate.packets_per_s(mean),
    })
}

fn control(s: &Settings, rule: RedRule) -> Result<RedControl, ParamError> {
    let (measure, mean_packet) = (Measure::read(s, "measure")?, bytes(s, "mean_packet")?);
    Ok(RedControl { rule, measure, mean_packet })
}

fn queue(s: &Settings) -> Result<EarlyQueue, ParamError> {
    // ns-2 attributes a drop at a full queue to the queue's limit, whatever RED decides.
    let overflow_first = Counting::read(s, "counting")? == Counting::Ns2;
    Ok(EarlyQueue { limit: resolve::limit(s)?, ecn: s.flag("ecn")?, overflow_first, spares_not_ect: false })
}

fn aimd(s: &Settings) -> Result<Adaptation, ParamError> {
    Ok(Adaptation::Aimd(AimdRule {
        interval: s.span("interval")?,
        alpha: s.number("alpha")?,
        beta: s.number("beta")?,
        top: s.number("top")?,
        bottom: s.number("bottom")?,
        when: When::read(s, "adapt_at")?,
        move_gentle_foot: GentleLine::read(s, "gentle_line")? == GentleLine::Moving,
    }))
}

fn crossings(s: &Settings) -> Result<Adaptation, ParamError> {
    Ok(Adaptation::Crossings(CrossingRule {
        alpha: s.number("alpha")?,
        beta: s.number("beta")?,
        starts_above: Start::read(s, "start")? == Start::Above,
        move_gentle_foot: GentleLine::read(s, "gentle_line")? == GentleLine::Moving,
    }))
}

/// Floyd and Jacobson 1993, section 6.
const FIXED: f64 = 0.002;

/// Replaces an automatic `w_q` with the value that `w_rule` yields.
pub(super) fn resolve_weight(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    if !all.is_auto("w_q") {
        return Ok(());
    }
    let capacity = link.rate.packets_per_s(bytes(all, "mean_packet")?);
    let (weight, rule) = match WeightRule::read(all, "w_rule")? {
        WeightRule::Paper => {
            (from_time_constant(1.0 / capacity), format!("1 - exp(-1/C), C = {capacity:.3} packets/s"))
        }
        WeightRule::Ns2Fast => {
            (from_time_constant(10.0 / capacity), format!("1 - exp(-10/C), C = {capacity:.3} packets/s"))
        }
        WeightRule::Ns2 => {
            // ns-2.35 REDQueue::initialize_params: a rough round-trip time, at least 100 ms.
            let rtt = (3.0 * (link.delay.as_secs_f64() + 1.0 / capacity)).max(0.1);
            let rule = format!("1 - exp(-1/(10 R C)), R = {rtt:.3} s, C = {capacity:.3} packets/s");
            (from_time_constant(1.0 / (10.0 * rtt * capacity)), rule)
        }
        WeightRule::Linux => {
            let (min_th, burst) = (minimum_in_packets(all)?, all.integer("burst")?);
            let log = linux_weight_log(min_th, burst).ok_or_else(|| no_weight(min_th, burst))?;
            (1.0 / (1u64 << log) as f64, format!("2^-{log}, as tc derives it from burst {burst}"))
        }
        WeightRule::Fixed => (FIXED, format!("{FIXED}")),
    };
    all.set("w_q", Value::Number(weight), Origin::Derived(rule.into()));
    Ok(())
}

/// Replaces an automatic `burst` with the value that tc's guideline gives.
pub(super) fn resolve_burst(all: &mut Settings) -> Result<(), ParamError> {
    if !all.is_auto("burst") {
        return Ok(());
    }
    let mean = bytes(all, "mean_packet")?;
    let (min_th, max_th) = (in_bytes(all.size("min_th")?, mean), in_bytes(all.size("max_th")?, mean));
    let guideline = ((2.0 * min_th + max_th) / (3.0 * mean.as_f64())) as u64;
    // DEVIATES from tc, which refuses a guideline below min_th (impossible here, because max_th >=
    // min_th).
    let burst = guideline.max(1);
    let rule = format!("(2 min_th + max_th) / (3 mean_packet) = {burst}");
    all.set("burst", Value::Integer(burst), Origin::Derived(rule.into()));
    Ok(())
}

/// Returns 1 - e^-x without loss of precision for small x.
fn from_time_constant(x: f64) -> f64 {
    -libm::expm1(-x)
}

fn minimum_in_packets(all: &Settings) -> Result<f64, ParamError> {
    let mean: Bytes = bytes(all, "mean_packet")?;
    Ok(in_bytes(all.size("min_th")?, mean) / mean.as_f64())
}

/// Returns the reason why tc finds no weight.
fn no_weight(min_th: f64, burst: u64) -> ParamError {
    let (name, message) = if min_th < 1.0 {
        (
            "min_th",
            String::from("min_th must be at least one packet of mean size: tc finds no weight below that"),
        )
    } else if burst as f64 + 1.0 - min_th < 1.0 {
        let least = libm::ceil(min_th) as u64;
        ("burst", format!("burst `{burst}` is too small for min_th; it must be at least {least}"))
    } else {
        ("burst", format!("burst `{burst}` is too large: tc finds no weight of at least 2^-31 for it"))
    };
    ParamError::new(name, message)
}

/// Returns the smallest k with `burst + 1 - min_th <= (1 - (1 - W)^burst) / W`, W = 2^-k (Floyd and Jacobson
/// 1993, inequality 3, as tc solves it), or `None` if the burst is too small for any k.
fn linux_weight_log(min_th: f64, burst: u64) -> Option<u32> {
    let excess = burst as f64 + 1.0 - min_th;
    if excess < 1.0 {
        return None;
    }
    (1..32).find(|&k| {
        let weight = 1.0 / (1u64 << k) as f64;
        excess <= (1.0 - libm::pow(1.0 - weight, burst as f64)) / weight
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answer_weights() {
        let capacity = 10e6 / (8.0 * 615.0);
        assert!((from_time_constant(1.0 / capacity) - 4.9188e-4).abs() < 5e-9);
        assert!((from_time_constant(1.0 / 25_000.0) - 3.99992e-5).abs() < 5e-11);
    }

    #[test]
    fn the_linux_weight_lets_the_burst_pass() {
        // tc-red(8) example: min 30 kB, avpkt 1000, burst 55. The inequality holds at k and not at
        // k - 1.
        let log = linux_weight_log(30.0, 55).unwrap();
        let passes = |k: u32| {
            let weight = 0.5f64.powi(k as i32);
            (1..=55).fold(0.0, |avg, q| avg * (1.0 - weight) + weight * f64::from(q)) <= 30.0
        };
        assert!(passes(log), "{log}: the average after a burst of 55 from empty stays below min_th");
        assert_eq!(linux_weight_log(30.0, 20), None);
    }
}
