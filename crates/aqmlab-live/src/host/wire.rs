//! Interfaces of this machine in place of hosts: what arrives at one leaves through the other, by way of the network.
//!
//! The two interfaces of a class are the ports of a bridge at layer 2. IP packets cross the network and leave with the
//! Ethernet header with which they came. ARP passes at once, because a network of links has no ARP. All other
//! frames are counted and not forwarded: they would pass the queue unseen.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aqmlab_scenario::{Plan, Traffic};

use super::interface::Tun;
use crate::data_plane::Device;
use crate::error::LiveError;
use crate::frame::LinkHeader;
use crate::frame::offload::HEADER;
use crate::sys::{self, Received};

/// One of the two interfaces of a class.
#[derive(Debug)]
pub struct Wire {
    name: String,
    socket: OwnedFd,
    /// The socket of the other interface.
    other: OwnedFd,
    link: LinkHeader,
    mtu: u32,
    /// Frames of ARP that were passed on.
    passed: u64,
    /// Frames that were not forwarded.
    refused: u64,
}

/// EtherTypes (IANA, IEEE 802 Numbers).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;
const ETHERNET: usize = size_of::<LinkHeader>();
/// The offload header of a packet that needs nothing.
const PLAIN: [u8; HEADER] = [0; HEADER];

impl Wire {
    /// The largest packet that the interface carries.
    pub const fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Returns its counters, by the names that the kernel's counters of a host have.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn counters(&self) -> Result<Vec<(&'static str, u64)>, LiveError> {
        let dropped = sys::packets_dropped(self.socket.as_fd()).map_err(LiveError::io("ask", &self.name))?;
        // What found no room in the socket's buffer is lost without a trace, as in a host's interface.
        Ok(vec![
            ("dev.tx_dropped", dropped),
            ("wire.arp_passed", self.passed),
            ("wire.not_forwarded", self.refused),
        ])
    }

    /// Decides about the frame whose header has been read: its packet is for the router, or it is dealt with.
    fn is_for_router(&mut self, received: &Received, packet: &[u8]) -> bool {
        let kind = u16::from_be_bytes([self.link[12], self.link[13]]);
        match kind {
            IPV4 | IPV6 if !received.tagged => true,
            ARP if !received.tagged => {
                let sent = sys::send_parts(self.other.as_fd(), [&PLAIN, &self.link, packet]);
                *(if sent.is_ok() { &mut self.passed } else { &mut self.refused }) += 1;
                false
            }
            _ => {
                self.refused += 1;
                false
            }
        }
    }
}

impl Device for Wire {
    fn read(&mut self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            let (header, packet) = frame.split_at_mut(HEADER);
            let Some(received) = sys::receive_parts(self.socket.as_fd(), [header, &mut self.link, packet])?
            else {
                return Ok(None);
            };
            let Some(length) = received.length.checked_sub(HEADER + ETHERNET) else {
                self.refused += 1;
                continue;
            };
            let length = length.min(packet.len());
            if !self.is_for_router(&received, &packet[..length]) {
                continue;
            }
            without_link(header);
            return Ok(Some(HEADER + length));
        }
    }

    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        let link = self.link;
        self.write_to_link(&link, frame)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn link(&self) -> Option<LinkHeader> {
        Some(self.link)
    }

    fn write_to_link(&mut self, link: &LinkHeader, frame: &[u8]) -> io::Result<()> {
        sys::send_parts(self.socket.as_fd(), [&PLAIN, link, frame])
    }
}

/// Makes the offsets in an offload header count from the packet instead of from its link header.
fn without_link(header: &mut [u8]) {
    for at in [2, 6] {
        let offset = u16::from_ne_bytes([header[at], header[at + 1]]);
        header[at..at + 2].copy_from_slice(&offset.saturating_sub(ETHERNET as u16).to_ne_bytes());
    }
}

/// A host's device, or an interface in its place.
#[derive(Debug)]
pub enum Attached {
    /// The other end of a host's interface.
    Host(Tun),
    /// An interface of this machine.
    Wire(Wire),
}

impl Attached {
    /// Returns the interface in place of a host, if it is one.
    pub const fn wire(&self) -> Option<&Wire> {
        match self {
            Attached::Host(_) => None,
            Attached::Wire(wire) => Some(wire),
        }
    }
}

impl Device for Attached {
    #[inline]
    fn read(&mut self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Attached::Host(tun) => tun.read(frame),
            Attached::Wire(wire) => wire.read(frame),
        }
    }

    #[inline]
    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        match self {
            Attached::Host(tun) => tun.write(frame),
            Attached::Wire(wire) => wire.write(frame),
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Attached::Host(tun) => tun.fd(),
            Attached::Wire(wire) => wire.fd(),
        }
    }

    #[inline]
    fn link(&self) -> Option<LinkHeader> {
        self.wire().and_then(Wire::link)
    }

    #[inline]
    fn write_to_link(&mut self, link: &LinkHeader, frame: &[u8]) -> io::Result<()> {
        match self {
            Attached::Host(tun) => tun.write(frame),
            Attached::Wire(wire) => wire.write_to_link(link, frame),
        }
    }
}

/// The interfaces of each class, if it has any.
pub type Wires = Vec<Option<[Wire; 2]>>;

/// Opens the interfaces of all classes, in the namespace of the process. Nothing is changed but that the interfaces
/// are promiscuous until the process ends.
///
/// # Errors
/// If an interface does not exist, is not suitable, or the process lacks the permission.
pub fn open_wires(plan: &Plan) -> Result<Wires, LiveError> {
    let mut known = BTreeSet::new();
    let mut wires = Vec::new();
    for class in &plan.classes {
        let Traffic::Program(program) = &class.traffic else {
            wires.push(None);
            continue;
        };
        let Some([left, right]) = &program.interfaces else {
            wires.push(None);
            continue;
        };
        for name in [left, right] {
            if !known.insert(name.clone()) {
                return Err(LiveError::Unsupported(format!("it has the interface `{name}` twice")));
            }
        }
        if plan.live.offload {
            return Err(LiveError::Unsupported(format!(
                "`{left}` and `{right}` are interfaces of this machine, which get packets one by one; leave out \
                 `live.offload`"
            )));
        }
        let (left, right) = (open(left)?, open(right)?);
        if left.1 != right.1 {
            return Err(refused(
                &left.0,
                &format!("has an MTU of {}, but `{}` one of {}", left.1, right.0, right.1),
                &format!("ip link set {} mtu {}", left.0, right.1),
            ));
        }
        let copy = |socket: &OwnedFd| socket.try_clone().map_err(LiveError::io("open", "a packet socket"));
        let others = [copy(&right.2)?, copy(&left.2)?];
        let [to_right, to_left] = others;
        let wire = |(name, mtu, socket), other| Wire {
            name,
            socket,
            other,
            link: LinkHeader::default(),
            mtu,
            passed: 0,
            refused: 0,
        };
        wires.push(Some([wire(left, to_right), wire(right, to_left)]));
    }
    Ok(wires)
}

/// Opens an interface, and checks that a bridge may use it.
fn open(name: &str) -> Result<(String, u32, OwnedFd), LiveError> {
    let facts = sys::interface_facts(name).map_err(|error| match error.raw_os_error() {
        Some(libc::ENODEV | libc::ENXIO) => LiveError::Machine {
            what: format!("there is no interface `{name}`"),
            remedy: "`ip link` lists the interfaces".into(),
        },
        _ => LiveError::io("look at", name)(error),
    })?;
    if !facts.is_ethernet {
        return Err(refused(name, "is not an Ethernet interface", "ip link"));
    }
    if !facts.is_up {
        return Err(refused(name, "is down", &format!("ip link set {name} up")));
    }
    if facts.has_address {
        return Err(refused(
            name,
            "has an IPv4 address, so this machine would answer in place of what lies behind it",
            &format!("ip address flush dev {name}"),
        ));
    }
    if fs::exists(format!("/sys/class/net/{name}/master")).unwrap_or(false) {
        return Err(refused(
            name,
            "belongs to a bridge or bond of the kernel, which also forwards its frames",
            &format!("ip link set {name} nomaster"),
        ));
    }
    let merging = sys::merges(name).map_err(LiveError::io("look at", name))?;
    if !merging.is_empty() {
        let switches: Vec<String> = merging.iter().map(|what| format!("{what} off")).collect();
        return Err(refused(
            name,
            "joins packets before they can be read",
            &format!("ethtool -K {name} {}", switches.join(" ")),
        ));
    }
    let socket = sys::packet_socket(facts.index).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => LiveError::Machine {
            what: format!("reading from `{name}` needs root (CAP_NET_RAW)"),
            remedy: "run the command as root".into(),
        },
        _ => LiveError::io("open", name)(error),
    })?;
    Ok((name.to_owned(), facts.mtu, socket))
}

fn refused(name: &str, why: &str, command: &str) -> LiveError {
    LiveError::Machine { what: format!("`{name}` {why}"), remedy: format!("`{command}`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_from_the_packet() {
        // NEEDS_CSUM, no segmentation; headers of 54 octets, checksum at 16 from 34.
        let mut header = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        header[2..4].copy_from_slice(&54u16.to_ne_bytes());
        header[6..8].copy_from_slice(&34u16.to_ne_bytes());
        header[8..10].copy_from_slice(&16u16.to_ne_bytes());
        without_link(&mut header);
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        assert_eq!([word(2), word(6), word(8)], [40, 20, 16]);
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let refusal = open("no-such-port").unwrap_err().to_string();
        assert!(refusal.contains("no-such-port"), "{refusal}");
        let refusal = open("lo").unwrap_err().to_string();
        assert!(refusal.contains("not an Ethernet interface"), "{refusal}");
    }
}
