//! Packets as the simulator moves them: small, fields instead of header bytes.

use aqmlab_qdisc::{Classed, Dscp, Ecn, Packet, Side, Stamped};
use aqmlab_random::philox2x64;
use aqmlab_transport::Segment;
use aqmlab_units::Bytes;

use crate::event::FlowRef;

/// Which way a packet travels on its flow's path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Toward {
    /// From the sender to the receiver.
    Receiver,
    /// Back.
    Sender,
}

/// What a packet carries.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Payload {
    /// A TCP segment.
    Tcp(Segment),
    /// A datagram.
    Udp,
}

/// One packet on its way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SimPacket {
    /// The flow's slot and generation.
    pub flow: FlowRef,
    /// The flow's number in the run, stable over slot reuse: what hashes and event order go by.
    pub number: u32,
    /// Length at the network layer.
    pub wire_len: u32,
    /// The class's index.
    pub class: u16,
    /// Which place on the path it has reached.
    pub hop: u8,
    /// Which way it travels.
    pub toward: Toward,
    /// ECN field.
    pub ecn: Ecn,
    /// Code point.
    pub dscp: Dscp,
    /// Contents.
    pub payload: Payload,
}

impl Packet for SimPacket {
    fn wire_len(&self) -> Bytes {
        Bytes::new(u64::from(self.wire_len))
    }

    fn flow_hash(&self, salt: u64) -> u64 {
        let direction = u64::from(self.toward == Toward::Sender);
        philox2x64([u64::from(self.number) << 1 | direction, 0], salt)[0]
    }

    fn host_hash(&self, side: Side, salt: u64) -> u64 {
        // Every flow has its own pair of hosts: the host's number is the flow's, and its end.
        let is_sender_host = (side == Side::Source) == (self.toward == Toward::Receiver);
        philox2x64([u64::from(self.number) << 1 | u64::from(is_sender_host), 1], salt)[0]
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }

    fn dscp(&self) -> Dscp {
        self.dscp
    }

    fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp;
    }
}

impl Classed for SimPacket {
    fn class(&self) -> usize {
        usize::from(self.class)
    }
}

/// A packet as a port's discipline sees it.
pub type PortPacket = Stamped<SimPacket>;

/// Packets in flight between two places, addressed by small numbers; freed places are used again.
#[derive(Default)]
pub struct Slab {
    places: Vec<Option<SimPacket>>,
    free: Vec<u32>,
}

impl Slab {
    /// Puts a packet in; its place.
    pub fn put(&mut self, packet: SimPacket) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(packet);
            return place;
        }
        self.places.push(Some(packet));
        (self.places.len() - 1) as u32
    }

    /// Takes a packet out.
    ///
    /// # Panics
    /// If the place is empty: every event owns its packet.
    pub fn take(&mut self, place: u32) -> SimPacket {
        self.free.push(place);
        self.places[place as usize].take().expect("an arrival event owns the packet it names")
    }

    /// Places that there are, taken or not.
    pub fn capacity(&self) -> usize {
        self.places.capacity()
    }

    /// The packets that are in.
    pub fn iter(&self) -> impl Iterator<Item = &SimPacket> {
        self.places.iter().flatten()
    }
}
