//! The named variants: words of a scenario file as types.

use aqmlab_params::words;

words! {
    /// The first end of slow start.
    pub enum InitialSsthresh {
        /// "arbitrarily high" (RFC 5681, section 3.1)
        Unlimited = "unlimited",
        /// `max_window` segments (ns-2)
        MaxWindow = "max_window",
    }
}
words! {
    /// The algorithm of congestion control. Kernels have more, under other names.
    pub enum Congestion {
        /// Additive increase, decrease by half (RFC 5681).
        Reno = "reno",
        /// A cubic function of the time since the latest reduction (RFC 9438).
        Cubic = "cubic",
        /// As `reno`, but the reduction at a mark depends on the frequency of marks, and the
        /// receiver echoes each (RFC 8257). It needs ECN.
        Dctcp = "dctcp",
    }
}
words! {
    /// Ends of slow start besides `ssthresh`, losses and marks.
    pub enum SlowStartExit {
        /// Nothing.
        Nothing = "none",
        /// A train of acknowledgments half a round trip long, or a round trip longer by an eighth
        /// (Ha and Rhee 2011; Linux's CUBIC).
        Hystart = "hystart",
        /// Five rounds of slower growth after a round trip longer by an eighth (RFC 9406).
        HystartPlusPlus = "hystart++",
    }
}
words! {
    /// Growth of CUBIC's window in congestion avoidance.
    pub enum CubicGrowth {
        /// With each acknowledgment, towards the cubic function a smoothed round trip later (RFC 9438, sections 4.2 to
        /// 4.5).
        Rfc9438 = "rfc9438",
        /// By whole segments, each after a certain number of acknowledged ones. This number follows from the
        /// cubic function one minimum round-trip time later, and is set at most every 31 ms while the window
        /// is constant; C and beta are multiples of 10/1024 and 1/1024, and a timeout resets the state (Ha,
        /// Rhee, Xu 2008; Linux).
        Linux = "linux",
    }
}
words! {
    /// Growth of the congestion window at an acknowledgment.
    pub enum Increase {
        /// At most one segment per ACK in slow start, and 1/cwnd per ACK in congestion avoidance (RFC 5681,
        /// section 3.1).
        PerAck = "per_ack",
        /// By acknowledged bytes: appropriate byte counting (RFC 3465).
        ByteCounting = "byte_counting",
    }
}
words! {
    /// The amount that is halved when congestion is found.
    pub enum ReductionBase {
        /// The data in the network: sent, not acknowledged, and not known to have left it; each duplicate ACK
        /// in fast recovery reports that a segment has left (RFC 5681, equation 4 and 3.2, step 4).
        Flight = "flight",
        /// Everything sent and not acknowledged cumulatively (RFC 5681, section 2, taken literally). It
        /// includes the data that has left the network in fast recovery and was replaced by new data: a
        /// timeout then leaves `ssthresh` near the window that was too large, and flows with large windows
        /// may go from timeout to timeout.
        Outstanding = "outstanding",
        /// The usable window; `ssthresh` is truncated to whole segments (ns-2 with `precisionReduce_`).
        Window = "window",
        /// The congestion window; the remainder is truncated to whole segments, at least two, and becomes
        /// both `ssthresh` and the window, after losses and marks (Linux).
        CongestionWindow = "congestion_window",
    }
}
words! {
    /// Detection and repair of losses without a timeout.
    pub enum Recovery {
        /// Fast retransmit and fast recovery until the next new acknowledgment (RFC 5681, section 3.2).
        Reno = "reno",
        /// Until all data outstanding at the start is acknowledged, one hole per round trip (RFC
        /// 6582).
        NewReno = "newreno",
        /// With selective acknowledgments (RFC 2018, RFC 6675), if both sides permit them;
        /// otherwise as `newreno`.
        Sack = "sack",
    }
}
words! {
    /// Amount and choice of data that a sender with SACK sends in recovery.
    pub enum SackPipe {
        /// Octets in the network by the scoreboard, which also determines the losses (RFC 6675).
        Rfc6675 = "rfc6675",
        /// ns-2's Sack1 agent, after Fall and Floyd (1996): a counter of segments, minus one per ACK, minus
        /// two per partial ACK, plus one per segment sent; every hole below a SACKed segment counts as lost;
        /// the scoreboard is forgotten outside recovery, and SACKs are ignored between a timeout and the next
        /// acknowledgment of new data.
        Ns2 = "ns2",
        /// Each outstanding segment separately, with the time at which it left, as in RFC 8985: segments that
        /// are neither SACKed nor lost count, and so do copies of lost ones. Lost segments are sent first,
        /// then new data. After a timeout, data that is not SACKed counts as lost, and SACKed data stays
        /// SACKed (Linux).
        Segments = "segments",
    }
}
words! {
    /// Number of reported blocks that a receiver remembers.
    pub enum SackMemory {
        /// As many as an option can hold, even if it is set to report fewer: blocks that left the option
        /// return to it when others have merged.
        Four = "four",
        /// As many as it reports: a block that has left the option is forgotten (ns-2).
        SackBlocks = "sack_blocks",
    }
}
words! {
    /// Restart of the retransmission timer at a partial acknowledgment.
    pub enum PartialAck {
        /// Only the first one in a recovery (RFC 6582, section 4: impatient).
        Impatient = "impatient",
        /// Every one (RFC 6582, section 4: slow but steady).
        SlowButSteady = "slow_but_steady",
    }
}
words! {
    /// The congestion window after the acknowledgment that ends fast recovery, with NewReno. Reno has ssthresh
    /// (RFC 5681, section 3.2, step 6), or ns-2's rule if selected; with SACK the window does not change.
    pub enum RecoveryExit {
        /// min(ssthresh, max(flight, 1) + 1) (RFC 6582, section 3.2, step 3, option 1).
        Flight = "flight",
        /// ssthresh (RFC 6582, section 3.2, step 3, option 2).
        Ssthresh = "ssthresh",
        /// The window without its inflation, and that ACK opens it as usual (ns-2 without
        /// `exit_recovery_fix_`).
        Ns2 = "ns2",
    }
}
words! {
    /// Which duplicate acknowledgments count, and when the third one may start a fast retransmit.
    pub enum FastRetransmitGuard {
        /// Those that arrive while data is outstanding count; the third may always start one (RFC 5681,
        /// sections 2 and 3.2).
        Rfc5681 = "rfc5681",
        /// Those that arrive while data is outstanding count (RFC 5681, section 2); the third may start one
        /// if it covers more than `recover` (RFC 6582, section 3.2, step 2: careful).
        Rfc6582 = "rfc6582",
        /// Any repetition counts; the third may start one as above, or while no data has been acknowledged
        /// yet; an ECN reaction does not change `recover` (ns-2).
        Ns2 = "ns2",
    }
}
words! {
    /// `ssthresh` at a retransmission timeout.
    pub enum TimeoutSsthresh {
        /// Halved at the first timeout of a segment, kept at further ones and for a SYN (RFC 5681,
        /// equation 4 and the paragraph after it).
        Rfc5681 = "rfc5681",
        /// Halved at every timeout, including the SYN's (ns-2).
        Ns2 = "ns2",
    }
}
words! {
    /// Arithmetic of the retransmission timer.
    pub enum RttArithmetic {
        /// Nanoseconds with the gains 1/8 and 1/4 (RFC 6298).
        Rfc6298 = "rfc6298",
        /// Whole clock ticks in scaled integers, and SRTT forgotten after four back-offs (ns-2, BSD).
        Ns2 = "ns2",
        /// As `rfc6298`, with SRTT plus four times RTTVAR as the timeout, the latter at least `min_rto`;
        /// RTTVAR is the largest smoothed deviation of a round trip, decreases once per round trip by a
        /// quarter of the difference, and a round-trip time below SRTT raises it an eighth as fast (with
        /// `sack_pipe = "segments"`; Linux).
        Linux = "linux",
    }
}
words! {
    /// Unit of the count between two acknowledgments of orderly data.
    pub enum AckCounting {
        /// Segments of any size.
        Segments = "segments",
        /// Bytes: as many as in `ack_every` full segments (ns-2's FullTcp).
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
    /// Data that holds a partial segment back if `nagle` is on.
    pub enum NagleRule {
        /// Any data that is outstanding (RFC 1122, section 4.2.3.4).
        Rfc1122 = "rfc1122",
        /// A partial segment that is outstanding: the last part of a message leaves at once behind
        /// its full segments (Minshall, Saito, Mogul, Verghese 1999; Linux).
        Minshall = "minshall",
    }
}
words! {
    /// Segment that carries the FIN.
    pub enum Fin {
        /// The last data.
        WithData = "with_data",
        /// The last data if nothing else is outstanding when it is first sent; otherwise the FIN is
        /// a separate segment once all data is acknowledged (ns-2's FullTcp).
        Apart = "apart",
    }
}
words! {
    /// The active side's answer to the SYN-ACK.
    pub enum HandshakeAck {
        /// A pure ACK, then data.
        Separate = "separate",
        /// Waiting data carries it (as ns-2's one-way agents do); a pure ACK only without data.
        Piggyback = "piggyback",
    }
}
words! {
    /// An acknowledgment that is due when data arrives to which an application responds at once.
    pub enum PromptAck {
        /// The answer carries it.
        WithAnswer = "with_answer",
        /// It leaves before the answer, because a kernel sends it before the application runs; data that was
        /// already waiting carries it.
        Apart = "apart",
    }
}
words! {
    /// Reaction to an ECN echo at a congestion window of one segment.
    pub enum EcnAtOne {
        /// Restart the retransmission timer and send again when it fires (RFC 3168, section 6.1.2).
        WaitForRto = "wait_for_rto",
        /// The window stays at one segment, and ACKs release further segments: there is no "ECN timeout"
        /// (Feng, Kandlur, Saha, Shin, Blue: A New Class of Active Queue Management Algorithms, 1999,
        /// compares both).
        Keep = "keep",
        /// The window is never reduced to one segment, but to ssthresh, which is at least two
        /// (Linux, `tcp_end_cwnd_reduction()`).
        Ssthresh = "ssthresh",
        /// The window is halved below one segment, so that nothing leaves until an ACK without echo opens it
        /// or the timer fires; from the second such echo in a row the timer is backed off (ns-2).
        Ns2 = "ns2",
    }
}
words! {
    /// When an active side that receives no answer to ECN stops requesting it.
    pub enum EcnFallback {
        /// Never: each SYN asks for it.
        Off = "off",
        /// After a timeout: retransmitted SYNs do not ask (RFC 3168, section 6.1.1.1).
        Timeout = "timeout",
        /// As `timeout`; in addition, a RST in answer to a SYN that requests ECN leads to a SYN that does not
        /// (the same section).
        TimeoutOrReset = "timeout_or_reset",
    }
}
words! {
    /// The congestion window after a pause.
    pub enum IdleRestart {
        /// Unchanged.
        Off = "off",
        /// Nothing sent for more than an RTO: min(cwnd, initial window) (RFC 5681, section 4.1).
        Rfc5681 = "rfc5681",
        /// Nothing sent for more than an RTO: halved for each RTO of the pause, down to min(cwnd, initial window);
        /// `ssthresh` keeps three quarters of it (RFC 2861, section 3.2). DEVIATES from there as Linux does: its
        /// lower bound is one segment.
        Rfc2861 = "rfc2861",
        /// Nothing outstanding and an RTO since the last ACK: one segment (ns-2 `slow_start_restart_`).
        Ns2 = "ns2",
    }
}
