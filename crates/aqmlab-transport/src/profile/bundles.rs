//! The named bundles, each given by its differences from the table's defaults; the defaults
//! themselves are the profile `rfc`.
//!
//! Every value names its source. "Recalled" values come from the memory of people who know the
//! stack, because no document is available; "inferred" values follow from a paper's measurements.
//! Values of these two kinds may be wrong; all others can be verified.

use aqmlab_params::{Limit, Value};
use aqmlab_units::{Bytes, Span};

use super::Profile;

/// A named bundle of parameters.
#[derive(Clone, Copy, Debug)]
pub struct ProfileInfo {
    /// Its name in a scenario file.
    pub name: &'static str,
    /// Its meaning, in one sentence.
    pub summary: &'static str,
    /// The profile that it starts from, if that is not the defaults of [`Profile::TABLE`].
    pub base: Option<&'static str>,
    /// Its differences from these.
    pub values: &'static [ProfileValue],
}

/// One parameter of a bundle.
#[derive(Clone, Debug)]
pub struct ProfileValue {
    /// The parameter, and its value in this bundle.
    pub pair: (&'static str, Value),
    /// Its sources, and how reliable they are.
    pub source: &'static str,
}

const fn value(pair: (&'static str, Value), source: &'static str) -> ProfileValue {
    ProfileValue { pair, source }
}

pub(super) static PROFILES: &[ProfileInfo] = &[
    ProfileInfo {
        name: "rfc",
        summary: "the standards: RFC 5681 and 6582 with limited transmit, RFC 6298 with a minimum RTO of 1 s, \
                  RFC 3168, every second segment acknowledged",
        base: None,
        values: &[],
    },
    ProfileInfo {
        name: "ns2",
        summary: "ns-2.35 with its defaults, reproduced segment by segment: Agent/TCP/Newreno and Agent/TCPSink; \
                  with recovery `reno`, Agent/TCP/Reno; with `sack`, Agent/TCP/Sack1 and Agent/TCPSink/Sack1",
        base: None,
        values: NS2,
    },
    ProfileInfo {
        name: "ns2_fulltcp",
        summary: "ns-2.35's two-way agent with its defaults, Agent/TCP/FullTcp/Newreno: reproduced segment by segment \
                  without loss, with one or two losses, with marks, timeouts and lost SYNs, and in most cases with \
                  more losses",
        base: None,
        values: NS2_FULLTCP,
    },
    ProfileInfo {
        name: "freebsd4",
        summary: "the FreeBSD 4.x hosts of the web experiments (Le, Aikat, Jeffay, Smith 2003): NewReno with small \
                  windows; timestamps are left out",
        base: None,
        values: FREEBSD4,
    },
    ProfileInfo {
        name: "linux",
        summary: "Linux 4.x and later with `tcp_congestion_control=reno`; its sender is compared with Linux 6.1 \
                  segment by segment",
        base: None,
        values: LINUX,
    },
    ProfileInfo {
        name: "linux_offload",
        summary: "`linux` on a host whose network card splits data into segments (TSO, on by default): several segments leave \
                  together, and the last of them is acknowledged at once",
        base: Some("linux"),
        values: LINUX_OFFLOAD,
    },
    ProfileInfo {
        name: "modern",
        summary: "the standards of today: CUBIC (RFC 9438) with HyStart++ (RFC 9406), an initial window of 10 (RFC 6928), \
                  RACK-TLP (RFC 8985), PRR (RFC 9937), F-RTO (RFC 5682), timestamps (RFC 7323); no ECN unless asked for",
        base: None,
        values: MODERN,
    },
    ProfileInfo {
        name: "prague",
        summary: "a sender for L4S: Prague over what `modern` has, paced without a gain, with ECN",
        base: Some("modern"),
        values: PRAGUE,
    },
    ProfileInfo {
        name: "quic",
        summary: "a QUIC sender with the constants of RFC 9002: NewReno with pacing, packet numbers, probes instead of \
                  timeouts, every second packet acknowledged, within 25 ms",
        base: None,
        values: QUIC,
    },
];

#[rustfmt::skip]
static QUIC: &[ProfileValue] = &[
    value(Profile::mss().is(Bytes::new(1165)), "RFC 9000, 14.1: datagrams of 1200 B, less 27 B of header and tag and 8 B of STREAM frame"),
    value(Profile::header().is(Bytes::new(63)), "RFC 9000, 17.3.1: flags, connection ID of 8 B, number of 2 B; 16 B of tag (RFC 9001, 5.3); 8 B of STREAM frame; 28 B of IP and UDP"),
    value(Profile::initial_window().is(10), "RFC 9002, 7.2"),
    value(Profile::syn_loss_window().is("never"), "RFC 9002, 7.2 knows no such rule"),
    value(Profile::packet_numbers().is(true), "RFC 9000, 12.3; RFC 9002, 4.2"),
    value(Profile::pacing().is(true), "RFC 9002, 7.7"),
    value(Profile::pacing_gain().is(1.25), "RFC 9002, 7.7: N"),
    value(Profile::pacing_gain_slow_start().is(1.25), "RFC 9002, 7.7: N"),
    value(Profile::min_rto().is(Span::ZERO), "RFC 9002, 6.2.1: a probe timeout has no minimum but kGranularity"),
    value(Profile::initial_rto().is(Span::ms(999)), "RFC 9002, 6.2.2: kInitialRtt of 333 ms, plus four times its half"),
    value(Profile::delayed_ack().is(Span::ms(25)), "RFC 9000, 18.2: max_ack_delay"),
    value(Profile::handshake_ack().is("piggyback"), "RFC 9000, 7: the client's data follows the server's flight"),
    value(Profile::idle_restart().is("off"), "RFC 9002, 7.8: pacing takes its place"),
    value(Profile::ect_on_retransmission().is(true), "RFC 9000, 13.4: all packets"),
    value(Profile::time_wait().is(Span::s(3)), "RFC 9000, 10.2: three probe timeouts, here the initial ones"),
];

#[rustfmt::skip]
static MODERN: &[ProfileValue] = &[
    value(Profile::mss().is(Bytes::new(1448)), "RFC 7323, appendix A: Ethernet less 12 B of timestamps"),
    value(Profile::header().is(Bytes::new(52)), "RFC 7323, appendix A"),
    value(Profile::initial_window_rule().is("rfc6928"), "RFC 6928, 2"),
    value(Profile::congestion().is("cubic"), "RFC 9438"),
    value(Profile::increase().is("byte_counting"), "RFC 9406, 4.2: by bytes acknowledged; RFC 3465"),
    value(Profile::abc_limit().is(Limit::At(8)), "RFC 9406, 4.3: the value of L without pacing"),
    value(Profile::slow_start_exit().is("hystart++"), "RFC 9406"),
    value(Profile::recovery().is("sack"), "RFC 2018"),
    value(Profile::sack_pipe().is("segments"), "RFC 8985, 5: each segment is listed with its time"),
    value(Profile::sack_blocks().is(3), "RFC 7323, appendix A: as many as fit alongside the Timestamps option"),
    value(Profile::rack().is(true), "RFC 8985, 6"),
    value(Profile::tail_loss_probe().is(true), "RFC 8985, 7"),
    value(Profile::prr().is(true), "RFC 9937, 6"),
    value(Profile::frto().is(true), "RFC 5682, 3"),
    value(Profile::timestamps().is(true), "RFC 7323, 3"),
    value(Profile::dsack().is(true), "RFC 2883; RFC 8985, 6.2"),
    value(Profile::dsack_undo().is(true), "RFC 9438, 4.9.2; RFC 3708"),
    value(Profile::eifel().is(true), "RFC 9438, 4.9; RFC 3522"),
];

#[rustfmt::skip]
static PRAGUE: &[ProfileValue] = &[
    value(Profile::congestion().is("prague"), "draft-briscoe-iccrg-prague-congestion-control-04"),
    value(Profile::slow_start_exit().is("none"), "draft-briscoe-iccrg-prague-congestion-control-04, 2.4.5: slow start ends at the first mark"),
    value(Profile::pacing().is(true), "draft-briscoe-iccrg-prague-congestion-control-04, 2.5.1"),
    value(Profile::pacing_gain().is(1.0), "draft-briscoe-iccrg-prague-congestion-control-04, 2.5.1: without the usual 1.2"),
    value(Profile::pacing_burst().is(1), "draft-briscoe-iccrg-prague-congestion-control-04, 2.5.2: what lasts 250 us at most"),
    value(Profile::ecn().is(true), "RFC 9331, 4.2"),
    value(Profile::ecn_feedback().is("accurate"), "RFC 9331, 4.2; RFC 9768"),
    value(Profile::ect_on_retransmission().is(true), "draft-briscoe-iccrg-prague-congestion-control-04, 2.2; RFC 8311, 4.3"),
];

#[rustfmt::skip]
static NS2: &[ProfileValue] = &[
    value(Profile::mss().is(Bytes::new(1000)), "ns-default.tcl, packetSize_"),
    value(Profile::receive_window().is(Bytes::new(1 << 30)), "one-way agents have no receive window"),
    value(Profile::max_window().is(20), "ns-default.tcl, window_"),
    value(Profile::initial_window().is(2), "ns-default.tcl, windowInit_"),
    value(Profile::initial_ssthresh().is("max_window"), "tcp.cc, reset(): ssthresh_ is wnd_"),
    value(Profile::reduction_base().is("window"), "tcp.cc, slowdown(), CLOSE_SSTHRESH_HALF"),
    value(Profile::sack_pipe().is("ns2"), "tcp-sack1.cc"),
    value(Profile::sack_blocks().is(3), "ns-default.tcl, maxSackBlocks_"),
    value(Profile::sack_memory().is("sack_blocks"), "tcp-sink.cc: the stack of blocks has maxSackBlocks_ places"),
    value(Profile::sack_overhead().is(Bytes::new(0)), "tcp-sink.cc, append_ack(): 8 bytes per block"),
    value(Profile::fast_retransmit_guard().is("ns2"), "tcp-newreno.cc, dupack_action()"),
    value(Profile::fast_retransmit_restarts_timer().is(true), "tcp-newreno.cc, dupack_action(): reset_rtx_timer"),
    value(Profile::recovery_exit().is("ns2"), "ns-default.tcl, exit_recovery_fix_ 0"),
    value(Profile::recovery_burst().is(Limit::At(2)), "tcp-newreno.cc, recv(): send_much(0, 0, 2) in recovery"),
    value(Profile::timeout_ssthresh().is("ns2"), "tcp.cc, timeout_nonrtx()"),
    value(Profile::rtt_arithmetic().is("ns2"), "tcp.cc, rtt_update()"),
    value(Profile::granularity().is(Span::ms(10)), "ns-default.tcl, tcpTick_"),
    value(Profile::min_rto().is(Span::ms(200)), "ns-default.tcl, minrto_"),
    value(Profile::initial_rto().is(Span::s(3)), "ns-default.tcl, rtxcur_init_"),
    value(Profile::max_rto().is(Span::s(60)), "ns-default.tcl, maxrto_"),
    value(Profile::ack_every().is(1), "Agent/TCPSink acknowledges each segment"),
    value(Profile::delayed_ack().is(Span::ms(100)), "ns-default.tcl, Agent/TCPSink/DelAck interval_; without effect at `ack_every` 1"),
    value(Profile::delay_repeated_ack().is(true), "tcp-sink.cc, DelAckSink"),
    value(Profile::handshake_ack().is("piggyback"), "one-way agents send no handshake ACK: data follows the ACK of the first packet"),
    value(Profile::idle_restart().is("ns2"), "ns-default.tcl, slow_start_restart_"),
    value(Profile::ecn_at_one().is("ns2"), "tcp.cc, slowdown() below a window of one"),
    value(Profile::echo_outside_window().is(true), "tcp-sink.cc, add_to_ack(): CE of each packet"),
    value(Profile::ect_on_retransmission().is(true), "tcp.cc, output(): each packet"),
    value(Profile::ect_on_fin().is(true), "tcp.cc, output(): each packet; there is no FIN"),
    value(Profile::cwr_on_retransmission().is(true), "ns-default.tcl, SetCWRonRetransmit_"),
    value(Profile::syn_retries().is(Limit::Unlimited), "tcp.cc: never gives up"),
    value(Profile::syn_ack_timer().is(false), "tcp-sink.cc: a sink has no timer except the one for delayed acknowledgments"),
    value(Profile::data_retries().is(Limit::Unlimited), "tcp.cc: never gives up"),
    value(Profile::time_wait().is(Span::ZERO), "one-way agents have no TIME-WAIT"),
];

#[rustfmt::skip]
static NS2_FULLTCP: &[ProfileValue] = &[
    value(Profile::mss().is(Bytes::new(536)), "ns-default.tcl, segsize_"),
    value(Profile::receive_window().is(Bytes::new(1 << 30)), "tcp-full.cc has no receive window"),
    value(Profile::max_window().is(20), "ns-default.tcl, window_"),
    value(Profile::initial_window().is(2), "ns-default.tcl, windowInit_"),
    value(Profile::initial_ssthresh().is("max_window"), "tcp.cc, reset(): ssthresh_ is wnd_"),
    value(Profile::reduction_base().is("window"), "tcp.cc, slowdown(), CLOSE_SSTHRESH_HALF"),
    value(Profile::increase().is("segment_per_ack"), "tcp.cc, opencwnd(): one segment, whatever is acknowledged"),
    value(Profile::limited_transmit().is(false), "tcp-full.cc, recv(): nothing leaves before the third duplicate"),
    value(Profile::fast_retransmit_guard().is("rfc6582"), "tcp-full.cc, dupack_action(): none below `recover`"),
    value(Profile::fast_retransmit_restarts_timer().is(true), "tcp-full.cc, dupack_action(): set_rtx_timer"),
    value(Profile::partial_ack().is("slow_but_steady"), "tcp-full.cc, pack_action(): restarts the timer each time"),
    value(Profile::recovery_window().is("ssthresh"), "tcp-full.cc, pack_action() of Newreno: cwnd_ is ssthresh_, recover_ is maxseq_"),
    value(Profile::recovery_exit().is("ns2"), "tcp-full.cc, ack_action(): the window is ssthresh"),
    value(Profile::recovery_burst().is(Limit::At(2)), "ns-default.tcl, recov_maxburst_"),
    value(Profile::timeout_ssthresh().is("inflated"), "tcp.cc, slowdown(): cwnd_ includes the duplicates"),
    value(Profile::rtt_arithmetic().is("ns2"), "tcp.cc, rtt_update()"),
    value(Profile::ack_ends_backoff().is(true), "tcp-full.cc: measured, backoff_ is 1 after any progress"),
    value(Profile::timer_uses_sample().is(false), "tcp-full.cc, newack(): set_rtx_timer() precedes rtt_update()"),
    value(Profile::granularity().is(Span::ms(10)), "ns-default.tcl, tcpTick_"),
    value(Profile::min_rto().is(Span::ms(200)), "ns-default.tcl, minrto_"),
    value(Profile::initial_rto().is(Span::s(3)), "ns-default.tcl, rtxcur_init_"),
    value(Profile::max_rto().is(Span::s(60)), "ns-default.tcl, maxrto_"),
    value(Profile::ack_every().is(1), "ns-default.tcl, segsperack_"),
    value(Profile::ack_counting().is("bytes"), "tcp-full.cc, need_send(): bytes since the last ACK"),
    value(Profile::delayed_ack().is(Span::ms(100)), "ns-default.tcl, interval_"),
    value(Profile::delayed_ack_timer().is("periodic"), "tcp-full.cc, timeout(): its timer fires at whole multiples"),
    value(Profile::nagle().is(true), "ns-default.tcl, nodelay_ is false"),
    value(Profile::hold_last_byte().is(true), "tcp-full.cc, foutput(): measured with responses of whole segments and a byte"),
    value(Profile::fin().is("apart"), "tcp-full.cc, output(): a FIN waits for outstanding data"),
    value(Profile::idle_restart().is("without_least"), "tcp-full.cc, idle_restart(): t_rtxcur_, without minrto_"),
    value(Profile::ecn_at_one().is("ns2"), "tcp.cc, slowdown() below a window of one"),
    value(Profile::echo_outside_window().is(true), "tcp-full.cc, recv(): CE of each packet"),
    value(Profile::ect_on_retransmission().is(true), "tcp-full.cc, sendpacket(): all data"),
    value(Profile::cwr_on_retransmission().is(true), "ns-default.tcl, SetCWRonRetransmit_"),
    value(Profile::cwr_without_data().is(true), "tcp-full.cc, foutput(): whatever leaves next"),
    value(Profile::syn_loss_window().is("never"), "tcp-full.cc, recv(): cwnd_ is initial_window()"),
    value(Profile::answer_repeated_syn().is(false), "tcp-full.cc, recv() in SYN_RECEIVED: only the timer repeats the SYN-ACK"),
    value(Profile::keep_syn_backoff().is(false), "tcp-full.cc, recv(): the handshake resets t_backoff_"),
    value(Profile::syn_retries().is(Limit::Unlimited), "tcp-full.cc: never gives up"),
    value(Profile::data_retries().is(Limit::Unlimited), "tcp-full.cc: never gives up"),
    value(Profile::time_wait().is(Span::ZERO), "tcp-full.cc: no timer ends TIME-WAIT"),
];

#[rustfmt::skip]
static FREEBSD4: &[ProfileValue] = &[
    value(Profile::receive_window().is(Bytes::new(16_384)), "recalled: net.inet.tcp.recvspace of 16 KB in the experiments"),
    value(Profile::max_window().is(11), "recalled: net.inet.tcp.sendspace of 16 KB, in whole segments of 1460 B"),
    value(Profile::initial_window().is(2), "inferred: slowstart_flightsize is 1, and the ACK of a server's SYN opens the window by one; the papers say 1 or 2"),
    value(Profile::reduction_base().is("window"), "tcp_input.c: half of min(snd_wnd, snd_cwnd) in whole segments"),
    value(Profile::limited_transmit().is(false), "recalled: net.inet.tcp.rfc3042 came with 4.9"),
    value(Profile::fast_retransmit_restarts_timer().is(true), "tcp_input.c: the timer is stopped, and started again with the retransmission"),
    value(Profile::partial_ack().is("slow_but_steady"), "tcp_input.c, tcp_newreno_partial_ack(): restarts the timer each time"),
    value(Profile::granularity().is(Span::ms(10)), "HZ of 100; the timer itself is not rounded up to ticks here"),
    value(Profile::min_rto().is(Span::s(1)), "tcp_timer.h, TCPTV_MIN; response times in Le et al. show steps of 1 s"),
    value(Profile::initial_rto().is(Span::s(3)), "tcp_timer.h, TCPTV_RTOBASE"),
    value(Profile::max_rto().is(Span::s(64)), "tcp_timer.h, TCPTV_REXMTMAX"),
    value(Profile::ack_every().is(2), "tcp_input.c: every second segment"),
    value(Profile::delayed_ack().is(Span::ms(100)), "tcp_timer.h, TCPTV_DELACK (net.inet.tcp.delacktime)"),
    value(Profile::nagle().is(true), "tcp_output.c: unless TCP_NODELAY is set"),
    value(Profile::idle_restart().is("rfc5681"), "inferred: `freebsd` is the kernel's rule (one RTO after the last arrival, and a request is one); here, the restart comes one RTO after the last transmission"),
    value(Profile::ecn_at_one().is("keep"), "inferred: a sender with the ALTQ patches for ECN does not wait (S. Floyd's ECN page; the BLUE authors say the same of FreeBSD in their testbed)"),
    value(Profile::syn_retries().is(Limit::At(4)), "tcp_timer.h, TCPTV_KEEP_INIT of 75 s: timeouts of 3, 6, 12 and 24 s fit into it; later 4.x versions do not double at first"),
    value(Profile::data_retries().is(Limit::At(12)), "tcp_timer.h, TCP_MAXRXTSHIFT"),
    value(Profile::time_wait().is(Span::s(60)), "tcp_timer.h, 2 TCPTV_MSL"),
];

#[rustfmt::skip]
static LINUX_OFFLOAD: &[ProfileValue] = &[
    value(Profile::burst().is(44), "as many segments of 1448 B as 64 KiB contain; fewer at low rates (`burst_time`)"),
    value(Profile::push().is(true), "measured: the last segment of a group has PSH"),
    value(Profile::ack_pushed().is(true), "measured"),
];

#[rustfmt::skip]
static LINUX: &[ProfileValue] = &[
    value(Profile::mss().is(Bytes::new(1448)), "Ethernet less 12 B of timestamps (net.ipv4.tcp_timestamps)"),
    value(Profile::header().is(Bytes::new(52)), "with 12 B of timestamps"),
    value(Profile::receive_window().is(Bytes::new(6_291_456)), "the largest value in net.ipv4.tcp_rmem; here, the window has this size from the start"),
    value(Profile::initial_window().is(10), "TCP_INIT_CWND: of any size"),
    value(Profile::syn_loss_window().is("linux"), "measured; tcp_input.c, tcp_init_transfer()"),
    value(Profile::increase().is("byte_counting"), "tcp_cong.c, tcp_reno_cong_avoid(): by segments acknowledged"),
    value(Profile::cubic_growth().is("linux"), "measured; Ha, Rhee, Xu 2008, figure 2: the window grows by whole segments, each after a count of acknowledged segments that follows from the minimum round-trip time"),
    value(Profile::count_segments().is(true), "measured: an acknowledged segment of 600 B opens the window by one"),
    value(Profile::open_by_windows().is(true), "measured: an acknowledgment of several windows opens the window by as many segments"),
    value(Profile::split_at_ssthresh().is(true), "tcp_cong.c, tcp_slow_start(): what is left counts for congestion avoidance"),
    value(Profile::dctcp_segments().is(true), "measured: alpha and the window change by whole steps"),
    value(Profile::reduction_base().is("congestion_window"), "measured: of 40 segments, 20 remain after a reduction; at least two always remain"),
    value(Profile::whole_segments().is(true), "measured: of 11 segments, 5 remain"),
    value(Profile::abc_limit().is(Limit::Unlimited), "measured: an acknowledgment of 20 segments opens the window by 20"),
    value(Profile::recovery().is("sack"), "net.ipv4.tcp_sack"),
    value(Profile::reordering_most().is(300), "net.ipv4.tcp_max_reordering"),
    value(Profile::reordered_opens().is(true), "measured: after four segments out of order, each SACK opens the window"),
    value(Profile::sack_pipe().is("segments"), "measured: SACKed data is not retransmitted after a timeout"),
    value(Profile::rack().is(true), "net.ipv4.tcp_recovery"),
    value(Profile::tail_loss_probe().is(true), "net.ipv4.tcp_early_retrans"),
    value(Profile::probe_counts().is(false), "measured: only the first copy counts"),
    value(Profile::prr().is(true), "measured: every second acknowledgment releases a segment"),
    value(Profile::prr_base().is("congestion_window"), "measured"),
    value(Profile::recovery_ends_with_mark().is(true), "measured"),
    value(Profile::count_duplicates().is(true), "measured: the window is reduced as gradually without SACK as with it"),
    value(Profile::frto().is(true), "net.ipv4.tcp_frto"),
    value(Profile::undo_to_reduction().is(true), "measured"),
    value(Profile::timestamps().is(true), "net.ipv4.tcp_timestamps"),
    value(Profile::dsack().is(true), "net.ipv4.tcp_dsack"),
    value(Profile::dsack_undo().is(true), "net.ipv4.tcp_dsack"),
    value(Profile::dsack_delivers().is(true), "measured: TCPDelivered counts duplicates, and the window opens by them"),
    value(Profile::dsack_needs_reordering().is(true), "measured: a duplicate without reordering leaves the allowance as it is"),
    value(Profile::eifel().is(true), "measured: a late segment undoes a reduction before DSACK does"),
    value(Profile::sack_blocks().is(3), "as many as fit alongside the Timestamps option"),
    value(Profile::fast_retransmit_restarts_timer().is(true), "measured: a lost retransmission times out one RTO after it was sent"),
    value(Profile::recovery_exit().is("ssthresh"), "tcp_input.c, tcp_end_cwnd_reduction(); applies only without SACK; until recovery ends, the window follows RFC 6582"),
    value(Profile::rtt_arithmetic().is("linux"), "measured: timeouts after lost retransmissions"),
    value(Profile::min_rto().is(Span::ms(200)), "TCP_RTO_MIN"),
    value(Profile::timer_tick().is(Span::ms(1)), "CONFIG_HZ of 1000; measured: a timer fires at the tick after its expiry"),
    value(Profile::initial_rto().is(Span::s(1)), "TCP_TIMEOUT_INIT; RFC 6298"),
    value(Profile::max_rto().is(Span::s(120)), "TCP_RTO_MAX"),
    value(Profile::ack_every().is(2), "tcp_input.c, __tcp_ack_snd_check(): more than one segment"),
    value(Profile::delayed_ack().is(Span::ms(40)), "TCP_DELACK_MIN"),
    value(Profile::sack_delay().is(Span::ms(1)), "net.ipv4.tcp_comp_sack_delay_ns"),
    value(Profile::sack_delay_slack().is(Span::us(100)), "net.ipv4.tcp_comp_sack_slack_ns; measured: the timer uses the full slack"),
    value(Profile::delayed_ack_adapts().is(true), "TCP_ATO_MIN; measured: with 30 ms between segments, the delay exceeds 40 ms"),
    value(Profile::quick_acks().is(16), "TCP_MAX_QUICKACKS, at the start of a connection"),
    value(Profile::prompt_ack().is("apart"), "tcp_input.c, tcp_ack_snd_check(): before the application runs; measured"),
    value(Profile::quick_acks_again().is(16), "measured: after a timeout of the sender, at CE and CWR, and at retransmitted data where ECN is in use"),
    value(Profile::nagle().is(true), "unless TCP_NODELAY is set"),
    value(Profile::nagle_rule().is("minshall"), "measured: the last 600 B leave directly after a full segment"),
    value(Profile::burst_wait().is("linux"), "measured, with segmentation offload"),
    value(Profile::idle_restart().is("rfc2861"), "net.ipv4.tcp_slow_start_after_idle; tcp_output.c, tcp_cwnd_restart()"),
    value(Profile::echo_opens().is(true), "measured: after a timeout, an acknowledgment with an echo opens the window"),
    value(Profile::ecn_at_one().is("ssthresh"), "tcp_input.c, tcp_end_cwnd_reduction(); tcp_cong.c, tcp_reno_ssthresh(): at least 2 segments"),
    value(Profile::ecn_fallback().is("timeout"), "net.ipv4.tcp_ecn_fallback"),
    value(Profile::syn_retries().is(Limit::At(6)), "net.ipv4.tcp_syn_retries"),
    value(Profile::data_retries().is(Limit::At(15)), "net.ipv4.tcp_retries2"),
    value(Profile::time_wait().is(Span::s(60)), "TCP_TIMEWAIT_LEN"),
];
