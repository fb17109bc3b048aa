//! Captures of ports: the data plane hands frames over, a thread of its own writes them down.
//!
//! Between the two lies a ring of bytes that is there from the start (`ring.rs`). The data plane never waits for it and
//! allocates nothing: what finds no room is counted, port by port, and the count stands in the file and in the recording.
//! What is written, and what it means, is the same as for simulated ports ([`aqmlab_recording::capture`]).

mod ring;
mod writer;

use std::io;

use aqmlab_qdisc::Reason;
use aqmlab_recording::capture::{PacketAtPort, PortCapture, Reasons};
use aqmlab_units::{Bytes, Instant};

use crate::error::LiveError;
use crate::router::{FrameBudget, Happening, Router, Tap, What};
use ring::Sender;
pub use writer::CaptureWriter;

/// Bytes that may wait to be written: some 50,000 packets with 128 bytes of each, half a second of a gigabit.
const RING: usize = 8 << 20;

/// What a router tells goes into a capture.
pub struct PortTap {
    ring: Sender,
    /// The number of each link's port in the capture, if it is captured.
    ports: Vec<Option<u32>>,
    /// What is known of the frame in each slot: a frame is at one queue at a time.
    waiting: Vec<Waiting>,
}

/// What is known of a frame that waits.
#[derive(Clone, Copy)]
struct Waiting {
    since: Instant,
    marked: Reasons,
}

const NOT_WAITING: Waiting = Waiting { since: Instant::ZERO, marked: Reasons::NONE };

impl Tap for PortTap {
    fn happens(&mut self, Happening { link, at, what, slot, frame }: Happening<'_>) {
        let Some(port) = self.ports.get(link).copied().flatten() else { return };
        let slot = slot as usize;
        match what {
            What::Enqueue => self.waiting[slot] = Waiting { since: at, ..NOT_WAITING },
            What::Mark { reason } => self.waiting[slot].marked.insert(reason),
            What::Dequeue { .. } => self.left(port, at, slot, None, frame),
            What::Drop { reason } => self.left(port, at, slot, Some(reason), frame),
        }
    }
}

impl PortTap {
    fn left(&mut self, port: u32, at: Instant, slot: usize, dropped: Option<Reason>, frame: &[u8]) {
        let Waiting { since, marked } = self.waiting[slot];
        let (waited, wire_len) = (at.saturating_since(since), Bytes::new(frame.len() as u64));
        self.ring.send(&PacketAtPort { port, at, waited, marked, dropped, wire_len }, frame);
    }
}

/// Starts to capture what `router`, which has this frame budget, does from now on.
pub(crate) fn tap(
    router: &mut Router,
    capture: PortCapture,
    budget: &FrameBudget,
) -> Result<CaptureWriter, LiveError> {
    let started = start(capture, budget);
    let (tap, writer) = started.map_err(LiveError::io("start", "the thread that writes captured packets"))?;
    router.listen(Box::new(tap));
    Ok(writer)
}

/// Starts to capture what a router with this frame budget reports. The thread that writes is started here, an ordinary one: a data plane that is to be more than that
/// is made so afterwards.
///
/// # Errors
/// If the system has no thread to spare.
pub fn start(capture: PortCapture, budget: &FrameBudget) -> io::Result<(PortTap, CaptureWriter)> {
    start_with(capture, budget.frames, RING)
}

/// The same for so many slots of frames, with a ring of so many bytes.
///
/// # Errors
/// If the system has no thread to spare.
pub fn start_with(capture: PortCapture, slots: usize, ring: usize) -> io::Result<(PortTap, CaptureWriter)> {
    let PortCapture { links, file } = capture;
    let mut ports = vec![None; links.iter().max().map_or(0, |last| last + 1)];
    for (port, &link) in links.iter().enumerate() {
        ports[link] = Some(port as u32);
    }
    let (sender, receiver) = ring::of(ring, file.ports(), file.snap());
    let writer = CaptureWriter::start(file, receiver)?;
    Ok((PortTap { ring: sender, ports, waiting: vec![NOT_WAITING; slots] }, writer))
}
