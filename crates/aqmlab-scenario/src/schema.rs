//! The language as JSON Schema, for editors and external checks.

use aqmlab_params::{Alias, Default, Kind, Param, Reading, Value};
use aqmlab_qdisc::Dscp;
use aqmlab_qdisc::registry::Catalogue;
use serde_json::{Map, Value as Json, json};

use crate::field::{Absent, Drawn, Field, Form, Variant};
use crate::kernel_queue::TC_INFO;
use crate::kind;
use crate::language::{ARM, AT_ENDS, CASE, FILE, HOP, ZIP};

/// Returns the JSON Schema (2020-12) of a scenario file whose queues are those of `catalogue`, made from the
/// same tables as the parser. It covers keys, types and keywords. Only [`crate::parse`] checks conditions on
/// several values: for example, that `min_th` is not above `max_th`, or that there is a path between two
/// nodes.
pub fn schema(catalogue: &Catalogue) -> Json {
    let mut root = object(FILE.iter(), None);
    let own = root.as_object_mut().expect("an object schema is an object");
    own.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    own.insert("title".into(), json!("aqmlab scenario"));
    // The schema of a queue has a name so that it can refer to itself: a discipline may contain
    // others.
    own.insert("$defs".into(), json!({ "queue": queue(catalogue) }));
    root
}

/// Returns the schema of a table with these keys; `kind` is the constant value of its key `kind`.
fn object(fields: impl Iterator<Item = &'static Field>, kind: Option<&str>) -> Json {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if let Some(kind) = kind {
        properties.insert("kind".into(), json!({ "const": kind }));
        required.push("kind");
    }
    for field in fields {
        for alias in field.aliases {
            properties.insert(alias.name.into(), field_schema(field));
        }
        properties.insert(field.name.into(), field_schema(field));
        if matches!(field.absent, Absent::Required) {
            required.push(field.name);
        }
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn field_schema(field: &Field) -> Json {
    let mut schema = form_schema(&field.form);
    let own = schema.as_object_mut().expect("every schema here is an object");
    let help = match field.absent {
        Absent::Rule(rule) => format!("{}. Default: {rule}.", field.help),
        _ => format!("{}.", field.help),
    };
    own.insert("description".into(), json!(help));
    if let Absent::Is(default) = field.absent {
        insert_default(own, &default);
    }
    schema
}

fn insert_default(schema: &mut Map<String, Json>, default: &Default) {
    let value = match default {
        Default::Required | Default::Auto(_) | Default::Nothing(_) => return,
        Default::Flag(v) => json!(v),
        Default::Integer(v) => json!(v),
        Default::Number(v) => json!(v),
        other => json!(other.value().expect("only a required default has no value").to_string()),
    };
    schema.insert("default".into(), value);
}

fn form_schema(form: &Form) -> Json {
    match form {
        Form::One(kind) => kind_schema(kind),
        Form::OrWord(kind, word) => json!({ "anyOf": [kind_schema(kind), { "const": word }] }),
        Form::OverTime(kind, variants) => {
            json!({ "anyOf": [kind_schema(kind), form_schema(&Form::Steps(*kind)), kinds(variants)] })
        }
        Form::Steps(_) => json!({ "type": "array", "minItems": 1,
            "items": { "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 2 } }),
        Form::Levels(kind) => json!({ "type": "array", "minItems": 1, "items": kind_schema(kind) }),
        Form::Name => json!({ "type": "string", "minLength": 1, "maxLength": 64 }),
        Form::Drawn(drawn) => distribution(drawn),
        Form::DrawnOverTime(drawn) => {
            let mut schema = distribution(drawn);
            let step = json!({ "type": "array", "minItems": 2, "maxItems": 2,
                "items": { "type": ["string", "number"] } });
            let ends = json!({ "enum": AT_ENDS });
            let file = json!({ "type": "object", "properties": { "file": { "type": "string" }, "at_end": ends },
                "required": ["file"], "additionalProperties": false });
            let forms = schema["anyOf"].as_array_mut().expect("forms are a list");
            forms.extend([json!({ "type": "array", "minItems": 1, "items": step }), file]);
            schema
        }
        Form::StageDelay(drawn) => {
            let mut schema = form_schema(&Form::DrawnOverTime(drawn));
            let ends = json!({ "enum": ["client", "server"] });
            let drawn = json!({ "type": "object", "properties": { "packmime": ends }, "required": ["packmime"],
                "additionalProperties": false });
            schema["anyOf"].as_array_mut().expect("forms are a list").push(drawn);
            schema
        }
        Form::Sizes => json!({ "anyOf": [
            { "type": "string" },
            { "type": "object", "properties": { "exponential": { "type": "string" } },
              "required": ["exponential"], "additionalProperties": false },
        ] }),
        Form::PerSecond => json!({ "type": "string", "pattern": "^ *[0-9.]+ */s *$" }),
        Form::Arrivals => json!({ "type": "array", "minItems": 1, "uniqueItems": true,
            "items": { "type": "integer", "minimum": 1 } }),
        Form::Flows => json!({ "type": "array", "minItems": 1, "items": { "anyOf": [
            { "type": "string", "minLength": 1, "maxLength": 64 },
            { "type": "object", "required": ["class", "flows"], "additionalProperties": false, "properties": {
                "class": { "type": "string", "minLength": 1, "maxLength": 64 },
                "flows": { "type": "array", "minItems": 1, "uniqueItems": true,
                    "items": { "type": "integer", "minimum": 0 } },
            } },
        ] } }),
        Form::Names(_) => json!({ "type": "array", "minItems": 1, "uniqueItems": true,
            "items": { "type": "string", "minLength": 1 } }),
        Form::NameOrNames(what) => {
            json!({ "anyOf": [form_schema(&Form::Name), form_schema(&Form::Names(what))] })
        }
        Form::Command => json!({ "type": "array", "minItems": 1, "items": { "type": "string" } }),
        Form::Words(words) => json!({ "type": "array", "minItems": 1, "uniqueItems": true,
            "items": { "enum": words } }),
        Form::Queue => kind_schema(&Kind::Discipline),
        Form::Tcp => tcp(),
        Form::Table(fields) => object(fields.iter(), None),
        Form::Tables(fields) => json!({ "type": "array", "items": object(fields.iter(), None) }),
        Form::Kinds(variants) => kinds(variants),
        Form::TablesOfKinds(variants) => json!({ "type": "array", "minItems": 1, "items": kinds(variants) }),
        Form::Arms => with_paths(ARM, &json!(true)),
        Form::Sweep => sweep(),
        Form::Labels => json!({ "type": "object", "additionalProperties": {
            "anyOf": [{ "type": "string" }, { "type": "number" }, { "type": "boolean" }] } }),
    }
}

fn kinds(variants: &'static [Variant]) -> Json {
    let one = |variant: &'static Variant| {
        let mut schema = object(variant.all_fields(), Some(variant.kind));
        let own = schema.as_object_mut().expect("an object schema is an object");
        own.insert("description".into(), json!(format!("{}.", variant.help)));
        if variant.kind == "parking_lot" {
            let hop = object(HOP.iter().flat_map(|f| f.iter()), None);
            own.insert("patternProperties".into(), json!({ "^hop[1-9][0-9]*$": hop }));
        }
        schema
    };
    json!({ "oneOf": variants.iter().map(one).collect::<Vec<_>>() })
}

/// Returns the schema of a quantity: one value, or a table with a form of distribution.
fn distribution(drawn: &Drawn) -> Json {
    let one = match drawn.kind {
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        _ => json!({ "type": "string" }),
    };
    let list = |of: &Json, least: u32| json!({ "type": "array", "items": of, "minItems": least });
    let pair = json!({ "type": "array", "items": one, "minItems": 2, "maxItems": 2 });
    let share = json!({ "type": "number", "minimum": 0, "maximum": 1 });
    let point = json!({ "type": "array", "items": { "anyOf": [one, share] }, "minItems": 2, "maxItems": 2 });
    let table = |form: &str| {
        let (required, properties) = match form {
            "uniform" | "spread" => (vec![form], json!({ form: pair })),
            "exponential" => (vec![form], json!({ form: one, "offset": one })),
            "pareto" => {
                let shape = json!({ "type": "number", "exclusiveMinimum": 1, "maximum": 100 });
                (vec![form, "shape"], json!({ form: one, "shape": shape, "max": one }))
            }
            "list" => (vec![form], json!({ form: list(&one, 1) })),
            "seeds" => (vec![form], json!({ form: list(&json!({ "anyOf": [one, list(&one, 1)] }), 1) })),
            _ => (vec![form], json!({ form: list(&point, 1) })),
        };
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    };
    let tables = drawn.forms.iter().map(|form| table(form));
    json!({ "anyOf": std::iter::once(one.clone()).chain(tables).collect::<Vec<_>>() })
}

/// Returns the schema of a queue: a discipline's name, or a table.
fn queue(catalogue: &Catalogue) -> Json {
    let names: Vec<&str> = catalogue.iter().map(|i| i.name).collect();
    let infos = catalogue.iter().chain([&TC_INFO]);
    let table = |info: &aqmlab_qdisc::Info| {
        let mut schema = params(info.params);
        let own = schema.as_object_mut().expect("an object schema is an object");
        own["properties"]
            .as_object_mut()
            .expect("properties are an object")
            .insert("kind".into(), json!({ "const": info.name }));
        own["required"].as_array_mut().expect("required is a list").push(json!("kind"));
        own.insert("description".into(), json!(format!("{}: {}.", info.title, info.summary)));
        schema
    };
    let tables = infos.map(table);
    json!({ "anyOf": std::iter::once(json!({ "enum": names })).chain(tables).collect::<Vec<_>>() })
}

/// Returns the schema of `tcp`: a profile's name, or a table.
fn tcp() -> Json {
    let names: Vec<&str> = aqmlab_transport::profiles().iter().map(|p| p.name).collect();
    let mut table = params(aqmlab_transport::Profile::TABLE);
    let own = table["properties"].as_object_mut().expect("an object schema has properties");
    own.insert("profile".into(), json!({ "enum": names }));
    json!({ "anyOf": [{ "enum": names }, table] })
}

/// Returns the schema of a table of parameters, each under its name and its aliases.
fn params(params: &'static [Param]) -> Json {
    let mut properties = Map::new();
    let mut required: Vec<&str> = Vec::new();
    for param in params {
        let mut schema = kind_schema(&param.kind);
        if matches!(param.default, Default::Auto(_)) {
            schema = json!({ "anyOf": [schema, { "const": "auto" }] });
        }
        let own = schema.as_object_mut().expect("every schema here is an object");
        own.insert("description".into(), json!(format!("{} ({}).", param.help, param.source)));
        insert_default(own, &param.default);
        for alias in param.aliases {
            properties.insert(alias.name.into(), alias_schema(alias, &schema));
        }
        if matches!(param.default, Default::Required) && param.aliases.is_empty() {
            required.push(param.name);
        }
        properties.insert(param.name.into(), schema);
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// Returns the schema of a value under another tool's name, written either in our notation or in that tool's.
fn alias_schema(alias: &Alias, ours: &Json) -> Json {
    let theirs = match alias.reading {
        Reading::In(_) | Reading::Inverse | Reading::Automatic { .. } => json!({ "type": "number" }),
        Reading::Switch | Reading::Words(..) => json!({ "enum": [true, false, 1, 0] }),
        Reading::ZeroIsUnlimited => json!({ "const": 0 }),
        _ => return ours.clone(),
    };
    json!({ "anyOf": [ours, theirs] })
}

/// Returns the schema of an array of tables. Each table contains these keys, and dotted paths (quoted or not)
/// with values that `at_paths` admits. The accepted values of a path are known only after substitution.
fn with_paths(fields: &'static [Field], at_paths: &Json) -> Json {
    let mut table = object(fields.iter(), None);
    let own = table.as_object_mut().expect("an object schema is an object");
    own.insert("additionalProperties".into(), at_paths.clone());
    json!({ "type": "array", "minItems": 1, "items": table })
}

/// Returns the schema of `[sweep]`: dotted paths with lists of values. Dotted paths that are not
/// quoted appear as the tables that lead to the lists.
fn sweep() -> Json {
    let lists = json!({ "anyOf": [{ "type": "array", "minItems": 1 }, { "type": "object" }] });
    let labels = json!({ "anyOf": [{ "type": ["string", "number", "boolean"] }, { "type": "array", "minItems": 1 }, { "type": "object" }] });
    let rule = json!({ "type": "object", "minProperties": 1, "additionalProperties": labels });
    json!({
        "type": "object",
        "properties": {
            "zip": with_paths(ZIP, &lists),
            "case": with_paths(CASE, &json!(true)),
            "exclude": { "type": "array", "minItems": 1, "items": rule },
        },
        "additionalProperties": lists,
    })
}

fn kind_schema(kind: &Kind) -> Json {
    match kind {
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Limit { min, max } => json!({ "anyOf": [
            kind_schema(&Kind::Integer { min: *min, max: *max }), { "const": Value::UNLIMITED },
        ] }),
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::NumberAbove { above, max } => {
            json!({ "type": "number", "exclusiveMinimum": above, "maximum": max })
        }
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Open(words) => json!({ "anyOf": [{ "enum": words }, { "type": "string" }] }),
        Kind::Text | Kind::TrafficClass => json!({ "type": "string" }),
        Kind::Port => kind_schema(&Kind::Integer { min: 0, max: 65_535 }),
        Kind::Dscp => {
            let names: Vec<&str> = Dscp::NAMES.iter().map(|(name, _)| *name).collect();
            let number = kind_schema(&Kind::Integer { min: 0, max: u64::from(Dscp::MAX.0) });
            json!({ "anyOf": [number, { "enum": names }] })
        }
        Kind::List(of) => json!({ "type": "array", "minItems": 1, "items": kind_schema(of) }),
        Kind::Table(table) => params(table),
        Kind::Discipline => json!({ "$ref": "#/$defs/queue" }),
        quantity => json!({ "type": "string", "description": kind::form(quantity), "pattern": "^ *[0-9.+]" }),
    }
}
