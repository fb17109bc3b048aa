//! The words of the disciplines' choices, as types.

use aqmlab_params::words;

use crate::Backlog;
use crate::law::{BlueIdle, Counting, IdleRule, SpacingRule, When};

/// In what a queue's length is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

impl Measure {
    /// The length of `backlog`.
    #[inline]
    pub fn of(self, backlog: Backlog) -> f64 {
        match self {
            Measure::Packets => backlog.packets.get() as i64 as f64,
            Measure::Bytes => backlog.bytes.get() as i64 as f64,
        }
    }
}

words!(pub(crate) impl Measure { Packets = "packets", Bytes = "bytes" });
words!(pub(super) impl SpacingRule { Paper = "paper", Ns2Wait = "ns2_wait", Linux = "linux", Off = "off" });
words!(pub(super) impl IdleRule { Paper = "paper", Ns2 = "ns2", Linux = "linux" });
words!(pub(super) impl Counting { Paper = "paper", Ns2 = "ns2", Linux = "linux" });
words!(pub(super) impl When { Timer = "timer", Arrivals = "arrivals" });
words!(pub(super) impl BlueIdle { Emptied = "emptied", Periods = "periods", Altq = "altq" });

words! {
    /// Where RED's automatic weight comes from.
    pub(super) enum WeightRule { Fixed = "fixed", Paper = "paper", Ns2 = "ns2", Ns2Fast = "ns2_fast", Linux = "linux" }
}
words! {
    /// How RED scales its probability by packet size.
    pub(super) enum RedByteMode { Off = "off", Paper = "paper", Ns2 = "ns2" }
}
words! {
    /// Where marks replace drops.
    pub(super) enum Region { Rfc3168 = "rfc3168", Ns2MarkP = "ns2_mark_p", Feng = "feng", Linux = "linux" }
}
words! {
    /// From which `max_p` the gentle slope starts.
    pub(super) enum GentleLine { Moving = "moving", Fixed = "fixed" }
}
words! {
    /// On which side of the thresholds Self-Configuring RED's average counts as being at first.
    pub(super) enum Start { Below = "below", Above = "above" }
}
words! {
    /// How PI and REM scale their probability by packet size.
    pub(super) enum ByteScale { Off = "off", Mean = "mean", Max = "max" }
}
words! {
    /// Where PI's gains come from.
    pub(super) enum Gains { Published = "published", Auto = "auto" }
}
words! {
    /// What PI takes for the sample before the first.
    pub(super) enum OldQueue { Zero = "zero", QRef = "q_ref" }
}
words! {
    /// When REM chooses packets.
    pub(super) enum Decide { Enqueue = "enqueue", Dequeue = "dequeue" }
}
words! {
    /// What becomes of a chosen packet that is not ECN-capable.
    pub(super) enum NotEct { Drop = "drop", Pass = "pass" }
}
words! {
    /// When FRED holds each flow to two packets.
    pub(super) enum ManyFlowsRule { Off = "off", Average = "average", Count = "count" }
}
words! {
    /// Whether BLUE's freeze times are drawn.
    pub(super) enum Freeze { Fixed = "fixed", Random = "random" }
}
words! {
    /// When BLUE's next update is due.
    pub(super) enum Gate { After = "after", At = "at" }
}
words! {
    /// What raises BLUE's probability.
    pub(super) enum Loss { Overflow = "overflow", AnyDrop = "any_drop" }
}
words! {
    /// To which of the two BLUE loses a packet that is chosen and finds the buffer full.
    pub(super) enum Precedence { Law = "law", Limit = "limit" }
}
words! {
    /// Which packet an overflow takes.
    pub(super) enum Victim { Arrival = "arrival", Random = "random" }
}
