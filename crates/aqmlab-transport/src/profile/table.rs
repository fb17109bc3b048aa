//! The table of TCP parameters. Its default values form the profile `rfc`.

use aqmlab_params::Default::{Auto, Bytes, Choice, Flag, Integer, Number, Span as Time, Unlimited};
use aqmlab_params::{Alias, Kind, Param, Reading};
use aqmlab_units::Span;

use super::words;

const YES_NO: Kind = Kind::Flag;
const ANY_COUNT: u64 = u32::MAX as u64;

const fn count(min: u64) -> Kind {
    Kind::Integer { min, max: ANY_COUNT }
}

const fn limit(min: u64) -> Kind {
    Kind::Limit { min, max: ANY_COUNT - 1 }
}

const fn time(min: Span, max: Span) -> Kind {
    Kind::Span { min, max }
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

const fn param(
    name: &'static str,
    kind: Kind,
    default: aqmlab_params::Default,
    aliases: &'static [Alias],
    source: &'static str,
    help: &'static str,
) -> Param {
    Param { name, kind, default, aliases, source, help }
}

/// Parameters that plans as data leave out unless a profile or the scenario sets them, so that plans
/// without them keep their digests. A new parameter whose default changes nothing belongs here.
pub const LEFT_OUT_BY_DEFAULT: &[&str] = &[
    "recovery_window",
    "timer_uses_sample",
    "hold_last_byte",
    "cwr_without_data",
    "answer_repeated_syn",
    "keep_syn_backoff",
    "ack_ends_backoff",
];

/// The parameters of a TCP endpoint, in the order in which `show` prints them.
#[rustfmt::skip]
pub static PARAMS: &[Param] = &[
    param("mss", Kind::Bytes { min: 1, max: 65_495 }, Bytes(1460), &[bytes("packetSize_"), bytes("segsize_")],
        "RFC 9293, 3.7.1; Ethernet", "payload of a full segment"),
    param("header", Kind::Bytes { min: 0, max: 1000 }, Bytes(40), &[bytes("tcpip_base_hdr_size_")],
        "RFC 791, RFC 9293", "bytes of IP and TCP headers in each segment"),
    param("initial_sequence", Kind::Integer { min: 0, max: ANY_COUNT }, Integer(0), &[],
        "RFC 9293, 3.4.1", "sequence number of the SYN"),
    param("max_window", count(1), Integer(1 << 20), &[ns2("window_")],
        "RFC 5681, 3.1", "largest number of segments in flight, whatever the congestion window is"),
    param("receive_window", Kind::Bytes { min: 1, max: 1 << 30 }, Bytes(1 << 30), &[],
        "RFC 7323, 2.3 (its largest)", "receive buffer advertised to the other side"),
    param("initial_window_rule", Kind::Choice(words::InitialWindowRule::WORDS), Choice("rfc5681"), &[],
        "RFC 5681, 3.1; RFC 6928, 2", "how `initial_window` follows from `mss` if it is not given"),
    param("initial_window", count(1), Auto("by `initial_window_rule` from mss, in whole segments"), &[ns2("windowInit_")],
        "RFC 5681, 3.1; RFC 3390; RFC 6928", "number of segments in the first flight, and the most that a pause leaves"),
    param("syn_loss_window", Kind::Choice(words::SynLossWindow::WORDS), Choice("rfc5681"), &[],
        "RFC 5681, 3.1", "when a connection whose SYN or SYN-ACK was retransmitted begins with a window of one segment"),
    param("initial_ssthresh", Kind::Choice(words::InitialSsthresh::WORDS), Choice("unlimited"), &[],
        "RFC 5681, 3.1", "the initial slow-start threshold"),
    param("congestion", Kind::Open(words::Congestion::WORDS), Choice("reno"), &[],
        "RFC 5681; RFC 9438; RFC 8257", "the congestion control algorithm; `aqmlab live` also accepts the name of any algorithm that the kernel has"),
    param("increase", Kind::Choice(words::Increase::WORDS), Choice("per_ack"), &[],
        "RFC 5681, 3.1; RFC 3465", "how an acknowledgment opens the congestion window"),
    param("abc_limit", limit(1), Integer(2), &[],
        "RFC 3465, 2.2", "with byte counting, the largest number of segments by which one ACK opens the window in slow start"),
    param("cubic_growth", Kind::Choice(words::CubicGrowth::WORDS), Choice("rfc9438"), &[],
        "RFC 9438, 4.2 to 4.5", "CUBIC: how the window grows in congestion avoidance"),
    param("cubic_c", Kind::NumberAbove { above: 0.0, max: 1000.0 }, Number(0.4), &[],
        "RFC 9438, 5.1", "CUBIC: the constant C of its window function, in segments per second cubed"),
    param("cubic_beta", Kind::Number { min: 0.1, max: 0.99 }, Number(0.7), &[],
        "RFC 9438, 4.6", "CUBIC: the share of the flight that remains after a reduction"),
    param("cubic_fast_convergence", YES_NO, Flag(true), &[],
        "RFC 9438, 4.7", "CUBIC: if a reduction occurs before the window has regained its previous maximum, the new maximum is lowered further"),
    param("cubic_reno_friendly", YES_NO, Flag(true), &[],
        "RFC 9438, 4.3", "CUBIC: the window is at least as large as Reno's would be on average"),
    param("dctcp_gain", Kind::NumberAbove { above: 0.0, max: 1.0 }, Number(0.0625), &[],
        "RFC 8257, 4.2", "DCTCP: the weight g that a window's share of marks has in the estimate alpha"),
    param("slow_start_exit", Kind::Choice(words::SlowStartExit::WORDS), Auto("hystart if CUBIC grows as in Linux and the sender tracks each segment, else none"), &[],
        "RFC 9406; Ha and Rhee 2011", "what may end slow start before a loss; only with `sack_pipe = \"segments\"`"),
    param("reduction_base", Kind::Choice(words::ReductionBase::WORDS), Choice("flight"), &[],
        "RFC 5681, equation 4", "the quantity that is halved, or multiplied by `cubic_beta`, when congestion is detected"),
    param("dupthresh", Kind::Integer { min: 1, max: 1000 }, Integer(3), &[ns2("numdupacks_")],
        "RFC 5681, 3.2", "number of duplicate ACKs that start a fast retransmit"),
    param("recovery", Kind::Choice(words::Recovery::WORDS), Choice("newreno"), &[],
        "RFC 5681, 3.2; RFC 6582; RFC 6675", "how losses are repaired without a timeout"),
    param("sack_pipe", Kind::Choice(words::SackPipe::WORDS), Choice("rfc6675"), &[],
        "RFC 6675; Fall and Floyd 1996", "how a sender with SACK decides how much data to send in recovery, and which data"),
    param("rack", YES_NO, Flag(false), &[],
        "RFC 8985, 6", "losses are inferred from the times at which segments were sent, not from `dupthresh`; only with `sack_pipe = \"segments\"`"),
    param("tail_loss_probe", YES_NO, Flag(false), &[],
        "RFC 8985, 7", "a segment is sent after two round trips without an acknowledgment, before the retransmission timer fires; only with `sack_pipe = \"segments\"`"),
    param("prr", YES_NO, Flag(false), &[],
        "RFC 9937, 6", "after losses and marks, the window is reduced gradually, as data arrives; only with `sack_pipe = \"segments\"`"),
    param("count_duplicates", YES_NO, Flag(false), &[],
        "RFC 9937, 6 (DeliveredData without SACK)", "segments are tracked individually even without SACK: a duplicate ACK counts as the arrival of one segment; only with `sack_pipe = \"segments\"` and `recovery = \"newreno\"`"),
    param("frto", YES_NO, Flag(false), &[],
        "RFC 5682, 3", "a timeout is undone if later acknowledgments show that it was spurious; only with `sack_pipe = \"segments\"`"),
    param("timestamps", YES_NO, Flag(false), &[],
        "RFC 7323, 4.1", "acknowledgments of retransmitted data also measure the round-trip time; only with `sack_pipe = \"segments\"`"),
    param("dsack", YES_NO, Flag(false), &[],
        "RFC 2883, 4", "a SACK option first reports data that has arrived twice; with `rack`, a sender then allows for more reordering (RFC 8985, 6.2)"),
    param("dsack_undo", YES_NO, Flag(false), &[],
        "RFC 3708, 3; RFC 9438, 4.9.2", "a reduction is undone when all data retransmitted since then is reported to have arrived twice; only with `dsack` and `sack_pipe = \"segments\"`"),
    param("eifel", YES_NO, Flag(false), &[],
        "RFC 3522, 3.2; RFC 4015", "a reduction is undone when timestamps show that the acknowledgment of retransmitted data was sent for the first copy; only with `timestamps` and `sack_pipe = \"segments\"`"),
    param("sack_blocks", Kind::Integer { min: 1, max: crate::sack::MAX_BLOCKS as u64 }, Integer(crate::sack::MAX_BLOCKS as u64), &[ns2("maxSackBlocks_")],
        "RFC 2018, 3 (4 without timestamps)", "largest number of blocks in a SACK option"),
    param("sack_memory", Kind::Choice(words::SackMemory::WORDS), Choice("four"), &[],
        "RFC 2018, 4 (as many as fit); ns-2's sink", "number of reported blocks that a receiver remembers for later options"),
    param("sack_overhead", Kind::Bytes { min: 0, max: 8 }, Bytes(4), &[],
        "RFC 2018, 3 (kind, length, padding)", "bytes of a SACK option besides its blocks"),
    param("limited_transmit", YES_NO, Flag(true), &[switch("singledup_")],
        "RFC 3042", "a new segment is sent on each duplicate ACK before the fast retransmit"),
    param("fast_retransmit_guard", Kind::Choice(words::FastRetransmitGuard::WORDS), Auto("rfc5681 for reno, else rfc6582"), &[],
        "RFC 5681, 3.2; RFC 6582, 3.2", "which duplicate ACKs may start a fast retransmit"),
    param("fast_retransmit_restarts_timer", YES_NO, Flag(false), &[],
        "RFC 6298, 5 (restarts on new ACKs only)", "a fast retransmit restarts the retransmission timer"),
    param("partial_ack", Kind::Choice(words::PartialAck::WORDS), Choice("impatient"), &[],
        "RFC 6582, 3.2 and 4", "which partial ACKs restart the retransmission timer"),
    param("recovery_window", Kind::Choice(words::RecoveryWindow::WORDS), Choice("rfc6582"), &[],
        "RFC 6582, 3.2; ns-2's FullTcp", "the congestion window during fast recovery, after a partial ACK"),
    param("recovery_exit", Kind::Choice(words::RecoveryExit::WORDS), Choice("flight"), &[],
        "RFC 6582, 3.2", "the congestion window when fast recovery ends"),
    param("recovery_burst", limit(1), Unlimited, &[],
        "none in RFC 6582", "largest number of segments sent for one ACK in NewReno's fast recovery"),
    param("max_burst", limit(1), Unlimited, &[ns2("maxburst_").reads(Reading::ZeroIsUnlimited)],
        "none in RFC 5681", "largest number of segments sent for one ACK"),
    param("pacing", YES_NO, Flag(false), &[],
        "RFC 9002, 7.7; Linux's fq", "segments are spread over time, at a rate that follows from the window and the round-trip time; only with `sack_pipe = \"segments\"`"),
    param("pacing_gain", Kind::NumberAbove { above: 0.0, max: 100.0 }, Number(1.2), &[],
        "Linux, net.ipv4.tcp_pacing_ca_ratio", "the pacing rate, in windows per smoothed round-trip time"),
    param("pacing_gain_slow_start", Kind::NumberAbove { above: 0.0, max: 100.0 }, Number(2.0), &[],
        "Linux, net.ipv4.tcp_pacing_ss_ratio", "the pacing rate while the window is below half of `ssthresh`, in windows per smoothed round-trip time"),
    param("pacing_burst", count(1), Integer(2), &[],
        "RFC 9002, 7.7 (allows bursts); Linux, net.ipv4.tcp_min_tso_segs", "number of paced segments that leave together"),
    param("burst", Kind::Integer { min: 1, max: 64 }, Integer(1), &[],
        "none in RFC 5681; hosts with segmentation offload (TSO)", "number of segments that leave together: new data waits until that many fit into the window, a third of the window is free, or all remaining data fits; only with `sack_pipe = \"segments\"`"),
    param("burst_time", time(Span::ZERO, Span::s(1)), Time(Span::ms(1)), &[],
        "Linux, whose bursts last about 1 ms and have at least two segments", "a burst has as many segments as leave in this time at the pacing rate, but at least two and at most `burst`; if this is 0, it always has `burst` segments"),
    param("send_jitter", time(Span::ZERO, Span::s(3600)), Time(Span::ZERO), &[seconds("overhead_")],
        "none in any RFC; ns-2's overhead_", "segments that the windows permit wait for a time drawn uniformly between 0 and this value, and then all leave together; acknowledgments, fast retransmissions and limited transmit do not wait"),
    param("timeout_ssthresh", Kind::Choice(words::TimeoutSsthresh::WORDS), Choice("rfc5681"), &[],
        "RFC 5681, 3.1", "ssthresh at a retransmission timeout"),
    param("rtt_arithmetic", Kind::Choice(words::RttArithmetic::WORDS), Choice("rfc6298"), &[],
        "RFC 6298, 2", "arithmetic of the retransmission timer"),
    param("timer_uses_sample", YES_NO, Flag(true), &[],
        "RFC 6298, 5.3 (after 2.3); ns-2's FullTcp does not", "an acknowledgment that measures the round-trip time restarts the timer with the new estimate, not with the previous one"),
    param("ack_ends_backoff", YES_NO, Flag(false), &[],
        "RFC 6298, 5 (only a sample does); ns-2's FullTcp", "each acknowledgment of new data ends the back-off of the timeout, even if it measures no round-trip time"),
    param("granularity", time(Span::ZERO, Span::s(10)), Time(Span::ms(1)), &[seconds("tcpTick_")],
        "RFC 6298, 4 (100 ms or finer)", "clock granularity G, or the tick of the ns-2 arithmetic"),
    param("timer_tick", time(Span::ZERO, Span::s(1)), Time(Span::ZERO), &[],
        "none in RFC 6298; Linux, CONFIG_HZ; Varghese and Lauck 1987", "clock tick of a kernel's timers: a timer fires at the tick after its expiry, a timer of 63 ticks or more fires only at every eighth tick, and so on for each level of a timing wheel; timers for probes and reordering wait two more ticks (with `sack_pipe = \"segments\"`), and delayed acknowledgments measure gaps in ticks; timers are exact if this is 0"),
    param("tick_phase", time(Span::ZERO, Span::s(10)), Time(Span::ZERO), &[],
        "ns-2 draws it uniformly within a tick", "how far the ns-2 arithmetic's clock is into a tick at time 0"),
    param("min_rto", time(Span::ZERO, Span::s(60)), Time(Span::s(1)), &[seconds("minrto_")],
        "RFC 6298, 2.4", "minimum retransmission timeout"),
    param("initial_rto", time(Span::ms(1), Span::s(60)), Time(Span::s(1)), &[seconds("rtxcur_init_")],
        "RFC 6298, 2.1", "retransmission timeout before the first round-trip sample"),
    param("syn_fallback_rto", time(Span::ms(1), Span::s(60)), Time(Span::s(3)), &[],
        "RFC 6298, 5.7", "timeout for data after the SYN has timed out, until there is a round-trip sample"),
    param("max_rto", time(Span::s(1), Span::s(3600)), Time(Span::s(60)), &[seconds("maxrto_")],
        "RFC 6298, 2.5 (at least 60 s)", "upper bound on the backed-off timeout"),
    param("ack_every", Kind::Integer { min: 1, max: 255 }, Integer(2), &[],
        "RFC 5681, 4.2", "in-order segments per acknowledgment; 1 disables delayed acknowledgments"),
    param("ack_counting", Kind::Choice(words::AckCounting::WORDS), Choice("segments"), &[],
        "RFC 5681, 4.2 (full-sized segments); ns-2's FullTcp", "what `ack_every` counts: segments of any size, or bytes (as many as that number of full segments contains)"),
    param("delayed_ack", time(Span::ZERO, Span::ms(500)), Time(Span::ms(200)), &[seconds("interval_")],
        "RFC 5681, 4.2 (at most 500 ms)", "maximum delay of an acknowledgment"),
    param("delayed_ack_timer", Kind::Choice(words::DelayedAckTimer::WORDS), Choice("one_shot"), &[],
        "RFC 5681, 4.2 (allows both); ns-2's FullTcp", "whether a delayed acknowledgment is sent once `delayed_ack` has passed since its segment arrived, or at the run's next whole multiple of `delayed_ack`"),
    param("delayed_ack_adapts", YES_NO, Flag(false), &[],
        "RFC 5681, 4.2 (at most 500 ms); Linux", "the delay of an acknowledgment adapts to the gaps between segments, in the range from `delayed_ack` to SRTT; only with `quick_acks_again`"),
    param("sack_delay", time(Span::ZERO, Span::s(1)), Time(Span::ZERO), &[],
        "RFC 5681, 4.2 (immediately); Linux", "how long the fourth and later reports of a hole wait for further reports; the wait is at most a twentieth of SRTT, and there is none if this is 0 or `ack_every` is 1"),
    param("sack_delay_slack", time(Span::ZERO, Span::s(1)), Time(Span::ZERO), &[],
        "Linux, net.ipv4.tcp_comp_sack_slack_ns", "how late the timer for waiting reports (`sack_delay`) fires"),
    param("sack_delay_most", Kind::Integer { min: 0, max: 255 }, Integer(44), &[],
        "Linux, net.ipv4.tcp_comp_sack_nr", "largest number of reports that wait together"),
    param("delay_repeated_ack", YES_NO, Flag(false), &[],
        "RFC 9293, 3.10.7.4 (immediately); ns-2's DelAck sink delays it", "a duplicate of the newest in-order segment is acknowledged like a new segment"),
    param("quick_acks", Kind::Integer { min: 0, max: 1 << 16 }, Integer(0), &[],
        "none in RFC 5681; Linux", "number of segments, starting with the first, that are acknowledged individually, whatever `ack_every` is"),
    param("quick_acks_again", Kind::Integer { min: 0, max: 1 << 16 }, Integer(0), &[],
        "RFC 5681, 4.2 (allows it); Linux", "number of segments acknowledged individually after a pause longer than the timeout, or beginning with a duplicate segment; with ECN, two segments are also acknowledged individually, beginning with a segment whose CE mark starts an echo, or with one that is not ECN-capable; a segment with CWR is acknowledged immediately; 0 disables all of these"),
    param("quick_acks_growing", Kind::Integer { min: 0, max: 1 << 16 }, Integer(0), &[],
        "none in RFC 5681; Linux, where net.ipv4.tcp_rmem decides", "number of segments, starting with the first, that would let the receive window of a Linux host grow: each is acknowledged immediately and uses up none of `quick_acks`; with SACK, data beyond a hole also counts; only with `quick_acks_again`"),
    param("handshake_ack", Kind::Choice(words::HandshakeAck::WORDS), Choice("separate"), &[],
        "RFC 9293, 3.5", "whether waiting data may carry the third segment of the handshake"),
    param("prompt_ack", Kind::Choice(words::PromptAck::WORDS), Choice("with_answer"), &[],
        "RFC 1122, 4.2.3.2 (allows both); Linux", "whether an acknowledgment that is due immediately is sent with the application's answer, or before the application runs"),
    param("nagle", YES_NO, Flag(false), &[],
        "RFC 9293, 3.7.4", "a partial segment is held back while data is outstanding"),
    param("nagle_rule", Kind::Choice(words::NagleRule::WORDS), Choice("rfc1122"), &[],
        "RFC 1122, 4.2.3.4", "what holds a partial segment back: any outstanding data, or only an outstanding partial segment (with `sack_pipe = \"segments\"`)"),
    param("hold_last_byte", YES_NO, Flag(false), &[],
        "none in any RFC; ns-2's FullTcp", "a segment of one byte waits until all data before it is acknowledged"),
    param("fin", Kind::Choice(words::Fin::WORDS), Choice("with_data"), &[],
        "RFC 9293, 3.10.4 (allows both); ns-2's FullTcp", "whether the FIN always leaves with the last data, or does so only if no other data is outstanding and otherwise leaves separately once all data is acknowledged"),
    param("idle_restart", Kind::Choice(words::IdleRestart::WORDS), Choice("rfc5681"), &[],
        "RFC 5681, 4.1", "the congestion window after a pause"),
    param("ecn", YES_NO, Flag(false), &[switch("ecn_")],
        "RFC 3168", "explicit congestion notification is negotiated"),
    param("ecn_at_one", Kind::Choice(words::EcnAtOne::WORDS), Choice("wait_for_rto"), &[],
        "RFC 3168, 6.1.2", "the reaction to an ECN echo at a congestion window of one segment"),
    param("ecn_fallback", Kind::Choice(words::EcnFallback::WORDS), Choice("off"), &[],
        "RFC 3168, 6.1.1.1 (allows each)", "when an active side stops requesting ECN in the SYNs that it retransmits"),
    param("echo_outside_window", YES_NO, Flag(false), &[],
        "RFC 3168, 6.1.5 (ignores it); ns-2's sink echoes it", "CE on data outside the receive window is echoed"),
    param("ect_on_retransmission", YES_NO, Flag(false), &[],
        "RFC 3168, 6.1.5", "retransmitted data is ECN-capable"),
    param("ect_on_fin", YES_NO, Flag(true), &[],
        "RFC 3168, 6.1.2 (data segments are)", "a data segment with FIN is ECN-capable"),
    param("ect_on_syn", YES_NO, Flag(false), &[],
        "RFC 3168, 6.1.1 (must not be)", "the SYN is ECN-capable, like the first packet in a simulator without a handshake; CE on it is not echoed"),
    param("ect_on_syn_ack", YES_NO, Flag(false), &[switch("ecn_syn_")],
        "RFC 3168, 6.1.1; RFC 5562", "the SYN-ACK is ECN-capable"),
    param("cwr_on_retransmission", YES_NO, Flag(false), &[switch("SetCWRonRetransmit_")],
        "RFC 3168, 6.1.2 (first new data)", "a retransmission may carry CWR"),
    param("cwr_without_data", YES_NO, Flag(false), &[],
        "RFC 3168, 6.1.2 (first new data); ns-2's FullTcp", "a FIN or an acknowledgment without data may carry CWR"),
    param("syn_retries", limit(0), Integer(8), &[],
        "RFC 9293, 3.8.3 (3 minutes)", "number of retransmissions of a SYN before giving up"),
    param("answer_repeated_syn", YES_NO, Flag(true), &[],
        "RFC 9293, 3.8.1 and 3.10.7.4; ns-2's FullTcp does not", "a SYN that arrives again before the handshake is complete is answered with the SYN-ACK; otherwise, the SYN-ACK waits for its timer, and the SYN is acknowledged when the connection is established"),
    param("keep_syn_backoff", YES_NO, Auto("true if rtt_arithmetic is ns2"), &[],
        "RFC 6298, 5.7 (false); ns-2", "after a lost SYN, the timeout stays backed off until the first round-trip sample"),
    param("syn_ack_timer", YES_NO, Flag(true), &[],
        "RFC 9293, 3.8.1; ns-2's sink has none", "an unacknowledged SYN-ACK is retransmitted after a timeout, not only when the SYN arrives again"),
    param("data_retries", limit(0), Integer(12), &[],
        "RFC 9293, 3.8.3 (100 s or more)", "number of consecutive timeouts before giving up"),
    param("time_wait", time(Span::ZERO, Span::s(3600)), Time(Span::s(240)), &[],
        "RFC 9293, 3.4.2 (2 MSL)", "length of TIME-WAIT"),
];
