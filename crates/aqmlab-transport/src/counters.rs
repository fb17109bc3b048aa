//! What an endpoint has done so far.

/// Counts of one endpoint since it was made.
///
/// A segment that is sent again counts as sent and as retransmitted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Payload bytes sent, retransmitted ones again each time.
    pub bytes_sent: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Segments of any kind sent.
    pub segments_sent: u32,
    /// Segments with payload sent.
    pub data_segments_sent: u32,
    /// Segments with payload or FIN sent again.
    pub retransmitted: u32,
    /// Retransmission timeouts of data or FIN.
    pub timeouts: u32,
    /// Fast retransmits: entries into fast recovery.
    pub fast_retransmits: u32,
    /// Window reductions because of an ECN echo.
    pub ecn_reductions: u32,
    /// ECN echoes that came at a window of one segment and stopped the sender until its timer fired.
    pub ecn_waits: u32,
    /// Duplicate acknowledgments received.
    pub duplicate_acks: u32,
    /// Segments received with CE.
    pub ce_received: u32,
    /// Segments sent without payload, SYN, FIN or RST: pure acknowledgments.
    pub acks_sent: u32,
    /// Received segments that brought no new byte: their retransmission was not needed.
    pub duplicates_received: u32,
    /// SYN or SYN-ACK segments sent again.
    pub syn_retransmissions: u32,
}
