//! Packets at ports in a pcapng file for Wireshark, tshark and similar programs.
//!
//! [`Capture`] writes each packet immediately, so a capture needs constant memory. Properties that
//! are not visible in the bytes (the waiting time, the reason for a mark or drop) are in the
//! packet's comment. If writing a capture fails, its file is removed immediately, so that the disk
//! has room for the rest of the recording.

mod pcapng;

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use aqmlab_recording::RecordingError;
use aqmlab_recording::capture::{
    CaptureFailure, CaptureFile, CaptureReport, CapturedPackets, CapturedPort, FILE_NAME, Frame, PacketAtPort,
};
use aqmlab_units::Instant;

use crate::directory::Staged;
use crate::sink::Sink;
use pcapng::{Direction, Interface, PcapngWriter, Record, Statistics};

/// Number of bytes that are buffered before a write to the disk.
const BUFFER: usize = 1 << 18;

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

    /// Stops writing, and removes everything written so far.
    #[cold]
    fn give_up(&mut self, error: io::Error) {
        self.failed = Some(error);
        let Some(file) = self.file.take() else { return };
        // The contents of the buffer must not reach the disk, but dropping the writer would write them there.
        let (mut sink, _) = file.into_sink().into_parts();
        sink.give_up();
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

impl CaptureFile for Capture {
    fn note(&mut self, packet: &PacketAtPort, frame: Frame<'_>) {
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

    fn ports(&self) -> usize {
        self.noted.len()
    }

    fn snap(&self) -> usize {
        self.snap as usize
    }

    fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    fn finish(
        mut self: Box<Self>,
        end: Instant,
        missed: &[u64],
    ) -> Result<CaptureReport, Box<CaptureFailure>> {
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
