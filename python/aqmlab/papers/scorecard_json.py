"""The scorecard of a reproduction as plain data, for ``--json`` and ``scorecard.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aqmlab.claims.score import scored_json
from aqmlab.papers.paper import STRENGTHS, Setting
from aqmlab.papers.reproduce import Reproduction
from aqmlab.papers.scoring import ScoredFinding, evidence, explanation
from aqmlab.papers.tables import FilledTable, TableCell
from aqmlab.stats import Estimate

_OF_STATEMENT = ("expect", "where", "status", "reason", "parts")
"""The parts of a statement's claim that are kept; the other parts are already in the finding."""


def as_text(done: Reproduction, made: Mapping[str, str], inference: Mapping[str, Any] | None = None) -> str:
    """Return the contents of ``scorecard.json``, with the folder's inference."""
    content = as_json(done, made) | {"inference": inference}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_json(done: Reproduction, made: Mapping[str, str]) -> dict[str, Any]:
    """Return the scorecard with every comparison; ``made`` describes its creation."""
    of_live: dict[str, Any] = {}
    if done.live is not None:
        twin = [_finding_json(scored) for scored in done.live.twin]
        of_live = {"live": done.live.to_json() | {"simulated": twin}}
    return of_live | {
        "format_version": 1,
        "paper": done.paper.key,
        **made,
        "seeds": done.seeds,
        "quick": done.quick,
        "wall_s": round(done.wall_s, 3),
        "counts": {strength: done.counts(strength) for strength in STRENGTHS},
        "findings": [_finding_json(scored) for scored in done.findings],
        "tables": [_table_json(filled) for filled in done.tables],
        "reading": [_setting_json(setting) for setting in done.paper.settings if not setting.test],
    }


def _finding_json(scored: ScoredFinding) -> dict[str, Any]:
    statements = zip(scored.finding.parts, scored.parts, strict=True)
    return {
        "name": scored.finding.name,
        "text": scored.finding.text,
        "strength": scored.finding.strength,
        "mark": scored.finding.mark,
        "threshold": {"basis": scored.finding.threshold.basis, "what": scored.finding.threshold.what},
        "status": scored.status,
        "evidence": list(evidence(scored)),
        "explanation": explanation(scored),
        "statements": [
            {"experiment": part.experiment}
            | {key: value for key, value in scored_json(claim).items() if key in _OF_STATEMENT}
            for part, claim in statements
        ],
    }


def _setting_json(setting: Setting) -> dict[str, str]:
    return {"setting": setting.name, "chosen": setting.chosen, "mark": setting.mark, "why": setting.why}


def _table_json(filled: FilledTable) -> dict[str, Any]:
    return {
        "name": filled.table.name,
        "mark": filled.table.mark,
        "columns": [column["label"] for column in filled.table.columns],
        "rows": [
            {"label": row["label"], "cells": [_cell_json(cell) for cell in cells]}
            for row, cells in zip(filled.table.rows, filled.cells, strict=True)
        ],
    }


def _cell_json(cell: TableCell) -> dict[str, Any]:
    return {
        "published": cell.published,
        "ours": _estimate_json(cell.ours),
        "verdict": cell.verdict,
        "branches": [{"share": b.share, "ours": _estimate_json(b.ours)} for b in cell.branches],
    }


def _estimate_json(found: Estimate | None) -> dict[str, Any] | None:
    return None if found is None else {"mean": found.mean, "half_width": found.half_width, "n": found.n}
