//! The blocks of a pcapng file that a capture needs: a section, its interfaces, packets, statistics
//! (draft-ietf-opsawg-pcapng; the numbers in brackets below are its section numbers). The blocks
//! are little-endian on every machine, so that equal runs produce equal files.
//!
//! This module uses no pcapng library, because it needs little of the format: it reads nothing, and
//! writes four kinds of blocks, each assembled in the same buffer.

use std::io::{self, Write};

/// Link type of packets that begin directly with their IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// The length of the section is unspecified.
const UNKNOWN_LENGTH: u64 = u64::MAX;

// Codes of options: for all blocks [3.5], sections [4.1], interfaces [4.2], packets [4.3] and
// statistics [4.6].
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_SPEED: u16 = 8;
const TIMESTAMP_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;
const PACKET_ID: u16 = 5;
const STATISTICS_END: u16 = 3;
const STATISTICS_RECEIVED: u16 = 4;
const STATISTICS_DROPPED: u16 = 5;

/// Timestamps count units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// An interface of the section.
pub struct Interface<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its speed.
    pub bits_per_second: u64,
    /// Maximum number of bytes kept per packet.
    pub snap: u32,
}

/// The direction of a packet at its interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// It enters.
    Inbound = 1,
    /// It leaves.
    Outbound = 2,
}

/// A packet.
pub struct Record<'a> {
    /// The number of its interface.
    pub interface: u32,
    /// Its identification, which is the same at all interfaces.
    pub id: u64,
    /// Its time.
    pub at_ns: u64,
    /// Its first bytes.
    pub head: &'a [u8],
    /// Its length.
    pub len: u32,
    /// Its direction.
    pub direction: Direction,
    /// Further information.
    pub comment: &'a str,
}

/// The counts of an interface at the end of the capture.
pub struct Statistics {
    /// The number of the interface.
    pub interface: u32,
    /// The end of the capture.
    pub end_ns: u64,
    /// Packets that the file should contain.
    pub received: u64,
    /// The number of these packets that are not in the file.
    pub dropped: u64,
}

/// Writes blocks to a sink.
pub struct PcapngWriter<W> {
    sink: W,
    /// The current block.
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Creates a writer that has not written anything yet.
    pub const fn new(sink: W) -> Self {
        PcapngWriter { sink, block: Vec::new() }
    }

    /// Writes a Section Header Block [4.1].
    pub fn section(&mut self, application: &str) -> io::Result<()> {
        self.begin(SECTION_HEADER);
        self.u32(BYTE_ORDER_MAGIC);
        self.u16(1); // version 1.0
        self.u16(0);
        self.u64(UNKNOWN_LENGTH);
        self.option(USER_APPLICATION, application.as_bytes());
        self.end()
    }

    /// Writes an Interface Description Block [4.2]. Interfaces are numbered in the order of their
    /// descriptions.
    pub fn interface(&mut self, interface: &Interface<'_>) -> io::Result<()> {
        self.begin(INTERFACE_DESCRIPTION);
        self.u16(LINKTYPE_RAW);
        self.u16(0); // reserved
        self.u32(interface.snap);
        self.option(INTERFACE_NAME, interface.name.as_bytes());
        self.option(INTERFACE_SPEED, &interface.bits_per_second.to_le_bytes());
        self.option(TIMESTAMP_RESOLUTION, &[NANOSECONDS]);
        self.end()
    }

    /// Writes an Enhanced Packet Block [4.3].
    pub fn packet(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.begin(ENHANCED_PACKET);
        self.u32(record.interface);
        self.timestamp(record.at_ns);
        self.u32(record.head.len() as u32);
        self.u32(record.len);
        self.padded(record.head);
        self.option(PACKET_FLAGS, &(record.direction as u32).to_le_bytes());
        self.option(PACKET_ID, &record.id.to_le_bytes());
        self.option(COMMENT, record.comment.as_bytes());
        self.end()
    }

    /// Writes an Interface Statistics Block [4.6].
    pub fn statistics(&mut self, statistics: &Statistics) -> io::Result<()> {
        self.begin(INTERFACE_STATISTICS);
        self.u32(statistics.interface);
        self.timestamp(statistics.end_ns);
        let end = [statistics.end_ns >> 32, statistics.end_ns & 0xffff_ffff].map(|half| half as u32);
        self.option(STATISTICS_END, &end.map(u32::to_le_bytes).concat());
        self.option(STATISTICS_RECEIVED, &statistics.received.to_le_bytes());
        self.option(STATISTICS_DROPPED, &statistics.dropped.to_le_bytes());
        self.end()
    }

    /// Returns its sink.
    pub const fn sink(&self) -> &W {
        &self.sink
    }

    /// Consumes the writer and returns its sink.
    pub fn into_sink(self) -> W {
        self.sink
    }

    /// Flushes the sink.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.u32(kind);
        self.u32(0); // placeholder for the length, which is known at the end
    }

    /// Completes the options, enters the block's length near its beginning and at its end
    /// [3.1], and writes the block to the sink.
    fn end(&mut self) -> io::Result<()> {
        self.u16(END_OF_OPTIONS);
        self.u16(0);
        let len = self.block.len() as u32 + 4;
        self.u32(len);
        self.block[4..8].copy_from_slice(&len.to_le_bytes());
        self.sink.write_all(&self.block)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.u16(code);
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.u16(value.len() as u16);
        self.padded(value);
    }

    /// Appends `bytes`, padded to a multiple of four octets.
    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Writes a timestamp, its upper half first regardless of the byte order [4.3].
    fn timestamp(&mut self, ns: u64) {
        self.u32((ns >> 32) as u32);
        self.u32(ns as u32);
    }

    fn u16(&mut self, value: u16) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }
}
