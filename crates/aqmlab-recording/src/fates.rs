//! End-to-end books: on any host, every packet that was sent has exactly one fate.

use aqmlab_units::{Bytes, Instant, Packets};

use crate::column::Cell;
use crate::schema;
use crate::table::Table;

/// A number of packets, and the number of their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Number of packets.
    pub packets: Packets,
    /// Number of bytes at the network layer.
    pub bytes: Bytes,
}

impl Tally {
    /// Counts one packet.
    #[inline]
    pub fn count(&mut self, wire_len: Bytes) {
        self.packets += Packets::new(1);
        self.bytes += wire_len;
    }
}

/// The fates of all packets of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fates {
    /// Packets that the hosts passed to the network.
    pub sent: Tally,
    /// Packets that reached the host at the other end.
    pub delivered: Tally,
    /// Packets dropped at a queue, by its discipline or by a fault on its link.
    pub dropped: Tally,
    /// Packets lost outside the queues: on flows' own links and in delay stages.
    pub lost: Tally,
    /// Number of links, access links included, that each packet with a known fate has traversed, summed over
    /// these packets.
    pub packet_hops: u64,
}

/// Books that do not balance: some packets are neither delivered nor dropped nor found in the
/// network, or are found twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Imbalance {
    /// The books.
    pub fates: Fates,
    /// Packets found in queues, on links and on access links.
    pub resident: Tally,
}

impl std::fmt::Display for Imbalance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Fates { sent, delivered, dropped, lost, .. } = self.fates;
        write!(
            f,
            "sent {} ({}) is not delivered {} ({}) + dropped {} ({}) + lost {} ({}) + in flight {} ({})",
            sent.packets,
            sent.bytes,
            delivered.packets,
            delivered.bytes,
            dropped.packets,
            dropped.bytes,
            lost.packets,
            lost.bytes,
            self.resident.packets,
            self.resident.bytes
        )
    }
}

impl Fates {
    /// Checks that the books balance when the packets still in the network are included.
    ///
    /// # Errors
    /// Returns both sides of the identity that does not hold.
    pub fn check(&self, resident: Tally) -> Result<(), Imbalance> {
        let packets = self.delivered.packets + self.dropped.packets + self.lost.packets + resident.packets;
        let bytes = self.delivered.bytes + self.dropped.bytes + self.lost.bytes + resident.bytes;
        if packets == self.sent.packets && bytes == self.sent.bytes {
            return Ok(());
        }
        Err(Imbalance { fates: *self, resident })
    }
}

/// Returns the single row of `run`.
pub fn run_table(t0: Instant, t1: Instant, fates: &Fates, resident: Tally) -> Table {
    let tallies = [fates.sent, fates.delivered, fates.dropped, fates.lost, resident];
    let head = [t0.as_ns(), t1.as_ns(), fates.packet_hops];
    let packets = tallies.iter().map(|t| t.packets.get());
    let bytes = tallies.iter().map(|t| t.bytes.get());
    let mut table = Table::new(&schema::RUN);
    table.push(head.into_iter().chain(packets).chain(bytes).map(Cell::from));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_byte_is_an_imbalance() {
        let mut fates = Fates::default();
        fates.sent.count(Bytes::new(1000));
        assert!(fates.check(Tally::default()).is_err());
        fates.delivered.count(Bytes::new(999));
        assert!(fates.check(Tally::default()).is_err(), "bytes differ");
        fates.delivered.bytes += Bytes::new(1);
        assert!(fates.check(Tally::default()).is_ok());
        fates.lost.count(Bytes::new(1000));
        assert!(fates.check(Tally::default()).is_err(), "delivered and lost");
        fates.lost = Tally::default();
        let mut twice = Tally::default();
        twice.count(Bytes::new(1000));
        assert!(fates.check(twice).is_err(), "delivered and still in flight");
    }
}
