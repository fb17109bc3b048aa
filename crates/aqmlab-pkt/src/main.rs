//! `aqmlab-pkt FILE...`: runs packetdrill scripts over the endpoints of aqmlab.

use std::path::Path;
use std::process::ExitCode;

use aqmlab_pkt::{Cause, run};

const USAGE: &str = "usage: aqmlab-pkt [--profile NAME] [--verbose] FILE...";

fn main() -> ExitCode {
    let (mut profile, mut verbose, mut files) = ("linux".to_owned(), false, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--verbose" => verbose = true,
            "--profile" => match args.next() {
                Some(name) => profile = name,
                None => return usage(),
            },
            "--help" => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            _ if arg.starts_with("--") => return usage(),
            _ => files.push(arg),
        }
    }
    if files.is_empty() {
        return usage();
    }
    let (mut passed, mut unsupported) = (0, 0);
    for file in &files {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::from(2);
            }
        };
        match run(&text, Path::new(file).parent(), &profile) {
            Ok(report) => {
                passed += 1;
                println!("{file}: passed");
                for (line, text) in report.unread.iter().filter(|_| verbose) {
                    println!("{file}:{line}: not read: {text}");
                }
            }
            Err(failure) => {
                unsupported += usize::from(matches!(failure.cause, Cause::Unsupported(_)));
                println!("{file}:{failure}");
            }
        }
    }
    println!("{passed} of {} passed, {unsupported} not supported", files.len());
    if passed == files.len() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
