//! In what the length of a queue is measured.

use crate::Backlog;

/// In what a queue's length is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

impl Measure {
    /// The length of `backlog`.
    #[inline]
    pub fn of(self, backlog: Backlog) -> f64 {
        match self {
            Measure::Packets => backlog.packets.get() as i64 as f64,
            Measure::Bytes => backlog.bytes.get() as i64 as f64,
        }
    }
}
