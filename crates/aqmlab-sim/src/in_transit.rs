//! Flows and their packets, with data stored outside the packets, and their fates.

use aqmlab_qdisc::{Cause, Observer, Packet};
use aqmlab_recording::Fates;
use aqmlab_units::Instant;

use crate::flow_table::FlowTable;
use crate::options::OptionTable;
use crate::packet::PortPacket;
use crate::routes::Routes;

/// Flows, their packets' paths and options, and the end-to-end books. It observes drops at queues,
/// records them in the books, and removes the packet from its flow.
pub struct InTransit {
    /// Every living flow.
    pub flows: FlowTable,
    /// The paths of packets.
    pub routes: Routes,
    /// Options that packets carry.
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
}
