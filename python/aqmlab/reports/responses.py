"""Response times in reports: their distributions by cell and class, and a table by size band."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aqmlab.answers import Answer
from aqmlab.cells import Cell
from aqmlab.classes import classes_of
from aqmlab.figures import display_unit, estimate_parts
from aqmlab.metrics import EVERY_CLASS, find
from aqmlab.metrics.requests import SizeBand, size_bands
from aqmlab.reports.distributions import ResponseCdf, response_cdf
from aqmlab.results import Results
from aqmlab.stats import estimate

METRICS = (
    "requests_completed",
    "response_time_mean_s",
    "response_time_median_s",
    "response_time_p90_s",
    "response_time_p99_s",
    "response_time_cdf_area_percent",
    "requests_failed",
    "requests_censored",
)
ALL_SIZES = SizeBand(0)


def request_classes(results: Results) -> list[str]:
    """The classes of which a request was completed, in their order."""
    made = {totals.class_name for run in results.measured() for totals in run.requests if totals.completed}
    return [name for name in classes_of(results) if name in made]


def responses_context(results: Results) -> dict[str, Any]:
    """What the template needs to show the table; nothing where no request was completed."""
    classes = request_classes(results)
    if not classes:
        return {"responses": None}
    # A page has no room for the bands of each of many cells.
    rows = [
        row
        for cell in results.cells
        if results.runs_of(cell)
        for name in classes
        if any(run.requests_of(name) for run in results.measured(cell))
        for row in _rows(results, cell, name, bands=not results.axes)
    ]
    columns = [
        {"label": m.label, "unit": display_unit(m.unit), "definition": m.definition, "source": m.source}
        for m in map(find, METRICS)
    ]
    heads = [*(axis.short for axis in results.axes), "arm", "class"]
    return {
        "responses": {
            "heads": heads if results.axes else [*heads, "response size"],
            "columns": columns,
            "rows": rows,
            "reference": results.reference,
        }
    }


def _rows(results: Results, cell: Cell, class_name: str, *, bands: bool) -> Iterator[dict[str, Any]]:
    """A row for the class, and one for each size band where there are several."""
    labels = [*(label for _, label in cell.settings), cell.arm, class_name]
    found = sorted({band for run in results.measured(cell) for band in size_bands(run, class_name)})
    for band in [ALL_SIZES, *(found if bands and len(found) > 1 else [])]:
        cells = list(_cells(results, cell, class_name, band))
        yield {"labels": [*labels, str(band)] if bands else labels, "cells": cells, "part": band != ALL_SIZES}


def _cells(results: Results, cell: Cell, class_name: str, band: SizeBand) -> Iterator[dict[str, Any]]:
    for metric in map(find, METRICS):
        parameters = {} if band == ALL_SIZES else band.parameters
        values = results.values(metric.name, cell, class_name=class_name, parameters=parameters)
        found = estimate(values.values())
        mean, half = estimate_parts(found, metric.unit)
        seeds = "" if found is None or found.n == len(values) else f"n = {found.n}"
        yield {"mean": mean, "half": half, "seeds": seeds}


def responses_data(answer: Answer) -> dict[str, Any]:
    """What the charts are drawn from: of each class, all together first, a curve for each cell."""
    results = answer.results
    classes = request_classes(results)
    whose = [EVERY_CLASS, *classes] if len(classes) > 1 else classes
    arms = list(answer.arms)
    return {
        "classes": [[name, "all classes" if name == EVERY_CLASS else name] for name in whose],
        "reference": None if results.reference not in arms else arms.index(results.reference),
        "curves": [[_curve(response_cdf(results, row.cell, name)) for row in answer.rows] for name in whose],
    }


def _curve(cdf: ResponseCdf | None) -> dict[str, Any] | None:
    """Times in s and the shares that take longer, which keep their digits in the tail."""
    if cdf is None:
        return None
    found: dict[str, Any] = {
        "t": _short(cdf.time_s),
        "more": _short([1 - share for share in cdf.share]),
        "n": cdf.n,
    }
    if cdf.n > 1:
        found |= {
            "low": _short([1 - share for share in cdf.high]),
            "high": _short([1 - share for share in cdf.low]),
        }
    return found


def _short(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
