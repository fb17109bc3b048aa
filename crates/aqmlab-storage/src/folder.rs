//! The files that a scenario names.

use std::io;
use std::path::{Path, PathBuf};

use aqmlab_scenario::Files;

/// Files in the folder of a scenario file.
#[derive(Clone, Debug)]
pub struct Folder {
    folder: PathBuf,
}

impl Folder {
    /// Returns the folder of `file`, or the current one if it has none.
    pub fn of(file: &str) -> Self {
        Folder { folder: Path::new(file).parent().map_or_else(PathBuf::new, Path::to_path_buf) }
    }
}

impl Files for Folder {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let file = self.folder.join(path);
        // Reading from a pipe may wait forever, and reading from a device may never end.
        let kind = std::fs::metadata(&file)?.file_type();
        if !kind.is_file() && !kind.is_dir() {
            let message = "it is a pipe, a socket or a device; name a regular file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        std::fs::read(file)
    }
}
