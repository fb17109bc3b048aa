//! Packets as the simulator moves them: 32 bytes, fields instead of header bytes.

use aqmlab_qdisc::{Classed, Dscp, Ecn, Packet, Side, Stamped};
use aqmlab_random::philox2x64;
use aqmlab_transport::{Flags, Segment};
use aqmlab_units::Bytes;

/// Which way a packet travels on its flow's path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Toward {
    /// From the sender to the receiver.
    Receiver = 0,
    /// Back.
    Sender = 1,
}

/// The flow that a packet belongs to, as packets carry it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowId {
    /// Its slot. A flow keeps its slot until its last packet has left the network.
    pub slot: u32,
    /// Its number in the run, stable over slot reuse: what hashes and event order go by.
    pub number: u32,
    /// Its class's index.
    pub class: u16,
}

/// One packet on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimPacket {
    slot: u32,
    number: u32,
    wire_len: u32,
    seq: u32,
    ack: u32,
    window: u32,
    payload_len: u16,
    class: u16,
    flags: Flags,
    /// Links that it has passed, access links included.
    hops: u8,
    dscp: u8,
    /// ECN field in the two low bits, direction in the third.
    bits: u8,
}

const _: () = assert!(size_of::<SimPacket>() == 32, "a packet is half a cache line");

const TOWARD_SENDER: u8 = 4;

impl SimPacket {
    /// A TCP segment under a header of `header` bytes.
    #[inline]
    pub fn tcp(flow: FlowId, toward: Toward, segment: &Segment, header: u32) -> Self {
        let ecn = if segment.ect { Ecn::Ect0 } else { Ecn::NotEct };
        SimPacket {
            slot: flow.slot,
            number: flow.number,
            wire_len: segment.len + header,
            seq: segment.seq,
            ack: segment.ack,
            window: segment.window,
            payload_len: segment.len as u16,
            class: flow.class,
            flags: segment.flags,
            hops: 0,
            dscp: 0,
            bits: ecn as u8 | if toward == Toward::Sender { TOWARD_SENDER } else { 0 },
        }
    }

    /// A datagram from sender to receiver.
    pub fn datagram(flow: FlowId, wire_len: Bytes) -> Self {
        let FlowId { slot, number, class } = flow;
        let wire_len = wire_len.get() as u32;
        let (flags, bits) = (Flags::NONE, Ecn::NotEct as u8);
        SimPacket {
            slot,
            number,
            wire_len,
            seq: 0,
            ack: 0,
            window: 0,
            payload_len: 0,
            class,
            flags,
            hops: 0,
            dscp: 0,
            bits,
        }
    }

    /// The flow.
    #[inline]
    pub fn flow(&self) -> FlowId {
        FlowId { slot: self.slot, number: self.number, class: self.class }
    }

    /// Which way it travels.
    #[inline]
    pub fn toward(&self) -> Toward {
        if self.bits & TOWARD_SENDER == 0 { Toward::Receiver } else { Toward::Sender }
    }

    /// The TCP segment in it; `None` for a datagram (every TCP segment has a flag set).
    #[inline]
    pub fn segment(&self) -> Option<Segment> {
        (self.flags != Flags::NONE).then_some(Segment {
            seq: self.seq,
            ack: self.ack,
            len: u32::from(self.payload_len),
            flags: self.flags,
            window: self.window,
            ect: self.ecn().is_capable(),
        })
    }

    /// Links that it has passed, access links included.
    #[inline]
    pub fn hops(&self) -> u8 {
        self.hops
    }

    /// It has passed one more link.
    #[inline]
    pub fn pass(&mut self) {
        self.hops += 1;
    }
}

impl Packet for SimPacket {
    #[inline]
    fn wire_len(&self) -> Bytes {
        Bytes::new(u64::from(self.wire_len))
    }

    fn flow_hash(&self, salt: u64) -> u64 {
        let direction = u64::from(self.toward() == Toward::Sender);
        philox2x64([u64::from(self.number) << 1 | direction, 0], salt)[0]
    }

    fn host_hash(&self, side: Side, salt: u64) -> u64 {
        // Every flow has its own pair of hosts: the host's number is the flow's, and its end.
        let is_sender_host = (side == Side::Source) == (self.toward() == Toward::Receiver);
        philox2x64([u64::from(self.number) << 1 | u64::from(is_sender_host), 1], salt)[0]
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        match self.bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    #[inline]
    fn mark_ce(&mut self) {
        self.bits |= Ecn::Ce as u8;
    }

    fn dscp(&self) -> Dscp {
        Dscp(self.dscp)
    }

    fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp.0;
    }
}

impl Classed for SimPacket {
    #[inline]
    fn class(&self) -> usize {
        usize::from(self.class)
    }
}

/// A packet as a port's discipline sees it.
pub type PortPacket = Stamped<SimPacket>;
