//! The Python module `aqmlab._core`. Its functions convert their arguments, call the other crates,
//! and convert the results back.
//!
//! Structured results are passed as JSON text, which both sides already use. Tables are not passed;
//! they are written to disk as Parquet. Errors become the exceptions of `aqmlab.errors`.

mod catalogue;
mod checks;
mod errors;
mod kit;
mod law;
#[cfg(target_os = "linux")]
mod live;
#[cfg(not(target_os = "linux"))]
#[path = "live_elsewhere.rs"]
mod live;
mod plans;
mod pool;
mod runs;
mod scripts;
mod sweep;
mod vectors;

use pyo3::prelude::*;

/// Private: use `aqmlab`.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::catalogue::{aqm_list, aqm_show};
    #[pymodule_export]
    use super::checks::aqm_check;
    #[pymodule_export]
    use super::kit::{kit_judge, kit_situations};
    #[pymodule_export]
    use super::law::law_curves;
    #[pymodule_export]
    use super::live::{doctor, live_run, live_selftest};
    #[pymodule_export]
    use super::plans::{plan, quantity, quantity_text, schema};
    #[pymodule_export]
    use super::runs::run_one;
    #[pymodule_export]
    use super::sweep::{Sweep, host_parts, run_digest};
    #[pymodule_export]
    use super::vectors::vectors;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("PARTS", aqmlab_network::all_parts(catalogue::known(), sweep::engines()))
    }
}
