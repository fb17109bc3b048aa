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
///
/// Its fields lie in four words, because a packet is copied at each place that it passes: four moves instead of one
/// for each field.
///
/// | word | bits 0 to 31 | 32 to 63 |
/// |---|---|---|
/// | 0 | slot of its flow | number of its flow |
/// | 1 | length at the network layer | payload (16), class (16) |
/// | 2 | sequence number | acknowledgment |
/// | 3 | window | TCP flags (8), links that it has passed, access links included (8), DSCP (8), ECN field (2) and direction (1) |
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SimPacket([u64; 4]);

const _: () = assert!(size_of::<SimPacket>() == 32, "a packet is half a cache line");

const FLAGS: u32 = 32;
const HOPS: u32 = 40;
const DSCP: u32 = 48;
const ECN: u32 = 56;
const TOWARD_SENDER: u64 = 4 << ECN;

const fn word(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

impl SimPacket {
    /// A TCP segment under a header of `header` bytes.
    #[inline]
    pub fn tcp(flow: FlowId, toward: Toward, segment: &Segment, header: u32) -> Self {
        let ecn = if segment.ect { Ecn::Ect0 } else { Ecn::NotEct };
        let bits = u64::from(segment.flags.bits()) << FLAGS
            | (ecn as u64) << ECN
            | if toward == Toward::Sender { TOWARD_SENDER } else { 0 };
        SimPacket([
            word(flow.slot, flow.number),
            word(segment.len + header, segment.len | u32::from(flow.class) << 16),
            word(segment.seq, segment.ack),
            u64::from(segment.window) | bits,
        ])
    }

    /// A datagram from sender to receiver.
    pub fn datagram(flow: FlowId, wire_len: Bytes) -> Self {
        let wire_len = wire_len.get() as u32;
        SimPacket([word(flow.slot, flow.number), word(wire_len, u32::from(flow.class) << 16), 0, 0])
    }

    #[inline]
    const fn low(&self, word: usize) -> u32 {
        self.0[word] as u32
    }

    #[inline]
    const fn high(&self, word: usize) -> u32 {
        (self.0[word] >> 32) as u32
    }

    /// Eight bits of the last word.
    #[inline]
    const fn octet(&self, at: u32) -> u8 {
        (self.0[3] >> at) as u8
    }

    /// The flow.
    #[inline]
    pub fn flow(&self) -> FlowId {
        FlowId { slot: self.low(0), number: self.high(0), class: (self.high(1) >> 16) as u16 }
    }

    /// Which way it travels.
    #[inline]
    pub fn toward(&self) -> Toward {
        if self.0[3] & TOWARD_SENDER == 0 { Toward::Receiver } else { Toward::Sender }
    }

    /// The TCP segment in it; `None` for a datagram (every TCP segment has a flag set).
    #[inline]
    pub fn segment(&self) -> Option<Segment> {
        let flags = Flags::from_bits(self.octet(FLAGS));
        (flags != Flags::NONE).then_some(Segment {
            seq: self.low(2),
            ack: self.high(2),
            len: self.high(1) & 0xffff,
            flags,
            window: self.low(3),
            ect: self.ecn().is_capable(),
        })
    }

    /// Links that it has passed, access links included.
    #[inline]
    pub fn hops(&self) -> u8 {
        self.octet(HOPS)
    }

    /// It has passed one more link.
    #[inline]
    pub fn pass(&mut self) {
        self.0[3] += 1 << HOPS;
    }
}

impl std::fmt::Debug for SimPacket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimPacket")
            .field("flow", &self.flow())
            .field("toward", &self.toward())
            .field("wire_len", &self.wire_len().get())
            .field("segment", &self.segment())
            .field("hops", &self.hops())
            .field("ecn", &self.ecn())
            .finish()
    }
}

impl Packet for SimPacket {
    #[inline]
    fn wire_len(&self) -> Bytes {
        Bytes::new(u64::from(self.low(1)))
    }

    fn flow_hash(&self, salt: u64) -> u64 {
        let direction = u64::from(self.toward() == Toward::Sender);
        philox2x64([u64::from(self.high(0)) << 1 | direction, 0], salt)[0]
    }

    fn host_hash(&self, side: Side, salt: u64) -> u64 {
        // Every flow has its own pair of hosts: the host's number is the flow's, and its end.
        let is_sender_host = (side == Side::Source) == (self.toward() == Toward::Receiver);
        philox2x64([u64::from(self.high(0)) << 1 | u64::from(is_sender_host), 1], salt)[0]
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        match self.octet(ECN) & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    #[inline]
    fn mark_ce(&mut self) {
        self.0[3] |= (Ecn::Ce as u64) << ECN;
    }

    fn dscp(&self) -> Dscp {
        Dscp(self.octet(DSCP))
    }

    fn set_dscp(&mut self, dscp: Dscp) {
        self.0[3] = self.0[3] & !(0xff << DSCP) | u64::from(dscp.0) << DSCP;
    }
}

impl Classed for SimPacket {
    #[inline]
    fn class(&self) -> usize {
        (self.high(1) >> 16) as usize
    }
}

/// A packet as a port's discipline sees it.
pub type PortPacket = Stamped<SimPacket>;
