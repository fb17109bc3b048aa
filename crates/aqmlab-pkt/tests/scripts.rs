//! Runs our own scripts, each of which tests a rule of an RFC, and the kernel's if they are here.

use std::path::{Path, PathBuf};

use aqmlab_pkt::{Cause, run};

fn scripts(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder exists");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "pkt"));
    files.sort();
    files
}

fn outcome(file: &Path) -> Result<aqmlab_pkt::Report, aqmlab_pkt::Failure> {
    run(&std::fs::read_to_string(file).expect("it can be read"), file.parent(), "linux")
}

#[test]
fn endpoints_follow_each_rule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let files = scripts(&folder);
    assert!(files.len() > 15, "{} scripts", files.len());
    let failed: Vec<String> = files
        .iter()
        .filter_map(|file| outcome(file).err().map(|failure| format!("{}:{failure}", file.display())))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A script with one number changed must fail: each line is compared.
#[test]
fn a_changed_expectation_fails() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    for file in scripts(&folder) {
        let text = std::fs::read_to_string(&file).expect("it can be read");
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let Some((before, after)) = line.split_once("> ").filter(|_| line.starts_with(['+', '0'])) else {
                continue;
            };
            let Some((flags, rest)) = after.split_once(':') else { continue };
            let seq = flags.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
            let Ok(first) = flags[seq..].parse::<u32>() else { continue };
            let Some((end, rest)) = rest.split_once('(') else { continue };
            let end: u32 = end.parse().expect("a number");
            let changed = format!("{before}> {}{}:{}({rest}", &flags[..seq], first + 1, end + 1);
            let mut lines = lines.clone();
            lines[number] = &changed;
            let failure = run(&lines.join("\n"), file.parent(), "linux").expect_err(&changed);
            assert_eq!(failure.line, number + 1, "{}: {changed}: {failure}", file.display());
        }
    }
}

/// The kernel's scripts that pass, by name; the reasons of the others are in `docs/pkt.md`.
const PASSING: &str = include_str!("passing.txt");

#[test]
fn as_many_of_the_kernels_scripts_pass_as_the_page_says() {
    let Some(folder) = std::env::var_os("AQMLAB_PACKETDRILL") else { return };
    let mut passing = Vec::new();
    for file in scripts(Path::new(&folder)) {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        match outcome(&file) {
            Ok(_) => passing.push(name),
            Err(failure) => {
                assert!(!matches!(failure.cause, Cause::Syntax(_)), "{name}:{failure}");
            }
        }
    }
    passing.sort();
    let listed: Vec<&str> = PASSING.lines().collect();
    assert_eq!(passing, listed, "`passing.txt` lists the scripts that pass, in order");
}
