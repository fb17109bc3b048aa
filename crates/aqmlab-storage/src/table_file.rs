//! The file of a table that is written in batches during the run, and never held in memory as a whole.

use std::io::{self, Write};
use std::path::PathBuf;

use aqmlab_recording::{Digest, RecordingError, Schema, Table, TableFile, TableWriter};
use sha2::{Digest as _, Sha256};

use crate::directory::Staged;
use crate::parquet_file::Writer;
use crate::sink::Sink;

/// Begins a table's file in a recording in preparation.
///
/// # Errors
/// If the operating system refuses an operation.
pub fn table_in(staged: &mut Staged, schema: &'static Schema) -> Result<TableWriter, RecordingError> {
    let name = file_name(schema.name);
    let file = staged.stream(&name)?;
    begin(Sink::Staged(file), staged.path_of(&name), schema)
}

/// Begins the file of a table on any sink; error messages call it `path`.
///
/// # Errors
/// If the columns cannot be encoded, or the sink refuses data.
pub fn table_on(
    sink: Box<dyn Write + Send>,
    path: PathBuf,
    schema: &'static Schema,
) -> Result<TableWriter, RecordingError> {
    begin(Sink::Other(sink), path, schema)
}

/// Returns the name of a table's file.
pub(crate) fn file_name(table: &str) -> String {
    format!("{table}.parquet")
}

fn begin(sink: Sink, path: PathBuf, schema: &'static Schema) -> Result<TableWriter, RecordingError> {
    let hashed = Hashed { sink, sha: Sha256::new() };
    let file = Writer::new(&Table::new(schema), hashed).map_err(|error| error.at(&path))?;
    Ok(TableWriter::new(schema, Box::new(ParquetFile { path, file })))
}

/// A Parquet file, in which each batch is one row group.
struct ParquetFile {
    path: PathBuf,
    file: Writer<Hashed>,
}

impl TableFile for ParquetFile {
    fn append(&mut self, batch: &Table) -> Result<(), RecordingError> {
        self.file.append(batch).map_err(|error| error.at(&self.path))
    }

    fn finish(self: Box<Self>) -> Result<Digest, RecordingError> {
        let Hashed { sink, sha } = self.file.finish().map_err(|error| error.at(&self.path))?;
        // Some file systems report only now that they have no space.
        sink.sync().map_err(RecordingError::io("write", &self.path))?;
        Ok(Digest::from(<[u8; 32]>::from(sha.finalize())))
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
