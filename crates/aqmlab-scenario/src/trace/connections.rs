//! The connections of a trace, collected as its rows arrive, in either form: one connection per row, or one
//! exchange per row.

use std::collections::BTreeMap;

use aqmlab_traffic::{End, PlannedExchange};
use aqmlab_units::Span;

use super::leaving_out::LeftOut;
use super::row::{Cell, Columns, Row, VectorRow, check_exchange};
use crate::suggest::no_such;

/// One connection of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TracedConnection {
    /// When the client opens it.
    pub(super) start: Span,
    /// The position of the connection's first exchange.
    pub(super) first: usize,
    /// The end that closes first, if the file says so.
    pub(super) closed_by: Option<End>,
}

/// The connections read so far.
#[derive(Default)]
pub(super) struct Connections {
    pub(super) list: Vec<TracedConnection>,
    pub(super) exchanges: Vec<PlannedExchange>,
    /// The one-way delays of each connection; empty if connections have no delays of their own.
    pub(super) delays: Vec<[Span; 2]>,
    /// The connections that have been left out.
    pub(super) left_out: LeftOut,
}

/// Reads a trace: the rows of one class, or all rows.
pub(super) struct Reader<'w> {
    wanted: Option<&'w str>,
    read: Connections,
    /// The progress in reading the connection vectors of each class that has rows.
    classes: BTreeMap<Option<String>, Place>,
    /// The class of the previous row.
    last: Option<String>,
}

/// The progress in reading the connection vectors of a class.
#[derive(Default)]
struct Place {
    connections: u64,
    /// Start of the last connection.
    start: Span,
    /// Number of exchanges of the last connection, and the newest of them.
    exchanges: u64,
    newest: Option<PlannedExchange>,
}

impl<'w> Reader<'w> {
    /// Creates a reader that has not read anything yet.
    pub(super) fn new(wanted: Option<&'w str>) -> Self {
        Reader { wanted, read: Connections::default(), classes: BTreeMap::new(), last: None }
    }

    /// Reads the next row.
    pub(super) fn take(&mut self, columns: &Columns, cells: &[Cell<'_>]) -> Result<(), String> {
        match columns.row(cells)? {
            Row::Connection { class, start, exchange } => {
                let is_wanted = self.is_wanted(class.as_deref());
                self.classes.entry(class).or_default();
                if is_wanted {
                    self.read.begin(start, None)?;
                    self.read.add(exchange);
                }
                Ok(())
            }
            Row::Exchange(row) => self.exchange(row),
        }
    }

    fn is_wanted(&self, class: Option<&str>) -> bool {
        self.wanted.is_none_or(|wanted| class == Some(wanted))
    }

    fn exchange(&mut self, row: VectorRow) -> Result<(), String> {
        let VectorRow { class, connection, number, start, delays, exchange } = row;
        let is_wanted = self.is_wanted(class.as_deref());
        let goes_on = !self.classes.is_empty() && class == self.last;
        let place = self.classes.entry(class.clone()).or_default();
        if goes_on && connection + 1 == place.connections {
            place.go_on(number, start, delays)?;
            check_exchange(place.newest.as_ref(), &exchange)?;
        } else {
            place.begin(connection, number, start)?;
            check_exchange(None, &exchange)?;
            if is_wanted {
                self.read.begin(place.start, delays)?;
            }
        }
        place.newest = Some(exchange);
        self.last = class;
        if is_wanted {
            self.read.add(exchange);
        }
        Ok(())
    }

    /// Returns the connections of the trace called `file`.
    ///
    /// # Errors
    /// If the trace has no connections.
    pub(super) fn finish(self, file: &str) -> Result<Connections, String> {
        if self.classes.is_empty() {
            return Err(format!("the trace `{file}` has no rows; write at least one connection"));
        }
        match self.wanted {
            Some(wanted) if self.read.list.is_empty() => {
                let classes = self.classes.keys().flatten().map(String::as_str);
                Err(format!("in the trace `{file}`: {}", no_such("class", wanted, classes)))
            }
            _ => Ok(self.read),
        }
    }
}

impl Place {
    /// Reads a row that is the first exchange of a new connection.
    fn begin(&mut self, connection: u64, number: u64, start: Option<Span>) -> Result<(), String> {
        let next = self.connections;
        if connection != next {
            return Err(format!(
                "`connection` is {connection} where {next} comes next; number connections from 0 upwards in the order of \
                 their starts, and keep the rows of each together"
            ));
        }
        if number != 0 {
            return Err(format!("`exchange` is {number} where connection {next} begins; write 0"));
        }
        let start = start.ok_or_else(|| {
            format!("connection {next} has no start; write `start_s` on the row of its first exchange")
        })?;
        if start < self.start {
            return Err(format!(
                "connection {next} starts at `{start}`, before connection {} at `{}`; number connections in the order of their \
                 starts",
                next - 1,
                self.start
            ));
        }
        (self.connections, self.start, self.exchanges) = (next + 1, start, 1);
        Ok(())
    }

    /// Reads a row that is a further exchange of the current connection.
    fn go_on(&mut self, number: u64, start: Option<Span>, delays: Option<[Span; 2]>) -> Result<(), String> {
        if number != self.exchanges {
            return Err(format!(
                "`exchange` is {number} where {} comes next; number the exchanges of a connection from 0 upwards without gaps",
                self.exchanges
            ));
        }
        if start.is_some_and(|start| start != self.start) {
            return Err("a connection starts once; leave `start_s` empty on rows after its first".into());
        }
        if delays.is_some() {
            return Err(
                "the delays of a connection belong on the row of its first exchange; leave them empty here"
                    .into(),
            );
        }
        self.exchanges += 1;
        Ok(())
    }
}

impl Connections {
    /// Begins the next connection, without exchanges.
    pub(super) fn begin(&mut self, start: Span, delays: Option<[Span; 2]>) -> Result<(), String> {
        let has = |known: bool| if known { "have" } else { "have none" };
        if !self.list.is_empty() && self.delays.is_empty() == delays.is_some() {
            return Err(format!(
                "this connection {} delays of its own and those before it {}; write them for all connections of a class, or for none",
                if delays.is_some() { "has" } else { "has no" },
                has(!self.delays.is_empty())
            ));
        }
        self.delays.extend(delays);
        self.list.push(TracedConnection { start, first: self.exchanges.len(), closed_by: None });
        Ok(())
    }

    /// Sets the end that closes the last connection first.
    pub(super) fn close(&mut self, closed_by: Option<End>) {
        if let Some(connection) = self.list.last_mut() {
            connection.closed_by = closed_by;
        }
    }

    /// Adds an exchange to the last connection.
    pub(super) fn add(&mut self, exchange: PlannedExchange) {
        let first = self.list.last().map_or(0, |connection| connection.first);
        if let Some(before) = self.exchanges[first..].last_mut() {
            before.last = false;
        }
        self.exchanges.push(PlannedExchange { last: true, ..exchange });
    }
}
