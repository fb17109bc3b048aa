"""Metrics of what users wait for: how long they wait for responses and for pages, and how many they get.

Of a class that makes no requests none is defined, and none of pages of a class that fetches none. Percentiles
and shares come from histograms with bins of at most 1 %. Each can be asked of some size bands:
``response_time_p90_s{below=10kB}``.
"""

from __future__ import annotations

from aqmlab.metrics.measured import Measured
from aqmlab.metrics.registry import Parameter, metric
from aqmlab.metrics.response_times import CdfUntil
from aqmlab.metrics.waits import AT_LEAST, BELOW, PAGES, REQUESTS, Size, Waits

_QUANTILES = (
    ("median", "median", 0.5, "median {time}"),
    ("p90", "p90", 0.9, "90th percentile of the {time}s"),
    ("p95", "p95", 0.95, "95th percentile of the {time}s"),
    ("p99", "p99", 0.99, "99th percentile of the {time}s"),
)


def _define(waits: Waits, *, timed: str, of_sizes: str, source: str, ended: dict[str, str]) -> None:
    """Define all metrics of one kind of wait.

    Parameters
    ----------
    waits
        Which.
    timed
        From when to when it lasts.
    of_sizes
        Whose sizes the bands are of.
    source
        Where the definition of the time comes from.
    ended
        What counts as completed, failed and censored.
    """
    sizes = (
        Parameter(
            AT_LEAST,
            "B",
            f"the least {of_sizes}: the begin of a size band; that of the first if not given",
        ),
        Parameter(
            BELOW,
            "B",
            f"a {of_sizes} that is not reached: the begin of a size band; there is none if not given",
        ),
    )
    whose = (
        f"of the {waits.many} completed in the measured interval, {timed}; censored {waits.many} do not count"
    )
    for name, label, share, meaning in _QUANTILES:
        _quantile(waits, name, label, share, f"{meaning.format(time=waits.time)} {whose}", source, sizes)
    _mean(waits, f"mean {waits.time} {whose}", source, sizes)
    _distribution(waits, timed, sizes)
    for how, better in (("completed", "more"), ("failed", "less"), ("censored", "less")):
        _ended(waits, how, better, ended[how], sizes)


_Sizes = tuple[Parameter, ...]


def _quantile(  # noqa: PLR0913, PLR0917 (a metric's parts)
    waits: Waits, name: str, label: str, share: float, definition: str, source: str, sizes: _Sizes
) -> None:
    @metric(
        waits.metric(f"{name}_s"),
        label=f"{waits.time}, {label}",
        unit="s",
        definition=definition,
        source=source,
        better="less",
        parameters=sizes,
    )
    def compute(run: Measured, _queue: str, class_name: str, *, at_least: Size, below: Size) -> float | None:
        quantile_ns = waits.times(run, class_name, at_least, below).completed.quantile(share)
        return None if quantile_ns is None else quantile_ns / 1e9


def _mean(waits: Waits, definition: str, source: str, sizes: _Sizes) -> None:
    @metric(
        waits.metric("mean_s"),
        label=f"{waits.time}, mean",
        unit="s",
        definition=definition,
        source=source,
        better="less",
        parameters=sizes,
    )
    def compute(run: Measured, _queue: str, class_name: str, *, at_least: Size, below: Size) -> float | None:
        # Their sum is recorded exactly.
        parts = waits.of_sizes(run, class_name, at_least, below)
        count = sum(totals.completed for totals in parts)
        return sum(totals.response_time_sum_ns for totals in parts) / count / 1e9 if count else None


def _distribution(waits: Waits, timed: str, sizes: _Sizes) -> None:
    """The distribution function at one time, and the area under it."""
    parameters = (Parameter("within", "s", "the time", waits.until_s), *sizes)

    def cdf(run: Measured, class_name: str, *, within: float, at_least: Size, below: Size) -> CdfUntil:
        return CdfUntil(waits.times(run, class_name, at_least, below), within * 1e9)

    @metric(
        waits.metric("within_percent"),
        label="completed in time" if waits is REQUESTS else f"{waits.many} completed in time",
        unit="%",
        definition=f"{waits.many} that were completed within a time ({timed}), of those of which it is"
        f" known whether they were completed within it: a failed {waits.one} never is, and one that had not"
        " ended at the end of the run counts only for times that it had waited by then; as a function of the"
        f" time it is the distribution function of the {waits.time}s",
        source="E. L. Kaplan and P. Meier, Journal of the American Statistical Association 53, 1958,"
        " section 1 (the reduced sample)",
        better="more",
        parameters=parameters,
        cdf=cdf,
    )
    def within_percent(
        run: Measured, _queue: str, class_name: str, *, within: float, at_least: Size, below: Size
    ) -> float | None:
        times = waits.times(run, class_name, at_least, below)
        return _percent(times.share_within(within * 1e9))

    @metric(
        waits.metric("cdf_area_percent"),
        label=f"area under the {waits.time} CDF",
        unit="%",
        definition=f"area under the distribution function of the {waits.time}s"
        f" (`{waits.metric('within_percent')}`) from 0 to a time, by that time: 100 % if every"
        f" {waits.one} were completed at once",
        source="ours: the mean of the distribution function over the times that a plot of it shows",
        better="more",
        parameters=parameters,
    )
    def area(
        run: Measured, _queue: str, class_name: str, *, within: float, at_least: Size, below: Size
    ) -> float | None:
        if within <= 0:
            return None
        return _percent(waits.times(run, class_name, at_least, below).area(within * 1e9))


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def _ended(waits: Waits, how: str, better: str, definition: str, sizes: _Sizes) -> None:
    @metric(
        f"{waits.many}_{how}",
        label=f"{how} {waits.many}",
        unit="",
        definition=definition,
        source=f"`{how}` of `{waits.one}_summary` in the recording",
        better=better,
        parameters=sizes,
    )
    def compute(run: Measured, _queue: str, class_name: str, *, at_least: Size, below: Size) -> float | None:
        parts = waits.of_sizes(run, class_name, at_least, below)
        return float(sum(getattr(totals, how) for totals in parts)) if parts else None


_define(
    REQUESTS,
    timed="from the hand-over of a request to TCP to the last byte of its response, the set-up of the"
    " connection included where the request opens it",
    of_sizes="size of a response",
    source="RFC 9411, section 6.1 (time to last byte)",
    ended={
        "completed": "requests whose last byte of the response arrived in the measured interval",
        "failed": "requests whose connection was reset or given up in the measured interval before the"
        " response was complete",
        "censored": "requests that had begun and not ended at the end of the run",
    },
)
_define(
    PAGES,
    timed="from the opening of a page's first connection, or the request for its document where connections"
    " are kept, to the last byte of its last object; parse delays between its waves are included",
    of_sizes="weight of a page",
    source="ours: page load time without rendering",
    ended={
        "completed": "pages whose last object arrived in the measured interval",
        "failed": "pages of which a connection was reset or given up before all objects had arrived",
        "censored": "pages that had begun and not ended at the end of the run",
    },
)
