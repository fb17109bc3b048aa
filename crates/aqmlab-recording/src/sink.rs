//! Where a file goes that takes shape while the run goes on.

use std::io::{self, Write};

use crate::directory::StreamedFile;

/// Where a file goes that takes shape while the run goes on.
pub enum Sink {
    /// A file of a recording that is being made.
    Staged(StreamedFile),
    /// Memory, for a run that has no directory.
    Held(Vec<u8>),
    /// Anything else.
    Other(Box<dyn Write + Send>),
}

impl Sink {
    /// What has been written is no more, as far as it can be taken back.
    pub fn give_up(&mut self) {
        match self {
            Sink::Staged(file) => file.give_up(),
            Sink::Held(bytes) => *bytes = Vec::new(),
            Sink::Other(_) => {}
        }
    }

    /// Waits until what has been written is on the disk, if it goes there.
    pub fn sync(&self) -> io::Result<()> {
        match self {
            Sink::Staged(file) => file.sync(),
            Sink::Held(_) | Sink::Other(_) => Ok(()),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Staged(file) => file.write(bytes),
            Sink::Held(held) => held.write(bytes),
            Sink::Other(sink) => sink.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Staged(file) => file.flush(),
            Sink::Held(held) => held.flush(),
            Sink::Other(sink) => sink.flush(),
        }
    }
}
