//! Runs from Python: the interpreter lock is released, Ctrl-C is heard, finished runs are kept.

use std::path::{Path, PathBuf};

use aqmlab_scenario::Experiment;
use aqmlab_sim::RunError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

use crate::errors::{HostError, RecordingError, UsageError};
use crate::plans::{parse, slugs};
use crate::pool::{Job, Outcome, Progress, run_all};

/// Runs every arm of a scenario with every seed, on `jobs` threads, and writes a recording for each to
/// `out_dir/<arm slug>/seed-<n>`. Returns what finished and what failed, as JSON text.
#[pyfunction]
#[pyo3(signature = (text, file_name, out_dir, jobs, arms=None, seeds=None, progress=None, memory_cap=0))]
#[allow(clippy::too_many_arguments)] // keyword arguments of a Python function
pub(crate) fn run(
    py: Python<'_>,
    text: &str,
    file_name: &str,
    out_dir: PathBuf,
    jobs: usize,
    arms: Option<Vec<String>>,
    seeds: Option<Vec<u64>>,
    progress: Option<Py<PyAny>>,
    memory_cap: u64,
) -> PyResult<String> {
    let experiment = parse(py, text, file_name)?;
    let jobs_to_do = job_list(&experiment, &out_dir, arms.as_deref(), seeds.as_deref())?;
    let mut interrupted = None;
    let outcomes = py.detach(|| {
        run_all(&jobs_to_do, jobs, memory_cap, |now| {
            if interrupted.is_none() {
                interrupted = Python::attach(|py| tell(py, progress.as_ref(), now)).err();
            }
            interrupted.is_none()
        })
    });
    match interrupted {
        Some(error) => Err(error),
        None => answer(&jobs_to_do, outcomes),
    }
}

/// Arms in the order of the scenario, seeds in the order asked for.
fn job_list<'e>(
    experiment: &'e Experiment,
    out_dir: &Path,
    arms: Option<&[String]>,
    seeds: Option<&[u64]>,
) -> PyResult<Vec<Job<'e>>> {
    let names: Vec<_> = experiment.arms.iter().map(|plan| plan.arm.as_str()).collect();
    if let Some(unknown) = arms.unwrap_or_default().iter().find(|arm| !names.contains(&arm.as_str())) {
        let known: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        return Err(UsageError::new_err(format!(
            "there is no arm `{unknown}`; there are {}",
            known.join(", ")
        )));
    }
    let seeds = seeds.unwrap_or(&experiment.seeds);
    let wanted = |name: &str| arms.is_none_or(|arms| arms.iter().any(|arm| arm == name));
    let mut jobs = Vec::new();
    for (slug, plan) in slugs(experiment).iter().zip(&experiment.arms).filter(|(_, plan)| wanted(&plan.arm)) {
        for &seed in seeds {
            jobs.push(Job { plan, seed, path: out_dir.join(slug).join(format!("seed-{seed}")) });
        }
    }
    Ok(jobs)
}

/// Lets Python handle its signals and hear how far the runs are.
fn tell(py: Python<'_>, callback: Option<&Py<PyAny>>, now: &Progress) -> PyResult<()> {
    py.check_signals()?;
    let Some(callback) = callback else { return Ok(()) };
    let dict = PyDict::new(py);
    dict.set_item("runs_done", now.runs_done)?;
    dict.set_item("runs_total", now.runs_total)?;
    dict.set_item("events", now.events)?;
    dict.set_item("sim_done_s", now.sim_done_ns as f64 / 1e9)?;
    dict.set_item("sim_total_s", now.sim_total_ns as f64 / 1e9)?;
    callback.call1(py, (dict,)).map(|_| ())
}

fn answer(jobs: &[Job<'_>], outcomes: Vec<Outcome>) -> PyResult<String> {
    let mut finished = Vec::new();
    let mut failed = Vec::new();
    for (job, outcome) in jobs.iter().zip(outcomes) {
        let identity = || json!({"arm": job.plan.arm, "seed": job.seed, "path": job.path.to_string_lossy()});
        match outcome {
            Outcome::Finished { wall_s } => finished.push(with(identity(), "wall_s", json!(wall_s))),
            Outcome::Failed(error @ RunError::Memory { .. }) => {
                return Err(HostError::new_err(error.to_string()));
            }
            Outcome::Unwritten(error) if error.is_host_limit() => {
                return Err(HostError::new_err(error.to_string()));
            }
            Outcome::Unwritten(error) => return Err(RecordingError::new_err(error.to_string())),
            Outcome::Failed(error) => failed.push(with(identity(), "reason", json!(error.to_string()))),
            Outcome::Panicked(text) => {
                let reason = format!("a defect of aqmlab: {text}");
                failed.push(with(identity(), "reason", json!(reason)));
            }
            // Only after a final outcome of another job, which has been or will be raised.
            Outcome::Cancelled => {}
        }
    }
    Ok(json!({"finished": finished, "failed": failed}).to_string())
}

fn with(mut object: Value, key: &str, value: Value) -> Value {
    object[key] = value;
    object
}
