//! Captures of packets at ports, in addition to the tables.
//!
//! A host reports each packet once per port, with its first bytes, either when its transmission
//! begins or when it is dropped, to a [`CaptureFile`], which writes it immediately.

use aqmlab_qdisc::Reason;
use aqmlab_units::{Bytes, Instant, Rate, Span};

use crate::error::RecordingError;

/// The name of the file in a recording's directory.
pub const FILE_NAME: &str = "packets.pcapng";

/// Default number of bytes kept per packet: all headers, and just enough payload to recognise the packet.
pub const DEFAULT_SNAP: u32 = 128;

/// A port that is captured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedPort {
    /// Its name, which is also the name of the interface in the file.
    pub name: String,
    /// The rate of its link.
    pub rate: Rate,
}

/// A packet that leaves a port's queue, either for the link or because it is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketAtPort {
    /// The port, as an index into the captured ports.
    pub port: u32,
    /// Its [`packet_id`], which is the same at every port that it passes.
    pub id: u64,
    /// When its transmission begins, or when it is dropped.
    pub at: Instant,
    /// Its waiting time in the queue.
    pub waited: Span,
    /// Why it was marked at this port, if it was.
    pub marked: Reasons,
    /// Why it is dropped, if it is.
    pub dropped: Option<Reason>,
    /// Its length at the network layer, which the queue and the link use.
    pub wire_len: Bytes,
}

/// Returns the identification of a packet in a capture file: in the upper 32 bits the number of its flow,
/// then a bit that is set if the packet travels to the flow's sender, and in the lower 31 bits its number
/// among the packets that its host has sent for the flow, from 0. (That number begins anew after 2^31
/// packets.)
pub const fn packet_id(flow: u32, to_sender: bool, number: u64) -> u64 {
    (flow as u64) << 32 | (to_sender as u64) << 31 | number & ((1 << 31) - 1)
}

/// Returns the flow and the number of the packet with this identification.
pub const fn of_packet_id(id: u64) -> (u32, u64) {
    ((id >> 32) as u32, id & ((1 << 31) - 1))
}

/// The bytes of a packet, starting with the IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// The first bytes, as many as are available.
    pub head: &'a [u8],
    /// Total number of bytes.
    pub len: u32,
}

/// A set of reasons.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reasons(u8);

impl Reasons {
    /// None.
    pub const NONE: Reasons = Reasons(0);

    /// Adds a reason.
    pub const fn insert(&mut self, reason: Reason) {
        self.0 |= 1 << reason as u8;
    }

    /// Returns whether `reason` is in the set.
    pub const fn has(self, reason: Reason) -> bool {
        self.0 & 1 << reason as u8 != 0
    }

    /// Iterates over the reasons, in the order of [`Reason::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Reason> {
        Reason::ALL.into_iter().filter(move |&reason| self.has(reason))
    }

    /// Returns one bit per reason, with that of `Reason::ALL[0]` as the lowest.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the set with these bits, as returned by [`Reasons::bits`].
    pub const fn from_bits(bits: u8) -> Reasons {
        Reasons(bits)
    }
}

/// The file of a capture, which a host writes during a run.
pub trait CaptureFile: Send {
    /// Writes a packet. After an error, packets are only counted; [`CaptureFile::finish`] reports the error.
    fn note(&mut self, packet: &PacketAtPort, frame: Frame<'_>);

    /// Returns the number of ports.
    fn ports(&self) -> usize;

    /// Returns the number of bytes kept per packet.
    fn snap(&self) -> usize;

    /// Returns whether writing has failed.
    fn has_failed(&self) -> bool;

    /// Completes the file at `end`, or at the time of the last packet if that is later, and adds the
    /// statistics of each port. For each port, `missed` contains the number of packets that are missing from
    /// the file. When this returns, everything written is on disk.
    ///
    /// # Errors
    /// If any operation has been refused since the beginning.
    fn finish(self: Box<Self>, end: Instant, missed: &[u64]) -> Result<CaptureReport, Box<CaptureFailure>>;
}

/// Ports to capture, and their file, as passed to a host.
pub struct PortCapture {
    /// Indices of the plan's links.
    pub links: Vec<usize>,
    /// The file, which was begun with the ports of these links, in this order.
    pub file: Box<dyn CaptureFile>,
}

/// The outcome of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureReport {
    /// Each port, with the number of packets in the file and the number missing from it.
    pub ports: Vec<CapturedPackets>,
}

/// The outcome of capturing one port's packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedPackets {
    /// The port.
    pub port: String,
    /// Number of packets in the file.
    pub written: u64,
    /// Number of packets missing from the file.
    pub missed: u64,
}

impl CaptureReport {
    /// Returns the total number of missing packets.
    pub fn missed(&self) -> u64 {
        self.ports.iter().map(|port| port.missed).sum()
    }
}

/// A capture that could not be completed. Its file has been removed.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct CaptureFailure {
    /// The time of the last packet that appeared to be written; the last one actually written lies about 256
    /// KiB earlier in the file.
    pub at: Instant,
    /// Each port, with all of its packets counted as missing and none as written.
    pub ports: Vec<CapturedPackets>,
    /// The operating system's error.
    pub error: RecordingError,
}
