"""Figures without selectors, as data for the page's script to draw."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from aqmlab.figures.looks import UNIT_MARKS, color
from aqmlab.figures.model import Axis, Entry, Figure, Line, Look, Mark, Panel, Span

if TYPE_CHECKING:
    from aqmlab.figures.model import Numbers


def charts_json(figures: Mapping[str, Figure | None]) -> dict[str, Any]:
    """Return the figures that are not empty, by the name of their place on the page."""
    return {
        name: chart_json(figure)
        for name, figure in figures.items()
        if figure is not None and any(panel.marks for panel in figure.panels)
    }


def chart_json(figure: Figure) -> list[dict[str, Any]]:
    """Return the plots of a figure; the first one has the legend.

    Raises
    ------
    TypeError
        If a plot shows anything but lines, marks, bands and spans.
    """
    legend = [_entry(entry) for entry in figure.notes]
    return [_panel(panel, legend if i == 0 else []) for i, panel in enumerate(figure.panels)]


def _panel(panel: Panel, legend: list[dict[str, Any]]) -> dict[str, Any]:
    lines = [mark for mark in panel.marks if not isinstance(mark, Span)]
    found: dict[str, Any] = {
        "title": panel.title,
        "x": _axis(panel.x),
        "y": _axis(panel.y),
        "legend": legend,
        "series": [_line(mark) for mark in lines],
    }
    if panel.arm is not None:
        found["arm"] = panel.arm
    spans = [[mark.begin, mark.end] for mark in panel.marks if isinstance(mark, Span)]
    return {**found, "spans": spans} if spans else found


def _axis(axis: Axis) -> dict[str, Any]:
    found = {"label": axis.label, "log": axis.log, "from": axis.begin, "to": axis.end}
    return found if axis.labels is None else {**found, "labels": axis.labels}


def _entry(entry: Entry) -> dict[str, Any]:
    look = entry.look or Look("", line=False)
    return {
        "text": entry.text,
        "color": color(look.hue) if isinstance(look.hue, int) else look.hue or None,
        "dash": list(look.dash) if look.line else None,
        "mark": UNIT_MARKS.get(look.mark, ""),
    }


def _line(mark: Mark) -> dict[str, Any]:
    if not isinstance(mark, Line):
        raise TypeError(f"a page has no plain chart with {type(mark).__name__}")
    look = mark.look
    hue = {"arm": look.hue} if isinstance(look.hue, int) else {"color": look.hue}
    found = {**hue, "name": mark.name, "x": _short(mark.x), "y": _short(mark.y)}
    if not look.line:
        return {**found, "mark": UNIT_MARKS[look.mark]}
    edges = {}
    if mark.low is not None and mark.high is not None:
        edges = {"low": _short(mark.low), "high": _short(mark.high)}
    return {**found, "dash": list(look.dash), **edges}


def _short(values: Numbers) -> list[float | None]:
    return [float(f"{value:.6g}") if isfinite(value) else None for value in values]
