//! Flows and their packets: the data that is stored outside the packets, and the packets' fates.

use aqmlab_qdisc::{Cause, Observer, Packet, TcpHeader};
use aqmlab_recording::Fates;
use aqmlab_units::Instant;

use crate::flow_table::FlowTable;
use crate::options::OptionTable;
use crate::packet::PortPacket;
use crate::routes::Routes;

/// Flows, their packets' paths and options, and the end-to-end books. As the observer of queues, it
/// records drops in the books, and removes dropped packets from their flows.
pub struct InTransit {
    /// Every living flow.
    pub flows: FlowTable,
    /// The paths that packets take.
    pub routes: Routes,
    /// The options that packets carry.
    pub options: OptionTable,
    /// End-to-end books.
    pub fates: Fates,
}

impl Observer<PortPacket> for InTransit {
    fn dropped(&mut self, _now: Instant, pkt: PortPacket, _at: Cause) {
        let pkt = pkt.packet;
        self.fates.dropped.count(pkt.wire_len());
        self.fates.packet_hops += u64::from(self.routes.passed(pkt.place()));
        self.options.forget(&pkt);
        self.flows.packet_gone(pkt.flow().slot);
    }

    // A marked packet stays; the port's books count the mark.
    fn marked(&mut self, _now: Instant, _pkt: &PortPacket, _at: Cause) {}

    fn tcp_header(&self, pkt: &PortPacket) -> Option<TcpHeader> {
        self.options.tcp_header(&pkt.packet)
    }
}
