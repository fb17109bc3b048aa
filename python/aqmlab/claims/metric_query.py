"""The metric queries of claims: cell, queue, class, window, and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from aqmlab.claims.names import (
    ARM,
    CLASS,
    FROM,
    KIND,
    QUEUE,
    ROUTER,
    UNTIL,
    WINDOW,
    Bindings,
    Names,
    seconds,
    window_of,
)
from aqmlab.claims.scan import MisplacedError
from aqmlab.claims.tree import Call, Choice, For, Matcher, MetricOf, Node, Test, children
from aqmlab.claims.values import Evaluator, Leaves
from aqmlab.errors import UsageError
from aqmlab.metrics import (
    EVERY_CLASS,
    EVERY_KIND,
    EVERY_ROUTER,
    KINDS,
    Metric,
    Scope,
    Takes,
    Window,
    find,
)
from aqmlab.metrics.braces import parameter_value as value_of
from aqmlab.results.cells import Cell

T = TypeVar("T")


@dataclass(frozen=True)
class MetricQuery:
    """A metric of one cell.

    Attributes
    ----------
    metric
        The metric.
    arm
        Name of the arm; ``None`` where there is only one.
    labels
        Labels by the full name of the axis.
    scope
        As in :meth:`aqmlab.Results.values`.
    """

    metric: Metric
    arm: str | None
    labels: Mapping[str, str]
    scope: Scope


def metric_query(node: MetricOf, names: Names, bound: Bindings) -> MetricQuery:
    """Return the query of a metric under the bindings ``bound``; the metric's own braces take precedence."""
    metric = placed(node, lambda: find(node.name))
    known = {parameter.name for parameter in metric.parameters}
    labels = dict(bound)
    ends: dict[str, float] = {}
    parameters: dict[str, float | None] = {}
    for setting in node.settings:
        key = setting.key.text
        if key in (FROM, UNTIL):
            ends[key] = seconds(setting.value, f"`{key}`")
        elif key in known:
            parameters[key] = parameter_value(metric, setting)
        else:
            key = setting_key(setting, metric, names)
            labels[key] = names.resolve(key, setting.value, bound)
    window = labels.pop(WINDOW, None)
    scope = Scope(
        queue=labels.pop(QUEUE, None),
        class_name=labels.pop(CLASS, EVERY_CLASS),
        window=_between(ends) if ends else window_of(window) if window else None,
        parameters=parameters,
        kind=labels.pop(KIND, EVERY_KIND),
        router=labels.pop(ROUTER, EVERY_ROUTER),
    )
    return MetricQuery(metric, labels.pop(ARM, None), labels, scope)


def setting_key(setting: Matcher, metric: Metric, names: Names) -> str:
    """Return what a word in braces means if it is not a parameter; `kind` may also be an axis."""
    if Takes.KIND in metric.takes and setting.key.text == KIND and setting.value.text in KINDS:
        return KIND
    return names.key(setting.key)


def parameter_value(metric: Metric, setting: Matcher) -> float:
    """Return a metric's parameter in its own unit; a number without a unit is taken to be in that unit."""
    try:
        return placed(setting, lambda: value_of(metric, setting.key.text, setting.value.text))
    except ValueError as error:
        raise MisplacedError(setting.value.at, str(error)) from error


def placed(node: Node, ask: Callable[[], T]) -> T:
    """Return the result of a query, with errors reported at the position of a node."""
    try:
        return ask()
    except UsageError as error:
        raise MisplacedError(node.at, str(error)) from error


def _between(ends: Mapping[str, float]) -> Window:
    return Window(ends.get(FROM, -math.inf), ends.get(UNTIL, math.inf))


def asked_by(node: Node, names: Names, bound: Bindings) -> Iterator[MetricQuery]:
    """Return every metric that an expression or a condition uses, for each label that it ranges over.

    Parameters
    ----------
    node
        A node of a claim that has been checked.
    names
        The names that it uses.
    bound
        The bindings around it, by full names.

    Raises
    ------
    MisplacedError
        If the node refers to a label beyond the end of an axis.
    """
    match node:
        case MetricOf():
            yield metric_query(node, names, bound)
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


def cell_of(what: MetricQuery, names: Names) -> Cell:
    """Return the cell of a query; an axis that the query does not name has only one label."""
    settings = tuple((axis.name, what.labels.get(axis.name, axis.labels[0])) for axis in names.axes)
    return Cell(settings, what.arm or names.arms[0])


def _inside(choices: tuple[Choice, ...], names: Names, bound: Bindings) -> Iterator[Bindings]:
    # A time window selects a part of a run, not other runs.
    others = [choice for choice in choices if names.key(choice.axis) != WINDOW]
    return Evaluator(names, Leaves()).inside(others, bound)
