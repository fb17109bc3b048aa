//! The path into a kernel's queue and out of it.

use std::io;
use std::os::fd::BorrowedFd;

/// The statistics of a kernel discipline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelState {
    /// Packets that wait in it.
    pub waiting: u32,
    /// Packets that it has dropped since its creation.
    pub drops: u32,
}

/// A queue of the kernel between two interfaces. Nothing here blocks.
pub trait KernelPath: Send {
    /// Hands over a packet. When it returns, the discipline has queued or dropped it.
    ///
    /// # Errors
    /// The system's error.
    fn offer(&mut self, packet: &[u8]) -> io::Result<()>;

    /// Takes the next packet that has left the queue. Returns its length, or `None` if there is none.
    ///
    /// # Errors
    /// The system's error.
    fn take(&mut self, packet: &mut [u8]) -> io::Result<Option<usize>>;

    /// Asks the discipline for its counts.
    ///
    /// # Errors
    /// The system's error.
    fn state(&mut self) -> io::Result<KernelState>;

    /// Returns the descriptor that becomes readable when a packet has left.
    fn fd(&self) -> BorrowedFd<'_>;
}
