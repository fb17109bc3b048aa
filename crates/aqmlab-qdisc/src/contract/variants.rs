//! The settings with which the kit tests a discipline.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use aqmlab_params::{Kind, Origin, Settings, Value};
use aqmlab_units::Bytes;
use aqmlab_units::text::Size;

use super::{Checks, LINK};
use crate::Info;

/// The settings of one test of a discipline.
#[derive(Clone, PartialEq, Debug)]
pub struct Variant {
    /// Its name in reports: `"preset ns2, ecn"`.
    pub label: String,
    /// The settings given.
    pub settings: Settings,
}

/// Returns the variants that test a discipline's presets and samples. On the basis of the first
/// sample, there is one variant per preset with ECN and one without (or one variant for the
/// defaults if there are no presets). Each other sample is a variant of its own.
pub fn presets(info: &Info) -> Vec<Variant> {
    let mut samples = (info.samples)().into_iter();
    let Some((_, first)) = samples.next() else { return Vec::new() };
    let mut variants = Vec::new();
    if info.presets.is_empty() {
        variants.push(Variant { label: "defaults".to_string(), settings: first.clone() });
    }
    variants.extend(samples.map(|(label, settings)| Variant { label: format!("sample {label}"), settings }));
    for preset in info.presets {
        // The sample does not override the values that the preset sets, except the limit.
        let mut base = Settings::default();
        let own = |name| name == "limit" || !preset.values.iter().any(|(set, _)| *set == name);
        first.iter().filter(|s| own(s.name)).for_each(|s| base.set(s.name, s.value.clone(), Origin::Given));
        let chosen = ("preset", Value::Choice(preset.name));
        for (ecn, with) in [(false, ""), (true, ", ecn")] {
            if ecn && !has_flag(info, "ecn") {
                continue;
            }
            let switched = has_flag(info, "ecn").then_some(("ecn", Value::Flag(ecn)));
            let values: Vec<_> = core::iter::once(chosen.clone()).chain(switched).collect();
            let settings = accepted(info, &base, &values, &[]);
            variants.push(Variant { label: format!("preset {}{with}", preset.name), settings });
        }
    }
    variants
}

/// Returns a variant for every word of every choice, with a limit in bytes if the discipline has a
/// limit and accepts bytes together with that word.
pub fn words(info: &Info) -> Vec<Variant> {
    let Some((_, base)) = (info.samples)().into_iter().next() else { return Vec::new() };
    let in_bytes = info.params.iter().any(|p| p.name == "limit");
    let limit = in_bytes.then_some(("limit", Value::Size(Size::Bytes(Bytes::new(90_000)))));
    let mut variants = Vec::new();
    for param in info.params {
        let Kind::Choice(words) = param.kind else { continue };
        for word in words {
            let settings = accepted(info, &base, &[(param.name, Value::Choice(word))], limit.as_slice());
            variants.push(Variant { label: format!("{} {word}", param.name), settings });
        }
    }
    variants
}

impl Variant {
    /// Names an action that should have occurred in the scripts but, according to all their `checks`
    /// together, never did: drops by the law, or marks if ECN is on.
    pub fn idle(&self, info: &Info, checks: &Checks) -> Option<&'static str> {
        let effective = info.resolve(&self.settings, &LINK).ok()?;
        let only_a_buffer = info.params.iter().all(|p| matches!(p.name, "limit" | "limit_rule" | "preset"));
        let spares = effective.get("not_ect") == Some(&Value::Choice("pass"));
        if checks.marks == 0 && marks(&effective) {
            Some("ECN is on, and nothing was marked")
        } else if checks.law_drops == 0 && !only_a_buffer && !(spares && marks(&effective)) {
            Some("the law has dropped nothing")
        } else {
            None
        }
    }
}

/// Returns whether ECN is on in a queue or in one inside it.
fn marks(settings: &Settings) -> bool {
    fn within(value: &Value) -> bool {
        match value {
            Value::Table(settings) | Value::Discipline { settings, .. } => marks(settings),
            Value::List(items) => items.iter().any(within),
            _ => false,
        }
    }
    settings.iter().any(|s| (s.name == "ecn" && s.value == Value::Flag(true)) || within(&s.value))
}

/// Returns `base` with `values` and with those of the `wishes` that the discipline accepts. While
/// the discipline refuses the combination, the function removes the setting that the error names
/// or, if that setting is one of `values`, one of the wishes.
fn accepted(
    info: &Info,
    base: &Settings,
    values: &[(&'static str, Value)],
    wishes: &[(&'static str, Value)],
) -> Settings {
    let mut settings = base.clone();
    for (name, value) in wishes.iter().chain(values) {
        settings.set(name, value.clone(), Origin::Given);
    }
    // Each round removes one setting.
    for _ in 0..=base.iter().count() + wishes.len() {
        let Err(error) = info.resolve(&settings, &LINK) else { break };
        let wish = wishes.iter().find(|(name, value)| settings.get(name) == Some(value));
        let named = settings.iter().find(|s| s.name == error.name).map(|s| s.name);
        let of_values = |name: &str| values.iter().any(|(own, _)| *own == name);
        let gives_way = named.filter(|name| error.within.is_empty() && !of_values(name));
        let Some(name) = gives_way.or(wish.map(|(name, _)| *name)) else { break };
        let (mut fewer, was_wish) = (Settings::default(), wish.is_some_and(|(wish, _)| *wish == name));
        settings
            .iter()
            .filter(|s| s.name != name)
            .for_each(|s| fewer.set(s.name, s.value.clone(), Origin::Given));
        if let (true, Some(value)) = (was_wish, base.get(name)) {
            fewer.set(name, value.clone(), Origin::Given);
        }
        settings = fewer;
    }
    settings
}

/// Returns whether the discipline has a switch of this name.
fn has_flag(info: &Info, name: &str) -> bool {
    info.params.iter().any(|p| p.name == name && matches!(p.kind, Kind::Flag))
}
