//! What a flow does from its start on.

use std::ops::Range;
use std::sync::Arc;

use aqmlab_media::Dialogue;
use aqmlab_qdisc::Ecn;
use aqmlab_traffic::{Act, PacketSource, Session};
use aqmlab_units::{Bytes, Instant};

use crate::trace::Schedule;

/// The behaviour of a flow, beginning at its start.
#[derive(Clone, Debug)]
pub enum FlowSource {
    /// A connection whose client takes only this action, when it opens.
    Stream(Act),
    /// A connection whose applications write, pause and respond.
    Session(Session),
    /// Datagrams.
    Packets(DatagramSource),
    /// Datagrams that both ends send.
    Dialogue {
        /// What both ends say.
        dialogue: Dialogue,
        /// The ECN field of the packets with data.
        ecn: Ecn,
    },
}

/// A flow's datagrams.
#[derive(Clone, Debug)]
pub enum DatagramSource {
    /// Datagrams at a rate, all with the same ECN field.
    Rate {
        /// Determines the departure times and the sizes of the datagrams.
        source: PacketSource,
        /// The ECN field.
        ecn: Ecn,
    },
    /// Datagrams from a list.
    Listed {
        /// The schedule of the class.
        schedule: Arc<Schedule>,
        /// The rows that have not been sent yet.
        rows: Range<usize>,
    },
}

impl DatagramSource {
    /// Creates the source of flow `index`, with the rows of that flow.
    pub(super) fn listed(schedule: &Arc<Schedule>, index: u64) -> Self {
        DatagramSource::Listed { rows: schedule.rows(index as usize), schedule: schedule.clone() }
    }

    /// Returns when the next datagram leaves, or `None` after the last.
    #[inline]
    pub fn next_at(&self) -> Option<Instant> {
        match self {
            DatagramSource::Rate { source, .. } => Some(source.next_at()),
            DatagramSource::Listed { schedule, rows } => {
                (!rows.is_empty()).then(|| Instant::ZERO + schedule.row(rows.start).at)
            }
        }
    }

    /// Emits the datagram that is due at [`DatagramSource::next_at`]: returns its size at the
    /// network layer and its ECN field.
    ///
    /// # Panics
    /// If no datagram is left.
    pub fn emit(&mut self) -> (Bytes, Ecn) {
        match self {
            DatagramSource::Rate { source, ecn } => (source.emit(), *ecn),
            DatagramSource::Listed { schedule, rows } => {
                let row = schedule.row(rows.next().expect("a row is due"));
                (row.size, row.ecn)
            }
        }
    }
}
