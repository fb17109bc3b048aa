"""Classes of traffic, and the queues inside a queue, in reports: their tables."""

from __future__ import annotations

from typing import Any

from aqmlab.metrics import Metric
from aqmlab.results.answers import Answer, Row, answer, has_inner_queues
from aqmlab.results.classes import classes_of
from aqmlab.results.results import Results
from aqmlab.text.numbers import display_unit


def by_class_context(results: Results) -> dict[str, Any]:
    """Return the template's context for the table of classes; empty where there is only one."""
    if len(classes_of(results)) < 2:
        return {"by_class": None}
    return {"by_class": _table(answer(results, by="class"))}


MOST_ROWS = 300
"""Largest number of rows of inner queues; this limit keeps the page of a large sweep small."""


def by_queue_context(of: Answer) -> dict[str, Any]:
    """Return the template's context for the table of inner queues; empty where there are none."""
    results, queue = of.results, of.asked_queue
    if not has_inner_queues(results, queue):
        return {"by_queue": None}
    table = _table(answer(results, by="queue", queue=queue, class_name=of.class_name))
    left_out = len(table["rows"]) - MOST_ROWS
    return {"by_queue": {**table, "rows": table["rows"][:MOST_ROWS], "left_out": max(left_out, 0)}}


def _table(of: Answer) -> dict[str, Any]:
    return {
        "heads": [*(axis.short for axis in of.results.axes), "arm", of.by],
        "columns": [_column(metric) for metric in of.shown],
        "rows": [_row(of, row) for row in of.rows],
    }


def _column(metric: Metric) -> dict[str, str]:
    unit = display_unit(metric.unit)
    return {"label": metric.label, "unit": unit, "definition": metric.definition, "source": metric.source}


def _row(table: Answer, row: Row) -> dict[str, Any]:
    cells = []
    for metric in table.shown:
        mean, half = table.parts(row.cell, metric, row.part)
        seeds = table.defined_in(row.cell, metric.name, row.part)
        cells.append({"mean": mean, "half": half, "seeds": seeds})
    labels = [*(label for _, label in row.cell.settings), row.cell.arm]
    return {"labels": labels, "part": row.part, "cells": cells}
