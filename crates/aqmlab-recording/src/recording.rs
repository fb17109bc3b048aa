//! A recording.

use crate::frames::FrameRecorder;
use crate::manifest::Manifest;
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

    /// Adds the outcome of the run's frames.
    pub fn add_frames(&mut self, frames: FrameRecorder) {
        self.tables.extend(frames.finish());
    }

    /// Returns a table by name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}
