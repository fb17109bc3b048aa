//! A row of a list, whatever the format of the file.

use std::borrow::Cow;

use aqmlab_units::{Bytes, Span};

use crate::suggest::nearest;

/// What a trace must have.
pub(super) const WANTED: &str = "write a header with the columns `start_s` (or `start_ns`), `request_bytes`, `response_bytes` and, where rows are \
     taken by class, `class`, and a row for each connection";

const START_S: &str = "start_s";
const START_NS: &str = "start_ns";
const REQUEST: &str = "request_bytes";
const RESPONSE: &str = "response_bytes";
const CLASS: &str = "class";
const NAMES: Names = Names { all: &[START_S, START_NS, REQUEST, RESPONSE, CLASS], wanted: WANTED };

/// A year, as for every other time in a scenario.
const LATEST_S: f64 = 365.0 * 86400.0;
/// As for every other transfer in a scenario.
const MOST_BYTES: u64 = 1 << 50;

/// One connection of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TracedConnection {
    /// When the client opens it.
    pub start: Span,
    /// What the client sends.
    pub request: Bytes,
    /// What the server answers when it has all of that.
    pub response: Bytes,
}

/// A row understood.
pub(super) struct Row {
    pub(super) class: Option<String>,
    pub(super) connection: TracedConnection,
}

/// A value as the file has it.
pub(super) enum Cell<'r> {
    Text(Cow<'r, str>),
    Whole(i64),
    Number(f64),
    Nothing,
}

/// The columns that a file may have.
pub(super) struct Names {
    pub(super) all: &'static [&'static str],
    /// What is wanted, for messages.
    pub(super) wanted: &'static str,
}

impl Names {
    /// Those of a header, each known and there once.
    pub(super) fn check<'h>(&self, names: &'h [&'h str]) -> Result<Header<'h>, String> {
        for (i, name) in names.iter().enumerate() {
            if !self.all.contains(name) {
                return Err(match nearest(name, self.all.iter().copied()) {
                    Some(near) => format!("unknown column {name:?}; did you mean \"{near}\"?"),
                    None => format!("unknown column {name:?}; {}", self.wanted),
                });
            }
            if names[..i].contains(name) {
                return Err(format!("column \"{name}\" stands twice"));
            }
        }
        Ok(Header { names, wanted: self.wanted })
    }
}

/// The columns that a file has.
pub(super) struct Header<'h> {
    names: &'h [&'h str],
    wanted: &'static str,
}

impl Header<'_> {
    /// Where a column stands, if it is there.
    pub(super) fn place(&self, wanted: &str) -> Option<usize> {
        self.names.iter().position(|name| *name == wanted)
    }

    /// Where a column stands that must be there.
    pub(super) fn need(&self, wanted: &str) -> Result<usize, String> {
        self.place(wanted).ok_or_else(|| format!("column `{wanted}` is missing; {}", self.wanted))
    }

    /// The column of times: in seconds or in nanoseconds.
    pub(super) fn when(&self, in_s: &'static str, in_ns: &'static str) -> Result<When, String> {
        match (self.place(in_s), self.place(in_ns)) {
            (Some(_), Some(_)) => Err(format!("`{in_s}` and `{in_ns}` mean the same; keep one of them")),
            (None, Some(at)) => Ok(When { at, name: in_ns, in_seconds: false }),
            _ => Ok(When { at: self.need(in_s)?, name: in_s, in_seconds: true }),
        }
    }
}

/// A column of times.
pub(super) struct When {
    at: usize,
    name: &'static str,
    in_seconds: bool,
}

impl When {
    /// The time of a row.
    pub(super) fn read(&self, cells: &[Cell<'_>]) -> Result<Span, String> {
        if self.in_seconds {
            return seconds(self.name, &cells[self.at]);
        }
        whole(self.name, &cells[self.at], 0, (LATEST_S * 1e9) as u64).map(Span::ns)
    }
}

/// Where in a row each value stands.
pub(super) struct Columns {
    start: When,
    request: usize,
    response: usize,
    class: Option<usize>,
}

impl Columns {
    /// By the names in the header.
    pub(super) fn of(names: &[&str], needs_class: bool) -> Result<Self, String> {
        let names = NAMES.check(names)?;
        let start = names.when(START_S, START_NS)?;
        let class = if needs_class { Some(names.need(CLASS)?) } else { names.place(CLASS) };
        Ok(Columns { start, request: names.need(REQUEST)?, response: names.need(RESPONSE)?, class })
    }

    /// The row with these values.
    pub(super) fn row(&self, cells: &[Cell<'_>]) -> Result<Row, String> {
        let start = self.start.read(cells)?;
        let request = Bytes::new(whole(REQUEST, &cells[self.request], 0, MOST_BYTES)?);
        let response = Bytes::new(whole(RESPONSE, &cells[self.response], 0, MOST_BYTES)?);
        if request.is_zero() && response.is_zero() {
            return Err(
                "the connection carries nothing; write a `request_bytes` or a `response_bytes` above 0"
                    .into(),
            );
        }
        let class = match self.class.map(|at| &cells[at]) {
            None | Some(Cell::Nothing) => None,
            Some(Cell::Text(name)) => Some(name.to_string()),
            Some(Cell::Whole(n)) => Some(n.to_string()),
            Some(Cell::Number(x)) => Some(x.to_string()),
        };
        Ok(Row { class, connection: TracedConnection { start, request, response } })
    }
}

impl std::fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Text(text) => f.write_str(text),
            Cell::Whole(n) => n.fmt(f),
            Cell::Number(x) => x.fmt(f),
            Cell::Nothing => Ok(()),
        }
    }
}

fn seconds(column: &str, cell: &Cell<'_>) -> Result<Span, String> {
    let value = match cell {
        Cell::Text(text) => text.trim().parse().ok(),
        Cell::Whole(n) => Some(*n as f64),
        Cell::Number(x) => Some(*x),
        Cell::Nothing => None,
    };
    value
        .filter(|s| (0.0..=LATEST_S).contains(s))
        .and_then(Span::try_from_secs_f64)
        .ok_or_else(|| wrong(column, cell, &format!("seconds from 0 to {LATEST_S}")))
}

/// A whole number from `least` to `most`.
pub(super) fn whole(column: &str, cell: &Cell<'_>, least: u64, most: u64) -> Result<u64, String> {
    let value = match cell {
        Cell::Text(text) => text.trim().parse().ok(),
        Cell::Whole(n) => u64::try_from(*n).ok(),
        Cell::Number(_) | Cell::Nothing => None,
    };
    value
        .filter(|n| (least..=most).contains(n))
        .ok_or_else(|| wrong(column, cell, &format!("a whole number from {least} to {most}")))
}

fn wrong(column: &str, cell: &Cell<'_>, right: &str) -> String {
    match cell {
        Cell::Nothing => format!("`{column}` has no value; write {right}"),
        Cell::Text(text) if text.trim().is_empty() => format!("`{column}` has no value; write {right}"),
        cell => format!("`{column}` is `{cell}`; write {right}"),
    }
}
