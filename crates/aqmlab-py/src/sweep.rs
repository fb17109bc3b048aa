//! Sweeps from Python: the file is read once, and its cases are expanded one at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use aqmlab_network::Engine;
use aqmlab_scenario::{Parts, Sweep as Cases};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::errors::scenario_error;
use crate::plans::{Arm, about, arms, json_text, sweep};
use crate::runs::{captured_links, refuse_only_live};

/// A scenario with all its cases; a scenario without `[sweep]` has a single case.
#[pyclass(frozen)]
pub(crate) struct Sweep {
    /// Expanding a case reads files that earlier cases have not read.
    cases: Mutex<Cases<'static>>,
}

/// A case in the form passed to Python.
#[derive(Serialize)]
struct Answer<'c> {
    index: u64,
    settings: &'c [(String, String)],
    toml: &'c str,
    warnings: &'c [String],
    arms: Vec<Arm<'c>>,
}

#[pymethods]
impl Sweep {
    #[new]
    fn new(py: Python<'_>, text: &str, file_name: &str) -> PyResult<Self> {
        Ok(Sweep { cases: Mutex::new(sweep(py, text, file_name)?) })
    }

    /// Returns the facts common to all cases, as JSON text.
    fn about(&self) -> String {
        let cases = self.cases();
        json_text(&about(&cases, cases.arms().collect()))
    }

    /// Checks that these arms of the first case have the ports named in `pcap` and, if `simulated`
    /// is true, that the simulator can run the arms.
    #[pyo3(signature = (file_name, arms, simulated, pcap))]
    fn check(
        &self,
        py: Python<'_>,
        file_name: &str,
        arms: Vec<String>,
        simulated: bool,
        pcap: Vec<String>,
    ) -> PyResult<()> {
        let experiment = self.cases().experiment();
        let plans: Vec<_> = experiment.arms.iter().filter(|plan| arms.contains(&plan.arm)).collect();
        if simulated {
            refuse_only_live(py, plans.iter().copied(), file_name)?;
        }
        if !pcap.is_empty() {
            for plan in plans {
                captured_links(plan, &pcap)?;
            }
        }
        Ok(())
    }

    /// Returns one case as JSON text, without expanding any other case. The text does not contain
    /// the origins of the values; the plan made from the case's own text contains them.
    fn case(&self, py: Python<'_>, index: u64) -> PyResult<String> {
        self.has(index)?;
        let case = self.cases().case(index).map_err(|error| scenario_error(py, &error))?;
        Ok(json_text(&Answer {
            index: case.index,
            settings: &case.settings,
            toml: &case.text,
            warnings: &case.experiment.warnings,
            arms: arms(&case.experiment),
        }))
    }

    /// Returns the label of a case on each axis, even if the case cannot run.
    fn labels(&self, index: u64) -> PyResult<Vec<String>> {
        self.has(index)?;
        Ok(self.cases().labels(index).into_iter().map(str::to_owned).collect())
    }
}

impl Sweep {
    fn cases(&self) -> MutexGuard<'_, Cases<'static>> {
        self.cases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, index: u64) -> PyResult<()> {
        let cases = self.cases().cases();
        if index < cases {
            return Ok(());
        }
        Err(PyIndexError::new_err(format!("there is no case {index}; the index must be less than {cases}")))
    }
}

/// Returns the hosts of this build.
pub(crate) fn engines() -> impl Iterator<Item = Engine> {
    [Some(aqmlab_sim::ENGINE), crate::live::ENGINE].into_iter().flatten()
}

/// Returns the parts that determine the result of a run on this host, given those of its plan.
#[pyfunction]
pub(crate) fn host_parts(parts: Parts, host: &str) -> PyResult<Parts> {
    let engine = engines().find(|engine| engine.host.name() == host);
    let unknown = || PyValueError::new_err(format!("this build has no host `{host}`"));
    Ok(engine.ok_or_else(unknown)?.complete(parts))
}

/// Returns the name of a run: the SHA-256, in hexadecimal, of its plan's digest, its seed, and the parts that
/// determine its result, each with its version. The hashed text has one line for each of these; the parts are
/// sorted by name.
#[pyfunction]
pub(crate) fn run_digest(plan_digest: &str, seed: u64, parts: Parts) -> String {
    let mut text = format!("{plan_digest}\n{seed}\n");
    for (name, version) in parts {
        text += &format!("{name} {version}\n");
    }
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
