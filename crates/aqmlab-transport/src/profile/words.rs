//! Types for the choices that a scenario file names: each variant stands for one word.

use aqmlab_params::words;

words! {
    /// The initial value of `ssthresh`, at which the first slow start ends.
    pub enum InitialSsthresh {
        /// "arbitrarily high" (RFC 5681, section 3.1)
        Unlimited = "unlimited",
        /// `max_window` segments (ns-2)
        MaxWindow = "max_window",
    }
}
words! {
    /// The congestion control algorithm. Kernels have more algorithms, under other names.
    pub enum Congestion {
        /// Additive increase, and decrease by half (RFC 5681).
        Reno = "reno",
        /// A cubic function of the time since the latest reduction (RFC 9438).
        Cubic = "cubic",
        /// Like `reno`, except that the size of the reduction at a mark depends on how frequent
        /// marks are, and that the receiver echoes each mark (RFC 8257). It needs ECN.
        Dctcp = "dctcp",
        /// Window and pacing rate follow from a model of the path: the largest delivery rate and the shortest
        /// round-trip time, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00; Linux). Segments are
        /// tracked and paced, as with `sack_pipe = "segments"` and `pacing`.
        Bbr = "bbr",
        /// Version 3 of the same: losses bound what a probe keeps in flight, and lower rate and window until the
        /// next probe (draft-ietf-ccwg-bbr).
        Bbr3 = "bbr3",
        /// The scalable control of L4S: a mark takes half of the share of marks from the window, as with `dctcp`, with
        /// rates that depend less on round-trip times (draft-briscoe-iccrg-prague-congestion-control-04). It
        /// needs ECN. Segments are tracked and paced, as with `sack_pipe = "segments"` and `pacing`, and have ECT(1).
        Prague = "prague",
    }
}
words! {
    /// Prague's virtual round-trip time.
    pub enum PragueRtt {
        /// The smoothed round-trip time, but at least `prague_rtt`.
        Max = "max",
        /// The smoothed round-trip time and `prague_rtt` together.
        Sum = "sum",
    }
}
words! {
    /// The control whose rules Prague applies to losses, and to marks that are not those of an L4S queue.
    pub enum PragueClassic {
        /// Reno: half of the window remains (RFC 5681).
        Reno = "reno",
        /// CUBIC: `cubic_beta` of the window remains (RFC 9438).
        Cubic = "cubic",
    }
}
words! {
    /// What ends slow start, in addition to `ssthresh`, losses and marks.
    pub enum SlowStartExit {
        /// Nothing.
        Nothing = "none",
        /// A train of acknowledgments that lasts half a round trip, or round trips that are an eighth longer
        /// than the shortest so far (Ha and Rhee 2011; Linux's CUBIC).
        Hystart = "hystart",
        /// Five rounds of slower growth, which begin when round trips are an eighth longer than in the
        /// previous round (RFC 9406).
        HystartPlusPlus = "hystart++",
    }
}
words! {
    /// Growth of CUBIC's window in congestion avoidance.
    pub enum CubicGrowth {
        /// With each acknowledgment, towards the value that the cubic function will reach after one smoothed
        /// RTT (RFC 9438, sections 4.2 to 4.5).
        Rfc9438 = "rfc9438",
        /// By whole segments, each after a certain number of acknowledged segments. This number
        /// follows from the value that the cubic function will reach after one round trip; C is a multiple of 10/1024
        /// and beta a multiple of 1/1024, and a timeout resets the state (Ha, Rhee, Xu 2008;
        /// Linux).
        Linux = "linux",
    }
}
words! {
    /// The round-trip time after which CUBIC's window is to have the value of the cubic function.
    pub enum CubicAhead {
        /// The smallest one (Ha, Rhee, Xu 2008; Linux).
        MinRtt = "min_rtt",
        /// The smoothed one (RFC 9438, section 4.2).
        Srtt = "srtt",
    }
}
words! {
    /// Growth of the congestion window at an acknowledgment.
    pub enum Increase {
        /// At most one segment per ACK in slow start, and 1/cwnd per ACK in congestion avoidance (RFC 5681,
        /// section 3.1).
        PerAck = "per_ack",
        /// As in `per_ack`, except that in slow start, each ACK of new data opens the window by one segment,
        /// even if it acknowledges less (RFC 2581, section 3.1, allows it; ns-2).
        SegmentPerAck = "segment_per_ack",
        /// According to the bytes acknowledged: appropriate byte counting (RFC 3465).
        ByteCounting = "byte_counting",
    }
}
words! {
    /// The amount that is halved when congestion is detected.
    pub enum ReductionBase {
        /// The data in the network: data that has been sent, is not acknowledged, and is not reported to have
        /// left; in fast recovery, each duplicate ACK reports that a segment has left (RFC 5681, equation 4
        /// and 3.2, step 4).
        Flight = "flight",
        /// Everything sent and not acknowledged cumulatively (RFC 5681, section 2, taken
        /// literally). It includes the data that has left the network during fast recovery and has
        /// been replaced by new data. A timeout then leaves `ssthresh` near the window that was too
        /// large, and flows with large windows may go from timeout to timeout.
        Outstanding = "outstanding",
        /// The usable window; `ssthresh` is truncated to whole segments (ns-2 with `precisionReduce_`).
        Window = "window",
        /// The congestion window; what remains of it after losses and marks, but at least two segments, becomes
        /// both `ssthresh` and the window (Linux).
        CongestionWindow = "congestion_window",
    }
}
words! {
    /// The amount of data from which a gradual reduction begins.
    pub enum PrrBase {
        /// The data in the network (RFC 9937, section 6).
        Flight = "flight",
        /// The congestion window (Linux).
        CongestionWindow = "congestion_window",
    }
}
words! {
    /// Detection and repair of losses without a timeout.
    pub enum Recovery {
        /// Fast retransmit, and fast recovery until new data is next acknowledged (RFC 5681,
        /// section 3.2).
        Reno = "reno",
        /// Fast recovery until all data that was outstanding at its start is acknowledged,
        /// repairing one hole per round trip (RFC 6582).
        NewReno = "newreno",
        /// Recovery with selective acknowledgments (RFC 2018, RFC 6675) if both sides permit them;
        /// otherwise the same as `newreno`.
        Sack = "sack",
        /// Fast retransmit without fast recovery: the third duplicate does what a timeout does, except that the
        /// timeout is not backed off. The window becomes one segment, and sending starts over at the segment that
        /// is missing (Jacobson 1988; 4.3BSD-Tahoe).
        Tahoe = "tahoe",
    }
}
words! {
    /// How much data, and which data, a sender with SACK sends in recovery.
    pub enum SackPipe {
        /// Counts the octets in the network according to the scoreboard, which also determines the
        /// losses (RFC 6675).
        Rfc6675 = "rfc6675",
        /// ns-2's Sack1 agent, after Fall and Floyd (1996). A counter of segments decreases by one
        /// per ACK and by two per partial ACK, and increases by one per segment sent; every hole
        /// below a SACKed segment counts as lost; the scoreboard is forgotten outside recovery, and
        /// SACKs are ignored between a timeout and the next acknowledgment of new data.
        Ns2 = "ns2",
        /// Tracks each outstanding segment separately, with the time at which it left, as in RFC
        /// 8985. Segments that are neither SACKed nor lost count as in flight, and so do copies of
        /// lost ones. Lost segments are sent first, then new data. After a timeout, data that is
        /// not SACKed counts as lost, and SACKed data stays SACKed (Linux).
        Segments = "segments",
    }
}
words! {
    /// Number of reported blocks that a receiver remembers.
    pub enum SackMemory {
        /// As many as an option can hold, even if `sack_blocks` is smaller: blocks that have left
        /// the option return to it when other blocks merge.
        Four = "four",
        /// As many as the option reports: a block that has left the option is forgotten (ns-2).
        SackBlocks = "sack_blocks",
    }
}
words! {
    /// How long new data waits for a whole burst.
    pub enum BurstWait {
        /// Until the burst has room.
        Room = "room",
        /// As in `room`, but only while an acknowledgment is expected soon: the first outstanding segment left at
        /// least half a smoothed round trip ago, and some segment within the last millisecond (Linux).
        Linux = "linux",
    }
}
words! {
    /// Which partial acknowledgments restart the retransmission timer.
    pub enum PartialAck {
        /// Only the first partial ACK in a recovery (RFC 6582, section 4: impatient).
        Impatient = "impatient",
        /// Every partial ACK (RFC 6582, section 4: slow but steady).
        SlowButSteady = "slow_but_steady",
    }
}
words! {
    /// The congestion window during fast recovery with Reno or NewReno, in addition to one segment per
    /// duplicate ACK.
    pub enum RecoveryWindow {
        /// What the reduction leaves. A partial ACK deflates it by the amount acknowledged and adds back one
        /// segment (RFC 6582, section 3.2, step 3).
        Rfc6582 = "rfc6582",
        /// `ssthresh`. A partial ACK takes away all inflation, so that usually nothing new leaves, and moves
        /// the end of recovery to the end of the data sent so far. At that end, a whole window may leave at
        /// once (ns-2's FullTcp).
        Ssthresh = "ssthresh",
    }
}
words! {
    /// With NewReno, the congestion window after the acknowledgment that ends fast recovery. With
    /// Reno, the window is ssthresh (RFC 5681, section 3.2, step 6), or follows ns-2's rule if that
    /// is selected. With SACK, the window does not change.
    pub enum RecoveryExit {
        /// min(ssthresh, max(flight, 1) + 1) (RFC 6582, section 3.2, step 3, option 1).
        Flight = "flight",
        /// ssthresh (RFC 6582, section 3.2, step 3, option 2).
        Ssthresh = "ssthresh",
        /// The window without its inflation; the ACK that ends fast recovery then opens it as usual (ns-2
        /// without `exit_recovery_fix_`).
        Ns2 = "ns2",
    }
}
words! {
    /// Which duplicate acknowledgments count, and when the third one may start a fast retransmit.
    pub enum FastRetransmitGuard {
        /// A duplicate counts if it arrives while data is outstanding; the third may always start a
        /// fast retransmit (RFC 5681, sections 2 and 3.2).
        Rfc5681 = "rfc5681",
        /// A duplicate counts if it arrives while data is outstanding (RFC 5681, section 2); the
        /// third may start a fast retransmit if it covers more than `recover` (RFC 6582, section
        /// 3.2, step 2: careful).
        Rfc6582 = "rfc6582",
        /// A duplicate counts even if no data is outstanding; the third may start a fast retransmit if it
        /// covers more than `recover`, or while no data has been acknowledged yet; an ECN reaction does not
        /// change `recover` (ns-2).
        Ns2 = "ns2",
    }
}
words! {
    /// `ssthresh` at a retransmission timeout.
    pub enum TimeoutSsthresh {
        /// Halved at the first timeout of a segment, and unchanged at further timeouts and at those
        /// of a SYN (RFC 5681, equation 4 and the paragraph after it).
        Rfc5681 = "rfc5681",
        /// Halved at every timeout, including that of a SYN (ns-2).
        Ns2 = "ns2",
        /// As in `ns2`, except that a timeout in fast recovery halves the inflated window (ns-2's FullTcp).
        Inflated = "inflated",
    }
}
words! {
    /// Arithmetic of the retransmission timer.
    pub enum RttArithmetic {
        /// Computed in nanoseconds, with the gains 1/8 and 1/4 (RFC 6298).
        Rfc6298 = "rfc6298",
        /// Computed in whole clock ticks, as scaled integers; SRTT is forgotten after four
        /// back-offs (ns-2, BSD).
        Ns2 = "ns2",
        /// As in `rfc6298`, except that the timeout is SRTT plus four times RTTVAR, and the latter
        /// term is at least `min_rto`. RTTVAR is the largest smoothed deviation within a round trip. Once per
        /// round trip, RTTVAR decreases by a quarter of its distance from that deviation; a round-trip time
        /// below SRTT raises the deviation only an eighth as fast as one above it (with
        /// `sack_pipe = "segments"`; Linux).
        Linux = "linux",
    }
}
words! {
    /// The phases of the clocks with the ns-2 arithmetic.
    pub enum TickPhases {
        /// All clocks are `tick_phase` into a tick at time 0.
        Same = "same",
        /// Each endpoint of each flow has a clock of its own; how far it is into a tick at time 0 is drawn
        /// uniformly from the seed (ns-2).
        Random = "random",
    }
}
words! {
    /// The unit in which in-order data is counted from one acknowledgment to the next.
    pub enum AckCounting {
        /// Segments of any size.
        Segments = "segments",
        /// Bytes, as many as `ack_every` full segments contain (ns-2's FullTcp).
        Bytes = "bytes",
    }
}
words! {
    /// Time at which a delayed acknowledgment leaves.
    pub enum DelayedAckTimer {
        /// `delayed_ack` after the segment arrived.
        OneShot = "one_shot",
        /// At the run's next whole multiple of `delayed_ack`, for all connections at the same time
        /// (BSD's fast timer; ns-2's FullTcp).
        Periodic = "periodic",
    }
}
words! {
    /// Which data holds a partial segment back if `nagle` is on.
    pub enum NagleRule {
        /// Any data that is outstanding (RFC 1122, section 4.2.3.4).
        Rfc1122 = "rfc1122",
        /// Only a partial segment that is outstanding: the last part of a message leaves
        /// immediately after the message's full segments (Minshall, Saito, Mogul, Verghese 1999;
        /// Linux).
        Minshall = "minshall",
    }
}
words! {
    /// Which segment carries the FIN.
    pub enum Fin {
        /// The last data.
        WithData = "with_data",
        /// The last data, if no other data is outstanding when it is first sent; otherwise, the FIN
        /// is a separate segment that leaves once all data is acknowledged (ns-2's FullTcp).
        Apart = "apart",
    }
}
words! {
    /// The active side's answer to the SYN-ACK.
    pub enum HandshakeAck {
        /// A pure ACK, then data.
        Separate = "separate",
        /// Waiting data carries the answer (as with ns-2's one-way agents); a pure ACK is sent only
        /// if there is no data.
        Piggyback = "piggyback",
    }
}
words! {
    /// What happens to an acknowledgment that becomes due when data arrives, if the application
    /// responds to that data immediately.
    pub enum PromptAck {
        /// The answer carries the acknowledgment.
        WithAnswer = "with_answer",
        /// The acknowledgment leaves before the answer, because a kernel sends it before the
        /// application runs; if data was already waiting, however, that data carries it.
        Apart = "apart",
    }
}
words! {
    /// Reaction to an ECN echo at a congestion window of one segment.
    pub enum EcnAtOne {
        /// The retransmission timer restarts, and the sender sends again only when the timer
        /// fires (RFC 3168, section 6.1.2).
        WaitForRto = "wait_for_rto",
        /// The window stays at one segment, and ACKs release further segments: there is no "ECN timeout"
        /// (Feng, Kandlur, Saha, Shin, Blue: A New Class of Active Queue Management Algorithms, 1999, compare
        /// this with the RFC's rule).
        Keep = "keep",
        /// The window is never reduced to one segment, only to ssthresh, which is at least two
        /// segments (Linux, `tcp_end_cwnd_reduction()`).
        Ssthresh = "ssthresh",
        /// The window is halved to less than one segment, so that nothing leaves until an ACK
        /// without an echo opens it or the timer fires. Starting with the second such echo in a
        /// row, the timer is backed off (ns-2).
        Ns2 = "ns2",
    }
}
words! {
    /// When an active side stops requesting ECN because its requests have not been answered.
    pub enum EcnFallback {
        /// Never: each SYN requests ECN.
        Off = "off",
        /// After a timeout: retransmitted SYNs do not request ECN (RFC 3168, section 6.1.1.1).
        Timeout = "timeout",
        /// As in `timeout`; in addition, if a SYN that requests ECN is answered with a RST, the
        /// next SYN does not request it (the same section).
        TimeoutOrReset = "timeout_or_reset",
    }
}
words! {
    /// How a receiver reports marks.
    pub enum EcnFeedback {
        /// With ECE, until the sender has answered with CWR (RFC 3168); with `congestion = "dctcp"`, with ECE for
        /// each marked segment (RFC 8257).
        Classic = "classic",
        /// With a counter of marked packets in the flags AE, CWR and ECE of each segment, and counters of bytes in
        /// an option: AccECN (RFC 9768). If the other side does not support it, the same as `classic`.
        Accurate = "accurate",
    }
}
words! {
    /// When a segment has the AccECN option, and which counters it contains.
    pub enum EcnOption {
        /// Never.
        Nothing = "none",
        /// If a counter has changed since the latest option, and in the handshake; the option contains each counter
        /// that has ever changed (RFC 9768, section 3.2.3.3, the recommended simple scheme).
        Simple = "simple",
        /// At the same times, with all three counters if there is room, that of ECT(1) first (Linux).
        Full = "full",
        /// On each segment that has room, with all three counters if there is room for them, that of ECT(1) first
        /// (Linux by default).
        Each = "each",
    }
}
words! {
    /// What tells a sender with AccECN that something on the path changes code points or feedback (RFC 9768, sections
    /// 3.2.2.3 and 3.2.2.4).
    pub enum EcnPathTest {
        /// Nothing.
        Off = "off",
        /// The code point with which its SYN or SYN-ACK has arrived, and whether the first counter is zero.
        Handshake = "handshake",
        /// The same, and marks on all packets of the first four rounds; such marks do not count any longer.
        Rounds = "rounds",
    }
}
words! {
    /// When a connection whose SYN or SYN-ACK was retransmitted begins with a window of one segment.
    pub enum SynLossWindow {
        /// After any retransmission (RFC 5681, section 3.1).
        Rfc5681 = "rfc5681",
        /// After two or more retransmissions, at least one of them because the timer fired, unless time stamps
        /// show that the first copy has been answered (Linux).
        Linux = "linux",
        /// Never: it begins with the initial window (ns-2's FullTcp).
        Never = "never",
    }
}
words! {
    /// Which initial window results from the segment size.
    pub enum InitialWindowRule {
        /// Two to four segments, about 4380 bytes (RFC 5681, section 3.1, after RFC 3390).
        Rfc5681 = "rfc5681",
        /// Ten segments, but at most 14,600 bytes or two segments, whichever is more (RFC 6928, section 2).
        Rfc6928 = "rfc6928",
    }
}
words! {
    /// The congestion window after a pause.
    pub enum IdleRestart {
        /// Unchanged.
        Off = "off",
        /// If nothing was sent for more than an RTO, the window becomes min(cwnd, initial window)
        /// (RFC 5681, section 4.1).
        Rfc5681 = "rfc5681",
        /// If nothing was sent for more than an RTO, the window is halved for each RTO of the
        /// pause, down to min(cwnd, initial window); `ssthresh` becomes at least three quarters of
        /// the former window (RFC 2861, section 3.2). DEVIATES from RFC 2861, as Linux does: the
        /// lower bound of the RFC is one segment. `window_validation` is part of the rule.
        Rfc2861 = "rfc2861",
        /// If nothing was sent for more than SRTT plus four times RTTVAR, whatever `min_rto` is, the window
        /// becomes the initial window, and the next segment carries CWR (ns-2's FullTcp).
        WithoutLeast = "without_least",
        /// If nothing is outstanding and an RTO has passed since the last ACK, the window becomes
        /// one segment (ns-2 `slow_start_restart_`).
        Ns2 = "ns2",
        /// If nothing is outstanding and no segment has arrived for an RTO, the window becomes the
        /// initial window, also if it was smaller (FreeBSD 4, `tcp_output()`). The arrival of a
        /// request ends the pause, so a server that answers at once keeps its window (RFC 5681,
        /// section 4.1, describes this).
        FreeBsd = "freebsd",
    }
}

impl IdleRestart {
    /// Returns whether a pause begins with the last transmission.
    pub(crate) fn begins_with_sending(self) -> bool {
        !matches!(self, IdleRestart::Ns2 | IdleRestart::FreeBsd)
    }
}
