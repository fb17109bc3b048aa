//! Live runs on systems other than Linux: all calls return an error.

use std::path::PathBuf;

use aqmlab_recording::capture::DEFAULT_SNAP;
use pyo3::prelude::*;

use crate::errors::HostError;

/// There is no live router on this system.
pub(crate) const ENGINE: Option<aqmlab_network::Engine> = None;

fn refusal() -> PyErr {
    HostError::new_err("live runs need Linux, because they use its network namespaces and TUN interfaces")
}

/// Refuses the call.
#[pyfunction]
#[pyo3(signature = (toml, file_name, arm, seed, out_path, force=false, pcap=Vec::new(), pcap_bytes=DEFAULT_SNAP, terminal=None, foreground=false, progress=None))]
#[allow(clippy::too_many_arguments, unused_variables)] // the arguments of the live run on Linux
pub(crate) fn live_run(
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
    Err(refusal())
}

/// Refuses the call.
#[pyfunction]
pub(crate) fn doctor() -> PyResult<String> {
    Err(refusal())
}

/// Refuses the call.
#[pyfunction]
#[pyo3(signature = (progress=None))]
#[allow(unused_variables)] // the argument of the self-test on Linux
pub(crate) fn live_selftest(progress: Option<Py<PyAny>>) -> PyResult<String> {
    Err(refusal())
}
