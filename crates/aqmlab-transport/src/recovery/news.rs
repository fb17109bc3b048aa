//! What an acknowledgment brings to a sender that tracks segments.

use aqmlab_units::Span;

/// What an acknowledgment brought.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct News {
    /// Segments that have arrived, cumulatively acknowledged or SACKed for the first time.
    pub delivered: u32,
    /// The round trip of the first segment that is acknowledged cumulatively and was not SACKed before, and whether
    /// it was sent once.
    pub first: Option<(Span, bool)>,
    /// The same for the first that is SACKed and was sent once.
    pub first_sacked: Option<Span>,
    /// Some of the cumulatively acknowledged segments were retransmitted.
    pub repeated: bool,
    /// The round trip of the latest segment that is new and was sent once.
    pub last_rtt: Option<Span>,
    /// The least end of a segment that was sent only once.
    pub original: Option<u64>,
    /// Sequence numbers that are acknowledged cumulatively, bytes by which the window may open, an ECN echo.
    pub acked: u32,
    pub opens: u32,
    pub echo: bool,
    /// A duplicate arrival is reported (RFC 2883).
    pub twice: bool,
    /// The first copy of a retransmitted segment has arrived.
    pub first_copy: bool,
}
