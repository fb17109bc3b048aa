"""Names beside the points of a plot: none covers another one, and each covers as few points as possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aqmlab.plots.appearance import points_of, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DISTANCES = (4.0, 8.0, 13.0, 20.0, 30.0, 42.0, 58.0)
"""Gaps between a point and its name that are tried, in points (1/72 inch)."""
_COST_OF_A_POINT = 6.0
"""A name rather moves this far away than it covers a point; in points."""

Box = tuple[float, float, float, float]
"""Left, bottom, right and top, in points."""


def name_points(
    axes: Axes, names: Sequence[tuple[str, float, float]], others: Sequence[tuple[float, float]] = ()
) -> list[str]:
    """Write a name beside each point; those that come first are placed first.

    The layout of the figure must be final, because names are placed in its units of length.

    Parameters
    ----------
    axes
        The plot.
    names
        The names and their points, in the units of the axes.
    others
        Further points that names should not cover.

    Returns
    -------
    list
        The names for which there was no room.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    size = points_of("legend.fontsize")
    scale = 72.0 / figure.dpi

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = axes.transData.transform((x, y))
        return float(across) * scale, float(up) * scale

    frame = axes.bbox
    box = (frame.x0 * scale, frame.y0 * scale, frame.x1 * scale, frame.y1 * scale)
    marks = [place(x, y) for x, y in (*others, *((x, y) for _, x, y in names))]
    placed: list[Box] = []
    left_out = []
    for name, x, y in names:
        at = place(x, y)
        spot = _free(at, (text_width(name, size) + 2.0, 1.25 * size), box, placed, marks)
        if spot is None:
            left_out.append(name)
            continue
        placed.append(spot)
        middle = ((spot[0] + spot[2]) / 2 - at[0], (spot[1] + spot[3]) / 2 - at[1])
        far = math.hypot(*middle) > max(spot[2] - spot[0], spot[3] - spot[1]) / 2 + 14.0
        axes.annotate(
            name,
            (x, y),
            xytext=middle,
            textcoords="offset points",
            ha="center",
            va="center",
            size=size,
            zorder=5,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": "0.4", "shrinkB": 2} if far else None,
        )
    return left_out


def _free(
    at: tuple[float, float],
    size: tuple[float, float],
    box: Box,
    placed: Sequence[Box],
    marks: Sequence[tuple[float, float]],
) -> Box | None:
    """Return the free rectangle that is nearest to a point and covers the fewest others."""
    width, height = size
    best, least = None, math.inf
    for gap in _DISTANCES:
        for i in range(16):
            angle = i * math.pi / 8
            x = at[0] + math.cos(angle) * (gap + width / 2)
            y = at[1] + math.sin(angle) * (gap + height / 2)
            spot = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            inside = box[0] <= spot[0] and box[1] <= spot[1] and spot[2] <= box[2] and spot[3] <= box[3]
            if not inside or any(_overlap(spot, other) for other in placed):
                continue
            covered = sum(spot[0] < px < spot[2] and spot[1] < py < spot[3] for px, py in marks)
            cost = gap + _COST_OF_A_POINT * covered
            if cost < least:
                best, least = spot, cost
    return best


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
