//! The destination of a file that is written during the run.

use std::io::{self, Write};

use crate::directory::StreamedFile;

/// The destination of a file that is written during the run.
pub enum Sink {
    /// A file of a recording in preparation.
    Staged(StreamedFile),
    /// Anything else.
    Other(Box<dyn Write + Send>),
}

impl Sink {
    /// Discards everything written so far, if the sink allows it.
    pub fn give_up(&mut self) {
        match self {
            Sink::Staged(file) => file.give_up(),
            Sink::Other(_) => {}
        }
    }

    /// Waits until the written data is on disk, if the sink is a file.
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
