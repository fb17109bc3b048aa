//! Hosts, and their addresses and ports, from which a packet's class, sending end and connection can be
//! computed.
//!
//! The servers of a class have one address and one port. Its clients have as many addresses as their
//! connections need, each with all ports from [`FIRST_CLIENT_PORT`] upwards. A *client port* is one address
//! together with one of its ports; the client ports of a class are numbered consecutively: first all ports of
//! its first client address, then all ports of the second, and so on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use aqmlab_network::End;
use aqmlab_scenario::{ClassPlan, IpVersion};

/// The host of one traffic class at one end of its path, where its frames enter the network and leave it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId {
    /// The class: an index into the plan's classes.
    pub class: usize,
    /// The end of the class's path where the host sits.
    pub side: End,
}

impl HostId {
    /// Returns the host's number among all hosts, of which each class has two.
    pub const fn number(self) -> usize {
        2 * self.class + self.side as usize
    }

    /// Returns the host with this number.
    pub const fn of_number(number: usize) -> Self {
        HostId { class: number / 2, side: if number.is_multiple_of(2) { End::Client } else { End::Server } }
    }

    /// Returns the host at the other end of the class's path.
    pub const fn opposite(self) -> Self {
        HostId { class: self.class, side: self.side.other() }
    }
}

/// The lowest port used at each client address.
pub const FIRST_CLIENT_PORT: u16 = 1024;
/// The port on which servers listen if the plan specifies none.
pub const SERVER_PORT: u16 = ClassPlan::PORT;

/// Number of client ports per address.
const PER_ADDRESS: u32 = (u16::MAX - FIRST_CLIENT_PORT) as u32 + 1;
/// Maximum number of client addresses in a class.
const MOST_CLIENTS: u32 = 254;
/// Maximum number of client ports of a class.
pub const MOST_CLIENT_PORTS: u32 = MOST_CLIENTS * PER_ADDRESS;

/// Addresses of hosts, from ranges reserved for benchmarking.
#[derive(Clone, Copy, Debug)]
pub struct Addresses(pub IpVersion);

impl Addresses {
    /// Maximum number of classes, limited by the address ranges.
    pub const MOST_CLASSES: usize = 256;

    /// Returns the first address of a host: `198.18.c.1` and `198.19.c.1` for class c (RFC 2544, C.2.2, and
    /// RFC 6890), or `2001:2:0:c::1` and `2001:2:1:c::1` (RFC 5180).
    ///
    /// # Panics
    /// If the host's class is not below [`Addresses::MOST_CLASSES`].
    pub fn of(self, host: HostId) -> IpAddr {
        self.nth(host, 0)
    }

    fn nth(self, host: HostId, number: u8) -> IpAddr {
        let class = u8::try_from(host.class).expect("a checked plan has at most 256 classes");
        let side = match host.side {
            End::Client => 0,
            End::Server => 1,
        };
        match self.0 {
            IpVersion::V4 => Ipv4Addr::new(198, 18 + side, class, number + 1).into(),
            IpVersion::V6 => {
                Ipv6Addr::new(0x2001, 2, side.into(), class.into(), 0, 0, 0, u16::from(number) + 1).into()
            }
        }
    }

    /// Returns the prefix of all addresses of a host, and its length.
    pub fn prefix(self, host: HostId) -> (IpAddr, u8) {
        match self.of(host) {
            IpAddr::V4(first) => {
                let [a, b, c, _] = first.octets();
                (Ipv4Addr::new(a, b, c, 0).into(), 24)
            }
            IpAddr::V6(first) => {
                let [a, b, c, d, ..] = first.segments();
                (Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into(), 64)
            }
        }
    }

    /// Returns all addresses of a host whose class has `client_ports` client ports.
    pub fn all(self, host: HostId, client_ports: u32) -> impl Iterator<Item = IpAddr> {
        let count = match host.side {
            End::Client => client_ports.div_ceil(PER_ADDRESS).clamp(1, MOST_CLIENTS),
            End::Server => 1,
        };
        (0..count).map(move |number| self.nth(host, number as u8))
    }

    /// Returns the address of the server of `class` that listens on `port`.
    pub fn server(self, class: usize, port: u16) -> SocketAddr {
        SocketAddr::new(self.of(HostId { class, side: End::Server }), port)
    }

    /// Returns the address and port of client port `number` of a class.
    ///
    /// # Panics
    /// If `number` is not below [`MOST_CLIENT_PORTS`].
    pub fn client(self, class: usize, number: u32) -> SocketAddr {
        assert!(number < MOST_CLIENT_PORTS, "client port {number} is not below {MOST_CLIENT_PORTS}");
        let address = self.nth(HostId { class, side: End::Client }, (number / PER_ADDRESS) as u8);
        SocketAddr::new(address, FIRST_CLIENT_PORT + (number % PER_ADDRESS) as u16)
    }
}

/// Returns the number of the client port with this address and port; `None` if no client has them.
pub fn client_port(address: IpAddr, port: u16) -> Option<u32> {
    let last = match address {
        IpAddr::V4(address) => u16::from(address.octets()[3]),
        IpAddr::V6(address) => address.segments()[7],
    };
    let client = u32::from(last).checked_sub(1).filter(|&client| client < MOST_CLIENTS)?;
    Some(client * PER_ADDRESS + u32::from(port.checked_sub(FIRST_CLIENT_PORT)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_hosts() {
        for number in 0..10 {
            let entry = HostId::of_number(number);
            assert_eq!(entry.number(), number);
            assert_eq!(entry.opposite().number(), number ^ 1);
        }
    }

    #[test]
    fn every_client_port_is_an_address_and_a_port_and_back() {
        for version in [IpVersion::V4, IpVersion::V6] {
            let numbers = [0, 1, 5001 - 1024, 64_511, 64_512, 200_000, MOST_CLIENT_PORTS - 1];
            for number in numbers {
                let at = Addresses(version).client(3, number);
                assert_eq!(client_port(at.ip(), at.port()), Some(number), "{at}");
            }
        }
        let at = |number| Addresses(IpVersion::V4).client(3, number).to_string();
        assert_eq!((at(0), at(64_511)), ("198.18.3.1:1024".into(), "198.18.3.1:65535".into()));
        assert_eq!(at(64_512), "198.18.3.2:1024");
        assert_eq!(at(MOST_CLIENT_PORTS - 1), "198.18.3.254:65535");
        assert_eq!(client_port([198, 18, 3, 0].into(), 1024), None);
        assert_eq!(client_port([198, 18, 3, 255].into(), 1024), None);
        assert_eq!(client_port([198, 18, 3, 1].into(), 1023), None);
    }

    #[test]
    fn hosts_have_addresses_of_their_own() {
        let host = |class, side, version| Addresses(version).of(HostId { class, side }).to_string();
        assert_eq!(host(0, End::Client, IpVersion::V4), "198.18.0.1");
        assert_eq!(host(255, End::Server, IpVersion::V4), "198.19.255.1");
        assert_eq!(host(0, End::Client, IpVersion::V6), "2001:2::1");
        assert_eq!(host(16, End::Server, IpVersion::V6), "2001:2:1:10::1");
        let of = HostId { class: 16, side: End::Client };
        assert_eq!(Addresses(IpVersion::V4).prefix(of), ([198, 18, 16, 0].into(), 24));
        let network = "2001:2:0:10::".parse().expect("an address");
        assert_eq!(Addresses(IpVersion::V6).prefix(of), (network, 64));
    }

    #[test]
    fn clients_have_as_many_addresses_as_their_ports_need() {
        let all = |side, ports| {
            let addresses = Addresses(IpVersion::V4).all(HostId { class: 1, side }, ports);
            addresses.map(|address| address.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(all(End::Client, 64_512), ["198.18.1.1"]);
        assert_eq!(all(End::Client, 64_513), ["198.18.1.1", "198.18.1.2"]);
        assert_eq!(all(End::Client, MOST_CLIENT_PORTS).len(), 254);
        assert_eq!(all(End::Server, MOST_CLIENT_PORTS), ["198.19.1.1"]);
    }
}
