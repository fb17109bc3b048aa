//! Every file in `tests/bad_scenarios` is refused with exactly the message in the file next to it.
//!
//! `UPDATE_SNAPSHOTS=1` rewrites the messages; review the diff.

use std::fs;
use std::path::{Path, PathBuf};

use aqmlab_scenario::{Limits, ScenarioError, parse_within};
use aqmlab_storage::Folder;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/bad_scenarios")
}

fn scenarios() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).expect("the folder is there");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("an entry is readable").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "toml"));
    files.sort();
    files
}

/// Parses a scenario under its bare file name, so that messages do not depend on the folder. Traces
/// are read from the folder of the scenarios.
fn read(text: &str, name: &str) -> Result<(), ScenarioError> {
    let files = Folder::of(folder().join(name).to_str().expect("paths are plain"));
    parse_within(text, name, Limits::default(), &files).map(|_| ())
}

fn message(file: &Path) -> String {
    let name = file.file_name().and_then(|n| n.to_str()).expect("names are plain");
    let text = fs::read_to_string(file).expect("a scenario is text");
    match read(&text, name) {
        Ok(_) => panic!("{name} is accepted"),
        Err(error) => format!("{error}\n"),
    }
}

#[test]
fn each_is_refused_with_its_message() {
    let files = scenarios();
    assert!(files.len() >= 30, "{} bad scenarios", files.len());
    let mut differing = Vec::new();
    for file in &files {
        let (message, snapshot) = (message(file), file.with_extension("err"));
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&snapshot, &message).expect("a snapshot can be written");
        }
        let expected = fs::read_to_string(&snapshot).unwrap_or_default();
        if message != expected {
            differing.push(format!("expected:\n{expected}got:\n{message}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn no_message_lies_beside_a_scenario_that_is_gone() {
    let files = scenarios();
    for entry in fs::read_dir(folder()).expect("the folder is there") {
        let path = entry.expect("an entry is readable").path();
        if path.extension().is_some_and(|e| e == "err") {
            assert!(files.contains(&path.with_extension("toml")), "{} has no scenario", path.display());
        }
    }
}

#[test]
fn every_message_names_a_line_and_a_column_of_its_file() {
    for file in scenarios() {
        let text = fs::read_to_string(&file).expect("a scenario is text");
        let error = read(&text, "f").expect_err("it is a bad scenario");
        for problem in &error.problems {
            let line = text.split('\n').nth(problem.line - 1).expect("the line is in the file");
            assert!(problem.column <= line.chars().count() + 1, "{}: {problem:?}", file.display());
        }
    }
}
