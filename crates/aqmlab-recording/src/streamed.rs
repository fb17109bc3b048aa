//! A table that is passed on in batches during the run.

use crate::digest::{Digest, Hasher};
use crate::error::RecordingError;
use crate::schema::Schema;
use crate::table::Table;

/// The file of a table that is written in batches during the run.
pub trait TableFile: Send {
    /// Writes the rows of `batch`. Nothing may be written after an error.
    ///
    /// # Errors
    /// If a value does not fit its column, or the operating system refuses an operation.
    fn append(&mut self, batch: &Table) -> Result<(), RecordingError>;

    /// Completes the file, and returns its SHA-256.
    ///
    /// # Errors
    /// If the operating system refuses an operation.
    fn finish(self: Box<Self>) -> Result<Digest, RecordingError>;
}

/// A table that is being written in batches.
pub struct TableWriter {
    schema: &'static Schema,
    sink: Sink,
    hasher: Hasher,
    rows: u64,
}

enum Sink {
    File(Box<dyn TableFile>),
    Memory(Vec<Table>),
}

/// A table that was written during the run.
#[derive(Clone, PartialEq, Debug)]
pub struct StreamedTable {
    /// Its name, which is also the stem of its file name.
    pub name: &'static str,
    /// The number of its rows.
    pub rows: u64,
    /// The SHA-256 of its logical contents, see [`TableWriter`].
    pub digest: Digest,
    /// Where the rows are.
    pub place: Place,
}

/// Where the rows of a table are that was written during the run.
#[derive(Clone, PartialEq, Debug)]
pub enum Place {
    /// In a file with this SHA-256.
    File(Digest),
    /// In memory, in the batches in which they were written.
    Memory(Vec<Table>),
}

/// The digest of the contents is computed like that of [`Table::digest`], with two differences,
/// because the number of rows is not known until the end: the hashed bytes begin with the text
/// `aqmlab-table-2`, and the number of rows (u64) follows the values.
impl TableWriter {
    /// Begins a table that is written to `file`.
    pub fn new(schema: &'static Schema, file: Box<dyn TableFile>) -> Self {
        TableWriter::of(schema, Sink::File(file))
    }

    /// Begins a table that is held in memory, for a run without a directory.
    pub fn in_memory(schema: &'static Schema) -> Self {
        TableWriter::of(schema, Sink::Memory(Vec::new()))
    }

    fn of(schema: &'static Schema, sink: Sink) -> Self {
        let mut hasher = Hasher::new();
        hasher.text("aqmlab-table-2");
        Table::new(schema).hash_columns(&mut hasher);
        TableWriter { schema, sink, hasher, rows: 0 }
    }

    /// Returns the schema of the table.
    pub const fn schema(&self) -> &'static Schema {
        self.schema
    }

    /// Writes the rows of `batch`.
    ///
    /// # Errors
    /// See [`TableFile::append`].
    ///
    /// # Panics
    /// If `batch` is a part of another table.
    pub fn append(&mut self, batch: Table) -> Result<(), RecordingError> {
        assert_eq!(batch.name, self.schema.name, "a part of another table");
        batch.hash_rows(&mut self.hasher);
        self.rows += batch.rows() as u64;
        match &mut self.sink {
            Sink::File(file) => file.append(&batch)?,
            Sink::Memory(batches) => batches.push(batch),
        }
        Ok(())
    }

    /// Completes the table.
    ///
    /// # Errors
    /// If the operating system refuses an operation.
    pub fn finish(mut self) -> Result<StreamedTable, RecordingError> {
        if self.rows == 0 {
            self.append(Table::new(self.schema))?;
        }
        self.hasher.u64(self.rows);
        Ok(StreamedTable {
            name: self.schema.name,
            rows: self.rows,
            place: match self.sink {
                Sink::File(file) => Place::File(file.finish()?),
                Sink::Memory(batches) => Place::Memory(batches),
            },
            digest: self.hasher.finish(),
        })
    }
}
