"""The look of arms and lines in charts: colours, dashes and marks, and small drawings of them for legends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

# The palette of Okabe and Ito (2008), whose colours colour-blind readers can also distinguish. Black and
# yellow are replaced because each is invisible on one of the two backgrounds, and the blue is lighter than
# theirs.
PALETTE = ("#1f83c7", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#8c6bb1", "#7a8a3c")
MUTED = "#8a8f98"
FAINT = 0.35
FACE_ALPHA = 0.35
"""The opacity of areas with an outline."""
DASHED, DOTTED = (6, 3), (2, 3)
STALL = PALETTE[5]
"""A colour that no line over time uses."""
_ARM_DASHES = ((), (6, 3), (2, 3), (8, 3, 2, 3), (12, 4), (8, 3, 2, 3, 2, 3), (12, 3, 4, 3))


def color(arm: int) -> str:
    """The colour of the arm with that number; it is the same in all charts."""
    return PALETTE[arm % len(PALETTE)]


def dash_lengths(arm: int) -> tuple[int, ...]:
    """The lengths, in pixels, of the dashes and gaps in the arm's lines; empty for a solid line.

    The numbers of colours, dashes and marks are pairwise coprime, so any two of the first 56 arms share at
    most one of the three.
    """
    return _ARM_DASHES[arm % len(_ARM_DASHES)]


def brief(value: float) -> str:
    """The text of a value in a map."""
    size = abs(value)
    places = 0 if size >= 100 or size == 0 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:.{places}f}".replace("-", "−")


def marker(arm: int) -> str:
    """The name of the arm's mark in :data:`UNIT_MARKS`."""
    return MARKERS[arm % len(MARKERS)]


def _polygon(corners: int, turn: float, inner: float = 1.0) -> str:
    """A regular polygon or, if ``inner`` is below 1, a star."""
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
"""Marks as paths of an SVG drawing, centred on the origin and with a radius of 1."""
MARKERS = tuple(UNIT_MARKS)


def chip(arm: int, *, reference: bool = False) -> Markup:
    """Return the mark of an arm alone, for the rows of a table; the reference is grey."""
    from markupsafe import Markup

    hue = MUTED if reference else color(arm)
    return Markup(
        f'<svg class="chip" width="12" height="12" aria-hidden="true"><path d="{UNIT_MARKS[marker(arm)]}"'
        f' transform="translate(6 6) scale(5)" fill="{hue}"/></svg>'
    )


def swatch(arm: int, *, reference: bool = False) -> Markup:
    """Return the line and the mark of an arm; the reference is grey."""
    from markupsafe import Markup

    lengths = () if reference else dash_lengths(arm)
    hue = MUTED if reference else color(arm)
    dashes = f' stroke-dasharray="{" ".join(map(str, lengths))}"' if lengths else ""
    mark = marker(arm)
    return Markup(
        f'<svg width="40" height="12" aria-hidden="true"><line x1="1" y1="6" x2="39" y2="6"'
        f' stroke="{hue}" stroke-width="2.2"{dashes}/>'
        f'<path d="{UNIT_MARKS[mark]}" transform="translate(20 6) scale(5)" fill="{hue}"/></svg>'
    )
