"""Texts that the pages about a paper share."""

from __future__ import annotations

from aqmlab.stats import Estimate
from aqmlab.text.numbers import NO_VALUE, decimal_places, number


def markdown_cell(text: str) -> str:
    """A text in a form that fits a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def estimate_text(found: Estimate | None) -> str:
    """``1.160 ± 0.002``; a dash where nothing is known."""
    if found is None:
        return NO_VALUE
    if not found.half_width:
        return number(found.mean) + (" ± 0" if found.half_width == 0 else "")
    places = decimal_places(found.half_width)
    return f"{found.mean:.{places}f} ± {found.half_width:.{places}f}"
