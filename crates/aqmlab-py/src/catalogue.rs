//! The disciplines and their parameter tables.

use aqmlab_params::{Default, Kind, Param};
use aqmlab_qdisc::registry::{self, Info};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::UsageError;

/// The disciplines: name, title, summary, maturity, as JSON text.
#[pyfunction]
pub(crate) fn aqm_list() -> String {
    registry::catalogue().iter().map(heading).collect::<Value>().to_string()
}

/// One discipline with its parameters and presets, as JSON text.
#[pyfunction]
pub(crate) fn aqm_show(name: &str) -> PyResult<String> {
    let Some(info) = registry::info(name) else {
        let known: Vec<_> = registry::catalogue().iter().map(|info| format!("`{}`", info.name)).collect();
        let message = format!("there is no discipline `{name}`; there are {}", known.join(", "));
        return Err(UsageError::new_err(message));
    };
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

fn heading(info: &Info) -> Value {
    json!({
        "name": info.name,
        "title": info.title,
        "summary": info.summary,
        "maturity": info.maturity.name(),
        "decides": info.decides.name(),
    })
}

fn param(param: &Param) -> Value {
    json!({
        "name": param.name,
        "kind": kind(&param.kind),
        "default": default(&param.default),
        "source": param.source,
        "help": param.help,
        "aliases": param.aliases.iter().map(|a| json!({"of": a.of, "name": a.name})).collect::<Vec<_>>(),
    })
}

/// What values it takes, in words.
fn kind(kind: &Kind) -> String {
    match kind {
        Kind::Flag => "true or false".into(),
        Kind::Integer { min, max } => format!("whole number, {}", range(min, max, *max == u64::MAX)),
        Kind::Number { min, max } => format!("number, {}", range(min, max, max.is_infinite())),
        Kind::NumberAbove { above, max } if max.is_infinite() => format!("number, above {above}"),
        Kind::NumberAbove { above, max } => format!("number, above {above} to {max}"),
        Kind::Span { min, max } => format!("time, {min} to {max}"),
        Kind::Rate { min, max } => format!("rate, {min} to {max}"),
        Kind::Size { min } => format!("packets, bytes or bdp, at least {}", min.get()),
        Kind::Bytes { min, max } => format!("bytes, {}", range(min, max, *max == u64::MAX)),
        Kind::Choice(words) => words.join(" | "),
        _ => "text".into(),
    }
}

fn range<T: std::fmt::Display>(min: T, max: T, unbounded: bool) -> String {
    if unbounded { format!("at least {min}") } else { format!("{min} to {max}") }
}

fn default(default: &Default) -> String {
    match default {
        Default::Required => "required".into(),
        Default::Auto(rule) => format!("auto: {rule}"),
        other => other.value().map_or_else(String::new, |value| value.to_string()),
    }
}
