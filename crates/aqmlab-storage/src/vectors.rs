//! Connection vectors as files: CSV and Parquet, with one row per exchange, and the format of Tmix,
//! which ns-2 reads.
//!
//! `docs/vectors.md` describes the columns, and the limits of each format.

use std::fmt::Write as _;

use aqmlab_recording::{Schema, Table, Type};
use aqmlab_scenario::{ClassPlan, ConnectionVector};
use aqmlab_traffic::{End, PlannedExchange};
use aqmlab_units::{Instant, Span};

use crate::parquet_file::encode;

/// The columns, the same in CSV and Parquet. Values that belong to the whole connection are only in its first
/// row.
const VECTORS: Schema = Schema {
    name: "vectors",
    columns: &[
        ("class", Type::Str),
        ("connection", Type::U64),
        ("start_s", Type::NullableF64),
        ("exchange", Type::U64),
        ("think_s", Type::F64),
        ("request_bytes", Type::U64),
        ("server_delay_s", Type::F64),
        ("response_bytes", Type::U64),
        ("client_delay_s", Type::NullableF64),
        ("server_path_delay_s", Type::NullableF64),
    ],
};

/// The longest time that a float holds to the nanosecond: 2^23 seconds, 97 days.
const EXACT_AS_FLOAT: Span = Span::s(1 << 23);

/// Returns connection vectors as CSV (RFC 4180). Seconds are decimal numbers, exact to the nanosecond.
///
/// # Errors
/// If a trace cannot contain a connection. The error is a sentence without a full stop.
pub fn vectors_csv(classes: &[(&ClassPlan, Vec<ConnectionVector>)]) -> Result<String, String> {
    let names: Vec<_> = VECTORS.columns.iter().map(|(name, _)| *name).collect();
    let mut text = names.join(",");
    let maybe = |span: Option<Span>| span.map(seconds).unwrap_or_default();
    for row in rows(classes)? {
        let VectorRow { class, connection, start, number, exchange, delays: [client, server] } = row;
        // Names contain no characters that need quotes.
        _ = write!(
            text,
            "\n{class},{connection},{},{number},{},{},{},{},{},{}",
            maybe(start),
            seconds(exchange.pause),
            exchange.request,
            seconds(exchange.server_delay),
            exchange.response,
            maybe(client),
            maybe(server),
        );
    }
    text.push('\n');
    Ok(text)
}

/// Returns a span in seconds, with as many decimals as it needs.
fn seconds(span: Span) -> String {
    let (whole, rest) = (span.div_span(Span::s(1)), span.as_ns() % Span::s(1).as_ns());
    let text = format!("{whole}.{rest:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Returns connection vectors as Parquet.
///
/// # Errors
/// If a trace cannot contain a connection, or a time is too long to be exact as a float. The error is a sentence
/// without a full stop.
pub fn vectors_parquet(classes: &[(&ClassPlan, Vec<ConnectionVector>)]) -> Result<Vec<u8>, String> {
    let mut table = Table::new(&VECTORS);
    for VectorRow { class, connection, start, number, exchange, delays } in rows(classes)? {
        let PlannedExchange { pause, request, server_delay, response, .. } = exchange;
        let times = [start, Some(pause), Some(server_delay), delays[0], delays[1]];
        if let Some(time) = times.into_iter().flatten().find(|time| *time > EXACT_AS_FLOAT) {
            return Err(format!(
                "connection {connection} of \"{class}\" has a time of `{time}`, but times in Parquet are floats, which are \
                 exact to the nanosecond up to `{EXACT_AS_FLOAT}`; write CSV"
            ));
        }
        let maybe = |span: Option<Span>| span.map(Span::as_secs_f64);
        table.push([
            class.into(),
            connection.into(),
            maybe(start).into(),
            number.into(),
            pause.as_secs_f64().into(),
            request.into(),
            server_delay.as_secs_f64().into(),
            response.into(),
            maybe(delays[0]).into(),
            maybe(delays[1]).into(),
        ]);
    }
    encode(&[table]).map_err(|error| error.to_string())
}

/// An exchange with the values of its row.
struct VectorRow<'c> {
    class: &'c str,
    connection: u64,
    start: Option<Span>,
    number: u64,
    exchange: PlannedExchange,
    delays: [Option<Span>; 2],
}

/// Iterates over the exchanges of connections that a trace can contain.
fn rows<'c>(
    classes: &'c [(&ClassPlan, Vec<ConnectionVector>)],
) -> Result<impl Iterator<Item = VectorRow<'c>>, String> {
    for (class, vectors) in classes {
        check(class, vectors)?;
    }
    let of_class = |(class, vectors): &'c (&ClassPlan, Vec<ConnectionVector>)| {
        (0..).zip(vectors).flat_map(move |(connection, vector)| {
            (0..).zip(&vector.exchanges).map(move |(number, exchange)| {
                let of_first = |span: Span| (number == 0).then_some(span);
                VectorRow {
                    class: &class.name,
                    connection,
                    start: of_first(vector.start.saturating_since(Instant::ZERO)),
                    number,
                    exchange: *exchange,
                    delays: [0, 1]
                        .map(|end| vector.delays.and_then(|delays: [Span; 2]| of_first(delays[end]))),
                }
            })
        })
    };
    Ok(classes.iter().flat_map(of_class))
}

/// Checks that a trace can contain all connections of a class.
fn check(class: &ClassPlan, vectors: &[ConnectionVector]) -> Result<(), String> {
    for (number, vector) in vectors.iter().enumerate() {
        vector.check().map_err(|message| format!("connection {number} of \"{}\": {message}", class.name))?;
    }
    Ok(())
}

/// Largest application data unit in ns-2, which counts bytes in an `int`.
const MOST_OF_NS2: u64 = i32::MAX as u64;

/// Returns the connection vectors of a class in the alternate format of Tmix: microseconds and
/// bytes, sequential connections.
///
/// A zero time between an event and the action that it causes is written as 1 because ns-2 reads
/// 0 as *does not wait for this*. The end that sends last closes one microsecond later.
/// The file specifies no losses; the round-trip time that it gives for a connection covers only the
/// connection's own delays.
///
/// # Errors
/// If the format cannot hold a connection. The error is a sentence without a full stop.
pub fn vectors_tmix(class: &ClassPlan, vectors: &[ConnectionVector]) -> Result<String, String> {
    check(class, vectors)?;
    let tcp = class.traffic.tcp().expect("a class with exchanges has connections");
    let window = u64::from(tcp.receive_window).min(u64::from(tcp.max_window) * u64::from(tcp.mss));
    let mut text = String::new();
    for (number, vector) in vectors.iter().enumerate() {
        let refused = |message: &str| {
            format!("in connection {number} of \"{}\", {message}; write CSV or Parquet", class.name)
        };
        let delays = vector.delays.map_or(Span::ZERO, |[client, server]| (client + server) * 2);
        let (start, count) = (micros(vector.start.saturating_since(Instant::ZERO)), vector.exchanges.len());
        let id = number + 1;
        _ = write!(
            text,
            "S {start} {count} {id} {id}\nm {mss} {mss}\nw {window} {window}\nr {}\nl 0.000000 0.000000\n",
            micros(delays),
            mss = tcp.mss,
        );
        let mut sender = None;
        for (i, exchange) in vector.exchanges.iter().enumerate() {
            for (end, word, what, wait) in [
                (End::Client, 'I', "request", exchange.pause),
                (End::Server, 'A', "response", exchange.server_delay),
            ] {
                let size = exchange.bytes(end);
                if size == 0 {
                    continue;
                }
                if size > MOST_OF_NS2 {
                    return Err(refused(&format!(
                        "the {what} of exchange {i} has {size} bytes, but Tmix allows only up to {MOST_OF_NS2}"
                    )));
                }
                let wait = match sender {
                    None if wait.is_zero() => 0,
                    None => {
                        return Err(refused(&format!(
                            "the server waits for `{wait}` before it sends first, but in Tmix whoever sends first does \
                             so at once"
                        )));
                    }
                    Some(_) => micros(wait).max(1),
                };
                let [after_sending, after_arrival] = if sender == Some(end) { [wait, 0] } else { [0, wait] };
                _ = writeln!(text, "{word} {after_sending} {after_arrival} {size}");
                sender = Some(end);
            }
        }
        text.push_str(if sender == Some(End::Client) { "I 1 0 0\n" } else { "A 1 0 0\n" });
    }
    Ok(text)
}

/// Returns a time in microseconds, rounded to the nearest whole number.
fn micros(span: Span) -> u64 {
    (span + Span::ns(500)).div_span(Span::us(1))
}
