"""A metric against an axis, as a paper shows it: curves with their intervals, the legend below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from aqmlab.figures.lines import estimates, with_band_note
from aqmlab.figures.model import Axis, Figure, Panel, arm_look
from aqmlab.metrics import all_metrics
from aqmlab.papers.over_time import COLUMN
from aqmlab.papers.paper import PaperFigure
from aqmlab.stats import Estimate
from aqmlab.text.numbers import display_unit, display_value
from aqmlab.text.units import written

SIZE = (COLUMN, 2.6)
"""Width and height of a figure with one plot, in inches; a legend adds to the height."""
_FLAT = 0.01
_ROOM = 0.05
"""A curve that varies by less than 1 % of its level counts as flat; its axis covers 5 % of the level."""


@dataclass(frozen=True)
class SweepLine:
    """A curve: an estimate for each label of the axis."""

    label: str
    points: tuple[tuple[str, Estimate | None], ...]


def sweep_figure(figure: PaperFigure, title: str, lines: Sequence[SweepLine], unit: str) -> Figure:
    """Draw the curves of a figure of kind ``sweep``, whose values are in ``unit``."""
    ends = [end for line in lines for end in _ends(line)]
    like = max(map(abs, ends), default=None)
    labels = [label for label, _ in lines[0].points]
    places, x_unit = numbers(labels)
    curves = tuple(
        estimates(
            line.label if len(lines) > 1 else "",
            replace(arm_look(i, every=True), size=0.9),
            [e for _, e in line.points],
            places=places,
            shown=lambda value: display_value(value, unit, like),
        )
        for i, line in enumerate(lines)
    )
    content = figure.content
    x = str(content.get("x_label", content["x"]))
    across = Axis(f"{x} [{x_unit}]" if x_unit else x, log=bool(content.get("log_x")))
    if x_unit is None:
        across = replace(across, labels=tuple(labels))
    y_label = str(content.get("y_label", _y_label(str(content["y"]), unit, like)))
    up = Axis(y_label)
    if content.get("log_y"):
        up = Axis(y_label, log=True, linear_below=float(content.get("linear_below", 0.1)))
    elif ends:
        means = [e.mean for line in lines for _, e in line.points if e is not None]
        share = unit == "%" and max(means) <= 100.0
        up = fitting(y_label, [display_value(end, unit, like) for end in ends], share=share)
    return with_band_note(Figure(title, ((Panel("", across, up, curves),),), size=SIZE))


def _ends(line: SweepLine) -> chain[float]:
    """Return the means of a curve and the limits of their intervals."""
    known = [e for _, e in line.points if e is not None]
    return chain.from_iterable([v for v in (e.low, e.mean, e.high) if v is not None] for e in known)


def _y_label(y: str, unit: str, like: float | None) -> str:
    """The label of the metric, or the expression, with its unit."""
    metric = next((m for m in all_metrics() if m.name == y), None)
    label, shown = metric.label if metric else y, display_unit(unit, like)
    return f"{label} [{shown}]" if shown else label


def fitting(label: str, values: Sequence[float], *, share: bool) -> Axis:
    """An axis on which a flat curve is flat, and on which percentages lie between 0 and 100.

    Parameters
    ----------
    label
        Its label.
    values
        All values, in displayed units.
    share
        Whether the values are percentages of a whole; only the limits of their intervals can then exceed 100.
    """
    low, high = min(values), max(values)
    if share:
        high = min(high, 100.0)
    level = max(abs(low), abs(high))
    if high - low < _FLAT * level:
        low, high = low - _ROOM * level / 2, high + _ROOM * level / 2
        if share and high > 100.0:
            low, high = low - (high - 100.0), 100.0
    margin = _ROOM * (high - low) or 1.0
    # The margins leave room for a line at 0 or 100. No tick lies above 100 or, unless a value is negative,
    # below 0.
    least = max(low - margin, 0.0) if min(values) >= 0.0 else low - margin
    within = (least, min(high + margin, 100.0)) if share else None
    return Axis(label, begin=low - margin, end=high + margin, within=within)


_UNITS = {"p": "packets"}


def numbers(labels: Sequence[str]) -> tuple[list[float], str | None]:
    """Return the positions of labels on an axis, and their common unit.

    If all labels are numbers with the same unit, these numbers are the positions; otherwise, the positions
    are evenly spaced, and the unit is ``None``.
    """
    known = [each for each in map(written, labels) if each is not None]
    units = {unit for _, unit in known}
    if len(units) == 1 and len(known) == len(labels):
        unit = units.pop()
        return [number for number, _ in known], _UNITS.get(unit, unit)
    return [float(i) for i in range(len(labels))], None
