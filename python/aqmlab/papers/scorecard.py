"""The scorecard of a reproduction as texts: one page, as Markdown and as HTML, written from its data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from aqmlab.papers.inference_json import state_of
from aqmlab.papers.inference_report import (
    CAUTION,
    conclusion,
    errors_rows,
    inference_section,
    settings_rows,
    stale_text,
)
from aqmlab.papers.live import live_text
from aqmlab.papers.paper import BY_CONSTRUCTION, KINDS, STRENGTHS, THRESHOLD_BASES, Paper, PublishedTable
from aqmlab.papers.scorecard_json import Card, as_text
from aqmlab.papers.scorecard_text import estimate_text, markdown_cell, markdown_table
from aqmlab.papers.tables import AGREES, NOT_SCORED
from aqmlab.stats import Estimate
from aqmlab.system.files import save
from aqmlab.text.numbers import NO_VALUE

KIND_WORDS = {
    "distinguishes": "a difference between disciplines or settings",
    "no difference": "no difference",
    BY_CONSTRUCTION: "true by construction of the set-up",
}


def write_scorecard(paper: Paper, card: Card, folder: Path) -> tuple[Path, Path]:
    """Write ``scorecard.md``, ``scorecard.html`` and ``scorecard.json``; return the paths of the first two.

    For live experiments, the files are ``live.md`` and so on.

    Parameters
    ----------
    paper
        The paper, with the current texts of its findings, tables and settings.
    card
        The scorecard as data.
    folder
        The destination; figures are expected in its :func:`figures_folder`.
    """
    name = name_of(live="live" in card)
    markdown, html = folder / f"{name}.md", folder / f"{name}.html"
    save(markdown, as_markdown(paper, card, folder))
    save(html, as_html(paper, card, folder))
    save(folder / f"{name}.json", as_text(card))
    return markdown, html


def name_of(*, live: bool) -> str:
    """Return the name of a scorecard's files, without the extension."""
    return "live" if live else "scorecard"


def figures_folder(folder: Path, *, live: bool) -> Path:
    """Return the folder of the figures of a scorecard."""
    return folder / "figures" / "live" if live else folder / "figures"


def _command(card: Card) -> str:
    return f"aqmlab paper {'live' if 'live' in card else 'reproduce'} {card['paper']}"


_HOW_SCORED = (
    "A finding holds or fails if the 95 % interval of what it states lies on one side of its threshold;"
    " otherwise it is undecided. The measurements shown are the comparisons that decide: the clearest"
    " failures"
    " of a finding that fails, or the narrowest successes of one that holds. Differences of"
    " percentages are in percentage points. The published value says how far the paper's own result lies from"
    " the threshold, where the text has a number."
)


def _thresholds(card: Card) -> str:
    """The basis of the thresholds: ``2 are given by the paper, 1 is inferred and 29 are ours``."""
    bases = [finding["threshold"]["basis"] for finding in card["findings"]]
    counts = {basis: bases.count(basis) for basis in THRESHOLD_BASES}
    said = [f"{count} {'is' if count == 1 else 'are'} {basis}" for basis, count in counts.items() if count]
    return (
        f" Each threshold is given by the paper, inferred from it, or our own: {', '.join(said)}."
        if said
        else ""
    )


def headline(card: Card) -> str:
    """Return the outcome in one sentence."""
    counted = {strength: card["counts"][strength] for strength in STRENGTHS}
    said = [_counts_text(strength, found) for strength, found in counted.items() if any(found.values())]
    said += _numbers_text(card)
    small = ", the quick version: not to be quoted" if card["quick"] else ""
    least, most = card["seeds"], card.get("most_seeds", 0)
    seeds = f"{least} to {most}" if most > least else str(least)
    return f"{'; '.join(said) or 'nothing is scored'} ({seeds} seeds per cell{small})."


def _numbers_text(card: Card) -> list[str]:
    """``69 of 98 published numbers agree within their tolerance``; those by construction count apart."""
    verdicts = [
        (table["kind"] == BY_CONSTRUCTION, cell["verdict"])
        for table in card["tables"]
        for row in table["rows"]
        for cell in row["cells"]
        if cell["verdict"] != NOT_SCORED
    ]
    said = []
    for constructed, words in ((False, "agree within their tolerance"), (True, "agree by construction")):
        among = [verdict for apart, verdict in verdicts if apart == constructed]
        if among:
            said.append(f"{among.count(AGREES)} of {len(among)} published numbers {words}")
    return said


def _counts_text(what: str, found: Mapping[str, int]) -> str:
    """``7 of 16 firm findings hold, 8 fail, 1 is undecided``."""
    holds, fails, undecided = found["holds"], found["fails"], found["undecided"]
    return (
        f"{holds} of {sum(found.values())}{f' {what} findings' if what else ''} hold{'s' * (holds == 1)},"
        f" {fails} fail{'s' * (fails == 1)}, {undecided} {'is' if undecided == 1 else 'are'} undecided"
    )


def kinds_rows(card: Card) -> list[tuple[str, ...]]:
    """Return the counts by kind as a table: what findings state, and how many of them hold."""
    rows: list[tuple[str, ...]] = [("what is stated", *(f"{strength} findings" for strength in STRENGTHS))]
    for kind in KINDS:
        of_kind = card["kinds"][kind]
        if any(any(found.values()) for found in of_kind.values()):
            counts = (of_kind[strength] for strength in STRENGTHS)
            rows.append(
                (KIND_WORDS[kind], *(_counts_text("", c) if any(c.values()) else NO_VALUE for c in counts))
            )
    return rows


def as_markdown(paper: Paper, card: Card, folder: Path) -> str:
    """The scorecard as Markdown, for a repository."""
    live = card.get("live")
    lines = [
        f"# Scorecard: {paper.title}",
        "",
        f"{', '.join(paper.authors)}, {paper.published or paper.year}.",
        "",
        headline(card),
        "",
        *_rows(kinds_rows(card)),
        "",
        f"Made on {card['date']} by aqmlab {card['version']} (commit {card['commit']}) with"
        f" `{_command(card)}`; it took {_duration(card)}."
        f" {_HOW_SCORED}{_thresholds(card)} All comparisons are in `{name_of(live=bool(live))}.json`.",
        "",
    ]
    if live:
        lines += [f"{_live_text(live)} The last column has the scores of the simulated runs.", ""]
    heads = ["finding", "score", "strength", "kind", "what the paper says", "threshold", "what was measured"]
    twins = live["simulated"] if live else (None,) * len(card["findings"])
    lines += markdown_table(
        [*heads, *(["simulated"] if live else [])],
        [_finding_row(finding, twin) for finding, twin in zip(card["findings"], twins, strict=True)],
    )
    lines += _markdown_notes(card["findings"])
    for title, rows in _beside(paper, card):
        lines += ["", f"## {title}", "", *_rows(rows)]
    for table in card["tables"]:
        lines += ["", *_markdown_table(_table_of(paper, table), table)]
    figures = _drawn(figures_folder(folder, live=bool(live)))
    if figures:
        lines += ["", "## Figures", ""]
        lines += [f"![{_caption(paper, file)}]({file.relative_to(folder).as_posix()})" for file in figures]
    lines += ["", "## The reading", "", _reading_head(paper), ""]
    lines += markdown_table(
        ("setting", "reading", "known as", "why"),
        [(s.name, s.chosen, s.mark, s.why) for s in paper.settings if not s.test],
    )
    inference = card.get("inference")
    if inference is not None:
        lines += ["", *inference_section(inference, stale=inference["state"] != state_of(paper))]
    return "\n".join(lines) + "\n"


def _rows(rows: Sequence[Sequence[str]]) -> list[str]:
    return markdown_table(rows[0], rows[1:])


def _live_text(live: Card) -> str:
    return live_text(live["faithful"], live["total"], live["refused"])


def _beside(paper: Paper, card: Card) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield a title, and a table of live and simulated values, for each metric of each experiment."""
    for table in card.get("live", {}).get("beside", ()):
        yield f"{paper.experiment(table['experiment']).title}: {table['metric']}", table["rows"]


def _drawn(folder: Path) -> list[Path]:
    """Return the figures of a folder in the order of their numbers, so 9 comes before 10."""

    def place(file: Path) -> list[str | int]:
        return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", file.stem)]

    return sorted(folder.glob("*.svg"), key=place)


def _caption(paper: Paper, file: Path) -> str:
    titles = {figure.file_name: f"Figure {figure.name}: {figure.title}" for figure in paper.figures}
    return titles.get(file.name, file.stem)


def _reading_head(paper: Paper) -> str:
    fixed = f" It was fixed before anything was scored: {paper.fixed}" if paper.fixed else ""
    return f"What the paper does not state, and the value chosen for it.{fixed}"


def _threshold(finding: Card) -> str:
    basis, what = finding["threshold"]["basis"], finding["threshold"]["what"]
    return f"{basis}: {what}" if what else basis


def _finding_row(finding: Card, twin: Card | None = None) -> list[str]:
    status, published = finding["status"], finding["published"]
    cells = [
        finding["name"],
        f"**{status}**" if status != "holds" else status,
        finding["strength"],
        finding["kind"],
        finding["text"],
        _threshold(finding) + (f"<br>published: {published}" if published else ""),
        "<br>".join(finding["evidence"]),
    ]
    if twin is not None:
        cells.append("<br>".join((twin["status"], *twin["evidence"])))
    return cells


def _markdown_notes(findings: Sequence[Card]) -> list[str]:
    lines = []
    for finding in findings:
        if finding["explanation"]:
            lines += ["", f"**{finding['name']}** {finding['status']}. {finding['explanation']}"]
    return ["", "## What does not hold, and why", *lines] if lines else []


def _table_of(paper: Paper, table: Card) -> PublishedTable:
    return next(of for of in paper.tables if of.name == table["name"])


def _agreement(of: PublishedTable, table: Card) -> str:
    """``8 of 10 agree (15 %), by construction``; empty if nothing is scored."""
    cells = [cell["verdict"] for row in table["rows"] for cell in row["cells"]]
    scored = [verdict for verdict in cells if verdict != NOT_SCORED]
    constructed = ", by construction" if of.kind == BY_CONSTRUCTION else ""
    return f"{scored.count(AGREES)} of {len(scored)} agree ({of.tolerance}){constructed}" if scored else ""


def _markdown_table(of: PublishedTable, table: Card) -> list[str]:
    unit = f" [{of.unit}]" if of.unit else ""
    lines = [f"## Table {of.name}: {of.title}{unit}", ""]
    if agreement := _agreement(of, table):
        lines += [f"Published, then ours; {agreement}.", ""]
    heads = table["columns"]
    lines += [f"| | {' | '.join(map(markdown_cell, heads))} |", f"|---|{'---|' * len(heads)}"]
    for row in table["rows"]:
        lines.append(f"| {markdown_cell(row['label'])} | {' | '.join(map(cell_text, row['cells']))} |")
    if any(_two_ways(cell) for row in table["rows"] for cell in row["cells"]):
        lines += [
            "",
            "Where seeds split into two groups, braces show the mean and the share of each.",
        ]
    return lines


def cell_text(cell: Card) -> str:
    """``1.158 → 1.160 ± 0.002 ✓``: published, ours, and whether they agree."""
    mark = {"agrees": " ✓", "differs": " ✗"}.get(cell["verdict"], "")
    split = " / ".join(f"{_ours(branch)} ({_share(branch)})" for branch in _two_ways(cell))
    return f"{_published(cell)} → {_ours(cell)}{mark}{f' {{{split}}}' if split else ''}"


def _ours(of: Card) -> str:
    return estimate_text(None if of["ours"] is None else Estimate(**of["ours"]))


def _published(cell: Card) -> str:
    """The paper's number with its original digits."""
    return NO_VALUE if cell["published"] is None else f"{cell['published']:.10g}"


def _two_ways(cell: Card) -> Sequence[Card]:
    """Return the two modes of the seeds; nothing if all seeds are in the same mode."""
    return cell["branches"] if len(cell["branches"]) > 1 else ()


def _share(branch: Card) -> str:
    return f"{100 * branch['share']:.0f} %"


def _duration(card: Card) -> str:
    minutes, seconds = divmod(round(card["wall_s"]), 60)
    long = f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    if "runs" not in card:  # an earlier version did not keep it
        return long
    return (
        f"{long} for {card['runs']} runs" if card["runs"] else f"{long}, because all runs were in the store"
    )


def as_html(paper: Paper, card: Card, folder: Path) -> str:
    """The scorecard as an offline page in the house style, with embedded figures."""
    from aqmlab.reports.page import page

    live = card.get("live")
    context: dict[str, Any] = {
        **{key: card[key] for key in ("version", "commit", "date")},
        "title": paper.title,
        "kicker": f"reproduction · {', '.join(paper.authors)} · {paper.published or paper.year}",
        "question": paper.summary,
        "answer": [headline(card)],
        "warnings": [],
        "path": paper.key,
        "kinds": kinds_rows(card),
        "findings": [_finding_context(finding) for finding in card["findings"]],
        "twins": [(twin["status"], twin["evidence"]) for twin in live["simulated"]] if live else [],
        "live": _live_text(live) if live else "",
        "beside": list(_beside(paper, card)),
        "tables": [_table_context(_table_of(paper, table), table) for table in card["tables"]],
        "figures": [_figure_context(paper, file) for file in _drawn(figures_folder(folder, live=bool(live)))],
        "settings": [setting for setting in paper.settings if not setting.test],
        "reading_head": _reading_head(paper),
        "inference": _inference_context(paper, card.get("inference")),
        "duration": _duration(card),
        "how_scored": _HOW_SCORED + _thresholds(card),
        "command": _command(card),
    }
    return page("scorecard.html.j2", context, styles=("scorecard.css",))


def _finding_context(finding: Card) -> dict[str, Any]:
    from aqmlab.reports.claims import SIGNS

    every = [
        {"status": part["status"], "sign": SIGNS[part["status"]], "text": words}
        for statement in finding["statements"]
        for part, words in zip(statement["parts"], _words(statement), strict=True)
    ]
    return {
        **{key: finding[key] for key in ("name", "status", "strength", "kind", "text", "source", "evidence")},
        "threshold": _threshold(finding),
        "published": finding["published"],
        "expect": "\nand ".join(statement["expect"] for statement in finding["statements"]),
        "comparisons": every if len(every) > len(finding["evidence"]) else (),
        "explanation": finding["explanation"],
    }


def _words(statement: Card) -> Sequence[str]:
    """Return the comparisons of a statement in words; an earlier version kept only their sentences."""
    if "words" in statement:
        found: Sequence[str] = statement["words"]
        return found
    places = (
        ", ".join(f"{axis} {label}" for axis, label in part["at"].items()) for part in statement["parts"]
    )
    return [
        f"{place}: {part['sentence']}" if place else str(part["sentence"])
        for place, part in zip(places, statement["parts"], strict=True)
    ]


def _table_context(of: PublishedTable, table: Card) -> dict[str, Any]:
    agreement = _agreement(of, table)
    return {
        "name": of.name,
        "title": of.title,
        "unit": of.unit,
        "note": f"{agreement}." if agreement else "",
        "columns": table["columns"],
        "rows": [
            {"label": row["label"], "cells": [_cell_context(cell) for cell in row["cells"]]}
            for row in table["rows"]
        ],
    }


def _cell_context(cell: Card) -> dict[str, Any]:
    return {
        "published": _published(cell),
        "ours": _ours(cell),
        "verdict": "" if cell["verdict"] == NOT_SCORED else cell["verdict"],
        "branches": [f"{_share(branch)} of seeds: {_ours(branch)}" for branch in _two_ways(cell)],
    }


def _inference_context(paper: Paper, content: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if content is None:
        return None
    if content["state"] != state_of(paper):
        return {"words": [stale_text(content)], "tables": []}
    words = [CAUTION, conclusion(content)]
    return {"words": words, "tables": [errors_rows(content), settings_rows(content)]}


def _figure_context(paper: Paper, file: Path) -> dict[str, str]:
    """A figure as a data URL: as an image in a page, it cannot run scripts."""
    import base64

    data = base64.b64encode(file.read_bytes()).decode("ascii")
    return {"name": _caption(paper, file), "source": f"data:image/svg+xml;base64,{data}"}


def making(version: str, commit: str, today: date | None = None) -> dict[str, str]:
    """Return the facts about the creation of a scorecard."""
    return {
        "version": version,
        "commit": commit or "unknown",
        "date": (today or date.today()).isoformat(),
    }
