//! A row of a list, independent of the file's format.

use std::borrow::Cow;

use aqmlab_traffic::PlannedExchange;
use aqmlab_units::Span;
use aqmlab_units::text::parse_span;

use crate::suggest::nearest;

/// The required form of a trace.
pub(super) const WANTED: &str = "write a header with the columns `start_s` (or `start_ns`), `request_bytes`, \
                                 `response_bytes` and, if rows are selected by class, `class`, and one row \
                                 per connection; or one row per exchange, with `connection` and `exchange` \
                                 as well";

const START: [&str; 2] = ["start_s", "start_ns"];
const REQUEST: &str = "request_bytes";
const RESPONSE: &str = "response_bytes";
const CLASS: &str = "class";
/// Columns whose presence means that each row is one exchange.
const CONNECTION: &str = "connection";
const EXCHANGE: &str = "exchange";
pub(super) const THINK: [&str; 2] = ["think_s", "think_ns"];
pub(super) const SERVER_DELAY: [&str; 2] = ["server_delay_s", "server_delay_ns"];
const CLIENT_PATH: [&str; 2] = ["client_delay_s", "client_delay_ns"];
const SERVER_PATH: [&str; 2] = ["server_path_delay_s", "server_path_delay_ns"];
const NAMES: Names = Names { all: &[START[0], START[1], REQUEST, RESPONSE, CLASS], wanted: WANTED };
const VECTOR_NAMES: Names = Names {
    all: &[
        START[0],
        START[1],
        REQUEST,
        RESPONSE,
        CLASS,
        CONNECTION,
        EXCHANGE,
        THINK[0],
        THINK[1],
        SERVER_DELAY[0],
        SERVER_DELAY[1],
        CLIENT_PATH[0],
        CLIENT_PATH[1],
        SERVER_PATH[0],
        SERVER_PATH[1],
    ],
    wanted: WANTED,
};

/// The latest start and the longest wait: a year, which is also the limit for all other times in a scenario.
pub(super) const LATEST: Span = Span::s(365 * 86400);
/// The most bytes of a request or response: 2^50, which is also the limit for all other transfers in a scenario.
pub(super) const MOST_BYTES: u64 = 1 << 50;
/// The most connections of a class, and exchanges of a connection.
pub(super) const MOST: u64 = u32::MAX as u64;

/// A row as parsed.
pub(super) enum Row {
    /// A connection with a single exchange, whose request or response may be missing.
    Connection { class: Option<String>, start: Span, exchange: PlannedExchange },
    /// An exchange of a connection.
    Exchange(VectorRow),
}

/// An exchange of a connection, with the columns of its row.
pub(super) struct VectorRow {
    pub(super) class: Option<String>,
    pub(super) connection: u64,
    /// Number of the exchange on its connection.
    pub(super) number: u64,
    pub(super) start: Option<Span>,
    pub(super) delays: Option<[Span; 2]>,
    pub(super) exchange: PlannedExchange,
}

/// A value with the type that it has in the file.
pub(super) enum Cell<'r> {
    Text(Cow<'r, str>),
    Whole(i64),
    Number(f64),
    Nothing,
}

/// The columns that a file may have.
pub(super) struct Names {
    pub(super) all: &'static [&'static str],
    /// The required columns, for messages.
    pub(super) wanted: &'static str,
}

impl Names {
    /// Checks that the columns of a header are known and that each occurs only once.
    pub(super) fn check<'h>(&self, names: &'h [&'h str]) -> Result<Header<'h>, String> {
        for (i, name) in names.iter().enumerate() {
            if !self.all.contains(name) {
                return Err(match nearest(name, self.all.iter().copied()) {
                    Some(near) => format!("unknown column {name:?}; did you mean \"{near}\"?"),
                    None => format!("unknown column {name:?}; {}", self.wanted),
                });
            }
            if names[..i].contains(name) {
                return Err(format!("column \"{name}\" occurs twice"));
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
    /// Returns the position of a column, if it exists.
    pub(super) fn place(&self, wanted: &str) -> Option<usize> {
        self.names.iter().position(|name| *name == wanted)
    }

    /// Returns the position of a required column.
    pub(super) fn need(&self, wanted: &str) -> Result<usize, String> {
        self.place(wanted).ok_or_else(|| format!("column `{wanted}` is missing; {}", self.wanted))
    }

    /// Returns the column of times, in seconds or in nanoseconds.
    pub(super) fn when(&self, [in_s, in_ns]: [&'static str; 2]) -> Result<When, String> {
        match self.may_be_when([in_s, in_ns])? {
            Some(when) => Ok(when),
            None => self.need(in_s).map(|at| When { at, name: in_s, in_seconds: true }),
        }
    }

    /// Returns the column of times, if it exists.
    pub(super) fn may_be_when(&self, [in_s, in_ns]: [&'static str; 2]) -> Result<Option<When>, String> {
        match (self.place(in_s), self.place(in_ns)) {
            (Some(_), Some(_)) => Err(format!("`{in_s}` and `{in_ns}` mean the same; keep one of them")),
            (None, at) => Ok(at.map(|at| When { at, name: in_ns, in_seconds: false })),
            (at, None) => Ok(at.map(|at| When { at, name: in_s, in_seconds: true })),
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
    /// Returns the time of a row.
    pub(super) fn read(&self, cells: &[Cell<'_>]) -> Result<Span, String> {
        if self.in_seconds {
            return seconds(self.name, &cells[self.at]);
        }
        whole(self.name, &cells[self.at], 0, LATEST.as_ns()).map(Span::ns)
    }

    /// Returns the time of a row, if it has one.
    pub(super) fn read_if_there(&self, cells: &[Cell<'_>]) -> Result<Option<Span>, String> {
        if cells[self.at].is_empty() { Ok(None) } else { self.read(cells).map(Some) }
    }
}

/// The positions of the values in a row.
pub(super) struct Columns {
    start: When,
    request: usize,
    response: usize,
    class: Option<usize>,
    vector: Option<VectorColumns>,
}

/// The positions of the values that a row has only if each row is one exchange.
struct VectorColumns {
    connection: usize,
    exchange: usize,
    think: Option<When>,
    server_delay: Option<When>,
    /// The delays of the client and of the server.
    delays: Option<[When; 2]>,
}

impl Columns {
    /// Finds the columns by the names in the header.
    pub(super) fn of(names: &[&str], needs_class: bool) -> Result<Self, String> {
        let is_vector = names.contains(&CONNECTION);
        let names = if is_vector { VECTOR_NAMES } else { NAMES }.check(names)?;
        let start = names.when(START)?;
        let class = if needs_class { Some(names.need(CLASS)?) } else { names.place(CLASS) };
        let vector = if is_vector { Some(VectorColumns::of(&names)?) } else { None };
        Ok(Columns { start, request: names.need(REQUEST)?, response: names.need(RESPONSE)?, class, vector })
    }

    /// Returns the row with these values.
    pub(super) fn row(&self, cells: &[Cell<'_>]) -> Result<Row, String> {
        let class = match self.class.map(|at| &cells[at]) {
            None | Some(Cell::Nothing) => None,
            Some(Cell::Text(name)) => Some(name.to_string()),
            Some(Cell::Whole(n)) => Some(n.to_string()),
            Some(Cell::Number(x)) => Some(x.to_string()),
        };
        let start = match self.vector {
            Some(_) => self.start.read_if_there(cells)?,
            None => Some(self.start.read(cells)?),
        };
        let request = whole(REQUEST, &cells[self.request], 0, MOST_BYTES)?;
        let response = whole(RESPONSE, &cells[self.response], 0, MOST_BYTES)?;
        let exchange = PlannedExchange { request, response, last: true, ..PlannedExchange::default() };
        match (&self.vector, start) {
            (None, Some(start)) => {
                check_exchange(None, &exchange)?;
                Ok(Row::Connection { class, start, exchange })
            }
            (Some(vector), start) => vector.row(cells, class, start, exchange).map(Row::Exchange),
            (None, None) => unreachable!("without vectors, each row has a start"),
        }
    }
}

impl VectorColumns {
    fn of(names: &Header<'_>) -> Result<Self, String> {
        let delays = match (names.may_be_when(CLIENT_PATH)?, names.may_be_when(SERVER_PATH)?) {
            (Some(client), Some(server)) => Some([client, server]),
            (None, None) => None,
            (Some(_), None) => {
                return Err(format!(
                    "column `{}`, which `{}` requires, is missing",
                    SERVER_PATH[0], CLIENT_PATH[0]
                ));
            }
            (None, Some(_)) => {
                return Err(format!(
                    "column `{}`, which `{}` requires, is missing",
                    CLIENT_PATH[0], SERVER_PATH[0]
                ));
            }
        };
        Ok(VectorColumns {
            connection: names.need(CONNECTION)?,
            exchange: names.need(EXCHANGE)?,
            think: names.may_be_when(THINK)?,
            server_delay: names.may_be_when(SERVER_DELAY)?,
            delays,
        })
    }

    fn row(
        &self,
        cells: &[Cell<'_>],
        class: Option<String>,
        start: Option<Span>,
        exchange: PlannedExchange,
    ) -> Result<VectorRow, String> {
        let number_of = |name, at: usize| whole(name, &cells[at], 0, MOST - 1);
        let time = |column: &Option<When>| column.as_ref().map_or(Ok(Span::ZERO), |when| when.read(cells));
        let delays = match &self.delays {
            None => None,
            Some([client, server]) => match (client.read_if_there(cells)?, server.read_if_there(cells)?) {
                (Some(client), Some(server)) => Some([client, server]),
                (None, None) => None,
                _ => {
                    return Err(format!(
                        "`{}` and `{}` belong together; write both or neither",
                        client.name, server.name
                    ));
                }
            },
        };
        Ok(VectorRow {
            class,
            connection: number_of(CONNECTION, self.connection)?,
            number: number_of(EXCHANGE, self.exchange)?,
            start,
            delays,
            exchange: PlannedExchange {
                pause: time(&self.think)?,
                server_delay: time(&self.server_delay)?,
                ..exchange
            },
        })
    }
}

impl Cell<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Cell::Nothing => true,
            Cell::Text(text) => text.trim().is_empty(),
            Cell::Whole(_) | Cell::Number(_) => false,
        }
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

/// Returns a time in seconds. A text is read exactly; a value that is finer than a nanosecond is rounded.
fn seconds(column: &str, cell: &Cell<'_>) -> Result<Span, String> {
    let value = match cell {
        Cell::Text(text) => exact_span(text.trim()).or_else(|| nearest_span(text.trim().parse().ok()?)),
        Cell::Whole(n) => u64::try_from(*n).ok().and_then(|n| n.checked_mul(1_000_000_000)).map(Span::ns),
        Cell::Number(x) => nearest_span(*x),
        Cell::Nothing => None,
    };
    value
        .filter(|span| *span <= LATEST)
        .ok_or_else(|| wrong(column, cell, &format!("seconds from 0 to {}", LATEST.div_span(Span::s(1)))))
}

/// Returns the span of this many seconds, if the text is a number that is not finer than a nanosecond.
fn exact_span(text: &str) -> Option<Span> {
    let is_number = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | 'e' | 'E'));
    if is_number { parse_span(&format!("{text}s")).ok() } else { None }
}

/// Returns the span nearest to `seconds`. The whole seconds are taken apart, so that a time which a float holds
/// to the nanosecond is read as it is.
fn nearest_span(seconds: f64) -> Option<Span> {
    let whole = seconds.trunc();
    let rest = Span::try_from_secs_f64(seconds - whole)?;
    (0.0..=LATEST.as_secs_f64()).contains(&whole).then(|| Span::s(whole as u64) + rest)
}

/// Returns what is wrong with an exchange of a connection, given the exchange before it. Traces are read
/// and written with the same rules.
pub(super) fn check_exchange(
    before: Option<&PlannedExchange>,
    exchange: &PlannedExchange,
) -> Result<(), String> {
    let PlannedExchange { pause, request, server_delay, response, .. } = *exchange;
    if request == 0 && response == 0 {
        return Err(format!("the exchange carries nothing; write a `{REQUEST}` or a `{RESPONSE}` above 0"));
    }
    if before.is_none() && !pause.is_zero() {
        return Err(format!(
            "the client thinks for `{pause}` before the first exchange; the connection starts \
             at `start_s`, so the think time of the first exchange must be 0"
        ));
    }
    if request == 0 && !pause.is_zero() {
        return Err(format!(
            "the client thinks for `{pause}` but sends no request; write 0 as the think time, and the wait of the \
             server, which sends of its own accord, as `{}`",
            SERVER_DELAY[0]
        ));
    }
    if response == 0 && !server_delay.is_zero() {
        return Err(format!(
            "the server waits for `{server_delay}` but sends no response; write 0 as the delay, and the wait of the \
             client before its next request as the `{}` of that request",
            THINK[0]
        ));
    }
    if request == 0 && before.is_some_and(|before| before.response == 0) {
        return Err(
            "an exchange without a response is followed by one without a request; write them as one".into()
        );
    }
    Ok(())
}

/// Returns what is wrong with a connection that a trace is to contain.
pub(crate) fn check_connection(
    start: Span,
    delays: Option<[Span; 2]>,
    exchanges: &[PlannedExchange],
) -> Result<(), String> {
    let time = |name: &str, span: Span| {
        (span <= LATEST)
            .then_some(())
            .ok_or_else(|| format!("`{name}` is `{span}`; a trace holds at most `{LATEST}`"))
    };
    time(START[0], start)?;
    for (name, delay) in [CLIENT_PATH[0], SERVER_PATH[0]].into_iter().zip(delays.into_iter().flatten()) {
        time(name, delay)?;
    }
    if exchanges.len() as u64 > MOST {
        return Err(format!("there are {} exchanges; a trace holds at most {MOST}", exchanges.len()));
    }
    let mut before = None;
    for (number, exchange) in exchanges.iter().enumerate() {
        let size = |name: &str, bytes: u64| {
            let fits = bytes <= MOST_BYTES;
            fits.then_some(())
                .ok_or_else(|| format!("`{name}` is {bytes}; a trace holds at most {MOST_BYTES} bytes"))
        };
        time(THINK[0], exchange.pause)
            .and_then(|()| time(SERVER_DELAY[0], exchange.server_delay))
            .and_then(|()| size(REQUEST, exchange.request))
            .and_then(|()| size(RESPONSE, exchange.response))
            .and_then(|()| check_exchange(before, exchange))
            .map_err(|message| format!("exchange {number}: {message}"))?;
        before = Some(exchange);
    }
    Ok(())
}

/// Returns a whole number from `least` to `most`.
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

/// Returns a number from `least` to `most`.
pub(super) fn number(column: &str, cell: &Cell<'_>, least: f64, most: f64) -> Result<f64, String> {
    let value = match cell {
        Cell::Text(text) => text.trim().parse().ok(),
        Cell::Whole(n) => Some(*n as f64),
        Cell::Number(x) => Some(*x),
        Cell::Nothing => None,
    };
    value
        .filter(|x| (least..=most).contains(x))
        .ok_or_else(|| wrong(column, cell, &format!("a number from {least} to {most}")))
}

fn wrong(column: &str, cell: &Cell<'_>, right: &str) -> String {
    if cell.is_empty() {
        return format!("`{column}` has no value; write {right}");
    }
    format!("`{column}` is `{cell}`; write {right}")
}
