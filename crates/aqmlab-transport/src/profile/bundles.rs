//! The named bundles, each given by its differences from the table's defaults; the defaults
//! themselves are the profile `rfc`.
//!
//! Every value names its source. "Recalled" values come from the memory of people who know the
//! stack, because no document is available; "inferred" values follow from a paper's measurements.
//! Values of these two kinds may be wrong; all others can be verified.

use aqmlab_params::Default::{self as Given, Bytes, Choice, Flag, Integer, Span as Time, Unlimited};
use aqmlab_units::Span;

/// A named bundle of parameters.
#[derive(Clone, Copy, Debug)]
pub struct ProfileInfo {
    /// Its name in a scenario file.
    pub name: &'static str,
    /// Its meaning, in one sentence.
    pub summary: &'static str,
    /// Its differences from the defaults of [`super::PARAMS`].
    pub values: &'static [ProfileValue],
}

/// One parameter of a bundle.
#[derive(Clone, Copy, Debug)]
pub struct ProfileValue {
    /// The parameter.
    pub name: &'static str,
    /// Its value in this bundle.
    pub value: Given,
    /// Its sources, and how reliable they are.
    pub source: &'static str,
}

const fn value(name: &'static str, value: Given, source: &'static str) -> ProfileValue {
    ProfileValue { name, value, source }
}

pub(super) static PROFILES: &[ProfileInfo] = &[
    ProfileInfo {
        name: "rfc",
        summary: "the standards: RFC 5681 and 6582 with limited transmit, RFC 6298 with a minimum RTO of 1 s, \
                  RFC 3168, every second segment acknowledged",
        values: &[],
    },
    ProfileInfo {
        name: "ns2",
        summary: "ns-2.35 with its defaults, reproduced segment by segment: Agent/TCP/Newreno and Agent/TCPSink; \
                  with recovery `reno`, Agent/TCP/Reno; with `sack`, Agent/TCP/Sack1 and Agent/TCPSink/Sack1",
        values: NS2,
    },
    ProfileInfo {
        name: "ns2_fulltcp",
        summary: "ns-2.35's two-way agent with its defaults, Agent/TCP/FullTcp/Newreno: reproduced segment by segment \
                  without loss, with one or two losses, with marks, timeouts and lost SYNs, and in most cases with \
                  more losses",
        values: NS2_FULLTCP,
    },
    ProfileInfo {
        name: "freebsd4",
        summary: "the FreeBSD 4.x hosts of the web experiments (Le, Aikat, Jeffay, Smith 2003): NewReno with small \
                  windows; timestamps are left out",
        values: FREEBSD4,
    },
    ProfileInfo {
        name: "linux",
        summary: "Linux 4.x and later with `tcp_congestion_control=reno`; its sender is compared with Linux 6.1 \
                  segment by segment",
        values: LINUX,
    },
    ProfileInfo {
        name: "modern",
        summary: "the standards of today: CUBIC (RFC 9438) with HyStart++ (RFC 9406), an initial window of 10 (RFC 6928), \
                  RACK-TLP (RFC 8985), PRR (RFC 9937), F-RTO (RFC 5682), timestamps (RFC 7323); no ECN unless asked for",
        values: MODERN,
    },
];

#[rustfmt::skip]
static MODERN: &[ProfileValue] = &[
    value("mss", Bytes(1448), "RFC 7323, appendix A: Ethernet less 12 B of timestamps"),
    value("header", Bytes(52), "RFC 7323, appendix A"),
    value("initial_window_rule", Choice("rfc6928"), "RFC 6928, 2"),
    value("congestion", Choice("cubic"), "RFC 9438"),
    value("increase", Choice("byte_counting"), "RFC 9406, 4.2: by bytes acknowledged; RFC 3465"),
    value("abc_limit", Integer(8), "RFC 9406, 4.3: the value of L without pacing"),
    value("slow_start_exit", Choice("hystart++"), "RFC 9406"),
    value("recovery", Choice("sack"), "RFC 2018"),
    value("sack_pipe", Choice("segments"), "RFC 8985, 5: each segment is listed with its time"),
    value("sack_blocks", Integer(3), "RFC 7323, appendix A: as many as fit alongside the Timestamps option"),
    value("rack", Flag(true), "RFC 8985, 6"),
    value("tail_loss_probe", Flag(true), "RFC 8985, 7"),
    value("prr", Flag(true), "RFC 9937, 6"),
    value("frto", Flag(true), "RFC 5682, 3"),
    value("timestamps", Flag(true), "RFC 7323, 3"),
    value("dsack", Flag(true), "RFC 2883; RFC 8985, 6.2"),
    value("dsack_undo", Flag(true), "RFC 9438, 4.9.2; RFC 3708"),
    value("eifel", Flag(true), "RFC 9438, 4.9; RFC 3522"),
];

#[rustfmt::skip]
static NS2: &[ProfileValue] = &[
    value("mss", Bytes(1000), "ns-default.tcl, packetSize_"),
    value("receive_window", Bytes(1 << 30), "one-way agents have no receive window"),
    value("max_window", Integer(20), "ns-default.tcl, window_"),
    value("initial_window", Integer(2), "ns-default.tcl, windowInit_"),
    value("initial_ssthresh", Choice("max_window"), "tcp.cc, reset(): ssthresh_ is wnd_"),
    value("reduction_base", Choice("window"), "tcp.cc, slowdown(), CLOSE_SSTHRESH_HALF"),
    value("sack_pipe", Choice("ns2"), "tcp-sack1.cc"),
    value("sack_blocks", Integer(3), "ns-default.tcl, maxSackBlocks_"),
    value("sack_memory", Choice("sack_blocks"), "tcp-sink.cc: the stack of blocks has maxSackBlocks_ places"),
    value("sack_overhead", Bytes(0), "tcp-sink.cc, append_ack(): 8 bytes per block"),
    value("fast_retransmit_guard", Choice("ns2"), "tcp-newreno.cc, dupack_action()"),
    value("fast_retransmit_restarts_timer", Flag(true), "tcp-newreno.cc, dupack_action(): reset_rtx_timer"),
    value("recovery_exit", Choice("ns2"), "ns-default.tcl, exit_recovery_fix_ 0"),
    value("recovery_burst", Integer(2), "tcp-newreno.cc, recv(): send_much(0, 0, 2) in recovery"),
    value("timeout_ssthresh", Choice("ns2"), "tcp.cc, timeout_nonrtx()"),
    value("rtt_arithmetic", Choice("ns2"), "tcp.cc, rtt_update()"),
    value("granularity", Time(Span::ms(10)), "ns-default.tcl, tcpTick_"),
    value("min_rto", Time(Span::ms(200)), "ns-default.tcl, minrto_"),
    value("initial_rto", Time(Span::s(3)), "ns-default.tcl, rtxcur_init_"),
    value("max_rto", Time(Span::s(60)), "ns-default.tcl, maxrto_"),
    value("ack_every", Integer(1), "Agent/TCPSink acknowledges each segment"),
    value("delayed_ack", Time(Span::ms(100)), "ns-default.tcl, Agent/TCPSink/DelAck interval_; without effect at `ack_every` 1"),
    value("delay_repeated_ack", Flag(true), "tcp-sink.cc, DelAckSink"),
    value("handshake_ack", Choice("piggyback"), "one-way agents send no handshake ACK: data follows the ACK of the first packet"),
    value("idle_restart", Choice("ns2"), "ns-default.tcl, slow_start_restart_"),
    value("ecn_at_one", Choice("ns2"), "tcp.cc, slowdown() below a window of one"),
    value("echo_outside_window", Flag(true), "tcp-sink.cc, add_to_ack(): CE of each packet"),
    value("ect_on_retransmission", Flag(true), "tcp.cc, output(): each packet"),
    value("ect_on_fin", Flag(true), "tcp.cc, output(): each packet; there is no FIN"),
    value("cwr_on_retransmission", Flag(true), "ns-default.tcl, SetCWRonRetransmit_"),
    value("syn_retries", Unlimited, "tcp.cc: never gives up"),
    value("syn_ack_timer", Flag(false), "tcp-sink.cc: a sink has no timer except the one for delayed acknowledgments"),
    value("data_retries", Unlimited, "tcp.cc: never gives up"),
    value("time_wait", Time(Span::ZERO), "one-way agents have no TIME-WAIT"),
];

#[rustfmt::skip]
static NS2_FULLTCP: &[ProfileValue] = &[
    value("mss", Bytes(536), "ns-default.tcl, segsize_"),
    value("receive_window", Bytes(1 << 30), "tcp-full.cc has no receive window"),
    value("max_window", Integer(20), "ns-default.tcl, window_"),
    value("initial_window", Integer(2), "ns-default.tcl, windowInit_"),
    value("initial_ssthresh", Choice("max_window"), "tcp.cc, reset(): ssthresh_ is wnd_"),
    value("reduction_base", Choice("window"), "tcp.cc, slowdown(), CLOSE_SSTHRESH_HALF"),
    value("increase", Choice("segment_per_ack"), "tcp.cc, opencwnd(): one segment, whatever is acknowledged"),
    value("limited_transmit", Flag(false), "tcp-full.cc, recv(): nothing leaves before the third duplicate"),
    value("fast_retransmit_guard", Choice("rfc6582"), "tcp-full.cc, dupack_action(): none below `recover`"),
    value("fast_retransmit_restarts_timer", Flag(true), "tcp-full.cc, dupack_action(): set_rtx_timer"),
    value("partial_ack", Choice("slow_but_steady"), "tcp-full.cc, pack_action(): restarts the timer each time"),
    value("recovery_window", Choice("ssthresh"), "tcp-full.cc, pack_action() of Newreno: cwnd_ is ssthresh_, recover_ is maxseq_"),
    value("recovery_exit", Choice("ns2"), "tcp-full.cc, ack_action(): the window is ssthresh"),
    value("recovery_burst", Integer(2), "ns-default.tcl, recov_maxburst_"),
    value("timeout_ssthresh", Choice("inflated"), "tcp.cc, slowdown(): cwnd_ includes the duplicates"),
    value("rtt_arithmetic", Choice("ns2"), "tcp.cc, rtt_update()"),
    value("ack_ends_backoff", Flag(true), "tcp-full.cc: measured, backoff_ is 1 after any progress"),
    value("timer_uses_sample", Flag(false), "tcp-full.cc, newack(): set_rtx_timer() precedes rtt_update()"),
    value("granularity", Time(Span::ms(10)), "ns-default.tcl, tcpTick_"),
    value("min_rto", Time(Span::ms(200)), "ns-default.tcl, minrto_"),
    value("initial_rto", Time(Span::s(3)), "ns-default.tcl, rtxcur_init_"),
    value("max_rto", Time(Span::s(60)), "ns-default.tcl, maxrto_"),
    value("ack_every", Integer(1), "ns-default.tcl, segsperack_"),
    value("ack_counting", Choice("bytes"), "tcp-full.cc, need_send(): bytes since the last ACK"),
    value("delayed_ack", Time(Span::ms(100)), "ns-default.tcl, interval_"),
    value("delayed_ack_timer", Choice("periodic"), "tcp-full.cc, timeout(): its timer fires at whole multiples"),
    value("nagle", Flag(true), "ns-default.tcl, nodelay_ is false"),
    value("hold_last_byte", Flag(true), "tcp-full.cc, foutput(): measured with responses of whole segments and a byte"),
    value("fin", Choice("apart"), "tcp-full.cc, output(): a FIN waits for outstanding data"),
    value("idle_restart", Choice("without_least"), "tcp-full.cc, idle_restart(): t_rtxcur_, without minrto_"),
    value("ecn_at_one", Choice("ns2"), "tcp.cc, slowdown() below a window of one"),
    value("echo_outside_window", Flag(true), "tcp-full.cc, recv(): CE of each packet"),
    value("ect_on_retransmission", Flag(true), "tcp-full.cc, sendpacket(): all data"),
    value("cwr_on_retransmission", Flag(true), "ns-default.tcl, SetCWRonRetransmit_"),
    value("cwr_without_data", Flag(true), "tcp-full.cc, foutput(): whatever leaves next"),
    value("syn_loss_window", Choice("never"), "tcp-full.cc, recv(): cwnd_ is initial_window()"),
    value("answer_repeated_syn", Flag(false), "tcp-full.cc, recv() in SYN_RECEIVED: only the timer repeats the SYN-ACK"),
    value("keep_syn_backoff", Flag(false), "tcp-full.cc, recv(): the handshake resets t_backoff_"),
    value("syn_retries", Unlimited, "tcp-full.cc: never gives up"),
    value("data_retries", Unlimited, "tcp-full.cc: never gives up"),
    value("time_wait", Time(Span::ZERO), "tcp-full.cc: no timer ends TIME-WAIT"),
];

#[rustfmt::skip]
static FREEBSD4: &[ProfileValue] = &[
    value("receive_window", Bytes(16_384), "recalled: net.inet.tcp.recvspace of 16 KB in the experiments"),
    value("max_window", Integer(11), "recalled: net.inet.tcp.sendspace of 16 KB, in whole segments of 1460 B"),
    value("initial_window", Integer(2), "inferred: slowstart_flightsize is 1, and the ACK of a server's SYN opens the window by one; the papers say 1 or 2"),
    value("reduction_base", Choice("window"), "tcp_input.c: half of min(snd_wnd, snd_cwnd) in whole segments"),
    value("limited_transmit", Flag(false), "recalled: net.inet.tcp.rfc3042 came with 4.9"),
    value("fast_retransmit_restarts_timer", Flag(true), "tcp_input.c: the timer is stopped, and started again with the retransmission"),
    value("partial_ack", Choice("slow_but_steady"), "tcp_input.c, tcp_newreno_partial_ack(): restarts the timer each time"),
    value("granularity", Time(Span::ms(10)), "HZ of 100; the timer itself is not rounded up to ticks here"),
    value("min_rto", Time(Span::s(1)), "tcp_timer.h, TCPTV_MIN; response times in Le et al. show steps of 1 s"),
    value("initial_rto", Time(Span::s(3)), "tcp_timer.h, TCPTV_RTOBASE"),
    value("max_rto", Time(Span::s(64)), "tcp_timer.h, TCPTV_REXMTMAX"),
    value("ack_every", Integer(2), "tcp_input.c: every second segment"),
    value("delayed_ack", Time(Span::ms(100)), "tcp_timer.h, TCPTV_DELACK (net.inet.tcp.delacktime)"),
    value("nagle", Flag(true), "tcp_output.c: unless TCP_NODELAY is set"),
    value("idle_restart", Choice("rfc5681"), "inferred: `freebsd` is the kernel's rule (one RTO after the last arrival, and a request is one); here, the restart comes one RTO after the last transmission"),
    value("ecn_at_one", Choice("keep"), "inferred: a sender with the ALTQ patches for ECN does not wait (S. Floyd's ECN page; the BLUE authors say the same of FreeBSD in their testbed)"),
    value("syn_retries", Integer(4), "tcp_timer.h, TCPTV_KEEP_INIT of 75 s: timeouts of 3, 6, 12 and 24 s fit into it; later 4.x versions do not double at first"),
    value("data_retries", Integer(12), "tcp_timer.h, TCP_MAXRXTSHIFT"),
    value("time_wait", Time(Span::s(60)), "tcp_timer.h, 2 TCPTV_MSL"),
];

#[rustfmt::skip]
static LINUX: &[ProfileValue] = &[
    value("mss", Bytes(1448), "Ethernet less 12 B of timestamps (net.ipv4.tcp_timestamps)"),
    value("header", Bytes(52), "with 12 B of timestamps"),
    value("receive_window", Bytes(6_291_456), "the largest value in net.ipv4.tcp_rmem; here, the window has this size from the start"),
    value("initial_window", Integer(10), "TCP_INIT_CWND: of any size"),
    value("syn_loss_window", Choice("linux"), "measured; tcp_input.c, tcp_init_transfer()"),
    value("increase", Choice("byte_counting"), "tcp_cong.c, tcp_reno_cong_avoid(): by segments acknowledged"),
    value("cubic_growth", Choice("linux"), "measured; Ha, Rhee, Xu 2008, figure 2: the window grows by whole segments, each after a count of acknowledged segments that follows from the minimum round-trip time"),
    value("reduction_base", Choice("congestion_window"), "measured: of 40 segments, 20 remain after a reduction; at least two always remain"),
    value("abc_limit", Unlimited, "measured: an acknowledgment of 20 segments opens the window by 20"),
    value("recovery", Choice("sack"), "net.ipv4.tcp_sack"),
    value("sack_pipe", Choice("segments"), "measured: SACKed data is not retransmitted after a timeout"),
    value("rack", Flag(true), "net.ipv4.tcp_recovery"),
    value("tail_loss_probe", Flag(true), "net.ipv4.tcp_early_retrans"),
    value("prr", Flag(true), "measured: every second acknowledgment releases a segment"),
    value("count_duplicates", Flag(true), "measured: the window is reduced as gradually without SACK as with it"),
    value("frto", Flag(true), "net.ipv4.tcp_frto"),
    value("timestamps", Flag(true), "net.ipv4.tcp_timestamps"),
    value("dsack", Flag(true), "net.ipv4.tcp_dsack"),
    value("dsack_undo", Flag(true), "net.ipv4.tcp_dsack"),
    value("eifel", Flag(true), "measured: a late segment undoes a reduction before DSACK does"),
    value("sack_blocks", Integer(3), "as many as fit alongside the Timestamps option"),
    value("fast_retransmit_restarts_timer", Flag(true), "measured: a lost retransmission times out one RTO after it was sent"),
    value("recovery_exit", Choice("ssthresh"), "tcp_input.c, tcp_end_cwnd_reduction(); applies only without SACK; until recovery ends, the window follows RFC 6582"),
    value("rtt_arithmetic", Choice("linux"), "measured: timeouts after lost retransmissions"),
    value("min_rto", Time(Span::ms(200)), "TCP_RTO_MIN"),
    value("timer_tick", Time(Span::ms(1)), "CONFIG_HZ of 1000; measured: a timer fires at the tick after its expiry"),
    value("initial_rto", Time(Span::s(1)), "TCP_TIMEOUT_INIT; RFC 6298"),
    value("max_rto", Time(Span::s(120)), "TCP_RTO_MAX"),
    value("ack_every", Integer(2), "tcp_input.c, __tcp_ack_snd_check(): more than one segment"),
    value("delayed_ack", Time(Span::ms(40)), "TCP_DELACK_MIN"),
    value("sack_delay", Time(Span::ms(1)), "net.ipv4.tcp_comp_sack_delay_ns"),
    value("sack_delay_slack", Time(Span::us(100)), "net.ipv4.tcp_comp_sack_slack_ns; measured: the timer uses the full slack"),
    value("delayed_ack_adapts", Flag(true), "TCP_ATO_MIN; measured: with 30 ms between segments, the delay exceeds 40 ms"),
    value("quick_acks", Integer(16), "TCP_MAX_QUICKACKS, at the start of a connection"),
    value("prompt_ack", Choice("apart"), "tcp_input.c, tcp_ack_snd_check(): before the application runs; measured"),
    value("quick_acks_again", Integer(16), "measured: after a timeout of the sender, at CE and CWR, and at retransmitted data where ECN is in use"),
    value("nagle", Flag(true), "unless TCP_NODELAY is set"),
    value("nagle_rule", Choice("minshall"), "measured: the last 600 B leave directly after a full segment"),
    value("idle_restart", Choice("rfc2861"), "net.ipv4.tcp_slow_start_after_idle; tcp_output.c, tcp_cwnd_restart()"),
    value("ecn_at_one", Choice("ssthresh"), "tcp_input.c, tcp_end_cwnd_reduction(); tcp_cong.c, tcp_reno_ssthresh(): at least 2 segments"),
    value("ecn_fallback", Choice("timeout"), "net.ipv4.tcp_ecn_fallback"),
    value("syn_retries", Integer(6), "net.ipv4.tcp_syn_retries"),
    value("data_retries", Integer(15), "net.ipv4.tcp_retries2"),
    value("time_wait", Time(Span::s(60)), "TCP_TIMEWAIT_LEN"),
];
