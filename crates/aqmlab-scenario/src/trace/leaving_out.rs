//! Connections of a trace that cannot be expressed: what they are, how many there are, and what
//! happens to them.

use std::fmt;

use serde::{Serialize, Serializer};

/// What happens to connections that cannot be expressed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum OnUnsupported {
    /// The file is refused.
    Refuse,
    /// They are left out and counted.
    Skip,
}

/// Kinds of connections that cannot be expressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unsupported {
    /// Both ends send by their own clocks.
    Concurrent,
    /// An end sends without waiting for the other one, which has sent in the meantime.
    Overlapping,
    /// An end sends after one of the ends has closed.
    HalfClosed,
    /// The end that sends first waits for something that never happens.
    Stalled,
    /// No data is sent.
    Empty,
}

impl Unsupported {
    const ALL: [Unsupported; 5] = [
        Unsupported::Concurrent,
        Unsupported::Overlapping,
        Unsupported::HalfClosed,
        Unsupported::Stalled,
        Unsupported::Empty,
    ];

    /// The word for the kind, for counts.
    const fn word(self) -> &'static str {
        match self {
            Unsupported::Concurrent => "concurrent",
            Unsupported::Overlapping => "overlapping",
            Unsupported::HalfClosed => "half-closed",
            Unsupported::Stalled => "stalled",
            Unsupported::Empty => "empty",
        }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unsupported::Concurrent => {
                "the two ends of a concurrent connection send without waiting for each other, but they must take turns"
            }
            Unsupported::Overlapping => {
                "an end waits for something else than the last data, which it or the other end has sent, but the ends \
                 must take turns"
            }
            Unsupported::HalfClosed => "data follows after an end has closed, but a connection closes once",
            Unsupported::Stalled => {
                "the end that sends first waits for something that never happens; all its times must be 0"
            }
            Unsupported::Empty => "the connection carries no data",
        })
    }
}

/// Number of connections left out, by kind.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LeftOut([u64; Unsupported::ALL.len()]);

impl LeftOut {
    pub(super) fn count(&mut self, what: Unsupported) {
        self.0[what as usize] += 1;
    }

    /// Returns the number of all connections left out.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// Iterates over the kinds of which connections were left out, each with their number.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Unsupported::ALL.map(|what| (what.word(), self.0[what as usize])).into_iter().filter(|(_, n)| *n > 0)
    }
}

impl Serialize for LeftOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.kinds())
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.kinds().map(|(word, n)| format!("{n} {word}")).collect();
        f.write_str(&kinds.join(", "))
    }
}
