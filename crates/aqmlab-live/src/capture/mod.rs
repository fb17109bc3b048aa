//! Captures of ports: the data plane hands frames over, and a separate thread writes them to a
//! file.
//!
//! A ring of bytes, allocated at the start, connects the two (`ring.rs`). The data plane never waits for
//! space in the ring and allocates nothing. Packets that do not fit are counted by port, and the counts are
//! in the file and in the recording. The file has the same contents and the same meaning as for simulated
//! ports ([`aqmlab_recording::capture`]).

mod ring;
mod writer;

use std::io;

use aqmlab_qdisc::{Cause, Observer, Reason};
use aqmlab_recording::capture::{PacketAtPort, PortCapture, Reasons};
use aqmlab_units::{Bytes, Instant};

use crate::error::LiveError;
use crate::host::no_thread;
use crate::router::{FrameAtPort, FrameBudget, Router};
use ring::Sender;
pub use writer::CaptureWriter;

/// Size of the ring in bytes: if 128 bytes of each packet are captured, it holds some 50,000
/// packets, which is half a second of traffic at a gigabit per second.
const RING: usize = 8 << 20;

/// Observer that writes the events at a router's captured ports into the ring.
pub struct CaptureObserver {
    ring: Sender,
    /// For each link, the number of its port in the capture; `None` if the port is not captured.
    ports: Vec<Option<u32>>,
    /// For each slot, the reasons why its frame has been marked at the port where the frame waits; a frame is
    /// at only one port at a time.
    marked: Vec<Reasons>,
}

impl Observer<FrameAtPort<'_>> for CaptureObserver {
    fn enqueued(&mut self, _now: Instant, frame: &FrameAtPort<'_>) {
        self.marked[frame.slot as usize] = Reasons::NONE;
    }

    fn dequeued(&mut self, now: Instant, frame: &FrameAtPort<'_>) {
        self.left(now, frame, None);
    }

    fn dropped(&mut self, now: Instant, frame: FrameAtPort<'_>, at: Cause) {
        self.left(now, &frame, Some(at.reason));
    }

    fn marked(&mut self, _now: Instant, frame: &FrameAtPort<'_>, at: Cause) {
        self.marked[frame.slot as usize].insert(at.reason);
    }
}

impl CaptureObserver {
    fn left(&mut self, at: Instant, frame: &FrameAtPort<'_>, dropped: Option<Reason>) {
        let Some(port) = self.ports.get(frame.link).copied().flatten() else { return };
        let marked = self.marked[frame.slot as usize];
        let (waited, wire_len) = (at.saturating_since(frame.arrived), Bytes::new(frame.octets.len() as u64));
        let packet = PacketAtPort { port, id: frame.id, at, waited, marked, dropped, wire_len };
        self.ring.send(&packet, frame.octets);
    }
}

/// Starts to capture the events of `router`, which has this frame budget.
pub(crate) fn observe(
    router: &mut Router,
    capture: PortCapture,
    budget: &FrameBudget,
) -> Result<CaptureWriter, LiveError> {
    let started = start(capture, budget);
    let (observer, writer) = started.map_err(|error| no_thread("captured packets", &error))?;
    router.observe_ports(Box::new(observer));
    Ok(writer)
}

/// Starts to capture the events of a router with this frame budget. The writing thread starts with
/// ordinary priority; the data plane's priority is raised only afterwards.
///
/// # Errors
/// If the system cannot provide a thread.
pub fn start(capture: PortCapture, budget: &FrameBudget) -> io::Result<(CaptureObserver, CaptureWriter)> {
    start_with(capture, budget.frames, RING)
}

/// Starts a capture for a router with `slots` frame slots, through a ring of `ring` bytes.
///
/// # Errors
/// If the system cannot provide a thread.
pub fn start_with(
    capture: PortCapture,
    slots: usize,
    ring: usize,
) -> io::Result<(CaptureObserver, CaptureWriter)> {
    let PortCapture { links, file } = capture;
    let mut ports = vec![None; links.iter().max().map_or(0, |last| last + 1)];
    for (port, &link) in links.iter().enumerate() {
        ports[link] = Some(port as u32);
    }
    let (sender, receiver) = ring::of(ring, file.ports(), file.snap());
    let writer = CaptureWriter::start(file, receiver)?;
    Ok((CaptureObserver { ring: sender, ports, marked: vec![Reasons::NONE; slots] }, writer))
}
