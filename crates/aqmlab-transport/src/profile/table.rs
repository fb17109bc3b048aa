//! The parameters of TCP, each of which stands here only. Their default values form the profile `rfc`.

use aqmlab_params::{Alias, Kind, Limit, Open, Reading, Row, params};
use aqmlab_units::{Bytes, Span};

use super::words::{
    AckCounting, BurstWait, Congestion, CubicAhead, CubicGrowth, DelayedAckTimer, EcnAtOne, EcnFallback,
    EcnFeedback, EcnOption, EcnPathTest, FastRetransmitGuard, Fin, HandshakeAck, IdleRestart, Increase,
    InitialSsthresh, InitialWindowRule, NagleRule, PartialAck, PragueClassic, PragueRtt, PromptAck, PrrBase,
    Recovery, RecoveryExit, RecoveryWindow, ReductionBase, RttArithmetic, SackMemory, SackPipe,
    SlowStartExit, SynLossWindow, TickPhases, TimeoutSsthresh,
};
use crate::bits::Bits;
use crate::sack::MAX_BLOCKS;

/// The rule of parameters that are as in Linux if reductions are.
const AS_LINUX: &str = "true if reduction_base is congestion_window";

const ANY_COUNT: u64 = u32::MAX as u64;

const fn count(min: u64) -> Row<u64> {
    Row::integer(min, ANY_COUNT)
}

const fn limit(min: u64) -> Row<Limit> {
    Row::limit(min, ANY_COUNT - 1)
}

const fn ns2(name: &'static str) -> Alias {
    Alias::new("ns-2", name)
}

const fn seconds(name: &'static str) -> Alias {
    ns2(name).reads(Reading::In("s"))
}

const fn bytes(name: &'static str) -> Alias {
    ns2(name).reads(Reading::In("B"))
}

const fn switch(name: &'static str) -> Alias {
    ns2(name).reads(Reading::Switch)
}

params! {
    /// All settings of an endpoint, resolved. All flows of a class share one profile, which is passed
    /// to each call, so that an endpoint stores no settings.
    ///
    /// The rows stand in the order in which `show` prints them. A new parameter whose default changes nothing
    /// is [`implied`](Row::implied).
    #[derive(PartialEq)]
    pub struct Profile {
        /// payload of a full segment
        mss: u32 as Bytes = Row::bytes(1, 65_495).default(Bytes::new(1460))
            .aliases(&[bytes("packetSize_"), bytes("segsize_")])
            .source("RFC 9293, 3.7.1; Ethernet"),
        /// bytes of IP and TCP headers in each segment
        header: u32 as Bytes = Row::bytes(0, 1000).default(Bytes::new(40))
            .aliases(&[bytes("tcpip_base_hdr_size_")])
            .source("RFC 791, RFC 9293"),
        /// sequence number of the SYN
        initial_sequence: u32 as u64 = Row::integer(0, ANY_COUNT).default(0).source("RFC 9293, 3.4.1"),
        /// largest number of segments in flight, whatever the congestion window is
        max_window: u32 as u64 = count(1).default(1 << 20).aliases(&[ns2("window_")]).source("RFC 5681, 3.1"),
        /// receive buffer advertised to the other side
        receive_window: u32 as Bytes = Row::bytes(1, 1 << 30).default(Bytes::new(1 << 30))
            .source("RFC 7323, 2.3 (its largest)"),
        /// how `initial_window` follows from `mss` if it is not given
        initial_window_rule: InitialWindowRule = Row::choice("rfc5681").source("RFC 5681, 3.1; RFC 6928, 2"),
        /// number of segments in the first flight, and the most that a pause leaves
        initial_window: f64 as u64 = count(1).auto("by `initial_window_rule` from mss, in whole segments")
            .aliases(&[ns2("windowInit_")])
            .source("RFC 5681, 3.1; RFC 3390; RFC 6928"),
        /// when a connection whose SYN or SYN-ACK was retransmitted begins with a window of one segment
        syn_loss_window: SynLossWindow = Row::choice("rfc5681").source("RFC 5681, 3.1"),
        /// the initial slow-start threshold
        initial_ssthresh: InitialSsthresh = Row::choice("unlimited").source("RFC 5681, 3.1"),
        /// the congestion control algorithm; `aqmlab live` also accepts the name of any algorithm that the
        /// kernel has
        // `None` is a control that only kernels have; no endpoint can be created with such a profile.
        congestion: Option<Congestion> as Open<Congestion> = Row::open("reno")
            .source("RFC 5681; RFC 9438; RFC 8257; draft-cardwell-iccrg-bbr-congestion-control-00; \
                draft-ietf-ccwg-bbr; draft-briscoe-iccrg-prague-congestion-control-04"),
        /// how an acknowledgment opens the congestion window
        increase: Increase = Row::choice("per_ack").source("RFC 5681, 3.1; RFC 3465"),
        /// with byte counting, the largest number of segments by which one ACK opens the window in slow
        /// start
        abc_limit: u32 as Limit = limit(1).default(Limit::At(2)).source("RFC 3465, 2.2"),
        /// an acknowledged segment opens the window as far as a full one, even if it is shorter; only with
        /// `sack_pipe = "segments"`
        count_segments: bool = Row::of(Kind::Flag).auto(AS_LINUX).implied().source("RFC 3465, 2.1 (bytes); Linux"),
        /// with byte counting, an acknowledgment of several windows of data opens the window by as many segments;
        /// only with `sack_pipe = "segments"`
        open_by_windows: bool = Row::of(Kind::Flag).auto(AS_LINUX).implied().source("RFC 3465, 2.1 (at most one segment); Linux"),
        /// the part of an acknowledgment that would open the window beyond `ssthresh` in slow start counts for
        /// congestion avoidance instead; only with `sack_pipe = "segments"`
        split_at_ssthresh: bool = Row::of(Kind::Flag).auto(AS_LINUX).implied()
            .source("RFC 5681, 3.1 (slow start while the window is below ssthresh); Linux"),
        /// CUBIC: how the window grows in congestion avoidance
        cubic_growth: CubicGrowth = Row::choice("rfc9438").source("RFC 9438, 4.2 to 4.5"),
        /// CUBIC, with `cubic_growth = "linux"`: the round-trip time after which the window is to have the value of the
        /// cubic function
        cubic_ahead: CubicAhead = Row::choice("min_rtt").implied().source("Ha, Rhee, Xu 2008 (dMin); RFC 9438, 4.2 (SRTT)"),
        /// CUBIC, with `cubic_growth = "linux"`: round-trip times do not count for the smallest one for this long after
        /// congestion avoidance begins, because queues are still long
        cubic_settling: Span = Row::span(Span::ZERO, Span::s(60)).default(Span::s(1)).implied().source("Linux 6.1: measured"),
        /// CUBIC, with `cubic_growth = "linux"`: while the window stays as it is, the cubic function is evaluated again
        /// once more than this time has passed; whole milliseconds count
        cubic_interval: Span = Row::span(Span::ZERO, Span::s(1)).default(Span::ms(31)).implied().source("Linux 6.1: measured"),
        /// CUBIC, with `cubic_growth = "linux"`: before the first loss, the window opens by one segment at least for
        /// each time that this many segments are acknowledged
        cubic_first_count: u32 as u64 = count(1).default(20).implied().source("Linux 6.1: measured"),
        /// CUBIC, with `cubic_growth = "linux"`: number of acknowledged segments that opens the window by one segment
        /// at most
        cubic_least_count: u32 as u64 = count(1).default(2).implied()
            .source("Linux 6.1: measured; RFC 9438, 4.4 (1.5 windows per round trip)"),
        /// CUBIC: the constant C of its window function, in segments per second cubed
        cubic_c: f64 = Row::above(0.0, 1000.0).default(0.4).source("RFC 9438, 5.1"),
        /// CUBIC: the share of the flight that remains after a reduction
        cubic_beta: f64 = Row::number(0.1, 0.99).default(0.7).source("RFC 9438, 4.6"),
        /// CUBIC: if a reduction occurs before the window has regained its previous maximum, the new
        /// maximum is lowered further
        cubic_fast_convergence: bool = Row::flag(true).source("RFC 9438, 4.7"),
        /// CUBIC: the window is at least as large as Reno's would be on average
        cubic_reno_friendly: bool = Row::flag(true).source("RFC 9438, 4.3"),
        /// DCTCP: segments are counted instead of bytes, alpha is a multiple of 1/1024, and the window shrinks by whole
        /// segments
        dctcp_segments: bool = Row::of(Kind::Flag).auto(AS_LINUX).implied().source("RFC 8257, 3.3 (bytes); Linux"),
        /// DCTCP: the weight g that a window's share of marks has in the estimate alpha
        dctcp_gain: f64 = Row::above(0.0, 1.0).default(0.0625).source("RFC 8257, 4.2"),
        /// Prague: the gain g with which the share of marks of a virtual round trip changes the estimate alpha
        prague_gain: f64 = Row::above(0.0, 1.0).default(0.0625).implied()
            .source("draft-briscoe-iccrg-prague-congestion-control-04, 2.3.2"),
        /// Prague: how the virtual round-trip time follows from the smoothed one
        prague_rtt_rule: PragueRtt = Row::choice("max").implied()
            .source("draft-briscoe-iccrg-prague-congestion-control-04, 2.4.4"),
        /// Prague: the least virtual round-trip time, or what it adds; 0 makes rates depend on round-trip times as
        /// with DCTCP
        prague_rtt: Span = Row::span(Span::ZERO, Span::s(1)).default(Span::ms(25)).implied()
            .source("draft-briscoe-iccrg-prague-congestion-control-04, 2.4.4"),
        /// Prague: number of round trips after which the virtual round-trip time takes effect
        prague_rtt_from: u32 as u64 = Row::integer(0, ANY_COUNT).default(500).implied()
            .source("draft-briscoe-iccrg-prague-congestion-control-04, 2.4.4"),
        /// Prague: the smallest window, in segments, to which marks reduce; below one segment, a segment leaves in
        /// less than each round trip
        prague_least_window: f64 = Row::number(0.01, 2.0).default(2.0).implied()
            .source("RFC 9331, 4.3 (below 1 preferred); the reference implementation (2)"),
        /// Prague: the control whose rules apply to losses, and to marks that are not those of an L4S queue
        prague_classic: PragueClassic = Row::choice("reno").implied()
            .source("draft-briscoe-iccrg-prague-congestion-control-04, 2.4.1"),
        /// Prague: the rules of `prague_classic` also apply to marks if delays show that the queue that marks is not
        /// an L4S queue
        prague_fallback: bool = Row::flag(false).implied()
            .source("RFC 9331, 4.3; Briscoe and Ahmed 2019; off in the reference implementation"),
        /// Prague: variation of the round-trip time from which on it suggests a queue that is not an L4S queue
        prague_fallback_variation: Span = Row::span(Span::us(1), Span::s(1)).default(Span::us(750)).implied()
            .source("Briscoe and Ahmed 2019, V0 (recalled)"),
        /// Prague: increase of the round-trip time from which on it suggests a queue that is not an L4S queue
        prague_fallback_queue: Span = Row::span(Span::us(1), Span::s(1)).default(Span::ms(2)).implied()
            .source("Briscoe and Ahmed 2019, D0 (recalled)"),
        /// what may end slow start before a loss; only with `sack_pipe = "segments"`
        slow_start_exit: SlowStartExit = Row::words()
            .auto("hystart if CUBIC grows as in Linux and the sender tracks each segment, else none")
            .source("RFC 9406; Ha and Rhee 2011"),
        /// the quantity that is halved, or multiplied by `cubic_beta`, when congestion is detected
        reduction_base: ReductionBase = Row::choice("flight").source("RFC 5681, equation 4"),
        /// what remains of the window after a reduction or a pause is cut to whole segments; with
        /// `reduction_base = "window"`, this is always so
        whole_segments: bool = Row::of(Kind::Flag).auto(AS_LINUX).implied().source("RFC 5681, equation 4 (bytes); Linux"),
        /// number of duplicate ACKs that start a fast retransmit
        dupthresh: u32 as u64 = Row::integer(1, 1000).default(3).aliases(&[ns2("numdupacks_")])
            .source("RFC 5681, 3.2"),
        /// each transmission has a number of its own, which acknowledgments report, so that no acknowledgment of
        /// repeated data is ambiguous; losses are detected and repaired as in QUIC: after `dupthresh` later packets or
        /// by `time_threshold`, and with probes instead of timeouts (`delayed_ack` is max_ack_delay)
        packet_numbers: bool = Row::flag(false).implied().source("RFC 9002, 2 to 7; RFC 9000, 13.2"),
        /// with `packet_numbers`, a packet is lost this many round-trip times after it left if a later one has
        /// been acknowledged
        time_threshold: f64 = Row::number(1.0, 10.0).default(1.125).implied()
            .source("RFC 9002, 6.1.2 (kTimeThreshold)"),
        /// with `packet_numbers`, the window shrinks to two segments if everything sent in this many probe
        /// timeouts is lost
        persistent_congestion: u32 as u64 = Row::integer(1, 1000).default(3).implied()
            .source("RFC 9002, 7.6.1 (kPersistentCongestionThreshold)"),
        /// with SACK and `sack_pipe = "segments"`, as many SACKed segments as have been seen out of order replace
        /// `dupthresh` if they are more, up to this number; 0 keeps `dupthresh`
        reordering_most: u32 as u64 = Row::integer(0, 1000).default(0).implied()
            .source("RFC 5681, 3.2 (three); Linux, net.ipv4.tcp_max_reordering"),
        /// data that is SACKed opens the window like acknowledged data while more than `dupthresh` segments are
        /// considered reordered (`reordering_most`)
        reordered_opens: bool = Row::flag(false).implied()
            .source("RFC 5681, 3.1 (cumulative acknowledgments only); Linux"),
        /// how losses are repaired without a timeout
        recovery: Recovery = Row::choice("newreno").source("RFC 5681, 3.2; RFC 6582; RFC 6675"),
        /// how a sender with SACK decides how much data to send in recovery, and which data
        sack_pipe: SackPipe = Row::choice("rfc6675").source("RFC 6675; Fall and Floyd 1996"),
        /// losses are inferred from the times at which segments were sent, not from `dupthresh`; only with
        /// `sack_pipe = "segments"`
        rack: bool = Row::flag(false).source("RFC 8985, 6"),
        /// a segment is sent after two round trips without an acknowledgment, before the retransmission
        /// timer fires; only with `sack_pipe = "segments"`
        tail_loss_probe: bool = Row::flag(false).source("RFC 8985, 7"),
        /// the segment that a tail loss probe repeats counts as in flight once more
        probe_counts: bool = Row::of(Kind::Flag).auto("false if reduction_base is congestion_window").implied().source("RFC 8985, 7.3 (as other copies); not in Linux"),
        /// after losses and marks, the window is reduced gradually, as data arrives; only with
        /// `sack_pipe = "segments"`
        prr: bool = Row::flag(false).source("RFC 9937, 6"),
        /// the amount of data from which a gradual reduction begins (RecoverFS)
        prr_base: PrrBase = Row::words().auto("congestion_window if reduction_base is, else flight").implied().source("RFC 9937, 6; Linux"),
        /// with SACK, a recovery that begins during the reduction for a mark ends where that reduction would have
        /// ended, instead of when all data sent before the recovery is acknowledged
        recovery_ends_with_mark: bool = Row::of(Kind::Flag).auto(AS_LINUX).implied()
            .source("RFC 6675, 5 (RecoveryPoint); Linux"),
        /// segments are tracked individually even without SACK: a duplicate ACK counts as the arrival of
        /// one segment; only with `sack_pipe = "segments"` and `recovery = "newreno"`
        count_duplicates: bool = Row::flag(false).source("RFC 9937, 6 (DeliveredData without SACK)"),
        /// a timeout is undone if later acknowledgments show that it was spurious; only with
        /// `sack_pipe = "segments"`
        frto: bool = Row::flag(false).source("RFC 5682, 3"),
        /// a spurious timeout during a gradual reduction restores the window from before this reduction, instead of
        /// that from before the timeout
        undo_to_reduction: bool = Row::of(Kind::Flag).auto(AS_LINUX).implied().source("RFC 4015, 3.2 (pipe_prev); Linux"),
        /// acknowledgments of retransmitted data also measure the round-trip time; only with
        /// `sack_pipe = "segments"`
        timestamps: bool = Row::flag(false).source("RFC 7323, 4.1"),
        /// every data segment carries its time stamp, and a segment older than the latest one in order is discarded
        /// (PAWS); without this, only retransmissions carry one, which measures the same while the network keeps
        /// segments in order; only with `timestamps` and `sack_pipe = "segments"`
        paws: bool = Row::flag(false).implied().source("RFC 7323, 5.3"),
        /// a SACK option first reports data that has arrived twice; with `rack`, a sender then allows for
        /// more reordering (RFC 8985, 6.2)
        dsack: bool = Row::flag(false).source("RFC 2883, 4"),
        /// a report of a duplicate widens RACK's allowance for reordering only if reordering has been seen and the
        /// duplicate is not that of a tail loss probe
        dsack_needs_reordering: bool = Row::flag(false).implied()
            .source("RFC 8985, 6.2, step 4 (every report); Linux"),
        /// a duplicate that is reported opens the window, and lets data leave during a reduction, like a segment that
        /// has arrived for the first time
        dsack_delivers: bool = Row::flag(false).implied().source("RFC 9937, 6 (DeliveredData); Linux"),
        /// a reduction is undone when all data retransmitted since then is reported to have arrived twice;
        /// only with `dsack` and `sack_pipe = "segments"`
        dsack_undo: bool = Row::flag(false).source("RFC 3708, 3; RFC 9438, 4.9.2"),
        /// a reduction is undone when timestamps show that the acknowledgment of retransmitted data was
        /// sent for the first copy; only with `timestamps` and `sack_pipe = "segments"`
        eifel: bool = Row::flag(false).source("RFC 3522, 3.2; RFC 4015"),
        /// largest number of blocks in a SACK option
        sack_blocks: u32 as u64 = Row::integer(1, MAX_BLOCKS as u64).default(MAX_BLOCKS as u64)
            .aliases(&[ns2("maxSackBlocks_")])
            .source("RFC 2018, 3 (4 without timestamps)"),
        /// number of reported blocks that a receiver remembers for later options
        sack_memory: SackMemory = Row::choice("four").source("RFC 2018, 4 (as many as fit); ns-2's sink"),
        /// bytes of a SACK option besides its blocks
        sack_overhead: u32 as Bytes = Row::bytes(0, 8).default(Bytes::new(4))
            .source("RFC 2018, 3 (kind, length, padding)"),
        /// a new segment is sent on each duplicate ACK before the fast retransmit
        limited_transmit: bool = Row::flag(true).aliases(&[switch("singledup_")]).source("RFC 3042"),
        /// which duplicate ACKs may start a fast retransmit
        fast_retransmit_guard: FastRetransmitGuard = Row::words().auto("rfc5681 for reno, else rfc6582")
            .source("RFC 5681, 3.2; RFC 6582, 3.2"),
        /// a fast retransmit restarts the retransmission timer
        fast_retransmit_restarts_timer: bool = Row::flag(false)
            .source("RFC 6298, 5 (restarts on new ACKs only)"),
        /// which partial ACKs restart the retransmission timer
        partial_ack: PartialAck = Row::choice("impatient").source("RFC 6582, 3.2 and 4"),
        /// the congestion window during fast recovery, after a partial ACK
        recovery_window: RecoveryWindow = Row::choice("rfc6582").implied()
            .source("RFC 6582, 3.2; ns-2's FullTcp"),
        /// the congestion window when fast recovery ends
        recovery_exit: RecoveryExit = Row::choice("flight").source("RFC 6582, 3.2"),
        /// largest number of segments sent for one ACK in NewReno's fast recovery
        recovery_burst: u32 as Limit = limit(1).default(Limit::Unlimited).source("none in RFC 6582"),
        /// largest number of segments sent for one ACK
        max_burst: u32 as Limit = limit(1).default(Limit::Unlimited)
            .aliases(&[ns2("maxburst_").reads(Reading::ZeroIsUnlimited)])
            .source("none in RFC 5681"),
        /// segments are spread over time, at a rate that follows from the window and the round-trip time;
        /// only with `sack_pipe = "segments"`
        pacing: bool = Row::flag(false).source("RFC 9002, 7.7; Linux's fq"),
        /// the pacing rate, in windows per smoothed round-trip time
        pacing_gain: f64 = Row::above(0.0, 100.0).default(1.2).source("Linux, net.ipv4.tcp_pacing_ca_ratio"),
        /// the pacing rate while the window is below half of `ssthresh`, in windows per smoothed round-trip
        /// time
        pacing_gain_slow_start: f64 = Row::above(0.0, 100.0).default(2.0)
            .source("Linux, net.ipv4.tcp_pacing_ss_ratio"),
        /// the first 10 segments are not paced, and a burst that leaves late shortens the wait for the next one,
        /// by at most half
        pacing_credit: bool = Row::flag(false).implied()
            .source("RFC 9002, 7.7 (the initial window may leave together); Linux, sch_fq"),
        /// number of paced segments that leave together
        pacing_burst: u32 as u64 = count(1).default(2)
            .source("RFC 9002, 7.7 (allows bursts); Linux, net.ipv4.tcp_min_tso_segs"),
        /// number of segments that leave together: new data waits until that many fit into the window, a
        /// third of the window is free, or all remaining data fits; only with `sack_pipe = "segments"`
        burst: u32 as u64 = Row::integer(1, 64).default(1)
            .source("none in RFC 5681; hosts with segmentation offload (TSO)"),
        /// a burst has as many segments as leave in this time at the pacing rate, but at least two and at
        /// most `burst`; if this is 0, it always has `burst` segments
        burst_time: Span = Row::span(Span::ZERO, Span::s(1)).default(Span::ms(1))
            .source("Linux, whose bursts last about 1 ms and have at least two segments"),
        /// the last segment of a burst of several, and the last one that the application has written, carry PSH; only
        /// with `sack_pipe = "segments"`
        push: bool = Row::flag(false).implied()
            .source("RFC 9293, 3.9.1.2 (the last buffered segment); Linux, of whose bursts each carries it"),
        /// how long new data waits until a burst has room
        burst_wait: BurstWait = Row::choice("room").implied().source("none in any RFC; Linux"),
        /// segments that the windows permit wait for a time drawn uniformly between 0 and this value, and
        /// then all leave together; acknowledgments, fast retransmissions and limited transmit do not wait
        send_jitter: Span = Row::span(Span::ZERO, Span::s(3600)).default(Span::ZERO)
            .aliases(&[seconds("overhead_")])
            .source("none in any RFC; ns-2's overhead_"),
        /// ssthresh at a retransmission timeout
        timeout_ssthresh: TimeoutSsthresh = Row::choice("rfc5681").source("RFC 5681, 3.1"),
        /// arithmetic of the retransmission timer
        rtt_arithmetic: RttArithmetic = Row::choice("rfc6298").source("RFC 6298, 2"),
        /// an acknowledgment that measures the round-trip time restarts the timer with the new estimate,
        /// not with the previous one
        timer_uses_sample: bool = Row::flag(true).implied()
            .source("RFC 6298, 5.3 (after 2.3); ns-2's FullTcp does not"),
        /// each acknowledgment of new data ends the back-off of the timeout, even if it measures no
        /// round-trip time
        ack_ends_backoff: bool = Row::flag(false).implied()
            .source("RFC 6298, 5 (only a sample does); ns-2's FullTcp"),
        /// clock granularity G, or the tick of the ns-2 arithmetic
        granularity: Span = Row::span(Span::ZERO, Span::s(10)).default(Span::ms(1))
            .aliases(&[seconds("tcpTick_")])
            .source("RFC 6298, 4 (100 ms or finer)"),
        /// clock tick of a kernel's timers: a timer fires at the tick after its expiry, a timer of 63 ticks
        /// or more fires only at every eighth tick, and so on for each level of a timing wheel; timers for
        /// probes and reordering wait two more ticks (with `sack_pipe = "segments"`), and delayed
        /// acknowledgments measure gaps in ticks; timers are exact if this is 0
        timer_tick: Span = Row::span(Span::ZERO, Span::s(1)).default(Span::ZERO)
            .source("none in RFC 6298; Linux, CONFIG_HZ; Varghese and Lauck 1987"),
        /// how far the ns-2 arithmetic's clock is into a tick at time 0
        tick_phase: Span = Row::span(Span::ZERO, Span::s(10)).default(Span::ZERO)
            .source("ns-2 draws it uniformly within a tick"),
        /// whether all clocks of the ns-2 arithmetic have the phase `tick_phase`, or each endpoint of each
        /// flow draws a phase of its own
        tick_phases: TickPhases = Row::choice("same").implied().source("ns-2 draws one for each agent"),
        /// minimum retransmission timeout
        min_rto: Span = Row::span(Span::ZERO, Span::s(60)).default(Span::s(1)).aliases(&[seconds("minrto_")])
            .source("RFC 6298, 2.4"),
        /// retransmission timeout before the first round-trip sample
        initial_rto: Span = Row::span(Span::ms(1), Span::s(60)).default(Span::s(1))
            .aliases(&[seconds("rtxcur_init_")])
            .source("RFC 6298, 2.1"),
        /// timeout for data after the SYN has timed out, until there is a round-trip sample
        syn_fallback_rto: Span = Row::span(Span::ms(1), Span::s(60)).default(Span::s(3))
            .source("RFC 6298, 5.7"),
        /// upper bound on the backed-off timeout
        max_rto: Span = Row::span(Span::s(1), Span::s(3600)).default(Span::s(60))
            .aliases(&[seconds("maxrto_")])
            .source("RFC 6298, 2.5 (at least 60 s)"),
        /// in-order segments per acknowledgment; 1 disables delayed acknowledgments
        ack_every: u32 as u64 = Row::integer(1, 255).default(2).source("RFC 5681, 4.2"),
        /// what `ack_every` counts: segments of any size, or bytes (as many as that number of full segments
        /// contains)
        ack_counting: AckCounting = Row::choice("segments")
            .source("RFC 5681, 4.2 (full-sized segments); ns-2's FullTcp"),
        /// maximum delay of an acknowledgment
        delayed_ack: Span = Row::span(Span::ZERO, Span::ms(500)).default(Span::ms(200))
            .aliases(&[seconds("interval_")])
            .source("RFC 5681, 4.2 (at most 500 ms)"),
        /// whether a delayed acknowledgment is sent once `delayed_ack` has passed since its segment
        /// arrived, or at the run's next whole multiple of `delayed_ack`
        delayed_ack_timer: DelayedAckTimer = Row::choice("one_shot")
            .source("RFC 5681, 4.2 (allows both); ns-2's FullTcp"),
        /// the delay of an acknowledgment adapts to the gaps between segments, in the range from
        /// `delayed_ack` to SRTT; only with `quick_acks_again`
        delayed_ack_adapts: bool = Row::flag(false).source("RFC 5681, 4.2 (at most 500 ms); Linux"),
        /// how long the fourth and later reports of a hole wait for further reports; the wait is at most a
        /// twentieth of SRTT, and there is none if this is 0 or `ack_every` is 1
        sack_delay: Span = Row::span(Span::ZERO, Span::s(1)).default(Span::ZERO)
            .source("RFC 5681, 4.2 (immediately); Linux"),
        /// how late the timer for waiting reports (`sack_delay`) fires
        sack_delay_slack: Span = Row::span(Span::ZERO, Span::s(1)).default(Span::ZERO)
            .source("Linux, net.ipv4.tcp_comp_sack_slack_ns"),
        /// largest number of reports that wait together
        sack_delay_most: u32 as u64 = Row::integer(0, 255).default(44)
            .source("Linux, net.ipv4.tcp_comp_sack_nr"),
        /// the acknowledgment of a FIN that follows data waits for `delayed_ack`, and reports no duplicates
        delay_fin_ack: bool = Row::flag(false).implied()
            .source("RFC 5681, 4.2 (allows it); Linux 7.3, in the kernel's script basic_server"),
        /// a duplicate of the newest in-order segment is acknowledged like a new segment
        delay_repeated_ack: bool = Row::flag(false)
            .source("RFC 9293, 3.10.7.4 (immediately); ns-2's DelAck sink delays it"),
        /// a segment with PSH is acknowledged immediately, unless the receiver has itself sent data within
        /// `delayed_ack` or waits for its acknowledgment
        ack_pushed: bool = Row::flag(false).implied().source("RFC 5681, 4.2 (allows it); Linux"),
        /// number of segments, starting with the first, that are acknowledged individually, whatever
        /// `ack_every` is
        quick_acks: u32 as u64 = Row::integer(0, 1 << 16).default(0).source("none in RFC 5681; Linux"),
        /// number of segments acknowledged individually after a pause longer than the timeout, or beginning
        /// with a duplicate segment; with ECN, two segments are also acknowledged individually, beginning
        /// with a segment whose CE mark starts an echo, or with one that is not ECN-capable; a segment with
        /// CWR is acknowledged immediately; 0 disables all of these
        quick_acks_again: u32 as u64 = Row::integer(0, 1 << 16).default(0)
            .source("RFC 5681, 4.2 (allows it); Linux"),
        /// number of segments, starting with the first, that would let the receive window of a Linux host
        /// grow: each is acknowledged immediately and uses up none of `quick_acks`; with SACK, data beyond
        /// a hole also counts; only with `quick_acks_again`
        quick_acks_growing: u32 as u64 = Row::integer(0, 1 << 16).default(0)
            .source("none in RFC 5681; Linux, where net.ipv4.tcp_rmem decides"),
        /// whether waiting data may carry the third segment of the handshake
        handshake_ack: HandshakeAck = Row::choice("separate").source("RFC 9293, 3.5"),
        /// whether an acknowledgment that is due immediately is sent with the application's answer, or
        /// before the application runs
        prompt_ack: PromptAck = Row::choice("with_answer").source("RFC 1122, 4.2.3.2 (allows both); Linux"),
        /// a partial segment is held back while data is outstanding
        nagle: bool = Row::flag(false).source("RFC 9293, 3.7.4"),
        /// what holds a partial segment back: any outstanding data, or only an outstanding partial segment
        /// (with `sack_pipe = "segments"`)
        nagle_rule: NagleRule = Row::choice("rfc1122").source("RFC 1122, 4.2.3.4"),
        /// a segment of one byte waits until all data before it is acknowledged
        hold_last_byte: bool = Row::flag(false).implied().source("none in any RFC; ns-2's FullTcp"),
        /// whether the FIN always leaves with the last data, or does so only if no other data is
        /// outstanding and otherwise leaves separately once all data is acknowledged
        fin: Fin = Row::choice("with_data").source("RFC 9293, 3.10.4 (allows both); ns-2's FullTcp"),
        /// the congestion window after a pause
        idle_restart: IdleRestart = Row::choice("rfc5681").source("RFC 5681, 4.1"),
        /// an acknowledgment opens the window only if it was full or, in slow start, less than twice as large as
        /// the data sent; only with `sack_pipe = "segments"`
        window_validation: bool = Row::of(Kind::Flag).auto("true if idle_restart is rfc2861").implied()
            .source("RFC 2861, 3.2; RFC 7661, 4.3; Linux"),
        /// explicit congestion notification is negotiated
        ecn: bool = Row::flag(false).aliases(&[switch("ecn_")]).source("RFC 3168"),
        /// how marks are reported to the sender
        ecn_feedback: EcnFeedback = Row::choice("classic").implied().source("RFC 3168; RFC 9768"),
        /// when a segment has the AccECN option; only with `ecn_feedback = "accurate"`
        ecn_option: EcnOption = Row::choice("simple").implied().source("RFC 9768, 3.2.3.3"),
        /// a side sends no AccECN option, except on a SYN-ACK, before it has received one
        ecn_option_if_heard: bool = Row::flag(false).implied()
            .source("RFC 9768, 3.2.3.2.3 (it should send them); Linux"),
        /// what a side tests before it relies on code points and feedback; if something on the path changes them,
        /// nothing is ECN-capable from then on; only with `ecn_feedback = "accurate"`
        ecn_path_test: EcnPathTest = Row::choice("handshake").implied().source("RFC 9768, 3.2.2.3 and 3.2.2.4 (advise each)"),
        /// data without CE is also acknowledged at once if the packet before it had CE; only with
        /// `ecn_feedback = "accurate"`
        ack_each_change: bool = Row::flag(false).implied()
            .source("RFC 9768, 3.2.2.5.1 (only CE after a packet without); Linux 7.3: measured"),
        /// outside a reduction, an acknowledgment with an ECN echo also opens the window, as after a timeout; only
        /// with `sack_pipe = "segments"`
        echo_opens: bool = Row::of(Kind::Flag).auto(AS_LINUX).implied().source("RFC 3168, 6.1.2 (must not); Linux"),
        /// the reaction to an ECN echo at a congestion window of one segment
        ecn_at_one: EcnAtOne = Row::choice("wait_for_rto").source("RFC 3168, 6.1.2"),
        /// when an active side stops requesting ECN in the SYNs that it retransmits; with
        /// `ecn_feedback = "accurate"`, this is after the second timeout of the SYN, and a passive side, too, stops
        /// agreeing after the second timeout of its SYN-ACK
        ecn_fallback: EcnFallback = Row::choice("off").source("RFC 3168, 6.1.1.1 (allows each)"),
        /// CE on data outside the receive window is echoed
        echo_outside_window: bool = Row::flag(false)
            .source("RFC 3168, 6.1.5 (ignores it); ns-2's sink echoes it"),
        /// retransmitted data is ECN-capable
        ect_on_retransmission: bool = Row::flag(false).source("RFC 3168, 6.1.5"),
        /// a data segment with FIN is ECN-capable
        ect_on_fin: bool = Row::flag(true).source("RFC 3168, 6.1.2 (data segments are)"),
        /// a FIN without data is ECN-capable
        ect_on_bare_fin: bool = Row::flag(false).implied()
            .source("RFC 3168, 6.1.2 (data segments are); draft-ietf-tcpm-generalized-ecn, 3.2.5"),
        /// a RST is ECN-capable
        ect_on_reset: bool = Row::flag(false).implied()
            .source("RFC 3168, 6.1.2 (data segments are); draft-ietf-tcpm-generalized-ecn, 3.2.6"),
        /// an acknowledgment without data is ECN-capable, also one with FIN; only with `ecn_feedback = "accurate"`
        /// and `recovery = "sack"`
        ect_on_ack: bool = Row::flag(false).implied()
            .source("RFC 3168, 6.1.4 (must not be); draft-ietf-tcpm-generalized-ecn, 3.2.3; Linux"),
        /// the SYN is ECN-capable, like the first packet in a simulator without a handshake; CE on it is
        /// not echoed
        ect_on_syn: bool = Row::flag(false).source("RFC 3168, 6.1.1 (must not be)"),
        /// the SYN-ACK is ECN-capable
        ect_on_syn_ack: bool = Row::flag(false).aliases(&[switch("ecn_syn_")])
            .source("RFC 3168, 6.1.1; RFC 5562"),
        /// a retransmission may carry CWR
        cwr_on_retransmission: bool = Row::flag(false).aliases(&[switch("SetCWRonRetransmit_")])
            .source("RFC 3168, 6.1.2 (first new data)"),
        /// a FIN or an acknowledgment without data may carry CWR
        cwr_without_data: bool = Row::flag(false).implied()
            .source("RFC 3168, 6.1.2 (first new data); ns-2's FullTcp"),
        /// number of retransmissions of a SYN before giving up
        syn_retries: u32 as Limit = limit(0).default(Limit::At(8)).source("RFC 9293, 3.8.3 (3 minutes)"),
        /// number of timeouts of a SYN, starting with the first, after which the timeout is not doubled
        syn_linear_timeouts: u32 as u64 = Row::integer(0, 127).default(0).implied()
            .source("RFC 6298, 5.5 (doubles each time); Linux 6.5 and later, net.ipv4.tcp_syn_linear_timeouts"),
        /// a SYN that arrives again before the handshake is complete is answered with the SYN-ACK;
        /// otherwise, the SYN-ACK waits for its timer, and the SYN is acknowledged when the connection is
        /// established
        answer_repeated_syn: bool = Row::flag(true).implied()
            .source("RFC 9293, 3.8.1 and 3.10.7.4; ns-2's FullTcp does not"),
        /// after a lost SYN, the timeout stays backed off until the first round-trip sample
        keep_syn_backoff: bool = Row::of(Kind::Flag).auto("true if rtt_arithmetic is ns2").implied()
            .source("RFC 6298, 5.7 (false); ns-2"),
        /// an unacknowledged SYN-ACK is retransmitted after a timeout, not only when the SYN arrives again
        syn_ack_timer: bool = Row::flag(true).source("RFC 9293, 3.8.1; ns-2's sink has none"),
        /// number of consecutive timeouts before giving up
        data_retries: u32 as Limit = limit(0).default(Limit::At(12))
            .source("RFC 9293, 3.8.3 (100 s or more)"),
        /// length of TIME-WAIT
        time_wait: Span = Row::span(Span::ZERO, Span::s(3600)).default(Span::s(240))
            .source("RFC 9293, 3.4.2 (2 MSL)"),
    } derived {
        /// The number of segments after which an acknowledgment is sent immediately; if `ack_rules` is
        /// true, a number that is too large to be reached.
        pub(crate) ack_at: u32,
        /// Whether delayed acknowledgments follow more rules than `ack_every` and `delayed_ack`.
        pub(crate) ack_rules: bool,
        /// The flags [`REMEMBERS`](super::REMEMBERS) and [`BY_SEGMENTS`](super::BY_SEGMENTS). If either is
        /// set, an acknowledgment of new data does more than open Reno's window.
        pub(crate) more_than_reno: Bits,
        /// Whether the congestion control is called for each acknowledgment.
        pub(crate) hears: bool,
        /// Whether each change of CE is acknowledged immediately (RFC 8257, 3.2).
        pub(crate) exact_echo: bool,
        /// Whether marks are counted if the other side agrees (`ecn_feedback`).
        pub(crate) accurate: bool,
        /// The alpha with which AIMD(alpha, `cubic_beta`) has the same mean window as Reno (RFC 9438, 4.3).
        pub(crate) cubic_alpha: f64,
        /// The minimum time by which a retransmission timeout exceeds the smoothed round-trip time.
        pub(crate) least_variance: Span,
    }
}
