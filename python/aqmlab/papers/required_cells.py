"""The cells of an experiment that a request needs, determined without a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import product

from aqmlab.claims import Claim, Names
from aqmlab.claims.metric_query import MetricQuery, asked_by, cell_of
from aqmlab.errors import AqmlabError
from aqmlab.metrics import EVERY_CLASS, Metric, Scope, Takes
from aqmlab.papers.expressions import of_each_seed
from aqmlab.papers.figures import PRESETS, places, text_of
from aqmlab.papers.names import selected
from aqmlab.papers.paper import PaperFigure, PublishedTable
from aqmlab.papers.tables import cell_expression
from aqmlab.results.cells import Cell


@dataclass(frozen=True)
class RequiredCells:
    """The cells of an experiment that are required.

    Attributes
    ----------
    cells
        The required cells; ``None`` if all are required.
    of
        Total number of cells.
    """

    cells: frozenset[Cell] | None
    of: int

    @property
    def count(self) -> int:
        """The number of required cells."""
        return self.of if self.cells is None else len(self.cells)


Question = Claim | PublishedTable | PaperFigure
"""Something that needs an experiment's results: a statement, a table or a figure."""


def required_cells(names: Names, questions: Iterable[Question], *, smaller: bool = False) -> RequiredCells:
    """The cells that statements, tables and figures of one experiment need.

    If this cannot be determined, all cells are needed. One such case is the default queue: unless a queue is
    called ``bottleneck``, it is the one that is busiest over all cells.

    Parameters
    ----------
    names
        The names that the experiment defines.
    questions
        The statements, tables and figures.
    smaller
        Whether the experiment was made smaller. It may then lack what a statement, table or figure refers
        to; such an item needs no cells.

    Raises
    ------
    ScenarioError, UsageError
        If a statement, table or figure refers to something that the experiment lacks.
    """
    every = frozenset(selected(names, names.arms, {}))
    cells: set[Cell] = set()
    for question in questions:
        try:
            of_one = _cells(question, names)
        except AqmlabError:
            if not smaller:
                raise
            continue
        cells |= every if of_one is None else of_one
    return RequiredCells(None if cells >= every else frozenset(cells), len(every))


def _cells(question: Question, names: Names) -> Set[Cell] | None:
    """Return the cells that one statement, table or figure needs; ``None`` if they cannot be determined."""
    if isinstance(question, PaperFigure) and (cells := PRESETS[question.kind].cells) is not None:
        unnamed = PRESETS[question.kind].by_default(question)
        found = set(cells(question, names))
        return None if unnamed and not queue_is_known(names) else found
    asked = tuple(_asked(question, names))
    unnamed = any(by_default(what.scope, what.metric) for what in asked)
    unknown_queue = unnamed and not queue_is_known(names)
    return None if unknown_queue else {cell_of(what, names) for what in asked}


def by_default(scope: Scope, metric: Metric) -> bool:
    """Return whether a query uses the default queue; metrics of a class's flows do not depend on a queue."""
    return scope.queue is None and not (Takes.FLOWS in metric.takes and scope.class_name != EVERY_CLASS)


def _asked(question: Question, names: Names) -> Iterable[MetricQuery]:
    match question:
        case Claim():
            question.check(names)
            return question.asks(names)
        case PublishedTable():
            return _of_table(question, names)
    return _of_curves(question, names)


def queue_is_known(names: Names) -> bool:
    """Whether the default queue is the same in every cell, no matter which cells there are."""
    return len(names.queues) <= 1 or "bottleneck" in names.queues


def _of_table(table: PublishedTable, names: Names) -> Iterator[MetricQuery]:
    for row, column in product(table.rows, table.columns):
        what = f"table {table.name}, {row['label']}, {column['label']}"
        expression, where = cell_expression(table.value, row, column, what)
        tree, bound = of_each_seed(expression, where, what, names)
        yield from asked_by(tree, names, bound)
        if table.branches:
            condition, _ = cell_expression(table.branches, row, column, what)
            _, where = cell_expression(table.value + table.branches, row, column, what)
            claim = Claim(what, condition, where=where)
            claim.check(names, of_each_seed=True)
            yield from claim.asks(names)


def _of_curves(figure: PaperFigure, names: Names) -> Iterator[MetricQuery]:
    for name, points in places(figure, names):
        for label, where in points.items():
            what = f"figure {figure.name}, {name}, {label}"
            tree, bound = of_each_seed(text_of(figure, "y"), where, what, names)
            yield from asked_by(tree, names, bound)
