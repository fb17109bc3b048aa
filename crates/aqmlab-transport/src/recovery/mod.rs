//! Loss recovery: which segment is missing, and what an acknowledgment means for it.
//!
//! A recovery scheme turns each acknowledgment into a [`Verdict`]; the endpoint carries it out on the
//! window, the timer and the sequence numbers. NewReno keeps a few words of state. SACK would keep a
//! scoreboard beside them and answer with the same verdicts.

mod newreno;

pub(crate) use newreno::NewReno;

/// What to do about an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// New data acknowledged in the ordinary course.
    Advance,
    /// New data acknowledged, fast recovery is over.
    Finish,
    /// New data acknowledged, the next hole is known: retransmit it. Restart the timer or leave it.
    Partial {
        /// Whether the retransmission timer starts anew.
        restart_timer: bool,
    },
    /// An early duplicate: limited transmit may send the `nth` extra segment (RFC 3042).
    Early {
        /// Number of the duplicate, from 1.
        nth: u32,
    },
    /// Enough duplicates: retransmit the first hole, reduce the window unless it has been reduced already.
    Enter {
        /// Whether this is the first sign of congestion in its window.
        reduce: bool,
    },
    /// A further duplicate in fast recovery: a segment has left the network.
    Inflate,
    /// A duplicate that means nothing.
    Ignore,
}
