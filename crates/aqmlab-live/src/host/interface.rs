//! The only interface of a host: a TUN device whose other end this process holds.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::thread;
use std::time::Duration;

use aqmlab_scenario::{IpVersion, LivePlan};

use super::netlink::{Link, Metrics, Netlink, Request};
use super::refusal;
use super::stack::Stack;
use crate::data_plane::FdDevice;
use crate::error::LiveError;
use crate::sys;

/// This process's end of a host's interface.
pub type Tun = FdDevice<OwnedFd>;

/// The interface's name, which is the same in every namespace.
pub const NAME: &str = "aqmlab0";

/// Maximum number of packets that wait until this process reads them. The router reads packets
/// immediately, so they hardly ever wait; but whenever the router is late, a short queue would drop
/// packets unnoticed.
const QUEUE: u32 = 20_000;

/// Index of the loopback interface, which is always the first in its namespace.
const LOOPBACK: u32 = 1;

/// Number of retries if the device is busy, because a process that has just ended may still hold it.
const RETRIES: u32 = 40;
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// Creates the interface in the namespace of the calling thread, with addresses and a route.
///
/// # Errors
/// If the machine refuses a necessary operation.
pub fn make(
    addresses: impl Iterator<Item = IpAddr>,
    stack: &Stack,
    live: &LivePlan,
) -> Result<Tun, LiveError> {
    let tun = open(NAME, live.offload)?;
    let mut netlink = Netlink::open().map_err(LiveError::io("open", "a netlink socket"))?;
    let addresses: Vec<IpAddr> = addresses.collect();
    let object = || format!("the interface of {}", addresses[0]);
    let index = netlink.index_of(NAME).map_err(LiveError::io("find", object()))?;
    let mut ask =
        |operation, request: Request| netlink.ask(&request).map_err(LiveError::io(operation, object()));
    ask("bring up", Request::set_link(LOOPBACK, &Link::default()))?;
    // Without offloads, segments arrive one by one, as TCP releases them, and not in bursts that the kernel
    // splits on the way out.
    let gso_segments = if live.offload { None } else { Some(1) };
    let link = Link { mtu: Some(stack.mtu), queue: Some(QUEUE), gso_segments };
    ask("bring up", Request::set_link(index, &link)).map_err(|error| match error {
        LiveError::Io { source, .. } if source.kind() == io::ErrorKind::InvalidInput => {
            refusal::mtu(stack.mtu, &source)
        }
        other => other,
    })?;
    // The discipline named by `net.core.default_qdisc` may drop and mark packets, so it would be a second
    // discipline in front of the router's.
    ask("remove the queue of", Request::no_queue(index)).or_else(unless_without_traffic_control)?;
    for &address in &addresses {
        ask("give an address to", Request::add_address(index, address))?;
    }
    ask("route to", Request::add_default_route(index, live.ip, &stack.metrics))?;
    Ok(tun)
}

/// Makes the calling thread's namespace, which has the interface, the owner of all addresses but those of the
/// `clients`.
///
/// # Errors
/// If the machine refuses a necessary operation.
pub fn own_all_addresses(clients: (IpAddr, u8), metrics: &Metrics) -> Result<(), LiveError> {
    let mut netlink = Netlink::open().map_err(LiveError::io("open", "a netlink socket"))?;
    let index = netlink.index_of(NAME).map_err(LiveError::io("find", NAME))?;
    let version = if clients.0.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
    let requests =
        [Request::add_exception(index, clients, metrics), Request::own_all_addresses(LOOPBACK, version)];
    requests.iter().try_for_each(|request| netlink.ask(request)).map_err(LiveError::io("route to", NAME))
}

/// Creates an interface without an address in the namespace of the calling thread, and brings it up.
///
/// # Errors
/// If the machine refuses a necessary operation.
pub fn make_plain(name: &str, mtu: u32) -> Result<Tun, LiveError> {
    let tun = open(name, false)?;
    let mut netlink = Netlink::open().map_err(LiveError::io("open", "a netlink socket"))?;
    let index = netlink.index_of(name).map_err(LiveError::io("find", name))?;
    let link = Link { mtu: Some(mtu), queue: Some(QUEUE), gso_segments: None };
    netlink.ask(&Request::set_link(index, &link)).map_err(LiveError::io("bring up", name))?;
    let without = netlink.ask(&Request::no_queue(index)).map_err(LiveError::io("remove the queue of", name));
    without.or_else(unless_without_traffic_control)?;
    Ok(tun)
}

/// Routes all packets of the calling thread's namespace through an interface.
///
/// # Errors
/// Any error from the operating system.
pub fn route_all(name: &str) -> Result<(), LiveError> {
    let mut netlink = Netlink::open().map_err(LiveError::io("open", "a netlink socket"))?;
    let index = netlink.index_of(name).map_err(LiveError::io("find", name))?;
    let route = Request::add_default_route(index, IpVersion::V4, &Metrics::default());
    netlink.ask(&route).map_err(LiveError::io("route to", name))
}

/// Ignores the error of a kernel without traffic control (`CONFIG_NET_SCHED`), which does not
/// support this request; the interfaces of such a kernel have a FIFO, `pfifo_fast`, of the length
/// set here. After any other error, an unknown queue would remain at the interface.
fn unless_without_traffic_control(error: LiveError) -> Result<(), LiveError> {
    match error {
        LiveError::Io { source, .. } if source.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
        other => Err(other),
    }
}

fn open(name: &str, offload: bool) -> Result<Tun, LiveError> {
    let open =
        || OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun");
    let attach = |file: &File| sys::attach_tun(file.as_fd(), name, offload);
    let mut tries = 0;
    loop {
        let file = open().map_err(|error| refusal::tun_file(&error))?;
        match attach(&file) {
            Ok(()) => return Ok(FdDevice(OwnedFd::from(file))),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && tries < RETRIES => {
                tries += 1;
                thread::sleep(RETRY_AFTER);
            }
            Err(error) => return Err(refusal::tun_interface(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_may_stay_only_where_there_is_no_traffic_control() {
        let answered = |errno| {
            unless_without_traffic_control(LiveError::io("remove the queue of", "it")(
                io::Error::from_raw_os_error(errno),
            ))
        };
        assert!(answered(libc::EOPNOTSUPP).is_ok());
        for errno in [libc::ENOENT, libc::EPERM, libc::EINVAL, libc::EBUSY] {
            let refusal = answered(errno).unwrap_err().to_string();
            assert!(refusal.starts_with("cannot remove the queue of it: "), "{refusal}");
        }
    }
}
