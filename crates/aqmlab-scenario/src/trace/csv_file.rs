//! Traces in CSV, with a header (RFC 4180).

use csv::{ErrorKind, ReaderBuilder, StringRecord, Trim};

use super::row::{Cell, Columns, Row, WANTED};

/// The rows of the file.
pub(super) fn rows(file: &str, content: &[u8], needs_class: bool) -> Result<Vec<Row>, String> {
    let mut reader = ReaderBuilder::new().trim(Trim::All).comment(Some(b'#')).from_reader(content);
    let header = reader.headers().map_err(|error| at_error(file, &error))?.clone();
    if header.is_empty() {
        return Err(format!("the trace `{file}` is empty; {WANTED}"));
    }
    let names: Vec<&str> = header.iter().collect();
    let columns = Columns::of(&names, needs_class).map_err(|what| at_line(file, line_of(&header), &what))?;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| at_error(file, &error))?;
        let cells: Vec<Cell> = record.iter().map(|text| Cell::Text(text.to_string())).collect();
        rows.push(columns.row(&cells).map_err(|what| at_line(file, line_of(&record), &what))?);
    }
    Ok(rows)
}

fn line_of(record: &StringRecord) -> u64 {
    record.position().map_or(1, csv::Position::line)
}

fn at_line(file: &str, line: u64, what: &str) -> String {
    format!("trace `{file}`, line {line}: {what}")
}

/// What the reader of CSV stumbled over.
fn at_error(file: &str, error: &csv::Error) -> String {
    let line = error.position().map_or(1, csv::Position::line);
    match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            at_line(file, line, &format!("{len} values where the header has {expected_len} columns"))
        }
        ErrorKind::Utf8 { .. } => at_line(file, line, "it is not UTF-8 text"),
        _ => format!("trace `{file}`: {error}"),
    }
}
