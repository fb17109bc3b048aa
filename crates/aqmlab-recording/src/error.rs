//! Why a recording was not written.

use std::io;
use std::path::{Path, PathBuf};

/// Why a recording was not written. No part of it is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The directory already exists; recordings are never overwritten.
    #[error("`{}` exists already; a recording is never overwritten", path.display())]
    Exists {
        /// the directory
        path: PathBuf,
    },
    /// The operating system refused an operation.
    #[error("cannot {operation} `{}`: {}", path.display(), reason(source))]
    Io {
        /// the attempted operation: `"write"`
        operation: &'static str,
        /// the file or directory
        path: PathBuf,
        /// the system's error
        source: io::Error,
    },
    /// A table could not be encoded.
    #[error("cannot encode table `{table}`: {message}")]
    Encoding {
        /// the table
        table: &'static str,
        /// the encoder's message
        message: String,
    },
    /// A value is too large for its column's type in the file.
    #[error("`{value}` in column `{column}` of table `{table}` is too large to record")]
    TooLarge {
        /// the table
        table: &'static str,
        /// the column
        column: &'static str,
        /// the value
        value: u128,
    },
}

impl RecordingError {
    /// Returns a function that adds the operation and the file to an error of the operating system.
    pub fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| RecordingError::Io { operation, path, source }
    }

    /// Returns the same error for the file `path`.
    #[must_use]
    pub fn at(self, path: &Path) -> Self {
        match self {
            RecordingError::Io { operation, source, .. } => {
                RecordingError::Io { operation, path: path.to_path_buf(), source }
            }
            other => other,
        }
    }

    /// Returns the cause, without the operation and the file.
    pub fn reason(&self) -> String {
        match self {
            RecordingError::Io { source, .. } => reason(source),
            other => other.to_string(),
        }
    }

    /// Returns whether the cause is this machine (disk full, quota, permission, read-only) rather than the
    /// run.
    pub fn is_host_limit(&self) -> bool {
        use io::ErrorKind as Kind;
        let RecordingError::Io { source, .. } = self else { return false };
        matches!(
            source.kind(),
            Kind::StorageFull
                | Kind::QuotaExceeded
                | Kind::FileTooLarge
                | Kind::PermissionDenied
                | Kind::ReadOnlyFilesystem
                | Kind::OutOfMemory
        )
    }
}

/// Describes the most frequent causes in plain words, and all others in the system's own words.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full".into(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".into(),
        _ => error.to_string(),
    }
}
