//! Checks that the tables of rules in `docs/validation.md` and the tests agree, in both directions.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A rule, and a test that checks it: `module::name`.
type Citation = (String, String);

fn crate_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns whether `text` names a rule, such as `5681 3.2 step 3`: the four digits of an RFC, then
/// one of its sections.
fn is_rule(text: &str) -> bool {
    let mut words = text.split(' ');
    let number = words.next().is_some_and(|w| w.len() == 4 && w.bytes().all(|b| b.is_ascii_digit()));
    number && words.next().is_some_and(|w| w.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns each text between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the rows whose first cell is a rule; their cells are rule, requirement and tests.
fn rows(page: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for line in page.lines().filter(|l| l.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let rule = cells[0].trim_matches('`');
        if !is_rule(rule) {
            continue;
        }
        let [_, asks, tests] = cells[..] else { panic!("a row of rules has three cells: {line}") };
        assert!(!asks.is_empty(), "{rule}: no requirement is given");
        found.push((rule.to_owned(), quoted(tests).map(str::to_owned).collect()));
    }
    found
}

fn page() -> String {
    read(&crate_root().join("../../docs/validation.md"))
}

/// Returns every test of this crate in `tests/*.rs` and `tests/rules/*.rs`, with its path and the
/// rules in its documentation.
fn tests() -> Vec<(String, Vec<String>)> {
    let files = |folder: PathBuf| {
        let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        entries.map(|e| e.expect("readable").path()).filter(|p| p.extension().is_some_and(|e| e == "rs"))
    };
    let tests = crate_root().join("tests");
    files(tests.clone()).chain(files(tests.join("rules"))).flat_map(|file| tests_of(&file)).collect()
}

fn tests_of(file: &Path) -> Vec<(String, Vec<String>)> {
    let module = file.file_stem().and_then(|s| s.to_str()).expect("a name").to_owned();
    let (mut found, mut rules, mut is_test) = (Vec::new(), Vec::new(), false);
    for line in read(file).lines().map(str::trim) {
        if let Some(list) = line.strip_prefix("/// Rules: ") {
            rules.extend(list.trim_end_matches('.').split("; ").map(str::to_owned));
        } else if line == "#[test]" {
            is_test = true;
        } else if let Some(rest) = line.strip_prefix("fn ") {
            let name = rest.split('(').next().expect("a name");
            if std::mem::take(&mut is_test) {
                found.push((format!("{module}::{name}"), std::mem::take(&mut rules)));
            }
            assert!(rules.is_empty(), "{module}: only tests have rules");
        }
    }
    found
}

#[test]
fn each_rule_stands_once_and_has_a_test() {
    let mut seen = BTreeSet::new();
    for (rule, tests) in rows(&page()) {
        assert!(!tests.is_empty(), "`{rule}` has no test");
        assert!(seen.insert(rule.clone()), "`{rule}` is listed twice");
    }
    assert!(seen.len() >= 40, "the tables were found");
}

#[test]
fn the_page_and_the_tests_cite_each_other() {
    let by_page: BTreeSet<Citation> = rows(&page())
        .into_iter()
        .flat_map(|(rule, tests)| tests.into_iter().map(move |t| (rule.clone(), t)))
        .collect();
    let by_tests: BTreeSet<Citation> = tests()
        .into_iter()
        .flat_map(|(test, rules)| rules.into_iter().map(move |r| (r, test.clone())))
        .collect();
    let missing: Vec<_> = by_tests.difference(&by_page).collect();
    assert!(missing.is_empty(), "tests cite these, but docs/validation.md does not: {missing:#?}");
    let stale: Vec<_> = by_page.difference(&by_tests).collect();
    assert!(stale.is_empty(), "docs/validation.md has these, but no test cites them: {stale:#?}");
}

#[test]
fn every_test_of_a_rule_says_which() {
    let silent: Vec<String> = tests()
        .into_iter()
        .filter(|(test, rules)| test.starts_with("rfc") && rules.is_empty())
        .map(|(test, _)| test)
        .collect();
    assert!(silent.is_empty(), "no line `Rules:` {silent:#?}");
}
