"""The interactive charts: Bokeh figures with a shared time axis, a set of lines for each arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aqmlab.metrics import EVERY_CLASS, Histogram, Measured
from aqmlab.series import RunSeries

if TYPE_CHECKING:
    from bokeh.plotting import figure

# Okabe and Ito 2008, told apart by colour-blind readers too; black and yellow, which one of the two
# backgrounds swallows, are replaced.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#8c6bb1", "#7a8a3c")
FAINT = 0.35
_MOST_CDF_POINTS = 300


def time_charts(series: Sequence[RunSeries], end_s: float, warmup_s: float) -> dict[str, figure]:
    """Charts over time, by name. Lines carry the tag ``arm:<number>``; only those of arm 0 are visible."""
    from bokeh.models import CrosshairTool, Range1d, Span

    x_range = Range1d(0, end_s, bounds=(0, end_s))
    cursor = Span(dimension="height", line_color="#8a8f98", line_width=1)
    charts: dict[str, figure] = {}

    def chart(name: str, title: str, unit: str) -> figure:
        fig = _figure(title, unit, x_range=x_range, height=200)
        fig.add_tools(CrosshairTool(overlay=cursor, dimensions="height"))
        fig.add_layout(
            Span(location=warmup_s, dimension="height", line_color="#8a8f98", line_dash="dotted", line_width=1)
        )
        charts[name] = fig
        return fig

    rate = chart("rate", "Arrivals and departures", "Mbit/s")
    backlog = chart("backlog", "Backlog and the law's average", "packets")
    law_p = chart("p", "Probability of the law", "")
    fates = chart("fates", "Drops and marks", "packets/s")
    cwnd = chart("cwnd", "Congestion windows", "segments")
    for arm, of_run in enumerate(series):
        _draw_arm(arm, of_run, rate, backlog, law_p, fates, cwnd)
    cwnd.xaxis.axis_label = "time [s]"
    kept = {name: fig for name, fig in charts.items() if fig.renderers}
    for fig in kept.values():
        _legend(fig)
    return kept


def _draw_arm(
    arm: int, series: RunSeries, rate: figure, backlog: figure, law_p: figure, fates: figure, cwnd: figure
) -> None:
    queue, t = series.queue.values, series.queue.t_s
    if len(t):
        _line(rate, arm, t, queue["arrivals_bps"] / 1e6, PALETTE[1], "arrivals")
        _line(rate, arm, t, queue["departures_bps"] / 1e6, PALETTE[0], "departures")
        _line(backlog, arm, t, queue["backlog_packets"], PALETTE[0], "backlog")
        _line(fates, arm, t, queue["dropped_early_per_s"], PALETTE[1], "early drops")
        _line(fates, arm, t, queue["dropped_overflow_per_s"], PALETTE[3], "tail drops")
        _line(fates, arm, t, queue["marked_per_s"], PALETTE[2], "marks")
    if "avg" in series.law:
        _line(backlog, arm, *series.law["avg"], PALETTE[3], "avg", width=2)
    for i, name in enumerate(name for name in ("p", "max_p") if name in series.law):
        _line(law_p, arm, *series.law[name], PALETTE[i], name)
    for name, (times, values) in series.cwnd.items():
        if name != "mean":
            _line(cwnd, arm, times, values, PALETTE[4], None, alpha=FAINT)
    if "mean" in series.cwnd:
        _line(cwnd, arm, *series.cwnd["mean"], PALETTE[3], "mean of all flows", width=2)


def delay_cdf_chart(runs: Sequence[Measured], arms: Sequence[str], queue: str) -> figure | None:
    """Distribution of queueing delay of each arm, all seeds together."""
    from bokeh.models import Range1d

    fig = _figure("Queueing delay, all seeds", "share of packets", height=330)
    longest = 0.0
    for i, arm in enumerate(arms):
        merged = delay_histogram(runs, arm, queue)
        if merged.total == 0:
            continue
        x, y = cdf_points(merged)
        _line(fig, None, x, y, PALETTE[i % len(PALETTE)], arm, width=2, dash=dash(i))
        longest = max(longest, (merged.quantile(0.999) or 0.0) / 1e6)
    if not fig.renderers:
        return None
    fig.x_range = Range1d(0, longest * 1.02 or 1.0)
    fig.y_range = Range1d(0, 1.01)
    fig.xaxis.axis_label = "queueing delay [ms]"
    _legend(fig, place="right")
    return fig


def delay_histogram(runs: Sequence[Measured], arm: str, queue: str) -> Histogram:
    """Queueing delays of all seeds of an arm."""
    of_arm = [run.queues[queue, EVERY_CLASS] for run in runs if run.run.arm == arm and (queue, EVERY_CLASS) in run.queues]
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
    fig = _figure("Goodput against mean queueing delay, a mark a run", "goodput [Mbit/s]", height=330)
    for i, (arm, (delays, goodputs)) in enumerate(points.items()):
        if delays:
            fig.scatter(
                np.asarray(delays),
                np.asarray(goodputs),
                size=8,
                marker=MARKERS[i % len(MARKERS)],
                color=PALETTE[i % len(PALETTE)],
                alpha=0.75,
                legend_label=arm,
            )
    if not fig.renderers:
        return None
    fig.xaxis.axis_label = "mean queueing delay [ms]"
    _legend(fig, place="right")
    return fig


MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "plus", "cross", "star")


def dash(i: int) -> str:
    """Arms beyond half the palette differ by dash as well."""
    return "solid" if i < 4 else "dashed"


def _figure(title: str, unit: str, *, height: int, x_range: Any = None) -> figure:  # noqa: ANN401
    from bokeh.models import BoxZoomTool, HoverTool, PanTool, ResetTool
    from bokeh.plotting import figure

    options = {} if x_range is None else {"x_range": x_range}
    fig = figure(
        title=f"{title} [{unit}]" if unit else title,
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
    fig.add_tools(HoverTool(tooltips=[("", "$name"), ("x", "$x{0.00}"), ("y", "$y{0.000}")], mode="mouse"))
    fig.toolbar.autohide = True
    fig.toolbar.logo = None
    fig.y_range.only_visible = True
    fig.grid.grid_line_alpha = 0.25
    fig.grid.grid_line_color = "#8a8f98"
    fig.title.text_font_size = "13px"
    fig.title.text_font_style = "bold"
    fig.min_border_left = 58
    for axis in fig.axis:
        axis.axis_line_color = None
        axis.major_tick_line_color = None
        axis.minor_tick_line_color = None
        axis.axis_label_text_font_style = "normal"
    return fig


def _line(
    fig: figure,
    arm: int | None,
    x: Any,  # noqa: ANN401 (arrays of any shape of floats)
    y: Any,  # noqa: ANN401
    color: str,
    label: str | None,
    *,
    width: float = 1.3,
    alpha: float = 1.0,
    dash: str = "solid",
) -> None:
    options: dict[str, Any] = {} if label is None else {"legend_label": label}
    fig.line(
        # Four digits are more than a screen shows, and half the size of the file.
        np.asarray(x, dtype=np.float32),
        np.asarray(y, dtype=np.float32),
        color=color,
        line_width=width,
        alpha=alpha,
        line_dash=dash,
        name=label or "a flow",
        visible=arm in (None, 0),
        tags=[] if arm is None else [f"arm:{arm}"],
        **options,
    )


def _legend(fig: figure, place: str = "above") -> None:
    if not fig.legend:
        return
    legend = fig.legend[0]
    legend.background_fill_color = None
    legend.border_line_color = None
    legend.label_text_font_size = "11px"
    legend.padding = 2
    legend.margin = 2
    legend.spacing = 12 if place == "above" else 2
    if place == "above":
        legend.orientation = "horizontal"
        legend.location = "top_right"
    else:
        legend.location = "bottom_right"
        legend.click_policy = "hide"
