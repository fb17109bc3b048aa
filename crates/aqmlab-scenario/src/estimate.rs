//! How much memory a run needs, before it is begun.

use aqmlab_units::{Bytes, Span};

use crate::plan::{ClassPlan, Plan, PopulationPlan, Workload};

// Measured on a simulated 10 Gbit/s dumbbell with 200 000 TCP flows: 1.6 kB a flow with all its packets on their way,
// 57 B a sample of a flow. The figures here are rounded up.

/// State of a TCP connection: both endpoints, their timers and reordering lists, the flow's row in the record.
const TCP_FLOW: u64 = 2048;
/// What its applications do: periods with their streams of draws.
const SESSION: u64 = 160;
/// State of a source of packets.
const PACKET_FLOW: u64 = 256;
/// An object of a page, twice: in the page, and where it is under way.
const OBJECT: u64 = 112;
/// Objects of a page that nine in ten do not exceed.
const LARGE_PAGE: u64 = 185;
/// A sample of a flow, as the recorder holds it until it is written.
const FLOW_SAMPLE: u64 = 64;
/// A sample of a queue, with its law's values.
const QUEUE_SAMPLE: u64 = 256;

/// What a run of a plan is expected to need; an estimate from above for the parts that grow with the scenario.
/// Packets on their way are not counted: their number follows from what TCP does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Estimate {
    /// Flows of all classes.
    pub flows: u64,
    /// Their state.
    pub flow_state: Bytes,
    /// Samples in the recording.
    pub samples: Bytes,
}

impl Estimate {
    /// The sum.
    pub fn total(&self) -> Bytes {
        Bytes::new(self.flow_state.get().saturating_add(self.samples.get()))
    }
}

/// The estimate for one run of `plan`.
pub fn memory(plan: &Plan) -> Estimate {
    let flows = plan.classes.iter().fold(0u64, |sum, c| sum.saturating_add(c.count));
    let state =
        plan.classes.iter().fold(0u64, |sum, c| sum.saturating_add(c.count.saturating_mul(flow_bytes(c))));
    let flow_samples =
        samples(plan.stop.at, plan.record.flows).saturating_mul(flows).saturating_mul(FLOW_SAMPLE);
    let queue_samples = samples(plan.stop.at, plan.record.queues)
        .saturating_mul(plan.links.len() as u64)
        .saturating_mul(QUEUE_SAMPLE);
    Estimate {
        flows,
        flow_state: Bytes::new(state),
        samples: Bytes::new(flow_samples.saturating_add(queue_samples)),
    }
}

fn flow_bytes(class: &ClassPlan) -> u64 {
    if let PopulationPlan::Pages(plan) = &class.population {
        let objects = plan.objects.as_ref().map_or(LARGE_PAGE, |objects| objects.mean().0);
        return plan.origins.mean().0 * (TCP_FLOW + SESSION) + objects * OBJECT;
    }
    if let PopulationPlan::Browsers(plan) = &class.population {
        return plan.parallel.mean().0 * (TCP_FLOW + SESSION);
    }
    match class.workload {
        Workload::Bulk { .. } => TCP_FLOW,
        Workload::Sessions { .. } => TCP_FLOW + SESSION,
        Workload::Packets { .. } | Workload::Schedule(_) => PACKET_FLOW,
        Workload::OnOff { .. } => PACKET_FLOW + SESSION,
    }
}

fn samples(duration: Span, interval: Span) -> u64 {
    if interval.is_zero() { 0 } else { duration.div_span(interval) }
}

/// Why `plan` is too large for `cap`, with the figures; `None` if it fits.
pub(crate) fn refusal(plan: &Plan, cap: Bytes) -> Option<String> {
    let estimate = memory(plan);
    let smaller = if plan.classes.iter().any(|class| matches!(class.population, PopulationPlan::Pages(_))) {
        "pages of fewer objects"
    } else {
        "sample less often in [record]"
    };
    (estimate.total() > cap).then(|| {
        format!(
            "`{}` flows need about {} of memory ({} for their state, {} for samples); at most {} are allowed: write fewer \
             flows, or {smaller}",
            estimate.flows,
            rounded(estimate.total()),
            rounded(estimate.flow_state),
            rounded(estimate.samples),
            rounded(cap)
        )
    })
}

/// Two significant digits are plenty for an estimate.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_prints_two_digits() {
        assert_eq!(rounded(Bytes::new(999)), "999 B");
        assert_eq!(rounded(Bytes::new(2_048_000_000_000)), "2.0 TB");
        assert_eq!(rounded(Bytes::new(64_400_000_000)), "64 GB");
    }
}
