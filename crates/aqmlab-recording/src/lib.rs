//! The result of a run as data: typed column tables and a manifest. [`schema`] defines the tables;
//! `aqmlab-storage` writes them to a directory.
//!
//! A host fills one [`Table`] for each [`schema`] and puts them into a [`Recording`]. All hosts use the same
//! code for their common parts: [`PortTables`], the end-to-end books [`Fates`], and [`RequestRecorder`] for
//! the outcome of requests. Files that a host writes during a run are behind [`TableFile`] and
//! [`capture::CaptureFile`]. This crate does not know the host, opens no files, does not read clocks and does
//! not interpret values.
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
mod error;
mod fates;
mod frames;
pub mod live;
mod manifest;
mod port_tables;
mod recording;
mod requests;
pub mod schema;
mod streamed;
mod table;

pub use column::{Cell, Column, ColumnData, Dictionary, Type};
pub use digest::Digest;
pub use error::RecordingError;
pub use fates::{Fates, Imbalance, Tally, run_table};
pub use frames::{FrameRecorder, FrameSettings, SenderState};
pub use manifest::{
    FORMAT_VERSION, Host, LinkInfo, Manifest, StoppedBy, TableFacts, VERSION, manifest_schema,
};
pub use port_tables::{PortRecord, PortTables, samples_in};
pub use recording::Recording;
pub use requests::{Ending, Exchange, RequestRecord, RequestRecorder, RequestSettings, SizeBands};
pub use schema::PACKETS_VERSION;
pub use schema::Schema;
pub use streamed::{Place, StreamedTable, TableFile, TableWriter};
pub use table::Table;
