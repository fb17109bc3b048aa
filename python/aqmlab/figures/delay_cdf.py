"""Distributions of queueing delay: the mean over the seeds with its pointwise 95 % interval."""

from __future__ import annotations

from aqmlab.errors import UsageError
from aqmlab.figures.distributions import DelayCdf, delay_cdf
from aqmlab.figures.model import BAND, Axis, Figure, Line, Look, Panel, arm_look
from aqmlab.figures.panel_grid import MEAN_DELAY, Subject, at_queue, panel_grid
from aqmlab.figures.view import View
from aqmlab.results.results import Results


def cdfs(results: Results, view: View, queue: str | None) -> Figure:
    """The distribution of queueing delay: its mean over the seeds and the pointwise 95 % interval."""
    if view.metrics:
        raise UsageError("`delay-cdf` shows queueing delay: leave out the metric")
    grid = panel_grid(results, view, queue, along=False, metrics=(MEAN_DELAY,))

    def panel(subject: Subject) -> Panel:
        cells = {arm: grid.cell(arm, subject, "") for arm in grid.arms}
        found = {arm: delay_cdf(results, cell, queue) for arm, cell in cells.items() if cell is not None}
        known = {arm: cdf for arm, cdf in found.items() if cdf is not None}
        return cdf_panel(subject.title, [(arm, arm_look(grid.arms[arm]), cdf) for arm, cdf in known.items()])

    notes = [BAND] if len(results.seeds) > 1 else []
    return grid.figure(f"queueing delay{at_queue(queue)}", panel, share=False, notes=notes)


QUEUEING = ("queueing delay [ms]", "share of packets")
"""The axes of a plot of queueing delay."""


def cdf_panel(
    title: str, curves: list[tuple[str, Look, DelayCdf]], axes: tuple[str, str] = QUEUEING
) -> Panel:
    """A plot of distributions, up to the longest delay that 99 % of packets do not exceed."""
    longest = max((cdf.p99_ms for _, _, cdf in curves), default=0.0)
    lines = tuple(
        Line(name, of.delay_ms, of.share, look, *((of.low, of.high) if of.n > 1 else ()))
        for name, look, of in curves
    )
    x = Axis(axes[0], begin=0.0, end=longest * 1.02 or 1.0)
    return Panel(title, x, Axis(axes[1], begin=0.0, end=1.01), lines)
