//! Routing netlink (rtnetlink(7)): the few requests that set up a host, and their encoding in bytes. A
//! message has a header, a fixed part and attributes, all in native byte order and padded to multiples of
//! four.

use std::io;
use std::net::IpAddr;

use aqmlab_scenario::IpVersion;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

/// A routing netlink socket in one network namespace.
#[derive(Debug)]
pub struct Netlink {
    socket: rustix::fd::OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Opens a netlink socket in the namespace of the calling thread.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn open() -> io::Result<Self> {
        // Protocol 0 of netlink is routing.
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        rustix::net::bind(&socket, &netlink::SocketAddrNetlink::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Returns the index of the interface `name`.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn index_of(&self, name: &str) -> io::Result<u32> {
        // Any socket will do for this request.
        Ok(rustix::net::netdevice::name_to_index(&self.socket, name)?)
    }

    /// Requests a change and waits for the answer.
    ///
    /// # Errors
    /// The kernel's error.
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

impl Netlink {
    /// Returns the number of packets that wait in the queue discipline attached to a class of an
    /// interface, and the number that the discipline has dropped.
    ///
    /// # Errors
    /// The kernel's error, or `InvalidData` if the answer does not contain these counts.
    pub fn queue_counts(&mut self, index: u32, class: u32) -> io::Result<(u32, u32)> {
        self.sequence += 1;
        let request = Request::queue_of(index, class);
        rustix::net::send(&self.socket, &request.bytes(self.sequence), SendFlags::empty())?;
        let mut answer = [0; 4096];
        let (length, _) = rustix::net::recv(&self.socket, &mut answer[..], RecvFlags::empty())?;
        if let Some(Err(error)) = answer_to(&answer[..length], self.sequence) {
            return Err(error);
        }
        counts_of(&answer[..length]).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// Reads the counts in the kernel's description of a discipline: `TCA_STATS_QUEUE` within
/// `TCA_STATS2` is a struct gnet_stats_queue, which begins with the number of waiting packets,
/// their bytes, and the number of dropped packets.
fn counts_of(answer: &[u8]) -> Option<(u32, u32)> {
    const TCA_STATS2: u16 = 7;
    const TCA_STATS_QUEUE: u16 = 3;
    /// struct tcmsg
    const FIXED: usize = 20;
    let length = u32::from_ne_bytes(answer.get(..4)?.try_into().ok()?) as usize;
    let attributes = answer.get(HEADER + FIXED..length)?;
    let queue = attribute(attribute(attributes, TCA_STATS2)?, TCA_STATS_QUEUE)?;
    let word = |at: usize| Some(u32::from_ne_bytes(queue.get(at..at + 4)?.try_into().ok()?));
    Some((word(0)?, word(8)?))
}

/// Returns the value of the first attribute of this kind. In a message, the upper two bits of the
/// kind are flags.
fn attribute(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(attributes.get(..2)?.try_into().ok()?));
        let found = u16::from_ne_bytes(attributes.get(2..4)?.try_into().ok()?) & 0x3fff;
        let value = attributes.get(4..length)?;
        if found == kind {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

/// A request to the kernel.
#[derive(Clone, Debug)]
pub struct Request {
    kind: u16,
    flags: u16,
    body: Vec<u8>,
}

/// Settings of an interface; `None` leaves a value unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    /// Size of the largest packet, in bytes.
    pub mtu: Option<u32>,
    /// Number of packets that may wait for the reader of the device.
    pub queue: Option<u32>,
    /// Number of segments that TCP may pass on as one super-segment.
    pub gso_segments: Option<u32>,
}

/// Attributes of a route, which Linux calls metrics; `None` means the kernel's default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Metrics {
    /// Initial congestion window, in segments.
    pub initial_window: Option<u32>,
    /// Initial receive window, in segments.
    pub initial_receive_window: Option<u32>,
    /// Largest receive window, in bytes.
    pub receive_window: Option<u32>,
    /// Minimum retransmission timeout, in milliseconds. The request locks this metric, because the
    /// kernel would otherwise ignore it.
    pub min_rto_ms: Option<u32>,
    /// Whether each segment is acknowledged immediately.
    pub quick_ack: bool,
}

// linux/rtnetlink.h
const RTAX_LOCK: u16 = 1;
const RTAX_WINDOW: u16 = 3;
const RTAX_INITCWND: u16 = 11;
const RTAX_RTO_MIN: u16 = 13;
const RTAX_INITRWND: u16 = 14;
const RTAX_QUICKACK: u16 = 15;
// linux/if_link.h
const IFLA_GSO_MAX_SEGS: u16 = 40;
// linux/pkt_sched.h
const TC_H_ROOT: u32 = 0xffff_ffff;

const HEADER: usize = 16;

impl Request {
    fn new(kind: u16, flags: i32) -> Self {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        Request { kind, flags, body: Vec::new() }
    }

    /// Returns a request to configure an interface and bring it up.
    pub fn set_link(index: u32, link: &Link) -> Self {
        let mut request = Request::new(libc::RTM_NEWLINK, 0);
        let up = libc::IFF_UP as u32;
        // struct ifinfomsg: family, type, index, flags, mask of the flags that change
        request.fixed(&[0; 4]);
        for word in [index, up, up] {
            request.fixed(&word.to_ne_bytes());
        }
        request.number(libc::IFLA_MTU, link.mtu);
        request.number(libc::IFLA_TXQLEN, link.queue);
        request.number(IFLA_GSO_MAX_SEGS, link.gso_segments);
        request
    }

    /// Returns a request to remove the queue discipline of an interface, so that packets go straight to the
    /// device.
    pub fn no_queue(index: u32) -> Self {
        let mut request = Request::new(libc::RTM_NEWQDISC, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
        // struct tcmsg: family, index, handle, parent, info
        for word in [0, index, 0, TC_H_ROOT, 0] {
            request.fixed(&word.to_ne_bytes());
        }
        request.attribute(libc::TCA_KIND, b"noqueue\0");
        request
    }

    /// Returns a request for the description of a class's queue discipline and for its counts; the
    /// answer is one message.
    pub fn queue_of(index: u32, class: u32) -> Self {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ECHO) as u16;
        let mut request = Request { kind: libc::RTM_GETQDISC, flags, body: Vec::new() };
        // struct tcmsg: family, index, handle, parent, info
        for word in [0, index, 0, class, 0] {
            request.fixed(&word.to_ne_bytes());
        }
        request
    }

    /// Returns a request to give an interface an address with a full-length prefix (/32 or /128).
    pub fn add_address(index: u32, address: IpAddr) -> Self {
        let mut request = Request::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        let octets = octets(address);
        // struct ifaddrmsg: family, prefix length, flags, scope, index. No other host can have the address,
        // so duplicate address detection is switched off (NODAD).
        let flags = if address.is_ipv6() { libc::IFA_F_NODAD as u8 } else { 0 };
        request.fixed(&[family(address), (octets.len() * 8) as u8, flags, libc::RT_SCOPE_UNIVERSE]);
        request.fixed(&index.to_ne_bytes());
        request.attribute(libc::IFA_LOCAL, &octets);
        request.attribute(libc::IFA_ADDRESS, &octets);
        request
    }

    /// Returns a request to route all packets through an interface.
    pub fn add_default_route(index: u32, version: IpVersion, metrics: &Metrics) -> Self {
        Request::route(index, version, None, [libc::RT_TABLE_MAIN, libc::RTN_UNICAST], metrics)
    }

    /// Returns a request to treat all addresses as the namespace's own, except those for which there is a longer
    /// prefix in the same table, see [`Request::add_exception`]. `index` is that of the loopback interface.
    pub fn own_all_addresses(index: u32, version: IpVersion) -> Self {
        Request::route(index, version, None, [libc::RT_TABLE_LOCAL, libc::RTN_LOCAL], &Metrics::default())
    }

    /// Returns a request to route this prefix through an interface before anything is treated as the namespace's own.
    pub fn add_exception(index: u32, prefix: (IpAddr, u8), metrics: &Metrics) -> Self {
        let version = if prefix.0.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        Request::route(index, version, Some(prefix), [libc::RT_TABLE_LOCAL, libc::RTN_UNICAST], metrics)
    }

    fn route(
        index: u32,
        version: IpVersion,
        prefix: Option<(IpAddr, u8)>,
        [table, kind]: [u8; 2],
        metrics: &Metrics,
    ) -> Self {
        let mut request = Request::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        let (family, scope) = match version {
            IpVersion::V4 if kind == libc::RTN_LOCAL => (libc::AF_INET, libc::RT_SCOPE_HOST),
            IpVersion::V4 => (libc::AF_INET, libc::RT_SCOPE_LINK),
            IpVersion::V6 => (libc::AF_INET6, libc::RT_SCOPE_UNIVERSE),
        };
        // struct rtmsg: family, lengths of destination and source, TOS, table, protocol, scope, type, flags
        request.fixed(&[family as u8, prefix.map_or(0, |(_, length)| length), 0, 0, table]);
        request.fixed(&[libc::RTPROT_STATIC, scope, kind]);
        request.fixed(&[0; 4]);
        if let Some((address, _)) = prefix {
            request.attribute(libc::RTA_DST, &octets(address));
        }
        request.attribute(libc::RTA_OIF, &index.to_ne_bytes());
        let metrics = metrics.attributes();
        if !metrics.is_empty() {
            request.attribute(libc::RTA_METRICS, &metrics);
        }
        request
    }

    /// Returns the whole message.
    pub fn bytes(&self, sequence: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.body.len());
        bytes.extend(((HEADER + self.body.len()) as u32).to_ne_bytes());
        bytes.extend(self.kind.to_ne_bytes());
        bytes.extend(self.flags.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        // Port 0 means the kernel; the sender is this socket, whatever its port.
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend(&self.body);
        bytes
    }

    fn fixed(&mut self, bytes: &[u8]) {
        self.body.extend(bytes);
    }

    fn number(&mut self, kind: u16, value: Option<u32>) {
        if let Some(value) = value {
            self.attribute(kind, &value.to_ne_bytes());
        }
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        put_attribute(&mut self.body, kind, value);
    }
}

impl Metrics {
    fn attributes(&self) -> Vec<u8> {
        let values = [
            (RTAX_LOCK, self.min_rto_ms.map(|_| 1 << RTAX_RTO_MIN)),
            (RTAX_WINDOW, self.receive_window),
            (RTAX_INITCWND, self.initial_window),
            (RTAX_RTO_MIN, self.min_rto_ms),
            (RTAX_INITRWND, self.initial_receive_window),
            (RTAX_QUICKACK, self.quick_ack.then_some(1)),
        ];
        let mut bytes = Vec::new();
        for (kind, value) in values {
            if let Some(value) = value {
                put_attribute(&mut bytes, kind, &u32::to_ne_bytes(value));
            }
        }
        bytes
    }
}

/// Appends an attribute: length and kind, the value, and zeros up to the next multiple of four.
fn put_attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = 4 + value.len();
    bytes.extend((length as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len() + length.next_multiple_of(4) - length, 0);
}

fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Returns the kernel's answer to the request with this sequence number; `None` if these bytes belong to
/// another message.
pub fn answer_to(bytes: &[u8], sequence: u32) -> Option<io::Result<()>> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    if i32::from(kind) != libc::NLMSG_ERROR || word(8)? != sequence {
        return None;
    }
    // struct nlmsgerr begins with zero or with a negative error number.
    Some(match word(HEADER)?.cast_signed() {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
    use netlink_packet_route::RouteNetlinkMessage;
    use netlink_packet_route::address::AddressAttribute;
    use netlink_packet_route::link::{LinkAttribute, LinkFlags};
    use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMetric, RouteScope, RouteType};
    use netlink_packet_route::tc::TcAttribute;

    /// Reads a request independently of the code that wrote it.
    fn read(request: &Request) -> RouteNetlinkMessage {
        let bytes = request.bytes(7);
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes).expect("a whole message");
        assert_eq!((message.header.length as usize, message.header.sequence_number), (bytes.len(), 7));
        let asked = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        assert_eq!(message.header.flags & asked, asked);
        match message.payload {
            NetlinkPayload::InnerMessage(message) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn counts_are_found_within_other_attributes() {
        let mut queue = Vec::new();
        for word in [7u32, 10_500, 3, 0, 99] {
            queue.extend(word.to_ne_bytes());
        }
        let mut stats = Vec::new();
        put_attribute(&mut stats, 1, &[1; 16]);
        put_attribute(&mut stats, 3, &queue);
        let mut request = Request::queue_of(5, 0x1_0001);
        request.attribute(libc::TCA_KIND, b"red\0");
        request.attribute(7, &stats);
        let bytes = request.bytes(1);
        assert_eq!(counts_of(&bytes), Some((7, 3)));
        // A truncated message is never accepted, wherever it is cut.
        for length in 0..bytes.len() {
            assert_eq!(counts_of(&bytes[..length]), None);
        }
        assert_eq!(attribute(&[0; 8], 1), None, "an attribute without length");
    }

    #[test]
    fn an_interface_is_set_and_switched_on() {
        let link = Link { mtu: Some(1500), queue: Some(20_000), gso_segments: Some(1) };
        let RouteNetlinkMessage::NewLink(message) = read(&Request::set_link(3, &link)) else { panic!() };
        assert_eq!((message.header.index, message.header.flags), (3, LinkFlags::Up));
        assert_eq!(message.header.change_mask, LinkFlags::Up);
        assert_eq!(
            message.attributes,
            [LinkAttribute::Mtu(1500), LinkAttribute::TxQueueLen(20_000), LinkAttribute::GsoMaxSegs(1)]
        );
    }

    #[test]
    fn its_queue_is_taken_away() {
        let request = read(&Request::no_queue(3));
        let RouteNetlinkMessage::NewQueueDiscipline(message) = request else { panic!() };
        assert_eq!((message.header.index, u32::from(message.header.parent)), (3, 0xffff_ffff));
        assert_eq!(message.attributes, [TcAttribute::Kind("noqueue".into())]);
    }

    #[test]
    fn an_address_stands_alone_in_its_network() {
        for (text, prefix, flags) in [("198.18.0.1", 32, 0), ("2001:2::1", 128, 2)] {
            let address: IpAddr = text.parse().unwrap();
            let request = read(&Request::add_address(5, address));
            let RouteNetlinkMessage::NewAddress(message) = request else { panic!() };
            assert_eq!((message.header.index, message.header.prefix_len), (5, prefix));
            assert_eq!(message.header.flags.bits(), flags);
            let expected = [AddressAttribute::Local(address), AddressAttribute::Address(address)];
            assert_eq!(message.attributes, expected);
        }
    }

    #[test]
    fn a_route_has_its_metrics_and_locks_those_that_need_it() {
        let metrics = Metrics {
            initial_window: Some(10),
            initial_receive_window: Some(20),
            receive_window: Some(16_384),
            min_rto_ms: Some(200),
            quick_ack: true,
        };
        let request = read(&Request::add_default_route(9, IpVersion::V4, &metrics));
        let RouteNetlinkMessage::NewRoute(message) = request else { panic!() };
        assert_eq!((message.header.destination_prefix_length, message.header.scope), (0, RouteScope::Link));
        let expected = [
            RouteMetric::Lock(1 << RTAX_RTO_MIN),
            RouteMetric::Window(16_384),
            RouteMetric::InitCwnd(10),
            RouteMetric::RtoMin(200),
            RouteMetric::InitRwnd(20),
            RouteMetric::QuickAck(1),
        ];
        assert_eq!(message.attributes, [RouteAttribute::Oif(9), RouteAttribute::Metrics(expected.into())]);
        let plain = read(&Request::add_default_route(9, IpVersion::V6, &Metrics::default()));
        let RouteNetlinkMessage::NewRoute(message) = plain else { panic!() };
        assert_eq!(message.attributes, [RouteAttribute::Oif(9)]);
    }

    #[test]
    fn all_addresses_but_those_of_a_prefix_are_the_namespaces_own() {
        let RouteNetlinkMessage::NewRoute(all) = read(&Request::own_all_addresses(1, IpVersion::V4)) else {
            panic!()
        };
        assert_eq!((all.header.table, all.header.kind), (libc::RT_TABLE_LOCAL, RouteType::Local));
        assert_eq!((all.header.destination_prefix_length, all.header.scope), (0, RouteScope::Host));
        let prefix = ([198, 18, 3, 0].into(), 24);
        let request = read(&Request::add_exception(9, prefix, &Metrics::default()));
        let RouteNetlinkMessage::NewRoute(but) = request else { panic!() };
        assert_eq!((but.header.table, but.header.kind), (libc::RT_TABLE_LOCAL, RouteType::Unicast));
        assert_eq!((but.header.destination_prefix_length, but.header.scope), (24, RouteScope::Link));
        let network = RouteAddress::Inet([198, 18, 3, 0].into());
        assert_eq!(but.attributes, [RouteAttribute::Destination(network), RouteAttribute::Oif(9)]);
    }

    #[test]
    fn attributes_are_padded_to_words() {
        let mut bytes = Vec::new();
        put_attribute(&mut bytes, 1, b"noqueue\0");
        put_attribute(&mut bytes, 2, b"x");
        assert_eq!(bytes.len(), 12 + 8);
        assert_eq!(bytes[12..14], 5u16.to_ne_bytes());
    }

    #[test]
    fn answers_are_told_from_each_other() {
        let answer = |kind: u16, sequence: u32, error: i32| {
            let mut bytes = 36u32.to_ne_bytes().to_vec();
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0; 2]);
            bytes.extend(sequence.to_ne_bytes());
            bytes.extend([0; 4]);
            bytes.extend(error.to_ne_bytes());
            bytes.extend([0; 16]);
            bytes
        };
        assert!(matches!(answer_to(&answer(2, 5, 0), 5), Some(Ok(()))));
        assert!(answer_to(&answer(2, 4, 0), 5).is_none(), "the answer to another request");
        assert!(answer_to(&answer(16, 5, 0), 5).is_none(), "no answer");
        let refused = answer_to(&answer(2, 5, -libc::EINVAL), 5).unwrap().unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
        for length in 0..20 {
            assert!(answer_to(&answer(2, 5, 0)[..length], 5).is_none(), "cut off at {length}");
        }
    }
}
