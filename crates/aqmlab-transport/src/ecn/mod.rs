//! ECN feedback: how congestion marks travel back to the sender.
//!
//! One variant so far, the classic echo of RFC 3168. A scheme decides three things: what the receiving half
//! writes into the flags of the segments it sends, what the sending half reads from them (how much was
//! acknowledged, and whether congestion was reported with it), and what it writes into its own data
//! segments. DCTCP's exact echo and AccECN fit the same three.

mod classic;

pub(crate) use classic::ClassicEcn;

/// What an acknowledgment says about congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Feedback {
    /// The receiver reports a mark.
    pub congestion: bool,
}
