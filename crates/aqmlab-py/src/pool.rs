//! Many runs on a few threads.
//!
//! A run is one thread from begin to end and shares nothing with others, so results do not depend on how many
//! threads there are. They are handed back in the order of the jobs, not of their ends.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use aqmlab_network::wants_request_rows;
use aqmlab_qdisc::Registry;
use aqmlab_recording::capture::{Capture, PortCapture};
use aqmlab_recording::{RecordingError, Staged, TableWriter, schema};
use aqmlab_scenario::Plan;
use aqmlab_sim::{Control, RunError, RunFiles, captured_ports};
use pyo3::prelude::*;

/// How often the caller is told how far the runs are.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// One run to do.
pub(crate) struct Job<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) seed: u64,
    /// Where its recording goes.
    pub(crate) path: PathBuf,
    /// Which ports' packets go into it.
    pub(crate) capture: Option<CaptureChoice>,
}

/// Ports to capture.
pub(crate) struct CaptureChoice {
    /// Indices of the links.
    pub(crate) links: Vec<usize>,
    /// Bytes of each packet.
    pub(crate) snap: u32,
}

/// What became of a job.
pub(crate) enum Outcome {
    /// Its recording is on the disk.
    Finished {
        /// seconds
        wall_s: f64,
        /// seconds of processor time, the writing included
        cpu_s: f64,
        /// events that the simulator processed
        events: u64,
    },
    /// The simulator gave up.
    Failed(RunError),
    /// The recording could not be written.
    Unwritten(RecordingError),
    /// A defect of the program: the panic's text.
    Panicked(String),
    /// It was not begun, or was cut short, because the caller wanted no more.
    Cancelled,
}

impl Outcome {
    /// Is it pointless to try the other jobs: would they meet the same limit of this machine?
    fn is_final(&self) -> bool {
        match self {
            Outcome::Unwritten(error) | Outcome::Failed(RunError::File(error)) => error.is_host_limit(),
            Outcome::Failed(error) => matches!(error, RunError::Memory { .. }),
            _ => false,
        }
    }
}

/// How far the runs are.
pub(crate) struct Progress {
    pub(crate) runs_done: usize,
    pub(crate) runs_total: usize,
    pub(crate) events: u64,
    pub(crate) sim_done_ns: u64,
    pub(crate) sim_total_ns: u64,
}

/// Does all jobs on `threads` threads. `tick` is called about ten times a second; when it returns `false`, the
/// runs in progress are cut short and the rest is not begun.
pub(crate) fn run_all(
    jobs: &[Job<'_>],
    threads: usize,
    memory_cap: u64,
    mut tick: impl FnMut(&Progress) -> bool,
) -> Vec<Outcome> {
    let controls: Vec<Control> = jobs.iter().map(|_| control(memory_cap)).collect();
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let mut outcomes: Vec<Outcome> = jobs.iter().map(|_| Outcome::Cancelled).collect();
    let mut runs_done = 0;
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            let sender = sender.clone();
            let (next, stop, controls) = (&next, &stop, &controls);
            scope.spawn(move || {
                while let Some((index, job)) = take(jobs, next, stop) {
                    let outcome = run_one(job, &controls[index]);
                    if sender.send((index, outcome)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let cancel = || {
            stop.store(true, Ordering::Relaxed);
            controls.iter().for_each(|control| control.cancel.store(true, Ordering::Relaxed));
        };
        loop {
            match receiver.recv_timeout(TICK) {
                Ok((index, outcome)) => {
                    if outcome.is_final() {
                        cancel();
                    }
                    runs_done += 1;
                    outcomes[index] = outcome;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !tick(&progress(jobs, &controls, runs_done)) {
                cancel();
            }
        }
    });
    outcomes
}

fn control(memory_cap: u64) -> Control {
    let control = Control::default();
    control.memory_cap.store(memory_cap, Ordering::Relaxed);
    control
}

fn take<'j, 'p>(jobs: &'j [Job<'p>], next: &AtomicUsize, stop: &AtomicBool) -> Option<(usize, &'j Job<'p>)> {
    if stop.load(Ordering::Relaxed) {
        return None;
    }
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, jobs.get(index)?))
}

fn run_one(job: &Job<'_>, control: &Control) -> Outcome {
    let begun_s = thread_time_s();
    // Whatever a defect leaves half changed is dropped with the run.
    let result = catch_unwind(AssertUnwindSafe(|| record(job, control)));
    match result {
        Ok(Ok(wall_s)) => Outcome::Finished {
            wall_s,
            cpu_s: thread_time_s() - begun_s,
            events: control.events.load(Ordering::Relaxed),
        },
        Ok(Err(outcome)) => outcome,
        Err(panic) => Outcome::Panicked(panic_text(panic.as_ref())),
    }
}

/// Runs, and puts the recording on the disk; captured packets and rows of requests are written there while the run goes on.
/// Returns the seconds that the run has taken, or what has become of it instead.
fn record(job: &Job<'_>, control: &Control) -> Result<f64, Outcome> {
    let rows = wants_request_rows(job.plan);
    if job.capture.is_none() && !rows {
        let recording = aqmlab_sim::run(job.plan, job.seed, control).map_err(unfinished)?;
        recording.write(&job.path).map_err(Outcome::Unwritten)?;
        return Ok(recording.manifest.wall_s);
    }
    let mut staged = Staged::create(&job.path).map_err(Outcome::Unwritten)?;
    let mut begin = || {
        let capture = match &job.capture {
            Some(CaptureChoice { links, snap }) => {
                let file = Capture::begin(&mut staged, &captured_ports(job.plan, links), *snap)?;
                Some(PortCapture { links: links.clone(), file })
            }
            None => None,
        };
        let requests = rows.then(|| TableWriter::begin(&mut staged, &schema::REQUESTS)).transpose()?;
        Ok(RunFiles { capture, requests })
    };
    let files = begin().map_err(Outcome::Unwritten)?;
    let recording =
        aqmlab_sim::run_into(job.plan, job.seed, control, &Registry::builtin(), files).map_err(unfinished)?;
    recording.write_staged(staged).map_err(Outcome::Unwritten)?;
    Ok(recording.manifest.wall_s)
}

fn unfinished(error: RunError) -> Outcome {
    match error {
        RunError::Cancelled => Outcome::Cancelled,
        error => Outcome::Failed(error),
    }
}

/// Processor time of this thread; 0 where the system does not tell it.
fn thread_time_s() -> f64 {
    Python::attach(|py| py.import("time")?.call_method0("thread_time")?.extract()).unwrap_or(0.0)
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no reason given").to_owned()
}

fn progress(jobs: &[Job<'_>], controls: &[Control], runs_done: usize) -> Progress {
    let end = |job: &Job<'_>| job.plan.stop.at.as_ns();
    Progress {
        runs_done,
        runs_total: jobs.len(),
        events: controls.iter().map(|c| c.events.load(Ordering::Relaxed)).sum(),
        sim_done_ns: controls.iter().map(|c| c.sim_time_ns.load(Ordering::Relaxed)).sum(),
        sim_total_ns: jobs.iter().map(end).fold(0, u64::saturating_add),
    }
}
