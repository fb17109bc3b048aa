//! A packet with its time of arrival beside it.

use aqmlab_units::{Bytes, Instant};

use crate::{Dscp, Ecn, Packet, PacketKind, Side};

/// A packet that a [`crate::Port`] keeps books on: it knows which class it belongs to, and what it is for its connection.
pub trait Classed: Packet {
    /// The class, a small index below the number of classes that the port was made for: a flow class of a
    /// scenario, or 0 where there is one.
    fn class(&self) -> usize {
        0
    }

    /// What it is for its connection, where its host knows of connections.
    fn kind(&self) -> PacketKind {
        PacketKind::Other
    }

    /// Both as one number, by which books are kept: [`PacketKind::PLACES`] times the class, and the kind. A host whose packets
    /// have both in one word answers at once.
    #[inline]
    fn class_and_kind(&self) -> usize {
        PacketKind::PLACES * self.class() + self.kind() as usize
    }
}

/// A packet that knows when it arrived at the queue that holds it, as laws about waiting times must.
///
/// The packets of a [`crate::Port`] do, for they are [`Stamped`]; a host that drives a discipline itself stamps its own.
pub trait Arrived: Classed {
    /// When it arrived.
    fn arrived(&self) -> Instant;
}

/// A packet and when it arrived. The port wraps each packet in it: the one stamp that the queueing delay in the books and
/// laws about waiting times read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamped<P> {
    /// The packet.
    pub packet: P,
    /// When it arrived.
    pub arrived: Instant,
}

impl<P: Classed> Arrived for Stamped<P> {
    #[inline]
    fn arrived(&self) -> Instant {
        self.arrived
    }
}

impl<P: Classed> Classed for Stamped<P> {
    #[inline]
    fn class(&self) -> usize {
        self.packet.class()
    }
    #[inline]
    fn kind(&self) -> PacketKind {
        self.packet.kind()
    }
    #[inline]
    fn class_and_kind(&self) -> usize {
        self.packet.class_and_kind()
    }
}

impl<P: Packet> Packet for Stamped<P> {
    #[inline]
    fn wire_len(&self) -> Bytes {
        self.packet.wire_len()
    }
    #[inline]
    fn flow_hash(&self, salt: u64) -> u64 {
        self.packet.flow_hash(salt)
    }
    #[inline]
    fn host_hash(&self, side: Side, salt: u64) -> u64 {
        self.packet.host_hash(side, salt)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }
    #[inline]
    fn mark_ce(&mut self) {
        self.packet.mark_ce();
    }
    #[inline]
    fn dscp(&self) -> Dscp {
        self.packet.dscp()
    }
    #[inline]
    fn set_dscp(&mut self, dscp: Dscp) {
        self.packet.set_dscp(dscp);
    }
    #[inline]
    fn ports(&self) -> Option<[u16; 2]> {
        self.packet.ports()
    }
}
