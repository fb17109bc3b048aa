"""The interactive charts: Bokeh figures with a shared time axis, a set of lines for each arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aqmlab.metrics import EVERY_CLASS, Histogram, Measured
from aqmlab.series import RunSeries

if TYPE_CHECKING:
    from bokeh.plotting import figure

# After Okabe and Ito 2008, told apart by colour-blind readers too; black and yellow, which one of the two
# backgrounds swallows, are replaced, and their blue is lighter.
PALETTE = ("#1f83c7", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#8c6bb1", "#7a8a3c")
MUTED = "#8a8f98"
FAINT = 0.35
_MOST_CDF_POINTS = 300


@dataclass(frozen=True)
class TimeChart:
    """A chart over time and the numbers of the arms that have something to show in it."""

    figure: figure
    arms: frozenset[int]


def time_charts(
    series: Sequence[RunSeries], first: int, end_s: float, warmup_s: float
) -> dict[str, TimeChart]:
    """Charts over time, by name.

    Each line is drawn once, from a live source that holds the data of arm ``first``. The data of every arm
    travel in sources named ``queue-0``, ``law-0``, ``flows-0``, ..., and the page's script copies those of
    the chosen arm into ``queue-live`` and so on: a set of lines for each arm would take Bokeh seconds.
    """
    from bokeh.models import CrosshairTool, Range1d, Span

    end_s = end_s or 1.0  # a run that ended at time 0 still has axes
    x_range = Range1d(0, end_s, bounds=(0, end_s))
    cursor = Span(dimension="height", line_color=MUTED, line_width=1)
    sources = {
        kind: _sources(kind, [columns(of_run) for of_run in series], first) for kind, columns in _COLUMNS
    }

    def chart(title: str, unit: str, kind: str, lines: Sequence[tuple[str, str, str, float]]) -> figure:
        fig = _figure(f"{title} [{unit}]" if unit else title, x_range=x_range, height=190)
        fig.add_tools(CrosshairTool(overlay=cursor, dimensions="height"))
        fig.add_layout(
            Span(location=warmup_s, dimension="height", line_color=MUTED, line_dash="dotted", line_width=1)
        )
        for column, label, color, width in lines:
            _line(fig, sources[kind][0], column, color, label, width=width)
        return fig

    blue, orange, green, red, sky = PALETTE[:5]
    rate = chart(
        "Arrivals and departures",
        "Mbit/s",
        "queue",
        [("arrivals", "arrivals", orange, 1.3), ("departures", "departures", blue, 1.3)],
    )
    backlog = chart("Backlog and the law's average", "packets", "queue", [("backlog", "backlog", blue, 1.3)])
    _line(backlog, sources["law"][0], "avg", red, "avg", width=2)
    probability = chart(
        "Probability of the law", "", "law", [("p", "p", blue, 1.3), ("max_p", "max_p", orange, 1.3)]
    )
    fates = chart(
        "Drops and marks",
        "packets/s",
        "queue",
        [
            ("early", "early drops", orange, 1.3),
            ("tail", "tail drops", red, 1.3),
            ("marked", "marks", green, 1.3),
        ],
    )
    windows = chart("Congestion windows", "segments", "mean", [])
    windows.multi_line("t", "cwnd", source=sources["flows"][0], color=sky, alpha=FAINT, name="a flow")
    _line(windows, sources["mean"][0], "cwnd", red, "mean of all flows", width=2)
    windows.xaxis.axis_label = "time [s]"
    # The document carries what a figure's tags refer to.
    rate.tags = [source for _, of_arms in sources.values() for source in of_arms]
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
    for of_time in charts.values():
        _legend_above(of_time.figure)
    return {name: of_time for name, of_time in charts.items() if of_time.arms}


def _sources(kind: str, arms: Sequence[dict[str, Any]], first: int) -> tuple[Any, list[Any]]:
    """The live source and those of the arms."""
    from bokeh.models import ColumnDataSource

    live = ColumnDataSource(arms[first], name=f"{kind}-live")
    return live, [ColumnDataSource(columns, name=f"{kind}-{i}") for i, columns in enumerate(arms)]


def _queue_columns(series: RunSeries) -> dict[str, Any]:
    queue = series.queue.values
    return {
        "t": _thin(series.queue.t_s),
        "arrivals": _thin(queue["arrivals_bps"] / 1e6),
        "departures": _thin(queue["departures_bps"] / 1e6),
        "backlog": _thin(queue["backlog_packets"]),
        "early": _thin(queue["dropped_early_per_s"]),
        "tail": _thin(queue["dropped_overflow_per_s"]),
        "marked": _thin(queue["marked_per_s"]),
    }


def _law_columns(series: RunSeries) -> dict[str, Any]:
    t = next((times for times, _ in series.law.values()), np.zeros(0))
    blank = np.full(len(t), np.nan)
    lines = {name: series.law.get(name, (t, blank)) for name in ("avg", "p", "max_p")}
    # A law tells all its values at each sample.
    return {"t": _thin(t)} | {name: _thin(y if len(y) == len(t) else blank) for name, (_, y) in lines.items()}


def _flow_columns(series: RunSeries) -> dict[str, Any]:
    flows = [line for name, line in series.cwnd.items() if name != "mean"]
    return {"t": [_thin(t) for t, _ in flows], "cwnd": [_thin(y) for _, y in flows]}


def _mean_columns(series: RunSeries) -> dict[str, Any]:
    t, y = series.cwnd.get("mean", (np.zeros(0), np.zeros(0)))
    return {"t": _thin(t), "cwnd": _thin(y)}


_COLUMNS = (
    ("queue", _queue_columns),
    ("law", _law_columns),
    ("flows", _flow_columns),
    ("mean", _mean_columns),
)


def _thin(values: Any) -> Any:  # noqa: ANN401 (arrays of any shape of floats)
    """Seven digits are more than a screen shows, and half the size of the file."""
    return np.asarray(values, dtype=np.float32)


def delay_cdf_chart(runs: Sequence[Measured], arms: Sequence[str], queue: str) -> figure | None:
    """Distribution of queueing delay of each arm, all seeds together."""
    from bokeh.models import ColumnDataSource, Range1d

    fig = _figure("Queueing delay, all seeds together", height=320)
    longest = 0.0
    for i, arm in enumerate(arms):
        merged = delay_histogram(runs, arm, queue)
        if merged.total == 0:
            continue
        x, y = cdf_points(merged)
        source = ColumnDataSource({"t": _thin(x), "share": _thin(y)})
        _line(fig, source, "share", color(i), None, width=2, dash=dash(i), name=arm)
        longest = max(longest, (merged.quantile(0.999) or 0.0) / 1e6)
    if not fig.renderers:
        return None
    fig.x_range = Range1d(0, longest * 1.02 or 1.0)
    fig.y_range = Range1d(0, 1.01)
    fig.xaxis.axis_label = "queueing delay [ms]"
    fig.yaxis.axis_label = "share of packets"
    return fig


def delay_histogram(runs: Sequence[Measured], arm: str, queue: str) -> Histogram:
    """Queueing delays of all seeds of an arm."""
    of_arm = [
        run.queues[queue, EVERY_CLASS]
        for run in runs
        if run.run.arm == arm and (queue, EVERY_CLASS) in run.queues
    ]
    return Histogram.merged([totals.sojourn for totals in of_arm])


def cdf_points(histogram: Histogram, most: int = _MOST_CDF_POINTS) -> tuple[Any, Any]:
    """Delays in ms and shares, thinned evenly by share so that steps and tails both survive."""
    high, share = histogram.cdf()
    if len(high) > most:
        kept = np.unique(np.searchsorted(share, np.linspace(0, 1, most), side="left").clip(0, len(high) - 1))
        high, share = high[kept], share[kept]
    return np.concatenate(([0.0], high / 1e6)), np.concatenate(([0.0], share))


def trade_off_chart(points: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> figure | None:
    """Goodput against queueing delay, a mark a run (RFC 7928, section 2.7): up and left is better.

    Parameters
    ----------
    points
        By arm: delays in ms and goodputs in Mbit/s.
    """
    fig = _figure("Goodput against mean queueing delay", height=320)
    for i, (arm, (delays, goodputs)) in enumerate(points.items()):
        if delays:
            fig.scatter(
                np.asarray(delays),
                np.asarray(goodputs),
                size=8,
                marker=marker(i),
                color=color(i),
                alpha=0.75,
                name=arm,
            )
    if not fig.renderers:
        return None
    fig.xaxis.axis_label = "mean queueing delay [ms]"
    fig.yaxis.axis_label = "goodput [Mbit/s]"
    return fig


def color(arm: int) -> str:
    """Colour of the arm of that number, the same in all charts."""
    return PALETTE[arm % len(PALETTE)]


def dash(arm: int) -> str:
    """Dash of its lines: arms beyond half the palette differ by that as well."""
    return "solid" if arm % len(PALETTE) < 4 else "dashed"


def marker(arm: int) -> str:
    """Its mark in a scatter plot."""
    return "circle" if dash(arm) == "solid" else "triangle"


def _figure(title: str, *, height: int, x_range: Any = None) -> figure:  # noqa: ANN401
    from bokeh.models import BoxZoomTool, HoverTool, PanTool, ResetTool
    from bokeh.plotting import figure

    options = {} if x_range is None else {"x_range": x_range}
    fig = figure(
        title=title,
        height=height,
        sizing_mode="stretch_width",
        tools=[PanTool(dimensions="width"), BoxZoomTool(dimensions="width"), ResetTool()],
        toolbar_location="above",
        # A finger that scrolls the page must not drag a chart.
        active_drag=None,
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        output_backend="canvas",
        **options,
    )
    fig.add_tools(HoverTool(tooltips=[("", "$name"), ("x", "$x{0.00}"), ("y", "$y{0.000}")]))
    fig.toolbar.autohide = True
    fig.toolbar.logo = None
    fig.grid.grid_line_alpha = 0.25
    fig.grid.grid_line_color = MUTED
    fig.title.text_font_size = "13px"
    fig.title.text_font_style = "bold"
    fig.min_border_left = 52
    fig.min_border_right = 14
    for axis in fig.axis:
        axis.axis_line_color = None
        axis.major_tick_line_color = None
        axis.minor_tick_line_color = None
        axis.axis_label_text_font_style = "normal"
    return fig


def _line(  # noqa: PLR0913 (keyword arguments)
    fig: figure,
    source: Any,  # noqa: ANN401 (a Bokeh model, untyped)
    column: str,
    color: str,
    label: str | None,
    *,
    width: float = 1.3,
    dash: str = "solid",
    name: str | None = None,
) -> None:
    options: dict[str, Any] = {} if label is None else {"legend_label": label}
    fig.line(
        "t",
        column,
        source=source,
        color=color,
        line_width=width,
        line_dash=dash,
        name=name or label,
        **options,
    )


def _legend_above(fig: figure) -> None:
    """Puts the legend between title and plot, where it covers nothing."""
    if not fig.legend:
        return
    legend = fig.legend[0]
    fig.center.remove(legend)
    fig.add_layout(legend, "above")
    legend.orientation = "horizontal"
    legend.location = "top_left"
    legend.background_fill_color = None
    legend.border_line_color = None
    legend.label_text_font_size = "11px"
    legend.glyph_height = 10
    legend.padding = 0
    legend.margin = 2
    legend.spacing = 14
