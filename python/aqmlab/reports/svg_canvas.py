"""A drawing that measures text before placing it, so that no text overlaps or is clipped."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

LINE = 17.0
"""Height of a line of text."""
_SIZE = 13.0
_BOLD = 1.1
_MARGIN = 12.0
_APART = 2.0
# Widths of letters in em, for DejaVu Sans, the widest of the fonts in which a page may be shown.
_NARROW = dict.fromkeys(" fijlrtI.,:;'|!()[]·-", 0.37)
_WIDE = dict.fromkeys("mwMW@%&…—", 1.0)


class Area(NamedTuple):
    """A rectangle with its sides along the axes."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Area) -> bool:
        """Return whether the two areas are too close for a reader to distinguish them."""
        return (
            self.left < other.right + _APART
            and other.left < self.right + _APART
            and self.top < other.bottom + _APART
            and other.top < self.bottom + _APART
        )


class TextLine(NamedTuple):
    """A line of text and its class in the style sheet."""

    text: str
    kind: str = ""


def text_width(text: str, kind: str = "") -> float:
    """Largest width of a line of text on a page."""
    width = sum(_letter_width(letter) for letter in text) * _SIZE
    return width * _BOLD if kind == "rate" else width


def _letter_width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.15
    if letter in _WIDE:
        return _WIDE[letter]
    return _NARROW.get(letter) or (0.78 if letter.isupper() else 0.65)


def wrapped(text: str, width: float, kind: str = "", most: int = 3) -> list[TextLine]:
    """Break ``text`` into at most ``most`` lines of ``width``; dots replace what does not fit."""
    lines = [""]
    # A line may end at a space, and after a character that joins words.
    for word in re.findall(r"\s+|[^\s\-_/.,:]+[\-_/.,:]*|[\-_/.,:]+", text):
        if text_width(lines[-1] + word, kind) <= width or (word.isspace() and lines[-1]):
            lines[-1] += word
            continue
        if lines[-1].strip() and text_width(word, kind) <= width:
            lines.append(word)
            continue
        for letter in word:
            if lines[-1] and text_width(lines[-1] + letter, kind) > width:
                lines.append("")
            lines[-1] += letter
    lines = [line.strip() for line in lines if line.strip()]
    if len(lines) > most:
        last = lines[most - 1]
        while last and text_width(f"{last}…", kind) > width:
            last = last[:-1]
        lines = [*lines[: most - 1], f"{last}…"]
    return [TextLine(line, kind) for line in lines]


class Canvas:
    """A drawing that knows which of its areas are occupied."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._shapes: list[str] = []
        self._texts: list[str] = []
        self._taken: list[Area] = []
        self._boxes: list[Area] = []
        self._reach: list[Area] = []

    def curve(self, kind: str, points: Sequence[tuple[float, float]], title: str = "") -> None:
        """Draw a line from the first to the last point, bent towards the middle one if there are three."""
        (x1, y1), (x2, y2) = points[0], points[-1]
        bend = f"Q{points[1][0]:.0f} {points[1][1]:.0f} " if len(points) == 3 else "L"
        # A curve extends at most halfway to the point towards which it is bent.
        xs, ys = zip(*(points if len(points) == 2 else [points[0], points[-1], _mean(points)]), strict=True)
        self._reach.append(Area(min(xs), min(ys), max(xs), max(ys)))
        path = f'<path class="{kind}" d="M{x1:.0f} {y1:.0f} {bend}{x2:.0f} {y2:.0f}"/>'
        self._lines.append(f"<g><title>{escape(title)}</title>{path}</g>" if title else path)

    def node(self, x: float, y: float, radius: float) -> None:
        """A router."""
        self._shapes.append(f'<circle class="node" cx="{x:.0f}" cy="{y:.0f}" r="{radius:.0f}"/>')
        self._taken.append(Area(x - radius, y - radius, x + radius, y + radius))

    def box(self, area: Area, lines: Sequence[TextLine], title: str) -> None:
        """A box with lines of text in its middle."""
        left, top, right, bottom = area
        middle = (left + right) / 2
        first = (top + bottom) / 2 - LINE * (len(lines) - 1) / 2 + 4.5
        texts = "".join(_text(line, middle, first + i * LINE, "") for i, line in enumerate(lines))
        self._shapes.append(
            f"<g><title>{escape(title)}</title>"
            f'<rect class="end" x="{left:.0f}" y="{top:.0f}" width="{right - left:.0f}"'
            f' height="{bottom - top:.0f}" rx="6"/>{texts}</g>'
        )
        self._boxes.append(area)
        self._taken.append(area)

    def place(
        self, lines: Sequence[TextLine], where: Iterable[tuple[float, float, str]], title: str = ""
    ) -> bool:
        """Write lines of text at the first of the given positions at which they overlap nothing.

        Parameters
        ----------
        lines
            The text.
        where
            Positions: ``x``, the top, and which part of the lines is at ``x``: ``"from"`` (their beginning),
            ``"middle"`` or ``"to"`` (their end).
        title
            The text shown on hovering.

        Returns
        -------
        bool
            Whether there was such a position.
        """
        width = max(text_width(*line) for line in lines)
        for x, top, anchor in where:
            left = {"from": x, "middle": x - width / 2, "to": x - width}[anchor]
            area = Area(left, top, left + width, top + LINE * len(lines))
            if not any(area.meets(other) for other in self._taken):
                texts = "".join(_text(line, x, top + 13 + i * LINE, anchor) for i, line in enumerate(lines))
                self._texts.append(f"<g><title>{escape(title)}</title>{texts}</g>" if title else texts)
                self._taken.append(area)
                return True
        return False

    def covered(self, points: Sequence[tuple[float, float]]) -> int:
        """Return how many of the given points lie in boxes."""
        return sum(
            area.left <= x <= area.right and area.top <= y <= area.bottom
            for x, y in points
            for area in self._boxes
        )

    @property
    def bounds(self) -> Area:
        """Return the area of the whole drawing."""
        lefts, tops, rights, bottoms = zip(*self._taken, *self._reach, strict=True)
        return Area(min(lefts), min(tops), max(rights), max(bottoms))

    def svg(self, label: str) -> str:
        """Return the drawing at full size."""
        left, top, right, bottom = self.bounds
        x, y = math.floor(left - _MARGIN), math.floor(top - _MARGIN)
        width, height = math.ceil(right + _MARGIN) - x, math.ceil(bottom + _MARGIN) - y
        return (
            f'<svg class="network" viewBox="{x} {y} {width} {height}" width="{width}" height="{height}"'
            f' role="img" aria-label="{escape(label)}">'
            f"{''.join(self._lines)}{''.join(self._shapes)}{''.join(self._texts)}</svg>"
        )


def _mean(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The middle of a curve of three points."""
    (x1, y1), (x2, y2), (x3, y3) = points
    return (x1 + 2 * x2 + x3) / 4, (y1 + 2 * y2 + y3) / 4


def around(x: float, y: float, step: float) -> Iterator[tuple[float, float]]:
    """Yield points around a given point, at increasing distances."""
    yield x, y
    for ring in range(1, 200):
        for part in range(8 * ring):
            angle = 2 * math.pi * part / (8 * ring)
            yield x + ring * step * math.cos(angle), y + ring * step * math.sin(angle)


def _text(line: TextLine, x: float, y: float, anchor: str) -> str:
    classes = " ".join(part for part in (line.kind, anchor if anchor != "middle" else "") if part)
    attribute = f' class="{classes}"' if classes else ""
    return f'<text{attribute} x="{x:.1f}" y="{y:.1f}">{escape(line.text)}</text>'
