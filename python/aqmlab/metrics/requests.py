"""Metrics of requests: how long clients wait for responses, and how many of them get one.

Of a class that makes no requests none is defined. Percentiles come from histograms with bins of at most 1 %.
"""

from __future__ import annotations

from aqmlab.metrics.measured import Histogram, Measured
from aqmlab.metrics.registry import metric

_RFC9411 = "RFC 9411, section 6.1 (time to last byte)"


def _response_time(name: str, label: str, share: float, meaning: str) -> None:
    @metric(
        name,
        label=f"response time, {label}",
        unit="s",
        definition=f"{meaning} of the requests completed in the measured interval, from the hand-over of a"
        " request to TCP to the last byte of its response, the set-up of the connection included where the"
        " request opens it; censored requests do not count",
        source=_RFC9411,
        better="less",
    )
    def compute(run: Measured, _queue: str, class_name: str) -> float | None:
        parts = [totals.response_time for totals in run.requests_of(class_name)]
        quantile_ns = Histogram.merged(parts).quantile(share)
        return None if quantile_ns is None else quantile_ns / 1e9


_response_time("response_time_median_s", "median", 0.5, "median response time")
_response_time("response_time_p90_s", "p90", 0.9, "90th percentile of the response times")
_response_time("response_time_p99_s", "p99", 0.99, "99th percentile of the response times")


def _ended(how: str, better: str, definition: str) -> None:
    @metric(
        f"requests_{how}",
        label=f"{how} requests",
        unit="",
        definition=definition,
        source=f"`{how}` of `request_summary` in the recording",
        better=better,
    )
    def compute(run: Measured, _queue: str, class_name: str) -> float | None:
        parts = run.requests_of(class_name)
        return float(sum(getattr(totals, how) for totals in parts)) if parts else None


_ended("completed", "more", "requests whose last byte of the response arrived in the measured interval")
_ended(
    "failed",
    "less",
    "requests whose connection was reset or given up in the measured interval before the response"
    " was complete",
)
_ended("censored", "less", "requests that had begun and not ended at the end of the run")
