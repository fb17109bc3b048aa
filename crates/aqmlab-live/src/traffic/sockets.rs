//! The hosts' sockets. Each socket is opened in its host's namespace and never blocks.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use aqmlab_qdisc::{Dscp, Ecn};
use aqmlab_scenario::IpVersion;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use crate::host::{Host, TcpSockets};
use crate::sys;

/// Number of written but unsent bytes above which a socket accepts no more. This leaves little data to send
/// when a source withdraws its unsent data or stops, but enough for a burst of forty segments before the
/// generator wakes.
const LOW_WATER: u32 = 65_536;

/// Opens a socket in the host's namespace. The calling thread stays in that namespace.
fn open(host: &Host, address: SocketAddr, kind: SocketType) -> io::Result<OwnedFd> {
    host.namespace.enter().map_err(io::Error::other)?;
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let protocol = if kind == SocketType::STREAM { ipproto::TCP } else { ipproto::UDP };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, kind, flags, Some(protocol))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    Ok(socket)
}

/// Opens a socket that accepts connections, with the options of its class, which the connections inherit.
///
/// # Errors
/// Any error from the operating system.
pub fn listener(host: &Host, at: SocketAddr, options: &TcpSockets) -> io::Result<OwnedFd> {
    let socket = open(host, at, SocketType::STREAM)?;
    set(&socket, at, options)?;
    rustix::net::bind(&socket, &at)?;
    rustix::net::listen(&socket, i32::from(u16::MAX))?;
    Ok(socket)
}

/// Opens a client's socket that is bound to `from`, for a connection with the options of its class.
///
/// # Errors
/// Any error from the operating system.
pub fn client(host: &Host, from: SocketAddr, options: &TcpSockets) -> io::Result<OwnedFd> {
    let socket = open(host, from, SocketType::STREAM)?;
    set(&socket, from, options)?;
    rustix::net::bind(&socket, &from)?;
    Ok(socket)
}

/// Begins to open the client's connection to `to`.
///
/// # Errors
/// Any error from the operating system.
pub fn connect(client: &OwnedFd, to: SocketAddr) -> io::Result<()> {
    match rustix::net::connect(client, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn set(socket: &OwnedFd, at: SocketAddr, options: &TcpSockets) -> io::Result<()> {
    if options.dscp != Dscp::default() {
        let ip = if at.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        // The kernel itself controls the ECN field of a connection.
        set_traffic_class(socket, ip, options.dscp, Ecn::NotEct)?;
    }
    sockopt::set_tcp_congestion(socket, &options.congestion)?;
    sockopt::set_tcp_nodelay(socket, options.no_delay)?;
    sys::set_notsent_low_water(socket, LOW_WATER)?;
    match options.max_segment {
        Some(bytes) => sys::set_max_segment(socket, bytes),
        None => Ok(()),
    }
}

/// Opens the socket on which the datagrams of a class arrive.
///
/// # Errors
/// Any error from the operating system.
pub fn datagram_server(host: &Host, at: SocketAddr) -> io::Result<OwnedFd> {
    /// Requested size of the receive buffer; except for root, the kernel limits it to `net.core.rmem_max`.
    const BUFFER: usize = 4 << 20;
    let socket = open(host, at, SocketType::DGRAM)?;
    sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, BUFFER))?;
    rustix::net::bind(&socket, &at)?;
    Ok(socket)
}

/// Sets the code point and the ECN field of this socket's packets from now on.
///
/// # Errors
/// Any error from the operating system.
pub fn set_traffic_class(socket: &OwnedFd, ip: IpVersion, dscp: Dscp, ecn: Ecn) -> io::Result<()> {
    // RFC 3168, section 5: in both versions of IP, the ECN field is the last two bits of the octet
    // that was called type of service (IPv4) or traffic class (IPv6).
    let class = dscp.0 << 2 | ecn as u8;
    match ip {
        IpVersion::V4 => sockopt::set_ip_tos(socket, class)?,
        IpVersion::V6 => sockopt::set_ipv6_tclass(socket, class.into())?,
    }
    Ok(())
}

/// Opens the socket that sends the datagrams of one flow.
///
/// # Errors
/// Any error from the operating system.
pub fn datagram_client(host: &Host, from: SocketAddr, to: SocketAddr) -> io::Result<OwnedFd> {
    let socket = open(host, from, SocketType::DGRAM)?;
    rustix::net::bind(&socket, &from)?;
    rustix::net::connect(&socket, &to)?;
    Ok(socket)
}
