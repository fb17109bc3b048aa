//! Simulated runs, called from Python with the interpreter lock released and Ctrl-C handled.

use std::path::PathBuf;

use aqmlab_recording::capture::DEFAULT_SNAP;
use aqmlab_scenario::{Experiment, Plan, ScenarioError};
use aqmlab_sim::RunError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::errors::{HostError, MemoryCapError, PythonRunError, RecordingError, UsageError, scenario_error};
use crate::plans::sweep;
use crate::pool::{CaptureChoice, Job, Outcome, Progress, run_watched};

/// Executes one run of the arm called `arm` with this seed. Writes its recording to `out_path`, which
/// must not exist. The recording includes up to `pcap_bytes` bytes of each packet at the ports
/// named in `pcap`. Returns the cost of the run as JSON text.
#[pyfunction]
#[pyo3(signature = (
    toml, file_name, arm, seed, out_path, memory_cap=0, progress=None, pcap=Vec::new(), pcap_bytes=DEFAULT_SNAP
))]
#[allow(clippy::too_many_arguments)] // keyword arguments of a Python function
pub(crate) fn run_one(
    py: Python<'_>,
    toml: &str,
    file_name: &str,
    arm: &str,
    seed: u64,
    out_path: PathBuf,
    memory_cap: u64,
    progress: Option<Py<PyAny>>,
    pcap: Vec<String>,
    pcap_bytes: u32,
) -> PyResult<String> {
    let experiment = one_case(py, toml, file_name)?;
    check_arms(&experiment, &[arm])?;
    let plan = experiment.arms.iter().find(|plan| plan.arm == arm).expect("the arm exists");
    refuse_only_live(py, [plan], file_name)?;
    let capture = if pcap.is_empty() {
        None
    } else {
        Some(CaptureChoice { links: captured_links(plan, &pcap)?, snap: pcap_bytes })
    };
    let job = Job { plan, seed, path: out_path, capture };
    let mut interrupted = None;
    let outcome = py.detach(|| {
        run_watched(&job, memory_cap, |now| {
            if interrupted.is_none() {
                interrupted = Python::attach(|py| tell(py, progress.as_ref(), now)).err();
            }
            interrupted.is_none()
        })
    });
    match interrupted {
        Some(error) => Err(error),
        None => took(outcome, &format!("arm `{arm}`, seed {seed}")),
    }
}

/// Returns the experiment of a scenario that is not a sweep.
pub(crate) fn one_case(py: Python<'_>, text: &str, file_name: &str) -> PyResult<Experiment> {
    let sweep = sweep(py, text, file_name)?;
    if sweep.axes().next().is_some() {
        return Err(UsageError::new_err(format!(
            "`{file_name}` has a [sweep] of {} cases; run it with `aqmlab sweep`",
            sweep.cases()
        )));
    }
    Ok(sweep.experiment())
}

/// Returns the scenario's errors if it uses features that the simulator lacks.
pub(crate) fn refuse_only_live<'p>(
    py: Python<'_>,
    plans: impl IntoIterator<Item = &'p Plan>,
    file_name: &str,
) -> PyResult<()> {
    let mut problems: Vec<_> = plans.into_iter().flat_map(Plan::only_live).cloned().collect();
    problems.sort_by(|a, b| (a.line, a.column, &a.path).cmp(&(b.line, b.column, &b.path)));
    problems.dedup();
    if problems.is_empty() {
        return Ok(());
    }
    Err(scenario_error(py, &ScenarioError { file: file_name.to_owned(), problems }))
}

/// Returns the links with these names, or all links if the name is `all`.
pub(crate) fn captured_links(plan: &Plan, names: &[String]) -> PyResult<Vec<usize>> {
    if names == ["all"] {
        return Ok((0..plan.links.len()).collect());
    }
    let index = |name: &String| {
        plan.links.iter().position(|link| link.name == *name).ok_or_else(|| {
            let known: Vec<_> = plan.links.iter().map(|link| format!("`{}`", link.name)).collect();
            UsageError::new_err(format!(
                "there is no port `{name}` in arm `{}`; the ports are {}, or `all`",
                plan.arm,
                known.join(", ")
            ))
        })
    };
    let mut links = names.iter().map(index).collect::<PyResult<Vec<_>>>()?;
    links.sort_unstable();
    links.dedup();
    Ok(links)
}

/// Checks that all of `arms` are arms of the experiment.
pub(crate) fn check_arms<A: AsRef<str>>(experiment: &Experiment, arms: &[A]) -> PyResult<()> {
    let names: Vec<_> = experiment.arms.iter().map(|plan| plan.arm.as_str()).collect();
    let Some(unknown) = arms.iter().find(|arm| !names.contains(&arm.as_ref())) else { return Ok(()) };
    let known: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let message = format!("there is no arm `{}`; the arms are {}", unknown.as_ref(), known.join(", "));
    Err(UsageError::new_err(message))
}

/// Lets Python handle its signals, and reports the progress of the runs.
fn tell(py: Python<'_>, callback: Option<&Py<PyAny>>, now: &Progress) -> PyResult<()> {
    py.check_signals()?;
    let Some(callback) = callback else { return Ok(()) };
    let dict = PyDict::new(py);
    dict.set_item("events", now.events)?;
    dict.set_item("done_s", now.sim_done_ns as f64 / 1e9)?;
    dict.set_item("total_s", now.sim_total_ns as f64 / 1e9)?;
    callback.call1(py, (dict,)).map(|_| ())
}

/// Returns the cost of a run as JSON text, or the exception that explains why it has no recording.
fn took(outcome: Outcome, run: &str) -> PyResult<String> {
    match outcome {
        Outcome::Finished { wall_s, cpu_s, events } => {
            Ok(json!({"wall_s": wall_s, "cpu_s": cpu_s, "events": events}).to_string())
        }
        Outcome::Failed(RunError::File(error)) | Outcome::Unwritten(error) if error.is_host_limit() => {
            Err(HostError::new_err(error.to_string()))
        }
        Outcome::Failed(RunError::File(error)) | Outcome::Unwritten(error) => {
            Err(RecordingError::new_err(error.to_string()))
        }
        Outcome::Failed(error @ RunError::Memory { .. }) => Err(MemoryCapError::new_err(error.to_string())),
        Outcome::Failed(error) => Err(PythonRunError::new_err(format!("{run}: {error}"))),
        Outcome::Panicked(text) => Err(PythonRunError::new_err(format!("{run}: a defect of aqmlab: {text}"))),
        Outcome::Cancelled => unreachable!("the caller that cancels the run raises its own error"),
    }
}
