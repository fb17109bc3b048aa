"""The variance-time plot: the burstiness of arrivals at each scale."""

from __future__ import annotations

import numpy as np

from aqmlab.errors import UsageError
from aqmlab.figures.looks import DOTTED, FAINT
from aqmlab.figures.model import INK, Axis, Entry, Figure, Line, Look, Panel, alone, arm_look
from aqmlab.figures.view import View
from aqmlab.metrics.scaling import VarianceTime, of_arrivals
from aqmlab.results.results import Results
from aqmlab.stats import estimate
from aqmlab.text.numbers import estimate_text, listed


def variance_time(results: Results, view: View, queue: str) -> Figure:
    """Draw the variance of mean arrivals against scale, both logarithmic; faint lines are single seeds.

    Leland, Taqqu, Willinger, Wilson 1994, Fig. 4: the slope is 2H - 2, and -1 without long-range dependence
    (dotted).
    """
    if given := view.chosen():
        raise UsageError(f"`variance-time` shows the whole experiment; leave out {listed(given)}")
    lines: list[Line] = []
    all_plots: list[VarianceTime] = []
    for i, arm in enumerate(results.finished_arms):
        plots = [of_arrivals(run, queue) for run in results.measured() if run.run.arm == arm]
        found = [plot for plot in plots if plot is not None]
        if not found:
            continue
        # Runs that end on a condition may differ in length, so only runs with the same scales are averaged.
        found = [plot for plot in found if np.array_equal(plot.scale_s, found[0].scale_s)]
        for plot in found:
            lines.append(Line("", plot.scale_s, plot.variance, Look(i, width=0.6, alpha=FAINT)))
        mean = np.exp(np.mean([np.log(plot.variance) for plot in found], axis=0))
        hurst = estimate_text(estimate([plot.hurst for plot in found]), "")
        lines.append(Line(f"{arm}: H = {hurst}", found[0].scale_s, mean, arm_look(i, every=True)))
        all_plots += found
    if not all_plots:
        raise UsageError(
            "a variance-time plot needs 400 samples of the queue; set a short `queues` interval in [record]"
        )
    scale = all_plots[0].scale_s
    start = max(float(plot.variance[0]) for plot in all_plots)
    lines.append(Line("slope -1", scale, start * scale[0] / scale, Look(INK, DOTTED, width=0.8)))
    axes = (Axis("scale [s]", log=True), Axis("variance of the mean / mean²", log=True))
    seed = Entry("one seed (thick line: mean of the seeds)", Look("#808080", width=0.6, alpha=FAINT))
    notes = (seed,) if len(all_plots) > 1 else ()
    return alone(f"{results.title}: arrivals at {queue}", Panel("", *axes, tuple(lines)), notes=notes)
