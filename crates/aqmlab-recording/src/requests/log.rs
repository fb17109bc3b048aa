//! One row per exchange, written in batches.

use aqmlab_units::Instant;

use super::exchange::{Ending, Exchange, ExchangeId};
use crate::error::RecordingError;
use crate::schema;
use crate::streamed::{StreamedTable, TableWriter};
use crate::table::Table;

/// Number of rows in one row group of the file.
const BATCH: usize = 1 << 15;

/// Rows waiting to be written to a file.
pub struct Log {
    file: Result<TableWriter, RecordingError>,
    /// The name of each class.
    classes: Vec<String>,
    /// Rows not written yet, in arbitrary order.
    waiting: Vec<Row>,
    /// Number of waiting rows at which the log tries to write some of them.
    full_at: usize,
}

struct Row {
    exchange: Exchange,
    how: Ending,
    at: Instant,
}

impl Row {
    /// Returns the key by which the rows of the file are sorted, whatever the order of the host's reports.
    fn order(&self) -> (Instant, u32, ExchangeId) {
        (self.at, self.exchange.class, self.exchange.id())
    }
}

impl Log {
    /// Creates a log of exchanges of these classes.
    ///
    /// # Panics
    /// If `file` is not a table of requests.
    pub fn new(file: TableWriter, classes: Vec<String>) -> Self {
        assert_eq!(file.schema().name, schema::REQUESTS.name, "rows of requests");
        Log { file: Ok(file), classes, waiting: Vec::new(), full_at: BATCH }
    }

    /// Keeps a row until it is written; after an error, ignores the row.
    pub fn note(&mut self, exchange: &Exchange, how: Ending, at: Instant) {
        if self.file.is_ok() {
            self.waiting.push(Row { exchange: *exchange, how, at });
        }
    }

    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.full_at
    }

    /// Writes the rows of the exchanges that ended before `settled`, because no earlier row can still arrive.
    pub fn write_until(&mut self, settled: Instant) {
        self.waiting.sort_unstable_by_key(Row::order);
        let due = self.waiting.partition_point(|row| row.at < settled);
        self.write(due);
        self.full_at = self.waiting.len() + BATCH;
    }

    /// Writes the first `rows` waiting rows.
    fn write(&mut self, rows: usize) {
        let Ok(file) = &mut self.file else { return };
        if rows == 0 {
            return;
        }
        let mut batch = Table::new(&schema::REQUESTS);
        batch.reserve(rows);
        for Row { exchange, how, at } in self.waiting.drain(..rows) {
            batch.push([
                at.as_ns().into(),
                self.classes[exchange.class as usize].as_str().into(),
                u64::from(exchange.of.user).into(),
                u64::from(exchange.of.serial).into(),
                u64::from(exchange.number).into(),
                u64::from(exchange.opens_connection).into(),
                exchange.start.as_ns().into(),
                exchange.request.get().into(),
                exchange.response.get().into(),
                how.name().into(),
            ]);
        }
        if let Err(error) = file.append(batch) {
            self.file = Err(error);
            self.waiting = Vec::new();
        }
    }

    pub fn failure(&self) -> Option<&RecordingError> {
        self.file.as_ref().err()
    }

    pub fn memory_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<Row>()
    }

    /// Writes the remaining rows and completes the file.
    ///
    /// # Errors
    /// If any row could not be written.
    pub fn finish(mut self) -> Result<StreamedTable, RecordingError> {
        self.waiting.sort_unstable_by_key(Row::order);
        self.write(self.waiting.len());
        self.file?.finish()
    }
}
