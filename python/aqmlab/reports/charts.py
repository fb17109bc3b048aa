"""The charts of a report: a shared time axis, and one set of lines for the arm that is chosen."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab.metrics import EVERY_CLASS, Histogram, Measured
from aqmlab.reports.bokeh_json import Model
from aqmlab.reports.figures import PALETTE, ChartAxis, Figure, cursor, interval, source
from aqmlab.series import RunSeries

FAINT = 0.35
STALL = PALETTE[5]
"""What no line over time has."""
_MOST_CDF_POINTS = 300
_ARM_DASHES = ((), (6, 3), (2, 3), (8, 3, 2, 3), (12, 4), (8, 3, 2, 3, 2, 3), (12, 3, 4, 3))
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "star", "plus", "hex", "x")


@dataclass(frozen=True)
class TimeChart:
    """A chart over time and the numbers of the arms that have something to show in it."""

    figure: Figure
    arms: frozenset[int]


def time_charts(
    series: Sequence[RunSeries], first: int, end_s: float, warmup_s: float
) -> dict[str, TimeChart]:
    """Charts over time, by name.

    Each line is drawn once, from a live source that holds the data of arm ``first``. The data of every arm
    travel in sources named ``queue-0``, ``law-0``, ``flows-0``, ..., and the page's script copies those of
    the chosen arm into ``queue-live`` and so on: a set of lines for each arm would take BokehJS seconds.
    """
    stalled = any(of_run.stalls for of_run in series)
    end_s = end_s or 1.0  # a run that ended at time 0 still has axes
    x_range = interval(0, end_s, fixed=True)
    shared_cursor = cursor()
    sources = {
        kind: _sources(kind, [columns(of_run) for of_run in series], first) for kind, columns in _COLUMNS
    }
    if stalled:
        sources["stalls"] = _sources("stalls", [_stall_columns(of_run) for of_run in series], first)

    def chart(title: str, kind: str, lines: Sequence[tuple[str, str, str, float]], label: str = "") -> Figure:
        fig = Figure(title, x=ChartAxis(label, range=x_range), height=190)
        fig.follow(shared_cursor)
        fig.upright(warmup_s)
        if stalled:
            fig.strips(sources["stalls"][0], "from", "to", color=STALL, alpha=0.5, name="stall")
        for column, name, color, width in lines:
            fig.line(sources[kind][0], "t", column, color=color, width=width, label=name)
        return fig

    blue, orange, green, red, sky = PALETTE[:5]
    rate = chart(
        "Arrivals and departures [Mbit/s]",
        "queue",
        [("arrivals", "arrivals", orange, 1.3), ("departures", "departures", blue, 1.3)],
    )
    backlog = chart("Backlog and the law's average [packets]", "queue", [("backlog", "backlog", blue, 1.3)])
    backlog.line(sources["law"][0], "t", "avg", color=red, width=2, label="avg")
    probability = chart(
        "Probability of the law", "law", [("p", "p", blue, 1.3), ("max_p", "max_p", orange, 1.3)]
    )
    fates = chart(
        "Drops and marks [packets/s]",
        "queue",
        [
            ("by_law", "drops by the law", orange, 1.3),
            ("not_by_law", "other drops", red, 1.3),
            ("marked", "marks", green, 1.3),
        ],
    )
    windows = chart("Congestion windows [segments]", "mean", [], "time [s]")
    windows.lines(sources["flows"][0], "t", "cwnd", color=sky, alpha=FAINT, name="a flow")
    windows.line(sources["mean"][0], "t", "cwnd", color=red, width=2, label="mean of all flows")
    rate.carry(source for _, of_arms in sources.values() for source in of_arms)
    sampled = frozenset(i for i, s in enumerate(series) if len(s.queue.t_s))
    with_p = frozenset(i for i, s in enumerate(series) if "p" in s.law)
    with_windows = frozenset(i for i, s in enumerate(series) if s.cwnd)
    charts = {
        "rate": TimeChart(rate, sampled),
        "backlog": TimeChart(backlog, sampled),
        "p": TimeChart(probability, with_p),
        "fates": TimeChart(fates, sampled),
        "cwnd": TimeChart(windows, with_windows),
    }
    return {name: of_time for name, of_time in charts.items() if of_time.arms}


def _sources(kind: str, arms: Sequence[dict[str, Any]], first: int) -> tuple[Model, list[Model]]:
    """The live source and those of the arms."""
    live = source(arms[first], f"{kind}-live")
    return live, [source(columns, f"{kind}-{i}") for i, columns in enumerate(arms)]


def _queue_columns(series: RunSeries) -> dict[str, Any]:
    queue = series.queue.values
    return {
        "t": series.queue.t_s,
        "arrivals": [rate / 1e6 for rate in queue["arrivals_bps"]],
        "departures": [rate / 1e6 for rate in queue["departures_bps"]],
        "backlog": queue["backlog_packets"],
        "by_law": queue["dropped_by_law_per_s"],
        "not_by_law": queue["dropped_not_by_law_per_s"],
        "marked": queue["marked_per_s"],
    }


def _law_columns(series: RunSeries) -> dict[str, Any]:
    t = next((times for times, _ in series.law.values()), ())
    blank = [float("nan")] * len(t)
    lines = {name: series.law.get(name, (t, blank)) for name in ("avg", "p", "max_p")}
    # A law has all its values at each sample.
    return {"t": t} | {name: y if len(y) == len(t) else blank for name, (_, y) in lines.items()}


def _flow_columns(series: RunSeries) -> dict[str, Any]:
    flows = [line for name, line in series.cwnd.items() if name != "mean"]
    return {"t": [t for t, _ in flows], "cwnd": [y for _, y in flows]}


def _mean_columns(series: RunSeries) -> dict[str, Any]:
    t, y = series.cwnd.get("mean", ((), ()))
    return {"t": t, "cwnd": y}


def _stall_columns(series: RunSeries) -> dict[str, Any]:
    return {"from": [begin for begin, _ in series.stalls], "to": [end for _, end in series.stalls]}


_COLUMNS = (
    ("queue", _queue_columns),
    ("law", _law_columns),
    ("flows", _flow_columns),
    ("mean", _mean_columns),
)


def delay_cdf_chart(runs: Sequence[Measured], arms: Sequence[str], queue: str) -> Figure | None:
    """Distribution of queueing delay of each arm, all seeds together."""
    merged = {arm: delay_histogram(runs, arm, queue) for arm in arms}
    longest = max((histogram.quantile(0.999) or 0.0 for histogram in merged.values()), default=0.0) / 1e6
    fig = Figure(
        "Queueing delay, all seeds together",
        x=ChartAxis("queueing delay [ms]", range=interval(0, longest * 1.02 or 1.0)),
        y=ChartAxis("share of packets", range=interval(0, 1.01)),
    )
    for i, (arm, histogram) in enumerate(merged.items()):
        if histogram.total:
            x, y = cdf_points(histogram)
            data = source({"t": x, "share": y})
            fig.line(data, "t", "share", color=color(i), width=2, dash=dash_lengths(i), name=arm)
    return None if fig.empty else fig


def delay_histogram(runs: Sequence[Measured], arm: str, queue: str) -> Histogram:
    """Queueing delays of all seeds of an arm."""
    of_arm = [
        run.queues[queue, EVERY_CLASS]
        for run in runs
        if run.run.arm == arm and (queue, EVERY_CLASS) in run.queues
    ]
    return Histogram.merged([totals.sojourn for totals in of_arm])


def cdf_points(histogram: Histogram, most: int = _MOST_CDF_POINTS) -> tuple[list[float], list[float]]:
    """Delays in ms and shares, thinned evenly by share so that steps and tails both survive."""
    high, share = histogram.cdf()
    kept: Sequence[int] = range(len(high))
    if len(high) > most:
        found = {bisect_left(share, i / (most - 1)) for i in range(most)}
        kept = sorted({min(index, len(high) - 1) for index in found})
    return [0.0, *(high[i] / 1e6 for i in kept)], [0.0, *(share[i] for i in kept)]


def trade_off_chart(points: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Figure | None:
    """Goodput against queueing delay, a mark a run (RFC 7928, section 2.7): up and left is better.

    Parameters
    ----------
    points
        By arm: delays in ms and goodputs in Mbit/s.
    """
    fig = Figure(
        "Goodput against mean queueing delay",
        x=ChartAxis("mean queueing delay [ms]"),
        y=ChartAxis("goodput [Mbit/s]"),
    )
    for i, (arm, (delays, goodputs)) in enumerate(points.items()):
        if delays:
            data = source({"x": delays, "y": goodputs})
            fig.scatter(data, "x", "y", color=color(i), marker=marker(i), name=arm)
    return None if fig.empty else fig


def color(arm: int) -> str:
    """Colour of the arm of that number, the same in all charts."""
    return PALETTE[arm % len(PALETTE)]


def dash_lengths(arm: int) -> tuple[int, ...]:
    """Dashes of its lines, in pixels that are drawn and left out; none for a solid line.

    The numbers of colours, dashes and marks have no common divisor, so no two arms of 56 have the same two.
    """
    return _ARM_DASHES[arm % len(_ARM_DASHES)]


def marker(arm: int) -> str:
    """Its mark, by BokehJS's name."""
    return MARKERS[arm % len(MARKERS)]
