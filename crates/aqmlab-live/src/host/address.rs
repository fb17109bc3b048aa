//! Addresses and ports: of which class, end and flow a packet is, is arithmetic on it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use aqmlab_network::End;
use aqmlab_scenario::IpVersion;

use crate::host_id::HostId;
use crate::router::{FIRST_CLIENT_PORT, SERVER_PORT};

/// The port at its client of flow `index` of a class; `None` if there are not so many.
pub fn client_port(index: u32) -> Option<u16> {
    u16::try_from(index).ok()?.checked_add(FIRST_CLIENT_PORT)
}

/// The index of the flow with this port at its client.
pub fn flow_of_port(port: u16) -> Option<u32> {
    port.checked_sub(FIRST_CLIENT_PORT).map(u32::from)
}

/// Addresses of hosts, from ranges that are set aside for benchmarks.
#[derive(Clone, Copy, Debug)]
pub struct Addresses(pub IpVersion);

impl Addresses {
    /// Classes that have addresses.
    pub const MOST_CLASSES: usize = 256;

    /// The address of a host: `198.18.c.1` and `198.19.c.1` for class c (RFC 2544, C.2.2, and RFC 6890), or `2001:2:0:c::1` and
    /// `2001:2:1:c::1` (RFC 5180).
    ///
    /// # Panics
    /// If there are more than [`Addresses::MOST_CLASSES`] classes.
    pub fn of(self, host: HostId) -> IpAddr {
        let class = u8::try_from(host.class).expect("the plan has been checked to have no more classes");
        let side = match host.side {
            End::Client => 0,
            End::Server => 1,
        };
        match self.0 {
            IpVersion::V4 => Ipv4Addr::new(198, 18 + side, class, 1).into(),
            IpVersion::V6 => Ipv6Addr::new(0x2001, 2, side.into(), class.into(), 0, 0, 0, 1).into(),
        }
    }

    /// Where the server of a class is reached.
    pub fn server(self, class: usize) -> SocketAddr {
        SocketAddr::new(self.of(HostId { class, side: End::Server }), SERVER_PORT)
    }

    /// Where flow `index` of a class comes from; `None` if the class has no port for it.
    pub fn client(self, class: usize, index: u32) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.of(HostId { class, side: End::Client }), client_port(index)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flow_has_its_port() {
        for index in [0, 1, 5001 - 1024, 64_511] {
            assert_eq!(client_port(index).and_then(flow_of_port), Some(index));
        }
        assert_eq!((client_port(64_511), client_port(64_512)), (Some(65_535), None));
        assert_eq!((client_port(70_000), flow_of_port(1023)), (None, None));
    }

    #[test]
    fn hosts_have_addresses_of_their_own() {
        let host = |class, side, version| Addresses(version).of(HostId { class, side }).to_string();
        assert_eq!(host(0, End::Client, IpVersion::V4), "198.18.0.1");
        assert_eq!(host(255, End::Server, IpVersion::V4), "198.19.255.1");
        assert_eq!(host(0, End::Client, IpVersion::V6), "2001:2::1");
        assert_eq!(host(16, End::Server, IpVersion::V6), "2001:2:1:10::1");
    }
}
