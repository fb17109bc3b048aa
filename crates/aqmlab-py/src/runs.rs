//! Runs from Python: the interpreter lock is released, Ctrl-C is heard, finished runs are kept.

use std::path::{Path, PathBuf};

use aqmlab_recording::capture::DEFAULT_SNAP;
use aqmlab_scenario::{Experiment, Plan, ScenarioError, Sweep};
use aqmlab_sim::RunError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

use crate::errors::{HostError, MemoryCapError, PythonRunError, RecordingError, UsageError, scenario_error};
use crate::plans::slugs;
use crate::pool::{CaptureChoice, Job, Outcome, Progress, run_all};

/// Runs every arm of a scenario with every seed, on `jobs` threads, and writes a recording for each to
/// `out_dir/<arm slug>/seed-<n>`, with the packets of the ports named in `pcap`, of each `pcap_bytes` bytes. Returns what
/// finished and what failed, as JSON text.
#[pyfunction]
#[pyo3(signature = (
    text, file_name, out_dir, jobs, arms=None, seeds=None, progress=None, memory_cap=0, pcap=Vec::new(),
    pcap_bytes=DEFAULT_SNAP
))]
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
    pcap: Vec<String>,
    pcap_bytes: u32,
) -> PyResult<String> {
    let experiment = one_case(py, text, file_name)?;
    let mut jobs_to_do = job_list(&experiment, &out_dir, arms.as_deref(), seeds.as_deref())?;
    refuse_only_live(py, jobs_to_do.iter().map(|job| job.plan), file_name)?;
    if !pcap.is_empty() {
        for job in &mut jobs_to_do {
            job.capture = Some(CaptureChoice { links: captured_links(job.plan, &pcap)?, snap: pcap_bytes });
        }
    }
    let outcomes = run_watched(py, &jobs_to_do, jobs, memory_cap, progress.as_ref())?;
    answer(&jobs_to_do, outcomes)
}

/// One run: the arm called `arm` with this seed, its recording at `out_path`, where nothing may be yet. Returns what it
/// took, as JSON text.
#[pyfunction]
#[pyo3(signature = (toml, file_name, arm, seed, out_path, memory_cap=0, progress=None))]
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
) -> PyResult<String> {
    let experiment = one_case(py, toml, file_name)?;
    check_arms(&experiment, &[arm])?;
    let plan = experiment.arms.iter().find(|plan| plan.arm == arm).expect("the arm is there");
    refuse_only_live(py, [plan], file_name)?;
    let job = [Job { plan, seed, path: out_path, capture: None }];
    let mut outcomes = run_watched(py, &job, 1, memory_cap, progress.as_ref())?;
    match settled(outcomes.remove(0))? {
        Settled::Finished(took) => Ok(took.to_string()),
        Settled::Failed(reason) => {
            Err(PythonRunError::new_err(format!("arm `{arm}`, seed {seed}: {reason}")))
        }
        Settled::Cancelled => unreachable!("who cancels the only run has an error to raise"),
    }
}

/// The experiment of a scenario that is no sweep.
pub(crate) fn one_case(py: Python<'_>, text: &str, file_name: &str) -> PyResult<Experiment> {
    let sweep = Sweep::read(text, file_name).map_err(|error| scenario_error(py, &error))?;
    if sweep.axes().next().is_some() {
        return Err(UsageError::new_err(format!(
            "`{file_name}` has a [sweep] of {} cases; run it with `aqmlab sweep`",
            sweep.cases()
        )));
    }
    Ok(sweep.experiment())
}

/// What the simulator cannot do is a mistake in a scenario that it is given.
fn refuse_only_live<'p>(
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

/// Does the jobs without the interpreter lock, which Python gets ten times a second.
fn run_watched(
    py: Python<'_>,
    jobs: &[Job<'_>],
    threads: usize,
    memory_cap: u64,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Vec<Outcome>> {
    let mut interrupted = None;
    let outcomes = py.detach(|| {
        run_all(jobs, threads, memory_cap, |now| {
            if interrupted.is_none() {
                interrupted = Python::attach(|py| tell(py, progress, now)).err();
            }
            interrupted.is_none()
        })
    });
    interrupted.map_or(Ok(outcomes), Err)
}

/// Arms in the order of the scenario, seeds in the order asked for.
fn job_list<'e>(
    experiment: &'e Experiment,
    out_dir: &Path,
    arms: Option<&[String]>,
    seeds: Option<&[u64]>,
) -> PyResult<Vec<Job<'e>>> {
    check_arms(experiment, arms.unwrap_or_default())?;
    let seeds = seeds.unwrap_or(&experiment.seeds);
    let wanted = |name: &str| arms.is_none_or(|arms| arms.iter().any(|arm| arm == name));
    let mut jobs = Vec::new();
    for (slug, plan) in slugs(experiment).iter().zip(&experiment.arms).filter(|(_, plan)| wanted(&plan.arm)) {
        for &seed in seeds {
            let path = out_dir.join(slug).join(format!("seed-{seed}"));
            jobs.push(Job { plan, seed, path, capture: None });
        }
    }
    Ok(jobs)
}

/// The links of these names, or all of them for `all`.
pub(crate) fn captured_links(plan: &Plan, names: &[String]) -> PyResult<Vec<usize>> {
    if names == ["all"] {
        return Ok((0..plan.links.len()).collect());
    }
    let index = |name: &String| {
        plan.links.iter().position(|link| link.name == *name).ok_or_else(|| {
            let known: Vec<_> = plan.links.iter().map(|link| format!("`{}`", link.name)).collect();
            UsageError::new_err(format!(
                "there is no port `{name}` in arm `{}`; there are {}, or `all`",
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

/// All of `arms` are arms of the experiment.
pub(crate) fn check_arms<A: AsRef<str>>(experiment: &Experiment, arms: &[A]) -> PyResult<()> {
    let names: Vec<_> = experiment.arms.iter().map(|plan| plan.arm.as_str()).collect();
    let Some(unknown) = arms.iter().find(|arm| !names.contains(&arm.as_ref())) else { return Ok(()) };
    let known: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let message = format!("there is no arm `{}`; there are {}", unknown.as_ref(), known.join(", "));
    Err(UsageError::new_err(message))
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
        let mut told = json!({"arm": job.plan.arm, "seed": job.seed, "path": job.path.to_string_lossy()});
        match settled(outcome)? {
            Settled::Finished(took) => {
                told["wall_s"] = took["wall_s"].clone();
                finished.push(told);
            }
            Settled::Failed(reason) => {
                told["reason"] = json!(reason);
                failed.push(told);
            }
            // Only after a final outcome of another job, which has been or will be raised.
            Settled::Cancelled => {}
        }
    }
    Ok(json!({"finished": finished, "failed": failed}).to_string())
}

/// What became of a run that says nothing about the machine.
enum Settled {
    /// What it took: `wall_s`, `cpu_s`, `events`.
    Finished(Value),
    /// Why there is no recording.
    Failed(String),
    Cancelled,
}

/// The outcome, or the exception that ends the whole request.
fn settled(outcome: Outcome) -> PyResult<Settled> {
    match outcome {
        Outcome::Finished { wall_s, cpu_s, events } => {
            Ok(Settled::Finished(json!({"wall_s": wall_s, "cpu_s": cpu_s, "events": events})))
        }
        Outcome::Failed(RunError::File(error)) => settled(Outcome::Unwritten(error)),
        Outcome::Failed(error @ RunError::Memory { .. }) => Err(MemoryCapError::new_err(error.to_string())),
        Outcome::Unwritten(error) if error.is_host_limit() => Err(HostError::new_err(error.to_string())),
        Outcome::Unwritten(error) => Err(RecordingError::new_err(error.to_string())),
        Outcome::Failed(error) => Ok(Settled::Failed(error.to_string())),
        Outcome::Panicked(text) => Ok(Settled::Failed(format!("a defect of aqmlab: {text}"))),
        Outcome::Cancelled => Ok(Settled::Cancelled),
    }
}
