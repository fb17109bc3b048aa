"""The scorecard of a reproduction as plain data: ``scorecard.json``, from which all its texts are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from aqmlab.claims.score import STATUSES, scored_json
from aqmlab.claims.words import worded
from aqmlab.papers.causes import outcomes
from aqmlab.papers.live import LiveRuns
from aqmlab.papers.names import scenario_digest
from aqmlab.papers.paper import KINDS, STRENGTHS, Finding, Paper, PublishedTable, Setting
from aqmlab.papers.reproduce import Reproduction
from aqmlab.papers.scorecard_text import estimate_json
from aqmlab.papers.scoring import ScoredFinding, evidence, explanation
from aqmlab.papers.tables import FilledTable, TableCell
from aqmlab.system.files import json_text

Card = Mapping[str, Any]
"""The contents of ``scorecard.json``."""
_OF_STATEMENT = ("expect", "where", "status", "reason", "parts")
"""The parts of a statement's claim that are kept; the other parts are already in the finding."""


def as_text(card: Card) -> str:
    """Return the text of ``scorecard.json``."""
    return json_text(card, indent=1) + "\n"


def as_json(
    done: Reproduction,
    made: Mapping[str, str],
    inference: Mapping[str, Any] | None = None,
    causes: Sequence[Card] = (),
) -> dict[str, Any]:
    """Return the scorecard with every comparison.

    Parameters
    ----------
    done
        The reproduction.
    made
        The facts about its creation: ``version``, ``commit``, ``date``.
    inference
        The contents of the folder's ``inference.json``.
    causes
        The entries of the folder's ``causes.json``.
    """
    paper = done.paper
    findings = [_finding_json(scored, causes) for scored in done.findings]
    return {
        **({"live": _live_json(done.live)} if done.live else {}),
        "format_version": 1,
        "paper": paper.key,
        **made,
        "seeds": done.seeds,
        "most_seeds": done.most_seeds,
        "quick": done.quick,
        "wall_s": round(done.wall_s, 3),
        "runs": done.runs,
        "scenarios": {file: scenario_digest(paper, paper.experiment(file)) for file in done.results},
        **counts_json(findings),
        "findings": findings,
        "tables": [_table_json(filled) for filled in done.tables],
        "reading": reading_json(paper),
        "inference": inference,
    }


def counts_json(findings: Sequence[Card]) -> dict[str, Any]:
    """Return how many findings hold, fail and are undecided: by strength, and by kind and strength."""

    def counts(among: Iterable[Card]) -> dict[str, dict[str, int]]:
        pairs = [(finding["strength"], finding["status"]) for finding in among]
        return {
            strength: {status: pairs.count((strength, status)) for status in STATUSES}
            for strength in STRENGTHS
        }

    by_kind = {kind: counts(finding for finding in findings if finding["kind"] == kind) for kind in KINDS}
    return {"counts": counts(findings), "kinds": by_kind}


def texts_of(finding: Finding) -> dict[str, Any]:
    """Return what ``expected.toml`` says about a finding, as far as it is text and not measured."""
    return {
        "text": finding.text,
        "strength": finding.strength,
        "kind": finding.kind,
        "mark": finding.mark,
        "source": finding.source,
        "threshold": {"basis": finding.threshold.basis, "what": finding.threshold.what},
        "published": finding.published,
    }


def _finding_json(scored: ScoredFinding, causes: Sequence[Card]) -> dict[str, Any]:
    finding = scored.finding
    explained = outcomes(finding, scored.status, causes)
    return {
        "name": finding.name,
        **texts_of(finding),
        "status": scored.status,
        "evidence": list(evidence(scored)),
        "explained": explained,
        "explanation": explanation(finding, scored.status, explained),
        "statements": [
            {"experiment": part.experiment}
            | {key: value for key, value in scored_json(claim).items() if key in _OF_STATEMENT}
            | {"words": [worded(comparison) for comparison in claim.parts]}
            for part, claim in zip(finding.parts, scored.parts, strict=True)
        ],
    }


def reading_json(paper: Paper) -> list[dict[str, str]]:
    """Return the reading: each setting that is open, with the chosen candidate."""
    return [_setting_json(setting) for setting in paper.settings if not setting.test]


def _setting_json(setting: Setting) -> dict[str, str]:
    return {"setting": setting.name, "chosen": setting.chosen, "mark": setting.mark, "why": setting.why}


def _live_json(live: LiveRuns) -> dict[str, Any]:
    return live.to_json() | {
        "simulated": [_finding_json(scored, ()) for scored in live.twin],
        "beside": list(_beside(live)),
    }


def _beside(live: LiveRuns) -> Iterator[dict[str, Any]]:
    """Yield a table of live and simulated values for each metric of each experiment."""
    for file, comparison in live.compared.items():
        for title, of_metric in groupby(comparison.compared, lambda one: one.title):
            head = ("cell", comparison.first, comparison.second, "difference", "relative")
            rows = [head, *((one.case, *one.texts()) for one in of_metric)]
            yield {"experiment": file, "metric": title, "rows": [list(row) for row in rows]}


def table_asked(table: PublishedTable) -> dict[str, Any]:
    """Return what decides the score of a table."""
    return {
        "value": table.value,
        "tolerance": table.tolerance,
        "both_below": table.both_below,
        "branches_by": table.branches,
    }


def _table_json(filled: FilledTable) -> dict[str, Any]:
    return {
        "name": filled.table.name,
        "mark": filled.table.mark,
        "kind": filled.table.kind,
        **table_asked(filled.table),
        "columns": [column["label"] for column in filled.table.columns],
        "rows": [
            {"label": row["label"], "cells": [cell_json(cell) for cell in cells]}
            for row, cells in zip(filled.table.rows, filled.cells, strict=True)
        ],
    }


def cell_json(cell: TableCell) -> dict[str, Any]:
    """Return a cell of a table as plain data."""
    return {
        "published": cell.published,
        "ours": estimate_json(cell.ours),
        "verdict": cell.verdict,
        "branches": [{"share": b.share, "ours": estimate_json(b.ours)} for b in cell.branches],
    }
