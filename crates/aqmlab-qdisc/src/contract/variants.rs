//! The settings with which the kit tries a discipline.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use aqmlab_params::{Kind, Origin, Settings, Value};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets, Rate, Span};

use crate::Info;

/// Settings to test a discipline with.
#[derive(Clone, PartialEq, Debug)]
pub struct Variant {
    /// What it is called in reports: `"preset ns2, ecn"`.
    pub label: String,
    /// What is given.
    pub settings: Settings,
}

/// Every preset, with and without ECN, in a buffer that a script can fill.
pub fn presets(info: &Info) -> Vec<Variant> {
    let mut variants = Vec::new();
    if info.presets.is_empty() {
        variants.push(Variant { label: "defaults".to_string(), settings: sample(info) });
    }
    if info.name == "classes" {
        variants.extend(nested());
    }
    for preset in info.presets {
        let chosen = ("preset", Value::Choice(preset.name));
        variants.push(Variant {
            label: format!("preset {}", preset.name),
            settings: given(&[LIMIT, chosen.clone()]),
        });
        if has(info, "ecn") {
            let settings = given(&[LIMIT, chosen, ("ecn", Value::Flag(true))]);
            variants.push(Variant { label: format!("preset {}, ecn", preset.name), settings });
        }
    }
    variants
}

/// Every word of every choice, with laws that react within the few hundred packets of a script.
pub fn words(info: &Info) -> Vec<Variant> {
    let mut variants = Vec::new();
    for param in info.params {
        let Kind::Choice(words) = param.kind else { continue };
        for word in words {
            let mut settings = sample(info);
            set(&mut settings, param.name, Value::Choice(word));
            if has(info, "limit") {
                set(&mut settings, "limit", limit_for(param.name, word));
            }
            if (param.name, *word) == ("exceed", "remark") {
                set(&mut settings, "dscp", Value::Integer(8));
            }
            // Gains `auto` are derived instead.
            for (name, value) in QUICK.into_iter().filter(|(name, _)| *word != "auto" && has(info, name)) {
                set(&mut settings, name, value);
            }
            variants.push(Variant { label: format!("{} {word}", param.name), settings });
        }
    }
    variants
}

/// What a discipline must be given, and a buffer that a script can fill: enough to build it.
pub fn sample(info: &Info) -> Settings {
    match info.name {
        "classes" => given(&[(
            "class",
            Value::List(alloc::vec![
                class("gold", &[("traffic", classes(&[0]))], quick_red()),
                class("silver", &[("traffic", classes(&[1]))], queue("droptail", &[LIMIT])),
                class("rest", &[], queue("codel", &[LIMIT, ("target", Value::Span(Span::us(200)))])),
            ]),
        )]),
        "policer" => given(&policer(quick_red())),
        _ => given(&[LIMIT]),
    }
}

/// Ports with classes in ports with classes, by each field and with each scheduler, with and without policers.
fn nested() -> Vec<Variant> {
    let number = |n| Value::List(alloc::vec![Value::Integer(n)]);
    let policed = || queue("policer", &policer(quick_red()));
    let remarked = |inner| {
        let mut values = policer(inner);
        values.extend([("exceed", Value::Choice("remark")), ("dscp", Value::Integer(8))]);
        queue("policer", &values)
    };
    let port = |scheduler, classes: Vec<Value>| {
        [("scheduler", Value::Choice(scheduler)), ("class", Value::List(classes))]
    };
    let by_port = port(
        "wrr",
        alloc::vec![
            class("odd", &[("port", number(81)), ("weight", Value::Integer(3))], policed()),
            class("even", &[("weight", Value::Integer(2))], queue("blue", &[LIMIT])),
        ],
    );
    let by_dscp = port(
        "strict",
        alloc::vec![
            class("first", &[("dscp", number(16))], queue("classes", &by_port)),
            class("worst", &[("dscp", number(8))], queue("redpd", &[LIMIT])),
            class("rest", &[], queue("fred", &[LIMIT])),
        ],
    );
    let outer = port(
        "drr",
        alloc::vec![
            class(
                "a",
                &[("traffic", classes(&[0, 1])), ("weight", Value::Integer(2))],
                remarked(queue("classes", &by_dscp))
            ),
            class("b", &[], queue("classes", &by_port)),
        ],
    );
    [("by port, wrr", &by_port), ("by dscp, strict, one level inside", &by_dscp), ("three levels", &outer)]
        .map(|(label, values)| Variant { label: label.to_string(), settings: given(values) })
        .into()
}

/// A policer that about half of a script's packets exceed.
fn policer(inner: Value) -> Vec<(&'static str, Value)> {
    let burst = Value::Size(Size::Bytes(Bytes::new(20_000)));
    alloc::vec![("rate", Value::Rate(Rate::mbit(8))), ("burst", burst), ("queue", inner)]
}

fn quick_red() -> Value {
    let size = |n| Value::Size(Size::Packets(Packets::new(n)));
    let values = [
        LIMIT,
        ("min_th", size(2)),
        ("max_th", size(8)),
        ("w_q", Value::Number(0.2)),
        ("ecn", Value::Flag(true)),
    ];
    queue("red", &values)
}

fn queue(kind: &'static str, values: &[(&'static str, Value)]) -> Value {
    Value::Discipline { kind, settings: given(values) }
}

fn class(name: &str, values: &[(&'static str, Value)], queue: Value) -> Value {
    let mut settings = given(values);
    set(&mut settings, "name", Value::Text(name.to_string()));
    set(&mut settings, "queue", queue);
    Value::Table(settings)
}

fn classes(numbers: &[usize]) -> Value {
    let one = |&number: &usize| Value::TrafficClass { name: format!("class{number}"), number };
    Value::List(numbers.iter().map(one).collect())
}

const LIMIT: (&str, Value) = ("limit", Value::Size(Size::Packets(Packets::new(70))));

/// Parameters of quick laws, for disciplines that have them as numbers.
const QUICK: [(&str, Value); 15] = [
    ("ecn", Value::Flag(true)),
    ("w_q", Value::Number(0.2)),
    ("a", Value::Number(0.01)),
    ("b", Value::Number(0.008)),
    ("gamma", Value::Number(0.5)),
    ("d1", Value::Number(0.3)),
    ("d2", Value::Number(0.05)),
    ("freeze_time", Value::Span(Span::us(500))),
    ("start", Value::Span(Span::ms(1))),
    ("target", Value::Span(Span::us(200))),
    ("interval", Value::Span(Span::ms(2))),
    ("hits", Value::Integer(1)),
    ("min_interval", Value::Span(Span::ms(2))),
    ("max_interval", Value::Span(Span::ms(20))),
    ("min_change", Value::Span(Span::ZERO)),
];

/// Only a limit in packets has random victims.
fn limit_for(param: &str, word: &str) -> Value {
    Value::Size(match (param, word) {
        ("victim", "random") | ("preset", "altq") => Size::Packets(Packets::new(60)),
        _ => Size::Bytes(Bytes::new(90_000)),
    })
}

/// Has it this parameter, and not as a choice of words?
fn has(info: &Info, name: &str) -> bool {
    info.params.iter().any(|p| p.name == name && !matches!(p.kind, Kind::Choice(_)))
}

fn given(values: &[(&'static str, Value)]) -> Settings {
    let mut settings = Settings::default();
    for (name, value) in values {
        set(&mut settings, name, value.clone());
    }
    settings
}

fn set(settings: &mut Settings, name: &'static str, value: Value) {
    settings.set(name, value, Origin::Given);
}
