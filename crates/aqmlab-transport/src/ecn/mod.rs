//! ECN feedback: how marks are reported back to the sender.
//!
//! There are three variants: the classic echo of RFC 3168, the echo of DCTCP, which reports for each segment
//! whether it was marked, and AccECN, which counts marks ([`accurate`]). Each variant determines three things: what
//! the receiving half writes into the flags of the segments it sends, what the sending half reads from them (how
//! much was acknowledged, and whether congestion was reported with it), and what the sending half writes into its
//! own data segments. [`classic`] also holds what both sides have agreed on.

mod accurate;
mod classic;
mod counters;
mod option;

pub(crate) use accurate::{AccEcn, Heard, Marks};
pub(crate) use classic::{ClassicEcn, SynAgain};
pub use counters::EcnCounters;
pub use option::AccEcnOption;

/// What an acknowledgment reports about congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Feedback {
    /// The receiver reports a mark.
    pub congestion: bool,
}
