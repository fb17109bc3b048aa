//! A packet with the hash of its flow beside it.

use aqmlab_units::{Bytes, Instant};

use crate::{Arrived, Classed, Dscp, Ecn, Packet, Side};

/// A packet whose flow's hash has been computed already, for queues with state per flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed<P> {
    /// The hash, under the queue's own salt.
    pub key: u64,
    /// The packet.
    pub packet: P,
}

impl<P: Arrived> Arrived for Keyed<P> {
    #[inline]
    fn arrived(&self) -> Instant {
        self.packet.arrived()
    }
}

impl<P: Classed> Classed for Keyed<P> {
    #[inline]
    fn class(&self) -> usize {
        self.packet.class()
    }
}

impl<P: Packet> Packet for Keyed<P> {
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
