"""Runs that are missing, by cause."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from aqmlab.results.results import Missing, Results

_MOST_NAMED = 12


def missing_context(results: Results) -> dict[str, Any]:
    """Return the number of runs, and the template's context for the missing ones."""
    done = sum(len(results.runs_of(cell)) for cell in results.cells)
    total = len(results.cells) * len(results.seeds)
    count = len(results.missing)
    return {
        "runs_note": f"{done} of {total} runs are complete."
        if done < total
        else f"All {total} runs are complete.",
        "missing": _by_cause(results.missing),
        "missing_summary": "1 run is missing" if count == 1 else f"{count} runs are missing, by cause",
    }


def _by_cause(missing: Sequence[Missing]) -> list[dict[str, Any]]:
    """Missing runs by reason, the most frequent first; reasons that differ only in numbers count as one."""
    causes: dict[str, list[Missing]] = {}
    for entry in missing:
        causes.setdefault(re.sub(r"\d+", "#", entry.reason), []).append(entry)
    ordered = sorted(causes.values(), key=len, reverse=True)
    return [
        {"reason": of_cause[0].reason, "count": len(of_cause), "which": _which(of_cause)}
        for of_cause in ordered
    ]


def _which(missing: Sequence[Missing]) -> str:
    """Return the first dozen cells, with their seeds."""
    cells: dict[str, list[int]] = {}
    for entry in missing:
        cells.setdefault(str(entry.cell), []).append(entry.seed)
    named = [
        f"{cell} ({'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))})"
        for cell, seeds in cells.items()
    ]
    more = len(named) - _MOST_NAMED
    return "; ".join(named[:_MOST_NAMED]) + (f"; and {more} more cells" if more > 0 else "")
