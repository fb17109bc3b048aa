//! Traces in Parquet.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::row::{Cell, Columns, Row};

/// The rows of the file.
pub(super) fn rows(file: &str, content: Vec<u8>, needs_class: bool) -> Result<Vec<Row>, String> {
    let whole = |error: &dyn std::fmt::Display| {
        format!("trace `{file}` is no Parquet file that can be read: {error}")
    };
    let reader = SerializedFileReader::new(bytes::Bytes::from(content)).map_err(|e| whole(&e))?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let names: Vec<&str> = schema.root_schema().get_fields().iter().map(|field| field.name()).collect();
    let columns = Columns::of(&names, needs_class).map_err(|what| format!("trace `{file}`: {what}"))?;
    let mut rows = Vec::new();
    for (i, row) in reader.get_row_iter(None).map_err(|e| whole(&e))?.enumerate() {
        let row = row.map_err(|e| whole(&e))?;
        let cells: Vec<Cell> = row.get_column_iter().map(|(_, field)| cell(field)).collect();
        rows.push(columns.row(&cells).map_err(|what| format!("trace `{file}`, row {}: {what}", i + 1))?);
    }
    Ok(rows)
}

fn cell(field: &Field) -> Cell {
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
        Field::Str(text) => Cell::Text(text.clone()),
        // Whatever else there is: its text says what it is where a number is wanted.
        other => Cell::Text(other.to_string()),
    }
}
