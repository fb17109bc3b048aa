"""Response times and page times in reports: distributions by cell and class, and a table by size band."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aqmlab.figures.distributions import WaitCdf, wait_cdf
from aqmlab.metrics import EVERY_CLASS, Scope, find
from aqmlab.metrics.waits import ALL_WAITS, SizeBand, Waits
from aqmlab.results.answers import Answer
from aqmlab.results.cells import Cell
from aqmlab.results.classes import classes_of
from aqmlab.results.results import Results
from aqmlab.stats import estimate
from aqmlab.text.numbers import display_unit, estimate_parts

ALL_SIZES = SizeBand(0)
_TIMED = {
    "request": "A response time runs from the hand-over of a request to TCP to the last byte of its"
    " response.",
    "page": "A page time runs from the opening of a page's first connection or, if connections are kept open,"
    " from the request for its document, to the last byte of its last object, including the time that the"
    " client takes to parse.",
}
_ENDS_S = {"request": (0.5, 1, 2, 5, 10), "page": (2, 5, 10, 20, 50)}
"""The times, in s, at which a reader can choose to end the time axis of a distribution."""
_LIKE_S = {"request": None, "page": 1.0}
"""Pages take seconds, so their times are shown in seconds; the times of requests are shown in ms."""


def metrics_of(waits: Waits) -> tuple[str, ...]:
    """Return the metrics of each class in the table."""
    times = ("mean_s", "median_s", "p90_s", "p99_s", "cdf_area_percent")
    return (
        f"{waits.many}_completed",
        *map(waits.metric, times),
        f"{waits.many}_failed",
        f"{waits.many}_censored",
    )


def waiting_classes(results: Results, waits: Waits) -> list[str]:
    """The classes with at least one request, or page, whether completed or not, in the scenario's order."""
    asked = classes_of(results)
    made = {
        totals.class_name
        for run in results.measured()
        for totals in waits.totals(run, EVERY_CLASS)
        if totals.completed + totals.failed + totals.censored
    }
    return [name for name in asked if name in made]


def waits_context(results: Results) -> dict[str, Any]:
    """Return the template's context for a section on requests and one on pages, if there were any."""
    return {"waits": [_section(results, waits) for waits in ALL_WAITS if waiting_classes(results, waits)]}


def _section(results: Results, waits: Waits) -> dict[str, Any]:
    # There is no room for the bands of many cells.
    rows = [
        row
        for cell in results.cells
        for name in waiting_classes(results, waits)
        if any(waits.totals(run, name) for run in results.measured(cell))
        for row in _rows(results, cell, name, waits, bands=not results.axes)
    ]
    columns = [
        {
            "label": m.label,
            "unit": display_unit(m.unit, _LIKE_S[waits.one]),
            "definition": m.definition,
            "source": m.source,
        }
        for m in map(find, metrics_of(waits))
    ]
    heads = [*(axis.short for axis in results.axes), "arm", "class"]
    return {
        "key": waits.key,
        "title": f"{waits.time}s".capitalize(),
        "one": waits.one,
        "timed": _TIMED[waits.one],
        "until_s": f"{waits.until_s:g}",
        "heads": heads if results.axes else [*heads, waits.size],
        "columns": columns,
        "rows": rows,
        "reference": results.reference,
    }


def _rows(
    results: Results, cell: Cell, class_name: str, waits: Waits, *, bands: bool
) -> Iterator[dict[str, Any]]:
    """Return a row for the class and, with ``bands``, one for each of its size bands if it has several."""
    labels = [*(label for _, label in cell.settings), cell.arm, class_name]
    found = sorted({band for run in results.measured(cell) for band in waits.bands(run, class_name)})
    for band in [ALL_SIZES, *(found if bands and len(found) > 1 else [])]:
        cells = list(_cells(results, cell, class_name, waits, band))
        yield {"labels": [*labels, str(band)] if bands else labels, "cells": cells, "part": band != ALL_SIZES}


def _cells(
    results: Results, cell: Cell, class_name: str, waits: Waits, band: SizeBand
) -> Iterator[dict[str, Any]]:
    for metric in map(find, metrics_of(waits)):
        parameters = {} if band == ALL_SIZES else band.parameters
        values = results.values(metric.name, cell, Scope(class_name=class_name, parameters=parameters))
        found = estimate(values.values())
        mean, half = estimate_parts(found, metric.unit, _LIKE_S[waits.one])
        seeds = "" if found is None or found.n == len(values) else f"n = {found.n}"
        yield {"mean": mean, "half": half, "seeds": seeds}


def waits_data(answer: Answer) -> list[dict[str, Any]]:
    """Return the data of the charts, one curve per cell: all classes together, then each class."""
    found = []
    for waits in ALL_WAITS:
        classes = waiting_classes(answer.results, waits)
        whose = [EVERY_CLASS, *classes] if len(classes) > 1 else classes
        found.append(
            {
                "key": waits.key,
                "time": waits.time,
                "many": waits.many,
                "until": f"{waits.until_s:g}",
                "ends": [f"{end:g}" for end in _ENDS_S[waits.one]],
                "classes": [[name, "all classes" if name == EVERY_CLASS else name] for name in whose],
                "curves": [
                    [_curve(wait_cdf(answer.results, row.cell, waits, name)) for row in answer.rows]
                    for name in whose
                ],
            }
        )
    return [of for of in found if of["classes"]]


def _curve(cdf: WaitCdf | None) -> dict[str, Any] | None:
    """Return times in s, and the share that takes longer than each; in this form, the tail stays precise."""
    if cdf is None:
        return None
    found: dict[str, Any] = {
        "t": _short(cdf.time_s),
        "more": _rest(cdf.share),
        "n": cdf.n,
        "complete": cdf.complete,
    }
    if cdf.n > 1:
        found |= {
            "low": _rest(cdf.high),
            "high": _rest(cdf.low),
        }
    return found


def _rest(shares: Sequence[float]) -> list[float]:
    """Return 1 minus each share. What is left of a share of 1 whose sum was rounded is 0, not a tail."""
    return _short([round(1 - share, 12) for share in shares])


def _short(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
