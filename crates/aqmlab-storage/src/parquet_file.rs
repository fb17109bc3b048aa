//! Tables as Parquet files: times and counters are stored as differences, names in a dictionary.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use aqmlab_recording::{Column, ColumnData, RecordingError, Table, Type};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{
    ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type as Node};

/// Number of decimal digits in a column of exact integrals.
const DECIMAL_DIGITS: i32 = 38;
/// The smallest number that needs more than [`DECIMAL_DIGITS`] digits.
const DECIMAL_LIMIT: u128 = 10u128.pow(DECIMAL_DIGITS as u32);

/// Returns the bytes of a Parquet file with one row group for each of `parts`, which have the same columns.
///
/// # Panics
/// If there are no parts.
pub(crate) fn encode(parts: &[Table]) -> Result<Vec<u8>, RecordingError> {
    let mut file = Writer::new(&parts[0], Vec::new())?;
    parts.iter().try_for_each(|part| file.append(part))?;
    file.finish()
}

/// The file of a table that is written in parts, one row group each.
pub(crate) struct Writer<W: Write + Send> {
    table: &'static str,
    file: SerializedFileWriter<W>,
}

impl<W: Write + Send> Writer<W> {
    /// Begins the file of a table that has the columns of `table`.
    pub(crate) fn new(table: &Table, sink: W) -> Result<Self, RecordingError> {
        let file = node(table)
            .and_then(|node| SerializedFileWriter::new(sink, Arc::new(node), Arc::new(properties(table))))
            .map_err(failure(table.name))?;
        Ok(Writer { table: table.name, file })
    }

    /// Writes the rows of `part`, which has the same columns.
    pub(crate) fn append(&mut self, part: &Table) -> Result<(), RecordingError> {
        let columns =
            part.columns.iter().map(|column| encodable(part.name, column)).collect::<Result<Vec<_>, _>>()?;
        self.group(columns).map_err(failure(self.table))
    }

    fn group(&mut self, columns: Vec<Encodable>) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for column in columns {
            let mut writer =
                group.next_column()?.ok_or_else(|| ParquetError::General("too many columns".into()))?;
            column.write(&mut writer)?;
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Completes the file.
    pub(crate) fn finish(self) -> Result<W, RecordingError> {
        self.file.into_inner().map_err(failure(self.table))
    }
}

/// Returns a function that converts the encoder's errors. An error from the sink keeps its kind, so that a
/// full disk is recognised.
fn failure(table: &'static str) -> impl Fn(ParquetError) -> RecordingError {
    move |error| match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => RecordingError::io("write", Path::new(&format!("{table}.parquet")))(*source),
            Err(other) => RecordingError::Encoding { table, message: other.to_string() },
        },
        other => RecordingError::Encoding { table, message: other.to_string() },
    }
}

fn node(table: &Table) -> Result<Node, ParquetError> {
    let fields = table.columns.iter().map(|column| field(column).map(Arc::new)).collect::<Result<_, _>>()?;
    Node::group_type_builder(table.name).with_fields(fields).build()
}

fn field(column: &Column) -> Result<Node, ParquetError> {
    let (physical, logical, repetition) = match column.data.type_of() {
        // Signed because every reader computes with signed numbers; `encodable` checks the range.
        Type::U64 | Type::I64 => (Physical::INT64, None, Repetition::REQUIRED),
        Type::NullableU64 => (Physical::INT64, None, Repetition::OPTIONAL),
        Type::F64 => (Physical::DOUBLE, None, Repetition::REQUIRED),
        Type::NullableF64 => (Physical::DOUBLE, None, Repetition::OPTIONAL),
        Type::Str => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
        Type::U128 => (Physical::FIXED_LEN_BYTE_ARRAY, Some(decimal()), Repetition::REQUIRED),
        Type::NullableU128 => (Physical::FIXED_LEN_BYTE_ARRAY, Some(decimal()), Repetition::OPTIONAL),
    };
    let mut builder = Node::primitive_type_builder(column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical);
    if physical == Physical::FIXED_LEN_BYTE_ARRAY {
        builder = builder.with_length(16).with_precision(DECIMAL_DIGITS).with_scale(0);
    }
    builder.build()
}

fn decimal() -> LogicalType {
    LogicalType::decimal(0, DECIMAL_DIGITS)
}

fn properties(table: &Table) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("aqmlab ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::SNAPPY)
        // Files are read as a whole, so statistics for skipping parts would only make the files larger.
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false);
    for column in &table.columns {
        let path = ColumnPath::from(column.name);
        builder = match column.data.type_of() {
            Type::U64 | Type::I64 | Type::NullableU64 => {
                builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
            }
            Type::Str => builder.set_column_dictionary_enabled(path, true),
            _ => builder,
        };
    }
    builder.build()
}

/// A column in Parquet's form: the values that are present and, for a nullable column, which rows have one.
struct Encodable {
    values: Values,
    levels: Option<Vec<i16>>,
}

enum Values {
    Int(Vec<i64>),
    Float(Vec<f64>),
    Text(Vec<ByteArray>),
    Decimal(Vec<FixedLenByteArray>),
}

fn encodable(table: &'static str, column: &Column) -> Result<Encodable, RecordingError> {
    let too_large = |value: u128| RecordingError::TooLarge { table, column: column.name, value };
    let int = |&x: &u64| i64::try_from(x).map_err(|_| too_large(x.into()));
    let decimal = |&x: &u128| {
        let fits = x < DECIMAL_LIMIT;
        if fits { Ok(FixedLenByteArray::from(x.to_be_bytes().to_vec())) } else { Err(too_large(x)) }
    };
    let required = |values| Encodable { values, levels: None };
    Ok(match &column.data {
        ColumnData::U64(v) => required(Values::Int(v.iter().map(int).collect::<Result<_, _>>()?)),
        ColumnData::I64(v) => required(Values::Int(v.clone())),
        ColumnData::F64(v) => required(Values::Float(v.clone())),
        ColumnData::Str(v) => required(Values::Text(v.iter().map(ByteArray::from).collect())),
        ColumnData::U128(v) => required(Values::Decimal(v.iter().map(decimal).collect::<Result<_, _>>()?)),
        ColumnData::NullableU64(v) => Encodable {
            values: Values::Int(v.iter().flatten().map(int).collect::<Result<_, _>>()?),
            levels: Some(levels(v)),
        },
        ColumnData::NullableF64(v) => Encodable {
            values: Values::Float(v.iter().flatten().copied().collect()),
            levels: Some(levels(v)),
        },
        ColumnData::NullableU128(v) => Encodable {
            values: Values::Decimal(v.iter().flatten().map(decimal).collect::<Result<_, _>>()?),
            levels: Some(levels(v)),
        },
    })
}

/// Returns Parquet's definition levels: 1 where there is a value.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|value| i16::from(value.is_some())).collect()
}

impl Encodable {
    fn write(&self, writer: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = self.levels.as_deref();
        match &self.values {
            Values::Int(v) => writer.typed::<Int64Type>().write_batch(v, levels, None),
            Values::Float(v) => writer.typed::<DoubleType>().write_batch(v, levels, None),
            Values::Text(v) => writer.typed::<ByteArrayType>().write_batch(v, levels, None),
            Values::Decimal(v) => writer.typed::<FixedLenByteArrayType>().write_batch(v, levels, None),
        }
        .map(|_rows| ())
    }
}
