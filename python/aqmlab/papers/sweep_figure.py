"""A metric against an axis: curves with their intervals, the legend below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from typing import TYPE_CHECKING

from aqmlab.metrics import all_metrics
from aqmlab.papers.over_time import COLUMN, LETTERS
from aqmlab.papers.paper import PaperFigure
from aqmlab.plots.appearance import arm_color, arm_look, entitle, legend_below, new_figure
from aqmlab.stats import Estimate
from aqmlab.text.numbers import display_unit, display_value
from aqmlab.text.units import written

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (COLUMN, 2.6)
"""Width and height of a figure with one plot, in inches; a legend adds to the height."""
_LEGEND_ROW = 0.14
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
    from matplotlib.patches import Patch

    _, rows = _legend_shape([line.label for line in lines])
    drawn = new_figure(SIZE[0], SIZE[1] + _LEGEND_ROW * rows)
    axes = drawn.subplots()
    ends = [end for line in lines for end in _ends(line)]
    like = max(map(abs, ends), default=None)
    labels = [label for label, _ in lines[0].points]
    places, x_unit = numbers(labels)
    for i, line in enumerate(lines):
        _draw(axes, i, line, places, (unit, like))
    if x_unit is None:
        axes.set_xticks(places, labels, rotation=45 if max(map(len, labels)) > 6 else 0)
    x = str(figure.content.get("x_label", figure.content["x"]))
    axes.set_xlabel(f"{x} [{x_unit}]" if x_unit else x)
    axes.set_ylabel(str(figure.content.get("y_label", _y_label(str(figure.content["y"]), unit, like))))
    if figure.content.get("log_x"):
        axes.set_xscale("log")
    if figure.content.get("log_y"):
        axes.set_yscale("symlog", linthresh=float(figure.content.get("linear_below", 0.1)))
    elif ends:
        means = [e.mean for line in lines for _, e in line.points if e is not None]
        share = unit == "%" and max(means) <= 100.0
        fit_range(axes, [display_value(end, unit, like) for end in ends], share=share)
    entitle(drawn, title)
    band = {"band: 95 % interval of the mean": Patch(color="0.8")} if axes.collections else {}
    legend_below(drawn, [axes] if rows else [], band)
    return drawn


def _draw(
    axes: Axes, i: int, line: SweepLine, places: Sequence[float], shown: tuple[str, float | None]
) -> None:
    known = [(x, e) for x, (_, e) in zip(places, line.points, strict=True) if e is not None]
    xs = [x for x, _ in known]
    means = [display_value(e.mean, *shown) for _, e in known]
    axes.plot(xs, means, label=line.label, **{**arm_look(i), "markevery": None, "markersize": 3})
    ends = [
        (display_value(e.low, *shown), display_value(e.high, *shown))
        for _, e in known
        if e.low is not None and e.high is not None
    ]
    if len(ends) == len(known):
        lows, highs = [low for low, _ in ends], [high for _, high in ends]
        axes.fill_between(xs, lows, highs, color=arm_color(i), alpha=0.2, linewidth=0)


def _ends(line: SweepLine) -> chain[float]:
    """Return the means of a curve and the limits of their intervals."""
    known = [e for _, e in line.points if e is not None]
    return chain.from_iterable([v for v in (e.low, e.mean, e.high) if v is not None] for e in known)


def _y_label(y: str, unit: str, like: float | None) -> str:
    """The label of the metric, or the expression, with its unit."""
    metric = next((m for m in all_metrics() if m.name == y), None)
    label, shown = metric.label if metric else y, display_unit(unit, like)
    return f"{label} [{shown}]" if shown else label


def _legend_shape(labels: Sequence[str]) -> tuple[int, int]:
    """Return how many columns and rows the legend of these curves has; a single curve has no legend."""
    if len(labels) < 2:
        return 1, 0
    # A line and the space between columns are about as wide as seven letters.
    columns = min(max(round(1.4 * LETTERS) // (max(map(len, labels)) + 7), 1), len(labels))
    rows = ceil(len(labels) / columns)
    return ceil(len(labels) / rows), rows


def fit_range(axes: Axes, values: Sequence[float], *, share: bool) -> None:
    """Keep a flat curve flat, and keep an axis of percentages between 0 and 100.

    Parameters
    ----------
    axes
        The axes of the curves.
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
    axes.set_ylim(low - margin, high + margin)
    if share:
        # The margins leave room for a line at 0 or 100. No tick lies above 100 or, unless a value is
        # negative, below 0.
        least = max(low - margin, 0.0) if min(values) >= 0.0 else low - margin
        inside = [tick for tick in axes.get_yticks() if least <= tick <= min(high + margin, 100.0)]
        axes.set_yticks(inside)


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
