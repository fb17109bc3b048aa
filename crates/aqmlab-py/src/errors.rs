//! Converts errors of the crates into the exceptions of `aqmlab.errors`.

use aqmlab_scenario::ScenarioError as ScenarioProblems;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

mod python {
    pyo3::import_exception!(aqmlab.errors, ScenarioError);
    pyo3::import_exception!(aqmlab.errors, UsageError);
    pyo3::import_exception!(aqmlab.errors, RecordingError);
    pyo3::import_exception!(aqmlab.errors, HostError);
    #[cfg(target_os = "linux")]
    pyo3::import_exception!(aqmlab.errors, DisciplineError);
    pyo3::import_exception!(aqmlab.errors, MemoryCapError);
    pyo3::import_exception!(aqmlab.errors, RunError);
}
#[cfg(target_os = "linux")]
pub(crate) use python::DisciplineError;
pub(crate) use python::{HostError, MemoryCapError, RecordingError, RunError as PythonRunError, UsageError};

/// Converts a scenario's errors into one exception: its text lists them all, and its attribute `errors` holds
/// them separately.
pub(crate) fn scenario_error(py: Python<'_>, error: &ScenarioProblems) -> PyErr {
    match problems(py, error) {
        Ok(list) => python::ScenarioError::new_err((error.to_string(), list)),
        Err(other) => other,
    }
}

fn problems(py: Python<'_>, error: &ScenarioProblems) -> PyResult<Py<PyList>> {
    let list = PyList::empty(py);
    for problem in &error.problems {
        let dict = PyDict::new(py);
        dict.set_item("line", problem.line)?;
        dict.set_item("column", problem.column)?;
        dict.set_item("path", &problem.path)?;
        dict.set_item("message", &problem.message)?;
        list.append(dict)?;
    }
    Ok(list.unbind())
}
