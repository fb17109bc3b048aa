"""The scorecard of a reproduction: one page, as Markdown and as HTML, and its data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

from aqmlab.claims.words import worded
from aqmlab.figures import NO_VALUE
from aqmlab.files import save
from aqmlab.papers.inference_json import read_inference, state_of
from aqmlab.papers.inference_report import (
    CAUTION,
    conclusion,
    errors_rows,
    inference_section,
    settings_rows,
    stale_text,
)
from aqmlab.papers.paper import STRENGTHS, THRESHOLD_BASES, Paper
from aqmlab.papers.reproduce import Reproduction
from aqmlab.papers.scorecard_json import as_text
from aqmlab.papers.scorecard_text import estimate_text, markdown_cell
from aqmlab.papers.scoring import ScoredFinding, comparisons, evidence, explanation
from aqmlab.papers.tables import NOT_SCORED, Branch, FilledTable, TableCell


def write_scorecard(done: Reproduction, folder: Path, made: Mapping[str, str]) -> tuple[Path, Path]:
    """Write ``scorecard.md``, ``scorecard.html`` and ``scorecard.json``; return the paths of the first two.

    For live experiments, the files are ``live.md`` and so on.

    Parameters
    ----------
    done
        The reproduction.
    folder
        The destination; figures are expected in its :func:`figures_folder`.
    made
        The facts about its creation: ``version``, ``commit``, ``date``.
    """
    name = name_of(done)
    markdown, html = folder / f"{name}.md", folder / f"{name}.html"
    save(markdown, as_markdown(done, folder, made))
    save(html, as_html(done, folder, made))
    save(folder / f"{name}.json", as_text(done, made, _inference(done, folder)))
    return markdown, html


def name_of(done: Reproduction) -> str:
    """Return the name of a scorecard's files, without the extension."""
    return "live" if done.live else "scorecard"


def figures_folder(done: Reproduction, folder: Path) -> Path:
    """Return the folder of the figures of a scorecard."""
    return folder / "figures" / "live" if done.live else folder / "figures"


def _inference(done: Reproduction, folder: Path) -> Mapping[str, Any] | None:
    return None if done.live else read_inference(folder)


def _command(done: Reproduction) -> str:
    return f"aqmlab reproduce {done.paper.key}{' --live' if done.live else ''}"


_HOW_SCORED = (
    "A finding holds or fails if the 95 % interval of what it states lies on one side of its threshold;"
    " otherwise it is undecided. The measurements shown are the comparisons that decide: the clearest"
    " failures"
    " of a finding that fails, or the narrowest successes of one that holds. Differences of"
    " percentages are in percentage points."
)


def _thresholds(done: Reproduction) -> str:
    """The basis of the thresholds: ``2 are given by the paper, 1 is inferred and 29 are ours``."""
    bases = [scored.finding.threshold.basis for scored in done.findings]
    counts = {basis: bases.count(basis) for basis in THRESHOLD_BASES}
    said = [f"{count} {'is' if count == 1 else 'are'} {basis}" for basis, count in counts.items() if count]
    return (
        f" Each threshold is given by the paper, inferred from it, or our own: {', '.join(said)}."
        if said
        else ""
    )


def headline(done: Reproduction) -> str:
    """Return the outcome in one sentence."""
    counted = {strength: done.counts(strength) for strength in STRENGTHS}
    said = [_counts_text(strength, found) for strength, found in counted.items() if any(found.values())]
    cells = [table.counts() for table in done.tables]
    scored = sum(n for _, n in cells)
    if scored:
        said.append(f"{sum(k for k, _ in cells)} of {scored} published numbers agree within their tolerance")
    small = ", the quick version: not to be quoted" if done.quick else ""
    seeds = f"{done.seeds} to {done.most_seeds}" if done.most_seeds > done.seeds else str(done.seeds)
    return f"{'; '.join(said) or 'nothing is scored'} ({seeds} seeds per cell{small})."


def _counts_text(strength: str, found: Mapping[str, int]) -> str:
    """``7 of 16 firm findings hold, 8 fail, 1 is undecided``."""
    holds, fails, undecided = found["holds"], found["fails"], found["undecided"]
    return (
        f"{holds} of {sum(found.values())} {strength} findings hold{'s' * (holds == 1)},"
        f" {fails} fail{'s' * (fails == 1)}, {undecided} {'is' if undecided == 1 else 'are'} undecided"
    )


def as_markdown(done: Reproduction, folder: Path, made: Mapping[str, str]) -> str:
    """The scorecard as Markdown, for a repository."""
    paper = done.paper
    lines = [
        f"# Scorecard: {paper.title}",
        "",
        f"{', '.join(paper.authors)}, {paper.published or paper.year}.",
        "",
        headline(done),
        "",
        f"Made on {made['date']} by aqmlab {made['version']} (commit {made['commit']}) with"
        f" `{_command(done)}`; it took {_duration(done)}."
        f" {_HOW_SCORED}{_thresholds(done)} All comparisons are in `{name_of(done)}.json`.",
        "",
    ]
    if done.live:
        lines += [f"{done.live.text} The last column has the scores of the simulated runs.", ""]
    more = ["simulated"] if done.live else []
    heads = ["finding", "score", "strength", "what the paper says", "threshold", "what was measured", *more]
    lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    twins = done.live.twin if done.live else (None,) * len(done.findings)
    lines += [_markdown_row(scored, twin) for scored, twin in zip(done.findings, twins, strict=True)]
    lines += _markdown_notes(done.findings)
    for title, rows in _beside(done):
        head, *body = (f"| {' | '.join(map(markdown_cell, row))} |" for row in rows)
        lines += ["", f"## {title}", "", head, "|---" * len(rows[0]) + "|", *body]
    for table in done.tables:
        lines += ["", *_markdown_table(table)]
    figures = _drawn(figures_folder(done, folder))
    if figures:
        lines += ["", "## Figures", ""]
        lines += [f"![{file.stem}]({file.relative_to(folder).as_posix()})" for file in figures]
    lines += ["", "## The reading", "", _reading_head(paper), "", "| setting | reading | known as | why |"]
    lines += ["|---|---|---|---|"]
    lines += [
        f"| {markdown_cell(s.name)} | {markdown_cell(s.chosen)} | {s.mark} | {markdown_cell(s.why)} |"
        for s in paper.settings
        if not s.test
    ]
    inference = _inference(done, folder)
    if inference is not None:
        lines += ["", *inference_section(inference, stale=inference["state"] != state_of(paper))]
    return "\n".join(lines) + "\n"


def _beside(done: Reproduction) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Yield a title, and a table of live and simulated values, for each metric of each experiment."""
    if done.live is None:
        return
    for file, comparison in done.live.compared.items():
        for title, of_metric in groupby(comparison.compared, lambda one: one.title):
            rows: list[tuple[str, ...]] = [
                ("cell", comparison.first, comparison.second, "difference", "relative")
            ]
            rows += [(one.case, *one.texts()) for one in of_metric]
            yield f"{done.paper.experiment(file).title}: {title}", rows


def _drawn(folder: Path) -> list[Path]:
    """Return the figures of a folder in the order of their numbers, so 9 comes before 10."""

    def place(file: Path) -> list[str | int]:
        return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", file.stem)]

    return sorted(folder.glob("*.svg"), key=place)


def _reading_head(paper: Paper) -> str:
    fixed = f" It was fixed before anything was scored: {paper.fixed}" if paper.fixed else ""
    return f"What the paper does not state, and the value chosen for it.{fixed}"


def _markdown_row(scored: ScoredFinding, twin: ScoredFinding | None = None) -> str:
    finding = scored.finding
    cells = [
        finding.name,
        f"**{scored.status}**" if scored.status != "holds" else scored.status,
        finding.strength,
        markdown_cell(finding.text),
        markdown_cell(str(finding.threshold)),
        "<br>".join(map(markdown_cell, evidence(scored))),
    ]
    if twin is not None:
        cells.append("<br>".join((twin.status, *map(markdown_cell, evidence(twin)))))
    return f"| {' | '.join(cells)} |"


def _markdown_notes(findings: Sequence[ScoredFinding]) -> list[str]:
    lines = []
    for scored in findings:
        text = explanation(scored)
        if text:
            lines += ["", f"**{scored.finding.name}** {scored.status}. {text}"]
    return ["", "## What does not hold, and why", *lines] if lines else []


def _markdown_table(filled: FilledTable) -> list[str]:
    table = filled.table
    unit = f" [{table.unit}]" if table.unit else ""
    heads = [column["label"] for column in table.columns]
    agree, scored = filled.counts()
    lines = [f"## Table {table.name}: {table.title}{unit}", ""]
    if scored:
        lines += [f"Published, then ours; {agree} of {scored} agree ({table.tolerance}).", ""]
    lines += [f"| | {' | '.join(map(markdown_cell, heads))} |", f"|---|{'---|' * len(heads)}"]
    for row, cells in zip(table.rows, filled.cells, strict=True):
        lines.append(f"| {markdown_cell(row['label'])} | {' | '.join(cell_text(cell) for cell in cells)} |")
    if any(_two_ways(cell) for row in filled.cells for cell in row):
        lines += [
            "",
            "Where seeds split into two groups, braces show the mean and the share of each.",
        ]
    return lines


def cell_text(cell: TableCell) -> str:
    """``1.158 → 1.160 ± 0.002 ✓``: published, ours, and whether they agree."""
    ours = estimate_text(cell.ours)
    mark = {"agrees": " ✓", "differs": " ✗"}.get(cell.verdict, "")
    split = " / ".join(f"{estimate_text(b.ours)} ({_share(b)})" for b in _two_ways(cell))
    return f"{_published(cell)} → {ours}{mark}{f' {{{split}}}' if split else ''}"


def _published(cell: TableCell) -> str:
    """The paper's number with its original digits."""
    return NO_VALUE if cell.published is None else f"{cell.published:.10g}"


def _two_ways(cell: TableCell) -> tuple[Branch, ...]:
    """Return the two modes of the seeds; nothing if all seeds are in the same mode."""
    return cell.branches if len(cell.branches) > 1 else ()


def _share(branch: Branch) -> str:
    return f"{100 * branch.share:.0f} %"


def _duration(done: Reproduction) -> str:
    minutes, seconds = divmod(round(done.wall_s), 60)
    long = f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    return f"{long} for {done.runs} runs" if done.runs else f"{long}, because all runs were in the store"


def as_html(done: Reproduction, folder: Path, made: Mapping[str, str]) -> str:
    """The scorecard as an offline page in the house style, with embedded figures."""
    from aqmlab.reports.page import page

    paper = done.paper
    context: dict[str, Any] = {
        **made,
        "title": paper.title,
        "kicker": f"reproduction · {', '.join(paper.authors)} · {paper.published or paper.year}",
        "question": paper.summary,
        "answer": [headline(done)],
        "warnings": [],
        "path": paper.key,
        "findings": [_finding_context(scored) for scored in done.findings],
        "twins": [(twin.status, evidence(twin)) for twin in done.live.twin] if done.live else [],
        "live": done.live.text if done.live else "",
        "beside": list(_beside(done)),
        "tables": [_table_context(filled) for filled in done.tables],
        "figures": [_figure_context(file) for file in _drawn(figures_folder(done, folder))],
        "settings": [setting for setting in paper.settings if not setting.test],
        "reading_head": _reading_head(paper),
        "inference": None if done.live else _inference_context(paper, folder),
        "duration": _duration(done),
        "how_scored": _HOW_SCORED + _thresholds(done),
        "command": _command(done),
    }
    return page("scorecard.html.j2", context, styles=("scorecard.css",))


def _finding_context(scored: ScoredFinding) -> dict[str, Any]:
    from aqmlab.reports.claims import SIGNS

    shown, every = evidence(scored), comparisons(scored)
    return {
        "name": scored.finding.name,
        "status": scored.status,
        "strength": scored.finding.strength,
        "text": scored.finding.text,
        "source": scored.finding.source,
        "threshold": str(scored.finding.threshold),
        "expect": "\nand ".join(part.expect for part in scored.finding.parts),
        "evidence": shown,
        "comparisons": [
            {
                "status": part.verdict.status,
                "sign": SIGNS[part.verdict.status],
                "text": worded(part),
            }
            for part in (every if len(every) > len(shown) else ())
        ],
        "explanation": explanation(scored),
    }


def _table_context(filled: FilledTable) -> dict[str, Any]:
    table = filled.table
    agree, scored = filled.counts()
    return {
        "name": table.name,
        "title": table.title,
        "unit": table.unit,
        "note": f"{agree} of {scored} agree ({table.tolerance})." if scored else "",
        "columns": [column["label"] for column in table.columns],
        "rows": [
            {"label": row["label"], "cells": [_cell_context(cell) for cell in cells]}
            for row, cells in zip(table.rows, filled.cells, strict=True)
        ],
    }


def _cell_context(cell: TableCell) -> dict[str, Any]:
    return {
        "published": _published(cell),
        "ours": estimate_text(cell.ours),
        "verdict": "" if cell.verdict == NOT_SCORED else cell.verdict,
        "branches": [
            f"{_share(branch)} of seeds: {estimate_text(branch.ours)}" for branch in _two_ways(cell)
        ],
    }


def _inference_context(paper: Paper, folder: Path) -> dict[str, Any] | None:
    content = read_inference(folder)
    if content is None:
        return None
    if content["state"] != state_of(paper):
        return {"words": [stale_text(content)], "tables": []}
    words = [CAUTION, conclusion(content)]
    return {"words": words, "tables": [errors_rows(content), settings_rows(content)]}


def _figure_context(file: Path) -> dict[str, str]:
    """A figure as a data URL: as an image in a page, it cannot run scripts."""
    import base64

    data = base64.b64encode(file.read_bytes()).decode("ascii")
    return {"name": file.stem.replace("-", " "), "source": f"data:image/svg+xml;base64,{data}"}


def making(version: str, commit: str, today: date | None = None) -> dict[str, str]:
    """Return the facts about the creation of a scorecard."""
    return {
        "version": version,
        "commit": commit or "unknown",
        "date": (today or date.today()).isoformat(),
    }
