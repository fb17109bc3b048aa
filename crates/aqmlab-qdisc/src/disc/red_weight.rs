//! Automatic w_q: the weight of a new sample in RED's average.

use alloc::format;

use aqmlab_params::{Origin, ParamError, Settings, Value};
use aqmlab_units::Bytes;

use super::words::WeightRule;
use crate::LinkContext;
use crate::resolve::{bytes, in_bytes};

/// Floyd and Jacobson 1993, section 6.
const FIXED: f64 = 0.002;

/// Replaces an automatic `w_q` by what `w_rule` says.
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
            let log = linux_weight_log(min_th, burst).ok_or_else(|| {
                let message = format!(
                    "burst `{burst}` is too small for min_th; it must be at least {}",
                    1 + min_th as u64
                );
                ParamError::new("burst", message)
            })?;
            (1.0 / (1u64 << log) as f64, format!("2^-{log}, by tc from burst {burst}"))
        }
        WeightRule::Fixed => (FIXED, format!("{FIXED}")),
    };
    all.set("w_q", Value::Number(weight), Origin::Derived(rule.into()));
    Ok(())
}

/// Replaces an automatic `burst` by tc's guideline.
pub(super) fn resolve_burst(all: &mut Settings) -> Result<(), ParamError> {
    if !all.is_auto("burst") {
        return Ok(());
    }
    let mean = bytes(all, "mean_packet")?;
    let (min_th, max_th) = (in_bytes(all.size("min_th")?, mean), in_bytes(all.size("max_th")?, mean));
    let guideline = ((2.0 * min_th + max_th) / (3.0 * mean.as_f64())) as u64;
    // DEVIATES from tc, which refuses a guideline below min_th (it never is, as max_th >= min_th).
    let burst = guideline.max(1);
    let rule = format!("(2 min_th + max_th) / (3 mean_packet) = {burst}");
    all.set("burst", Value::Integer(burst), Origin::Derived(rule.into()));
    Ok(())
}

/// 1 - e^-x without loss of digits for small x.
fn from_time_constant(x: f64) -> f64 {
    -libm::expm1(-x)
}

fn minimum_in_packets(all: &Settings) -> Result<f64, ParamError> {
    let mean: Bytes = bytes(all, "mean_packet")?;
    Ok(in_bytes(all.size("min_th")?, mean) / mean.as_f64())
}

/// The least k with `burst + 1 - min_th <= (1 - (1 - W)^burst) / W`, W = 2^-k (Floyd and Jacobson 1993,
/// inequality 3, as tc solves it); `None` if the burst is too small for any.
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
        // tc-red(8) example: min 30 kB, avpkt 1000, burst 55. The inequality at k and not at k - 1.
        let log = linux_weight_log(30.0, 55).unwrap();
        let passes = |k: u32| {
            let weight = 0.5f64.powi(k as i32);
            (1..=55).fold(0.0, |avg, q| avg * (1.0 - weight) + weight * f64::from(q)) <= 30.0
        };
        assert!(passes(log), "{log}: the average after a burst of 55 from empty stays below min_th");
        assert_eq!(linux_weight_log(30.0, 20), None);
    }
}
