//! The disciplines and their parameter tables.

use aqmlab_params::{Default, Kind, Param};
use aqmlab_qdisc::registry::{self, Catalogue, Info};
use aqmlab_scenario::discipline_elsewhere;
use aqmlab_scenario::suggest::by_nearness;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::UsageError;

/// Returns the disciplines that Python can name: the built-in ones.
pub(crate) fn known() -> &'static Catalogue {
    registry::catalogue()
}

/// Returns the disciplines as JSON text: name, title, summary, maturity.
#[pyfunction]
pub(crate) fn aqm_list() -> String {
    known().iter().map(heading).collect::<Value>().to_string()
}

/// Returns one discipline with its parameters and presets, as JSON text.
#[pyfunction]
pub(crate) fn aqm_show(name: &str) -> PyResult<String> {
    let info = find(name)?;
    let mut answer = heading(info);
    answer["params"] = info.params.iter().map(param).collect();
    answer["presets"] = info
        .presets
        .iter()
        .map(|preset| {
            let values = preset.values.iter().map(|(name, value)| ((*name).to_owned(), json!(value.to_string())));
            json!({"name": preset.name, "title": preset.title, "values": values.collect::<serde_json::Map<_, _>>()})
        })
        .collect();
    Ok(answer.to_string())
}

/// Returns the discipline called `name`.
pub(crate) fn find(name: &str) -> PyResult<&'static Info> {
    known().find(name).ok_or_else(|| {
        if let Some(message) = discipline_elsewhere(name, true) {
            return UsageError::new_err(message);
        }
        let names = by_nearness(name, known().iter().map(|info| info.name));
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let message = format!("there is no discipline `{name}`; the disciplines are {}", names.join(", "));
        UsageError::new_err(message)
    })
}

fn heading(info: &Info) -> Value {
    json!({
        "name": info.name,
        "title": info.title,
        "summary": info.summary,
        "version": info.version,
        "maturity": info.maturity.name(),
        "decides": info.decides.name(),
    })
}

fn param(param: &Param) -> Value {
    json!({
        "name": param.name,
        "kind": word(&param.kind),
        "unit": unit(&param.kind),
        "values": values(&param.kind),
        "default": default(&param.default),
        "source": param.source,
        "help": param.help,
        "aliases": param.aliases.iter().map(|a| json!({"of": a.of, "name": a.name, "meaning": a.meaning()})).collect::<Vec<_>>(),
    })
}

/// Returns the word by which the catalogue names a kind of value.
fn word(kind: &Kind) -> &'static str {
    match kind {
        Kind::Flag => "flag",
        Kind::Integer { .. } | Kind::Limit { .. } | Kind::Port => "whole number",
        Kind::Number { .. } | Kind::NumberAbove { .. } => "number",
        Kind::Span { .. } => "time",
        Kind::Rate { .. } => "rate",
        Kind::Size { .. } | Kind::Bytes { .. } => "size",
        Kind::Choice(_) | Kind::Open(_) => "choice",
        Kind::Dscp => "code point",
        Kind::List(_) => "list",
        Kind::Table(_) => "table",
        Kind::Discipline => "discipline",
        _ => "text",
    }
}

/// Returns the units in which a value can be written. A plain number has no unit; its help text says what it
/// counts.
fn unit(kind: &Kind) -> &'static str {
    match kind {
        Kind::Span { .. } => "ns, us, ms, s",
        Kind::Rate { .. } => "bit, kbit, Mbit, Gbit",
        Kind::Size { .. } => "p, B, kB, KiB, bdp",
        Kind::Bytes { .. } => "B, kB, KiB",
        _ => "",
    }
}

/// Describes the values that a parameter accepts.
fn values(kind: &Kind) -> String {
    match kind {
        Kind::Flag => "true | false".into(),
        Kind::Integer { min, max } => range(min, max, *max == u64::MAX),
        Kind::Limit { min, max } => format!("{min} to {max} | {}", aqmlab_params::Value::UNLIMITED),
        Kind::Number { min, max } => range(min, max, max.is_infinite()),
        Kind::NumberAbove { above, max } if max.is_infinite() => format!("above {above}"),
        Kind::NumberAbove { above, max } => format!("above {above} to {max}"),
        Kind::Span { min, max } => format!("{min} to {max}"),
        Kind::Rate { min, max } => format!("{min} to {max}"),
        Kind::Size { min } => format!("at least {}", min.get()),
        Kind::Bytes { min, max } => range(min, max, *max == u64::MAX),
        Kind::Choice(words) => words.join(" | "),
        Kind::Dscp => "0 to 63, or a name such as EF".into(),
        Kind::Port => "0 to 65535".into(),
        Kind::List(of) => values(of),
        Kind::Table(params) => {
            format!("{{ {} }}", params.iter().map(|p| p.name).collect::<Vec<_>>().join(", "))
        }
        Kind::Discipline => "any".into(),
        _ => "any".into(),
    }
}

fn range<T: std::fmt::Display>(min: T, max: T, unbounded: bool) -> String {
    if unbounded { format!("at least {min}") } else { format!("{min} to {max}") }
}

fn default(default: &Default) -> String {
    match default {
        Default::Required => "required".into(),
        Default::Auto(rule) => format!("auto: {rule}"),
        Default::Nothing(what) => (*what).into(),
        other => other.value().map_or_else(String::new, |value| value.to_string()),
    }
}
