//! The settings with which the kit tries a discipline.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use aqmlab_params::{Kind, Origin, Settings, Value};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets, Span};

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
        variants.push(Variant { label: "defaults".to_string(), settings: given(&[LIMIT]) });
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
            let mut settings = given(&[(param.name, Value::Choice(word))]);
            set(&mut settings, "limit", limit_for(param.name, word));
            // Gains `auto` are derived instead.
            for (name, value) in QUICK.into_iter().filter(|(name, _)| *word != "auto" && has(info, name)) {
                set(&mut settings, name, value);
            }
            variants.push(Variant { label: format!("{} {word}", param.name), settings });
        }
    }
    variants
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
