//! One simulated run in its own thread, observed while it runs.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use aqmlab_network::wants_request_rows;
use aqmlab_qdisc::Registry;
use aqmlab_recording::capture::PortCapture;
use aqmlab_recording::{RecordingError, schema};
use aqmlab_scenario::Plan;
use aqmlab_sim::{Control, RunError, RunFiles, captured_ports};
use aqmlab_storage::{Capture, Staged};
use pyo3::prelude::*;

/// Interval of progress reports to the caller.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// The run to execute.
pub(crate) struct Job<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) seed: u64,
    /// Destination of its recording.
    pub(crate) path: PathBuf,
    /// The ports whose packets it captures.
    pub(crate) capture: Option<CaptureChoice>,
}

/// Ports to capture.
pub(crate) struct CaptureChoice {
    /// Indices of the links.
    pub(crate) links: Vec<usize>,
    /// Number of bytes to capture per packet.
    pub(crate) snap: u32,
}

/// The outcome of a run.
pub(crate) enum Outcome {
    /// The run's recording is on disk.
    Finished {
        /// seconds
        wall_s: f64,
        /// seconds of processor time, including the time for writing
        cpu_s: f64,
        /// events that the simulator processed
        events: u64,
    },
    /// The simulator failed.
    Failed(RunError),
    /// The recording could not be written.
    Unwritten(RecordingError),
    /// The program has a defect; this is the panic's text.
    Panicked(String),
    /// The run was cancelled at the caller's request.
    Cancelled,
}

/// The progress of a run.
pub(crate) struct Progress {
    pub(crate) events: u64,
    pub(crate) sim_done_ns: u64,
    pub(crate) sim_total_ns: u64,
}

/// Executes a run. `tick` is called about ten times per second and at the end; when it returns
/// `false`, the run is cancelled.
pub(crate) fn run_watched(
    job: &Job<'_>,
    memory_cap: u64,
    mut tick: impl FnMut(&Progress) -> bool,
) -> Outcome {
    let control = Control { clock, ..Control::default() };
    control.memory_cap.store(memory_cap, Ordering::Relaxed);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        // A caller that has returned does not need the outcome.
        scope.spawn(|| sender.send(run_one(job, &control)).ok());
        loop {
            let ended = receiver.recv_timeout(TICK);
            if !tick(&progress(job, &control)) {
                control.cancel.store(true, Ordering::Relaxed);
            }
            match ended {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    unreachable!("the thread sends an outcome before it ends")
                }
            }
        }
    })
}

fn run_one(job: &Job<'_>, control: &Control) -> Outcome {
    let begun_s = thread_time_s();
    // Data that a panic leaves inconsistent is dropped with the run.
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

/// The clock of this machine, for the duration that labels a recording.
#[allow(clippy::disallowed_methods)] // the duration of a run on this machine is not part of its result
fn clock() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// Executes the run and writes its recording; captured packets and rows of requests are written during
/// the run. Returns the duration of the run in seconds, or its outcome if it failed.
fn record(job: &Job<'_>, control: &Control) -> Result<f64, Outcome> {
    let rows = wants_request_rows(job.plan);
    if job.capture.is_none() && !rows {
        let recording = aqmlab_sim::run(job.plan, job.seed, control).map_err(unfinished)?;
        aqmlab_storage::write(&recording, &job.path).map_err(Outcome::Unwritten)?;
        return Ok(recording.manifest.wall_s);
    }
    let mut staged = Staged::create(&job.path).map_err(Outcome::Unwritten)?;
    let mut begin = || {
        let capture = match &job.capture {
            Some(CaptureChoice { links, snap }) => {
                let file = Capture::begin(&mut staged, &captured_ports(job.plan, links), *snap)?;
                Some(PortCapture { links: links.clone(), file: Box::new(file) })
            }
            None => None,
        };
        let requests = rows.then(|| aqmlab_storage::table_in(&mut staged, &schema::REQUESTS)).transpose()?;
        Ok(RunFiles { capture, requests, ..RunFiles::default() })
    };
    let files = begin().map_err(Outcome::Unwritten)?;
    let recording =
        aqmlab_sim::run_into(job.plan, job.seed, control, &Registry::builtin(), files).map_err(unfinished)?;
    aqmlab_storage::write_staged(&recording, staged).map_err(Outcome::Unwritten)?;
    Ok(recording.manifest.wall_s)
}

fn unfinished(error: RunError) -> Outcome {
    match error {
        RunError::Cancelled => Outcome::Cancelled,
        error => Outcome::Failed(error),
    }
}

/// Returns the processor time of this thread, or 0 where the system does not report it.
fn thread_time_s() -> f64 {
    Python::attach(|py| py.import("time")?.call_method0("thread_time")?.extract()).unwrap_or(0.0)
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no reason given").to_owned()
}

fn progress(job: &Job<'_>, control: &Control) -> Progress {
    Progress {
        events: control.events.load(Ordering::Relaxed),
        sim_done_ns: control.sim_time_ns.load(Ordering::Relaxed),
        sim_total_ns: job.plan.stop.at.as_ns(),
    }
}
