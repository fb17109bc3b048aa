//! A row of a trace, whatever the format of the file.

use aqmlab_units::{Bytes, Span};

use super::TracedConnection;
use crate::suggest::nearest;

/// What a trace must have.
pub(super) const WANTED: &str = "write a header with the columns `start_s` (or `start_ns`), `request_bytes`, `response_bytes` and, where rows are \
     taken by class, `class`, and a row for each connection";

const START_S: &str = "start_s";
const START_NS: &str = "start_ns";
const REQUEST: &str = "request_bytes";
const RESPONSE: &str = "response_bytes";
const CLASS: &str = "class";
const ALL: [&str; 5] = [START_S, START_NS, REQUEST, RESPONSE, CLASS];

/// A year, as for every other time in a scenario.
const LATEST_S: f64 = 365.0 * 86400.0;
/// As for every other transfer in a scenario.
const MOST_BYTES: u64 = 1 << 50;

/// A row understood.
pub(super) struct Row {
    pub(super) class: Option<String>,
    pub(super) connection: TracedConnection,
}

/// A value as the file has it.
pub(super) enum Cell {
    Text(String),
    Whole(i64),
    Number(f64),
    Nothing,
}

/// Where in a row each value stands.
pub(super) struct Columns {
    start: usize,
    in_seconds: bool,
    request: usize,
    response: usize,
    class: Option<usize>,
}

impl Columns {
    /// By the names in the header.
    pub(super) fn of(names: &[&str], needs_class: bool) -> Result<Self, String> {
        for (i, name) in names.iter().enumerate() {
            if !ALL.contains(name) {
                return Err(match nearest(name, ALL) {
                    Some(near) => format!("unknown column {name:?}; did you mean \"{near}\"?"),
                    None => format!("unknown column {name:?}; {WANTED}"),
                });
            }
            if names[..i].contains(name) {
                return Err(format!("column \"{name}\" stands twice"));
            }
        }
        let place = |wanted: &str| names.iter().position(|name| *name == wanted);
        let need =
            |wanted: &str| place(wanted).ok_or_else(|| format!("column `{wanted}` is missing; {WANTED}"));
        let (start, in_seconds) = match (place(START_S), place(START_NS)) {
            (Some(_), Some(_)) => {
                return Err("`start_s` and `start_ns` mean the same; keep one of them".into());
            }
            (None, Some(at)) => (at, false),
            _ => (need(START_S)?, true),
        };
        let class = if needs_class { Some(need(CLASS)?) } else { place(CLASS) };
        Ok(Columns { start, in_seconds, request: need(REQUEST)?, response: need(RESPONSE)?, class })
    }

    /// The row with these values.
    pub(super) fn row(&self, cells: &[Cell]) -> Result<Row, String> {
        let start = if self.in_seconds {
            seconds(&cells[self.start])?
        } else {
            Span::ns(whole(START_NS, &cells[self.start], (LATEST_S * 1e9) as u64)?)
        };
        let request = Bytes::new(whole(REQUEST, &cells[self.request], MOST_BYTES)?);
        let response = Bytes::new(whole(RESPONSE, &cells[self.response], MOST_BYTES)?);
        if request.is_zero() && response.is_zero() {
            return Err(
                "the connection carries nothing; write a `request_bytes` or a `response_bytes` above 0"
                    .into(),
            );
        }
        let class = match self.class.map(|at| &cells[at]) {
            None | Some(Cell::Nothing) => None,
            Some(Cell::Text(name)) => Some(name.clone()),
            Some(Cell::Whole(n)) => Some(n.to_string()),
            Some(Cell::Number(x)) => Some(x.to_string()),
        };
        Ok(Row { class, connection: TracedConnection { start, request, response } })
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Text(text) => f.write_str(text),
            Cell::Whole(n) => n.fmt(f),
            Cell::Number(x) => x.fmt(f),
            Cell::Nothing => Ok(()),
        }
    }
}

fn seconds(cell: &Cell) -> Result<Span, String> {
    let value = match cell {
        Cell::Text(text) => text.trim().parse().ok(),
        Cell::Whole(n) => Some(*n as f64),
        Cell::Number(x) => Some(*x),
        Cell::Nothing => None,
    };
    value
        .filter(|s| (0.0..=LATEST_S).contains(s))
        .and_then(Span::try_from_secs_f64)
        .ok_or_else(|| wrong(START_S, cell, &format!("seconds from 0 to {LATEST_S}")))
}

fn whole(column: &str, cell: &Cell, most: u64) -> Result<u64, String> {
    let value = match cell {
        Cell::Text(text) => text.trim().parse().ok(),
        Cell::Whole(n) => u64::try_from(*n).ok(),
        Cell::Number(_) | Cell::Nothing => None,
    };
    value
        .filter(|n| *n <= most)
        .ok_or_else(|| wrong(column, cell, &format!("a whole number from 0 to {most}")))
}

fn wrong(column: &str, cell: &Cell, right: &str) -> String {
    match cell {
        Cell::Nothing => format!("`{column}` has no value; write {right}"),
        Cell::Text(text) if text.trim().is_empty() => format!("`{column}` has no value; write {right}"),
        cell => format!("`{column}` is `{cell}`; write {right}"),
    }
}
