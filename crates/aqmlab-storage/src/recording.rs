//! A recording's directory.

use std::collections::BTreeMap;
use std::path::Path;

use aqmlab_recording::{Digest, Place, Recording, RecordingError, TableFacts};

use crate::directory::Staged;
use crate::parquet_file::encode;
use crate::table_file::file_name;

/// Writes `recording` to the directory `dir`: one Parquet file per table, and `manifest.json`. Parents are
/// created. The directory appears under its name with all its files or not at all; the files are on disk
/// before it appears.
///
/// # Errors
/// If `dir` exists or the operating system refuses an operation; nothing is then left behind.
///
/// # Panics
/// If a streamed table has been written to a directory: only [`write_staged`] can complete that
/// directory.
pub fn write(recording: &Recording, dir: &Path) -> Result<(), RecordingError> {
    // Encoding comes first, so that a failure to encode leaves the disk untouched.
    let files = files_of(recording)?;
    assert!(
        recording.streamed.iter().all(|table| matches!(table.place, Place::Memory(_))),
        "a streamed table has been written to a directory; only `write_staged` can complete it"
    );
    let mut staged = Staged::create(dir)?;
    put(&mut staged, &files)?;
    staged.publish()
}

/// Writes `recording` into a directory that already contains files written during the run.
///
/// # Errors
/// If the operating system refuses an operation; nothing is then left behind.
pub fn write_staged(recording: &Recording, mut staged: Staged) -> Result<(), RecordingError> {
    put_in(recording, &mut staged)?;
    staged.publish()
}

/// Writes the tables and the manifest to a directory that has not been published yet, replacing
/// files of the same names.
///
/// # Errors
/// If the operating system refuses an operation; some files may then have been written.
pub fn put_in(recording: &Recording, staged: &mut Staged) -> Result<(), RecordingError> {
    put(staged, &files_of(recording)?)
}

/// Returns the names and contents of the files that are not on disk yet.
fn files_of(recording: &Recording) -> Result<Vec<(String, Vec<u8>)>, RecordingError> {
    let mut files = Vec::with_capacity(recording.tables.len() + 1);
    let mut facts = BTreeMap::new();
    for table in &recording.tables {
        let bytes = encode(std::slice::from_ref(table))?;
        facts.insert(table.name, TableFacts::of(table, Digest::of(&bytes)));
        files.push((file_name(table.name), bytes));
    }
    for table in &recording.streamed {
        let digest = match &table.place {
            Place::File(digest) => *digest,
            Place::Memory(batches) => {
                let bytes = encode(batches)?;
                let digest = Digest::of(&bytes);
                files.push((file_name(table.name), bytes));
                digest
            }
        };
        facts.insert(table.name, TableFacts::of_streamed(table, digest));
    }
    files.push(("manifest.json".to_owned(), recording.manifest.text(facts).into_bytes()));
    Ok(files)
}

fn put(staged: &mut Staged, files: &[(String, Vec<u8>)]) -> Result<(), RecordingError> {
    files.iter().try_for_each(|(name, bytes)| staged.write(name, bytes))
}
