//! The keywords of the disciplines' choices, as types.

use aqmlab_params::words;

use crate::Backlog;
use crate::law::{
    Arithmetic, BlueIdle, Cells, Counting, IdleRule, PieArithmetic, RedArithmetic, SpacingRule, When,
};

/// The unit of a queue's length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

impl Measure {
    /// Returns the length of `backlog` in this unit.
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
words!(pub(super) impl IdleRule { Paper = "paper", Ns2 = "ns2", Linux = "linux", Never = "never" });
words!(pub(super) impl Counting { Paper = "paper", Ns2 = "ns2", Linux = "linux" });
words!(pub(super) impl When { Timer = "timer", Arrivals = "arrivals" });
words!(pub(super) impl Arithmetic { Exact = "exact", Linux = "linux" });
words!(pub(super) impl Cells { None = "none", Atm = "atm", Ptm = "ptm" });
words!(pub(super) impl RedArithmetic { Exact = "exact", Linux = "linux" });
words!(pub(super) impl PieArithmetic { Exact = "exact", Linux = "linux" });
words!(pub(super) impl BlueIdle { Emptied = "emptied", Periods = "periods", Altq = "altq" });

words! {
    /// The source of RED's automatic weight.
    pub(super) enum WeightRule { Fixed = "fixed", Paper = "paper", Ns2 = "ns2", Ns2Fast = "ns2_fast", Linux = "linux" }
}
words! {
    /// The scaling of RED's probability by packet size.
    pub(super) enum RedByteMode { Off = "off", Paper = "paper", Ns2 = "ns2" }
}
words! {
    /// The region of RED's average in which marks replace drops.
    pub(super) enum Region { Rfc3168 = "rfc3168", Ns2MarkP = "ns2_mark_p", Feng = "feng", Linux = "linux" }
}
words! {
    /// The `max_p` from which the gentle slope starts.
    pub(super) enum GentleLine { Moving = "moving", Fixed = "fixed" }
}
words! {
    /// The side of the thresholds on which Self-Configuring RED's average starts.
    pub(super) enum Start { Below = "below", Above = "above" }
}
words! {
    /// The scaling of PI's and REM's probability by packet size.
    pub(super) enum ByteScale { Off = "off", Mean = "mean", Max = "max" }
}
words! {
    /// The source of PI's gains.
    pub(super) enum Gains { Published = "published", Auto = "auto" }
}
words! {
    /// The value that PI uses as the sample before the first.
    pub(super) enum OldQueue { Zero = "zero", QRef = "q_ref" }
}
words! {
    /// The source of PIE's queueing delay.
    pub(super) enum DelayFrom { Timestamps = "timestamps", Rate = "rate" }
}
words! {
    /// The point at which REM chooses packets: arrival or departure.
    pub(super) enum Decide { Enqueue = "enqueue", Dequeue = "dequeue" }
}
words! {
    /// REM's treatment of a chosen packet that is not ECN-capable.
    pub(super) enum NotEct { Drop = "drop", Pass = "pass" }
}
words! {
    /// The condition under which FRED limits each flow to two packets.
    pub(super) enum ManyFlowsRule { Off = "off", Average = "average", Count = "count" }
}
words! {
    /// Whether flows share queues.
    pub(super) enum Queues { Hashed = "hashed", Perfect = "perfect" }
}
words! {
    /// How the memory of a packet is counted.
    pub(super) enum PacketMemory { Length = "length", Linux = "linux" }
}
words! {
    /// The backlog that CoDel compares with its `mtu`.
    pub(super) enum MtuOf { Queue = "queue", All = "all" }
}
words! {
    /// Half of what an overflow drops at most.
    pub(super) enum HalfOf { Packets = "packets", Bytes = "bytes" }
}
words! {
    /// Where an empty queue that was new goes.
    pub(super) enum EmptyNew { Old = "old", Linux = "linux" }
}
words! {
    /// The packets that are marked above CoDel's `ce_threshold`.
    pub(super) enum CeFor { Ect = "ect", Ect1 = "ect1" }
}
words! {
    /// Whether BLUE's freeze times are random.
    pub(super) enum Freeze { Fixed = "fixed", Random = "random" }
}
words! {
    /// Whether BLUE's next update is due at the end of the freeze time or only after it.
    pub(super) enum Gate { After = "after", At = "at" }
}
words! {
    /// The events that raise BLUE's probability.
    pub(super) enum Loss { Overflow = "overflow", AnyDrop = "any_drop" }
}
words! {
    /// The cause to which BLUE attributes the loss of a chosen packet that finds the buffer full.
    pub(super) enum Precedence { Law = "law", Limit = "limit" }
}
words! {
    /// The waiting packet with which CHOKe compares an arrival.
    pub(super) enum Candidate { Random = "random", Linux = "linux" }
}
words! {
    /// The arrivals that SFB drops because of full bins.
    pub(super) enum BinDrop { Any = "any", All = "all" }
}
words! {
    /// SFB's treatment of ECN-capable packets of flows whose probability exceeds one half.
    pub(super) enum Overload { Mark = "mark", Drop = "drop" }
}
words! {
    /// How SFB counts time.
    pub(super) enum SfbClock { Exact = "exact", Linux = "linux" }
}
words! {
    /// The packet that an overflow drops in BLUE.
    pub(super) enum Victim { Arrival = "arrival", Random = "random" }
}
words! {
    /// CAKE's filter of acknowledgments.
    pub(super) enum AckFilter { None = "none", On = "on", Aggressive = "aggressive" }
}
words! {
    /// CAKE's tins.
    pub(super) enum TinMode {
        Besteffort = "besteffort", Precedence = "precedence", Diffserv3 = "diffserv3", Diffserv4 = "diffserv4",
        Diffserv8 = "diffserv8",
    }
}
words! {
    /// Which packets share a queue of CAKE, and which hosts share the rate.
    pub(super) enum Isolation {
        Flowblind = "flowblind", Srchost = "srchost", Dsthost = "dsthost", Hosts = "hosts", Flows = "flows",
        DualSrchost = "dual-srchost", DualDsthost = "dual-dsthost", TripleIsolate = "triple-isolate",
    }
}
