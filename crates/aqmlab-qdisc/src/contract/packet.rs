//! The packet that the kit sends through a discipline.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use aqmlab_units::{Bytes, Instant};

use crate::{Arrived, Classed, Dscp, Ecn, Packet, PacketKind, Side};

/// A packet that remembers how it was sent and counts the accesses to its fields.
#[derive(Clone, Debug)]
pub struct TestPacket {
    pub(super) number: usize,
    arrived: Instant,
    pub(super) size: Bytes,
    pub(super) flow: u64,
    pub(super) ecn: Ecn,
    pub(super) sent_as: Ecn,
    pub(super) dscp: Dscp,
    pub(super) sent_with: Dscp,
    looks: Arc<AtomicUsize>,
}

impl TestPacket {
    pub(super) fn new(
        (number, arrived): (usize, Instant),
        size: Bytes,
        flow: u64,
        ecn: Ecn,
        looks: &Arc<AtomicUsize>,
    ) -> Self {
        TestPacket {
            number,
            arrived,
            size,
            flow,
            ecn,
            sent_as: ecn,
            dscp: Dscp(8 * (flow % 8) as u8),
            sent_with: Dscp(8 * (flow % 8) as u8),
            looks: Arc::clone(looks),
        }
    }

    /// Returns the packet's number in the order of arrival, from 0.
    pub const fn number(&self) -> usize {
        self.number
    }

    /// Returns whether it is a pure acknowledgment, as all packets of one flow are.
    pub(super) const fn is_ack(&self) -> bool {
        self.flow == 5
    }

    fn looked(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns a hash that differs from flow to flow and from salt to salt. The quality of the hash is not under
/// test.
fn mixed(value: u64, salt: u64) -> u64 {
    (value ^ salt.rotate_left(29)).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Packet for TestPacket {
    fn wire_len(&self) -> Bytes {
        self.looked();
        self.size
    }
    fn flow_hash(&self, salt: u64) -> u64 {
        self.looked();
        mixed(self.flow, salt)
    }
    fn host_hash(&self, side: Side, salt: u64) -> u64 {
        self.looked();
        let host = if side == Side::Source { self.flow / 4 } else { self.flow % 4 };
        mixed(host, salt)
    }
    fn ecn(&self) -> Ecn {
        self.looked();
        self.ecn
    }
    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn dscp(&self) -> Dscp {
        self.looked();
        self.dscp
    }
    fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp;
    }
    fn ports(&self) -> Option<[u16; 2]> {
        (self.flow != 7).then_some([self.flow as u16, 80 + self.flow as u16 % 2])
    }
}

impl Arrived for TestPacket {
    fn arrived(&self) -> Instant {
        self.arrived
    }
}

impl Classed for TestPacket {
    fn class(&self) -> usize {
        self.flow as usize % 3
    }
    fn kind(&self) -> PacketKind {
        if self.is_ack() { PacketKind::Ack } else { PacketKind::Other }
    }
}
