"""Published tables compared with our results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from aqmlab.claims import Names
from aqmlab.errors import ScenarioError, UsageError
from aqmlab.papers.expressions import ExpressionValues
from aqmlab.papers.paper import SCORED_MARKS, PublishedTable
from aqmlab.results.results import Results
from aqmlab.stats import Estimate, estimate

AGREES, DIFFERS, NOT_SCORED = "agrees", "differs", "not scored"

_NOT_ASKED = frozenset({"label"})


@dataclass(frozen=True)
class Branch:
    """A cell's value over the seeds in one of its two modes.

    Attributes
    ----------
    share
        Share of the seeds in this mode.
    ours
        Our mean over these seeds.
    """

    name: str
    share: float
    ours: Estimate | None


@dataclass(frozen=True)
class TableCell:
    """A published number and our value for it.

    Attributes
    ----------
    published
        ``None`` where the paper has no number.
    ours
        Mean over the seeds with its interval.
    verdict
        ``"agrees"``, ``"differs"`` or ``"not scored"``: whether the mean is within the tolerance.
    branches
        Our value over the seeds in each mode, where the table requests this.
    """

    published: float | None
    ours: Estimate | None
    verdict: str
    branches: tuple[Branch, ...] = ()

    @property
    def ratio(self) -> float | None:
        """Our value divided by the published value."""
        if self.ours is None or not self.published:
            return None
        return self.ours.mean / self.published


@dataclass(frozen=True)
class FilledTable:
    """A published table with ours: ``cells[row][column]``."""

    table: PublishedTable
    cells: tuple[tuple[TableCell, ...], ...]

    def counts(self) -> tuple[int, int]:
        """Numbers of cells that agree, and of cells that are scored."""
        scored = [c for row in self.cells for c in row if c.verdict != NOT_SCORED]
        return sum(c.verdict == AGREES for c in scored), len(scored)


def fill(table: PublishedTable, results: Results, *, lenient: bool = False) -> FilledTable:
    """Compute our numbers for a table.

    ``lenient`` means that the experiment was made smaller; cells that refer to omitted labels stay empty.

    Raises
    ------
    ScenarioError
        If the expression of the table is invalid.
    """
    asking = ExpressionValues(results, Names.of_results(results))
    rows = []
    for row, numbers in zip(table.rows, table.published, strict=True):
        pairs = zip(table.columns, numbers, strict=True)
        rows.append(tuple(_cell(table, row, column, number, asking, lenient) for column, number in pairs))
    return FilledTable(table, tuple(rows))


def _cell(  # noqa: PLR0913, PLR0917 (a cell and the request)
    table: PublishedTable,
    row: Mapping[str, str],
    column: Mapping[str, str],
    published: float | None,
    asking: ExpressionValues,
    lenient: bool,
) -> TableCell:
    what = f"table {table.name}, {row['label']}, {column['label']}"
    expression, where = cell_expression(table.value, row, column, what)
    try:
        values = asking.values(expression, where, what)
    except ScenarioError:
        if lenient:
            return TableCell(published, None, NOT_SCORED)
        raise
    ours = estimate(values.values())
    branches = _branches(table, row, column, values, asking, what) if table.branches else ()
    return TableCell(published, ours, _verdict(table, published, ours), branches)


def _branches(  # noqa: PLR0913, PLR0917 (a cell and the request)
    table: PublishedTable,
    row: Mapping[str, str],
    column: Mapping[str, str],
    values: Mapping[int, float | None],
    asking: ExpressionValues,
    what: str,
) -> tuple[Branch, ...]:
    condition, _ = cell_expression(table.branches, row, column, what)
    # Labels that are substituted into the value or into the condition are not applied as filters.
    _, where = cell_expression(table.value + table.branches, row, column, what)
    truths = asking.truths(condition, where, what)
    known = [seed for seed, truth in truths.items() if truth is not None]
    branches = []
    for name, truth in ((condition, True), (f"not: {condition}", False)):
        seeds = [seed for seed in known if truths[seed] is truth]
        if seeds:
            mean = estimate(values[seed] for seed in seeds)
            branches.append(Branch(name, len(seeds) / len(known), mean))
    return tuple(branches)


def cell_expression(
    text: str, row: Mapping[str, str], column: Mapping[str, str], what: str
) -> tuple[str, dict[str, str]]:
    """Return the query of a cell: the expression, and the labels that apply to the whole expression.

    Entries of row and column are substituted where the expression names them; the other entries, except
    ``label``, apply as labels. In ``{row.{column.aqm}}``, the entry ``aqm`` of the column is the name of an
    entry of the row; no entry of such a row applies as a label.

    Raises
    ------
    ScenarioError
        If the text names an entry that does not exist.
    """
    inner, used = text, set(_NOT_ASKED)
    while holes := _HOLE.findall(inner):
        used.update(key for _, key in holes)
        inner = _filled(inner, row, column, what)
    where = {key: value for key, value in {**row, **column}.items() if key not in used}
    if _HOLE_IN_HOLE.search(text):
        where = {key: value for key, value in where.items() if key not in row}
    return inner, where


_HOLE = re.compile(r"\{(row|column)\.(\w+)\}")
_HOLE_IN_HOLE = re.compile(r"\{(row|column)\.\{")


def _filled(text: str, row: Mapping[str, str], column: Mapping[str, str], what: str) -> str:
    sides = {"row": row, "column": column}

    def entry(hole: re.Match[str]) -> str:
        side, key = hole.groups()
        if key not in sides[side]:
            raise ScenarioError(f"{what}: this {side} has no `{key}`")
        return sides[side][key]

    return _HOLE.sub(entry, text)


def _verdict(table: PublishedTable, published: float | None, ours: Estimate | None) -> str:
    if table.mark not in SCORED_MARKS or not table.tolerance or published is None or ours is None:
        return NOT_SCORED
    return AGREES if within(ours.mean, published, table.tolerance, table.both_below) else DIFFERS


def within(ours: float, published: float, tolerance: str, both_below: float = 0.0) -> bool:
    """Whether a value agrees with a published one within a tolerance.

    Parameters
    ----------
    tolerance
        ``"15 %"``: relative to the published value. ``"factor 2"``: the ratio is at most 2 in either
        direction.
    both_below
        With a factor: two values below this agree.

    Raises
    ------
    UsageError
        If the tolerance has neither form.
    """
    if match := re.fullmatch(r"([\d.]+) ?%", tolerance):
        return abs(ours - published) <= float(match[1]) / 100.0 * abs(published)
    if match := re.fullmatch(r"factor ([\d.]+)", tolerance):
        if max(ours, published) < both_below:
            return True
        factor = float(match[1])
        return published / factor <= ours <= published * factor
    raise UsageError(f'the tolerance `{tolerance}` is neither like "15 %" nor like "factor 2"')
