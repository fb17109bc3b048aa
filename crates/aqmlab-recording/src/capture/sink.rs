//! Where a capture goes.

use std::io::{self, Write};

use crate::directory::StreamedFile;

/// Where a capture goes.
pub enum Sink {
    /// A file of a recording that is being made.
    Staged(StreamedFile),
    /// Anything else.
    Other(Box<dyn Write + Send>),
}

impl Sink {
    /// What has been written is no more, as far as it can be taken back.
    pub fn give_up(&mut self) {
        match self {
            Sink::Staged(file) => file.give_up(),
            Sink::Other(_) => {}
        }
    }

    /// Waits until what has been written is on the disk, if it goes there.
    pub fn sync(&self) -> io::Result<()> {
        match self {
            Sink::Staged(file) => file.sync(),
            Sink::Other(_) => Ok(()),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Staged(file) => file.write(bytes),
            Sink::Other(sink) => sink.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Staged(file) => file.flush(),
            Sink::Other(sink) => sink.flush(),
        }
    }
}
