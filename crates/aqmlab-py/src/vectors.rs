//! Connection vectors from Python.

use std::borrow::Cow;
use std::path::PathBuf;

use aqmlab_scenario::{ClassPlan, ConnectionVector, Plan, recorded_openings};
use aqmlab_storage::{vectors_csv, vectors_parquet, vectors_tmix};
use aqmlab_units::{Instant, Span};
use pyo3::prelude::*;

use crate::errors::{RecordingError, UsageError};
use crate::runs::{check_arms, one_case};

/// Returns the contents of a file of connection vectors in a `format` (`csv`, `parquet`, `tmix`). The file
/// covers the connections of these classes, in the arm called `arm`, that open no later than `until_ns` in a
/// run with this seed. If the network determines when connections open, these times are taken from
/// `requests`, the table of that name in a recording.
#[pyfunction]
#[pyo3(signature = (toml, file_name, arm, classes, seed, until_ns, format, requests=None))]
#[allow(clippy::too_many_arguments)] // keyword arguments of a Python function
pub(crate) fn vectors(
    py: Python<'_>,
    toml: &str,
    file_name: &str,
    arm: &str,
    classes: Vec<String>,
    seed: u64,
    until_ns: u64,
    format: &str,
    requests: Option<PathBuf>,
) -> PyResult<Cow<'static, [u8]>> {
    let experiment = one_case(py, toml, file_name)?;
    check_arms(&experiment, &[arm])?;
    let plan = experiment.arms.iter().find(|plan| plan.arm == arm).expect("the arm exists");
    plan.check_seed(seed).map_err(UsageError::new_err)?;
    let until = Instant::ZERO + Span::ns(until_ns);
    let of = |name: &String| {
        let class = class_of(plan, name)?;
        Ok((class, vectors_of(class, seed, until, requests.as_ref())?))
    };
    let drawn = classes.iter().map(of).collect::<PyResult<Vec<_>>>()?;
    let content = match (format, drawn.as_slice()) {
        ("csv", _) => vectors_csv(&drawn).map(String::into_bytes).map_err(UsageError::new_err),
        ("parquet", _) => vectors_parquet(&drawn).map_err(UsageError::new_err),
        ("tmix", [(class, vectors)]) => {
            vectors_tmix(class, vectors).map(String::into_bytes).map_err(UsageError::new_err)
        }
        ("tmix", _) => Err(UsageError::new_err(
            "a file for Tmix holds one class because it has no class names; choose one with `--class`",
        )),
        _ => Err(UsageError::new_err(format!(
            "there is no format `{format}`; the formats are `csv`, `parquet` and `tmix`"
        ))),
    };
    content.map(Cow::Owned)
}

fn class_of<'p>(plan: &'p Plan, name: &str) -> PyResult<&'p ClassPlan> {
    plan.classes.iter().find(|class| class.name == name).ok_or_else(|| {
        let known: Vec<_> = plan.classes.iter().map(|class| format!("`{}`", class.name)).collect();
        UsageError::new_err(format!("there is no class `{name}`; the classes are {}", known.join(", ")))
    })
}

fn vectors_of(
    class: &ClassPlan,
    seed: u64,
    until: Instant,
    requests: Option<&PathBuf>,
) -> PyResult<Vec<ConnectionVector>> {
    let vectors = match requests.filter(|_| class.waits_for_answers()) {
        Some(file) => {
            let unreadable = |error: std::io::Error| format!("cannot read `{}`: {error}", file.display());
            let openings = std::fs::read(file)
                .map_err(unreadable)
                .and_then(|content| recorded_openings(content, &file.display().to_string(), &class.name));
            let mut openings = openings.map_err(RecordingError::new_err)?;
            openings.retain(|&(start, _)| start <= until);
            class.vectors_of(&openings, seed)
        }
        None => class.vectors(seed, until),
    };
    let vectors = vectors.map_err(UsageError::new_err)?;
    if vectors.is_empty() {
        return Err(UsageError::new_err(format!(
            "no connection of `{}` opens by {}; choose a longer duration",
            class.name,
            until.saturating_since(Instant::ZERO)
        )));
    }
    Ok(vectors)
}
