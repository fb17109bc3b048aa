"""How an arm looks in charts, as a small drawing for legends: its colour, its dashes and its mark."""

from __future__ import annotations

import math

from markupsafe import Markup

from aqmlab.reports.charts import color, dash_lengths, marker


def _polygon(corners: int, turn: float, inner: float = 1.0) -> str:
    """A regular polygon, or a star whose inner corners are nearer to its middle."""
    points = []
    for i in range(corners):
        angle = math.radians(turn) + 2 * math.pi * i / corners
        radius = 1.0 if i % 2 == 0 else inner
        points.append(f"{radius * math.sin(angle):.3g} {-radius * math.cos(angle):.3g}")
    return f"M{' L'.join(points)} Z"


_PLUS = "M-0.35 -1 H0.35 V-0.35 H1 V0.35 H0.35 V1 H-0.35 V0.35 H-1 V-0.35 H-0.35 Z"
_X = "M0 0.45 L0.6 1 L1 0.6 L0.45 0 L1 -0.6 L0.6 -1 L0 -0.45 L-0.6 -1 L-1 -0.6 L-0.45 0 L-1 0.6 L-0.6 1 Z"
UNIT_MARKS: dict[str, str] = {
    "circle": "M-1 0 A1 1 0 1 0 1 0 A1 1 0 1 0 -1 0 Z",
    "square": "M-0.9 -0.9 H0.9 V0.9 H-0.9 Z",
    "triangle": _polygon(3, 0),
    "diamond": _polygon(4, 0),
    "inverted_triangle": _polygon(3, 180),
    "star": _polygon(10, 0, 0.42),
    "plus": _PLUS,
    "hex": _polygon(6, 0),
    "x": _X,
}
"""Marks as paths of an SVG drawing, about the origin and of radius 1."""


def swatch(arm: int, *, plain: bool = False) -> Markup:
    """The line and the mark of an arm; ``plain`` where charts tell it by its colour alone."""
    lengths = () if plain else dash_lengths(arm)
    dashes = f' stroke-dasharray="{" ".join(map(str, lengths))}"' if lengths else ""
    mark = "circle" if plain else marker(arm)
    return Markup(
        f'<svg width="40" height="12" aria-hidden="true"><line x1="1" y1="6" x2="39" y2="6"'
        f' stroke="{color(arm)}" stroke-width="2.2"{dashes}/>'
        f'<path d="{UNIT_MARKS[mark]}" transform="translate(20 6) scale(5)" fill="{color(arm)}"/></svg>'
    )
