//! A packet with its time of arrival.

use aqmlab_units::{Bytes, Instant};

use crate::{Dscp, Ecn, Packet, PacketKind, Side};

/// A packet for which a [`crate::Port`] keeps books: it knows its class and its role in its connection.
pub trait Classed: Packet {
    /// Returns the class, a small index that is less than the port's number of classes: a flow class of a
    /// scenario, or 0 if there is only one class.
    fn class(&self) -> usize {
        0
    }

    /// Returns the packet's role in its connection, if the host keeps track of connections.
    fn kind(&self) -> PacketKind {
        PacketKind::Other
    }

    /// Returns class and kind as the single number by which books are kept: [`PacketKind::PLACES`] times the
    /// class, plus the kind. A host whose packets hold both in one word can override this.
    #[inline]
    fn class_and_kind(&self) -> usize {
        PacketKind::PLACES * self.class() + self.kind() as usize
    }
}

/// A packet that knows when it arrived at the queue that holds it, as laws based on waiting times require.
///
/// The packets of a [`crate::Port`] know this because they are [`Stamped`]; a host that calls a discipline
/// directly must record the arrival time of its packets itself.
pub trait Arrived: Classed {
    /// Returns the time at which the packet arrived.
    fn arrived(&self) -> Instant;
}

/// A packet and its arrival time. The port wraps each packet in it. The books' queueing delays and the laws
/// based on waiting times both read this stamp.
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
