//! Devices from which a data plane reads frames and to which it writes them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use crate::frame::LinkHeader;

/// A device that carries whole IP packets and never blocks: a TUN device, or a test's substitute for one.
pub trait Device {
    /// Reads the next packet into `frame`. Returns its length, or `None` if no packet waits.
    ///
    /// # Errors
    /// Any error from the operating system, except for "would block" and "interrupted".
    fn read(&mut self, frame: &mut [u8]) -> io::Result<Option<usize>>;

    /// Writes one packet immediately or not at all: a packet that cannot be accepted now causes an
    /// error, because waiting would delay all other events.
    ///
    /// # Errors
    /// Any error from the operating system.
    fn write(&mut self, frame: &[u8]) -> io::Result<()>;

    /// Returns the descriptor that becomes readable when a packet waits.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Returns the link header of the packet that was read last; `None` if the device has no link layer. A packet read
    /// from a device with a link layer is preceded by the header of [`crate::frame::offload`].
    fn link(&self) -> Option<LinkHeader> {
        None
    }

    /// Writes one packet like [`Device::write`]; a device with a link layer writes this link header before it.
    ///
    /// # Errors
    /// See [`Device::write`].
    fn write_to_link(&mut self, _link: &LinkHeader, frame: &[u8]) -> io::Result<()> {
        self.write(frame)
    }
}

/// A device behind a non-blocking file descriptor that preserves packet boundaries: a TUN device
/// without packet information (`IFF_NO_PI`), or a datagram socket.
#[derive(Debug)]
pub struct FdDevice<F: AsFd>(pub F);

impl<F: AsFd> Device for FdDevice<F> {
    #[inline]
    fn read(&mut self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.0, frame) {
            Ok(length) => Ok(Some(length)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    #[inline]
    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        let written = rustix::io::write(&self.0, frame)?;
        if written == frame.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn packets_stay_apart_and_nobody_waits() {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let (mut near, mut far) = (FdDevice(ours), FdDevice(theirs));
        let mut frame = [0; 64];
        assert_eq!(near.read(&mut frame).unwrap(), None, "nothing waits");
        far.write(&[1; 20]).unwrap();
        far.write(&[2; 40]).unwrap();
        assert_eq!(near.read(&mut frame).unwrap(), Some(20));
        assert_eq!(near.read(&mut frame).unwrap(), Some(40));
        assert_eq!(frame[..40], [2; 40]);
        assert_eq!(near.read(&mut frame).unwrap(), None);
        // The queue of a socket is short; a packet that does not fit causes an error, and the writer does not
        // wait.
        let refused = (0..10_000).map(|_| far.write(&[3; 20])).find_map(Result::err).unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    }
}
