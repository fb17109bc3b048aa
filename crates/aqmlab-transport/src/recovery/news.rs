//! What is new in an acknowledgment, for a sender that tracks segments.

use aqmlab_units::{Instant, Span};

use crate::stamps::Stamp;

/// What is new in an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct News {
    /// Number of segments acknowledged for the first time, cumulatively or by SACK.
    pub delivered: u32,
    /// The round-trip time of the first segment that is acknowledged cumulatively and was not SACKed before,
    /// and whether that segment was sent only once.
    pub first: Option<(Span, bool)>,
    /// The round-trip time of the first segment that is newly SACKed and was sent only once.
    pub first_sacked: Option<Span>,
    /// Some of the cumulatively acknowledged segments were retransmitted.
    pub repeated: bool,
    /// The round-trip time of the last newly acknowledged segment that was sent only once.
    pub last_rtt: Option<Span>,
    /// The end of the first newly acknowledged segment that was sent only once.
    pub original: Option<u64>,
    /// The number of sequence numbers acknowledged cumulatively, the number of bytes by which the window
    /// may open, and whether there is an ECN echo.
    pub acked: u32,
    pub opens: u32,
    pub echo: bool,
    /// Number of segments that it newly reports as marked.
    pub ce: u32,
    /// A duplicate arrival is reported (RFC 2883).
    pub twice: bool,
    /// Number of segments so reported, if these count as delivered.
    pub repeats: u32,
    /// The time stamp that the acknowledgment echoes, if that is one of a retransmission.
    pub stamp: Stamp,
    /// When the first segment that is acknowledged cumulatively was first sent, if it was retransmitted and this
    /// is known.
    pub original_left: Option<Instant>,
    /// Something has arrived that may show that other segments are lost (RFC 8985, section 6.2, steps 2 and 5).
    pub advances_rack: bool,
    /// The end of the lowest newly acknowledged segment that was sent only once and arrives after a segment that was
    /// sent later.
    pub late: Option<u64>,
}
