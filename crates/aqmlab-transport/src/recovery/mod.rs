//! Loss recovery: which segments are missing, and what acknowledgments say about them.
//!
//! [`Machine`] turns each acknowledgment into an [`AckAction`], according to Reno, NewReno or SACK; the
//! endpoint applies it to the window, the timer and the sequence numbers. Reno and NewReno know only one hole
//! at a time, the one at the cumulative acknowledgment. With SACK, a [`Scoreboard`] knows all holes, and
//! determines how much is in flight and what to send next. If `sack_pipe` is `segments`, a list of all
//! segments ([`segments`]) takes the place of both the machine and the scoreboard.

mod machine;
#[cfg(test)]
mod naive;
mod news;
mod pace;
mod prr;
mod rack;
mod rate;
mod scoreboard;
mod segments;
mod sent;
mod tracking;
mod usage;

pub(crate) use machine::Machine;
pub(crate) use news::News;
pub(crate) use pace::Pace;
pub(crate) use prr::Delivery;
pub(crate) use rate::Rates;
pub(crate) use scoreboard::{Hole, Scoreboard};
pub(crate) use segments::{Found, round_trip};
pub(crate) use tracking::{Frto, Phase, Probe, Timer, Tracking, Undo};

/// What to do in response to an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckAction {
    /// New data is acknowledged in the ordinary way.
    Advance,
    /// New data is acknowledged, and fast recovery has ended.
    Finish,
    /// New data is acknowledged, but other data is still missing. The timer restarts or continues.
    Partial {
        /// Whether the retransmission timer restarts.
        restart_timer: bool,
    },
    /// An early duplicate: limited transmit may send the `nth` extra segment (RFC 3042).
    Early {
        /// Number of the duplicate, counted from 1.
        nth: u32,
    },
    /// Enough duplicates: retransmit the first hole, and reduce the window unless it has been
    /// reduced already.
    Enter {
        /// Whether this is the first sign of congestion in its window.
        reduce: bool,
    },
    /// A further duplicate in fast recovery: a segment has left the network.
    Inflate,
    /// A duplicate without effect.
    Ignore,
}
