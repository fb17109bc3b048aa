"""A figure as data: its plots, their axes, what is drawn in them, and how that looks.

Files (:mod:`aqmlab.plots`) and pages (:mod:`aqmlab.reports`) draw the same figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from aqmlab.figures.looks import DASHED, MUTED, dash_lengths, marker

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from aqmlab.stats.ellipse import CovarianceEllipse

    Numbers = Sequence[float] | npt.NDArray[np.float64]

INK = "black"
Share = Literal["all", "row", "col", "none"]


@dataclass(frozen=True)
class Look:
    """How a line or a set of marks looks.

    Attributes
    ----------
    hue
        The number of an arm, whose colour it has, or a colour.
    dash
        The lengths of dashes and gaps, as in :func:`aqmlab.figures.looks.dash_lengths`; empty if solid.
    mark
        The name of its marks in :data:`aqmlab.figures.looks.UNIT_MARKS`, or ``"dot"``; empty if it has none.
    size
        The size of its marks, relative to that of the marks along a line.
    every
        Whether each point has a mark; otherwise, marks are spaced along the line.
    line
        Whether a line joins the points.
    width
        The width of the line, in points; ``None`` for the usual one.
    alpha
        Its opacity; ``None`` if it is opaque.
    hollow
        ``"white"`` or ``"clear"`` if its marks are outlines, filled with white or with nothing.
    order
        Marks with a higher number are drawn later; ``None`` for the usual order.
    many
        Whether there are thousands of marks, which are rasterised even in a vector file.
    """

    hue: int | str
    dash: tuple[float, ...] = ()
    mark: str = ""
    size: float = 1.0
    every: bool = True
    line: bool = True
    width: float | None = None
    alpha: float | None = None
    hollow: Literal["", "white", "clear"] = ""
    order: float | None = None
    many: bool = False


def arm_look(arm: int, *, every: bool = False) -> Look:
    """The look of an arm's line: its colour, dashes and marks."""
    return Look(arm, dash_lengths(arm), marker(arm), every=every)


REFERENCE = Look("#9e9e9e", width=2.4, order=1)
"""The look of the arm to which others are compared: a broad grey line behind the others."""
THRESHOLD = Look(MUTED, DASHED, width=0.8)


@dataclass(frozen=True)
class Line:
    """Points, joined by a line or shown by marks, with an optional band.

    Attributes
    ----------
    name
        Its name in the legend; empty if it has none.
    x, y
        The points.
    look
        How it looks.
    low, high
        The limits of the band, such as an interval of the mean.
    steps
        Whether the value stays the same up to the next point.
    free
        Whether it may extend beyond the plot, whose range then does not depend on it.
    """

    name: str
    x: Numbers
    y: Numbers
    look: Look
    low: Numbers | None = None
    high: Numbers | None = None
    steps: bool = False
    free: bool = False


@dataclass(frozen=True)
class Span:
    """A shaded interval of the horizontal axis.

    Attributes
    ----------
    name
        Its name in the legend; empty if it has none.
    begin, end
        The interval.
    color
        Its colour.
    edge
        The width of its outline in points, for intervals that would otherwise be too narrow to be visible.
    alpha
        Its opacity.
    """

    name: str
    begin: float
    end: float
    color: str = "#e0e0e0"
    edge: float = 0.0
    alpha: float | None = None


@dataclass(frozen=True)
class Outline:
    """The ellipse around a set of points."""

    of: CovarianceEllipse
    look: Look


@dataclass(frozen=True)
class Names:
    """Names next to points, placed in this order where they do not cover each other and cover few marks."""

    names: Sequence[tuple[str, float, float]]
    others: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class Scale:
    """The colours of the values of maps: from a colour for the lowest to one for the highest value.

    With ``diverging``, zero is in the middle.
    """

    label: str
    low: float
    high: float
    diverging: bool = False


@dataclass(frozen=True)
class Squares:
    """The squares of a map: values by column and row, and those that are hatched as not significant."""

    values: Mapping[tuple[int, int], float]
    scale: Scale
    doubtful: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Box:
    """A box plot of values, at a position, with a width and the colour and dashes of an arm."""

    name: str
    x: float
    width: float
    arm: int
    values: Sequence[float]

    @property
    def dash(self) -> tuple[int, ...]:
        """The dashes of its whiskers."""
        return dash_lengths(self.arm)


@dataclass(frozen=True)
class Bar:
    """A bar up to a mean, with its interval, at a position, in the colour of an arm."""

    name: str
    x: float
    width: float
    arm: int
    mean: float
    half: float | None


@dataclass(frozen=True)
class Arrow:
    """An arrow with a text at its beginning; if its ends are the same point, there is only the text."""

    begin: tuple[float, float]
    end: tuple[float, float]
    look: Look
    text: str


@dataclass(frozen=True)
class Ladder:
    """Arrows between the time lines of a sender and a receiver, which are ``height`` inches high."""

    arrows: tuple[Arrow, ...]
    height: float


Mark = Ladder | Line | Span | Outline | Names | Squares | Box | Bar


@dataclass(frozen=True)
class Axis:
    """An axis of a plot.

    Attributes
    ----------
    label
        The label, with the unit.
    log
        Whether it is logarithmic.
    begin, end
        Its range; ``None`` for that of the data.
    labels
        The labels at 0, 1, 2 and so on, if it has no numbers.
    linear_below
        The absolute value below which a logarithmic axis is linear, so that it can show zero.
    within
        The range outside which there are no ticks.
    """

    label: str = ""
    log: bool = False
    begin: float | None = None
    end: float | None = None
    labels: tuple[str, ...] | None = None
    linear_below: float | None = None
    within: tuple[float, float] | None = None


@dataclass(frozen=True)
class Panel:
    """One plot; ``arm`` is the number of the arm that it shows, if it shows only one."""

    title: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    arm: int | None = None

    @property
    def lines(self) -> list[Line]:
        """The lines, without spans, maps and the like."""
        return [mark for mark in self.marks if isinstance(mark, Line)]


@dataclass(frozen=True)
class Entry:
    """An entry of a legend: the text, the shape of its symbol, and the look of a line or of marks."""

    text: str
    look: Look | None = None
    shape: Literal["line", "area", "hatch", "words"] = "line"


BAND = Entry("band: 95 % interval of the mean", shape="area")


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes
    ----------
    title
        The title.
    rows
        Its rows, each with its plots side by side.
    notes
        Entries of the legend in addition to those of lines and spans.
    size
        Width and height in inches; ``None`` for those that the plots require.
    wraps
        Whether rows are broken where space requires it.
    share
        Which plots have the same horizontal axis, and which have the same vertical axis.
    legend
        Where the legend is: ``"below"`` all plots, or ``"rows"``, at the top of each row, or ``"none"``.
    """

    title: str
    rows: tuple[tuple[Panel, ...], ...]
    notes: tuple[Entry, ...] = ()
    size: tuple[float, float] | None = None
    wraps: bool = False
    share: tuple[Share, Share] = ("none", "none")
    legend: Literal["below", "rows", "none"] = "below"

    @property
    def panels(self) -> list[Panel]:
        """All plots, row by row."""
        return [panel for row in self.rows for panel in row]


def alone(title: str, panel: Panel, **more: Any) -> Figure:  # noqa: ANN401 (further attributes)
    """A figure with one plot, of the usual size."""
    return Figure(title, ((panel,),), size=(4.9, 3.5), **more)


def fitted(
    rows: Sequence[Sequence[Panel]], limits: tuple[float, float], bottom: float | None = None
) -> tuple[tuple[Panel, ...], ...]:
    """Set the limits of the time axis, and fit the vertical axis of each row to what is visible.

    Parameters
    ----------
    rows
        The plots.
    limits
        Beginning and end of the time axis.
    bottom
        The lower end of the vertical axes, if not the smallest value.
    """
    import numpy as np

    made = []
    for row in rows:
        lines = [line for panel in row for line in panel.lines if not line.free]
        visible = [_within(line, limits) for line in lines]
        values = np.concatenate(visible) if visible else np.zeros(0)
        begin = end = None
        if len(values):
            low = float(values.min()) if bottom is None else bottom
            room = _MARGIN * (float(values.max()) - low) or 1.0
            begin, end = low - room if bottom is None else low, float(values.max()) + room
        time = [replace(panel.x, begin=limits[0], end=limits[1]) for panel in row]
        up = [replace(panel.y, begin=begin, end=end) for panel in row]
        made.append(tuple(replace(p, x=x, y=y) for p, x, y in zip(row, time, up, strict=True)))
    return tuple(made)


_MARGIN = 0.05


def over_time(  # noqa: PLR0913 (keyword arguments)
    title: str,
    columns: Sequence[str],
    rows: Mapping[str, Sequence[Sequence[Mark]]],
    limits: tuple[float, float] | None = None,
    *,
    height: float = 1.7,
    bottom: float | None = None,
    log: bool = False,
    **more: Any,  # noqa: ANN401 (further attributes)
) -> Figure:
    """Plots over time: one column per run, one row per quantity or flow, with common axes.

    Parameters
    ----------
    title
        The title.
    columns
        The titles of the columns.
    rows
        What is drawn in the columns of each row, by the label of its vertical axis.
    limits
        Beginning and end of the time axis; ``None`` for those of the data.
    height
        The height of a row in inches.
    bottom
        As in :func:`fitted`.
    log
        Whether the vertical axes are logarithmic; they then cover all data.
    more
        Further attributes of the figure.
    """
    made = tuple(
        tuple(
            Panel(name if i == 0 else "", Axis("time [s]"), Axis(label), tuple(marks))
            for name, marks in zip(columns, of_row, strict=True)
        )
        for i, (label, of_row) in enumerate(rows.items())
    )
    if limits is not None:
        made = fitted(made, limits, bottom)
    if log:
        made = tuple(tuple(replace(p, y=Axis(p.y.label, log)) for p in row) for row in made)
    size = more.pop("size", (max(7.0, 1.7 * len(columns)), 1.0 + height * len(rows)))
    return Figure(title, made, size=size, share=("all", "row"), **more)


def _within(line: Line, limits: tuple[float, float]) -> npt.NDArray[np.float64]:
    import numpy as np

    times, values = np.asarray(line.x, dtype=np.float64), np.asarray(line.y, dtype=np.float64)
    seen: npt.NDArray[np.float64] = values[(times >= limits[0]) & (times <= limits[1]) & np.isfinite(values)]
    return seen


def warmup(until_s: float, from_s: float = 0.0) -> list[Span]:
    """The warm-up, which is not measured, if it is visible in plots that begin at ``from_s``."""
    return [Span("warm-up, not measured", 0.0, until_s)] if until_s > from_s else []
