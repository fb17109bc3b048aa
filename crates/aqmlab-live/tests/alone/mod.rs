//! Cases that need a process to themselves: a user namespace takes one with a single thread.
//!
//! The test binary calls itself once for each case and user. A machine that refuses namespaces skips the cases, and says why.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use aqmlab_live::LiveError;

/// A case, and its name.
pub type Case = (&'static str, fn() -> Result<(), LiveError>);

/// What automake calls a skipped test.
const SKIPPED: i32 = 77;
/// An ordinary user who owns nothing.
const NOBODY: u32 = 65_534;

/// Runs the cases whose name the command line gives a part of, or all; or the one that this process was started for.
pub fn main(cases: &[Case]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name] = &arguments[..]
        && flag == "--alone"
    {
        return alone(cases, name);
    }
    let wanted = |name: &str| arguments.iter().filter(|a| !a.starts_with('-')).all(|a| name.contains(a));
    let users = if rustix::process::geteuid().is_root() { &[None, Some(NOBODY)][..] } else { &[None] };
    let mut failed = 0;
    for (name, _) in cases.iter().filter(|(name, _)| wanted(name)) {
        for user in users {
            let who = user.map_or("this user", |_| "nobody");
            let code = run(name, *user);
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

/// Runs a case in a process of its own.
fn run(name: &str, user: Option<u32>) -> Option<i32> {
    let mut command = Command::new(std::env::current_exe().expect("a process knows its program"));
    command.args(["--alone", name]);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command.status().expect("a program can be started again").code()
}

fn alone(cases: &[Case], name: &str) -> ExitCode {
    let (_, case) = cases.iter().find(|(case, _)| *case == name).expect("the case has a name");
    match case() {
        Ok(()) => ExitCode::SUCCESS,
        Err(LiveError::Machine { what, remedy }) => {
            println!("{name}: skipped, for {what}; {remedy}");
            ExitCode::from(SKIPPED as u8)
        }
        Err(error) => panic!("{error}"),
    }
}
