"""The scorecard of a reproduction as plain data."""

from __future__ import annotations

from typing import Any

from aqmlab.papers.evidence import evidence, explanation
from aqmlab.papers.folder import STRENGTHS
from aqmlab.papers.reproduce import Reproduction
from aqmlab.papers.tables import TableCell
from aqmlab.stats import Estimate


def as_json(done: Reproduction) -> dict[str, Any]:
    """The scorecard as plain data: what ``--json`` prints."""
    return {
        "format_version": 1,
        "paper": done.paper.key,
        "seeds": done.seeds,
        "quick": done.quick,
        "wall_s": round(done.wall_s, 3),
        "counts": {strength: done.counts(strength) for strength in STRENGTHS},
        "findings": [
            {
                "name": scored.finding.name,
                "strength": scored.finding.strength,
                "status": scored.status,
                "evidence": evidence(scored),
                "explanation": explanation(scored),
            }
            for scored in done.findings
        ],
        "tables": [
            {
                "name": filled.table.name,
                "columns": [column["label"] for column in filled.table.columns],
                "rows": [
                    {"label": row["label"], "cells": [_cell_json(cell) for cell in cells]}
                    for row, cells in zip(filled.table.rows, filled.cells, strict=True)
                ],
            }
            for filled in done.tables
        ],
    }


def _cell_json(cell: TableCell) -> dict[str, Any]:
    def plain(found: Estimate | None) -> dict[str, Any] | None:
        return None if found is None else {"mean": found.mean, "half_width": found.half_width, "n": found.n}

    return {
        "published": cell.published,
        "ours": plain(cell.ours),
        "verdict": cell.verdict,
        "branches": [{"share": b.share, "ours": plain(b.ours)} for b in cell.branches],
    }
