"""The variance-time plot: how bursty arrivals are at each scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from aqmlab.errors import UsageError
from aqmlab.figures import estimate_text
from aqmlab.metrics import Measured
from aqmlab.metrics.scaling import VarianceTime, of_arrivals
from aqmlab.plots.kinds import single
from aqmlab.plots.panels import plain_powers
from aqmlab.recording import Experiment
from aqmlab.reports.charts import FAINT, color, dash, marker
from aqmlab.stats import estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from aqmlab.answers import Table

_MARKS = {"circle": "o", "triangle": "^"}


def variance_time(experiment: Experiment, runs: Sequence[Measured], results: Table) -> Figure:
    """Variance of mean arrivals over the scale, both logarithmic: marks are means over seeds, lines seeds.

    Leland, Taqqu, Willinger, Wilson 1994, Fig. 4: the slope is 2H - 2, and -1 for what depends on nothing far
    away (dotted).
    """
    figure, axes = single(f"{experiment.title}: arrivals at {results.queue}")
    all_plots: list[VarianceTime] = []
    for i, arm in enumerate(results.arms):
        plots = [of_arrivals(run, results.queue) for run in runs if run.run.arm == arm]
        found = [plot for plot in plots if plot is not None]
        if not found:
            continue
        # Runs that a condition ended are not equally long: only equal scales have a mean.
        found = [plot for plot in found if np.array_equal(plot.scale_s, found[0].scale_s)]
        for plot in found:
            axes.plot(plot.scale_s, plot.variance, color=color(i), alpha=FAINT, linewidth=0.6)
        mean = np.exp(np.mean([np.log(plot.variance) for plot in found], axis=0))
        hurst = estimate_text(estimate([plot.hurst for plot in found]), "")
        axes.plot(
            found[0].scale_s,
            mean,
            color=color(i),
            linestyle=dash(i),
            marker=_MARKS[marker(i)],
            markersize=3,
            label=f"{arm}: H = {hurst}",
        )
        all_plots += found
    if not all_plots:
        raise UsageError("a variance-time plot needs 400 samples of the queue; write `queues` in [record]")
    scale = all_plots[0].scale_s
    start = max(float(plot.variance[0]) for plot in all_plots)
    axes.plot(scale, start * scale[0] / scale, color="grey", linestyle=":", label="slope -1")
    axes.set(xscale="log", yscale="log", xlabel="scale [s]", ylabel="variance of the mean, by mean squared")
    for axis in (axes.xaxis, axes.yaxis):
        plain_powers(axis)
    axes.legend(loc="lower left")
    return figure
