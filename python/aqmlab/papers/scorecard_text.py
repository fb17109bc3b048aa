"""Texts and data that the pages about a paper share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from aqmlab.stats import Estimate
from aqmlab.text.numbers import NO_VALUE, decimal_places, number


def markdown_cell(text: str) -> str:
    """A text in a form that fits a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    head, *body = (f"| {' | '.join(map(markdown_cell, row))} |" for row in (heads, *rows))
    return [head, "|---" * len(heads) + "|", *body]


def estimate_json(found: Estimate | None) -> dict[str, Any] | None:
    """An estimate as plain data."""
    return None if found is None else {"mean": found.mean, "half_width": found.half_width, "n": found.n}


def estimate_text(found: Estimate | None) -> str:
    """``1.160 ± 0.002``; a dash where nothing is known."""
    if found is None:
        return NO_VALUE
    if not found.half_width:
        return number(found.mean) + (" ± 0" if found.half_width == 0 else "")
    places = decimal_places(found.half_width)
    return f"{found.mean:.{places}f} ± {found.half_width:.{places}f}"
