"""Losses and marks by kind of packet in reports."""

from __future__ import annotations

from itertools import islice
from typing import Any

from aqmlab.results.losses import kinds_with_losses, losses_by_kind, metrics
from aqmlab.results.results import Results
from aqmlab.text.numbers import display_unit

MOST_ROWS = 300
"""Largest number of rows; this limit keeps the page of a large sweep small."""


def by_kind_context(results: Results) -> dict[str, Any]:
    """Return the template's context for the table; empty where fewer than two kinds have losses or marks."""
    rows = list(islice(losses_by_kind(results), MOST_ROWS + 1))
    if len(kinds_with_losses(rows)) < 2:
        return {"by_kind": None}
    return {
        "by_kind": {
            "heads": [*(axis.short for axis in results.axes), "arm", "queue", "class"],
            "columns": [
                {
                    "label": of.label,
                    "unit": display_unit(of.unit),
                    "definition": of.definition,
                    "source": of.source,
                }
                for of in metrics()
            ],
            "rows": [
                {
                    "labels": [
                        *(label for _, label in row.cell.settings),
                        row.cell.arm,
                        row.queue,
                        row.class_name,
                    ],
                    "kind": row.kind,
                    "cells": [{"mean": mean, "half": half, "seeds": ""} for mean, half in row.texts()],
                }
                for row in rows[:MOST_ROWS]
            ],
            "left_out": len(rows) > MOST_ROWS,
        }
    }
