//! Traces: lists of connections in a file (CSV, Parquet or Tmix) next to the scenario.
//!
//! Columns, in any order: `start_s` (seconds, decimals allowed) or `start_ns`, `request_bytes` from the
//! client, `response_bytes` from the server, and `class` if a scenario selects rows by class. With the
//! columns `connection` and `exchange`, each row is an exchange (`docs/vectors.md`), and the request or the
//! response may be missing. Messages name
//! the file and the row; in a CSV file, they give the row's line number, and the header is line 1.
//! Lists of datagrams are in `schedule.rs`, and lists of users in `users.rs`.

mod connections;
mod files;
mod formats;
mod leaving_out;
mod openings;
mod rates;
mod row;
mod schedule;
mod tmix;
mod users;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use aqmlab_traffic::{End, ListedExchanges, PlannedExchange, Session, SingleExchange};
use aqmlab_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::Serialize;

use connections::{Connections, Reader, TracedConnection};
pub use files::Files;
pub(crate) use files::NoFiles;
use files::{Content, content};
pub use leaving_out::LeftOut;
pub(crate) use leaving_out::OnUnsupported;
pub use openings::recorded_openings;
pub(crate) use rates::MAHIMAHI_CHANCE;
pub use rates::{ChanceFile, DelayStep, LevelFile, LossStep, RateStep};
use row::Columns;
pub(crate) use row::check_connection;
pub use schedule::{Schedule, Scheduled};
pub(crate) use schedule::{ecn_of, ecn_word};
pub use users::UserVectors;

use crate::closes::Closes;

/// The traces and schedules of a scenario. Each file is read once, whatever the number of arms and
/// cases that use it.
pub(crate) struct Traces<'f> {
    files: Box<dyn Files + 'f>,
    known: RefCell<BTreeMap<Wanted, Result<Arc<Trace>, String>>>,
    schedules: RefCell<BTreeMap<String, Result<Arc<Schedule>, String>>>,
    users: RefCell<BTreeMap<String, Result<Arc<UserVectors>, String>>>,
    levels: RefCell<BTreeMap<String, Result<Arc<LevelFile>, String>>>,
    chances: RefCell<BTreeMap<String, Result<Arc<ChanceFile>, String>>>,
}

/// A file, the class whose rows are wanted, and what happens to connections that cannot be expressed.
type Wanted = (String, Option<String>, OnUnsupported);

impl<'f> Traces<'f> {
    /// Creates a set of files of which none has been read yet.
    pub(crate) fn new(files: Box<dyn Files + 'f>) -> Self {
        Traces {
            files,
            known: RefCell::default(),
            schedules: RefCell::default(),
            users: RefCell::default(),
            levels: RefCell::default(),
            chances: RefCell::default(),
        }
    }

    /// Returns the rows of `class` in `file`, or all rows if `class` is `None`.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub(crate) fn read(
        &self,
        file: &str,
        class: Option<&str>,
        unsupported: OnUnsupported,
    ) -> Result<Arc<Trace>, String> {
        let mut known = self.known.borrow_mut();
        let trace = known
            .entry((file.to_string(), class.map(str::to_string), unsupported))
            .or_insert_with(|| Trace::read(&*self.files, file, class, unsupported).map(Arc::new));
        trace.clone()
    }

    /// Returns the text of `file`. Messages call the file `what`.
    ///
    /// # Errors
    /// If the file cannot be read, or is not text. The error is a sentence without a full stop.
    pub(crate) fn text(&self, what: &str, file: &str) -> Result<String, String> {
        let bytes =
            self.files.read(file).map_err(|error| format!("cannot read the {what} `{file}`: {error}"))?;
        String::from_utf8(bytes).map_err(|_| format!("the {what} `{file}` is not UTF-8 text"))
    }

    /// Returns the packets of `file`.
    ///
    /// # Errors
    /// As [`Schedule::read`].
    pub(crate) fn schedule(&self, file: &str) -> Result<Arc<Schedule>, String> {
        let mut known = self.schedules.borrow_mut();
        let schedule =
            known.entry(file.to_string()).or_insert_with(|| Schedule::read(&*self.files, file).map(Arc::new));
        schedule.clone()
    }

    /// Returns the pages of users in `file`.
    ///
    /// # Errors
    /// As [`UserVectors::read`].
    pub(crate) fn users(&self, file: &str) -> Result<Arc<UserVectors>, String> {
        let mut known = self.users.borrow_mut();
        let read = || UserVectors::read(&*self.files, file).map(Arc::new);
        known.entry(file.to_string()).or_insert_with(read).clone()
    }

    /// Returns the levels of a rate in `file`.
    ///
    /// # Errors
    /// As [`LevelFile::read`].
    pub(crate) fn levels(&self, file: &str) -> Result<Arc<LevelFile>, String> {
        let mut known = self.levels.borrow_mut();
        let read = || LevelFile::read(&*self.files, file).map(Arc::new);
        known.entry(file.to_string()).or_insert_with(read).clone()
    }

    /// Returns the chances to send in `file`.
    ///
    /// # Errors
    /// As [`ChanceFile::read`].
    pub(crate) fn chances(&self, file: &str) -> Result<Arc<ChanceFile>, String> {
        let mut known = self.chances.borrow_mut();
        let read = || ChanceFile::read(&*self.files, file).map(Arc::new);
        known.entry(file.to_string()).or_insert_with(read).clone()
    }
}

/// The connections of a file, in the order of the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Trace {
    /// The file as the scenario names it.
    pub file: String,
    /// SHA-256 of its contents, in hexadecimal: different contents make a different plan.
    pub digest: String,
    /// The class to which these rows belong; `None` if the trace has the rows of all classes.
    pub class: Option<String>,
    /// The connections, at least one.
    #[serde(skip)]
    connections: Vec<TracedConnection>,
    #[serde(skip)]
    exchanges: Arc<[PlannedExchange]>,
    /// The one-way delays between client and network and between network and server, per connection; empty if
    /// connections have no delays of their own.
    #[serde(skip)]
    delays: Vec<[Span; 2]>,
    /// The number of connections that have been left out because they cannot be expressed, by kind.
    #[serde(skip_serializing_if = "LeftOut::is_empty")]
    #[schemars(with = "BTreeMap<String, u64>")]
    pub left_out: LeftOut,
}

impl Trace {
    /// Reads the rows of `class` in `file`, or all rows if `class` is `None`.
    ///
    /// # Errors
    /// Returns a sentence without a full stop that names the file and the row.
    pub(crate) fn read(
        files: &dyn Files,
        file: &str,
        class: Option<&str>,
        unsupported: OnUnsupported,
    ) -> Result<Self, String> {
        let Content { digest, bytes } = content(files, "trace", file, row::WANTED)?;
        let is_tmix = tmix::is_tmix(file, bytes.text());
        let Connections { list, exchanges, delays, left_out } = match class {
            Some(class) if is_tmix => {
                return Err(format!(
                    "the trace `{file}` has no class names; leave `class = \"{class}\"` out"
                ));
            }
            None if is_tmix => tmix::read(file, bytes.text(), unsupported)?,
            _ if unsupported == OnUnsupported::Skip => {
                return Err(format!(
                    "every connection of the trace `{file}` can be expressed, because it is not a file for Tmix; leave \
                     `on_unsupported` out"
                ));
            }
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
            left_out,
        })
    }

    /// Iterates over the starts of the connections, in the order of the file.
    pub(crate) fn starts(&self) -> impl ExactSizeIterator<Item = Span> {
        self.connections.iter().map(|connection| connection.start)
    }

    /// Returns all exchanges; those of one connection are consecutive.
    pub fn exchanges(&self) -> &[PlannedExchange] {
        &self.exchanges
    }

    /// Returns the session of a connection.
    pub(crate) fn session(&self, connection: usize, closes: Closes) -> Session {
        let TracedConnection { first, closed_by, .. } = self.connections[connection];
        let closed_by = if closes == Closes::File { closed_by } else { closes.end() };
        let PlannedExchange { request, response, server_delay, last, .. } = self.exchanges[first];
        // The request or the response may be missing.
        if last && server_delay.is_zero() {
            let single = SingleExchange::new(Bytes::new(request), Bytes::new(response));
            return Session::Single(closed_by.map_or(single, |end| single.closed_by(end)));
        }
        let listed = ListedExchanges::new(self.exchanges.clone(), first);
        Session::Listed(match closed_by {
            Some(end) => listed.closed_by(end),
            None => listed,
        })
    }

    /// Returns whether the file says of any connection which end closes it.
    pub(crate) fn says_who_closes(&self) -> bool {
        self.connections.iter().any(|connection| connection.closed_by.is_some())
    }

    /// Returns whether any connection has more than one exchange, or a pause at the server.
    pub(crate) fn has_vectors(&self) -> bool {
        self.exchanges.iter().any(|exchange| !exchange.last || !exchange.server_delay.is_zero())
    }

    /// Returns the one-way delays of a connection between client and network and between network and server,
    /// if the file gives them.
    pub(crate) fn delays(&self, connection: usize) -> Option<[Span; 2]> {
        self.delays.get(connection).copied()
    }

    /// Iterates over the connections' one-way delays between this end and the network; empty if the
    /// file does not give them.
    pub(crate) fn delays_of(&self, end: End) -> impl ExactSizeIterator<Item = Span> {
        self.delays.iter().map(move |delays| delays[end as usize])
    }

    /// Returns whether the file gives delays.
    pub(crate) const fn has_delays(&self) -> bool {
        !self.delays.is_empty()
    }

    /// Returns the mean contribution of the connections' own delays to the round-trip time, or
    /// `None` if there are no such delays.
    pub(crate) fn mean_delays(&self) -> Option<Span> {
        let sum: u128 = self.delays.iter().flatten().map(|delay| u128::from(delay.as_ns())).sum();
        let count = self.delays.len() as u128;
        (count > 0).then(|| Span::ns((2 * sum / count) as u64))
    }
}
