//! The path into a kernel queue and out of it.

use std::io;
use std::os::fd::BorrowedFd;

/// The statistics of a kernel discipline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelState {
    /// Packets that wait in the discipline.
    pub waiting: u32,
    /// Packets that the discipline has dropped since its creation.
    pub drops: u32,
}

/// A kernel queue between two interfaces. No method blocks.
pub trait KernelPath: Send {
    /// Hands over a packet. When this method returns, the discipline has queued or dropped the packet.
    ///
    /// # Errors
    /// Any error from the operating system.
    fn offer(&mut self, packet: &[u8]) -> io::Result<()>;

    /// Takes the next packet that has left the queue. Returns the packet's length, or `None` if there is no
    /// packet.
    ///
    /// # Errors
    /// Any error from the operating system.
    fn take(&mut self, packet: &mut [u8]) -> io::Result<Option<usize>>;

    /// Reads the discipline's statistics.
    ///
    /// # Errors
    /// Any error from the operating system.
    fn state(&mut self) -> io::Result<KernelState>;

    /// Returns the descriptor that becomes readable when a packet has left.
    fn fd(&self) -> BorrowedFd<'_>;
}
