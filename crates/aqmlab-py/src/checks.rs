//! The contract kit, called from Python with the interpreter lock released and Ctrl-C handled.

use aqmlab_qdisc::contract::{Checks, Item, presets, words};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use serde_json::{Map, Value, json};

use crate::catalogue::find;
use crate::scripts::{Finding, Lot, Progress, Trial, Tried, run_all};

/// Runs the contract kit on the disciplines `names`, each with every preset and with every
/// permitted word of every parameter whose value is a word from a fixed list. Each of these
/// variants is tested with `seeds` random scripts or, if `seeds` is not given, until `progress`
/// returns `False`. The scripts have consecutive seeds, starting with `first_seed`. Returns the
/// checks and the findings as JSON text.
#[pyfunction]
#[pyo3(signature = (names, first_seed, seeds, workers, progress=None))]
pub(crate) fn aqm_check(
    py: Python<'_>,
    names: Vec<String>,
    first_seed: u64,
    seeds: Option<u64>,
    workers: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let mut trials = Vec::new();
    for name in &names {
        let info = find(name)?;
        let variants = presets(info).into_iter().chain(words(info));
        trials.extend(variants.map(|variant| Trial { name: info.name, variant }));
    }
    let lot = Lot { trials: &trials, first_seed, seeds };
    let mut interrupted = None;
    let tried = py.detach(|| {
        run_all(&lot, workers, |now| {
            if interrupted.is_some() {
                return false;
            }
            let told = Python::attach(|py| tell(py, progress.as_ref(), now));
            told.unwrap_or_else(|error| {
                interrupted = Some(error);
                false
            })
        })
    });
    match interrupted {
        Some(error) => Err(error),
        None => Ok(answer(&names, &trials, &tried).to_string()),
    }
}

/// Lets Python handle its signals, reports the progress of the scripts, and returns whether to
/// continue.
fn tell(py: Python<'_>, callback: Option<&Py<PyAny>>, now: &Progress) -> PyResult<bool> {
    py.check_signals()?;
    let Some(callback) = callback else { return Ok(true) };
    let dict = PyDict::new(py);
    dict.set_item("scripts_done", now.done)?;
    dict.set_item("scripts_total", now.total)?;
    dict.set_item("findings", now.findings)?;
    Ok(!callback.call1(py, (dict,))?.bind(py).is(PyBool::new(py, false)))
}

fn answer(names: &[String], trials: &[Trial], tried: &[Tried]) -> Value {
    let items = Item::ALL.iter().map(|item| json!({"name": item.name(), "counts": item.counts()}));
    let of = |name: &String| {
        let its: Vec<_> = trials.iter().zip(tried).filter(|(trial, _)| trial.name == name).collect();
        discipline(name, &its)
    };
    json!({
        "items": items.collect::<Vec<_>>(),
        "disciplines": names.iter().map(of).collect::<Vec<_>>(),
    })
}

fn discipline(name: &str, its: &[(&Trial, &Tried)]) -> Value {
    let checks = its.iter().fold(Checks::default(), |sum, (_, tried)| sum.plus(tried.checks));
    let checks: Map<_, _> =
        Item::ALL.iter().map(|item| (item.name().to_owned(), json!(checks.of(*item)))).collect();
    let findings = its.iter().filter_map(|(trial, tried)| tried.finding.as_ref().map(|f| finding(trial, f)));
    json!({
        "name": name,
        "variants": its.iter().map(|(trial, _)| trial.variant.label.as_str()).collect::<Vec<_>>(),
        "scripts": its.iter().map(|(_, tried)| tried.scripts).sum::<u64>(),
        "checks": checks,
        "findings": findings.collect::<Vec<_>>(),
    })
}

fn finding(trial: &Trial, (seed, finding): &(u64, Finding)) -> Value {
    match finding {
        Finding::Breach(failure) => json!({
            "variant": trial.variant.label,
            "seed": seed,
            "item": failure.violation.item.name(),
            "what": failure.violation.what,
            "operation": failure.violation.operation,
            "script": failure.script.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }),
        Finding::Panic(text) => json!({
            "variant": trial.variant.label,
            "seed": seed,
            "item": "panic",
            "what": text,
            "operation": null,
            "script": [],
        }),
    }
}
