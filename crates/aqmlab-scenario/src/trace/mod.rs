//! Traces: lists of connections in a file beside the scenario, CSV, Parquet or Tmix.
//!
//! Columns, in any order: `start_s` (seconds, decimals allowed) or `start_ns`, `request_bytes` from the client,
//! `response_bytes` from the server, and `class` where a scenario takes rows by class. With `connection` and `exchange` a row
//! is an exchange (`docs/vectors.md`). Messages name file and row; a CSV file's rows are named by their lines, the header
//! being line 1. Lists of datagrams are in `schedule.rs`.

mod connections;
mod files;
mod formats;
mod openings;
mod row;
mod schedule;
mod tmix;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use aqmlab_traffic::{End, PlannedExchange, Requests, Session, SingleExchange};
use aqmlab_units::{Bytes, Span};

use connections::{Connections, Reader, TracedConnection};
pub use files::{Beside, Files};
use files::{Content, content};
pub use openings::recorded_openings;
use row::Columns;
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

    /// The text of `file`, which is a `what`.
    ///
    /// # Errors
    /// If it cannot be read, or is no text. A sentence without a full stop.
    pub(crate) fn text(&self, what: &str, file: &str) -> Result<String, String> {
        let bytes =
            self.files.read(file).map_err(|error| format!("cannot read the {what} `{file}`: {error}"))?;
        String::from_utf8(bytes).map_err(|_| format!("the {what} `{file}` is no text in UTF-8"))
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
    connections: Vec<TracedConnection>,
    exchanges: Arc<[PlannedExchange]>,
    /// What client and server are away from the network, one way, for each connection; none if connections have no delays of
    /// their own.
    delays: Vec<[Span; 2]>,
}

impl Trace {
    /// Reads `file`, and of it the rows of `class`, or all.
    ///
    /// # Errors
    /// What is wrong, with file and row: a sentence without a full stop.
    pub(crate) fn read(files: &dyn Files, file: &str, class: Option<&str>) -> Result<Self, String> {
        let Content { digest, bytes } = content(files, "trace", file, row::WANTED)?;
        let Connections { list, exchanges, delays } = match class {
            Some(class) if file.ends_with(tmix::ENDING) => {
                return Err(format!(
                    "the trace `{file}` has no names of classes; leave `class = \"{class}\"` out"
                ));
            }
            None if file.ends_with(tmix::ENDING) => tmix::read(file, &bytes.0)?,
            class => {
                let mut reader = Reader::new(class);
                let columns = |names: &[&str]| Columns::of(names, class.is_some());
                bytes.rows("trace", file, row::WANTED, columns, |columns, cells| {
                    reader.take(columns, cells)
                })?;
                reader.finish(file)?
            }
        };
        Ok(Trace {
            file: file.to_string(),
            digest,
            class: class.map(str::to_string),
            connections: list,
            exchanges: exchanges.into(),
            delays,
        })
    }

    /// When each connection starts, in the order of the file.
    pub(crate) fn starts(&self) -> impl ExactSizeIterator<Item = Span> {
        self.connections.iter().map(|connection| connection.start)
    }

    /// All exchanges, those of a connection one after the other.
    pub fn exchanges(&self) -> &[PlannedExchange] {
        &self.exchanges
    }

    /// What a connection does.
    pub(crate) fn session(&self, connection: usize) -> Session {
        let first = self.connections[connection].first;
        let PlannedExchange { request, response, server_delay, last, .. } = self.exchanges[first];
        // Either half may be missing.
        if last && server_delay.is_zero() {
            return Session::Single(SingleExchange::new(Bytes::new(request), Bytes::new(response)));
        }
        Session::Requests(Requests::of_list(self.exchanges.clone(), first))
    }

    /// Whether any of its connections has more than one exchange, or a pause at the server.
    pub(crate) fn has_vectors(&self) -> bool {
        self.exchanges.iter().any(|exchange| !exchange.last || !exchange.server_delay.is_zero())
    }

    /// What client and server of a connection are away from the network, one way, if the file says so.
    pub(crate) fn delays(&self, connection: usize) -> Option<[Span; 2]> {
        self.delays.get(connection).copied()
    }

    /// What this end of each connection is away from the network, one way; none if the file does not say so.
    pub(crate) fn delays_of(&self, end: End) -> impl ExactSizeIterator<Item = Span> {
        self.delays.iter().map(move |delays| delays[end as usize])
    }

    /// The mean of what these add to the round-trip time; nothing if there are none.
    pub(crate) fn mean_delays(&self) -> Option<Span> {
        let sum: u128 = self.delays.iter().flatten().map(|delay| u128::from(delay.as_ns())).sum();
        let count = self.delays.len() as u128;
        (count > 0).then(|| Span::ns((2 * sum / count) as u64))
    }
}
