//! The memory that a run will need.

use aqmlab_units::{Bytes, Span};

use crate::Traffic;
use crate::plan::{ClassPlan, Plan};

// Measured on a simulated 10 Gbit/s dumbbell with 200 000 TCP flows: 57 B per sample of a flow. The figures here
// are rounded up.

/// Bytes for the state of a connection in a class that opens connections at a rate. Measured: 0.6
/// to 0.8 kB per connection, in runs with 198 000 and 150 000 connections that the link could not
/// carry.
const WAITING: u64 = 1024;
/// Bytes for a sample of a flow, as the recorder holds it until it is written.
const FLOW_SAMPLE: u64 = 64;
/// Bytes for a sample of a queue, with its law's values.
const QUEUE_SAMPLE: u64 = 256;

/// The memory that a run of a plan is expected to need: an upper estimate for the parts that grow with the
/// scenario. Packets in flight are not counted, because TCP determines their number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Estimate {
    /// Total number of flows in all classes.
    pub flows: u64,
    /// Memory for the state of all flows.
    pub flow_state: Bytes,
    /// Memory for the samples in the recording. The flows of programs have none: only a program sees the state of its
    /// sockets.
    pub samples: Bytes,
}

impl Estimate {
    /// Returns the sum.
    pub fn total(&self) -> Bytes {
        Bytes::new(self.flow_state.get().saturating_add(self.samples.get()))
    }
}

/// Returns the estimate for one run of `plan`.
pub fn memory(plan: &Plan) -> Estimate {
    let flows = plan.classes.iter().fold(0u64, |sum, c| sum.saturating_add(c.count));
    let state = plan.classes.iter().fold(0u64, |sum, class| sum.saturating_add(state_bytes(class, plan)));
    let sampled = plan.classes.iter().filter(|class| !matches!(class.traffic, Traffic::Program(_)));
    let sampled = sampled.fold(0u64, |sum, class| sum.saturating_add(class.count));
    let flow_samples =
        samples(plan.stop.at, plan.record.flows).saturating_mul(sampled).saturating_mul(FLOW_SAMPLE);
    let queue_samples = samples(plan.stop.at, plan.record.queues)
        .saturating_mul(plan.links.len() as u64)
        .saturating_mul(QUEUE_SAMPLE);
    Estimate {
        flows,
        flow_state: Bytes::new(state),
        samples: Bytes::new(flow_samples.saturating_add(queue_samples)),
    }
}

/// Returns the memory for the state of all flows of a class, or of the connections that its arrival
/// process has open at the same time.
fn state_bytes(class: &ClassPlan, plan: &Plan) -> u64 {
    match class.most_open(plan) {
        Some(open) => (open as u64).saturating_mul(WAITING),
        None => class.count.saturating_mul(class.traffic.flow_bytes()),
    }
}

fn samples(duration: Span, interval: Span) -> u64 {
    if interval.is_zero() { 0 } else { duration.div_span(interval) }
}

/// If `plan` needs more memory than `cap`, returns the class that needs the most, and a message with the
/// estimate and a remedy.
pub(crate) fn refusal(plan: &Plan, cap: Bytes) -> Option<(usize, String)> {
    let estimate = memory(plan);
    if estimate.total() <= cap {
        return None;
    }
    let (class, largest) =
        plan.classes.iter().enumerate().max_by_key(|(_, class)| state_bytes(class, plan))?;
    let (flows, smaller) = match largest.most_open(plan) {
        Some(open) => (
            format!("about `{}` connections at the same time", two_digits(open as u64)),
            "a lower rate, a faster link, or a shorter run",
        ),
        None => (format!("`{}` flows", estimate.flows), largest.traffic.smaller()),
    };
    let message = format!(
        "{flows} need about {} of memory ({} for their state, {} for samples); at most {} is allowed: choose {smaller}",
        rounded(estimate.total()),
        rounded(estimate.flow_state),
        rounded(estimate.samples),
        rounded(cap)
    );
    Some((class, message))
}

/// Rounds to two significant digits, which are enough for an estimate.
fn rounded(bytes: Bytes) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = bytes.as_f64();
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if value < 10.0 && unit > 0 {
        format!("{value:.1} {}", UNITS[unit])
    } else {
        format!("{value:.0} {}", UNITS[unit])
    }
}

fn two_digits(number: u64) -> u64 {
    let unit = 10u64.pow(number.max(1).ilog10().saturating_sub(1));
    (number + unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_flows_with_samples_need_memory_for_samples() {
        let text = |classes: &str| {
            format!(
                "title = \"t\"\nduration = \"1h\"\nrecord = {{ queues = \"1s\", flows = \"10ms\" }}\n\
                 topology = {{ kind = \"dumbbell\", rate = \"10Mbit\", delay = \"1ms\", queue = \"droptail\" }}\n{classes}"
            )
        };
        let estimate = |classes: &str| {
            let parsed = crate::parse(&text(classes), "test").unwrap_or_else(|error| panic!("{error}"));
            memory(&parsed.arms[0]).samples.get()
        };
        let bulk = "[[traffic]]\nname = \"b\"\nkind = \"bulk\"\n";
        let program = "[[traffic]]\nname = \"p\"\nkind = \"program\"\nclient = [\"x\"]\nflows = 4096\n";
        // 360,000 samples of one flow, and 3600 of the queue at each of two links.
        assert_eq!(estimate(bulk), 360_000 * FLOW_SAMPLE + 2 * 3600 * QUEUE_SAMPLE);
        assert_eq!(estimate(&format!("{bulk}{program}")), estimate(bulk));
    }

    #[test]
    fn an_estimate_prints_two_digits() {
        assert_eq!(rounded(Bytes::new(999)), "999 B");
        assert_eq!(rounded(Bytes::new(2_048_000_000_000)), "2.0 TB");
        assert_eq!(rounded(Bytes::new(64_400_000_000)), "64 GB");
        assert_eq!([99_997_430, 1_234, 7, 0].map(two_digits), [100_000_000, 1_200, 7, 0]);
    }
}
