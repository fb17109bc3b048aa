//! One end of a connection: its application's pending, written and read data.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use aqmlab_traffic::Act;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, sockopt};

use super::counts::{KernelCounts, NOTHING_SENT, Sample, sent_by};
use crate::sys;

/// The payload of flows, which consists of zeros.
static ZEROS: [u8; 65_536] = [0; 65_536];

/// Maximum number of write or read calls before other sockets are served.
const TURNS: usize = 4;

/// Number of reads at the beginning of a connection that are each followed by setting the maximum
/// receive window again.
const WINDOW_SAID: u32 = 16;

/// Data that an application still has to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ToWrite {
    /// The given number of bytes.
    Bytes(u64),
    /// Data without end.
    Endless,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Stream {
    socket: OwnedFd,
    to_write: ToWrite,
    /// Whether the end of the stream follows the pending data.
    closes: bool,
    /// Whether the end of the stream has been sent.
    closed: bool,
    written: u64,
    read: u64,
    /// Whether the other side has finished writing, and everything has been read.
    peer_closed: bool,
    /// Whether the connection is still opening.
    opening: bool,
    /// Maximum receive window, and the number of times that it must still be set.
    window: Option<(u32, u32)>,
    /// Events on this socket that the generator waits for.
    interest: EventFlags,
}

impl Stream {
    /// Returns an end whose application has no data to write yet. `opening` says whether this end opens the
    /// connection, and `window` is the maximum receive window.
    pub fn new(socket: OwnedFd, opening: bool, window: Option<u32>) -> Self {
        Stream {
            socket,
            to_write: ToWrite::Bytes(0),
            closes: false,
            closed: false,
            written: 0,
            read: 0,
            peer_closed: false,
            opening,
            window: window.map(|bytes| (bytes, WINDOW_SAID)),
            interest: EventFlags::empty(),
        }
    }

    /// Records that the connection is open; returns whether it was still opening until now.
    pub fn opened(&mut self) -> bool {
        std::mem::replace(&mut self.opening, false)
    }

    /// Accepts an action of the application; [`Stream::write`] executes it.
    pub fn act(&mut self, act: Act) {
        match act {
            Act::Write(bytes) => self.add(bytes),
            Act::WriteLast(bytes) => {
                self.add(bytes);
                self.closes = true;
            }
            Act::WriteEndlessly => self.to_write = ToWrite::Endless,
            Act::Withdraw => self.withdraw(),
        }
    }

    /// Closes the stream after the pending data; endless data is cut off.
    pub fn close(&mut self) {
        self.withdraw();
        self.closes = true;
    }

    fn add(&mut self, bytes: u64) {
        if let ToWrite::Bytes(left) = &mut self.to_write {
            *left += bytes;
        }
    }

    /// DEVIATES from the simulator: data that the socket has already accepted is still sent, because a kernel
    /// does not give accepted data back. The low-water mark keeps the amount of such data small.
    fn withdraw(&mut self) {
        if self.to_write == ToWrite::Endless {
            self.to_write = ToWrite::Bytes(0);
        }
    }

    /// Writes as much as the socket accepts now.
    ///
    /// # Errors
    /// Any error from the operating system, except for "would block".
    pub fn write(&mut self) -> io::Result<()> {
        for _ in 0..TURNS {
            let most = match self.to_write {
                ToWrite::Bytes(0) => return self.finish(),
                ToWrite::Bytes(left) => ZEROS.len().min(usize::try_from(left).unwrap_or(usize::MAX)),
                ToWrite::Endless => ZEROS.len(),
            };
            // With MORE, the kernel holds back a partial segment until the end of the stream is written.
            let more = if self.closes { SendFlags::MORE } else { SendFlags::empty() };
            match rustix::net::send(&self.socket, &ZEROS[..most], SendFlags::NOSIGNAL | more) {
                Ok(taken) => self.took(taken as u64),
                Err(Errno::AGAIN | Errno::INTR | Errno::NOTCONN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn took(&mut self, taken: u64) {
        self.written += taken;
        if let ToWrite::Bytes(left) = &mut self.to_write {
            *left -= taken;
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.closes && !self.closed {
            match rustix::net::shutdown(&self.socket, Shutdown::Write) {
                Ok(()) => self.closed = true,
                // The connection is not open yet; this call is repeated once it is.
                Err(Errno::NOTCONN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads and discards the data that has arrived.
    ///
    /// # Errors
    /// Any error from the operating system, except for "would block".
    pub fn read(&mut self, scratch: &mut [u8]) -> io::Result<()> {
        for _ in 0..TURNS {
            // TRUNC: the kernel discards the bytes and returns their number (tcp(7)).
            match rustix::net::recv(&self.socket, &mut *scratch, RecvFlags::TRUNC) {
                Ok((_, 0)) => {
                    self.peer_closed = true;
                    return Ok(());
                }
                Ok((_, length)) => {
                    self.read += length as u64;
                    self.say_window();
                }
                Err(Errno::AGAIN | Errno::INTR | Errno::NOTCONN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Sets the receive window clamp again, because Linux 6.6 and later versions recompute it
    /// whenever a segment is longer than all earlier ones. This happens only for the first few
    /// segments.
    fn say_window(&mut self) {
        if let Some((bytes, times)) = &mut self.window {
            // A connection that ends at this moment needs no clamp.
            let _ = sys::set_window_clamp(&self.socket, *bytes);
            *times -= 1;
            if *times == 0 {
                self.window = None;
            }
        }
    }

    /// Returns the error that the socket holds, if any.
    pub fn error(&self) -> Option<i32> {
        match sockopt::socket_error(&self.socket) {
            Ok(Ok(())) => None,
            Ok(Err(error)) | Err(error) => Some(error.raw_os_error()),
        }
    }

    /// Empties the queue of messages about acknowledged data.
    pub fn forget_stamps(&self) {
        let mut nothing = [0u8; 1];
        while rustix::net::recv(&self.socket, &mut nothing[..], RecvFlags::ERRQUEUE).is_ok() {}
    }

    /// Returns the number of the application's bytes that have been acknowledged.
    pub fn acked(&self) -> u64 {
        // The end of the stream counts as one byte, which the application has not written.
        let outstanding = sys::unacknowledged(&self.socket).unwrap_or(0);
        (self.written + u64::from(self.closed)).saturating_sub(outstanding).min(self.written)
    }

    /// Returns the number of bytes that the application has read.
    pub fn read_bytes(&self) -> u64 {
        self.read
    }

    /// Returns whether the other side has closed and everything has been read.
    pub fn peer_has_closed(&self) -> bool {
        self.peer_closed
    }

    /// Returns whether both sides have closed, as seen from this one.
    pub fn is_done(&self) -> bool {
        self.closed && self.peer_closed
    }

    /// Returns whether the kernel watches this socket.
    pub fn is_watched(&self) -> bool {
        !self.interest.is_empty()
    }

    /// Returns the events to wait for, if they differ from those that the kernel watches for. The
    /// set is empty once both sides have closed.
    pub fn new_interest(&mut self) -> Option<EventFlags> {
        let mut wanted = EventFlags::empty();
        if !self.peer_closed {
            wanted |= EventFlags::IN;
        }
        if self.opening || self.to_write != ToWrite::Bytes(0) || (self.closes && !self.closed) {
            wanted |= EventFlags::OUT;
        }
        (wanted != self.interest).then(|| {
            self.interest = wanted;
            wanted
        })
    }

    /// Returns the counts of data sent so far.
    pub fn sent(&self) -> KernelCounts {
        sys::tcp_info(&self.socket).map_or(NOTHING_SENT, |info| sent_by(&info))
    }

    /// Returns the present state of this endpoint; `None` if the kernel does not report it.
    pub fn sample(&self) -> Option<Sample> {
        Sample::of(&sys::tcp_info(&self.socket).ok()?)
    }

    /// Discards unsent data, and ends the connection with a RST.
    pub fn abort(self) {
        // If the request is refused, the connection closes in the orderly way, which takes longer.
        let _ = sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO));
    }

    /// Its socket.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
