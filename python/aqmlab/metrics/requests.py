"""Metrics of requests: how long clients wait for responses, and how many of them get one.

Of a class that makes no requests none is defined. Percentiles and shares come from histograms with bins of at
most 1 %. Each can be asked of the responses of some size bands: ``response_time_p90_s{below=10kB}``.
"""

from __future__ import annotations

from typing import NamedTuple

from aqmlab.metrics.measured import Measured, RequestTotals
from aqmlab.metrics.registry import Parameter, metric
from aqmlab.metrics.response_times import CdfUntil, ResponseTimes
from aqmlab.plan import quantity_text

_RFC9411 = "RFC 9411, section 6.1 (time to last byte)"
_TIMED = (
    "from the hand-over of a request to TCP to the last byte of its response, the set-up of the connection"
    " included where the request opens it"
)
_DISTRIBUTION = (
    "of those of which it is known whether they were completed within it: a failed request never is, and one"
    " that had not ended at the end of the run counts only for times that it had waited by then"
)
AT_LEAST, BELOW = "at_least", "below"
SIZES = (
    Parameter(
        AT_LEAST,
        "B",
        "the least size of a response: the begin of a size band; that of the first if not given",
    ),
    Parameter(
        BELOW, "B", "a size that responses do not reach: the begin of a size band; there is none if not given"
    ),
)
WITHIN = "within"
_WITHIN = Parameter(WITHIN, "s", "the time", 2.0)

Size = float | None


class SizeBand(NamedTuple):
    """Responses of at least one size that are below another one, if there is one."""

    at_least: int
    below: int | None = None

    @property
    def parameters(self) -> dict[str, float | None]:
        """What metrics are told to look at these alone."""
        return {AT_LEAST: float(self.at_least), BELOW: None if self.below is None else float(self.below)}

    def __str__(self) -> str:
        low, high = (size and quantity_text(size, "bytes") for size in self)
        if not low:
            return f"below {high}" if high else "all sizes"
        return f"{low} to {high}" if high else f"from {low}"


def size_bands(run: Measured, class_name: str) -> list[SizeBand]:
    """The size bands in which requests of a class were completed, ascending."""
    bands = {
        (band.response_low_bytes, band.response_high_bytes)
        for band in run.requests_of(class_name)
        if band.completed
    }
    return [SizeBand(low, None if high is None else high + 1) for low, high in sorted(bands)]


def requests_of_sizes(
    run: Measured, class_name: str, at_least: Size = None, below: Size = None
) -> list[RequestTotals]:
    """Requests of a class by size band, between two sizes; none where a size is inside of a band."""
    bands = run.requests_of(class_name)
    begins = {float(band.response_low_bytes) for band in bands}
    if not {size for size in (at_least, below) if size} <= begins:
        return []
    return [
        band
        for band in bands
        if band.response_low_bytes >= (at_least or 0.0) and (below is None or band.response_low_bytes < below)
    ]


def response_times(
    run: Measured, class_name: str, at_least: Size = None, below: Size = None
) -> ResponseTimes:
    """The response times of a class, of all responses or of those of some size bands."""
    return ResponseTimes.of(requests_of_sizes(run, class_name, at_least, below))


def _response_time(name: str, label: str, share: float, meaning: str) -> None:
    @metric(
        name,
        label=f"response time, {label}",
        unit="s",
        definition=f"{meaning} of the requests completed in the measured interval, {_TIMED}; censored"
        " requests do not count",
        source=_RFC9411,
        better="less",
        parameters=SIZES,
    )
    def compute(run: Measured, _queue: str, class_name: str, *, at_least: Size, below: Size) -> float | None:
        quantile_ns = response_times(run, class_name, at_least, below).completed.quantile(share)
        return None if quantile_ns is None else quantile_ns / 1e9


_response_time("response_time_median_s", "median", 0.5, "median response time")
_response_time("response_time_p90_s", "p90", 0.9, "90th percentile of the response times")
_response_time("response_time_p95_s", "p95", 0.95, "95th percentile of the response times")
_response_time("response_time_p99_s", "p99", 0.99, "99th percentile of the response times")


@metric(
    "response_time_mean_s",
    label="response time, mean",
    unit="s",
    definition=f"mean response time of the requests completed in the measured interval, {_TIMED}; censored"
    " requests do not count",
    source=_RFC9411,
    better="less",
    parameters=SIZES,
)
def response_time_mean(
    run: Measured, _queue: str, class_name: str, *, at_least: Size, below: Size
) -> float | None:
    """Their sum, which is recorded exactly, by their number."""
    parts = requests_of_sizes(run, class_name, at_least, below)
    count = sum(totals.completed for totals in parts)
    return sum(totals.response_time_sum_ns for totals in parts) / count / 1e9 if count else None


def _cdf(run: Measured, class_name: str, *, within: float, at_least: Size, below: Size) -> CdfUntil:
    return CdfUntil(response_times(run, class_name, at_least, below), within * 1e9)


@metric(
    "response_time_within_percent",
    label="completed in time",
    unit="%",
    definition=f"requests that were completed within a time ({_TIMED}), {_DISTRIBUTION}; as a function of the"
    " time it is the distribution function of the response times",
    source="E. L. Kaplan and P. Meier, Journal of the American Statistical Association 53, 1958, section 1"
    " (the reduced sample)",
    better="more",
    parameters=(_WITHIN, *SIZES),
    cdf=_cdf,
)
def response_time_within(
    run: Measured, _queue: str, class_name: str, *, within: float, at_least: Size, below: Size
) -> float | None:
    """The distribution function of the response times at one time."""
    return _percent(response_times(run, class_name, at_least, below).share_within(within * 1e9))


@metric(
    "response_time_cdf_area_percent",
    label="area under the response time CDF",
    unit="%",
    definition="area under the distribution function of the response times (`response_time_within_percent`)"
    " from 0 to a time, by that time: 100 % if every request were completed at once",
    source="ours: the mean of the distribution function over the times that a plot of it shows",
    better="more",
    parameters=(_WITHIN, *SIZES),
)
def response_time_cdf_area(
    run: Measured, _queue: str, class_name: str, *, within: float, at_least: Size, below: Size
) -> float | None:
    """How early requests are completed, in one number."""
    if within <= 0:
        return None
    return _percent(response_times(run, class_name, at_least, below).area(within * 1e9))


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def _ended(how: str, better: str, definition: str) -> None:
    @metric(
        f"requests_{how}",
        label=f"{how} requests",
        unit="",
        definition=definition,
        source=f"`{how}` of `request_summary` in the recording",
        better=better,
        parameters=SIZES,
    )
    def compute(run: Measured, _queue: str, class_name: str, *, at_least: Size, below: Size) -> float | None:
        parts = requests_of_sizes(run, class_name, at_least, below)
        return float(sum(getattr(totals, how) for totals in parts)) if parts else None


_ended("completed", "more", "requests whose last byte of the response arrived in the measured interval")
_ended(
    "failed",
    "less",
    "requests whose connection was reset or given up in the measured interval before the response"
    " was complete",
)
_ended("censored", "less", "requests that had begun and not ended at the end of the run")
