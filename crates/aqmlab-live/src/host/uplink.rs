//! The way from the servers' host of a class to the networks of this machine.
//!
//! To the clients, every address in the world belongs to the servers' host: its kernel ends their connections, so TCP
//! across the scenario's network is that of the class. Behind it, a thread that has stayed in the machine's own network
//! namespace opens a connection or a socket of UDP to the true address, and bytes are passed on between the two. A
//! translator that reflects segments of the far server (pasta) or has a stack of its own (slirp4netns) would put
//! another sender's behaviour into the queue.
//!
//! Sockets in the servers' host are made when the router finds a flow, while its first packet is still crossing the
//! network.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, Builder};
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown, sockopt};

use super::namespace::Namespace;
use super::refusal;
use crate::error::LiveError;
use crate::router::{Ends, TCP, UDP};
use crate::sys;

/// The port of name servers.
const DNS: u16 = 53;
/// Stack of a thread that passes bytes on, so that many fit into memory.
const STACK: usize = 128 << 10;
/// Longest time for which a connection to the outside may be opening.
const TO_CONNECT: Duration = Duration::from_secs(10);
/// RFC 4787, REQ-5: a translation of UDP ends after 5 minutes without a packet.
const IDLE: Duration = Duration::from_secs(300);
/// Unsent bytes that the servers' host may hold: what is behind the queue should wait in the machine's network.
const UNSENT: u32 = 128 << 10;

type Work = Box<dyn FnOnce() + Send>;

/// A thread in the machine's own network namespace, which the process is about to leave.
#[derive(Debug)]
pub struct Outside {
    work: Sender<Work>,
    /// The machine's first name server.
    resolver: Option<SocketAddr>,
}

impl Outside {
    /// Starts the thread in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the system cannot provide a thread.
    pub fn begin() -> Result<Self, LiveError> {
        let (work, works) = channel::<Work>();
        let serve = move || works.into_iter().for_each(begin_thread);
        Builder::new()
            .stack_size(STACK)
            .spawn(serve)
            .map_err(|error| refusal::thread("the uplink", &error))?;
        let text = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        Ok(Outside { work, resolver: name_server(&text) })
    }
}

/// Returns the first name server of a `resolv.conf`.
fn name_server(text: &str) -> Option<SocketAddr> {
    let address = |line: &str| line.trim().strip_prefix("nameserver")?.trim().parse().ok();
    text.lines().find_map(address).map(|address: IpAddr| SocketAddr::new(address, DNS))
}

/// Does work in a new thread, in the network namespace of the calling thread. Without a thread, the work is lost, as
/// a packet may be.
fn begin_thread(work: Work) {
    let _ = Builder::new().stack_size(STACK).spawn(work);
}

/// The uplinks of a run. When it is dropped, all their sockets are closed.
#[derive(Debug, Default)]
pub struct Uplinks(Vec<Arc<Open>>);

/// The sockets of an uplink.
#[derive(Debug, Default)]
struct Open {
    over: AtomicBool,
    sockets: Mutex<Vec<Weak<OwnedFd>>>,
}

impl Uplinks {
    /// Begins the uplink of the servers' host of a class, whose address is `own`. `found` has the flows as the router
    /// finds them.
    ///
    /// # Errors
    /// If the system cannot provide a thread.
    pub fn add(
        &mut self,
        server: &Namespace,
        own: IpAddr,
        outside: &Outside,
        found: Receiver<Ends>,
    ) -> Result<(), LiveError> {
        let open = Arc::new(Open::default());
        self.0.push(Arc::clone(&open));
        let server = server.again()?;
        let (work, resolver) = (outside.work.clone(), outside.resolver);
        let inside = Inside { own, resolver, outside: work, open, listens: BTreeSet::new() };
        let serve = move || {
            // Without its namespace, the host would answer nobody.
            if server.enter().is_ok() {
                inside.serve(&found);
            }
        };
        Builder::new()
            .stack_size(STACK)
            .spawn(serve)
            .map_err(|error| refusal::thread("the uplink", &error))?;
        Ok(())
    }
}

impl Drop for Uplinks {
    fn drop(&mut self) {
        for open in &self.0 {
            open.over.store(true, Ordering::Relaxed);
            for socket in open.sockets().iter().filter_map(Weak::upgrade) {
                // It ends the calls that wait for the socket; one that was never connected has none.
                let _ = shutdown(&socket, Shutdown::Both);
            }
        }
    }
}

impl Open {
    fn sockets(&self) -> std::sync::MutexGuard<'_, Vec<Weak<OwnedFd>>> {
        self.sockets.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Holds a socket until all its users have ended.
    fn keep(&self, socket: OwnedFd) -> Arc<OwnedFd> {
        let socket = Arc::new(socket);
        let mut sockets = self.sockets();
        sockets.retain(|socket| socket.strong_count() > 0);
        sockets.push(Arc::downgrade(&socket));
        socket
    }

    /// Passes on what arrives at either socket, until both directions have ended.
    fn join(self: &Arc<Self>, inside: OwnedFd, outside: OwnedFd, kind: Kind) {
        let (inside, outside) = (self.keep(inside), self.keep(outside));
        let (open, from, to) = (Arc::clone(self), Arc::clone(&outside), Arc::clone(&inside));
        begin_thread(Box::new(move || open.pass(&from, &to, kind)));
        self.pass(&inside, &outside, kind);
    }

    fn pass(&self, from: &OwnedFd, to: &OwnedFd, kind: Kind) {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match recv(from, &mut buffer[..], RecvFlags::empty()) {
                _ if self.is_over() => break,
                Ok((0, _)) if kind == Kind::Stream => {
                    let _ = shutdown(to, Shutdown::Write);
                    return;
                }
                Ok((length, _)) => {
                    if !send_all(to, &buffer[..length]) && kind == Kind::Stream {
                        break;
                    }
                }
                // A datagram that could not be delivered says nothing of the next.
                Err(error) if kind == Kind::Datagrams && error != rustix::io::Errno::AGAIN => {}
                Err(_) => break,
            }
        }
        for socket in [from, to] {
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
}

/// Whether the bytes between two sockets are a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Stream,
    Datagrams,
}

/// Sends a datagram, or all bytes of a part of a stream. Returns whether it could.
fn send_all(to: &OwnedFd, mut bytes: &[u8]) -> bool {
    loop {
        match send(to, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) if sent >= bytes.len() => return true,
            Ok(sent) => bytes = &bytes[sent..],
            Err(_) => return false,
        }
    }
}

/// The side of the servers' host.
struct Inside {
    own: IpAddr,
    resolver: Option<SocketAddr>,
    outside: Sender<Work>,
    open: Arc<Open>,
    /// Where connections are accepted.
    listens: BTreeSet<SocketAddr>,
}

impl Inside {
    fn serve(mut self, found: &Receiver<Ends>) {
        for ends in found {
            let Some(target) = self.target(&ends) else { continue };
            let at = SocketAddr::from(ends.server);
            // A program may have opened the port itself.
            let _ = match ends.protocol {
                TCP if self.listens.insert(at) => self.listen(at, target),
                UDP => self.exchange(at, SocketAddr::from(ends.client), target),
                _ => Ok(()),
            };
        }
    }

    /// Returns where packets to a flow's server go. Programs of the class answer at the host's own address, except for
    /// names.
    fn target(&self, ends: &Ends) -> Option<SocketAddr> {
        match ends.server {
            (address, DNS) if address == self.own => self.resolver,
            (address, _) if address == self.own => None,
            server => Some(server.into()),
        }
    }

    fn listen(&self, at: SocketAddr, target: SocketAddr) -> io::Result<()> {
        let listener = TcpListener::bind(at)?;
        let held = self.open.keep(OwnedFd::from(listener.try_clone()?));
        let (outside, open) = (self.outside.clone(), Arc::clone(&self.open));
        begin_thread(Box::new(move || {
            let _held = held;
            while !open.is_over() {
                let Ok((inside, _)) = listener.accept() else {
                    // Without descriptors, a connection waits until there are some.
                    thread::sleep(Duration::from_millis(10));
                    continue;
                };
                let open = Arc::clone(&open);
                let _ = outside.send(Box::new(move || connect(&open, inside, target)));
            }
        }));
        Ok(())
    }

    fn exchange(&self, at: SocketAddr, client: SocketAddr, target: SocketAddr) -> io::Result<()> {
        let inside = UdpSocket::bind(at)?;
        inside.connect(client)?;
        let open = Arc::clone(&self.open);
        let exchange = move || {
            let any: SocketAddr = if target.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
            let outside = UdpSocket::bind(any).and_then(|socket| socket.connect(target).map(|()| socket));
            let Ok(outside) = outside else { return };
            let limits = [&inside, &outside].map(|socket| socket.set_read_timeout(Some(IDLE)));
            debug_assert!(limits.iter().all(Result::is_ok), "{limits:?}");
            open.join(inside.into(), outside.into(), Kind::Datagrams);
        };
        let _ = self.outside.send(Box::new(exchange));
        Ok(())
    }
}

/// Connects to the true server, and passes on what both send. A client whose server does not answer gets a reset.
fn connect(open: &Arc<Open>, inside: TcpStream, target: SocketAddr) {
    let Ok(outside) = TcpStream::connect_timeout(&target, TO_CONNECT) else {
        let _ = sockopt::set_socket_linger(&inside, Some(Duration::ZERO));
        return;
    };
    // Without these, bytes would wait for no reason of the network's.
    let _ = (inside.set_nodelay(true), outside.set_nodelay(true));
    let _ = sys::set_notsent_low_water(&inside, UNSENT);
    open.join(inside.into(), outside.into(), Kind::Stream);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_server_is_used() {
        let at = |text: &str| name_server(text).map(|address| address.to_string());
        assert_eq!(
            at("# none\nsearch x\nnameserver 10.0.0.2\nnameserver 10.0.0.3\n").as_deref(),
            Some("10.0.0.2:53")
        );
        assert_eq!(at("nameserver\tfe80::1\n").as_deref(), Some("[fe80::1]:53"));
        assert_eq!(at("nameserver nonsense\n"), None);
    }
}
