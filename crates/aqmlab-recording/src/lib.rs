//! The result of a run: typed column tables, a manifest, and a directory that is written completely or not at
//! all. `docs/recording.md` describes the files; [`schema`] defines their tables in code.
//!
//! A host fills one [`Table`] for each [`schema`], puts them into a [`Recording`] and calls
//! [`Recording::write`]. All hosts use the same code for their common parts: [`PortTables`], the end-to-end
//! books [`Fates`], and [`RequestRecorder`] for the outcome of requests. This crate does not know the host,
//! does not read clocks and does not interpret values.
//!
//! ```
//! use aqmlab_recording::{schema, Table};
//!
//! let mut law = Table::new(&schema::LAW);
//! law.push([10_000_000u64.into(), "bottleneck".into(), "avg".into(), 12.5.into()]);
//! assert_eq!(law.rows(), 1);
//! ```

pub mod capture;
mod column;
mod digest;
mod directory;
mod error;
mod fates;
pub mod live;
mod manifest;
mod parquet_file;
mod port_tables;
mod recording;
mod requests;
pub mod schema;
mod sink;
mod streamed;
mod table;
mod vectors;

pub use column::{Cell, Column, ColumnData, Dictionary, Type};
pub use digest::Digest;
pub use directory::{Staged, StreamedFile};
pub use error::RecordingError;
pub use fates::{Fates, Imbalance, Tally, run_table};
pub use manifest::{FORMAT_VERSION, Host, LinkInfo, Manifest, StoppedBy, VERSION, manifest_schema};
pub use port_tables::{PortRecord, PortTables, samples_in};
pub use recording::Recording;
pub use requests::{Ending, Exchange, RequestRecord, RequestRecorder, RequestSettings, SizeBands};
pub use schema::PACKETS_VERSION;
pub use schema::Schema;
pub use streamed::{StreamedTable, TableWriter};
pub use table::Table;
pub use vectors::{vectors_csv, vectors_parquet, vectors_tmix};
