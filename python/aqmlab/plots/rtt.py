"""Goodput against round-trip time: the cost of a longer path, with one mark per flow."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import TYPE_CHECKING, Any

from aqmlab.errors import UsageError
from aqmlab.figures.goodput_rtt import Points, class_names, rtt_points
from aqmlab.figures.view import View
from aqmlab.metrics import EVERY_QUEUE
from aqmlab.plots.appearance import arm_color, arm_mark, entitle, legend_below, mark_size, new_figure
from aqmlab.results.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_COLUMNS = 3
_WIDTH, _HEIGHT = 7.0, 2.5


def goodput_rtt(results: Results, view: View, queue: str) -> Figure:
    """Goodput of each long-lived flow against RTT without queueing; one plot per arm, one mark per flow."""
    points = _points(results, view, queue)
    arms, classes = list(dict.fromkeys(arm for arm, _ in points)), class_names(points)
    columns = min(len(arms), _COLUMNS)
    rows = ceil(len(arms) / columns)
    figure = new_figure(_WIDTH, 0.7 + _HEIGHT * rows, rows)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for unused in axes.flat[len(arms) :]:
        unused.set_visible(False)
    for plot, arm in zip(axes.flat, arms, strict=False):
        plot.set_title(arm)
        plot.tick_params(labelbottom=True)
        for i, name in enumerate(classes):
            if (arm, name) in points:
                look = {"marker": arm_mark(i), "color": arm_color(i), "alpha": 0.7, "markersize": mark_size()}
                plot.plot(*points[arm, name], linestyle="none", label=f"a flow of {name}", **look)
        plot.set_xlabel("RTT without queueing [ms]")
    # All plots share an axis that covers the data of every plot.
    axes[0, 0].set_ylim(bottom=0)
    for plot in axes[:, 0]:
        plot.set_ylabel("goodput of a flow [Mbit/s]")
    whose = "all flows" if queue == EVERY_QUEUE else f"flows that cross {queue}"
    entitle(figure, f"{results.title}: {whose}")
    legend_below(figure, axes.flat)
    return figure


def goodput_rtt_rows(results: Results, view: View, queue: str) -> Iterator[tuple[Any, ...]]:
    """The points of :func:`goodput_rtt`."""
    yield ("arm", "class", "rtt_ms", "goodput_mbit_s")
    for (arm, name), (rtts, goodputs) in _points(results, view, queue).items():
        for rtt, goodput in zip(rtts, goodputs, strict=True):
            yield (arm, name, rtt, goodput)


def _points(results: Results, view: View, queue: str) -> Points:
    points = rtt_points(results.measured(), [run.arm for run in view.runs(results)], queue)
    if not points:
        raise UsageError(
            f"no flow that reacts to congestion lasts through the measured interval and crosses"
            f" `{queue}`: there is no goodput to draw against RTT"
        )
    return points
