//! The parameter tables in the chapters agree with those in the code.
//!
//!     UPDATE_SNAPSHOTS=1 cargo test -p aqmlab-qdisc --test chapters     # rewrites them

use std::fmt::Write as _;
use std::path::PathBuf;

use aqmlab_params::{Alias, Default, Kind, Param};
use aqmlab_qdisc::registry::{self, Info};

const BEGIN: &str = "<!-- parameters -->\n";
const END: &str = "<!-- end of parameters -->";

fn chapter(name: &str) -> PathBuf {
    let file = match name {
        "ared" => "adaptive-red",
        "scred" => "self-configuring-red",
        "redpd" => "red-pd",
        _ => name,
    };
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/disciplines").join(format!("{file}.md"))
}

fn values(kind: Kind) -> String {
    match kind {
        Kind::Flag => "true, false".into(),
        Kind::Integer { min, max } => format!("{min} to {max}"),
        Kind::Number { min, max } => format!("{min} to {max}"),
        Kind::NumberAbove { above, max } => format!("above {above}, to {max}"),
        Kind::Span { min, max } => format!("{min} to {max}"),
        Kind::Rate { min, max } => format!("{min} to {max}"),
        Kind::Size { min } => format!("packets, bytes, bdp or a time, at least {}", min.get()),
        Kind::Bytes { min, max } => format!("{min} B to {max} B"),
        Kind::Choice(words) => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
        Kind::Text => "text".into(),
        Kind::Dscp => "a code point".into(),
        Kind::Port => "0 to 65535".into(),
        Kind::Discipline => "a discipline".into(),
        Kind::List(of) => format!("list: {}", values(*of)),
        Kind::Table(params) => params.iter().map(|p| format!("`{}`", p.name)).collect::<Vec<_>>().join(", "),
        other => panic!("a kind that this table cannot print: {other:?}"),
    }
}

fn default(param: &Param) -> String {
    match param.default {
        Default::Auto(rule) => format!("auto: {rule}"),
        Default::Nothing(what) => what.into(),
        other => other.value().map_or("required".into(), |v| format!("`{v}`")),
    }
}

fn alias(alias: &Alias) -> String {
    let meaning = alias.meaning().map_or_else(String::new, |meaning| format!(" ({meaning})"));
    format!("{} `{}`{meaning}", alias.of, alias.name)
}

fn row(param: &Param) -> String {
    let aliases: Vec<_> = param.aliases.iter().map(alias).collect();
    let cells = [
        format!("`{}`", param.name),
        values(param.kind),
        default(param),
        param.help.into(),
        param.source.into(),
        aliases.join(", "),
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn tables(info: &Info) -> String {
    let mut text = String::from(
        "\n| name | values | default | meaning | source | other names |\n|---|---|---|---|---|---|\n",
    );
    text.extend(info.params.iter().map(row));
    if !info.presets.is_empty() {
        text.push_str("\n| preset | stands for | sets |\n|---|---|---|\n");
        for preset in info.presets {
            let sets: Vec<_> =
                preset.values.iter().map(|(name, value)| format!("`{name}` {value}")).collect();
            let sets = if sets.is_empty() {
                "nothing: the same as the defaults above".into()
            } else {
                sets.join(", ")
            };
            let _ = writeln!(text, "| `{}` | {} | {sets} |", preset.name, preset.title);
        }
    }
    text.push('\n');
    text
}

#[test]
fn chapters_show_the_parameter_tables_of_the_code() {
    for info in registry::catalogue() {
        let path = chapter(info.name);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let (head, rest) = text.split_once(BEGIN).expect("the chapter has a block for parameters");
        let (shown, tail) = rest.split_once(END).expect("the block ends");
        let expected = tables(info);
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(&path, format!("{head}{BEGIN}{expected}{END}{tail}"))
                .expect("the chapter is writable");
        } else {
            assert_eq!(shown, expected, "{}: run with UPDATE_SNAPSHOTS=1", path.display());
        }
        let word = format!("**{}**", info.maturity.name());
        assert!(text.contains(&word), "{}: its maturity is {word}", path.display());
    }
}

#[test]
fn the_overview_lists_the_catalogue() {
    let path = chapter("README");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    for info in registry::catalogue() {
        let file = chapter(info.name);
        let file = file.file_name().expect("a chapter is a file").to_string_lossy();
        let row = format!(
            "| `{}` | [{}]({file}) | {} | {} |",
            info.name,
            info.title,
            info.decides.name(),
            info.maturity.name()
        );
        assert!(text.contains(&row), "the overview has no row {row}");
    }
}

#[test]
fn tables_are_sound() {
    for info in registry::catalogue() {
        for (index, param) in info.params.iter().enumerate() {
            let others = &info.params[index + 1..];
            assert!(!others.iter().any(|p| p.answers_to(param.name)), "{}: {} twice", info.name, param.name);
            for alias in param.aliases {
                assert!(
                    !others.iter().any(|p| p.answers_to(alias.name)),
                    "{}: {} twice",
                    info.name,
                    alias.name
                );
            }
        }
        for (name, _) in info.presets.iter().flat_map(|p| p.values) {
            assert!(info.params.iter().any(|p| p.name == *name), "{}: preset sets {name}", info.name);
        }
    }
}
