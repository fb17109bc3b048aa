//! The two formats of lists: CSV and Parquet.

use std::borrow::Cow;

use csv::{ErrorKind, ReaderBuilder, StringRecord, Trim};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::row::Cell;

/// Reads the rows of a CSV file with a header (RFC 4180): `columns` receives the header, and `row`
/// each row. Messages call the file `what`.
pub(super) fn rows_of_csv<C, R>(
    what: &str,
    file: &str,
    content: &[u8],
    wanted: &str,
    columns: impl FnOnce(&[&str]) -> Result<C, String>,
    mut row: impl FnMut(&C, &[Cell<'_>]) -> Result<R, String>,
) -> Result<Vec<R>, String> {
    let at_line = |line: u64, message: &str| format!("{what} `{file}`, line {line}: {message}");
    let at_error = |error: &csv::Error| {
        let line = error.position().map_or(1, |position| line_at(content, position));
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
    let columns = columns(&names).map_err(|message| at_line(line_of(content, &header), &message))?;
    let (mut rows, mut record) = (Vec::new(), StringRecord::new());
    while reader.read_record(&mut record).map_err(|error| at_error(&error))? {
        let cells: Vec<Cell<'_>> = record.iter().map(|text| Cell::Text(Cow::Borrowed(text))).collect();
        rows.push(row(&columns, &cells).map_err(|message| at_line(line_of(content, &record), &message))?);
    }
    Ok(rows)
}

fn line_of(content: &[u8], record: &StringRecord) -> u64 {
    record.position().map_or(1, |position| line_at(content, position))
}

/// Returns the line of a position. Where lines end in CR LF, the reader begins a record at the LF before it.
fn line_at(content: &[u8], position: &csv::Position) -> u64 {
    position.line() + u64::from(content.get(position.byte() as usize) == Some(&b'\n'))
}

/// Reads the rows of a Parquet file: `columns` receives the names of the columns, and `row` each
/// row. Messages call the file `what`.
pub(super) fn rows_of_parquet<C, R>(
    what: &str,
    file: &str,
    content: Vec<u8>,
    columns: impl FnOnce(&[&str]) -> Result<C, String>,
    mut row: impl FnMut(&C, &[Cell<'_>]) -> Result<R, String>,
) -> Result<Vec<R>, String> {
    let whole =
        |error: &dyn std::fmt::Display| format!("{what} `{file}` is not a readable Parquet file: {error}");
    let reader = SerializedFileReader::new(bytes::Bytes::from(content)).map_err(|e| whole(&e))?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let names: Vec<&str> = schema.root_schema().get_fields().iter().map(|field| field.name()).collect();
    let columns = columns(&names).map_err(|message| format!("{what} `{file}`: {message}"))?;
    let mut rows = Vec::new();
    for (i, values) in reader.get_row_iter(None).map_err(|e| whole(&e))?.enumerate() {
        let values = values.map_err(|e| whole(&e))?;
        let cells: Vec<Cell<'_>> = values.get_column_iter().map(|(_, field)| cell(field)).collect();
        let row = row(&columns, &cells);
        rows.push(row.map_err(|message| format!("{what} `{file}`, row {}: {message}", i + 1))?);
    }
    Ok(rows)
}

fn cell(field: &Field) -> Cell<'_> {
    match field {
        Field::Null => Cell::Nothing,
        Field::Byte(n) => Cell::Whole(i64::from(*n)),
        Field::Short(n) => Cell::Whole(i64::from(*n)),
        Field::Int(n) => Cell::Whole(i64::from(*n)),
        Field::Long(n) => Cell::Whole(*n),
        Field::UByte(n) => Cell::Whole(i64::from(*n)),
        Field::UShort(n) => Cell::Whole(i64::from(*n)),
        Field::UInt(n) => Cell::Whole(i64::from(*n)),
        Field::Float(x) => Cell::Number(f64::from(*x)),
        Field::Double(x) => Cell::Number(*x),
        Field::Str(text) => Cell::Text(Cow::Borrowed(text)),
        // Values of other types become text, which appears in the message if a number is required.
        other => Cell::Text(Cow::Owned(other.to_string())),
    }
}
