//! The reference in docs/scenario.md agrees with the tables, and its examples are valid.
//!
//! `UPDATE_SNAPSHOTS=1` rewrites the reference.

use std::fs;

use aqmlab_scenario::{parse, reference};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
const BEGIN: &str = "<!-- generated from the parameter tables; do not edit -->\n";
const END: &str = "<!-- end of the generated part -->\n";

#[test]
fn the_reference_is_what_the_tables_say() {
    let page = fs::read_to_string(PAGE).expect("the page is there");
    let (head, rest) = page.split_once(BEGIN).expect("the page has a generated part");
    let (generated, tail) = rest.split_once(END).expect("which ends");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(PAGE, format!("{head}{BEGIN}\n{}\n{END}{tail}", reference()))
            .expect("the page can be written");
    } else {
        assert_eq!(
            generated.trim(),
            reference().trim(),
            "run with UPDATE_SNAPSHOTS=1 and look at the difference"
        );
    }
}

#[test]
fn every_example_on_the_page_is_understood() {
    let page = fs::read_to_string(PAGE).expect("the page is there");
    let mut examples = 0;
    for block in page.split("```toml\n").skip(1) {
        let (example, _) = block.split_once("```").expect("a block of code ends");
        // Fragments become complete scenarios: the missing keys are added in front of them.
        let mut text = String::new();
        for (key, line) in [
            ("duration =", "duration = \"60s\"\n"),
            ("[topology]", "[topology]\nkind = \"dumbbell\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\n"),
            ("[[traffic]]", "[[traffic]]\nname = \"ftp\"\nkind = \"bulk\"\nrtt = \"80ms\"\n"),
        ] {
            if !example.contains(key) {
                text += line;
            }
        }
        if let Err(error) = parse(&(text + example), "docs/scenario.md") {
            panic!("{error}\n{example}");
        }
        examples += 1;
    }
    assert!(examples >= 5, "{examples} examples");
}
