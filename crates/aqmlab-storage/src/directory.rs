//! A directory that appears completely or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use aqmlab_recording::RecordingError;

/// A recording in preparation: a directory with a temporary name, in the parent directory of the finished
/// one. It is removed if the value is dropped before
/// [`write_staged`](crate::write_staged).
pub struct Staged {
    temporary: PathBuf,
    target: PathBuf,
    /// The files written so far.
    files: Vec<Written>,
    published: bool,
}

/// A file of a recording in preparation.
struct Written {
    file: File,
    /// Its future name.
    target: PathBuf,
    /// Whether its owner has given it up, in which case it is not part of the recording.
    given_up: Arc<AtomicBool>,
}

impl Written {
    fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }
}

/// A file that its owner writes while the recording is prepared.
pub struct StreamedFile {
    file: File,
    temporary: PathBuf,
    given_up: Arc<AtomicBool>,
}

impl StreamedFile {
    /// Gives the file up: its disk space is freed immediately, and the recording appears without
    /// it.
    pub fn give_up(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
        // There are two handles to the file, so removing the name alone would not free the space before the
        // recording is complete.
        let _ = self.file.set_len(0);
        let _ = fs::remove_file(&self.temporary);
    }

    /// Waits until the written data is on disk.
    ///
    /// # Errors
    /// If the data could not be written to disk.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

impl Write for StreamedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Staged {
    /// Begins a recording in the directory `target`, which must not exist; its parents are created.
    ///
    /// # Errors
    /// If it exists or the operating system refuses an operation.
    pub fn create(target: &Path) -> Result<Self, RecordingError> {
        if target.symlink_metadata().is_ok() {
            return Err(RecordingError::Exists { path: target.to_path_buf() });
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(RecordingError::io("create directory", parent))?;
        }
        let temporary = temporary_name(target);
        fs::create_dir(&temporary).map_err(RecordingError::io("create directory", &temporary))?;
        Ok(Staged { temporary, target: target.to_path_buf(), files: Vec::new(), published: false })
    }

    /// Creates a file that its owner writes while the recording is prepared. The owner completes it
    /// or gives it up before the recording is complete.
    ///
    /// # Errors
    /// If the operating system refuses an operation.
    pub fn stream(&mut self, name: &str) -> Result<StreamedFile, RecordingError> {
        let (target, temporary) = (self.path_of(name), self.temporary.join(name));
        let create = || {
            let file = File::create(&temporary)?;
            Ok((file.try_clone()?, file))
        };
        let (kept, file) = create().map_err(RecordingError::io("write", &target))?;
        let given_up = Arc::new(AtomicBool::new(false));
        self.files.retain(|written| written.target != target);
        self.files.push(Written { file: kept, target, given_up: Arc::clone(&given_up) });
        Ok(StreamedFile { file, temporary, given_up })
    }

    /// Creates a directory in which others write files while the recording is prepared, and returns its present
    /// path. The recording has no digests of these files.
    ///
    /// # Errors
    /// If the operating system refuses the operation.
    pub fn directory(&self, name: &str) -> Result<PathBuf, RecordingError> {
        let path = self.temporary.join(name);
        fs::create_dir(&path).map_err(RecordingError::io("create directory", &self.path_of(name)))?;
        std::path::absolute(&path).map_err(RecordingError::io("find", &self.path_of(name)))
    }

    /// Returns the final path of a file. Messages use this path, because the temporary one no
    /// longer exists by the time they are read.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.target.join(name)
    }

    /// Writes one file.
    pub(crate) fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), RecordingError> {
        let mut file = self.stream(name)?;
        file.write_all(bytes).map_err(RecordingError::io("write", &self.path_of(name)))
    }

    /// Gives up a file on behalf of its owner (see [`StreamedFile::give_up`]). Returns `false` if
    /// there is no such file, or if it has already been given up.
    pub fn give_up(&mut self, name: &str) -> bool {
        let target = self.path_of(name);
        let Some(at) = self.files.iter().position(|file| file.target == target && !file.is_given_up()) else {
            return false;
        };
        let Written { file, given_up, .. } = self.files.remove(at);
        let temporary = self.temporary.join(name);
        StreamedFile { file, temporary, given_up }.give_up();
        true
    }

    /// Waits until everything is on disk, and renames the directory to its final name.
    ///
    /// # Errors
    /// If the operating system refuses an operation; nothing is then left behind.
    pub fn publish(mut self) -> Result<(), RecordingError> {
        self.sync()?;
        // Renaming onto an empty directory would succeed; renaming onto a directory with files fails.
        fs::rename(&self.temporary, &self.target).map_err(|source| match source.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                RecordingError::Exists { path: self.target.clone() }
            }
            _ => RecordingError::Io { operation: "create directory", path: self.target.clone(), source },
        })?;
        self.published = true;
        let parent = self.target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        sync_directory(parent).map_err(RecordingError::io("write", parent))
    }

    /// Waits for all files and the directory in parallel: a journalling file system writes simultaneous
    /// requests in one go. Waiting for one file after another takes ten times as long.
    fn sync(&mut self) -> Result<(), RecordingError> {
        let temporary = &self.temporary;
        let mut files = std::mem::take(&mut self.files);
        // Errors in files that were given up do not matter.
        files.retain(|written| !written.is_given_up());
        thread::scope(|scope| {
            let waits: Vec<_> = files
                .iter()
                .map(|Written { file, .. }| {
                    thread::Builder::new().spawn_scoped(scope, move || file.sync_all())
                })
                .collect();
            let directory = sync_directory(temporary).map_err(RecordingError::io("write", &self.target));
            for (wait, Written { file, target, .. }) in waits.into_iter().zip(&files) {
                let synced = match wait {
                    Ok(wait) => wait.join().expect("waiting for the disk does not panic"),
                    // The system cannot provide another thread, so this one waits.
                    Err(_) => file.sync_all(),
                };
                synced.map_err(RecordingError::io("write", target))?;
            }
            directory
        })
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.published {
            // An error of the removal is ignored: the original error is the one to report.
            let _ = fs::remove_dir_all(&self.temporary);
        }
    }
}

/// Returns a name in the directory of `target` that no other writer uses, such as `.seed-1.partial-4711-0`.
fn temporary_name(target: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".partial-{}-{number}", std::process::id()));
    target.with_file_name(name)
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
