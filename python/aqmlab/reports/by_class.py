"""Classes of traffic in reports: their table, and goodput against round-trip time."""

from __future__ import annotations

from typing import Any

from aqmlab.metrics import Metric
from aqmlab.results.answers import Answer, Row, answer
from aqmlab.results.classes import classes_of
from aqmlab.results.results import Results
from aqmlab.text.numbers import display_unit


def by_class_context(results: Results) -> dict[str, Any]:
    """Return the template's context for the table; empty where there is only one class."""
    if len(classes_of(results)) < 2:
        return {"by_class": None}
    table = answer(results, by="class")
    return {
        "by_class": {
            "heads": [*(axis.short for axis in results.axes), "arm", "class"],
            "columns": [_column(metric) for metric in table.shown],
            "rows": [_row(table, row) for row in table.rows],
        }
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
    return {"labels": labels, "class": row.part, "cells": cells}
