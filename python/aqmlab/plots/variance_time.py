"""The variance-time plot: the burstiness of arrivals at each scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aqmlab.errors import UsageError
from aqmlab.figures.looks import FAINT
from aqmlab.metrics.scaling import VarianceTime, of_arrivals
from aqmlab.plots.appearance import arm_color, arm_look, legend_below
from aqmlab.plots.kinds import single
from aqmlab.plots.panels import plain_powers
from aqmlab.results.results import Results
from aqmlab.stats import estimate
from aqmlab.text.numbers import estimate_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def variance_time(results: Results, queue: str) -> Figure:
    """Draw the variance of mean arrivals against scale, both logarithmic; faint lines are single seeds.

    Leland, Taqqu, Willinger, Wilson 1994, Fig. 4: the slope is 2H - 2, and -1 without long-range dependence
    (dotted).
    """
    from matplotlib.lines import Line2D

    figure, axes = single(f"{results.title}: arrivals at {queue}")
    all_plots: list[VarianceTime] = []
    for i, arm in enumerate(results.finished_arms):
        plots = [of_arrivals(run, queue) for run in results.measured() if run.run.arm == arm]
        found = [plot for plot in plots if plot is not None]
        if not found:
            continue
        # Runs that end on a condition may differ in length, so only runs with the same scales are averaged.
        found = [plot for plot in found if np.array_equal(plot.scale_s, found[0].scale_s)]
        for plot in found:
            axes.plot(plot.scale_s, plot.variance, color=arm_color(i), alpha=FAINT, linewidth=0.6)
        mean = np.exp(np.mean([np.log(plot.variance) for plot in found], axis=0))
        hurst = estimate_text(estimate([plot.hurst for plot in found]), "")
        axes.plot(
            found[0].scale_s,
            mean,
            label=f"{arm}: H = {hurst}",
            **{**arm_look(i), "markevery": None},
        )
        all_plots += found
    if not all_plots:
        raise UsageError(
            "a variance-time plot needs 400 samples of the queue; set a short `queues` interval in [record]"
        )
    scale = all_plots[0].scale_s
    start = max(float(plot.variance[0]) for plot in all_plots)
    axes.plot(scale, start * scale[0] / scale, color="black", linestyle=":", linewidth=0.8, label="slope -1")
    axes.set(xscale="log", yscale="log", xlabel="scale [s]", ylabel="variance of the mean / mean²")
    for axis in (axes.xaxis, axes.yaxis):
        plain_powers(axis)
    faint = Line2D([], [], color="grey", alpha=FAINT, linewidth=0.6)
    legend_below(
        figure, [axes], {"one seed (thick line: mean of the seeds)": faint} if len(all_plots) > 1 else None
    )
    return figure
