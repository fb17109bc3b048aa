//! Cases that each need a separate process, because only a process with a single thread can create a user
//! namespace.
//!
//! The test binary starts itself once for each case and user. On a machine that does not permit
//! namespaces, the cases are skipped and the reason is reported.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use aqmlab_live::LiveError;

/// The name of a case, and the function that runs it.
pub type Case = (&'static str, fn() -> Result<(), LiveError>);

/// The exit code of a skipped test in automake.
const SKIPPED: i32 = 77;
/// An ordinary user without privileges.
const NOBODY: u32 = 65_534;

/// Runs the one case for which this process was started. If it was started for no particular case, runs all
/// cases whose names contain the arguments of the command line.
pub fn main(cases: &[Case]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name] = &arguments[..]
        && flag == "--alone"
    {
        return alone(cases, name);
    }
    let wanted = |name: &str| arguments.iter().filter(|a| !a.starts_with('-')).all(|a| name.contains(a));
    let is_root = rustix::process::geteuid().is_root();
    let mut failed = 0;
    for (number, (name, _)) in cases.iter().enumerate().filter(|(_, (name, _))| wanted(name)) {
        // All cases run as an ordinary user. Only the first case also runs as root, because root differs only
        // in that it needs no user namespace.
        let users: &[Option<u32>] = match (is_root, number) {
            (true, 0) => &[None, Some(NOBODY)],
            (true, _) => &[Some(NOBODY)],
            (false, _) => &[None],
        };
        for user in users {
            let (who, code) = run(name, *user);
            let what = match code {
                Some(0) => "ok",
                Some(SKIPPED) => "skipped",
                _ => "FAILED",
            };
            println!("{name} as {who}: {what}");
            failed += u32::from(what == "FAILED");
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a case in a separate process, as another user if that user may run this program; returns the user and
/// the outcome.
fn run(name: &str, user: Option<u32>) -> (&'static str, Option<i32>) {
    let program = std::env::current_exe().expect("a process knows its executable");
    let mut command = Command::new(&program);
    command.args(["--alone", name]);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    match (command.status(), user) {
        (Ok(status), None) => ("this user", status.code()),
        (Ok(status), Some(_)) => ("nobody", status.code()),
        (Err(error), Some(_)) if error.kind() == ErrorKind::PermissionDenied => run(name, None),
        (Err(error), _) => panic!("{}: {error}", program.display()),
    }
}

fn alone(cases: &[Case], name: &str) -> ExitCode {
    let (_, case) = cases.iter().find(|(case, _)| *case == name).expect("the case has a name");
    match case() {
        Ok(()) => ExitCode::SUCCESS,
        Err(LiveError::Machine { what, remedy }) => {
            // Without this check, a defect that prevents every run would be mistaken for a limitation of the
            // machine.
            let diagnosis = aqmlab_live::doctor::examine();
            assert!(!diagnosis.can_run(), "the doctor finds no fault here, but: {what}; {remedy}");
            println!("{name}: skipped because {what}; {remedy}");
            ExitCode::from(SKIPPED as u8)
        }
        Err(error) => panic!("{error}"),
    }
}
