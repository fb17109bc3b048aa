//! Live runs, called from Python with the interpreter lock released and Ctrl-C handled.
//!
//! These functions must be called in a separate process with a single thread: they leave the
//! namespace in which the process was started.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use aqmlab_live::machine::Machine;
use aqmlab_live::{LiveError, LiveRun, Options, ProgramSetup, RunProgress, Terminal};
use aqmlab_recording::RecordingError as NotWritten;
use aqmlab_recording::capture::{DEFAULT_SNAP, FILE_NAME, PortCapture};
use aqmlab_scenario::{Plan, Problem, ScenarioError, Traffic};
use aqmlab_storage::{Capture, Staged, put_in};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::errors::{DisciplineError, HostError, PythonRunError, RecordingError, UsageError, scenario_error};
use crate::runs::{captured_links, check_arms, one_case};

pub(crate) const ENGINE: Option<aqmlab_network::Engine> = Some(aqmlab_live::ENGINE);

/// Executes one live run of the arm called `arm` with this seed, and writes its recording to
/// `out_path`, which must not exist. Returns the duration and the verdict as JSON text. An
/// interrupted run leaves a recording marked as interrupted.
#[pyfunction]
#[pyo3(signature = (toml, file_name, arm, seed, out_path, force=false, pcap=Vec::new(), pcap_bytes=DEFAULT_SNAP, terminal=None, foreground=false, progress=None))]
#[allow(clippy::too_many_arguments)] // keyword arguments of a Python function
pub(crate) fn live_run(
    py: Python<'_>,
    toml: &str,
    file_name: &str,
    arm: &str,
    seed: u64,
    out_path: PathBuf,
    force: bool,
    pcap: Vec<String>,
    pcap_bytes: u32,
    terminal: Option<[i32; 3]>,
    foreground: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let experiment = one_case(py, toml, file_name)?;
    check_arms(&experiment, &[arm])?;
    let plan = experiment.arms.iter().find(|plan| plan.arm == arm).expect("the arm exists");
    let links = if pcap.is_empty() { Vec::new() } else { captured_links(plan, &pcap)? };
    // A path that cannot be written should fail before the run, not after it.
    let mut staged = Staged::create(&out_path).map_err(|error| not_written(&error))?;
    let capture = begin_capture(plan, links, pcap_bytes, &mut staged).map_err(|error| not_written(&error))?;
    let programs = programs(plan, file_name, terminal, foreground, &staged)?;
    let (machine, begun) = (Machine::this(), begin());
    let before = machine.processor_time();
    let options = Options { force, ..Options::default() };
    let (outcome, interrupted) = watched(py, progress.as_ref(), |told, cancel| match (programs, capture) {
        (Some(programs), capture) => {
            aqmlab_live::live_programs(plan, seed, &options, capture, programs, told, cancel)
        }
        (None, Some(capture)) => aqmlab_live::live_captured(plan, seed, &options, capture, told, cancel),
        (None, None) => aqmlab_live::live(plan, seed, &options, told, cancel),
    });
    let failed = |error: &LiveError| match error {
        LiveError::TcRefuses { link, .. } => refused_by_tc(py, plan, *link, error, file_name),
        _ => python_error(error),
    };
    let written = outcome.map_err(|error| failed(&error)).and_then(|mut run| {
        if let Some(live) = &mut run.recording.manifest.live {
            live.machine = Some(machine.facts(before));
        }
        save(&mut run, staged).map_err(|error| not_written(&error))?;
        Ok(json!({"wall_s": begun.elapsed().as_secs_f64(), "verdict": run.faithfulness.to_string()})
            .to_string())
    });
    match interrupted {
        Some(error) => Err(error),
        None => written,
    }
}

/// Returns what the programs of a plan need, or `None` if it has none. `terminal` contains the descriptors of the
/// standard streams of the program that a user has started directly.
fn programs(
    plan: &Plan,
    file_name: &str,
    terminal: Option<[i32; 3]>,
    foreground: bool,
    staged: &Staged,
) -> PyResult<Option<ProgramSetup>> {
    if !plan.classes.iter().any(|class| matches!(class.traffic, Traffic::Program(_))) {
        return Ok(None);
    }
    let output = staged.directory("programs").map_err(|error| not_written(&error))?;
    let copied = |streams: [i32; 3]| -> io::Result<Terminal> {
        let [input, output, error] = streams.map(aqmlab_live::copy_of);
        Ok(Terminal { streams: [input?, output?, error?], foreground })
    };
    let terminal = terminal.map(copied).transpose()?;
    // A program that a user has started directly is named as the user would name it.
    let home = match (&terminal, Path::new(file_name).parent()) {
        (None, Some(parent)) => std::path::absolute(parent).unwrap_or_default(),
        _ => PathBuf::new(),
    };
    Ok(Some(ProgramSetup { output, home, terminal }))
}

/// Writes the recording. If the captured packets take up the disk space that the tables need, the
/// capture is discarded, because the tables contain the measurements, which are the purpose of the
/// run and cannot be repeated.
fn save(run: &mut LiveRun, mut staged: Staged) -> Result<(), NotWritten> {
    if let Err(error) = put_in(&run.recording, &mut staged) {
        if !error.is_host_limit() || !staged.give_up(FILE_NAME) {
            return Err(error);
        }
        run.give_up_capture(&error);
        put_in(&run.recording, &mut staged)?;
    }
    staged.publish()
}

/// Begins the file for packets captured at these links, or returns `None` if there are no links.
fn begin_capture(
    plan: &Plan,
    links: Vec<usize>,
    snap: u32,
    staged: &mut Staged,
) -> Result<Option<PortCapture>, NotWritten> {
    if links.is_empty() {
        return Ok(None);
    }
    let file = Capture::begin(staged, &aqmlab_sim::captured_ports(plan, &links), snap)?;
    Ok(Some(PortCapture { links, file: Box::new(file) }))
}

/// Returns how punctual live runs are on this machine, as JSON text; takes five seconds.
#[pyfunction]
#[pyo3(signature = (progress=None))]
pub(crate) fn live_selftest(py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let (found, interrupted) =
        watched(py, progress.as_ref(), |told, cancel| aqmlab_live::selftest(told, cancel));
    match interrupted {
        Some(error) => Err(error),
        None => found.map(|found| found.to_json().to_string()).map_err(|error| python_error(&error)),
    }
}

/// Returns, as JSON text, what this machine has and lacks for live runs.
#[pyfunction]
pub(crate) fn doctor(py: Python<'_>) -> String {
    py.detach(|| aqmlab_live::doctor::examine().to_json().to_string())
}

#[allow(clippy::disallowed_methods)] // the duration of a run on this machine is not part of its result
fn begin() -> Instant {
    Instant::now()
}

/// Runs `work` without the interpreter lock, and acquires the lock for each progress report. An
/// exception that Python raises during such a report stops `work`.
fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(&RunProgress), &AtomicBool) -> Result<T, LiveError> + Send,
) -> (Result<T, LiveError>, Option<PyErr>) {
    let cancel = AtomicBool::new(false);
    let mut raised = None;
    let outcome = py.detach(|| {
        let mut told = |now: &RunProgress| {
            if raised.is_none()
                && let Err(error) = Python::attach(|py| tell(py, progress, now))
            {
                raised = Some(error);
                cancel.store(true, Ordering::Relaxed);
            }
        };
        work(&mut told, &cancel)
    });
    (outcome, raised)
}

fn tell(py: Python<'_>, callback: Option<&Py<PyAny>>, now: &RunProgress) -> PyResult<()> {
    py.check_signals()?;
    let Some(callback) = callback else { return Ok(()) };
    let dict = PyDict::new(py);
    dict.set_item("phase", now.phase.name())?;
    dict.set_item("done_s", now.done.as_secs_f64())?;
    dict.set_item("total_s", now.total.as_secs_f64())?;
    dict.set_item("lateness_max_s", now.lateness_max.as_secs_f64())?;
    callback.call1(py, (dict,)).map(|_| ())
}

/// Converts tc's refusal of a queue into an error in the scenario, at the place that defines the queue.
fn refused_by_tc(py: Python<'_>, plan: &Plan, link: usize, error: &LiveError, file_name: &str) -> PyErr {
    let place = plan.links[link].only_live.clone();
    let problems = place.map(|place| Problem { message: error.to_string(), ..place }).into_iter().collect();
    scenario_error(py, &ScenarioError { file: file_name.to_owned(), problems })
}

fn python_error(error: &LiveError) -> PyErr {
    let text = error.to_string();
    match error.kind() {
        "scenario" => UsageError::new_err(text),
        "machine" => HostError::new_err(text),
        "discipline" => DisciplineError::new_err(text),
        _ => PythonRunError::new_err(text),
    }
}

fn not_written(error: &NotWritten) -> PyErr {
    if error.is_host_limit() {
        HostError::new_err(error.to_string())
    } else {
        RecordingError::new_err(error.to_string())
    }
}
