//! Scenarios: parsed, checked, told with the origin of every value.

use aqmlab_scenario::{Axis, Claim, Experiment, Parameter, Plan, Sweep};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::errors::scenario_error;

/// What a scenario resolves to, as JSON text; the arms of a sweep are those of its first case.
#[pyfunction]
pub(crate) fn plan(py: Python<'_>, text: &str, file_name: &str) -> PyResult<String> {
    let sweep = Sweep::read(text, file_name).map_err(|error| scenario_error(py, &error))?;
    let mut answer = about(&sweep);
    answer["arms"] = Value::Array(arms(&sweep.experiment()));
    Ok(answer.to_string())
}

/// The scenario language as JSON Schema text.
#[pyfunction]
pub(crate) fn schema() -> String {
    format!("{:#}", aqmlab_scenario::schema())
}

pub(crate) fn parse(py: Python<'_>, text: &str, file_name: &str) -> PyResult<Experiment> {
    aqmlab_scenario::parse(text, file_name).map_err(|error| scenario_error(py, &error))
}

/// The folder of each arm: its name in lower case with other signs as hyphens, numbered where two would agree.
pub(crate) fn slugs(experiment: &Experiment) -> Vec<String> {
    let mut slugs: Vec<String> = Vec::new();
    for plan in &experiment.arms {
        let plain = slug(&plan.arm);
        let mut candidate = plain.clone();
        let mut number = 2;
        while slugs.contains(&candidate) {
            candidate = format!("{plain}-{number}");
            number += 1;
        }
        slugs.push(candidate);
    }
    slugs
}

fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        match c {
            'a'..='z' | '0'..='9' | '_' => slug.push(c),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "arm".to_owned() } else { slug.chars().take(60).collect() }
}

/// What holds for all cases; the arms by name.
pub(crate) fn about(sweep: &Sweep<'_>) -> Value {
    let experiment = sweep.experiment();
    json!({
        "title": experiment.title,
        "question": experiment.question,
        "metrics": experiment.metrics,
        "seeds": experiment.seeds,
        "warnings": experiment.warnings,
        "arms": sweep.arms().collect::<Vec<_>>(),
        "axes": sweep.axes().map(axis).collect::<Vec<_>>(),
        "cases": sweep.cases(),
        "runs": sweep.runs(),
        "claims": sweep.claims().iter().map(claim).collect::<Vec<_>>(),
    })
}

/// The arms of an experiment with all that is in them.
pub(crate) fn arms(experiment: &Experiment) -> Vec<Value> {
    slugs(experiment).iter().zip(&experiment.arms).map(|(slug, plan)| arm(slug, plan)).collect()
}

fn axis(axis: &Axis) -> Value {
    json!({ "name": axis.name, "short": axis.short, "keys": axis.keys, "labels": axis.labels })
}

fn claim(claim: &Claim) -> Value {
    let conditions: Map<_, _> =
        claim.conditions.iter().map(|(key, label)| (key.clone(), json!(label))).collect();
    json!({
        "name": claim.name,
        "text": claim.text,
        "expect": claim.expect,
        "where": conditions,
        "strength": claim.strength,
        "source": claim.source,
        "line": claim.line,
        "column": claim.column,
    })
}

fn arm(slug: &str, plan: &Plan) -> Value {
    json!({
        "name": plan.arm,
        "slug": slug,
        "digest": plan.digest(),
        "plan": plan.to_json(),
        "end_ns": plan.stop.at.as_ns(),
        "memory_bytes": aqmlab_scenario::estimate::memory(plan).total().get(),
        "parameters": plan.parameters.iter().map(parameter).collect::<Vec<_>>(),
    })
}

fn parameter(parameter: &Parameter) -> Value {
    json!({
        "path": parameter.path,
        "value": parameter.value,
        "origin": parameter.origin.to_string(),
        "source": parameter.source,
        "help": parameter.help,
        "aliases": parameter.aliases.iter().map(|a| json!({"of": a.of, "name": a.name})).collect::<Vec<_>>(),
    })
}
