//! The tables of a recording. `docs/recording.md` defines each column; a test compares the two.

use crate::column::Type::{self, F64, NullableF64, NullableU64, NullableU128, Str, U64, U128};

/// The name and the columns of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schema {
    /// The table's name, which is also the stem of its file name.
    pub name: &'static str,
    /// Its columns in order.
    pub columns: &'static [(&'static str, Type)],
}

/// Exact counts and integrals over the measured interval, one row per queue and class.
pub const SUMMARY: Schema = Schema {
    name: "summary",
    columns: &[
        ("queue", Str),
        ("class", Str),
        ("arrivals_packets", U64),
        ("arrivals_bytes", U64),
        ("ect_arrivals_packets", U64),
        ("ect_arrivals_bytes", U64),
        ("departures_packets", U64),
        ("departures_bytes", U64),
        ("dropped_early_packets", U64),
        ("dropped_early_bytes", U64),
        ("dropped_forced_packets", U64),
        ("dropped_forced_bytes", U64),
        ("dropped_overflow_packets", U64),
        ("dropped_overflow_bytes", U64),
        ("dropped_injected_packets", U64),
        ("dropped_injected_bytes", U64),
        ("marked_early_packets", U64),
        ("marked_early_bytes", U64),
        ("marked_forced_packets", U64),
        ("marked_forced_bytes", U64),
        ("marked_overflow_packets", U64),
        ("marked_overflow_bytes", U64),
        ("marked_injected_packets", U64),
        ("marked_injected_bytes", U64),
        ("sent_bytes", U64),
        ("backlog_packets_integral_ns", NullableU128),
        ("backlog_packets_sq_integral_ns", NullableU128),
        ("backlog_bytes_integral_ns", NullableU128),
        ("backlog_packets_min", NullableU64),
        ("backlog_packets_max", NullableU64),
        ("backlog_bytes_max", NullableU64),
        ("busy_ns", NullableU64),
        ("sojourn_sum_ns", NullableU128),
        ("sojourn_count", NullableU64),
        ("initial_in_system_packets", NullableU64),
        ("final_in_system_packets", NullableU64),
    ],
};

/// Exact counts over the measured interval, by the role of packets in their connections; one row for each
/// combination of queue, class and kind that occurs.
pub const KINDS: Schema = Schema {
    name: "kinds",
    columns: &[
        ("queue", Str),
        ("class", Str),
        ("kind", Str),
        ("arrivals_packets", U64),
        ("arrivals_bytes", U64),
        ("ect_arrivals_packets", U64),
        ("ect_arrivals_bytes", U64),
        ("dropped_early_packets", U64),
        ("dropped_early_bytes", U64),
        ("dropped_forced_packets", U64),
        ("dropped_forced_bytes", U64),
        ("dropped_overflow_packets", U64),
        ("dropped_overflow_bytes", U64),
        ("dropped_injected_packets", U64),
        ("dropped_injected_bytes", U64),
        ("marked_early_packets", U64),
        ("marked_early_bytes", U64),
        ("marked_forced_packets", U64),
        ("marked_forced_bytes", U64),
        ("marked_overflow_packets", U64),
        ("marked_overflow_bytes", U64),
        ("marked_injected_packets", U64),
        ("marked_injected_bytes", U64),
    ],
};

/// Bins of distributions over the measured interval.
pub const HISTOGRAMS: Schema = Schema {
    name: "histograms",
    columns: &[("queue", Str), ("class", Str), ("kind", Str), ("low", U64), ("high", U64), ("weight", U64)],
};

/// A single row about the run.
pub const RUN: Schema = Schema {
    name: "run",
    columns: &[
        ("t0_ns", U64),
        ("t1_ns", U64),
        ("packet_hops", U64),
        ("sent_packets", U64),
        ("delivered_packets", U64),
        ("dropped_packets", U64),
        ("lost_outside_queues_packets", U64),
        ("in_flight_packets", U64),
        ("sent_bytes", U64),
        ("delivered_bytes", U64),
        ("dropped_bytes", U64),
        ("lost_outside_queues_bytes", U64),
        ("in_flight_bytes", U64),
    ],
};

/// Samples of the queues.
pub const QUEUES: Schema = Schema {
    name: "queues",
    columns: &[
        ("t_ns", U64),
        ("queue", Str),
        ("backlog_packets", U64),
        ("backlog_bytes", U64),
        ("arrivals_packets", U64),
        ("arrivals_bytes", U64),
        ("departures_bytes", U64),
        ("dropped_by_law_packets", U64),
        ("dropped_not_by_law_packets", U64),
        ("marked_packets", U64),
    ],
};

/// Samples of the control laws.
pub const LAW: Schema =
    Schema { name: "law", columns: &[("t_ns", U64), ("queue", Str), ("name", Str), ("value", F64)] };

/// Exact capacities of links over the measured interval, one row per link whose rate changes; present only if there is
/// one.
pub const LINKS: Schema = Schema {
    name: "links",
    columns: &[
        ("queue", Str),
        ("capacity_bytes", U64),
        ("used_bytes", U64),
        ("standstill_ns", U64),
        ("changes", U64),
        ("backlog_bytes_by_capacity", U128),
    ],
};

/// Samples of the capacities of these links, taken with those of the queues.
pub const CAPACITY: Schema =
    Schema { name: "capacity", columns: &[("t_ns", U64), ("queue", Str), ("capacity_bytes", U64)] };

/// What controllers of shapers have made of the answers of their reflectors, one row per answer; present only if there is a
/// controller.
pub const AUTORATE: Schema = Schema {
    name: "autorate",
    columns: &[
        ("t_ns", U64),
        ("queue", Str),
        ("reflector", U64),
        ("delay_ns", U64),
        ("baseline_ns", F64),
        ("mean_excess_ns", F64),
        ("long_delays", U64),
        ("load", Str),
        ("leaving_bps", U64),
        ("action", Str),
        ("shaper_bps", U64),
    ],
};

/// One row per flow.
pub const FLOWS: Schema = Schema {
    name: "flows",
    columns: &[
        ("flow", U64),
        ("class", Str),
        ("index", U64),
        ("start_ns", U64),
        ("end_ns", NullableU64),
        ("base_rtt_ns", U64),
        ("sent_segments", U64),
        ("sent_bytes", U64),
        ("received_bytes", U64),
        ("received_by_client_bytes", U64),
        ("delivered_bytes", U64),
        ("retransmitted_segments", U64),
        ("timeouts", U64),
        ("timeouts_at_client", U64),
        ("syn_retransmissions", U64),
        ("syn_ack_retransmissions", U64),
        ("fast_retransmits", U64),
        ("ecn_reductions", U64),
        ("ce_received", U64),
        ("spurious_retransmissions", U64),
        ("multiple_loss_windows", U64),
        ("lost_outside_queues_packets", U64),
        ("measured_received_bytes", U64),
        ("measured_received_by_client_bytes", U64),
        ("measured_delivered_bytes", U64),
        ("measured_sent_bytes", U64),
        ("measured_timeouts", U64),
        ("measured_timeouts_at_client", U64),
        ("measured_syn_retransmissions", U64),
        ("measured_syn_ack_retransmissions", U64),
        ("measured_retransmitted_segments", U64),
        ("measured_fast_retransmits", U64),
        ("measured_ecn_reductions", U64),
        ("measured_ce_received", U64),
        ("measured_spurious_retransmissions", U64),
        ("measured_multiple_loss_windows", U64),
        ("measured_lost_outside_queues_packets", U64),
    ],
};

/// The flows of programs, which are found by their packets; present only if the run has programs.
pub const FOUND_FLOWS: Schema = Schema {
    name: "found_flows",
    columns: &[
        ("flow", U64),
        ("class", Str),
        ("protocol", Str),
        ("client", Str),
        ("client_port", U64),
        ("server", Str),
        ("server_port", U64),
        ("first_ns", U64),
        ("last_ns", U64),
        ("to_server_packets", U64),
        ("to_server_bytes", U64),
        ("to_server_delivered_packets", U64),
        ("to_server_delivered_bytes", U64),
        ("to_server_new_bytes", U64),
        ("to_server_ce_packets", U64),
        ("to_server_dropped_packets", U64),
        ("to_server_lost_packets", U64),
        ("to_client_packets", U64),
        ("to_client_bytes", U64),
        ("to_client_delivered_packets", U64),
        ("to_client_delivered_bytes", U64),
        ("to_client_new_bytes", U64),
        ("to_client_ce_packets", U64),
        ("to_client_dropped_packets", U64),
        ("to_client_lost_packets", U64),
    ],
};

/// Samples of the flows.
pub const FLOW_SERIES: Schema = Schema {
    name: "flow_series",
    columns: &[
        ("t_ns", U64),
        ("flow", U64),
        ("cwnd_segments", F64),
        ("ssthresh_segments", NullableF64),
        ("srtt_ns", NullableU64),
        ("flight_bytes", U64),
        ("acked_bytes", U64),
        ("received_bytes", U64),
        ("delivered_bytes", U64),
    ],
};

/// Changes in the state of selected flows; present only if requested.
pub const TRACE: Schema = Schema {
    name: "trace",
    columns: &[
        ("t_ns", U64),
        ("flow", U64),
        ("event", Str),
        ("cwnd_segments", F64),
        ("ssthresh_segments", NullableF64),
        ("srtt_ns", NullableU64),
        ("rto_ns", U64),
        ("flight_bytes", U64),
        ("acked_bytes", U64),
    ],
};

/// The version of the table of packets. Runs that record no packets do not depend on it.
pub const PACKETS_VERSION: u32 = 1;

/// Selected packets one by one; present only if requested.
pub const PACKETS: Schema = Schema {
    name: "packets",
    columns: &[
        ("t_ns", U64),
        ("event", Str),
        ("place", Str),
        ("reason", Str),
        ("flow", U64),
        ("toward", Str),
        ("number", U64),
        ("wire_bytes", U64),
        ("ecn", Str),
        ("payload_bytes", NullableU64),
        ("seq", NullableU64),
        ("ack", NullableU64),
        ("flags", Str),
    ],
};

/// Exact counts and sums of requests, one row per size band of each class that makes requests.
pub const REQUEST_SUMMARY: Schema = Schema {
    name: "request_summary",
    columns: &[
        ("class", Str),
        ("response_low_bytes", U64),
        ("response_high_bytes", NullableU64),
        ("completed", U64),
        ("failed", U64),
        ("censored", U64),
        ("request_bytes", U64),
        ("response_bytes", U64),
        ("response_time_sum_ns", U128),
        ("response_time_max_ns", NullableU64),
    ],
};

/// Bins of the distributions of response times, by class and size band.
pub const REQUEST_HISTOGRAMS: Schema = Schema {
    name: "request_histograms",
    columns: &[
        ("class", Str),
        ("response_low_bytes", U64),
        ("kind", Str),
        ("low", U64),
        ("high", U64),
        ("weight", U64),
    ],
};

/// A uniform sample of the completed requests, of fixed size per class.
pub const REQUEST_SAMPLE: Schema = Schema {
    name: "request_sample",
    columns: &[
        ("class", Str),
        ("user", U64),
        ("serial", U64),
        ("exchange", U64),
        ("opens_connection", U64),
        ("start_ns", U64),
        ("request_bytes", U64),
        ("response_bytes", U64),
        ("response_time_ns", U64),
    ],
};

/// Exact counts and sums of pages, one row per page-weight band of each class that fetches pages.
pub const PAGE_SUMMARY: Schema = Schema {
    name: "page_summary",
    columns: &[
        ("class", Str),
        ("page_low_bytes", U64),
        ("page_high_bytes", NullableU64),
        ("completed", U64),
        ("failed", U64),
        ("censored", U64),
        ("request_bytes", U64),
        ("page_bytes", U64),
        ("page_time_sum_ns", U128),
        ("page_time_max_ns", NullableU64),
    ],
};

/// Bins of the distributions of page times, by class and band.
pub const PAGE_HISTOGRAMS: Schema = Schema {
    name: "page_histograms",
    columns: &[
        ("class", Str),
        ("page_low_bytes", U64),
        ("kind", Str),
        ("low", U64),
        ("high", U64),
        ("weight", U64),
    ],
};

/// A uniform sample of the completed pages, of fixed size per class.
pub const PAGE_SAMPLE: Schema = Schema {
    name: "page_sample",
    columns: &[
        ("class", Str),
        ("user", U64),
        ("page", U64),
        ("objects", U64),
        ("opens_connection", U64),
        ("start_ns", U64),
        ("request_bytes", U64),
        ("page_bytes", U64),
        ("page_time_ns", U64),
    ],
};

/// Every request; present only if requested.
pub const REQUESTS: Schema = Schema {
    name: "requests",
    columns: &[
        ("end_ns", U64),
        ("class", Str),
        ("user", U64),
        ("serial", U64),
        ("exchange", U64),
        ("opens_connection", U64),
        ("start_ns", U64),
        ("request_bytes", U64),
        ("response_bytes", U64),
        ("outcome", Str),
    ],
};

/// Exact counts and sums of frames and updates, one row per receiving end of each class that has them.
pub const FRAME_SUMMARY: Schema = Schema {
    name: "frame_summary",
    columns: &[
        ("class", Str),
        ("receiver", Str),
        ("deadline_ns", U64),
        ("captured_frames", U64),
        ("on_time_frames", U64),
        ("late_frames", U64),
        ("discarded_frames", U64),
        ("lost_frames", U64),
        ("open_frames", U64),
        ("captured_bytes", U64),
        ("late_packets", U64),
        ("freezes", U64),
        ("frozen_ns", U64),
        ("frame_delay_sum_ns", U128),
        ("frame_delay_max_ns", NullableU64),
    ],
};

/// Bins of the distributions of frame delays, by class and receiving end.
pub const FRAME_HISTOGRAMS: Schema = Schema {
    name: "frame_histograms",
    columns: &[
        ("class", Str),
        ("receiver", Str),
        ("kind", Str),
        ("low", U64),
        ("high", U64),
        ("weight", U64),
    ],
};

/// Samples of media senders.
pub const MEDIA_SERIES: Schema = Schema {
    name: "media_series",
    columns: &[
        ("t_ns", U64),
        ("flow", U64),
        ("target_bps", U64),
        ("queued_bytes", U64),
        ("rtt_ns", NullableU64),
    ],
};

/// All tables.
pub const ALL: &[&Schema] = &[
    &SUMMARY,
    &KINDS,
    &HISTOGRAMS,
    &RUN,
    &QUEUES,
    &LAW,
    &FLOWS,
    &FLOW_SERIES,
    &LINKS,
    &CAPACITY,
    &AUTORATE,
    &TRACE,
    &PACKETS,
    &REQUEST_SUMMARY,
    &REQUEST_HISTOGRAMS,
    &REQUEST_SAMPLE,
    &PAGE_SUMMARY,
    &PAGE_HISTOGRAMS,
    &PAGE_SAMPLE,
    &REQUESTS,
    &FRAME_SUMMARY,
    &FRAME_HISTOGRAMS,
    &MEDIA_SERIES,
];
