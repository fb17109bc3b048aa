//! Routing netlink: the few requests that set a host up (rtnetlink(7)).

mod message;

use std::io;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use message::answer_to;
pub use message::{Link, Metrics, Request};

/// A socket to the kernel's routing tables in one network namespace.
#[derive(Debug)]
pub struct Netlink {
    socket: rustix::fd::OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// In the namespace of the calling thread.
    ///
    /// # Errors
    /// What the system said.
    pub fn open() -> io::Result<Self> {
        // Netlink's protocol number 0 is that of routing.
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        rustix::net::bind(&socket, &netlink::SocketAddrNetlink::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// The number of the interface `name`.
    ///
    /// # Errors
    /// What the system said.
    pub fn index_of(&self, name: &str) -> io::Result<u32> {
        // Any socket will do to ask.
        Ok(rustix::net::netdevice::name_to_index(&self.socket, name)?)
    }

    /// Asks for a change and waits for the answer.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn ask(&mut self, request: &Request) -> io::Result<()> {
        self.sequence += 1;
        rustix::net::send(&self.socket, &request.bytes(self.sequence), SendFlags::empty())?;
        let mut answer = [0; 4096];
        loop {
            let (length, _) = rustix::net::recv(&self.socket, &mut answer[..], RecvFlags::empty())?;
            if let Some(result) = answer_to(&answer[..length], self.sequence) {
                return result;
            }
        }
    }
}
