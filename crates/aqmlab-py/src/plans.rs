//! Scenarios: parsed, checked, and reported with the origin of every value.

use aqmlab_scenario::{Axis, Claim, Experiment, Limits, Parameter, Parts, Plan, Sweep, schema_of};
use aqmlab_storage::Folder;
use aqmlab_units::text::{parse_bytes, parse_packets, parse_rate, parse_span};
use aqmlab_units::{Bytes, Packets, Rate, Span};
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::catalogue::known;
use crate::errors::{UsageError, scenario_error};

/// Returns the resolved form of a scenario as JSON text; the arms of a sweep are those of its first
/// case.
#[pyfunction]
pub(crate) fn plan(py: Python<'_>, text: &str, file_name: &str) -> PyResult<String> {
    let sweep = sweep(py, text, file_name)?;
    Ok(json_text(&about(&sweep, explained(&sweep.experiment()))))
}

/// Returns the JSON Schema text of `scenario`, `plan` or `manifest`.
#[pyfunction]
pub(crate) fn schema(of: &str) -> PyResult<String> {
    let schema = match of {
        "scenario" => aqmlab_scenario::schema(known()),
        "plan" => schema_of::<Plan>(known()),
        "manifest" => aqmlab_recording::manifest_schema(known()),
        _ => {
            return Err(UsageError::new_err(format!(
                "there is no schema for `{of}`; there are schemas for `scenario`, `plan` and `manifest`"
            )));
        }
    };
    Ok(format!("{schema:#}"))
}

/// Converts a quantity in the notation of scenarios into a whole number of units: `quantity("10Mbit", "bps")`
/// is 10,000,000. The units are `ns`, `bps`, `bytes` and `packets`.
#[pyfunction]
pub(crate) fn quantity(text: &str, unit: &str) -> PyResult<u64> {
    let parsed = match unit {
        "ns" => parse_span(text).map(Span::as_ns),
        "bps" => parse_rate(text).map(Rate::as_bps),
        "bytes" => parse_bytes(text).map(Bytes::get),
        "packets" => parse_packets(text).map(Packets::get),
        _ => return Err(no_unit(unit)),
    };
    parsed.map_err(|error| UsageError::new_err(error.to_string()))
}

/// Writes a whole number of units in the notation of scenarios: `quantity_text(10_000_000, "bps")` is
/// `10Mbit`.
#[pyfunction]
pub(crate) fn quantity_text(value: u64, unit: &str) -> PyResult<String> {
    match unit {
        "ns" => Ok(Span::ns(value).to_string()),
        "bps" => Ok(Rate::bps(value).to_string()),
        "bytes" => Ok(Bytes::new(value).to_string()),
        "packets" => Ok(Packets::new(value).to_string()),
        _ => Err(no_unit(unit)),
    }
}

fn no_unit(unit: &str) -> PyErr {
    UsageError::new_err(format!(
        "there is no unit `{unit}`; the units are `ns`, `bps`, `bytes` and `packets`"
    ))
}

pub(crate) fn parse(py: Python<'_>, text: &str, file_name: &str) -> PyResult<Experiment> {
    Ok(sweep(py, text, file_name)?.experiment())
}

/// Reads a scenario. The files that it names are in its folder.
pub(crate) fn sweep(py: Python<'_>, text: &str, file_name: &str) -> PyResult<Sweep<'static>> {
    let files = Box::new(Folder::of(file_name));
    Sweep::read_within(text, file_name, Limits::default(), files).map_err(|error| scenario_error(py, &error))
}

/// Returns the name of each arm's folder: the arm's name in lower case, with hyphens in place of
/// all characters other than letters, digits and underscores. Folder names that would otherwise be
/// equal get a number.
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

/// Returns the result as JSON text.
pub(crate) fn json_text(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect("JSON can represent all keys and values of a result")
}

/// A scenario whose arms are given in the form `A`.
#[derive(Serialize)]
pub(crate) struct About<A> {
    #[serde(flatten)]
    common: Value,
    arms: Vec<A>,
}

/// Returns the facts common to all cases.
pub(crate) fn about<A>(sweep: &Sweep<'_>, arms: Vec<A>) -> About<A> {
    let experiment = sweep.experiment();
    let common = json!({
        "title": experiment.title,
        "question": experiment.question,
        "metrics": experiment.metrics,
        "seeds": experiment.seeds,
        "warnings": experiment.warnings,
        "axes": sweep.axes().map(axis).collect::<Vec<_>>(),
        "cases": sweep.cases(),
        "excluded": sweep.combinations() - sweep.cases(),
        "exclude": sweep.exclusions().collect::<Vec<_>>(),
        "runs": sweep.runs(),
        "claims": sweep.claims().iter().map(claim).collect::<Vec<_>>(),
    });
    About { common, arms }
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

/// An arm of a case. Arms are serialised without an intermediate tree because there may be many thousands.
#[derive(Serialize)]
pub(crate) struct Arm<'p> {
    name: &'p str,
    slug: String,
    digest: String,
    parts: Parts,
    plan: &'p Plan,
    end_ns: u64,
    memory_bytes: u64,
}

/// An arm with the origin of every value.
#[derive(Serialize)]
struct Explained<'p> {
    #[serde(flatten)]
    arm: Arm<'p>,
    parameters: Vec<Entry<'p>>,
}

/// An effective parameter.
#[derive(Serialize)]
struct Entry<'p> {
    path: &'p str,
    value: &'p str,
    origin: String,
    source: &'p str,
    help: &'p str,
    aliases: Vec<OtherName<'p>>,
}

#[derive(Serialize)]
struct OtherName<'p> {
    of: &'p str,
    name: &'p str,
}

/// Returns the arms of an experiment.
pub(crate) fn arms(experiment: &Experiment) -> Vec<Arm<'_>> {
    slugs(experiment).into_iter().zip(&experiment.arms).map(|(slug, plan)| arm(slug, plan)).collect()
}

fn arm(slug: String, plan: &Plan) -> Arm<'_> {
    Arm {
        name: &plan.arm,
        slug,
        digest: plan.digest(),
        parts: aqmlab_network::parts(plan),
        plan,
        end_ns: plan.stop.at.as_ns(),
        memory_bytes: aqmlab_scenario::estimate::memory(plan).total().get(),
    }
}

fn explained(experiment: &Experiment) -> Vec<Explained<'_>> {
    let parameters = experiment.arms.iter().map(|plan| plan.parameters.iter().map(entry).collect());
    arms(experiment)
        .into_iter()
        .zip(parameters)
        .map(|(arm, parameters)| Explained { arm, parameters })
        .collect()
}

fn entry(parameter: &Parameter) -> Entry<'_> {
    Entry {
        path: &parameter.path,
        value: &parameter.value,
        origin: parameter.origin.to_string(),
        source: parameter.source,
        help: parameter.help,
        aliases: parameter.aliases.iter().map(|a| OtherName { of: a.of, name: a.name }).collect(),
    }
}
