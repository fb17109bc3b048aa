"""Interactive figures for reports: what BokehJS is asked to draw, in one look.

A figure has a title, two axes and marks that take their numbers from columns of a :class:`Source`::

    shared = interval(0, 60)
    backlog = Figure("Backlog [packets]", x=ChartAxis("time [s]", range=shared), height=190)
    run = source({"t": [0.0, 0.1], "backlog": [3, 7], "low": [2, 6], "high": [4, 8]})
    backlog.band(run, "t", "low", "high", color=PALETTE[0])
    backlog.line(run, "t", "backlog", color=PALETTE[0], label="RED")
    cost = Figure("Drops", x=ChartAxis("flows", scale="log"), y=ChartAxis("drops [%]", scale="log"))
    limits, rates = ChartAxis("limit", factors=["10p", "20p"]), ChartAxis("rate", factors=["1Mbit"])
    grid = Figure("Delay", x=limits, y=rates)
    grid.heat(source(cells), "limit", "rate", "delay", low=0, high=80, unit="ms")
    figures = {"chart-backlog": backlog, "chart-cost": cost, "chart-delay": grid}
    text = page("my.html.j2", [], context, figures)

The template has ``<div class="chart"><div id="chart-backlog"></div></div>`` and so on. BokehJS and
``charts.js``, which :func:`~aqmlab.reports.page.page` adds, draw the figures in the page's colours and give
each its *CSV* button. Figures with the same range (``interval`` or ``fitted``) move together, so do small
multiples.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from aqmlab.reports.bokeh_json import Model, column, constant, document, table

# After Okabe and Ito 2008, told apart by colour-blind readers too; black and yellow, which one of the two
# backgrounds swallows, are replaced, and their blue is lighter.
PALETTE = ("#1f83c7", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#8c6bb1", "#7a8a3c")
MUTED = "#8a8f98"
_DASHES = {"solid": [], "dashed": [6], "dotted": [2, 4]}
# Viridis (van der Walt and Smith 2015) at tenths: even in lightness, so it is read in grey as well.
_VIRIDIS = (
    *("#440154", "#482475", "#414487", "#355f8d", "#2a788e"),
    *("#21918c", "#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725"),
)
_SHADES = 6
"""Colours between two of those."""

Dash = Literal["solid", "dashed", "dotted"] | Sequence[int]
"""A name, or lengths in pixels that are drawn and left out."""
Tip = tuple[str, str]
"""A line of a tooltip: its label, and ``@column`` or ``$name``, with a format in braces."""


@dataclass(frozen=True)
class ChartAxis:
    """One axis.

    Attributes
    ----------
    label
        With its unit: ``"time [s]"``.
    scale
        ``"linear"`` or ``"log"``.
    factors
        Names in their order, for an axis of categories.
    range
        What it shows, from :func:`interval` or :func:`fitted`; all data, if not given. Figures that are given
        the same one move together.
    """

    label: str = ""
    scale: Literal["linear", "log"] = "linear"
    factors: Sequence[str] = ()
    range: Model | None = None


def interval(start: float, end: float, *, fixed: bool = False) -> Model:
    """A range from ``start`` to ``end``; with ``fixed`` nobody can move beyond it."""
    bounds = {"bounds": [start, end]} if fixed else {}
    return Model("Range1d", start=start, end=end, **bounds)


def fitted() -> Model:
    """A range that holds all data of the figures that share it."""
    return Model("DataRange1d")


def source(columns: Mapping[str, Iterable[Any]], name: str = "") -> Model:
    """Columns of data: numbers, texts, or lines of numbers. The page's script finds it by ``name``."""
    data = table({key: _packed(values) for key, values in columns.items()})
    return Model("ColumnDataSource", data=data, **({"name": name} if name else {}))


def _packed(values: Iterable[Any]) -> Any:  # noqa: ANN401 (an array, texts, or arrays)
    if isinstance(values, array):
        return values
    listed = list(values)
    if listed and isinstance(listed[0], str):
        return listed
    if listed and isinstance(listed[0], Iterable):
        return [_packed(part) for part in listed]
    # Seven digits are more than a screen shows, and half the size of the file.
    return array("f", [float("nan") if value is None else value for value in listed])


class Figure:
    """One chart.

    Parameters
    ----------
    title
        Above it.
    x, y
        Its axes.
    height
        In CSS pixels; it is as wide as its element.
    tips
        The tooltip of marks that have none of their own; its name and the place if not given.
    """

    def __init__(
        self,
        title: str,
        *,
        x: ChartAxis | None = None,
        y: ChartAxis | None = None,
        height: int = 320,
        tips: Sequence[Tip] = (("", "$name"), ("x", "$x{0.00}"), ("y", "$y{0.000}")),
    ) -> None:
        self.title = title
        self.height = height
        self._axes = (x or ChartAxis(), y or ChartAxis())
        self._tips = tips
        self._marks: list[Model] = []
        self._own_tips: list[tuple[Model, Sequence[Tip]]] = []
        self._legend: list[Model] = []
        self._tools: list[Model] = []
        self._center: list[Model] = []
        self._right: list[Model] = []
        self._carried: list[Model] = []

    @property
    def empty(self) -> bool:
        """Whether nothing is drawn in it."""
        return not self._marks

    def line(  # noqa: PLR0913 (keyword arguments)
        self,
        data: Model,
        x: str,
        y: str,
        *,
        color: str,
        width: float = 1.3,
        dash: Dash = "solid",
        label: str = "",
        name: str = "",
    ) -> None:
        """A line through the points; ``label`` in the legend, ``name`` in tips where there is none."""
        glyph = Model(
            "Line", x=column(x), y=column(y), line_color=color, line_width=width, line_dash=_lengths(dash)
        )
        self._add(data, glyph, label, name or label)

    def lines(  # noqa: PLR0913 (keyword arguments)
        self, data: Model, xs: str, ys: str, *, color: str, alpha: float = 1.0, name: str = ""
    ) -> None:
        """Many lines alike; each row of the columns is one."""
        glyph = Model(
            "MultiLine",
            xs=column(xs),
            ys=column(ys),
            line_color=constant(color),
            line_alpha=constant(alpha),
        )
        self._add(data, glyph, "", name)

    def band(  # noqa: PLR0913 (keyword arguments)
        self, data: Model, x: str, low: str, high: str, *, color: str, alpha: float = 0.18, name: str = ""
    ) -> None:
        """The area between two lines: an interval along x."""
        glyph = Model(
            "VArea", x=column(x), y1=column(low), y2=column(high), fill_color=color, fill_alpha=alpha
        )
        self._add(data, glyph, "", name)

    def strips(  # noqa: PLR0913 (keyword arguments)
        self, data: Model, x0: str, x1: str, *, color: str, alpha: float = 0.25, name: str = ""
    ) -> None:
        """Upright strips over the whole height: times at which something was different."""
        glyph = Model(
            "VStrip",
            x0=column(x0),
            x1=column(x1),
            fill_color=constant(color),
            fill_alpha=constant(alpha),
            # A strip that is narrower than a pixel is seen by its edge.
            line_color=constant(color),
            line_alpha=constant(alpha),
        )
        self._add(data, glyph, "", name)

    def bars(  # noqa: PLR0913 (keyword arguments)
        self, data: Model, x: str, low: str, high: str, *, color: str, width: float = 1.3, name: str = ""
    ) -> None:
        """An upright bar at each x: an interval of each point."""
        glyph = Model(
            "Segment",
            x0=column(x),
            x1=column(x),
            y0=column(low),
            y1=column(high),
            line_color=constant(color),
            line_width=constant(width),
        )
        self._add(data, glyph, "", name)

    def scatter(  # noqa: PLR0913 (keyword arguments)
        self,
        data: Model,
        x: str,
        y: str,
        *,
        color: str,
        marker: str = "circle",
        size: float = 8,
        alpha: float = 0.75,
        label: str = "",
        name: str = "",
        tips: Sequence[Tip] = (),
    ) -> None:
        """A mark at each point."""
        glyph = Model(
            "Scatter",
            x=column(x),
            y=column(y),
            size=constant(size),
            marker=constant(marker),
            line_color=constant(color),
            line_alpha=constant(alpha),
            fill_color=constant(color),
            fill_alpha=constant(alpha),
        )
        self._add(data, glyph, label, name or label, tips)

    def heat(  # noqa: PLR0913 (keyword arguments)
        self,
        data: Model,
        x: str,
        y: str,
        value: str,
        *,
        low: float,
        high: float,
        unit: str = "",
        cell: tuple[float, float] = (1.0, 1.0),
        tips: Sequence[Tip] = (),
    ) -> None:
        """A cell at each point, coloured by ``value`` from ``low`` to ``high``, with a bar that says how.

        ``cell`` is its width and height in the units of the axes; categories are one apart.
        """
        mapper = Model("LinearColorMapper", palette=shades(), low=low, high=high, nan_color=MUTED)
        glyph = Model(
            "Rect",
            x=column(x),
            y=column(y),
            width=constant(cell[0]),
            height=constant(cell[1]),
            fill_color=column(value, mapper),
            line_color=constant(None),
        )
        told = tips or ((x, f"@{{{x}}}"), (y, f"@{{{y}}}"), (value, f"@{{{value}}}{{0.000}} {unit}".strip()))
        self._add(data, glyph, "", value, told)
        bar = Model("ColorBar", color_mapper=mapper, width=12, title=unit or None, background_fill_color=None)
        self._right.append(bar)

    def upright(self, at: float) -> None:
        """A dotted line across the figure at an x: a moment that matters."""
        self._center.append(
            Model(
                "Span",
                location=at,
                dimension="height",
                line_color=MUTED,
                line_dash=_lengths("dotted"),
                line_width=1,
            )
        )

    def follow(self, cursor: Model) -> None:
        """Show :func:`cursor`'s line where the pointer is in any of the figures that follow it."""
        self._tools.append(Model("CrosshairTool", overlay=cursor, dimensions="height"))

    def carry(self, data: Iterable[Model]) -> None:
        """Take sources into the document that no mark shows, for the page's script."""
        self._carried.extend(data)

    def _add(self, data: Model, glyph: Model, label: str, name: str, tips: Sequence[Tip] = ()) -> None:
        mark = Model("GlyphRenderer", data_source=data, glyph=glyph, **({"name": name} if name else {}))
        self._marks.append(mark)
        if tips:
            self._own_tips.append((mark, tips))
        if label:
            self._legend.append(Model("LegendItem", label=constant(label), renderers=[mark]))

    def model(self, name: str) -> Model:
        """What BokehJS draws; ``name`` is the one that scripts look for."""
        (x_axis, x_range, x_scale), (y_axis, y_range, y_scale) = map(_axis, self._axes)
        grid = {"grid_line_alpha": 0.25, "grid_line_color": MUTED}
        grids = [Model("Grid", axis=x_axis, **grid), Model("Grid", axis=y_axis, dimension=1, **grid)]
        legend = [_legend(self._legend)] if self._legend else []
        optional: dict[str, Any] = {"above": legend} if legend else {}
        if self._right:
            optional["right"] = self._right
        if self._carried:
            optional["tags"] = self._carried
        return Model(
            "Figure",
            name=name,
            title=Model("Title", text=self.title, text_font_size="13px", text_font_style="bold"),
            height=self.height,
            sizing_mode="stretch_width",
            x_range=x_range,
            y_range=y_range,
            x_scale=x_scale,
            y_scale=y_scale,
            renderers=self._marks,
            below=[x_axis],
            left=[y_axis],
            center=[*grids, *self._center],
            toolbar=self._toolbar(),
            toolbar_location="above",
            min_border_left=52,
            min_border_right=14,
            background_fill_color=None,
            border_fill_color=None,
            outline_line_color=None,
            output_backend="canvas",
            **optional,
        )

    def _toolbar(self) -> Model:
        own = [mark for mark, _ in self._own_tips]
        others: Any = [mark for mark in self._marks if mark not in own] if own else "auto"
        tools = [
            Model("PanTool", dimensions="width"),
            Model("BoxZoomTool", dimensions="width"),
            Model("ResetTool"),
            *(Model("HoverTool", tooltips=_rows(tips), renderers=[mark]) for mark, tips in self._own_tips),
        ]
        if others:
            tools.append(Model("HoverTool", tooltips=_rows(self._tips), renderers=others))
        # A finger that scrolls the page must not drag a chart.
        return Model("Toolbar", tools=[*tools, *self._tools], active_drag=None, autohide=True, logo=None)


def _lengths(dash: Dash) -> list[int]:
    return _DASHES[dash] if isinstance(dash, str) else list(dash)


def cursor() -> Model:
    """A line that figures :meth:`~Figure.follow`."""
    return Model("Span", dimension="height", line_color=MUTED, line_width=1)


def shades() -> list[str]:
    """Colours from dark to light, for a heat map."""
    anchors = [tuple(int(color[i : i + 2], 16) for i in (1, 3, 5)) for color in _VIRIDIS]
    result = []
    for left, right in pairwise(anchors):
        for step in range(_SHADES):
            mixed = (a + (b - a) * step / _SHADES for a, b in zip(left, right, strict=True))
            result.append("#" + "".join(f"{round(part):02x}" for part in mixed))
    return [*result, _VIRIDIS[-1]]


def charts_json(figures: Mapping[str, Figure]) -> dict[str, Any]:
    """What ``charts.js`` needs to draw figures, by the ``id`` of the element of each."""
    return document({place: figure.model(place) for place, figure in figures.items()})


def _axis(axis: ChartAxis) -> tuple[Model, Model, Model]:
    """Axis, range and scale."""
    look: dict[str, Any] = {
        "axis_label": axis.label or None,
        "axis_label_text_font_style": "normal",
        "axis_line_color": None,
        "major_tick_line_color": None,
        "minor_tick_line_color": None,
    }
    if axis.factors:
        scope = axis.range or Model("FactorRange", factors=list(axis.factors))
        return Model("CategoricalAxis", **look), scope, Model("CategoricalScale")
    kind = "Log" if axis.scale == "log" else "Linear"
    return Model(f"{kind}Axis", **look), axis.range or fitted(), Model(f"{kind}Scale")


def _legend(items: list[Model]) -> Model:
    """Between title and plot, where it covers nothing."""
    return Model(
        "Legend",
        items=items,
        orientation="horizontal",
        location="top_left",
        background_fill_color=None,
        border_line_color=None,
        label_text_font_size="11px",
        glyph_height=10,
        padding=0,
        margin=2,
        spacing=14,
    )


def _rows(tips: Sequence[Tip]) -> list[list[str]]:
    return [list(tip) for tip in tips]
