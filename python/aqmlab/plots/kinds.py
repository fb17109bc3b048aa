"""The figures. Sizes are in inches, for a text 7 inches wide."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from aqmlab.metrics import Measured
from aqmlab.plots.ellipse import covariance_ellipse
from aqmlab.recording import Experiment
from aqmlab.reports.charts import FAINT, STALL, cdf_points, color, dash, delay_histogram, marker
from aqmlab.reports.figures import PALETTE
from aqmlab.reports.render import trade_off_points
from aqmlab.series import RunSeries, run_series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from aqmlab.answers import Table

_WIDTH = 7.0
_LETTERS_AN_INCH = 14.0
_MARKS = {"circle": "o", "triangle": "^"}


def series(experiment: Experiment, _runs: Sequence[Measured], results: Table) -> Figure:
    """Backlog, average, probability and congestion windows over time; a column an arm, first seed."""
    from matplotlib.figure import Figure

    firsts = [experiment.runs_of(arm)[0] for arm in results.arms]
    of_arms = run_series(experiment, firsts, results.queue)
    figure = Figure(figsize=(max(_WIDTH, 2.2 * len(of_arms)), 5.0), layout="constrained")
    axes = figure.subplots(3, len(of_arms), sharex=True, sharey="row", squeeze=False)
    for column, of_run in enumerate(of_arms):
        _series_column(axes[:, column], of_run)
    for row, label in enumerate(("backlog [packets]", "probability", "cwnd [segments]")):
        axes[row, 0].set_ylabel(label)
        _legend_beside(axes[row])
    title = f"{experiment.title}: {results.queue}, seed {firsts[0].seed}"
    figure.suptitle(fill(title, int(_LETTERS_AN_INCH * figure.get_figwidth())), fontsize=9)
    return figure


def _series_column(axes: np.ndarray[tuple[int], np.dtype[np.object_]], of_run: RunSeries) -> None:
    backlog, probability, windows = axes
    backlog.set_title(of_run.run.arm)
    backlog.plot(of_run.queue.t_s, of_run.queue.values["backlog_packets"], color=PALETTE[0], label="backlog")
    if "avg" in of_run.law:
        backlog.plot(*of_run.law["avg"], color=PALETTE[3], label="avg")
    for i, name in enumerate(name for name in ("p", "max_p") if name in of_run.law):
        probability.plot(*of_run.law[name], color=PALETTE[i], label=name)
    for plot in axes:
        for i, (begin, end) in enumerate(of_run.stalls):
            # A stripe that is narrower than a dot is seen by its edge.
            label = "" if i else "stall"
            plot.axvspan(begin, end, color=STALL, alpha=0.5, linewidth=0.3, zorder=0, label=label)
    for name, line in of_run.cwnd.items():
        if name != "mean":
            windows.plot(*line, color=PALETTE[4], alpha=FAINT, linewidth=0.6)
    if "mean" in of_run.cwnd:
        windows.plot(*of_run.cwnd["mean"], color=PALETTE[3], label="mean")
    windows.set_xlabel("time [s]")


def _legend_beside(row: np.ndarray[tuple[int], np.dtype[np.object_]]) -> None:
    """One legend for the lines of a row of plots, to their right, where it covers none of them."""
    named = {
        mark.get_label(): mark
        for axes in row
        for mark in (*axes.lines, *axes.patches)
        if mark.get_label() and not mark.get_label().startswith("_")
    }
    if named:
        row[-1].legend(named.values(), named.keys(), loc="upper left", bbox_to_anchor=(1.0, 1.0))


def delay_cdf(experiment: Experiment, runs: Sequence[Measured], results: Table) -> Figure:
    """Distribution of queueing delay of each arm, all seeds together."""
    figure, axes = single(f"{experiment.title}: queueing delay at {results.queue}")
    longest = 0.0
    for i, arm in enumerate(results.arms):
        histogram = delay_histogram(runs, arm, results.queue)
        if histogram.total:
            axes.plot(*cdf_points(histogram), color=color(i), linestyle=dash(i), label=arm)
            longest = max(longest, (histogram.quantile(0.999) or 0.0) / 1e6)
    axes.set(xlabel="queueing delay [ms]", ylabel="share of packets", ylim=(0, 1.01))
    axes.set_xlim(0, longest * 1.02 or 1.0)
    if axes.lines:
        axes.legend(loc="lower right")
    return figure


def goodput_delay(experiment: Experiment, runs: Sequence[Measured], results: Table) -> Figure:
    """Goodput against mean queueing delay, a mark a run, with medians and 1-sigma ellipses.

    RFC 7928, section 2.7, in the form of Winstein's plots with a linear axis: up and left is better.
    """
    from matplotlib.patches import Ellipse

    figure, axes = single(f"{experiment.title}: goodput and delay at {results.queue}")
    for i, (arm, (delays, goodputs)) in enumerate(trade_off_points(runs, results).items()):
        if not delays:
            continue
        axes.scatter(delays, goodputs, s=14, marker=_MARKS[marker(i)], color=color(i), alpha=0.6, label=arm)
        axes.plot(np.median(delays), np.median(goodputs), marker="x", color=color(i), markersize=6)
        outline = covariance_ellipse(delays, goodputs)
        if outline is not None:
            axes.add_patch(
                Ellipse(
                    outline.centre,
                    2 * outline.half_axes[0],
                    2 * outline.half_axes[1],
                    angle=outline.angle_degrees,
                    fill=False,
                    edgecolor=color(i),
                    linewidth=0.8,
                )
            )
    axes.set(xlabel="mean queueing delay [ms]", ylabel="goodput [Mbit/s]")
    if axes.collections:
        axes.legend(loc="best")
    return figure


def single(title: str) -> tuple[Figure, Axes]:
    """A figure with one plot."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH * 0.7, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.set_title(fill(title, int(_LETTERS_AN_INCH * _WIDTH * 0.6)))
    return figure, axes
