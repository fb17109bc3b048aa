//! Curves of control laws: the probability with which RED and its relatives choose a packet, as a function of
//! the average queue.

use aqmlab_qdisc::contract::TestPacket;
use aqmlab_qdisc::disc::{Measure, RedControl};
use aqmlab_qdisc::law::RedParams;
use aqmlab_qdisc::{Discipline, Registry};
use aqmlab_random::Stream;
use aqmlab_scenario::{LinkPlan, Plan};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::UsageError;
use crate::plans::parse;

/// Number of steps on an automatic axis.
const STEPS: u32 = 240;
/// Upper end of an automatic axis, as a multiple of the average at which every packet is chosen.
const MARGIN: f64 = 1.1;

/// Returns, as JSON text, the probability (before spacing) at these `averages`, for the first queue
/// of each arm. The queue is built as it is for a run. Averages are in the queue's own unit; by
/// default, they range from 0 to 1.1 times the average at which the probability reaches 1.
#[pyfunction]
#[pyo3(signature = (text, file_name, averages=None))]
pub(crate) fn law_curves(
    py: Python<'_>,
    text: &str,
    file_name: &str,
    averages: Option<Vec<f64>>,
) -> PyResult<String> {
    let experiment = parse(py, text, file_name)?;
    let curves: PyResult<Vec<Value>> =
        experiment.arms.iter().map(|plan| curve(plan, averages.as_deref())).collect();
    Ok(Value::from(curves?).to_string())
}

fn curve(plan: &Plan, averages: Option<&[f64]>) -> PyResult<Value> {
    let LinkPlan { queue, .. } = &plan.links[0];
    let built = Registry::<TestPacket>::builtin().build(queue, Stream::new(0, "law"));
    let Discipline::Red(built) = built.map_err(|error| UsageError::new_err(error.message))? else {
        return Err(UsageError::new_err(format!(
            "`{}` has no probability that depends on the average queue alone",
            queue.kind()
        )));
    };
    let control: &RedControl = built.law();
    let law = control.law();
    let averages = averages.map_or_else(|| axis(law.params()), <[f64]>::to_vec);
    Ok(json!({
        "arm": plan.arm,
        "unit": match control.measure { Measure::Packets => "packets", Measure::Bytes => "bytes" },
        "p": averages.iter().map(|avg| law.probability(*avg)).collect::<Vec<_>>(),
        "avg": averages,
    }))
}

/// Returns evenly spaced averages, plus one on each side of every point at which the curve bends or jumps.
fn axis(params: &RedParams) -> Vec<f64> {
    let RedParams { min_th, max_th, gentle, .. } = *params;
    let end = if gentle { 2.0 * max_th } else { max_th };
    let mut averages: Vec<f64> =
        (0..=STEPS).map(|i| MARGIN * end * f64::from(i) / f64::from(STEPS)).collect();
    for edge in [min_th, max_th, end] {
        averages.extend([edge.next_down(), edge]);
    }
    averages.sort_by(f64::total_cmp);
    averages.dedup();
    averages
}
