//! Traces: lists of connections in a file beside the scenario, CSV or Parquet.
//!
//! Columns, in any order: `start_s` (seconds, decimals allowed) or `start_ns`, `request_bytes` from the client,
//! `response_bytes` from the server, and `class` where a scenario takes rows by class. Whatever is wrong is told with
//! file and row; a CSV file's rows are named by their lines, the header being line 1. Lists of datagrams are in
//! `schedule.rs`.

mod files;
mod formats;
mod openings;
mod row;
mod schedule;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::suggest::no_such;
pub use files::{Beside, Files};
use files::{Content, content};
pub use openings::recorded_openings;
pub use row::TracedConnection;
use row::{Columns, Row};
pub use schedule::{Schedule, Scheduled};
pub(crate) use schedule::{ecn_of, ecn_word};

/// The traces and schedules of a scenario: each is read once, whatever number of arms and cases has it.
pub(crate) struct Traces<'f> {
    files: Box<dyn Files + 'f>,
    known: Mutex<BTreeMap<Wanted, Result<Arc<Trace>, String>>>,
    schedules: Mutex<BTreeMap<String, Result<Arc<Schedule>, String>>>,
}

/// A file, and the class whose rows are wanted of it.
type Wanted = (String, Option<String>);

impl<'f> Traces<'f> {
    /// None is read yet.
    pub(crate) fn new(files: Box<dyn Files + 'f>) -> Self {
        Traces { files, known: Mutex::default(), schedules: Mutex::default() }
    }

    /// The rows of `class` in `file`, or all.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub(crate) fn read(&self, file: &str, class: Option<&str>) -> Result<Arc<Trace>, String> {
        // Whoever panicked while holding the lock left the map as it was: entries are only ever added.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let trace = known
            .entry((file.to_string(), class.map(str::to_string)))
            .or_insert_with(|| Trace::read(&*self.files, file, class).map(Arc::new));
        trace.clone()
    }

    /// The packets of `file`.
    ///
    /// # Errors
    /// As [`Schedule::read`].
    pub(crate) fn schedule(&self, file: &str) -> Result<Arc<Schedule>, String> {
        let mut known = self.schedules.lock().unwrap_or_else(PoisonError::into_inner);
        let schedule =
            known.entry(file.to_string()).or_insert_with(|| Schedule::read(&*self.files, file).map(Arc::new));
        schedule.clone()
    }
}

/// Connections as a file lists them, in its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// The file as the scenario names it.
    pub file: String,
    /// SHA-256 of its content, in hexadecimal: another content is another plan.
    pub digest: String,
    /// The class whose rows these are, if not all.
    pub class: Option<String>,
    /// At least one.
    pub connections: Vec<TracedConnection>,
}

impl Trace {
    /// Reads `file`, and of it the rows of `class`, or all.
    ///
    /// # Errors
    /// What is wrong, with file and row: a sentence without a full stop.
    pub(crate) fn read(files: &dyn Files, file: &str, class: Option<&str>) -> Result<Self, String> {
        let Content { digest, bytes } = content(files, "trace", file, row::WANTED)?;
        let columns = |names: &[&str]| Columns::of(names, class.is_some());
        let rows = bytes.rows("trace", file, row::WANTED, columns, Columns::row)?;
        if rows.is_empty() {
            return Err(format!("the trace `{file}` has no rows; write at least one connection"));
        }
        let connections = chosen(file, &rows, class)?;
        Ok(Trace { file: file.to_string(), digest, class: class.map(str::to_string), connections })
    }
}

/// The connections of one class.
fn chosen(file: &str, rows: &[Row], class: Option<&str>) -> Result<Vec<TracedConnection>, String> {
    let wanted = |row: &&Row| class.is_none_or(|class| row.class.as_deref() == Some(class));
    let connections: Vec<_> = rows.iter().filter(wanted).map(|row| row.connection).collect();
    match class {
        Some(class) if connections.is_empty() => {
            let mut classes: Vec<&str> = rows.iter().filter_map(|row| row.class.as_deref()).collect();
            classes.sort_unstable();
            classes.dedup();
            Err(format!("in the trace `{file}`: {}", no_such("class", class, classes.into_iter())))
        }
        _ => Ok(connections),
    }
}
