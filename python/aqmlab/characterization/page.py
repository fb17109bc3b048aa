"""The page of a characterization."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aqmlab.characterization.costs import COSTS_NOTE
from aqmlab.characterization.verdicts import (
    BRANCH_LEAST,
    BRANCH_RELATIVE,
    BRANCH_SEEDS,
    BRANCH_SHARE,
    MARGIN,
)
from aqmlab.figures.goodput_delay import trade_off
from aqmlab.figures.looks import color
from aqmlab.figures.model import Entry, Figure, Line, Mark, Outline
from aqmlab.figures.view import View
from aqmlab.metrics import find
from aqmlab.reports.charts import charts_json
from aqmlab.reports.page import page
from aqmlab.text.numbers import counted, display_unit, estimate_text, listed

if TYPE_CHECKING:
    from aqmlab.characterization.characterizing import Characterization, Judged
    from aqmlab.results.results import Results

_CORNERS = 48
"""Corners of the polygon that stands for an ellipse."""
_MOST_ARMS = 20
"""Largest number of arms in a figure: with more, neither colours nor marks tell them apart."""
_MOST_NAMES = 5
"""Largest number of names in the title."""
_NO_DATA: dict[str, Any] = {
    **{"axes": [], "arms": [], "metrics": [], "cells": [], "pairs": [], "cdf": []},
    **{
        "estimates": {},
        "differences": {},
        "tradeOff": None,
        "courses": None,
        "reference": None,
        "first": None,
    },
}
"""What the scripts of all pages read; this page has charts alone."""

_LEGEND = (
    "Over all cases and metrics of a section. better, worse: at least one significant difference, all in this"
    " direction. goodput for delay: less delay at the price of goodput (RFC 7928, 2.7); delay for goodput:"
    " the reverse. better with more loss, worse with less loss: nothing else than losses goes the other way."
    " mixed: any other combination. Numbers are medians of the significant differences. no difference found:"
    " no significant difference, which does not show that there is none."
    f" same: every interval lies within {100 * MARGIN:g} % of the reference."
)
_HOW = (
    "Each difference is paired by seed: both arms see the same arrivals. Its 95 % interval is Student's t. It"
    " counts as significant if it stands after Holm's correction over all comparisons of its section. The"
    " charts show goodput against mean queueing delay: a mark per seed, and the 1-sigma"
    " ellipse of the seeds."
)
_BRANCHES = (
    f"A cell is said to have two branches if, with at least {BRANCH_SEEDS} seeds, the widest gap between"
    f" sorted values takes {100 * BRANCH_SHARE:g} % of their range, is at least {100 * BRANCH_RELATIVE:g} %"
    f" of their mean, and leaves at least {BRANCH_LEAST} seeds on each side. The criterion is ours; one"
    " normal sample of ten in a thousand meets it by chance."
)


def render(of: Characterization) -> str:
    """The page."""
    figures = {f"section-{i}": _figure(judged.results) for i, judged in enumerate(of.sections)}
    charts = charts_json(figures)
    sections = [_section(of, judged, f"section-{i}", charts) for i, judged in enumerate(of.sections)]
    names = [one.name for one in of.subjects]
    what = listed(names) if len(names) <= _MOST_NAMES else counted(len(names), of.guide.subject)
    results = [judged.results for judged in of.sections if judged.results is not None]
    runs = sum(len(one.runs) for one in results)
    context = {
        "title": f"Characterization of {what}",
        "question": f"What do the scenarios of {of.guide.name} show about the {of.guide.subject}?",
        "kicker": f"{counted(len(results), 'section')}, {counted(of.seeds, 'seed')}: {counted(runs, 'run')}",
        "version": results[0].version if results else "",
        "path": str(of.path),
        "answer": answer(of),
        "departures": [one.text for one in of.departures],
        "subject": of.guide.subject,
        "summary": _summary(of, names),
        "legend": f"Against {of.guide.reference} {of.guide.fair}{_against_itself(of)}. {_LEGEND}",
        "sections": sections,
        "differs": "Differs from the text of the RFC" if of.guide.is_document else "Simplified",
        "costs": of.costs,
        "costs_title": f"{'11 and 12 ' if of.guide.is_document else ''}Complexity and parameters",
        "costs_note": COSTS_NOTE,
        "how": _HOW,
        "how_branches": _BRANCHES,
    }
    data = {**_NO_DATA, "charts": charts}
    return page("characterization.html.j2", context, data, styles=("characterization.css",))


def _summary(of: Characterization, names: list[str]) -> dict[str, Any]:
    """The table of section 13; what there is more of, AQMs or sections, is its rows."""
    sections = [
        {"id": one.section.id, "title": one.section.title, "link": f"#s-{i}"}
        for i, one in enumerate(of.sections, 1)
    ]
    subjects = [{"id": "", "title": name, "link": ""} for name in names]
    words = [
        [(one.word(name), one.detail(name)) if one.results is not None else ("–", "") for name in names]
        for one in of.sections
    ]
    heads, rows = subjects, sections
    if len(subjects) > len(sections):
        heads, rows, words = sections, subjects, [list(column) for column in zip(*words, strict=True)]
    return {
        "corner": "section" if rows is sections else of.guide.subject,
        "heads": heads,
        "rows": [{**row, "words": of_row} for row, of_row in zip(rows, words, strict=True)],
    }


def answer(of: Characterization) -> str:
    """In how many sections each AQM is better or worse than its reference; one sentence for those alike."""
    alike: dict[str, list[str]] = {}
    for one in of.subjects:
        counts: dict[str, int] = {}
        for judged in of.sections:
            if judged.results is not None and not judged.section.parameters:
                found = judged.word(one.name)
                counts[found] = counts.get(found, 0) + 1
        parts = [f"{found} in {count}" for found, count in counts.items()]
        said = f"{', '.join(parts)} of {counted(sum(counts.values()), 'section')}."
        alike.setdefault(said, []).append(one.name)
    return " ".join(f"{listed(names)}: {said}" for said, names in alike.items())


def _against_itself(of: Characterization) -> str:
    """Name the sections that compare a subject with itself."""
    ids = [one.section.id for one in of.sections if one.section.ecn or one.section.parameters]
    return f" (in {listed(ids)}, against the same {of.guide.subject})" if ids else ""


def _section(of: Characterization, judged: Judged, figure: str, charts: dict[str, Any]) -> dict[str, Any]:
    section, results = judged.section, judged.results
    names = [one.name for one in of.subjects] if results is not None else []
    metrics = [] if results is None else [find(name) for name in results.metrics]
    return {
        "id": section.id,
        "title": section.title,
        "question": section.question,
        "states": section.states,
        "verdicts": [(name, judged.word(name), judged.sentences(name)) for name in names],
        "branches": [branches.text for branches in judged.branches],
        "note": judged.note,
        "figure": figure if figure in charts else "",
        "columns": [{"label": metric.label, "unit": display_unit(metric.unit)} for metric in metrics],
        "rows": [] if results is None else list(_rows(results)),
        "left_out": () if judged.prepared is None else judged.prepared.left_out,
        "deviations": section.deviations,
    }


def _rows(results: Results) -> Iterator[dict[str, Any]]:
    from aqmlab.stats import estimate
    from aqmlab.stats.differences import defined

    for cell in results.cells:
        texts = []
        for name in results.metrics:
            values = results.values(name, cell)
            there = defined(values)
            text = estimate_text(estimate(there.values()), find(name).unit)
            partial = f" ({len(there)} of {len(values)} seeds)" if 0 < len(there) < len(values) else ""
            texts.append(f"{text}{partial}")
        yield {"cell": str(cell), "texts": texts}


def _figure(results: Results | None) -> Figure | None:
    """Goodput against delay, with polygons for ellipses; the lines themselves carry the arms' colours."""
    if results is None or not results.runs or len(results.arms) > _MOST_ARMS:
        return None
    by = max(results.axes, key=lambda axis: len(axis.labels), default=None)
    made = trade_off(results, View(by=None if by is None else by.name), None)
    rows = tuple(
        tuple(replace(panel, marks=tuple(_plain(panel.marks))) for panel in row) for row in made.rows
    )
    legend = [
        Entry(mark.name, replace(mark.look, hue=color(mark.look.hue)))
        for mark in made.panels[0].marks
        if isinstance(mark, Line) and mark.name and isinstance(mark.look.hue, int)
    ]
    return replace(made, rows=rows, notes=tuple(legend))


def _plain(marks: tuple[Mark, ...]) -> Iterator[Mark]:
    for mark in marks:
        if isinstance(mark, Line) and isinstance(mark.look.hue, int):
            yield replace(mark, look=replace(mark.look, hue=color(mark.look.hue)))
        elif isinstance(mark, Outline):
            xs, ys = _polygon(mark)
            hue = mark.look.hue
            yield Line("", xs, ys, replace(mark.look, hue=color(hue) if isinstance(hue, int) else hue))


def _polygon(outline: Outline) -> tuple[list[float], list[float]]:
    """The corners of an ellipse, from its long axis once around."""
    (x, y), (long, short) = outline.of.centre, outline.of.half_axes
    turn = math.radians(outline.of.angle_degrees)
    xs, ys = [], []
    for i in range(_CORNERS + 1):
        at = 2 * math.pi * i / _CORNERS
        a, b = long * math.cos(at), short * math.sin(at)
        xs.append(x + a * math.cos(turn) - b * math.sin(turn))
        ys.append(y + a * math.sin(turn) + b * math.cos(turn))
    return xs, ys
