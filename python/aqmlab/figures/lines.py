"""A metric against an axis of a sweep: one line per arm, with the intervals of its means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isnan

from aqmlab.errors import UsageError
from aqmlab.figures.model import BAND, Axis, Figure, Line, Look, Panel, arm_look
from aqmlab.figures.panel_grid import Subject, panel_grid, titled
from aqmlab.figures.view import View
from aqmlab.results.results import Results
from aqmlab.stats import Estimate

_UNKNOWN = float("nan")


def lines(results: Results, view: View, queue: str | None) -> Figure:
    """Draw a metric against an axis: one line per arm, with intervals of the means; one plot per label."""
    grid = panel_grid(results, view, queue)
    if grid.x is None:
        raise UsageError("`lines` needs an axis of a sweep; for arms alone, use `bar` or `box`")

    def panel(subject: Subject) -> Panel:
        marks = [
            estimates(arm, arm_look(i, every=True), [grid.estimate(arm, subject, of) for of in grid.labels])
            for arm, i in grid.arms.items()
        ]
        return Panel(subject.title, grid.across, Axis(titled(subject.metric)), tuple(marks))

    made = grid.figure(f"{grid.labelled} against {grid.x.short}", panel)
    return with_band_note(made)


def estimates(  # noqa: PLR0913 (keyword arguments)
    name: str,
    look: Look,
    points: Sequence[Estimate | None],
    *,
    places: Sequence[float] | None = None,
    shown: Callable[[float], float] = float,
    log: bool = False,
) -> Line:
    """The line through means, with the band of their intervals.

    Parameters
    ----------
    name, look
        Its name and look.
    points
        The means; unknown ones are left out.
    places
        Their positions, by default 0, 1, 2 and so on.
    shown
        Converts values to the displayed unit.
    log
        Whether the axis is logarithmic. It has no zero, so an interval that reaches zero is cut.
    """
    known = [(x, e) for x, e in zip(places or range(len(points)), points, strict=True) if e is not None]
    ends = [(_UNKNOWN, _UNKNOWN) if e.low is None or e.high is None else (e.low, e.high) for _, e in known]
    lows = [max(low, e.mean / 1e3) if log else low for (low, _), (_, e) in zip(ends, known, strict=True)]
    return Line(
        name,
        [x for x, _ in known],
        [shown(e.mean) for _, e in known],
        look,
        [shown(low) for low in lows],
        [shown(high) for _, high in ends],
    )


def with_band_note(figure: Figure) -> Figure:
    """Explain bands in the legend of a figure that has some."""
    lows = [low for panel in figure.panels for line in panel.lines for low in line.low or ()]
    return replace(figure, notes=(*figure.notes, BAND)) if not all(map(isnan, lows)) else figure
