"""Results in notebooks: HTML without scripts, readable on light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from aqmlab.text.tables import Column, Grid

if TYPE_CHECKING:
    from aqmlab.results.comparison import Comparison

_SOFT = "opacity:0.75;font-size:90%"


def block(*parts: str) -> str:
    """Several HTML fragments joined into one."""
    return f"<div>{''.join(parts)}</div>"


def title(text: str) -> str:
    """A bold line."""
    return f"<p style='margin:0.3em 0'><b>{escape(text)}</b></p>"


def said(text: str) -> str:
    """Return a line."""
    return f"<p style='margin:0.3em 0'>{escape(text)}</p>"


def note(text: str) -> str:
    """Return a less prominent line."""
    return f"<p style='margin:0.3em 0;{_SOFT}'>{escape(text)}</p>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A table of two columns."""
    grid = Grid("", Column("", prose=True))
    for what, of in pairs:
        grid.add(what, of)
    return grid.html()


def seeds_text(seeds: Sequence[int]) -> str:
    """Return text such as ``seed 1`` or ``seeds 1 to 10``; if there is a gap, every seed is listed."""
    if not seeds:
        return "no seeds"
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds))}"


def names_text(names: Sequence[str], most: int = 6) -> str:
    """Return a list of the first few names, followed by the number of further ones."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def comparison_html(found: Comparison) -> str:
    """Return a row per comparison, and their joint conclusion."""
    rest = [text for text in (found.multiple.note, *found.unpaired) if text]
    return block(title(f"{found.second} against {found.first}"), found.grid().html(), *map(note, rest))


def runs_text(done: int, missing: int) -> str:
    """``8 finished, 2 missing``."""
    return f"{done} finished" + (f", {missing} missing" if missing else "")
