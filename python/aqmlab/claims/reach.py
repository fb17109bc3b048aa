"""How far a claim reaches: the metrics that it asks, and of which cells, told without a run."""

from __future__ import annotations

from collections.abc import Iterator

from aqmlab.claims.asked import Asked, asked
from aqmlab.claims.names import WINDOW, Bindings, Names
from aqmlab.claims.tree import Call, Choice, For, MetricOf, Node, Test, children
from aqmlab.claims.values import Evaluator, Leaves
from aqmlab.results import Cell


def asked_by(node: Node, names: Names, bound: Bindings) -> Iterator[Asked]:
    """Every metric that an expression or a condition asks, for each label that it ranges over.

    Parameters
    ----------
    node
        Of a claim that was checked.
    names
        What it speaks of.
    bound
        What is fixed around it, by full names.

    Raises
    ------
    MisplacedError
        If it asks for the label beyond the end of an axis.
    """
    match node:
        case MetricOf():
            yield asked(node, names, bound)
        case For():
            for inside in _inside(node.choices, names, bound):
                yield from asked_by(node.condition, names, inside)
        case Call() | Test():
            for inside in _inside(node.over, names, bound):
                for argument in node.arguments:
                    yield from asked_by(argument, names, inside)
        case _:
            for child in children(node):
                yield from asked_by(child, names, bound)


def cell_of(what: Asked, names: Names) -> Cell:
    """The cell that a metric is asked of; an axis that is not spoken of has one label."""
    settings = tuple((axis.name, what.labels.get(axis.name, axis.labels[0])) for axis in names.axes)
    return Cell(settings, what.arm or names.arms[0])


def _inside(choices: tuple[Choice, ...], names: Names, bound: Bindings) -> Iterator[Bindings]:
    # All windows of time are in the same runs.
    others = [choice for choice in choices if names.key(choice.axis) != WINDOW]
    return Evaluator(names, Leaves()).inside(others, bound)
