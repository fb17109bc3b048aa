//! ECN feedback: how marks are reported back to the sender.
//!
//! There are two variants: the classic echo of RFC 3168, and the echo of DCTCP, which reports for
//! each segment whether it was marked. Each variant determines three things: what the receiving
//! half writes into the flags of the segments it sends, what the sending half reads from them (how
//! much was acknowledged, and whether congestion was reported with it), and what the sending half
//! writes into its own data segments. AccECN would fit the same structure.

mod classic;

pub(crate) use classic::ClassicEcn;

/// What an acknowledgment reports about congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Feedback {
    /// The receiver reports a mark.
    pub congestion: bool,
}
