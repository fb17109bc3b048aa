//! Programs that run in the hosts of a plan.
//!
//! One thread starts all of them. Their processes live in a PID namespace, whose first process does nothing but
//! wait: when it ends, the kernel kills every other process in the namespace, daemons included. It ends with this
//! process, however this process ends, so a run leaves no program behind.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;

use aqmlab_network::End;
use aqmlab_recording::live::ProgramReport;
use aqmlab_scenario::{Plan, Program, Ready, Traffic};
use aqmlab_units::Instant;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::namespace::Namespace;
use super::refusal;
use super::setup::Hosts;
use crate::addresses::HostId;
use crate::data_plane::Clock;
use crate::error::LiveError;
use crate::sys::{self, ChildState};

/// What programs need and a plan does not contain.
#[derive(Debug, Default)]
pub struct ProgramSetup {
    /// The directory for what programs write. It exists.
    pub output: PathBuf,
    /// The directory of the scenario: relative names of programs start here.
    pub home: PathBuf,
    /// The terminal of the clients whose end ends the run; the other programs have none.
    pub terminal: Option<Terminal>,
}

/// The standard streams of a program that a user has started directly.
#[derive(Debug)]
pub struct Terminal {
    /// Standard input, output and error.
    pub streams: [OwnedFd; 3],
    /// Whether the program becomes the terminal's foreground job, which receives Ctrl-C.
    pub foreground: bool,
}

/// How often the programs are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Descriptors below this number are left to scripts, which choose theirs freely. A program can enter the servers'
/// network namespace with one above.
const FIRST_DESCRIPTOR: i32 = 100;
/// Files of the run's directory, while it lasts, that are in the places of the machine's in the view of programs.
const HOSTS: &str = ".hosts";
const RESOLVER: &str = ".resolv.conf";

/// The programs of a run.
#[derive(Debug)]
pub struct Programs {
    thread: Option<JoinHandle<Result<Vec<ProgramReport>, LiveError>>>,
    clock: Option<Sender<Clock>>,
    shared: Arc<Shared>,
}

/// What the two threads tell each other.
#[derive(Debug, Default)]
struct Shared {
    /// All clients whose end ends the run have ended.
    over: AtomicBool,
    /// The programs must end.
    stop: AtomicBool,
    /// No program is running any more.
    gone: AtomicBool,
}

impl Programs {
    /// Starts the servers of all classes, and returns when they are ready. Returns `None` if the plan has no
    /// programs. `waits` is called again and again; if it returns false, the wait ends.
    ///
    /// # Errors
    /// If a program does not exist or cannot be started, or if a server ends or is not ready in time.
    pub fn start(
        plan: &Plan,
        seed: u64,
        hosts: &Hosts,
        setup: ProgramSetup,
        waits: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Programs>, LiveError> {
        let mut jobs = Vec::new();
        for (class, of) in plan.classes.iter().enumerate() {
            if let Traffic::Program(program) = &of.traffic
                && program.interfaces.is_none()
            {
                jobs.push(Job::new(plan, class, program, seed, hosts, &setup)?);
            }
        }
        if jobs.is_empty() {
            return Ok(None);
        }
        let (shared, (clock, starts), (ready, answers)) = (Arc::new(Shared::default()), channel(), channel());
        let crew = Crew { jobs, setup, shared: Arc::clone(&shared), running: Vec::new(), ended: Vec::new() };
        let thread = Builder::new().spawn(move || crew.run(&ready, &starts));
        let thread = thread.map_err(|error| refusal::thread("the programs", &error))?;
        let programs = Programs { thread: Some(thread), clock: Some(clock), shared };
        loop {
            match answers.recv_timeout(Duration::from_millis(20)) {
                Ok(()) => return Ok(Some(programs)),
                // The thread has ended with an error.
                Err(RecvTimeoutError::Disconnected) => return programs.finish().map(|_| None),
                Err(RecvTimeoutError::Timeout) if !waits() => {
                    programs.stop();
                    return Ok(Some(programs));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Starts the clients at their times on this clock.
    pub fn go(&self, clock: Clock) {
        if let Some(sender) = &self.clock {
            // If the thread has ended, its error is returned by `finish`.
            let _ = sender.send(clock);
        }
    }

    /// Returns whether all clients whose end ends the run have ended.
    pub fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Relaxed)
    }

    /// Asks all programs to end; those that have not ended after their grace are killed.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Returns whether no program is running any more.
    pub fn is_gone(&self) -> bool {
        self.shared.gone.load(Ordering::Relaxed)
    }

    /// Ends all programs, and returns what is known of each.
    ///
    /// # Errors
    /// If a program could not be started.
    pub fn finish(mut self) -> Result<Vec<ProgramReport>, LiveError> {
        self.stop();
        self.clock = None;
        let thread = self.thread.take().expect("it is joined once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        self.stop();
        self.clock = None;
        if let Some(thread) = self.thread.take() {
            // An error of the run itself has priority.
            let _ = thread.join();
        }
    }
}

/// The programs of a class.
struct Job {
    name: String,
    program: Program,
    /// When each client starts.
    starts: Vec<Instant>,
    stop_at: Option<Instant>,
    port: u16,
    client: Namespace,
    server: Namespace,
    /// What programs inherit of the servers' namespace.
    entrance: OwnedFd,
    /// Files in the places of others, for the clients and for the servers.
    files: [Vec<[CString; 2]>; 2],
    /// Environment of the programs.
    environment: Vec<(&'static str, String)>,
    client_command: Vec<String>,
    server_command: Option<Vec<String>>,
    /// Number of clients started so far.
    started: usize,
}

impl Job {
    fn new(
        plan: &Plan,
        class: usize,
        program: &Program,
        seed: u64,
        hosts: &Hosts,
        setup: &ProgramSetup,
    ) -> Result<Self, LiveError> {
        let of = &plan.classes[class];
        let host = |side| HostId { class, side };
        let (client, server) = (hosts.addresses.of(host(End::Client)), hosts.addresses.of(host(End::Server)));
        let environment = vec![
            ("AQMLAB_CLIENT", client.to_string()),
            ("AQMLAB_SERVER", server.to_string()),
            ("AQMLAB_PORT", of.port.to_string()),
            ("AQMLAB_SEED", seed.to_string()),
            ("AQMLAB_ARM", plan.arm.clone()),
            ("AQMLAB_OUTPUT", setup.output.display().to_string()),
        ];
        let mut starts: Vec<_> =
            of.starts(seed).into_iter().filter(|(_, client)| u64::from(*client) < program.clients).collect();
        starts.sort_unstable();
        let namespace = &hosts.of(host(End::Server)).namespace;
        let entrance = fcntl_dupfd_cloexec(namespace.descriptor(), FIRST_DESCRIPTOR)
            .map_err(|error| LiveError::io("open", "a network namespace")(error.into()))?;
        let files = files(class, program, [client, server], &setup.output)?;
        let command =
            |words: &Vec<String>| command(words, program.shell, &of.name, &setup.home, &environment);
        Ok(Job {
            name: of.name.clone(),
            program: program.clone(),
            starts: starts.into_iter().map(|(at, _)| at).collect(),
            stop_at: of.stop_at.map(|at| Instant::ZERO + at),
            port: of.port,
            client: hosts.of(host(End::Client)).namespace.again()?,
            server: namespace.again()?,
            entrance,
            files,
            client_command: command(&program.client)?,
            server_command: program.server.as_ref().map(command).transpose()?,
            environment,
            started: 0,
        })
    }
}

/// Writes the files that programs see in the places of others: names of the hosts and, with an uplink, the name server
/// of clients. Returns them and their places, for the clients and for the servers of a class.
fn files(
    class: usize,
    program: &Program,
    [client, server]: [IpAddr; 2],
    output: &Path,
) -> Result<[Vec<[CString; 2]>; 2], LiveError> {
    let write = |name: &str, place: &str, text: String| {
        let path = output.join(format!("{name}-{class}"));
        fs::write(&path, text).map_err(LiveError::io("write", path.display().to_string()))?;
        let [path, place] = [path.into_os_string().into_vec(), place.into()].map(CString::new);
        Ok::<_, LiveError>([path.expect("the path of a file"), place.expect("the path of a file")])
    };
    let (hosts, resolver) = (Path::new("/etc/hosts"), "/etc/resolv.conf");
    let known = fs::read_to_string(hosts).unwrap_or_default();
    let mut files =
        [vec![write(HOSTS, "/etc/hosts", format!("{client} client\n{server} server\n{known}"))?], vec![]];
    files[1] = files[0].clone();
    if program.uplink {
        files[0].push(write(RESOLVER, resolver, format!("nameserver {server}\n"))?);
    }
    Ok(files)
}

/// Returns a command as it is executed: with the values of its placeholders, and with the path of its program.
fn command(
    words: &[String],
    shell: bool,
    class: &str,
    home: &Path,
    environment: &[(&'static str, String)],
) -> Result<Vec<String>, LiveError> {
    let mut words: Vec<String> = words.iter().map(|word| filled(word, environment)).collect();
    if shell {
        words.splice(0..0, ["/bin/sh".to_owned(), "-c".to_owned()]);
        return Ok(words);
    }
    let name = &words[0];
    if name.contains('/') {
        let path = home.join(name);
        if !path.exists() {
            return Err(LiveError::Unsupported(format!(
                "class `{class}` runs `{name}`, but there is no file `{}`",
                path.display()
            )));
        }
        words[0] = path.display().to_string();
    } else {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&folders).any(|folder| folder.join(name).is_file()) {
            return Err(LiveError::Unsupported(format!(
                "class `{class}` runs `{name}`, but no folder of PATH contains a program of that name; install it, or write its \
                 path"
            )));
        }
    }
    Ok(words)
}

/// Returns a word with values in the places of `{server}`, `{client}`, `{port}`, `{seed}`, `{arm}` and `{output}`.
/// Other braces stay, and so do these words after `$` or `%`, where shells and formats use them.
fn filled(word: &str, environment: &[(&'static str, String)]) -> String {
    let mut filled = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find('{') {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        let value = |(name, value): &'_ (&'static str, String)| {
            let name = name.strip_prefix("AQMLAB_")?.to_ascii_lowercase();
            let after = rest[1..].strip_prefix(name.as_str())?.strip_prefix('}')?;
            Some((value.clone(), after.len()))
        };
        match environment.iter().find_map(value).filter(|_| !filled.ends_with(['$', '%'])) {
            Some((value, after)) => {
                filled.push_str(&value);
                rest = &rest[rest.len() - after..];
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// A program that is running.
struct Running {
    job: usize,
    role: &'static str,
    index: u64,
    command: Vec<String>,
    pid: Pid,
    began: Time,
    asked: bool,
}

/// A reading of a clock that no run's start changes, in nanoseconds.
type Time = u64;

fn time() -> Time {
    sys::clock_ns(libc::CLOCK_MONOTONIC)
}

/// The thread of the programs.
struct Crew {
    jobs: Vec<Job>,
    setup: ProgramSetup,
    shared: Arc<Shared>,
    running: Vec<Running>,
    ended: Vec<(Running, sys::Ended, Time)>,
}

impl Crew {
    fn run(mut self, ready: &Sender<()>, clock: &Receiver<Clock>) -> Result<Vec<ProgramReport>, LiveError> {
        let shared = Arc::clone(&self.shared);
        let _at_last = Gone(&shared);
        sys::unshare_pids().map_err(LiveError::io("make", "a PID namespace"))?;
        // When it is dropped, all programs end.
        let first =
            sys::first_process().map_err(LiveError::io("start", "the first process of a PID namespace"))?;
        let outcome = self.all(ready, clock);
        self.end(outcome.is_err());
        first.kill();
        self.collect(true)?;
        first.wait();
        for file in self.jobs.iter().flat_map(|job| &job.files[0]) {
            // A program may have removed it.
            let _ = fs::remove_file(OsStr::from_bytes(file[0].as_bytes()));
        }
        let origin = outcome?;
        Ok(self.reports(origin))
    }

    /// Runs all programs until they must end. Returns when the run began.
    fn all(&mut self, ready: &Sender<()>, clock: &Receiver<Clock>) -> Result<Time, LiveError> {
        for job in 0..self.jobs.len() {
            if self.jobs[job].server_command.is_some() {
                self.start(job, "server", 0)?;
            }
        }
        for job in 0..self.jobs.len() {
            self.wait_until_ready(job)?;
        }
        let _ = ready.send(());
        // Without a clock, the run never begins.
        let Ok(clock) = clock.recv() else { return Ok(time()) };
        let origin =
            time() + clock.until_start().as_ns() - clock.now().saturating_since(Instant::ZERO).as_ns();
        while !self.shared.stop.load(Ordering::Relaxed) {
            let now = clock.now();
            let begun = clock.until_start().is_zero();
            for job in 0..self.jobs.len() {
                while begun && self.jobs[job].starts.get(self.jobs[job].started).is_some_and(|&at| at <= now)
                {
                    let index = self.jobs[job].started;
                    self.jobs[job].started += 1;
                    self.start(job, "client", index as u64)?;
                }
                if self.jobs[job].stop_at.is_some_and(|at| at <= now) {
                    self.ask(|running| running.job == job && running.role == "client");
                }
            }
            self.collect(false)?;
            self.shared.over.store(self.is_over(), Ordering::Relaxed);
            thread::sleep(LOOK_EVERY);
        }
        Ok(origin)
    }

    /// Returns whether all clients whose end ends the run have ended.
    fn is_over(&self) -> bool {
        let mut decisive = self.jobs.iter().enumerate().filter(|(_, job)| job.program.ends_run).peekable();
        decisive.peek().is_some()
            && decisive.all(|(number, job)| {
                job.started == job.starts.len()
                    && !self.running.iter().any(|running| running.job == number && running.role == "client")
            })
    }

    fn start(&mut self, number: usize, role: &'static str, index: u64) -> Result<(), LiveError> {
        let job = &self.jobs[number];
        let (namespace, words) = match role {
            "server" => (&job.server, job.server_command.as_ref().expect("the class has a server")),
            _ => (&job.client, &job.client_command),
        };
        let named = || format!("`{}` of class `{}`", words[0], job.name);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).process_group(0).envs(job.environment.iter().cloned());
        command.env("AQMLAB_INDEX", index.to_string());
        command.env("AQMLAB_METRICS", self.setup.output.join(file_name(&job.name, role, index, "json")));
        let terminal = self.setup.terminal.as_ref().filter(|_| role == "client" && job.program.ends_run);
        match terminal {
            Some(Terminal { streams, foreground }) => {
                let stream = |stream: &OwnedFd| stream.try_clone().map(Stdio::from);
                let opened = || Ok([stream(&streams[0])?, stream(&streams[1])?, stream(&streams[2])?]);
                let [input, output, error] = opened().map_err(LiveError::io("start", named()))?;
                command.stdin(input).stdout(output).stderr(error);
                if *foreground {
                    sys::in_foreground(&mut command);
                }
            }
            None => {
                let file = |end| File::create(self.setup.output.join(file_name(&job.name, role, index, end)));
                let opened = || Ok((file("out")?, file("err")?));
                let (output, error) = opened().map_err(LiveError::io("write the output of", named()))?;
                command.stdin(Stdio::null()).stdout(output).stderr(error).current_dir(&self.setup.output);
            }
        }
        command.env("AQMLAB_SERVER_NETNS", format!("/proc/self/fd/{}", job.entrance.as_raw_fd()));
        sys::keep_open(&mut command, job.entrance.as_fd());
        sys::with_files(&mut command, job.files[usize::from(role == "server")].clone());
        namespace.enter()?;
        let child = command.spawn().map_err(LiveError::io("start", named()))?;
        let pid = Pid::from_child(&child);
        let (command, began) = (words.clone(), time());
        self.running.push(Running { job: number, role, index, command, pid, began, asked: false });
        Ok(())
    }

    fn wait_until_ready(&mut self, number: usize) -> Result<(), LiveError> {
        let job = &self.jobs[number];
        if job.server_command.is_none() {
            return Ok(());
        }
        let (program, port) = (job.program.clone(), job.port);
        let output = ["out", "err"].map(|end| self.setup.output.join(file_name(&job.name, "server", 0, end)));
        let (name, until) = (job.name.clone(), time() + program.ready_within.as_ns());
        loop {
            let is_ready = match &program.ready {
                Ready::Started => true,
                Ready::Listens => {
                    self.jobs[number].server.enter()?;
                    is_bound(Some(port))
                }
                Ready::ListensAnywhere => {
                    self.jobs[number].server.enter()?;
                    is_bound(None)
                }
                Ready::Line(text) => output.iter().any(|file| has_line(file, text)),
            };
            self.collect(false)?;
            let runs = self.running.iter().any(|running| running.job == number && running.role == "server");
            let rule = match &program.ready {
                Ready::Started => "start".to_owned(),
                Ready::Listens => format!("open port {port}"),
                Ready::ListensAnywhere => "open a port".to_owned(),
                Ready::Line(text) => format!("write a line with {text:?}"),
            };
            if !runs && program.ready != Ready::Started {
                return Err(LiveError::Program(format!(
                    "the server of class `{name}` has ended and did not {rule}{}",
                    last_line(&output)
                )));
            }
            if is_ready || self.shared.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if time() > until {
                return Err(LiveError::Program(format!(
                    "the server of class `{name}` did not {rule} within {}{}",
                    program.ready_within,
                    last_line(&output)
                )));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Sends their signal to the programs that `which` selects and that have not been asked to end.
    fn ask(&mut self, which: impl Fn(&Running) -> bool) {
        for running in self.running.iter_mut().filter(|running| !running.asked && which(running)) {
            running.asked = true;
            // A group that has just ended needs no signal.
            let _ = kill_process_group(running.pid, signal(self.jobs[running.job].program.signal));
        }
    }

    /// Asks all programs to end, and waits until they have ended or their grace is over.
    fn end(&mut self, at_once: bool) {
        self.ask(|_| true);
        let grace = |running: &Running| self.jobs[running.job].program.grace.as_ns();
        let longest = if at_once { 0 } else { self.running.iter().map(grace).max().unwrap_or(0) };
        let until = time() + longest;
        while !self.running.is_empty() && time() < until {
            thread::sleep(LOOK_EVERY);
            if self.collect(false).is_err() {
                return;
            }
        }
    }

    /// Notes which programs have ended; with `wait`, waits until all have.
    fn collect(&mut self, wait: bool) -> Result<(), LiveError> {
        let mut place = 0;
        while place < self.running.len() {
            let pid = self.running[place].pid;
            match sys::look_at_child(pid, wait).map_err(LiveError::io("wait for", "a program"))? {
                ChildState::Running => place += 1,
                ChildState::Stopped => {
                    // The network does not stop, so neither may a program.
                    let _ = kill_process(pid, Signal::CONT);
                    place += 1;
                }
                ChildState::Ended(how) => self.ended.push((self.running.remove(place), how, time())),
            }
        }
        Ok(())
    }

    fn reports(&self, origin: Time) -> Vec<ProgramReport> {
        let mut ended: Vec<_> = self.ended.iter().collect();
        ended.sort_by_key(|(running, ..)| (running.job, running.role != "server", running.index));
        let since = |at: Time| at as i64 - origin as i64;
        let report = |(running, how, at): &&(Running, sys::Ended, Time)| ProgramReport {
            class: self.jobs[running.job].name.clone(),
            role: running.role,
            index: running.index,
            command: running.command.clone(),
            start_ns: since(running.began),
            end_ns: since(*at),
            exit_code: how.code,
            signal: how.signal,
            asked_to_end: running.asked,
            user_ns: how.user.as_ns(),
            system_ns: how.system.as_ns(),
            most_resident_bytes: how.most_resident_bytes,
        };
        ended.iter().map(report).collect()
    }
}

/// When dropped, notes that no program is running any more.
struct Gone<'a>(&'a Shared);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.gone.store(true, Ordering::Relaxed);
        self.0.over.store(true, Ordering::Relaxed);
    }
}

fn signal(name: &str) -> Signal {
    match name {
        "INT" => Signal::INT,
        "HUP" => Signal::HUP,
        "QUIT" => Signal::QUIT,
        "KILL" => Signal::KILL,
        _ => Signal::TERM,
    }
}

/// The name of the file with what a program writes: `web-client-0.out`.
fn file_name(class: &str, role: &str, index: u64, end: &str) -> String {
    match role {
        "server" => format!("{class}-server.{end}"),
        _ => format!("{class}-client-{index}.{end}"),
    }
}

/// Returns whether a socket in the calling thread's network namespace is bound to this port, or to any: a TCP socket that listens,
/// or a UDP socket (see proc_net_tcp in the kernel's documentation).
fn is_bound(port: Option<u16>) -> bool {
    ["tcp", "tcp6", "udp", "udp6"].into_iter().any(|table| {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        text.lines().skip(1).any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (local, state) = (words.next().unwrap_or_default(), words.nth(1));
            let bound = local.rsplit(':').next().and_then(|text| u16::from_str_radix(text, 16).ok());
            let is_port = port.is_none_or(|port| bound == Some(port));
            is_port && (table.starts_with("udp") || state == Some("0A"))
        })
    })
}

fn has_line(file: &Path, text: &str) -> bool {
    fs::read(file).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).lines().any(|line| line.contains(text)))
}

/// Returns the last line that a program has written, for a message.
fn last_line(output: &[PathBuf]) -> String {
    let last = |file: &PathBuf| {
        let bytes = fs::read(file).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned)
    };
    output.iter().rev().find_map(last).map(|line| format!("; it wrote: {}", line.trim())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_and_other_braces_stay() {
        let environment =
            [("AQMLAB_SERVER", "198.19.0.1".to_owned()), ("AQMLAB_PORT", "{server}".to_owned())];
        for (word, expected) in [
            ("http://{server}/x", "http://198.19.0.1/x"),
            ("{port}:{server}", "{server}:198.19.0.1"),
            ("%{server} ${server} {Server} {server", "%{server} ${server} {Server} {server"),
            ("%{http_code} {}", "%{http_code} {}"),
            ("é{server}é", "é198.19.0.1é"),
        ] {
            assert_eq!(filled(word, &environment), expected);
        }
    }

    #[test]
    fn a_program_that_does_not_exist_is_refused_before_the_run() {
        let refused =
            |name: &str| command(&[name.into()], false, "p", Path::new("/"), &[]).unwrap_err().to_string();
        assert!(refused("no such program").contains("no folder of PATH"));
        assert!(refused("./none").contains("no file `/./none`"));
        let shell =
            command(&["echo {}".into()], true, "p", Path::new("/"), &[]).expect("a shell runs anything");
        assert_eq!(shell, ["/bin/sh", "-c", "echo {}"]);
    }

    #[test]
    fn a_port_is_open_once_a_socket_is_bound_to_it() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        assert!(is_bound(Some(port)));
        drop(listener);
        assert!(!is_bound(Some(port)));
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        assert!(is_bound(Some(socket.local_addr().expect("its address").port())));
    }
}
