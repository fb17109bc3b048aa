//! A frame as disciplines see it. Its octets stay in the pool.

use std::net::IpAddr;

use aqmlab_qdisc::{Classed, Dscp, Ecn, Packet, Side};
use aqmlab_random::philox2x64;
use aqmlab_units::Bytes;

use super::parse::Headers;
use super::pool::Slot;
use crate::host_id::HostId;

/// A packet on its way through the router. Marks are kept here and written into its octets when it leaves.
#[derive(Debug)]
pub struct LiveFrame {
    /// Where its octets are.
    pub(crate) slot: Slot,
    len: u16,
    traffic_class: u8,
    /// The traffic class with which it came.
    came_with: u8,
    /// The number of the host that it came in by.
    origin: u16,
    /// Its place in the table of routes.
    pub(crate) place: u16,
    /// The pipe that it is in, or was in last.
    pub(crate) pipe: u32,
    /// Whose it is.
    owner: Owner,
    tuple: u64,
    hosts: [u64; 2],
}

/// Whose a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    /// The row within its class.
    pub row: u32,
    /// The flow within its class that it counts as, or the one behind the last for frames of none.
    pub flow: u32,
    /// How many connections have had the client port before.
    pub tenancy: u32,
}

const ECN_BITS: u8 = 0b11;

impl LiveFrame {
    /// A frame that came in by `origin`, at the beginning of its way.
    pub(crate) fn new(slot: Slot, headers: &Headers, origin: HostId, owner: Owner, place: u16) -> Self {
        let hosts = [headers.source, headers.destination].map(folded);
        LiveFrame {
            slot,
            len: headers.total_len,
            traffic_class: headers.traffic_class,
            came_with: headers.traffic_class,
            origin: origin.number() as u16,
            place,
            pipe: 0,
            owner,
            tuple: tuple(headers, hosts),
            hosts,
        }
    }

    /// Its length in octets.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// The host that it came in by.
    pub(crate) fn origin(&self) -> HostId {
        HostId::of_number(usize::from(self.origin))
    }

    /// It enters a pipe, and goes on behind it to the next place of its way.
    pub(crate) fn enter(&mut self, pipe: u32) {
        self.pipe = pipe;
        self.place += 1;
    }

    /// Whose it is.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Has a queue of ours marked it?
    pub(crate) fn is_marked(&self) -> bool {
        self.ecn() == Ecn::Ce && self.came_with & ECN_BITS != Ecn::Ce as u8
    }

    /// The traffic class that its octets must get, if it has changed.
    pub(crate) fn new_traffic_class(&self) -> Option<u8> {
        (self.traffic_class != self.came_with).then_some(self.traffic_class)
    }
}

/// An address as one word.
fn folded(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(u32::from(address)),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            philox2x64([(bits >> 64) as u64, bits as u64], 6)[0]
        }
    }
}

/// The 5-tuple, or the 3-tuple where there are no ports, as one word.
fn tuple(headers: &Headers, [source, destination]: [u64; 2]) -> u64 {
    let ports = headers.ports.map_or(0, |(from, to)| 1 << 32 | u64::from(from) << 16 | u64::from(to));
    let [a, b] = philox2x64([source, destination], u64::from(headers.protocol));
    philox2x64([a, b], ports)[0]
}

impl Packet for LiveFrame {
    #[inline]
    fn wire_len(&self) -> Bytes {
        Bytes::new(u64::from(self.len))
    }

    fn flow_hash(&self, salt: u64) -> u64 {
        philox2x64([self.tuple, 0], salt)[0]
    }

    fn host_hash(&self, side: Side, salt: u64) -> u64 {
        philox2x64([self.hosts[side as usize], 1], salt)[0]
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        match self.traffic_class & ECN_BITS {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    #[inline]
    fn mark_ce(&mut self) {
        self.traffic_class |= Ecn::Ce as u8;
    }

    fn dscp(&self) -> Dscp {
        Dscp(self.traffic_class >> 2)
    }

    fn set_dscp(&mut self, dscp: Dscp) {
        self.traffic_class = dscp.0 << 2 | self.traffic_class & ECN_BITS;
    }
}

impl Classed for LiveFrame {
    #[inline]
    fn class(&self) -> usize {
        self.origin().class
    }
}
