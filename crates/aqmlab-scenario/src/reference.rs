//! The language reference in Markdown, from the same tables as the parser.

use std::fmt::Write;

use aqmlab_params::{Default, Param};
use aqmlab_transport::ProfileValue;

use crate::field::{Absent, Field, Form, Variant};
use crate::kind;
use crate::language::{
    ARM, AUTORATE, CASE, CHANGING_RATES, CLAIM, COMPLETED, CONDITION, DELAY_RULE, EXCLUDE, FAULTS, FILE, HOP,
    LINK, LIVE, NODE, PACKET_RECORD, RECORD, REQUEST_RECORD, STOP, TOPOLOGIES, TRAFFIC_KINDS, ZIP,
};
use crate::suggest::listed;

/// Returns all sections and keys with their accepted values, defaults and help, and the parameters
/// and profiles of TCP. The parameters of disciplines are in the chapters on the disciplines.
pub fn reference() -> String {
    let mut out = String::new();
    section(&mut out, "The file", "", FILE.iter());
    for variant in TOPOLOGIES {
        kind_section(&mut out, "topology", variant);
        if variant.kind == "parking_lot" {
            section(&mut out, "A hop: `[topology.hop1]`", "", HOP.iter().flat_map(|f| f.iter()));
        }
    }
    section(&mut out, "`[[node]]`", "", NODE.iter());
    section(&mut out, "`[[link]]`", "", LINK.iter());
    for variant in CHANGING_RATES {
        kind_section(&mut out, "rate", variant);
    }
    section(&mut out, "`faults`", "", FAULTS.iter());
    section(
        &mut out,
        "`autorate`",
        "The defaults are those of cake-autorate; its names are in the chapter on [shapers that are adjusted](autorate.md).",
        AUTORATE.iter(),
    );
    for variant in TRAFFIC_KINDS {
        kind_section(&mut out, "traffic", variant);
    }
    section(&mut out, "`[[delay]]`", "", DELAY_RULE.iter());
    section(&mut out, "`[stop]`", "", STOP.iter());
    section(&mut out, "`completed` in `[stop]`", "", COMPLETED.iter());
    section(
        &mut out,
        "`condition` in `[stop]`",
        "The keys are `queue` and one of the four quantities.",
        CONDITION.iter(),
    );
    section(&mut out, "`[record]`", "", RECORD.iter());
    section(&mut out, "`packets` in `[record]`", "Write `links`, `flows` or both.", PACKET_RECORD.iter());
    section(&mut out, "`requests` in `[record]`", "", REQUEST_RECORD.iter());
    section(&mut out, "`[live]`", "", LIVE.iter());
    section(&mut out, "`[[arm]]`", "Every other key is a dotted path with a new value.", ARM.iter());
    section(
        &mut out,
        "`[[sweep.zip]]`",
        "Every other key is a dotted path with a list of values; all lists have the same length.",
        ZIP.iter(),
    );
    section(&mut out, "`[[sweep.case]]`", "Every other key is a dotted path with a new value.", CASE.iter());
    writeln!(out, "### `[[sweep.exclude]]`\n\n{EXCLUDE}\n").expect("a string can be written to");
    section(&mut out, "`[[claim]]`", "", CLAIM.iter());
    params(&mut out, "TCP: `tcp = { profile = .., .. }`", aqmlab_transport::Profile::TABLE);
    profiles(&mut out);
    out
}

fn kind_section(out: &mut String, what: &str, variant: &'static Variant) {
    let help = format!("{}.", capital(variant.help));
    section(out, &format!("{what} of `kind = \"{}\"`", variant.kind), &help, variant.all_fields());
}

fn section(out: &mut String, title: &str, help: &str, fields: impl Iterator<Item = &'static Field>) {
    header(out, title, help);
    for field in fields {
        let default = match field.absent {
            Absent::Required => "required".to_string(),
            Absent::Is(default) => shown(&default),
            Absent::Rule(rule) => rule.to_string(),
        };
        row(out, field.name, &form(&field.form), &default, field.help);
    }
    out.push('\n');
}

fn params(out: &mut String, title: &str, params: &[Param]) {
    let names = listed(aqmlab_transport::profiles().iter().map(|p| p.name));
    header(out, title, &format!("The profiles are {names}; the defaults are those of `rfc`."));
    for param in params {
        let help = format!("{} ({})", param.help, param.source);
        row(out, param.name, &kind::form(&param.kind), &shown(&param.default), &help);
    }
}

/// Appends each profile's differences from the defaults, with their sources.
fn profiles(out: &mut String) {
    for profile in aqmlab_transport::profiles().iter().filter(|p| !p.values.is_empty()) {
        let base = profile.base.map(|base| format!(" The other values are those of `{base}`."));
        let (name, summary, base) = (profile.name, profile.summary, base.unwrap_or_default());
        write!(out, "\n### TCP profile `{name}`\n\nStands for {summary}.{base}\n\n")
            .expect("a String accepts any text");
        out.push_str("| key | value | source |\n|---|---|---|\n");
        for ProfileValue { pair: (name, value), source } in profile.values {
            writeln!(out, "| `{name}` | `{value}` | {source} |").expect("a String accepts any text");
        }
    }
}

fn header(out: &mut String, title: &str, help: &str) {
    let help = if help.is_empty() { String::new() } else { format!("{help}\n\n") };
    write!(
        out,
        "### {}\n\n{help}| key | value | if not written | meaning |\n|---|---|---|---|\n",
        capital(title)
    )
    .expect("a String accepts any text");
}

fn row(out: &mut String, name: &str, form: &str, default: &str, help: &str) {
    let cell = |text: &str| text.replace('|', "\\|");
    writeln!(out, "| `{name}` | {} | {} | {} |", cell(form), cell(default), cell(help))
        .expect("a String accepts any text");
}

fn shown(default: &Default) -> String {
    match default {
        Default::Auto(rule) | Default::Nothing(rule) => (*rule).to_string(),
        other => other.value().map_or_else(|| "required".to_string(), |v| format!("`{v}`")),
    }
}

fn form(form: &Form) -> String {
    match form {
        Form::One(kind) => kind::form(kind),
        Form::OrWord(kind, word) => format!("{}, or \"{word}\"", kind::form(kind)),
        Form::OverTime(kind, _) => {
            format!(
                "{}; or steps `[[\"0s\", ..], ..]` or `{{ kind = .., .. }}` for one that changes",
                kind::form(kind)
            )
        }
        Form::Steps(kind) => format!("a list of pairs of a time and {}", kind::form(kind)),
        Form::Levels(kind) => format!("a list, each item {}", kind::form(kind)),
        Form::Name => "a name".to_string(),
        Form::Drawn(drawn) => {
            format!("a {}, or a distribution: {}", drawn.noun, listed(drawn.forms.iter().copied()))
        }
        Form::DrawnOverTime(drawn) => {
            format!("{}; steps `[[\"0s\", ..], ..]` or `{{ file = .. }}`", self::form(&Form::Drawn(drawn)))
        }
        Form::StageDelay(drawn) => format!(
            "{}; \"client\", \"server\" or `{{ packmime = \"client\" }}`",
            self::form(&Form::DrawnOverTime(drawn))
        ),
        Form::Sizes => "a size, or `{ exponential = \"500B\" }`".to_string(),
        Form::PerSecond => crate::field::PER_SECOND.to_string(),
        Form::Arrivals => "a list of arrival numbers, from 1".to_string(),
        Form::Flows => "a list of class names, or of `{ class = \"ftp\", flows = [0, 1] }`".to_string(),
        Form::Names(what) => format!("a list of names of {what}"),
        Form::NameOrNames(what) => format!("a name, or a list of names of {what}"),
        Form::Command => "a list of texts: a program and its arguments".to_string(),
        Form::Words(words) => format!("a list of {}", listed(words.iter().copied())),
        Form::Queue => "a discipline's name, or `{ kind = .., .. }`".to_string(),
        Form::Tcp => "a profile's name, or `{ profile = .., .. }`".to_string(),
        Form::Table(_) | Form::Kinds(_) => "a table".to_string(),
        Form::Tables(_) | Form::TablesOfKinds(_) | Form::Arms => "several tables".to_string(),
        Form::Sweep => {
            "dotted paths with lists of values, [[sweep.zip]], [[sweep.case]], [[sweep.exclude]]".to_string()
        }
        Form::Labels => "`{ axis = \"label\", .. }`".to_string(),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
