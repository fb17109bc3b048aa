//! Recordings on disk: a directory that appears completely or not at all, with one Parquet file for each table;
//! the files that are written during a run (captures, and tables with millions of rows); connection vectors as
//! files; the files next to a scenario. `docs/recording.md` describes the files.

mod capture;
mod directory;
mod folder;
mod parquet_file;
mod recording;
mod sink;
mod table_file;
mod vectors;

pub use capture::Capture;
pub use directory::{Staged, StreamedFile};
pub use folder::Folder;
pub use recording::{put_in, write, write_staged};
pub use table_file::{table_in, table_on};
pub use vectors::{vectors_csv, vectors_parquet, vectors_tmix};
