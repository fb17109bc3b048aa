//! Connection vectors as files: CSV and Parquet, with one row per exchange, and the format of Tmix,
//! which ns-2 reads.
//!
//! `docs/vectors.md` describes the columns, and the limits of each format.

use std::fmt::Write as _;

use aqmlab_scenario::{ClassPlan, ConnectionVector};
use aqmlab_traffic::PlannedExchange;
use aqmlab_units::{Instant, Span};

use crate::column::{ColumnData, Type};
use crate::error::RecordingError;
use crate::parquet_file::encode;
use crate::schema::Schema;
use crate::table::Table;

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

/// Returns connection vectors as CSV (RFC 4180). Seconds are decimal numbers, exact to the nanosecond.
pub fn vectors_csv(classes: &[(&ClassPlan, Vec<ConnectionVector>)]) -> String {
    csv(&table(classes))
}

/// Returns connection vectors as Parquet.
///
/// # Errors
/// If a value does not fit its column.
pub fn vectors_parquet(classes: &[(&ClassPlan, Vec<ConnectionVector>)]) -> Result<Vec<u8>, RecordingError> {
    encode(&table(classes))
}

fn table(classes: &[(&ClassPlan, Vec<ConnectionVector>)]) -> Table {
    let mut table = Table::new(&VECTORS);
    for (class, vectors) in classes {
        for (connection, vector) in vectors.iter().enumerate() {
            for (number, exchange) in vector.exchanges.iter().enumerate() {
                let of_first = |span: Span| (number == 0).then(|| span.as_secs_f64());
                let delay = |end: usize| vector.delays.and_then(|delays| of_first(delays[end]));
                table.push([
                    class.name.as_str().into(),
                    (connection as u64).into(),
                    of_first(vector.start.saturating_since(Instant::ZERO)).into(),
                    (number as u64).into(),
                    exchange.pause.as_secs_f64().into(),
                    exchange.request.into(),
                    exchange.server_delay.as_secs_f64().into(),
                    exchange.response.into(),
                    delay(0).into(),
                    delay(1).into(),
                ]);
            }
        }
    }
    table
}

/// Returns a table as text. Names contain no characters that need quotes, and each float is written as the
/// shortest text that is read back as the same float.
fn csv(table: &Table) -> String {
    let names: Vec<_> = table.columns.iter().map(|column| column.name).collect();
    let mut text = names.join(",");
    for row in 0..table.rows() {
        for (i, column) in table.columns.iter().enumerate() {
            text.push(if i == 0 { '\n' } else { ',' });
            match &column.data {
                ColumnData::Str(names) => text.push_str(names.row(row)),
                ColumnData::U64(values) => _ = write!(text, "{}", values[row]),
                ColumnData::F64(values) => _ = write!(text, "{}", values[row]),
                ColumnData::NullableF64(values) => {
                    _ = values[row].map(|value| write!(text, "{value}"));
                }
                other => unreachable!("vectors have no columns of type {:?}", other.type_of()),
            }
        }
    }
    text.push('\n');
    text
}

/// Largest application data unit in ns-2, which counts bytes in an `int`.
const MOST_OF_NS2: u64 = i32::MAX as u64;

/// Returns the connection vectors of a class in the alternate format of Tmix: microseconds and
/// bytes, sequential connections.
///
/// A zero time between an arrival and the action that it causes is written as 1 because ns-2 reads
/// 0 as *does not wait for an arrival*. The server closes one microsecond after its last response.
/// The file specifies no losses; the round-trip time that it gives for a connection covers only the
/// connection's own delays.
///
/// # Errors
/// If the format cannot hold a connection. The error is a sentence without a full stop.
pub fn vectors_tmix(class: &ClassPlan, vectors: &[ConnectionVector]) -> Result<String, String> {
    let tcp = class.workload.tcp().expect("a class with exchanges has connections");
    let window = u64::from(tcp.receive_window).min(u64::from(tcp.max_window) * u64::from(tcp.mss));
    let mut text = String::new();
    for (number, vector) in vectors.iter().enumerate() {
        let delays = vector.delays.map_or(Span::ZERO, |[client, server]| (client + server) * 2);
        let (start, count) = (micros(vector.start.saturating_since(Instant::ZERO)), vector.exchanges.len());
        let id = number + 1;
        _ = write!(
            text,
            "S {start} {count} {id} {id}\nm {mss} {mss}\nw {window} {window}\nr {}\nl 0.000000 0.000000\n",
            micros(delays),
            mss = tcp.mss,
        );
        for (i, exchange) in vector.exchanges.iter().enumerate() {
            let PlannedExchange { pause, request, server_delay, response, .. } = *exchange;
            for (what, size) in [("request", request), ("response", response)] {
                if !(1..=MOST_OF_NS2).contains(&size) {
                    return Err(format!(
                        "in connection {number} of \"{}\", the {what} of exchange {i} has {size} bytes, but Tmix allows only 1 to \
                         {MOST_OF_NS2} bytes; write CSV or Parquet",
                        class.name
                    ));
                }
            }
            let asks = if i == 0 { 0 } else { micros(pause).max(1) };
            _ = write!(text, "I 0 {asks} {request}\nA 0 {} {response}\n", micros(server_delay).max(1));
        }
        text.push_str("A 1 0 0\n");
    }
    Ok(text)
}

/// Returns a time in microseconds, rounded to the nearest whole number.
fn micros(span: Span) -> u64 {
    (span + Span::ns(500)).div_span(Span::us(1))
}
