//! Counts of an endpoint's activity.

/// Counts of one endpoint since its creation.
///
/// A retransmitted segment counts as sent and as retransmitted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Payload bytes sent, counted again at each retransmission.
    pub bytes_sent: u64,
    /// Payload bytes retransmitted.
    pub bytes_retransmitted: u64,
    /// Segments sent, of any kind.
    pub segments_sent: u32,
    /// Segments sent with payload.
    pub data_segments_sent: u32,
    /// Retransmitted segments with payload or FIN.
    pub retransmitted: u32,
    /// Retransmission timeouts for data or a FIN.
    pub timeouts: u32,
    /// Fast retransmits: entries into fast recovery.
    pub fast_retransmits: u32,
    /// Reductions of the window because of an ECN echo.
    pub ecn_reductions: u32,
    /// ECN echoes that arrived while the window was one segment, and stopped the sender until its
    /// timer fired.
    pub ecn_waits: u32,
    /// Duplicate acknowledgments received.
    pub duplicate_acks: u32,
    /// Segments received with CE.
    pub ce_received: u32,
    /// Pure acknowledgments sent: segments without payload, SYN, FIN or RST.
    pub acks_sent: u32,
    /// Received segments with payload or FIN that contained nothing new: the other side's spurious
    /// retransmissions, except those that were lost.
    pub duplicates_received: u32,
    /// Windows of data with two or more retransmitted segments. Here, a window is the data
    /// outstanding when a segment that belongs to no earlier window is first retransmitted. A
    /// segment that is retransmitted twice counts once.
    pub multiple_loss_windows: u32,
    /// SYN or SYN-ACK segments retransmitted.
    pub syn_retransmissions: u32,
}

/// Counts of frequent events, kept in the endpoint itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Tally {
    /// Segments sent with payload.
    pub data_segments: u32,
    /// Pure acknowledgments sent.
    pub acks: u32,
}

/// Counts of rare events; fields also present in [`Counters`] have the same meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Incidents {
    pub bytes_retransmitted: u64,
    /// Bytes of the stream that were retransmitted, counted at each retransmission. A retransmitted
    /// segment may also contain bytes that were never sent before; these do not count here.
    pub bytes_repeated: u64,
    pub retransmitted: u32,
    pub timeouts: u32,
    pub fast_retransmits: u32,
    pub ecn_reductions: u32,
    pub ecn_waits: u32,
    pub duplicate_acks: u32,
    pub ce_received: u32,
    pub duplicates_received: u32,
    pub multiple_loss_windows: u32,
    pub syn_retransmissions: u32,
    /// RST segments sent, and segments sent without payload at the end of the stream; the first FIN
    /// does not count.
    pub control_segments: u32,
    /// Bytes that had arrived beyond a hole when the connection ended.
    pub bytes_discarded: u32,
}

impl Incidents {
    pub(crate) const fn none() -> Self {
        Incidents {
            bytes_retransmitted: 0,
            bytes_repeated: 0,
            retransmitted: 0,
            timeouts: 0,
            fast_retransmits: 0,
            ecn_reductions: 0,
            ecn_waits: 0,
            duplicate_acks: 0,
            ce_received: 0,
            duplicates_received: 0,
            multiple_loss_windows: 0,
            syn_retransmissions: 0,
            control_segments: 0,
            bytes_discarded: 0,
        }
    }
}
