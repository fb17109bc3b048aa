//! Disciplines and parameters as JSON, for help and for forms: what `aqmlab aqm show --json` prints.

use aqmlab_params::{Default, Kind, Param};
use aqmlab_qdisc::registry::Info;
use serde_json::{Value as Json, json};

/// Returns one discipline with its parameters and presets.
pub fn discipline(info: &Info) -> Json {
    let mut answer = heading(info);
    answer["params"] = info.params.iter().map(parameter).collect();
    answer["presets"] = info
        .presets
        .iter()
        .map(|preset| {
            let values = preset.values.iter().map(|(name, value)| ((*name).to_owned(), json!(value.to_string())));
            json!({"name": preset.name, "title": preset.title, "values": values.collect::<serde_json::Map<_, _>>()})
        })
        .collect();
    answer
}

/// Returns what a list of disciplines says of one: name, title, summary, version, maturity.
pub fn heading(info: &Info) -> Json {
    json!({
        "name": info.name,
        "title": info.title,
        "summary": info.summary,
        "version": info.version,
        "maturity": info.maturity.name(),
        "decides": info.decides.name(),
    })
}

/// Returns one parameter: its name, the kind of its values, their range, its default, source and meaning, and the names
/// that other tools give it.
pub fn parameter(param: &Param) -> Json {
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
        Kind::Choice(words) | Kind::Open(words) => words.join(" | "),
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
