"""Charts without selectors, as data for the page's script to draw: lines with bands, and marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aqmlab.figures.looks import UNIT_MARKS, color


@dataclass(frozen=True)
class ChartAxis:
    """One axis.

    Attributes
    ----------
    label
        The label, with its unit: ``"lateness [us]"``.
    log
        Whether the axis is logarithmic.
    begin, end
        The visible range; by default all data.
    """

    label: str
    log: bool = False
    begin: float | None = None
    end: float | None = None


@dataclass
class PlainChart:
    """One chart, whose lines and marks belong to arms and are hidden when their arm is switched off."""

    title: str
    x: ChartAxis
    y: ChartAxis
    legend: list[dict[str, Any]] = field(default_factory=list)
    series: list[dict[str, Any]] = field(default_factory=list)

    def line(  # noqa: PLR0913 (keyword arguments)
        self,
        arm: int,
        name: str,
        x: Sequence[float],
        y: Sequence[float],
        *,
        dash: Sequence[int] = (),
        band: tuple[Sequence[float], Sequence[float]] | None = None,
    ) -> None:
        """Add a line in the colour of an arm, optionally with a band from low to high."""
        edges = {} if band is None else {"low": _short(band[0]), "high": _short(band[1])}
        self.series.append({**_points(arm, name, x, y), "dash": list(dash), **edges})

    def marks(self, arm: int, name: str, x: Sequence[float], y: Sequence[float], mark: str) -> None:
        """Add a mark per point in the colour of an arm."""
        self.series.append({**_points(arm, name, x, y), "mark": UNIT_MARKS[mark]})

    def entry(self, text: str, *, arm: int | None = None, dash: Sequence[int] | None, mark: str = "") -> None:
        """Add a legend entry: the meaning of a colour, dashes or a mark."""
        look = {"color": None if arm is None else color(arm), "dash": None if dash is None else list(dash)}
        self.legend.append({"text": text, **look, "mark": UNIT_MARKS.get(mark, "")})

    def to_json(self) -> dict[str, Any]:
        """Return the data that the page's script draws."""
        axes = {
            name: {"label": axis.label, "log": axis.log, "from": axis.begin, "to": axis.end}
            for name, axis in (("x", self.x), ("y", self.y))
        }
        return {"title": self.title, **axes, "legend": self.legend, "series": self.series}


def charts_json(charts: Mapping[str, PlainChart | None]) -> dict[str, Any]:
    """Return the charts that are not empty, by the name of their place on the page."""
    return {name: chart.to_json() for name, chart in charts.items() if chart is not None and chart.series}


def _points(arm: int, name: str, x: Sequence[float], y: Sequence[float]) -> dict[str, Any]:
    return {"arm": arm, "name": name, "x": _short(x), "y": _short(y)}


def _short(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.6g}") for value in values]
