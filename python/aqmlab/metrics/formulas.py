"""The formula of each metric over the tables of a recording.

``T`` is the length of the measured interval in seconds, ``(t1_ns - t0_ns) / 1e9``, and ``C`` the rate of the
queue's link in bit/s. A formula over ``flows``, ``summary``, ``request_summary`` or ``page_summary`` is an
SQL expression, and a test compares it with the metric. The other formulas are written in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Formula(NamedTuple):
    """The formula of a metric in terms of a recording."""

    over: str
    """The recorded table, or several tables if the formula needs them."""
    text: str


_REASONS = ("early", "forced", "overflow", "injected")
_DROPPED, _MARKED = (
    f"({' + '.join(f'{fate}_{reason}_packets' for reason in _REASONS)})" for fate in ("dropped", "marked")
)
_SPAN = "(t1_ns - t0_ns)"
_MEAN = f"backlog_packets_integral_ns / {_SPAN}"
_SD = f"sqrt(backlog_packets_sq_integral_ns / {_SPAN} - ({_MEAN})^2)"
_RECEIVED = "measured_received_bytes"

_OF_FLOWS = {
    "goodput_bps": f"8 * sum({_RECEIVED}) / T",
    "in_order_goodput_bps": "8 * sum(measured_delivered_bytes) / T",
    "goodput_efficiency_percent": f"100 * 8 * sum({_RECEIVED}) / T / C",
    "goodput_per_flow_bps": f"8 * sum({_RECEIVED}) / T / count(*)",
    "jain_index": f"sum({_RECEIVED})^2 / (count(*) * sum({_RECEIVED}^2))",
    "timeouts": "sum(measured_timeouts)",
    "timeouts_per_flow": "sum(measured_timeouts) / count(*)",
    "fast_retransmits": "sum(measured_fast_retransmits)",
    "spurious_retransmissions": "sum(measured_spurious_retransmissions)",
    "multiple_loss_windows": "sum(measured_multiple_loss_windows)",
    "ecn_reductions": "sum(measured_ecn_reductions)",
    "ce_received": "sum(measured_ce_received)",
    "lost_outside_queues": "sum(measured_lost_outside_queues_packets)",
    "flows": "count(*)",
    "retransmissions": "sum(measured_retransmitted_segments)",
}
_OF_SUMMARY = {
    "throughput_bps": "8 * sent_bytes / T",
    "utilisation_percent": f"100 * busy_ns / {_SPAN}",
    "drop_percent": f"100 * {_DROPPED} / arrivals_packets",
    **{f"drop_{reason}_percent": f"100 * dropped_{reason}_packets / arrivals_packets" for reason in _REASONS},
    "drop_rate_bps": f"8 * {_DROPPED.replace('_packets', '_bytes')} / T",
    "mark_percent": f"100 * {_MARKED} / ect_arrivals_packets",
    "backlog_mean_packets": _MEAN,
    "backlog_sd_packets": _SD,
    "backlog_spread_percent": f"100 * {_SD} / ({_MEAN})",
    "queueing_delay_mean_s": "sojourn_sum_ns / sojourn_count / 1e9",
    "notification_percent": f"100 * ({_DROPPED} + {_MARKED}) / arrivals_packets",
    "congestion_notifications": f"{_MARKED} + dropped_early_packets + dropped_forced_packets",
}


def _loss(queues: str) -> Formula:
    return Formula(
        "summary", f"100 * packets dropped at {queues} / packets arrived at each path's first queue"
    )


_DECIDED = "(sum(captured_frames) - sum(open_frames))"
_OF_FRAMES = {
    "frame_delay_mean_s": "sum(frame_delay_sum_ns) / (sum(on_time_frames) + sum(late_frames)) / 1e9",
    "frames_in_time_percent": f"100 * sum(on_time_frames) / {_DECIDED}",
    "frames_late_percent": f"100 * sum(late_frames) / {_DECIDED}",
    "frames_lost_percent": f"100 * (sum(lost_frames) + sum(discarded_frames)) / {_DECIDED}",
    "late_packets": "sum(late_packets)",
    "encoded_rate_bps": "8 * sum(captured_bytes) / T",
}


_IN_WORDS = {
    **{
        f"frame_delay_{name}_s": Formula(
            "frame_histograms",
            f"smallest d with at least {percent} % of the weight of `frame_delay_ns` up to d",
        )
        for name, percent in (("median", 50), ("p95", 95), ("p99", 99))
    },
    "freezes_per_minute": Formula("frame_summary, flows", "60 * freezes / flows / T"),
    "frozen_percent": Formula("frame_summary, flows", "100 * frozen_ns / 1e9 / flows / T"),
    "foreign_rpm": Formula("request_histograms", "60e9 * round_trips / trimmed mean of `response_time_ns`"),
    "loaded_rpm": Formula("flow_series", "60e9 / trimmed mean of srtt_ns"),
    "rpm": Formula("request_histograms, flow_series", "(foreign_rpm + loaded_rpm) / 2"),
    **{
        f"queueing_delay_p{percent}_s": Formula(
            "histograms", f"smallest d with at least {percent} % of the weight of `sojourn_ns` up to d"
        )
        for percent in (50, 95, 99)
    },
    "queueing_delay_by_capacity_s": Formula(
        "links, summary", "8 * backlog_bytes_by_capacity / departures_bytes / C"
    ),
    "slow_percent": Formula(
        "queues, capacity", "100 * samples with backlog > capacity in (t, t + limit] / samples"
    ),
    "slow_until_s": Formula(
        "queues, capacity", "least t with backlog <= capacity in (t, t + limit] over [t, t + hold]"
    ),
    "loss_percent": _loss("all queues of both paths"),
    "loss_there_percent": _loss("all queues of the forward path"),
    "loss_back_percent": _loss("all queues of the return path"),
    "round_trip_mean_s": Formula("flows, histograms", "mean over flows of base_rtt + sum of mean sojourns"),
    "goodput_share_percent": Formula("flows", "100 * goodput of the class / goodput of all classes"),
    "jain_index_of_classes": Formula("flows", "(sum x)^2 / (n sum x^2), x = goodput of a class"),
    "queue_share_percent": Formula(
        "summary", "100 * departures_bytes / departures_bytes of all inner queues of the same queue"
    ),
    "flow_queues_mean": Formula("law", "mean of queues, of new + old, or of sparse + bulk"),
    "flow_collision_percent": Formula("law, queues", "100 * growth of collisions / sum of arrivals_packets"),
    "backlog_error_percent": Formula("summary", "100 * (mean backlog - q_ref) / q_ref"),
    "backlog_reach_s": Formula("queues", "least t with |mean backlog in (t - 10 s, t] - q_ref| <= q_ref / 5"),
    "backlog_settling_s": Formula(
        "queues", "least t from which on |mean backlog in (t - 10 s, t] - q_ref| <= q_ref / 5"
    ),
    "backlog_below_min_th_percent": Formula("histograms", "100 * time with backlog < min_th / T"),
    "backlog_above_max_th_percent": Formula("histograms", "100 * time with backlog > max_th / T"),
    "probability_mean": Formula("law", "mean of p"),
    "probability_short_sd": Formula("law", "mean over bins of the standard deviation of p within the bin"),
    "probability_spread_percent": Formula("law", "100 * sd / mean of the 1 s means of p after t1 / 2"),
    "average_mean_packets": Formula("law", "mean of avg"),
    "average_sd_packets": Formula("law", "standard deviation of avg"),
    "average_in_band_percent": Formula("law", "100 * samples with low <= avg <= high / samples"),
    "average_longest_stay_s": Formula("law", "longest time with min_th < avg < max_th"),
    "average_converged_s": Formula("law", "least t with min_th < avg < max_th over [t, t + hold]"),
    "loss_bins_percent": Formula("queues", "100 * bins with a drop / bins"),
    "idle_bins_percent": Formula(
        "queues", "100 * (bins that send at least 2 packets less than C * bin) / bins"
    ),
    "hurst": Formula("queues", "1 + slope / 2, slope of log variance of block means over log block length"),
    "mark_gaps_p_value": Formula("packets", "p-value of chi-square: gaps between marks against geometric(p)"),
    "lockout_percent": Formula("flow_series", "100 * windows of 10 s with Jain's index < 0.7 / windows"),
    "starved_percent": Formula(
        "flow_series", "100 * (flow, window) pairs below a tenth of the window's mean / pairs"
    ),
    "synchronisation_percent": Formula("packets", "mean over loss events of 100 * flows that lose / flows"),
    "window_correlation": Formula("flow_series", "(var(sum of cwnd) / sum of var(cwnd) - 1) / (n - 1)"),
    "rtt_bias_exponent": Formula("flows", "-slope of log goodput over log base_rtt, by least squares"),
    "ack_width_percent": Formula("flow_series", "100 * (max - min) / mean of the growth of acked_bytes"),
    "response_rate_within_percent": Formula(
        "request_sample", "100 * requests with low <= 8 * response_bytes / response_time <= high / requests"
    ),
}


def _of_waits(many: str, table: str, time: str) -> dict[str, Formula]:
    """Return the formulas for requests or pages, given the prefixes that name counts, tables and times."""
    summary, histograms = f"{table}_summary", f"{table}_histograms"
    ended = {f"{many}_{how}": f"sum({how})" for how in ("completed", "failed", "censored")}
    percentiles = {"median": 50, "p90": 90, "p95": 95, "p99": 99}
    quantile = "least t with {}_within_percent(t) >= {}"
    share = "100 * sum over ages a <= t of completed / at_risk * product over b < a of (1 - ended / at_risk)"
    return {
        **{name: Formula(summary, text) for name, text in ended.items()},
        f"{time}_mean_s": Formula(summary, f"sum({time}_sum_ns) / sum(completed) / 1e9"),
        **{
            f"{time}_{name}_s": Formula(histograms, quantile.format(time, percent))
            for name, percent in percentiles.items()
        },
        f"{time}_within_percent": Formula(histograms, share),
        f"{time}_reached_s": Formula(histograms, f"least t with {time}_within_percent(t) >= share"),
        f"{time}_cdf_area_percent": Formula(
            histograms, f"integral of {time}_within_percent from 0 to within / within"
        ),
    }


FORMULAS: Mapping[str, Formula] = MappingProxyType(
    {name: Formula("flows", text) for name, text in _OF_FLOWS.items()}
    | {name: Formula("summary", text) for name, text in _OF_SUMMARY.items()}
    | {name: Formula("frame_summary", text) for name, text in _OF_FRAMES.items()}
    | _IN_WORDS
    | _of_waits("requests", "request", "response_time")
    | _of_waits("pages", "page", "page_time")
)
"""The formula of each metric, by the metric's name."""
