//! A table that is written in batches during the run, and never held in memory as a whole.

use std::io::{self, Write};
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use crate::digest::{Digest, Hasher};
use crate::directory::Staged;
use crate::error::RecordingError;
use crate::manifest::TableFacts;
use crate::parquet_file::Writer;
use crate::schema::Schema;
use crate::sink::Sink;
use crate::table::Table;

/// A table that is being written in batches; each batch becomes one row group of the file.
pub struct TableWriter {
    schema: &'static Schema,
    path: PathBuf,
    file: Writer<Hashed>,
    hasher: Hasher,
    rows: u64,
}

/// A table that was written during the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamedTable {
    /// Its name, which is also the stem of its file name.
    pub name: &'static str,
    /// The number of its rows.
    pub rows: u64,
    /// The SHA-256 of its logical contents, see [`TableWriter`].
    pub digest: Digest,
    /// The SHA-256 of its file.
    pub file_digest: Digest,
    /// The file, if it is not on disk.
    held: Option<Vec<u8>>,
}

/// The digest of the contents is computed like that of [`Table::digest`], with two differences,
/// because the number of rows is not known until the end: the hashed bytes begin with the text
/// `aqmlab-table-2`, and the number of rows (u64) follows the values.
impl TableWriter {
    /// Begins a table's file in a recording in preparation.
    ///
    /// # Errors
    /// If the operating system refuses an operation.
    pub fn begin(staged: &mut Staged, schema: &'static Schema) -> Result<Self, RecordingError> {
        let name = format!("{}.parquet", schema.name);
        let file = staged.stream(&name)?;
        TableWriter::of(Sink::Staged(file), staged.path_of(&name), schema)
    }

    /// Begins a file that is held in memory, for a run without a directory.
    ///
    /// # Errors
    /// If the columns cannot be encoded.
    pub fn in_memory(schema: &'static Schema) -> Result<Self, RecordingError> {
        TableWriter::of(Sink::Held(Vec::new()), format!("{}.parquet", schema.name).into(), schema)
    }

    /// Begins the file on any sink; error messages call it `path`.
    ///
    /// # Errors
    /// If the columns cannot be encoded, or the sink refuses data.
    pub fn on(
        sink: Box<dyn Write + Send>,
        path: PathBuf,
        schema: &'static Schema,
    ) -> Result<Self, RecordingError> {
        TableWriter::of(Sink::Other(sink), path, schema)
    }

    fn of(sink: Sink, path: PathBuf, schema: &'static Schema) -> Result<Self, RecordingError> {
        let empty = Table::new(schema);
        let mut hasher = Hasher::new();
        hasher.text("aqmlab-table-2");
        empty.hash_columns(&mut hasher);
        let file = Writer::new(&empty, Hashed { sink, sha: Sha256::new() }).map_err(|e| e.at(&path))?;
        Ok(TableWriter { schema, path, file, hasher, rows: 0 })
    }

    /// Returns the schema of the table.
    pub const fn schema(&self) -> &'static Schema {
        self.schema
    }

    /// Writes the rows of `batch`.
    ///
    /// # Errors
    /// If a value does not fit its column, or the operating system refuses an operation. Nothing may be
    /// written after an error.
    ///
    /// # Panics
    /// If `batch` is a part of another table.
    pub fn append(&mut self, batch: &Table) -> Result<(), RecordingError> {
        assert_eq!(batch.name, self.schema.name, "a part of another table");
        batch.hash_rows(&mut self.hasher);
        self.rows += batch.rows() as u64;
        self.file.append(batch).map_err(|error| error.at(&self.path))
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If the operating system refuses an operation.
    pub fn finish(mut self) -> Result<StreamedTable, RecordingError> {
        if self.rows == 0 {
            self.append(&Table::new(self.schema))?;
        }
        self.hasher.u64(self.rows);
        let Hashed { sink, sha } = self.file.finish().map_err(|error| error.at(&self.path))?;
        // Some file systems report only now that they have no space.
        sink.sync().map_err(RecordingError::io("write", &self.path))?;
        Ok(StreamedTable {
            name: self.schema.name,
            rows: self.rows,
            digest: self.hasher.finish(),
            file_digest: Digest::finished(sha),
            held: match sink {
                Sink::Held(bytes) => Some(bytes),
                Sink::Staged(_) | Sink::Other(_) => None,
            },
        })
    }
}

impl StreamedTable {
    /// Returns its file, if it is held in memory.
    pub fn held(&self) -> Option<&[u8]> {
        self.held.as_deref()
    }

    /// Returns its facts for the manifest.
    pub(crate) fn facts(&self) -> TableFacts {
        TableFacts {
            rows: self.rows,
            digest: self.digest.to_string(),
            file_digest: self.file_digest.to_string(),
        }
    }
}

/// A sink that computes the digest of the data passed on.
struct Hashed {
    sink: Sink,
    sha: Sha256,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.sink.write(bytes)?;
        self.sha.update(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
