"""A queue over time, as a paper shows it: which quantities, and which part of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aqmlab.errors import ScenarioError, unknown
from aqmlab.figures.over_time import QUANTITIES
from aqmlab.figures.view import View
from aqmlab.papers.paper import PaperFigure
from aqmlab.text.units import TIME, Unit, quantity

COLUMN = 3.5
"""Width of a column of a two-column paper, in inches."""


class Shown(NamedTuple):
    """What a figure of kind ``series`` requests: names of rows, variables of the law, and the interval."""

    rows: Sequence[str]
    laws: Sequence[str]
    view: View


def shown(figure: PaperFigure) -> Shown:
    """Read what a figure requests; by default, the queue and the law over the whole run.

    Raises
    ------
    ScenarioError
        If a row is unknown or a time is invalid.
    """
    content = figure.content
    rows = [str(row) for row in content.get("rows", ("queue", "law"))]
    for row in rows:
        if row not in QUANTITIES:
            raise ScenarioError(f"figure {figure.name}: rows: {unknown('row', row, QUANTITIES)}")
    view = View(from_s=time_of(figure, "from"), until_s=time_of(figure, "until"))
    return Shown(rows, [str(law) for law in content.get("laws", ("p",))], view)


def time_of(figure: PaperFigure, key: str) -> float | None:
    """A time that a figure specifies, in seconds; ``None`` if it specifies none.

    Raises
    ------
    ScenarioError
        If the value is not a time.
    """
    return amount_of(figure, key, TIME, "a time: `20s`")


def amount_of(figure: PaperFigure, key: str, unit: Unit, wanted: str) -> float | None:
    """An amount that a figure specifies, in base units; ``None`` if it specifies none.

    Raises
    ------
    ScenarioError
        If the amount has another unit; ``wanted`` describes the accepted form.
    """
    if key not in figure.content:
        return None
    text = str(figure.content[key])
    found = quantity(text)
    if found is None or found[1] != unit:
        raise ScenarioError(f"figure {figure.name}: `{key}` is `{text}`; write {wanted}")
    return found[0]
