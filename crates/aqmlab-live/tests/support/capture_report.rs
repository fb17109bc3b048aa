//! Reads captures in memory with an independent reader.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use aqmlab_recording::{ColumnData, Table};
use pcap_parser::{Block, OptionCode, PcapBlockOwned, PcapNGSlice, traits::PcapNGPacketBlock};

/// A sink whose content can be read.
#[derive(Clone, Default)]
pub struct Sink(pub Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(buf);
        Ok(buf.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A packet of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    pub interface: u32,
    pub at_ns: u64,
    pub comment: String,
    pub head: Vec<u8>,
}

impl Packet {
    /// Returns whether these words are one of the parts that commas separate in the comment.
    pub fn says(&self, words: &str) -> bool {
        self.comment.split(", ").any(|part| part == words)
    }

    /// Returns whether the packet enters the link.
    pub fn leaves(&self) -> bool {
        !self.comment.contains("dropped")
    }

    /// Returns how long the packet has waited, in nanoseconds.
    pub fn waited_ns(&self) -> u128 {
        let rest = self.comment.strip_prefix("queueing delay ").expect("the delay comes first");
        rest.split(' ').next().and_then(|n| n.parse().ok()).expect("a number")
    }
}

/// Returns all packets of a file.
pub fn read(bytes: &[u8]) -> Vec<Packet> {
    let blocks = PcapNGSlice::from_slice(bytes).expect("a section comes first");
    let packets = blocks.filter_map(|block| match block.expect("every block is whole") {
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let comment = packet.options.iter().find(|option| option.code == OptionCode::Comment);
            Some(Packet {
                interface: packet.if_id,
                at_ns: u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low),
                comment: comment.and_then(|c| c.as_str().ok()).expect("a comment").to_owned(),
                head: packet.packet_data().to_vec(),
            })
        }
        _ => None,
    });
    packets.collect()
}

/// Returns a number from a row of the summary.
pub fn total(table: &Table, column: &str, row: usize) -> u128 {
    match table.column(column) {
        Some(ColumnData::U64(values)) => u128::from(values[row]),
        Some(ColumnData::NullableU64(values)) => u128::from(values[row].expect("not absent")),
        Some(ColumnData::NullableU128(values)) => values[row].expect("not absent"),
        other => panic!("{column}: {other:?}"),
    }
}
