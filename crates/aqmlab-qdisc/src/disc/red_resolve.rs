//! Converts a scenario's RED settings to effective parameters, and builds queues from those.

use alloc::format;
use alloc::string::String;

use aqmlab_params::{ParamError, Row, Settings, Value};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets, Span};

use super::red_table::{ARED_PRESETS, AredOwn, RED_PRESETS, RedOwn, Shared};
use super::scred_table::{SCRED_PRESETS, ScredOwn};
use super::table::{LINUX, NS2};
use super::words::{GentleLine, RedByteMode, Region, Start, WeightRule};
use super::{EarlyLaw, EarlyQueue, Measure, Red, RedControl, RedRule};
use crate::info::{Derive, Effective, Info, Maturity};
use crate::law::{
    Adaptation, AdaptiveRed, AimdRule, ByteMode, Counting, CrossingRule, EcnRegion, RedLaw, RedParams,
};
use crate::resolve::{in_bytes, whole};
use crate::{LinkContext, Packet, resolve};

const ONE_BDP: &str = "one bandwidth-delay product, rounded to the nearest whole number";

/// Settings that make the average follow the queue quickly in a test script.
const QUICK: &[(&str, Value)] = &[Shared::ecn().is(true), Shared::w_q().is(0.2)];

/// RED's entry in the catalogue.
pub(crate) const RED_INFO: Info = Info {
    name: "red",
    title: "RED",
    summary: "Random Early Detection: drops or marks at random as the average queue grows",
    version: 2,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: RedControl::DECIDES,
    params: RedOwn::TABLE,
    presets: RED_PRESETS,
    derive: Derive::Alone(derive_red),
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
    params: AredOwn::TABLE,
    presets: ARED_PRESETS,
    derive: Derive::Alone(derive_ared),
    samples: || resolve::sample(&[QUICK, &[AredOwn::interval().is(Span::ms(2))]].concat()),
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
    params: ScredOwn::TABLE,
    presets: SCRED_PRESETS,
    derive: Derive::Alone(derive_red),
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
    let AredOwn { bottom, top, .. } = AredOwn::read(all)?;
    if bottom > top {
        return Err(AredOwn::bottom().error(format!("bottom `{bottom}` exceeds top `{top}`")));
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
        let linux = RedOwn::preset().read(all)? == LINUX;
        let (mean, measure) = (resolve::mean_packet(all, link)?, Shared::measure().read(all)?);
        Ok(Resolver { all, link, linux, mean, measure })
    }

    fn run(mut self) -> Result<(), ParamError> {
        for row in [Shared::limit(), Shared::min_th(), Shared::max_th()] {
            resolve::absolute_in_queue_unit(self.all, row, self.link, self.measure, self.mean)?;
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

    /// Resolves min_th, max_th and limit, in this order, as in the papers and ns-2.
    fn sizes(&mut self) -> Result<(), ParamError> {
        if Shared::min_th().is_auto(self.all) {
            self.automatic_min_th()?;
        }
        if Shared::max_th().is_auto(self.all) {
            let min_th = Shared::min_th().read(self.all)?;
            Shared::max_th().derive(self.all, times(min_th, 3), format!("3 min_th ({min_th})"));
        }
        if Shared::limit().is_auto(self.all) {
            self.automatic_limit()?;
        }
        Ok(())
    }

    /// Resolves min_th according to Floyd, Gummadi, Shenker 2001, section 5.1: max(5, target C / 2) packets.
    /// A value in bytes is not rounded to whole packets.
    fn automatic_min_th(&mut self) -> Result<(), ParamError> {
        let target = Shared::target().read(self.all)?;
        let packets = target.as_secs_f64() * self.capacity() / 2.0;
        if packets <= 5.0 {
            let rule = if target.is_zero() {
                String::from("5 packets")
            } else {
                format!("5 packets, more than target * C / 2 = {packets:.3} packets")
            };
            Shared::min_th().derive(self.all, Size::Packets(Packets::new(5)), rule);
        } else {
            let rule = format!("target * C / 2 = {packets:.3} packets of {}", self.mean);
            let bytes = Bytes::new(whole(packets * self.mean.as_f64()));
            Shared::min_th().derive(self.all, Size::Bytes(bytes), rule);
        }
        Ok(())
    }

    fn automatic_limit(&mut self) -> Result<(), ParamError> {
        let max_th = Shared::max_th().read(self.all)?;
        let least = 4.0 * in_bytes(max_th, self.mean);
        let bdp = self.link.rtt.map(|_| self.link.bdp_bytes(Shared::limit().name(), 1.0)).transpose()?;
        match bdp.filter(|bdp| *bdp > least) {
            Some(bdp) => {
                let size = self.in_queue_unit(bdp);
                Shared::limit().derive(self.all, size, ONE_BDP);
            }
            None => Shared::limit().derive(self.all, times(max_th, 4), format!("4 max_th ({max_th})")),
        }
        Ok(())
    }

    /// Resolves limit, max_th and min_th, in this order, according to tc-red(8).
    fn linux_sizes(&mut self) -> Result<(), ParamError> {
        if Shared::limit().is_auto(self.all) {
            let size = self.in_queue_unit(self.link.bdp_bytes(Shared::limit().name(), 1.0)?);
            Shared::limit().derive(self.all, size, ONE_BDP);
        }
        if Shared::max_th().is_auto(self.all) && !Shared::min_th().is_auto(self.all) {
            let min_th = Shared::min_th().read(self.all)?;
            Shared::max_th().derive(self.all, times(min_th, 3), format!("3 min_th ({min_th})"));
        }
        if Shared::max_th().is_auto(self.all) {
            let limit = Shared::limit().read(self.all)?;
            let size = Size::Bytes(Bytes::new((in_bytes(limit, self.mean) / 4.0) as u64));
            Shared::max_th().derive(self.all, size, format!("limit / 4 (limit {limit})"));
        }
        if Shared::min_th().is_auto(self.all) {
            let max_th = Shared::max_th().read(self.all)?;
            let size = Size::Bytes(Bytes::new((in_bytes(max_th, self.mean) / 3.0) as u64));
            Shared::min_th().derive(self.all, size, format!("max_th / 3 (max_th {max_th})"));
        }
        Ok(())
    }

    /// Resolves the lower bound on Adaptive RED's max_p: ns-2.35 takes min(0.01, 80 000 / rate).
    fn bottom(&mut self) -> Result<(), ParamError> {
        let bottom = AredOwn::bottom();
        if !bottom.is_auto(self.all) {
            return Ok(());
        }
        if AredOwn::preset().read(self.all)? == NS2 {
            let value = (80_000.0 / self.link.rate.as_bps() as f64).min(0.01);
            bottom.derive(self.all, value, "80 000 bit/s divided by the link's rate, but at most 0.01");
        } else {
            bottom.derive(self.all, 0.01, "0.01, as in the paper");
        }
        Ok(())
    }

    fn check(&self) -> Result<(), ParamError> {
        resolve::check_buffer(self.all, self.mean)?;
        resolve::check_order(self.all, Shared::min_th(), Shared::max_th(), self.mean)?;
        if self.linux {
            return Ok(()); // Linux has no order of these two, and tc gives `min 1200` the `max` 3600 at any limit
        }
        resolve::check_order(self.all, Shared::max_th(), Shared::limit(), self.mean)
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
    let w_p = RedOwn::w_p().read(s)?;
    build(s, draws, |law| RedRule::Fixed(law.low_passed(w_p)))
}

/// Builds an Adaptive RED queue from these parameters.
pub(crate) fn build_ared<P: Packet>(s: &Effective, draws: Stream) -> Result<Red<P>, ParamError> {
    let own = AredOwn::read(s)?;
    let rule = Adaptation::Aimd(AimdRule {
        interval: own.interval,
        alpha: own.alpha,
        beta: own.beta,
        top: own.top,
        bottom: own.bottom,
        when: own.adapt_at,
        move_gentle_foot: own.gentle_line == GentleLine::Moving,
    });
    build(s, draws, |law| RedRule::Adaptive(AdaptiveRed::new(law, rule)))
}

/// Builds a Self-Configuring RED queue from these parameters.
pub(crate) fn build_scred<P: Packet>(s: &Effective, draws: Stream) -> Result<Red<P>, ParamError> {
    let own = ScredOwn::read(s)?;
    let rule = Adaptation::Crossings(CrossingRule {
        alpha: own.alpha,
        beta: own.beta,
        starts_above: own.start == Start::Above,
        move_gentle_foot: own.gentle_line == GentleLine::Moving,
    });
    build(s, draws, |law| RedRule::Adaptive(AdaptiveRed::new(law, rule)))
}

/// Returns RED's law with these effective parameters, which need not be those of a RED queue.
pub(super) fn red_law(s: &Settings, link: &LinkContext) -> Result<RedLaw, ParamError> {
    let p = Shared::read(s)?;
    let mean_packet = p.mean_packet;
    let unit = match p.measure {
        Measure::Packets => mean_packet.as_f64(),
        Measure::Bytes => 1.0,
    };
    Ok(RedLaw::new(RedParams {
        min_th: in_bytes(p.min_th, mean_packet) / unit,
        max_th: in_bytes(p.max_th, mean_packet) / unit,
        max_p: p.max_p,
        weight: p.w_q,
        gentle: p.gentle,
        spacing: p.uniformisation,
        byte_mode: match p.byte_mode {
            RedByteMode::Off => ByteMode::Off,
            RedByteMode::Paper => ByteMode::Paper { largest: p.max_packet },
            RedByteMode::Ns2 => ByteMode::Ns2 { mean: mean_packet },
        },
        idle: p.idle,
        counting: p.counting,
        ecn_region: match p.ecn_region {
            Region::Rfc3168 => EcnRegion::BelowMaxTh,
            Region::Ns2MarkP => EcnRegion::BelowMarkP(p.mark_p),
            Region::Feng | Region::Linux => EcnRegion::Everywhere,
        },
        arithmetic: p.arithmetic,
        packets_per_s: link.rate.packets_per_s(mean_packet),
    }))
}

/// Builds a queue whose law is RED's under the rule that `rule` makes of it.
fn build<P: Packet>(
    s: &Effective,
    draws: Stream,
    rule: impl FnOnce(RedLaw) -> RedRule,
) -> Result<Red<P>, ParamError> {
    let (law, ecn) = (red_law(s, s.link())?, Shared::ecn().read(s)?);
    let (measure, mean_packet) = (Shared::measure().read(s)?, Shared::mean_packet().read(s)?);
    // ns-2 attributes a drop at a full queue to the queue's limit, whatever RED decides.
    let overflow_first = law.params().counting == Counting::Ns2;
    let queue = EarlyQueue { limit: resolve::limit(s)?, ecn, overflow_first, spares_not_ect: false };
    Ok(Red::new(RedControl { rule: rule(law), measure, mean_packet }, queue, draws))
}

/// Floyd and Jacobson 1993, section 6.
const FIXED: f64 = 0.002;

/// Replaces an automatic `w_q` with the value that `w_rule` yields.
pub(super) fn resolve_weight(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let w_q = Shared::w_q();
    if !w_q.is_auto(all) {
        return Ok(());
    }
    let capacity = link.rate.packets_per_s(Shared::mean_packet().read(all)?);
    let (weight, rule) = match Shared::w_rule().read(all)? {
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
            let (log, burst) = tc_weight_log(all)?;
            (1.0 / (1u64 << log) as f64, format!("2^-{log}, as tc derives it from burst {burst}"))
        }
        WeightRule::Fixed => (FIXED, format!("{FIXED}")),
    };
    w_q.derive(all, weight, rule);
    Ok(())
}

/// Returns the negative binary logarithm of the weight that tc derives from min_th and `burst`, and `burst`.
fn tc_weight_log(all: &Settings) -> Result<(u32, u64), ParamError> {
    let (min_th, burst) = (minimum_in_packets(all)?, Shared::burst().read(all)?);
    let log = linux_weight_log(min_th, burst).ok_or_else(|| no_weight(min_th, burst))?;
    Ok((log, burst))
}

/// Returns the weight that tc derives from min_th and `burst`.
pub(super) fn tc_weight(all: &Settings) -> Result<f64, ParamError> {
    tc_weight_log(all).map(|(log, _)| 1.0 / (1u64 << log) as f64)
}

/// Replaces an automatic `burst` with the value that tc's guideline gives.
pub(super) fn resolve_burst(all: &mut Settings) -> Result<(), ParamError> {
    let row = Shared::burst();
    if !row.is_auto(all) {
        return Ok(());
    }
    let mean = Shared::mean_packet().read(all)?;
    let in_bytes = |row: Row<Size>| row.read(all).map(|size| in_bytes(size, mean));
    let (min_th, max_th) = (in_bytes(Shared::min_th())?, in_bytes(Shared::max_th())?);
    let guideline = ((2.0 * min_th + max_th) / (3.0 * mean.as_f64())) as u64;
    // DEVIATES from tc, which refuses a guideline below min_th (impossible here, because max_th >=
    // min_th).
    let burst = guideline.max(1);
    let rule = format!("(2 min_th + max_th) / (3 mean_packet) = {burst}");
    row.derive(all, burst, rule);
    Ok(())
}

/// Returns 1 - e^-x without loss of precision for small x.
fn from_time_constant(x: f64) -> f64 {
    -libm::expm1(-x)
}

fn minimum_in_packets(all: &Settings) -> Result<f64, ParamError> {
    let mean = Shared::mean_packet().read(all)?;
    Ok(in_bytes(Shared::min_th().read(all)?, mean) / mean.as_f64())
}

/// Returns the reason why tc finds no weight.
fn no_weight(min_th: f64, burst: u64) -> ParamError {
    if min_th < 1.0 {
        return Shared::min_th()
            .error("min_th must be at least one packet of mean size: tc finds no weight below that");
    }
    Shared::burst().error(if burst as f64 + 1.0 - min_th < 1.0 {
        let least = libm::ceil(min_th) as u64;
        format!("burst `{burst}` is too small for min_th; it must be at least {least}")
    } else {
        format!("burst `{burst}` is too large: tc finds no weight of at least 2^-31 for it")
    })
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
