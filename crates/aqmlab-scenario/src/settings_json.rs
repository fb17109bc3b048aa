//! Parameters as plain data, each under its name with the unit of its value, such as
//! `min_th_packets`; and their schema, made from the tables of parameters.

use std::borrow::Cow;

use aqmlab_params::{Default, Kind, Param, Setting, Settings, Value};
use aqmlab_qdisc::registry::{Catalogue, Info};
use aqmlab_qdisc::{Effective, LinkContext};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Span};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use crate::kernel_queue::TC_INFO;

/// A discipline with its effective parameters.
#[derive(Serialize)]
pub(crate) struct QueueForm {
    /// The name of the discipline in the registry.
    kind: &'static str,
    /// The parameters of the discipline, none of them automatic.
    settings: Map<String, Json>,
    /// The context against which the parameters were resolved.
    context: Context,
}

/// The context, other than the queue's link, against which a discipline's parameters are resolved.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Context {
    /// The base round-trip time, if it is known.
    #[serde(rename = "rtt_ns")]
    rtt: Option<Span>,
    /// The mean size of packets.
    #[serde(rename = "mean_packet_bytes")]
    mean_packet: Bytes,
}

/// Writes a queue as a [`QueueForm`].
pub(crate) fn queue<S: Serializer>(queue: &Effective, serializer: S) -> Result<S::Ok, S::Error> {
    let LinkContext { rtt, mean_packet, .. } = *queue.link();
    let context = Context { rtt, mean_packet };
    QueueForm { kind: queue.kind(), settings: settings_json(queue), context }.serialize(serializer)
}

fn settings_json(settings: &Settings) -> Map<String, Json> {
    to_map(settings.iter())
}

/// Returns parameters, each under its name with the unit of its value.
pub(crate) fn to_map<'a>(settings: impl Iterator<Item = &'a Setting>) -> Map<String, Json> {
    settings
        .map(|setting| {
            let (unit, value) = value_json(&setting.value);
            (with_unit(setting.name, unit), value)
        })
        .collect()
}

fn with_unit(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name}_{unit}") }
}

/// Returns the unit of a value, or an empty text if it has none, and the value in that unit. "No
/// limit" and "nothing" are `null`.
fn value_json(value: &Value) -> (&'static str, Json) {
    match value {
        Value::Flag(v) => ("", json!(v)),
        Value::Integer(v) => ("", json!(v)),
        Value::Port { number, .. } => ("", json!(number)),
        Value::Number(v) => ("", json!(v)),
        Value::Unlimited | Value::Nothing => ("", Json::Null),
        Value::Span(v) | Value::Size(Size::Time(v)) => ("ns", json!(v.as_ns())),
        Value::Rate(v) => ("bps", json!(v.as_bps())),
        Value::Size(Size::Packets(v)) => ("packets", json!(v.get())),
        Value::Size(Size::Bytes(v)) => ("bytes", json!(v.get())),
        Value::Size(Size::Bdp(v)) => ("bdp", json!(v)),
        Value::List(items) => list_json(items),
        Value::Table(settings) => ("", settings_json(settings).into()),
        Value::Discipline { kind, settings } => {
            ("", json!({ "kind": kind, "settings": settings_json(settings) }))
        }
        word => ("", json!(word.to_string())),
    }
}

/// Returns a list, with its unit if all values have the same one. Otherwise, each item of the list
/// is an object that holds the value under the name of its unit.
fn list_json(items: &[Value]) -> (&'static str, Json) {
    let items: Vec<_> = items.iter().map(value_json).collect();
    let unit = items.first().map_or("", |(unit, _)| unit);
    if items.iter().all(|(other, _)| *other == unit) {
        return (unit, items.into_iter().map(|(_, value)| value).collect());
    }
    ("", items.into_iter().map(|(unit, value)| json!({ unit: value })).collect())
}

/// Returns the JSON Schema (2020-12) of `T`, which contains plans whose queues are those of `catalogue`.
pub fn schema_of<T: JsonSchema>(catalogue: &Catalogue) -> Json {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    // Only the queue of a link can be a kernel's, and only the queue of a link has a context.
    schema["$defs"][QUEUE] = disciplines(catalogue.iter().chain([&TC_INFO]), Some(reference(CONTEXT)));
    schema["$defs"][INNER_QUEUE] = disciplines(catalogue.iter(), None);
    schema
}

const QUEUE: &str = "Queue";
const CONTEXT: &str = "Context";
/// A discipline that is inside another one and has no link of its own.
const INNER_QUEUE: &str = "InnerQueue";

fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// [`schema_of`] defines this type, because types know no catalogue.
impl JsonSchema for QueueForm {
    fn schema_name() -> Cow<'static, str> {
        QUEUE.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Context>()
    }
}

fn disciplines<'a>(infos: impl Iterator<Item = &'a Info>, context: Option<Json>) -> Json {
    let one = |info: &Info| {
        let mut properties = Map::new();
        properties.insert("kind".into(), json!({ "const": info.name }));
        properties.insert("settings".into(), table(info.params).to_value());
        properties.extend(context.clone().map(|context| ("context".to_owned(), context)));
        let required: Vec<_> = properties.keys().cloned().collect();
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    };
    json!({ "oneOf": infos.map(one).collect::<Vec<_>>() })
}

/// Returns the schema of a table of parameters. The unit of a size is known only from its value, so
/// no property is required.
pub(crate) fn table(params: &'static [Param]) -> Schema {
    let mut properties = Map::new();
    for param in params {
        let description = format!("{} ({}).", param.help, param.source);
        for (unit, mut schema) in forms(&param.kind) {
            schema["description"] = json!(description);
            properties.insert(with_unit(param.name, unit), schema);
        }
        // A parameter that may have no value, or an automatic one, can be `null`, under its name
        // without a unit.
        if matches!(param.default, Default::Nothing(_) | Default::Auto(_)) {
            let nothing = json!({ "type": "null", "description": description });
            let of_unit = properties.remove(param.name);
            let either = of_unit.map_or(nothing.clone(), |some| json!({ "anyOf": [some, nothing] }));
            properties.insert(param.name.into(), either);
        }
    }
    json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// Returns the possible units of a value of this kind, each with the schema of its number.
fn forms(kind: &Kind) -> Vec<(&'static str, Json)> {
    let whole = |unit| vec![(unit, json!({ "type": "integer", "minimum": 0 }))];
    let text = || vec![("", json!({ "type": "string" }))];
    match kind {
        Kind::Flag => vec![("", json!({ "type": "boolean" }))],
        Kind::Integer { .. } | Kind::Port => whole(""),
        Kind::Limit { .. } => vec![("", json!({ "type": ["integer", "null"], "minimum": 0 }))],
        Kind::Number { .. } | Kind::NumberAbove { .. } => vec![("", json!({ "type": "number" }))],
        Kind::Span { .. } => whole("ns"),
        Kind::Rate { .. } => whole("bps"),
        Kind::Size { .. } => ["packets", "bytes"].into_iter().flat_map(whole).collect(),
        Kind::Bytes { .. } => whole("bytes"),
        Kind::Choice(words) => vec![("", json!({ "enum": words }))],
        Kind::Open(_) | Kind::Text | Kind::TrafficClass => text(),
        Kind::Dscp => vec![("", json!({ "type": ["integer", "string"] }))],
        Kind::List(of) => {
            let forms = forms(of);
            let mixed: Vec<_> = forms.iter().map(|(unit, value)| named(unit, value)).collect();
            let mut lists: Vec<_> = forms
                .into_iter()
                .map(|(unit, item)| (unit, json!({ "type": "array", "items": item })))
                .collect();
            if mixed.len() > 1 {
                lists.push(("", json!({ "type": "array", "items": { "anyOf": mixed } })));
            }
            lists
        }
        Kind::Table(params) => vec![("", table(params).to_value())],
        Kind::Discipline => vec![("", reference(INNER_QUEUE))],
        _ => vec![("", json!({}))],
    }
}

/// Returns the schema of an object that holds a value under the name of its unit.
fn named(unit: &str, value: &Json) -> Json {
    json!({ "type": "object", "properties": { unit: value }, "required": [unit], "additionalProperties": false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqmlab_units::{Bytes, Packets, Rate};

    #[test]
    fn the_unit_of_a_value_is_in_its_name() {
        let packets = |n| Value::Size(Size::Packets(Packets::new(n)));
        let bytes = Value::Size(Size::Bytes(Bytes::new(1500)));
        assert_eq!(value_json(&packets(36)), ("packets", json!(36)));
        assert_eq!(value_json(&Value::Rate(Rate::mbit(10))), ("bps", json!(10_000_000)));
        assert_eq!(value_json(&Value::Unlimited), ("", Json::Null));
        assert_eq!(value_json(&Value::List(vec![packets(5), packets(9)])), ("packets", json!([5, 9])));
        let mixed = Value::List(vec![packets(5), bytes]);
        assert_eq!(value_json(&mixed), ("", json!([{ "packets": 5 }, { "bytes": 1500 }])));
    }
}
