"""Metrics of users' waiting times: times and numbers of responses and pages.

They are undefined for a class without requests; the page metrics are undefined for a class that fetches no
pages. Percentiles and shares come from histograms with bins up to 1 % wide, and take failed and censored
requests into account; the mean is that of the completed requests. Each can be limited to some size bands:
``response_time_p90_s{below=10kB}``.
"""

from __future__ import annotations

from math import inf

from aqmlab.metrics.measured import Measured
from aqmlab.metrics.registry import Parameter, metric
from aqmlab.metrics.response_times import UNKNOWN, CdfUntil
from aqmlab.metrics.scope import CLASS, FLOWS
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
        Requests or pages.
    timed
        The events between which the time is measured.
    of_sizes
        The objects whose sizes define the bands.
    source
        The source of the definition of the time.
    ended
        The definitions of completed, failed and censored.
    """
    sizes = (
        Parameter(
            AT_LEAST,
            "B",
            f"an inclusive lower limit on the {of_sizes}; it must be the lower end of a size band; the"
            " default is that of the first band",
        ),
        Parameter(
            BELOW,
            "B",
            f"an exclusive upper limit on the {of_sizes}; it must be the lower end of a size band; by default"
            " there is no limit",
        ),
    )
    for name, label, share, meaning in _QUANTILES:
        _quantile(waits, name, label, share, f"{meaning.format(time=waits.time)}, {timed}", sizes)
    _reached(waits, timed, sizes)
    _mean(waits, timed, source, sizes)
    _distribution(waits, timed, sizes)
    for how, better in (("completed", "more"), ("failed", "less"), ("censored", "less")):
        _ended(waits, how, better, ended[how], sizes)


_Sizes = tuple[Parameter, ...]
_ESTIMATE = (
    "O. O. Aalen and S. Johansen, Scandinavian Journal of Statistics 5, 1978; without failures, E. L. Kaplan"
    " and P. Meier, Journal of the American Statistical Association 53, 1958"
)


def _quantile(  # noqa: PLR0913, PLR0917 (a metric's parts)
    waits: Waits, name: str, label: str, share: float, definition: str, sizes: _Sizes
) -> None:
    within = waits.metric("within_percent")

    @metric(
        waits.metric(f"{name}_s"),
        label=f"{waits.time}, {label}",
        unit="s",
        definition=f"{definition}: the time at which `{within}` reaches {100 * share:g} %, so failed and"
        f" censored {waits.many} count as they do there; not defined if it does not reach that share",
        source=_ESTIMATE,
        better="less",
        takes=FLOWS | CLASS,
        parameters=sizes,
    )
    def compute(run: Measured, class_name: str, *, at_least: Size, below: Size) -> float | None:
        return _time_of(waits, run, class_name, share, (at_least, below))


def _reached(waits: Waits, timed: str, sizes: _Sizes) -> None:
    """The inverse of the distribution function."""

    @metric(
        waits.metric("reached_s"),
        label=f"{waits.time} reached",
        unit="s",
        definition=f"time within which a given share of the {waits.many} was completed ({timed}); it is the"
        f" inverse of `{waits.metric('within_percent')}`, so failed and censored {waits.many} count as they"
        " do there; not defined if that share is not reached",
        source=_ESTIMATE,
        better="less",
        takes=FLOWS | CLASS,
        parameters=(Parameter("share", "%", f"the share of the {waits.many}", 50.0), *sizes),
    )
    def compute(run: Measured, class_name: str, *, share: float, at_least: Size, below: Size) -> float | None:
        return _time_of(waits, run, class_name, share / 100.0, (at_least, below))


def _time_of(
    waits: Waits, run: Measured, class_name: str, share: float, sizes: tuple[Size, Size]
) -> float | None:
    time_ns = waits.times(run, class_name, *sizes).time_of(share)
    return None if time_ns is None else time_ns / 1e9


def _mean(waits: Waits, timed: str, source: str, sizes: _Sizes) -> None:
    @metric(
        waits.metric("mean_s"),
        label=f"{waits.time}, mean of completed",
        unit="s",
        definition=f"mean {waits.time} of the {waits.many} completed in the measured interval, {timed};"
        f" failed and censored {waits.many} do not count, so it is too low if there are many: the mean of all"
        f" {waits.many} cannot be known while some have not ended",
        source=source,
        better="less",
        takes=FLOWS | CLASS,
        parameters=sizes,
    )
    def compute(run: Measured, class_name: str, *, at_least: Size, below: Size) -> float | None:
        # The sum of the times is recorded exactly.
        parts = waits.of_sizes(run, class_name, at_least, below)
        count = sum(totals.completed for totals in parts)
        return sum(totals.response_time_sum_ns for totals in parts) / count / 1e9 if count else None


def _distribution(waits: Waits, timed: str, sizes: _Sizes) -> None:
    """Define the metrics of the distribution function: its value at a given time, and the area under it."""
    parameters = (Parameter("within", "s", "the time", waits.until_s), *sizes)

    def cdf(run: Measured, class_name: str, *, within: float, at_least: Size, below: Size) -> CdfUntil:
        return CdfUntil(waits.times(run, class_name, at_least, below), within * 1e9)

    @metric(
        waits.metric("within_percent"),
        label="completed in time" if waits is REQUESTS else f"{waits.many} completed in time",
        unit="%",
        definition=f"share of the {waits.many} completed within a given time ({timed}); a failed {waits.one}"
        " never completes, one that had not ended at the end of the run counts until the age that it had by"
        " then, and one that began before the measured interval from the age that it had at its beginning; as"
        f" a function of that time, the share is the distribution function of the {waits.time}s; not defined"
        f" beyond the ages at which {waits.many} were seen, if more than {100 * UNKNOWN:g} % of them take"
        " longer",
        source=_ESTIMATE,
        better="more",
        takes=FLOWS | CLASS,
        parameters=parameters,
        cdf=cdf,
    )
    def within_percent(
        run: Measured, class_name: str, *, within: float, at_least: Size, below: Size
    ) -> float | None:
        times = waits.times(run, class_name, at_least, below)
        return _percent(times.share_within(within * 1e9))

    @metric(
        waits.metric("cdf_area_percent"),
        label=f"area under the {waits.time} CDF",
        unit="%",
        definition=f"area under the distribution function of the {waits.time}s"
        f" (`{waits.metric('within_percent')}`) from 0 to a time, divided by that time; it would be"
        f" 100 % if every {waits.one} were completed immediately; not defined if the function is not defined"
        " up to that time",
        source="ours: the mean of the distribution function over the times that a plot of it shows",
        better="more",
        takes=FLOWS | CLASS,
        parameters=parameters,
    )
    def area(run: Measured, class_name: str, *, within: float, at_least: Size, below: Size) -> float | None:
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
        takes=FLOWS | CLASS,
        parameters=sizes,
    )
    def compute(run: Measured, class_name: str, *, at_least: Size, below: Size) -> float | None:
        parts = waits.of_sizes(run, class_name, at_least, below)
        return float(sum(getattr(totals, how) for totals in parts)) if parts else None


@metric(
    "response_rate_within_percent",
    label="responses at these rates",
    unit="%",
    definition="share of requests whose response size divided by response time is between two rates, among"
    " the completed requests of the sample; in a scatter plot of response times against sizes, such requests"
    " lie between two lines through the origin, in a triangle if sizes are bounded",
    source="ours: the dense triangle in figures 25 and 26 of L. Le, J. Aikat, K. Jeffay, F. D. Smith,"
    " SIGCOMM 2003",
    takes=FLOWS | CLASS,
    parameters=(
        Parameter("low", "bit/s", "an inclusive lower limit on the rate; none if not given"),
        Parameter("high", "bit/s", "an inclusive upper limit on the rate; none if not given"),
        Parameter(AT_LEAST, "B", "an inclusive lower limit on the size of a response; none if not given"),
        Parameter(BELOW, "B", "an exclusive upper limit on the size of a response; none if not given"),
    ),
    from_samples=True,
)
def response_rate_within(  # noqa: PLR0913 (two ranges)
    run: Measured,
    class_name: str,
    *,
    low: float | None,
    high: float | None,
    at_least: Size,
    below: Size,
) -> float | None:
    """Share of the requests between two rates; size bands are too coarse, so individual requests are used."""
    if run.tables is None or not run.requests_of(class_name):
        return None
    names = ", ".join(dict.fromkeys(totals.class_name for totals in run.requests_of(class_name)))
    sizes, times = REQUESTS.sample(run.tables, run.run, names)
    asked = (sizes >= (at_least or 0.0)) & (sizes < (inf if below is None else below))
    rates = 8.0 * sizes[asked] / times[asked]
    within = (rates >= (low or 0.0)) & (rates <= (inf if high is None else high))
    return 100.0 * float(within.mean()) if asked.any() else None


_define(
    REQUESTS,
    timed="from the hand-over of a request to TCP to the last byte of its response, including connection"
    " set-up if the request opens the connection",
    of_sizes="size of a response",
    source="RFC 9411, section 6.1 (time to last byte)",
    ended={
        "completed": "requests for which the last byte of the response arrived in the measured interval",
        "failed": "requests whose connection was reset or given up in the measured interval before the"
        " response was complete",
        "censored": "requests that had begun but had not ended at the end of the run, or when their class"
        " stopped sending",
    },
)
_define(
    PAGES,
    timed="from the opening of a page's first connection or, if connections are kept open, from the request"
    " for its document, to the last byte of its last object, including parse delays between the page's waves",
    of_sizes="weight of a page",
    source="ours: page load time without rendering",
    ended={
        "completed": "pages whose last object arrived in the measured interval",
        "failed": "pages for which a connection was reset or given up before all objects had arrived",
        "censored": "pages that had begun but had not ended at the end of the run, or when their class"
        " stopped sending",
    },
)
