//! The thread that writes a capture.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use aqmlab_recording::capture::{CaptureFailure, CaptureFile, CaptureReport, Frame};
use aqmlab_units::Instant;

use super::ring::{Missed, Received, Receiver};

/// Time that the thread sleeps when there is nothing to write. The data plane does not wake it:
/// that would take a system call per packet. The ring can hold a hundred times as many packets as
/// arrive in this time.
const NAP: Duration = Duration::from_millis(2);

/// A capture in progress.
pub struct CaptureWriter {
    /// `None` once the thread has been joined.
    thread: Option<JoinHandle<Box<dyn CaptureFile>>>,
    stop: Arc<AtomicBool>,
    missed: Missed,
}

impl CaptureWriter {
    pub(super) fn start(file: Box<dyn CaptureFile>, ring: Receiver) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, missed) = (stop.clone(), ring.missed.clone());
        let body = move || write(file, ring, &stopped);
        let thread = thread::Builder::new().name("aqmlab-capture".into()).spawn(body)?;
        Ok(CaptureWriter { thread: Some(thread), stop, missed })
    }

    /// Number of packets so far that did not fit into the ring.
    pub fn missed(&self) -> u64 {
        self.missed.iter().map(|port| port.load(Ordering::Relaxed)).sum()
    }

    /// Writes the packets that remain in the ring, and ends the file at `end`. Packets handed over
    /// after this call may be missing from the file.
    ///
    /// # Errors
    /// If the file could not be written, now or earlier. In this case, the file has been deleted. A full disk
    /// does not affect the data plane.
    ///
    /// # Panics
    /// If the writing thread has panicked.
    pub fn finish(mut self, end: Instant) -> Result<CaptureReport, Box<CaptureFailure>> {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().expect("a capture is finished only once");
        thread.thread().unpark();
        let file = thread.join().expect("writing a capture does not panic");
        let missed: Vec<u64> = self.missed.iter().map(|port| port.load(Ordering::Relaxed)).collect();
        file.finish(end, &missed)
    }
}

impl Drop for CaptureWriter {
    /// Ends the thread, because a failed run needs no capture; the file is discarded with the recording.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

fn write(mut file: Box<dyn CaptureFile>, mut ring: Receiver, stop: &AtomicBool) -> Box<dyn CaptureFile> {
    loop {
        // The request to stop is read before the ring is emptied, so that everything that arrived before it
        // is written.
        let last = stop.load(Ordering::Acquire);
        while let Some(Received { packet, head, len }) = ring.receive() {
            file.note(&packet, Frame { head, len });
        }
        if last || ring.is_over() {
            return file;
        }
        thread::park_timeout(NAP);
    }
}
