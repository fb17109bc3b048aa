//! The disciplines and their parameter tables.

use aqmlab_qdisc::registry::{self, Catalogue, Info};
use aqmlab_scenario::suggest::by_nearness;
use aqmlab_scenario::{described, discipline_elsewhere};
use pyo3::prelude::*;
use serde_json::Value;

use crate::errors::UsageError;

/// Returns the disciplines that Python can name: the built-in ones.
pub(crate) fn known() -> &'static Catalogue {
    registry::catalogue()
}

/// Returns the disciplines as JSON text: name, title, summary, maturity.
#[pyfunction]
pub(crate) fn aqm_list() -> String {
    known().iter().map(described::heading).collect::<Value>().to_string()
}

/// Returns one discipline with its parameters and presets, as JSON text.
#[pyfunction]
pub(crate) fn aqm_show(name: &str) -> PyResult<String> {
    Ok(described::discipline(find(name)?).to_string())
}

/// Returns the discipline called `name`.
pub(crate) fn find(name: &str) -> PyResult<&'static Info> {
    known().find(name).ok_or_else(|| {
        if let Some(message) = discipline_elsewhere(name, true) {
            return UsageError::new_err(message);
        }
        let names = by_nearness(name, known().iter().map(|info| info.name));
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let message = format!("there is no discipline `{name}`; the disciplines are {}", names.join(", "));
        UsageError::new_err(message)
    })
}
