"""The figure of one run per arm over time, and parts of other figures.

Sizes are in inches, for a text width of 7 inches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aqmlab.errors import UsageError
from aqmlab.figures.looks import MUTED, PALETTE, STALL
from aqmlab.plots.appearance import (
    arm_color,
    arm_look,
    arm_mark,
    entitle,
    legend_below,
    mark_size,
    new_figure,
    warmup,
)
from aqmlab.recordings.recording import Run
from aqmlab.recordings.time_series import RunSeries, run_series
from aqmlab.results.results import Results
from aqmlab.stats.ellipse import covariance_ellipse

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_WIDTH = 7.0
_SINGLE = (4.9, 3.5)
# Lines of a plot differ in lightness, dashes and width, so they are distinguishable in grey.
_LAW: dict[str, dict[str, Any]] = {
    "p": {"color": PALETTE[6]},
    "max_p": {"color": PALETTE[1], "linestyle": "--"},
}


def series(results: Results, queue: str, firsts: Sequence[Run]) -> Figure:
    """Draw backlog, average, probability and windows over time: a column for each of these runs."""
    if not firsts:
        raise UsageError("none of these arms has a finished run")
    of_arms = run_series(results.tables, firsts, queue)
    figure = new_figure(max(_WIDTH, 2.2 * len(of_arms)), 5.2, 3)
    axes = figure.subplots(3, len(of_arms), sharex=True, sharey="row", squeeze=False)
    for column, of_run in enumerate(of_arms):
        _series_column(axes[:, column], of_run)
    for row, label in enumerate(("backlog [packets]", "probability", "cwnd [segments]")):
        axes[row, 0].set_ylabel(label)
    entitle(figure, f"{results.title}: {queue}, seed {firsts[0].seed}")
    legend_below(figure, axes.flat)
    return figure


def _series_column(axes: np.ndarray[tuple[int], np.dtype[np.object_]], of_run: RunSeries) -> None:
    backlog, probability, windows = axes
    backlog.set_title(of_run.run.arm)
    warmup(axes, of_run.run.t0_ns / 1e9)
    thin: dict[str, Any] = {"color": PALETTE[0], "linewidth": 0.7}
    backlog.plot(of_run.queue.t_s, of_run.queue.values["backlog_packets"], label="backlog", **thin)
    if "avg" in of_run.law:
        backlog.plot(*of_run.law["avg"], color="black", linewidth=1.2, label="the law's average (avg)")
    for name, look in _LAW.items():
        if name in of_run.law:
            probability.plot(*of_run.law[name], label=name, **look)
    for plot in axes:
        for i, (begin, end) in enumerate(of_run.stalls):
            # A stripe that is narrower than one dot needs an edge to be visible.
            label = "stall: the router stood still" if i == 0 else None
            plot.axvspan(begin, end, color=STALL, alpha=0.5, linewidth=0.3, zorder=0, label=label)
    flows = [line for name, line in of_run.cwnd.items() if name != "mean"]
    for i, line in enumerate(flows):
        windows.plot(*line, color=MUTED, alpha=0.6, linewidth=0.5, label="cwnd of a flow" if i == 0 else None)
    if "mean" in of_run.cwnd:
        windows.plot(*of_run.cwnd["mean"], color=PALETTE[3], linewidth=1.4, label="mean cwnd of all flows")
    windows.set_xlabel("time [s]")


def cloud(axes: Axes, arm: int, x: Sequence[float], y: Sequence[float], label: str | None) -> None:
    """Draw the runs of an arm, their median, and the ellipse around them."""
    from matplotlib.patches import Ellipse

    shown: dict[str, Any] = {"marker": arm_mark(arm), "linestyle": "none"}
    filled: dict[str, Any] = {"color": arm_color(arm), "markersize": 1.3 * mark_size(), "markeredgewidth": 0}
    axes.plot(x, y, alpha=0.75, label=label, **shown, **filled)
    outlined: dict[str, Any] = {
        "markerfacecolor": "white",
        "markeredgecolor": arm_color(arm),
    }
    axes.plot(
        np.median(x),
        np.median(y),
        markersize=2.5 * mark_size(),
        zorder=4,
        markeredgewidth=1.3,
        **shown,
        **outlined,
    )
    outline = covariance_ellipse(x, y)
    if outline is not None:
        long, short = (2 * half for half in outline.half_axes)
        shape = Ellipse(outline.centre, long, short, angle=outline.angle_degrees)
        shape.set(fill=False, edgecolor=arm_color(arm), linewidth=0.9, linestyle=arm_look(arm)["linestyle"])
        axes.add_patch(shape)


def cloud_notes() -> dict[str, Artist]:
    """Return the meanings of the symbols of :func:`cloud`, for a legend."""
    from matplotlib.lines import Line2D

    grey: dict[str, Any] = {"linestyle": "none", "marker": "o", "markeredgecolor": "0.35"}
    return {
        "one run": Line2D([], [], markersize=1.3 * mark_size(), markerfacecolor="0.35", **grey),
        "median of the runs": Line2D([], [], markersize=2.5 * mark_size(), markerfacecolor="white", **grey),
        "outline: 1-sigma ellipse of the runs": Line2D([], [], color="0.35", linewidth=0.9),
    }


def single(title: str) -> tuple[Figure, Axes]:
    """A figure with one plot."""
    figure = new_figure(*_SINGLE)
    entitle(figure, title)
    return figure, figure.subplots()
