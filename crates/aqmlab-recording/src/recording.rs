//! A recording, and its storage on disk.

use std::collections::BTreeMap;
use std::path::Path;

use crate::digest::{Digest, sealed};
use crate::directory::Staged;
use crate::error::RecordingError;
use crate::manifest::{Manifest, TableFacts};
use crate::parquet_file;
use crate::requests::RequestRecord;
use crate::streamed::StreamedTable;
use crate::table::Table;

/// The result of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Recording {
    /// The description of the run.
    pub manifest: Manifest,
    /// Its measurements.
    pub tables: Vec<Table>,
    /// Tables that were written during the run.
    pub streamed: Vec<StreamedTable>,
}

impl Recording {
    /// Adds the outcome of the run's requests.
    pub fn add_requests(&mut self, requests: RequestRecord) {
        self.tables.extend(requests.tables);
        self.tables.extend(requests.pages.into_iter().flatten());
        self.streamed.extend(requests.rows);
    }

    /// Returns a table by name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// Writes the directory `dir`: one Parquet file per table, and `manifest.json`. Parents are created. The
    /// directory appears under its name with all its files or not at all; the files are on disk before it
    /// appears.
    ///
    /// # Errors
    /// If `dir` exists or the operating system refuses an operation; nothing is then left behind.
    ///
    /// # Panics
    /// If a streamed table has been written to a directory: only [`Recording::write_staged`] can
    /// complete that directory.
    pub fn write(&self, dir: &Path) -> Result<(), RecordingError> {
        // Encoding comes first, so that a failure to encode leaves the disk untouched.
        let files = self.encode()?;
        assert!(
            self.streamed.iter().all(|table| table.held().is_some()),
            "a streamed table has been written to a directory; only `write_staged` can complete it"
        );
        let mut staged = Staged::create(dir)?;
        put_in(&mut staged, &files)?;
        staged.publish()
    }

    /// Writes the recording into a directory that already contains files written during the run.
    ///
    /// # Errors
    /// If the operating system refuses an operation; nothing is then left behind.
    pub fn write_staged(&self, mut staged: Staged) -> Result<(), RecordingError> {
        self.put_in(&mut staged)?;
        staged.publish()
    }

    /// Writes the tables and the manifest to a directory that has not been published yet, replacing
    /// files of the same names.
    ///
    /// # Errors
    /// If the operating system refuses an operation; some files may then have been written.
    pub fn put_in(&self, staged: &mut Staged) -> Result<(), RecordingError> {
        put_in(staged, &self.encode()?)
    }

    fn encode(&self) -> Result<Vec<(String, Vec<u8>)>, RecordingError> {
        let mut files = Vec::with_capacity(self.tables.len() + 1);
        let mut facts = BTreeMap::new();
        for table in &self.tables {
            let bytes = parquet_file::encode(table)?;
            facts.insert(table.name, TableFacts::of(table, Digest::of(&bytes)));
            files.push((format!("{}.parquet", table.name), bytes));
        }
        for table in &self.streamed {
            facts.insert(table.name, table.facts());
            files.extend(table.held().map(|bytes| (format!("{}.parquet", table.name), bytes.to_vec())));
        }
        let manifest = self.manifest.content(facts);
        files.push(("manifest.json".to_owned(), sealed(&manifest).into_bytes()));
        Ok(files)
    }
}

fn put_in(staged: &mut Staged, files: &[(String, Vec<u8>)]) -> Result<(), RecordingError> {
    files.iter().try_for_each(|(name, bytes)| staged.write(name, bytes))
}
