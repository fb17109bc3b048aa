//! Records the packets at a port in a pcapng file for Wireshark, tshark and similar programs, in addition to
//! the tables.
//!
//! A host reports each packet once per port, with its first bytes, either when its transmission
//! begins or when it is dropped. [`Capture`] writes the packet immediately, so a capture needs
//! constant memory. Properties that are not visible in the bytes (the waiting time, the reason for
//! a mark or drop) are in the packet's comment. If writing a capture fails, its file is removed
//! immediately, so that the disk has room for the rest of the recording.

mod pcapng;

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use aqmlab_qdisc::Reason;
use aqmlab_units::{Bytes, Instant, Rate, Span};

use crate::directory::Staged;
use crate::error::RecordingError;
use crate::sink::Sink;
use pcapng::{Direction, Interface, PcapngWriter, Record, Statistics};

/// The name of the file in a recording's directory.
pub const FILE_NAME: &str = "packets.pcapng";

/// Default number of bytes kept per packet: all headers, and just enough payload to recognise the packet.
pub const DEFAULT_SNAP: u32 = 128;

/// Number of bytes that are buffered before a write to the disk.
const BUFFER: usize = 1 << 18;

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

/// Ports to capture, and their file, as passed to a host.
pub struct PortCapture {
    /// Indices of the plan's links.
    pub links: Vec<usize>,
    /// The file, which was begun with the ports of these links, in this order.
    pub file: Capture,
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

/// A capture that is being written.
pub struct Capture {
    /// `None` after the first error, after which nothing is written.
    file: Option<PcapngWriter<BufWriter<Sink>>>,
    path: PathBuf,
    names: Vec<String>,
    /// Number of packets at each port so far, whether in the file or not.
    noted: Vec<u64>,
    /// The time of the last packet that was written.
    last: Instant,
    snap: u32,
    comment: String,
    /// The first error.
    failed: Option<io::Error>,
}

impl Capture {
    /// Begins a file for the packets of `ports` in a recording in preparation. The file keeps at
    /// most the first `snap` bytes of each packet.
    ///
    /// # Errors
    /// If the operating system refuses an operation.
    pub fn begin(staged: &mut Staged, ports: &[CapturedPort], snap: u32) -> Result<Self, RecordingError> {
        let file = staged.stream(FILE_NAME)?;
        Capture::of(Sink::Staged(file), &staged.path_of(FILE_NAME), ports, snap)
    }

    /// Begins a file like [`Capture::begin`], but on any sink; error messages call the file `path`.
    ///
    /// # Errors
    /// If the sink refuses data.
    pub fn on(
        sink: Box<dyn Write + Send>,
        path: &Path,
        ports: &[CapturedPort],
        snap: u32,
    ) -> Result<Self, RecordingError> {
        Capture::of(Sink::Other(sink), path, ports, snap)
    }

    fn of(sink: Sink, path: &Path, ports: &[CapturedPort], snap: u32) -> Result<Self, RecordingError> {
        let mut file = PcapngWriter::new(BufWriter::with_capacity(BUFFER, sink));
        let mut begin = || {
            file.section(concat!("aqmlab ", env!("CARGO_PKG_VERSION")))?;
            ports.iter().try_for_each(|port| {
                file.interface(&Interface { name: &port.name, bits_per_second: port.rate.as_bps(), snap })
            })
        };
        begin().map_err(RecordingError::io("write", path))?;
        Ok(Capture {
            file: Some(file),
            path: path.to_path_buf(),
            names: ports.iter().map(|port| port.name.clone()).collect(),
            noted: vec![0; ports.len()],
            last: Instant::ZERO,
            snap,
            comment: String::new(),
            failed: None,
        })
    }

    /// Writes a packet. After an error, packets are only counted; [`Capture::finish`] reports the error.
    pub fn note(&mut self, packet: &PacketAtPort, frame: Frame<'_>) {
        self.noted[packet.port as usize] += 1;
        let Some(file) = &mut self.file else { return };
        self.comment.clear();
        describe(&mut self.comment, packet, frame.len);
        let kept = frame.head.len().min(self.snap as usize);
        let record = Record {
            interface: packet.port,
            id: packet.id,
            at_ns: packet.at.as_ns(),
            head: &frame.head[..kept],
            len: frame.len,
            // A dropped packet has entered the port but does not leave it.
            direction: if packet.dropped.is_some() { Direction::Inbound } else { Direction::Outbound },
            comment: &self.comment,
        };
        match file.packet(&record) {
            Ok(()) => self.last = packet.at,
            Err(error) => self.give_up(error),
        }
    }

    /// Stops writing, and removes everything written so far.
    #[cold]
    fn give_up(&mut self, error: io::Error) {
        self.failed = Some(error);
        let Some(file) = self.file.take() else { return };
        // The contents of the buffer must not reach the disk, but dropping the writer would write them there.
        let (mut sink, _) = file.into_sink().into_parts();
        sink.give_up();
    }

    /// Returns the number of ports.
    pub const fn ports(&self) -> usize {
        self.noted.len()
    }

    /// Returns the number of bytes kept per packet.
    pub const fn snap(&self) -> usize {
        self.snap as usize
    }

    /// Returns whether writing has failed.
    pub const fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Completes the file at `end`, or at the time of the last packet if that is later, and adds the
    /// statistics of each port. For each port, `missed` contains the number of packets that are missing from
    /// the file. When this returns, everything written is on disk.
    ///
    /// # Errors
    /// If the operating system has refused any operation since the beginning.
    pub fn finish(mut self, end: Instant, missed: &[u64]) -> Result<CaptureReport, Box<CaptureFailure>> {
        if let Err(error) = self.close(end.max(self.last), missed) {
            self.give_up(error);
        }
        let failed = self.failed.take();
        let port = |(port, (noted, &missed)): (String, (u64, &u64))| match failed {
            None => CapturedPackets { port, written: noted, missed },
            Some(_) => CapturedPackets { port, written: 0, missed: noted + missed },
        };
        let ports = self.names.into_iter().zip(self.noted.into_iter().zip(missed)).map(port).collect();
        match failed {
            None => Ok(CaptureReport { ports }),
            Some(error) => {
                let error = RecordingError::io("write", &self.path)(error);
                Err(Box::new(CaptureFailure { at: self.last, ports, error }))
            }
        }
    }

    fn close(&mut self, end: Instant, missed: &[u64]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        for (interface, (&noted, &missed)) in self.noted.iter().zip(missed).enumerate() {
            let statistics = Statistics {
                interface: interface as u32,
                end_ns: end.as_ns(),
                received: noted + missed,
                dropped: missed,
            };
            file.statistics(&statistics)?;
        }
        file.flush()?;
        // Some file systems report only now that they have no space.
        file.sink().get_ref().sync()
    }
}

/// Writes, for example, `queueing delay 1234567 ns, marked early`: first the delay, then the packet's other
/// properties.
fn describe(comment: &mut String, packet: &PacketAtPort, len: u32) {
    let mut say = |text: std::fmt::Arguments<'_>| comment.write_fmt(text).expect("a string accepts any text");
    say(format_args!("queueing delay {} ns", packet.waited.as_ns()));
    for reason in packet.marked.iter() {
        say(format_args!(", marked {}", reason.name()));
    }
    if let Some(reason) = packet.dropped {
        say(format_args!(", dropped {}", reason.name()));
    }
    if packet.wire_len.get() != u64::from(len) {
        say(format_args!(", {} bytes at the network layer", packet.wire_len.get()));
    }
}
