//! The news in an acknowledgment for a sender that tracks segments.

use aqmlab_units::Span;

/// The news in an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct News {
    /// Number of segments acknowledged, cumulatively or by SACK, for the first time.
    pub delivered: u32,
    /// The round trip of the first segment that is acknowledged cumulatively and was not SACKed before, and whether
    /// it was sent once.
    pub first: Option<(Span, bool)>,
    /// The same for the first segment that is SACKed and was sent once.
    pub first_sacked: Option<Span>,
    /// Some of the cumulatively acknowledged segments were retransmitted.
    pub repeated: bool,
    /// The round trip of the latest newly acknowledged segment that was sent once.
    pub last_rtt: Option<Span>,
    /// The lowest end of a segment that was sent only once.
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
