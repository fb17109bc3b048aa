//! Files that a scenario names: the host gives their contents, and their rows are read whatever the format.

use std::io;

use sha2::{Digest, Sha256};

use super::formats::{rows_of_csv, rows_of_parquet};
use super::row::Cell;

/// The source of the files that a scenario names.
pub trait Files: Send + Sync {
    /// Returns the contents of the file at `path`, which is relative to the folder of the scenario.
    ///
    /// # Errors
    /// If the file cannot be read.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;
}

/// A host that gives scenarios no files, so that those that name one are refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _path: &str) -> io::Result<Vec<u8>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the host of this scenario has no files"))
    }
}

impl<F: Files + ?Sized> Files for &F {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        (**self).read(path)
    }
}

/// The contents of a file, with their digest.
pub(super) struct Content {
    pub(super) digest: String,
    pub(super) bytes: Raw,
}

/// Returns the contents of a file. Messages call the file `what`, and state the required form, `wanted`.
pub(super) fn content(files: &dyn Files, what: &str, file: &str, wanted: &str) -> Result<Content, String> {
    let content = files.read(file).map_err(|error| format!("cannot read the {what} `{file}`: {error}"))?;
    if content.is_empty() {
        return Err(format!("the {what} `{file}` is empty; {wanted}"));
    }
    let digest = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Content { digest, bytes: Raw(content) })
}

/// CSV or Parquet.
pub(super) struct Raw(pub(super) Vec<u8>);

/// The mark with which some programs begin a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Raw {
    /// Returns the contents without a byte-order mark.
    pub(super) fn text(&self) -> &[u8] {
        self.0.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.0)
    }

    /// Reads the file's rows: `columns` receives the names of the columns, and `row` each row.
    pub(super) fn rows<C, R>(
        self,
        what: &str,
        file: &str,
        wanted: &str,
        columns: impl FnOnce(&[&str]) -> Result<C, String>,
        row: impl FnMut(&C, &[Cell<'_>]) -> Result<R, String>,
    ) -> Result<Vec<R>, String> {
        if self.0.starts_with(b"PAR1") {
            rows_of_parquet(what, file, self.0, columns, row)
        } else {
            rows_of_csv(what, file, self.text(), wanted, columns, row)
        }
    }
}
