"""Comparisons of two sides: live with simulated results, arm by arm, and the two arms of a single case."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from aqmlab.figures.delay_cdf import cdf_panel
from aqmlab.figures.distributions import delay_cdf
from aqmlab.figures.model import Entry, Figure, Look
from aqmlab.results.answers import Answer
from aqmlab.results.both import LIVE, SIMULATED, Both, grouped
from aqmlab.results.comparison import Compared, compare_sides
from aqmlab.results.pairing import side_of
from aqmlab.results.results import Results

_SIDES: tuple[tuple[str, tuple[int, ...]], ...] = ((SIMULATED, ()), (LIVE, (6, 3)))


def beside_context(both: Both) -> dict[str, Any]:
    """Return the template's context for the comparison of the two sides."""
    return {
        "first": both.comparison.first,
        "second": both.comparison.second,
        "tables": [
            {"name": name, "rows": [{**_row(head, one), "missing": _missing(one)} for head, one in rows]}
            for name, rows in grouped(both).items()
        ],
        "note": both.note,
        "links": [
            {"name": name, "file": f"{os.path.relpath(side.path, both.path)}/report.html"}
            for side, (name, _) in zip((both.simulated, both.live), _SIDES, strict=True)
        ],
    }


def two_arms(answer: Answer) -> dict[str, Any] | None:
    """Return the template's context for comparing the two arms, if there is one case with exactly two."""
    if answer.results.axes or len(answer.arms) != 2 or not answer.shown:
        return None
    sides = [side_of(answer.results, arm) for arm in answer.arms]
    metrics = [metric.name for metric in answer.shown]
    found = compare_sides(*sides, metrics=metrics, queue=answer.asked_queue, class_name=answer.class_name)
    return {
        "first": found.first,
        "second": found.second,
        "tables": [{"name": "", "rows": [_row(one.title, one) for one in found.compared]}],
        "note": f"{found.multiple.note}." if found.multiple.note else "One run each: no interval.",
    }


def _row(head: str, one: Compared) -> dict[str, Any]:
    first, second, difference, relative = one.texts()
    return {
        "label": head,
        "definition": one.metric.definition,
        "figures": (first, second),
        "differences": (difference, relative),
        "unclear": one.unclear,
        "missing": "",
    }


def _missing(one: Compared) -> str:
    """Return which side has no value, if one of them has none."""
    if one.first is not None and one.second is not None:
        return ""
    return "not measured live" if one.second is None else "not measured in the simulation"


def sides_chart(sides: Sequence[Results], arms: Sequence[str]) -> Figure:
    """Distributions of queueing delay: one colour per arm, solid for simulated and dashed for live runs."""
    of_arms = [
        (i, arm, name, dash, delay_cdf(side, cell))
        for i, arm in enumerate(arms)
        for side, (name, dash) in zip(sides, _SIDES, strict=True)
        for cell in side.select(arm)
    ]
    known = [(f"{arm}, {name}", Look(i, dash), cdf) for i, arm, name, dash, cdf in of_arms if cdf is not None]
    panel = cdf_panel("Queueing delay", known)
    panel = replace(panel, y=replace(panel.y, end=1.0))
    notes = [Entry(name, Look("", dash)) for name, dash in _SIDES]
    notes += [Entry(arm, Look(i)) for i, arm in enumerate(arms)]
    return Figure(panel.title, ((panel,),), tuple(notes))
