"""The table of the answer: one row per cell, one column per metric."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from aqmlab.figures.differences import Differences
from aqmlab.figures.looks import chip
from aqmlab.metrics import Metric
from aqmlab.results.answers import Answer
from aqmlab.results.cells import Cell
from aqmlab.stats import Estimate
from aqmlab.text.numbers import display_unit, display_value, estimate_parts


def table_context(answer: Answer, compared: Sequence[Differences]) -> dict[str, Any]:
    """Return the template's context for showing every cell, filtering the rows and saving them as CSV.

    Parameters
    ----------
    answer
        The answer.
    compared
        The differences between its arms, metric by metric.
    """
    results = answer.results
    axes = [{"label": axis.short, "labels": axis.labels} for axis in results.axes]
    choosers = [*axes, {"label": "arm", "labels": answer.arms}]
    orders = [{label: i for i, label in enumerate(chooser["labels"])} for chooser in choosers]
    best = {of.metric.name: best_cells(answer, of) for of in compared}
    rows = []
    for cell, _ in answer.rows:
        texts = [*(label for _, label in cell.settings), cell.arm]
        labels = [{"text": text, "order": order[text]} for text, order in zip(texts, orders, strict=True)]
        figures = [_figure(answer, cell, metric, best=cell in best[metric.name]) for metric in answer.shown]
        mark = chip(answer.arms.index(cell.arm), reference=cell.arm == results.reference)
        rows.append({"labels": labels, "chip": mark, "runs": len(results.runs_of(cell)), "cells": figures})
    return {
        "choosers": choosers,
        "columns": [
            {"label": m.label, "unit": display_unit(m.unit), "definition": m.definition, "source": m.source}
            for m in answer.shown
        ],
        "rows": rows,
        "marks_best": any(best.values()),
        "csv_columns": json.dumps(_csv_columns(answer)),
    }


def _figure(answer: Answer, cell: Cell, metric: Metric, *, best: bool) -> dict[str, Any]:
    est = answer.estimate(cell, metric.name)
    mean, half = estimate_parts(est, metric.unit)
    value, width = _numbers(est, metric.unit)
    return {
        "mean": mean,
        "half": half,
        "seeds": answer.defined_in(cell, metric.name),
        "value": value,
        "width": width,
        "n": est.n if est is not None else 0,
        "best": best,
    }


def _numbers(est: Estimate | None, unit: str) -> tuple[str, str]:
    """Return mean and half-width in the displayed unit, for sorting and CSV; empty texts without a mean."""
    if est is None:
        return "", ""
    mean, half = (display_value(x, unit) for x in (est.mean, est.half_width or 0.0))
    return f"{mean:.9g}", "" if est.half_width is None else f"{half:.9g}"


def _csv_columns(answer: Answer) -> list[str]:
    names = [*(axis.name for axis in answer.results.axes), "arm", "runs"]
    for metric in answer.shown:
        unit = display_unit(metric.unit)
        shown = f"{metric.name} [{unit}]" if unit else metric.name
        names += [shown, f"{metric.name} half_width_95", f"{metric.name} n"]
    return names


def best_cells(answer: Answer, compared: Differences) -> frozenset[Cell]:
    """For each case, the cell with the best mean and the cells that do not differ significantly from it.

    A case in which no cell differs has none, because a mark would then be meaningless.
    """
    metric = compared.metric
    apart = {frozenset((c.cell, c.other)) for of in compared.contrasts for c in of if c.stands}
    there = {row.cell for row in answer.rows if row.cell.arm in answer.compared}
    chosen: set[Cell] = set()
    for _, of_case in answer.cases:
        means = {c: est.mean for c in of_case if c in there and (est := answer.estimate(c, metric.name))}
        if not metric.better or len(means) < 2:
            continue
        top = (min if metric.better == "less" else max)(means, key=lambda cell: means[cell])
        best = {cell for cell in means if frozenset((cell, top)) not in apart}
        chosen |= best if len(best) < len(means) else set()
    return frozenset(chosen)
