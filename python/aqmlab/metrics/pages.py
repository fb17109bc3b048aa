"""Metrics of web pages: how long users wait for a whole page, and how many they get.

Of a class that fetches no pages none is defined. Objects of a page are requests, and have the metrics of
requests.
"""

from __future__ import annotations

from aqmlab.metrics.measured import Histogram, Measured
from aqmlab.metrics.registry import metric

_TIMED = (
    "from the opening of a page's first connection, or the request for its document where connections are"
    " kept, to the last byte of its last object; parse delays between its waves are included"
)
_OURS = "ours: page load time without rendering"


def _page_time(name: str, label: str, share: float, meaning: str) -> None:
    @metric(
        name,
        label=f"page time, {label}",
        unit="s",
        definition=f"{meaning} of the pages completed in the measured interval, {_TIMED}; censored pages do"
        " not count",
        source=_OURS,
        better="less",
    )
    def compute(run: Measured, _queue: str, class_name: str) -> float | None:
        parts = [totals.response_time for totals in run.pages_of(class_name)]
        quantile_ns = Histogram.merged(parts).quantile(share)
        return None if quantile_ns is None else quantile_ns / 1e9


_page_time("page_time_median_s", "median", 0.5, "median page time")
_page_time("page_time_p90_s", "p90", 0.9, "90th percentile of the page times")
_page_time("page_time_p95_s", "p95", 0.95, "95th percentile of the page times")


@metric(
    "page_time_mean_s",
    label="page time, mean",
    unit="s",
    definition=f"mean page time of the pages completed in the measured interval, {_TIMED}; censored pages do"
    " not count",
    source=_OURS,
    better="less",
)
def page_time_mean(run: Measured, _queue: str, class_name: str) -> float | None:
    """Their sum, which is recorded exactly, by their number."""
    parts = run.pages_of(class_name)
    count = sum(totals.completed for totals in parts)
    return sum(totals.response_time_sum_ns for totals in parts) / count / 1e9 if count else None


def _ended(how: str, better: str, definition: str) -> None:
    @metric(
        f"pages_{how}",
        label=f"{how} pages",
        unit="",
        definition=definition,
        source=f"`{how}` of `page_summary` in the recording",
        better=better,
    )
    def compute(run: Measured, _queue: str, class_name: str) -> float | None:
        parts = run.pages_of(class_name)
        return float(sum(getattr(totals, how) for totals in parts)) if parts else None


_ended("completed", "more", "pages whose last object arrived in the measured interval")
_ended("failed", "less", "pages of which a connection was reset or given up before all objects had arrived")
_ended("censored", "less", "pages that had begun and not ended at the end of the run")
