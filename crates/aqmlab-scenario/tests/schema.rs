//! The JSON Schema accepts everything that the parser accepts, and refuses every error that a schema can
//! detect.

use std::sync::LazyLock;

use aqmlab_qdisc::registry::catalogue;
use aqmlab_scenario::schema;
use serde_json::{Map, Value as Json, json};

/// A queue, which may be inside another.
static QUEUE: LazyLock<Json> = LazyLock::new(|| schema(catalogue())["$defs"]["queue"].clone());

/// Returns whether a value fits a schema, according to the part of JSON Schema 2020-12 that our
/// schema uses.
fn fits(schema: &Json, value: &Json) -> bool {
    // The only `$ref` in our schema refers to the queue.
    if let Some(to) = schema.get("$ref") {
        assert_eq!(to, "#/$defs/queue");
        return fits(&QUEUE, value);
    }
    let Some(rules) = schema.as_object() else { return schema == &json!(true) };
    rules.iter().all(|(rule, by)| rule_holds(rule, by, rules, value))
}

fn rule_holds(rule: &str, by: &Json, rules: &Map<String, Json>, value: &Json) -> bool {
    let list = || by.as_array().expect("a list").iter();
    let (object, array) = (value.as_object(), value.as_array());
    match rule {
        "type" => match by.as_str().expect("one type") {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            other => panic!("type {other}"),
        },
        "const" => value == by,
        "enum" => list().any(|v| v == value),
        "anyOf" => list().any(|s| fits(s, value)),
        "oneOf" => list().filter(|s| fits(s, value)).count() == 1,
        "required" => object.is_none_or(|o| list().all(|k| o.contains_key(k.as_str().expect("a key")))),
        "properties" => object.is_none_or(|o| o.iter().all(|(k, v)| by.get(k).is_none_or(|s| fits(s, v)))),
        "additionalProperties" => {
            object.is_none_or(|o| o.iter().all(|(k, v)| known(rules, k) || fits(by, v)))
        }
        // The only key pattern in our schema is the one for hops.
        "patternProperties" => object.is_none_or(|o| {
            o.iter().filter(|(k, _)| is_hop(k)).all(|(_, v)| fits(&by["^hop[1-9][0-9]*$"], v))
        }),
        "items" => array.is_none_or(|a| a.iter().all(|v| fits(by, v))),
        "minItems" => array.is_none_or(|a| a.len() as u64 >= by.as_u64().expect("a count")),
        "maxItems" => array.is_none_or(|a| a.len() as u64 <= by.as_u64().expect("a count")),
        "minimum" => value.as_f64().is_none_or(|x| x >= by.as_f64().expect("a number")),
        "maximum" => value.as_f64().is_none_or(|x| x <= by.as_f64().expect("a number")),
        "exclusiveMinimum" => value.as_f64().is_none_or(|x| x > by.as_f64().expect("a number")),
        "minLength" | "maxLength" | "pattern" | "uniqueItems" => true,
        "$schema" | "$defs" | "title" | "description" | "default" => true,
        other => panic!("the schema uses `{other}`, which this test does not know"),
    }
}

fn known(rules: &Map<String, Json>, key: &str) -> bool {
    rules.get("properties").is_some_and(|p| p.get(key).is_some())
        || (rules.contains_key("patternProperties") && is_hop(key))
}

fn is_hop(key: &str) -> bool {
    key.strip_prefix("hop").is_some_and(|n| !n.starts_with('0') && n.parse::<u64>().is_ok())
}

fn json_of(toml: &str) -> Json {
    fn value(v: &toml::de::DeValue<'_>) -> Json {
        use toml::de::DeValue;
        match v {
            DeValue::String(s) => json!(s),
            DeValue::Integer(n) => n.as_str().parse::<i64>().map_or(Json::Null, |n| json!(n)),
            DeValue::Float(x) => json!(x.as_str().parse::<f64>().unwrap_or(f64::NAN)),
            DeValue::Boolean(b) => json!(b),
            DeValue::Datetime(_) => Json::Null,
            DeValue::Array(items) => items.iter().map(|i| value(i.get_ref())).collect(),
            DeValue::Table(t) => table(t),
        }
    }
    fn table(t: &toml::de::DeTable<'_>) -> Json {
        Json::Object(t.iter().map(|(k, v)| (k.get_ref().to_string(), value(v.get_ref()))).collect())
    }
    table(toml::de::DeTable::parse(toml).expect("it is TOML").get_ref())
}

fn text(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    std::fs::read_to_string(format!("{root}{path}")).expect("the scenario is there")
}

#[test]
fn every_ready_made_scenario_fits() {
    let schema = schema(catalogue());
    for name in [
        "classes",
        "demo",
        "demo_live",
        "graph",
        "laws",
        "mm1",
        "one_flow",
        "parking_lot",
        "short_flows",
        "sweep",
    ] {
        assert!(fits(&schema, &json_of(&text(&format!("scenarios/{name}.toml")))), "{name}");
    }
}

#[test]
fn what_a_schema_can_know_to_be_wrong_does_not_fit() {
    let schema = schema(catalogue());
    let names = [
        "unknown_top_key",
        "unknown_queue_key",
        "unknown_tcp_key",
        "unknown_discipline",
        "unknown_traffic_kind",
        "unknown_topology_kind",
        "unknown_distribution",
        "key_of_another_kind",
        "missing_topology",
        "missing_traffic",
        "missing_rate",
        "missing_kind",
        "missing_cbr_rate",
        "wrong_type_flag",
        "wrong_type_table",
        "wrong_type_count",
        "no_unit",
        "loss_above_one",
        "count_zero",
        "runs_zero",
        "seed_negative",
        "uniform_of_three",
        "empty_list",
        "faults_repeat",
        "arm_without_name",
        "queue_without_kind",
        "unknown_profile",
        "sweep_empty_list",
        "sweep_not_a_list",
        "sweep_case_without_name",
        "claim_without_expect",
        "claim_unknown_key",
        "claim_wrong_strength",
    ];
    for name in names {
        assert!(!fits(&schema, &json_of(&text(&format!("tests/bad_scenarios/{name}.toml")))), "{name}");
    }
}

#[test]
fn it_is_json_schema_2020_12_with_help_for_every_key() {
    let schema = schema(catalogue());
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for (key, rule) in schema["properties"].as_object().expect("keys") {
        assert!(rule["description"].is_string(), "{key}");
    }
    if let Some(path) = std::env::var_os("AQMLAB_SCHEMA_OUT") {
        std::fs::write(path, serde_json::to_string_pretty(&schema).expect("JSON"))
            .expect("it can be written");
    }
}
