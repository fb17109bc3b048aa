//! What is counted of a flow.

/// Cumulative counts of a flow, as recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowCounts {
    /// Segments with payload, or datagrams, sent by the sender.
    pub sent_segments: u64,
    /// Payload bytes sent, retransmissions included (datagrams: network-layer bytes).
    pub sent_bytes: u64,
    /// Bytes that have reached the receiver for the first time, in order or not (datagrams: network-layer bytes).
    pub received_bytes: u64,
    /// Bytes that the receiving application has got, in order, for the first time.
    pub delivered_bytes: u64,
    /// Segments with payload or FIN sent again.
    pub retransmitted_segments: u64,
    /// Retransmission timeouts of data or FIN.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_retransmits: u64,
    /// Window reductions on ECN echo.
    pub ecn_reductions: u64,
    /// CE-marked packets that the receiver got.
    pub ce_received: u64,
    /// Segments with payload or FIN that reached the receiver and brought nothing it did not have.
    pub spurious_retransmissions: u64,
    /// Windows of data of which two or more segments were sent again.
    pub multiple_loss_windows: u64,
    /// Packets lost outside the queues: on access links and in delay stages.
    pub lost_packets: u64,
}

impl FlowCounts {
    /// Both together.
    pub fn plus(self, other: FlowCounts) -> FlowCounts {
        FlowCounts {
            sent_segments: self.sent_segments + other.sent_segments,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            received_bytes: self.received_bytes + other.received_bytes,
            delivered_bytes: self.delivered_bytes + other.delivered_bytes,
            retransmitted_segments: self.retransmitted_segments + other.retransmitted_segments,
            timeouts: self.timeouts + other.timeouts,
            fast_retransmits: self.fast_retransmits + other.fast_retransmits,
            ecn_reductions: self.ecn_reductions + other.ecn_reductions,
            ce_received: self.ce_received + other.ce_received,
            spurious_retransmissions: self.spurious_retransmissions + other.spurious_retransmissions,
            multiple_loss_windows: self.multiple_loss_windows + other.multiple_loss_windows,
            lost_packets: self.lost_packets + other.lost_packets,
        }
    }
}
