//! Lists in CSV, with a header (RFC 4180).

use std::borrow::Cow;

use csv::{ErrorKind, ReaderBuilder, StringRecord, Trim};

use super::row::Cell;

/// The rows of the file, which is a `what`: `columns` reads the header, `row` each row.
pub(super) fn rows<C, R>(
    what: &str,
    file: &str,
    content: &[u8],
    wanted: &str,
    columns: impl FnOnce(&[&str]) -> Result<C, String>,
    row: impl Fn(&C, &[Cell<'_>]) -> Result<R, String>,
) -> Result<Vec<R>, String> {
    let at_line = |line: u64, message: &str| format!("{what} `{file}`, line {line}: {message}");
    let at_error = |error: &csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        match error.kind() {
            ErrorKind::UnequalLengths { expected_len, len, .. } => {
                at_line(line, &format!("{len} values where the header has {expected_len} columns"))
            }
            ErrorKind::Utf8 { .. } => at_line(line, "it is not UTF-8 text"),
            _ => format!("{what} `{file}`: {error}"),
        }
    };
    let mut reader = ReaderBuilder::new().trim(Trim::All).comment(Some(b'#')).from_reader(content);
    let header = reader.headers().map_err(|error| at_error(&error))?.clone();
    if header.is_empty() {
        return Err(format!("the {what} `{file}` is empty; {wanted}"));
    }
    let names: Vec<&str> = header.iter().collect();
    let columns = columns(&names).map_err(|message| at_line(line_of(&header), &message))?;
    let (mut rows, mut record) = (Vec::new(), StringRecord::new());
    while reader.read_record(&mut record).map_err(|error| at_error(&error))? {
        let cells: Vec<Cell<'_>> = record.iter().map(|text| Cell::Text(Cow::Borrowed(text))).collect();
        rows.push(row(&columns, &cells).map_err(|message| at_line(line_of(&record), &message))?);
    }
    Ok(rows)
}

fn line_of(record: &StringRecord) -> u64 {
    record.position().map_or(1, csv::Position::line)
}
