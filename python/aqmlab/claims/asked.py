"""What a metric of a claim is asked: of which cell, queue, class and window, and with which parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from aqmlab.claims.names import ARM, CLASS, FROM, QUEUE, UNTIL, WINDOW, Bindings, Names, seconds, window_of
from aqmlab.claims.scan import MisplacedError
from aqmlab.claims.tree import MetricOf, Node, Setting
from aqmlab.claims.units import PURE, quantity, unit_of_metric
from aqmlab.errors import UsageError
from aqmlab.metrics import EVERY_CLASS, Metric, Window, find

T = TypeVar("T")


@dataclass(frozen=True)
class Asked:
    """A metric of one cell.

    Attributes
    ----------
    metric
        Which one.
    arm
        ``None`` where there is only one.
    labels
        By full name of the axis.
    queue, class_name, window
        As :meth:`aqmlab.Results.values` takes them.
    parameters
        In the metric's own units.
    """

    metric: Metric
    arm: str | None
    labels: Mapping[str, str]
    queue: str | None = None
    class_name: str = EVERY_CLASS
    window: Window | None = None
    parameters: Mapping[str, float | None] = field(default_factory=dict)


def asked(node: MetricOf, names: Names, bound: Bindings) -> Asked:
    """What a metric is asked where ``bound`` is fixed around it; its own braces count more."""
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
            key = names.key(setting.key)
            labels[key] = names.resolve(key, setting.value, bound)
    window = labels.pop(WINDOW, None)
    return Asked(
        metric,
        labels.pop(ARM, None),
        queue=labels.pop(QUEUE, None),
        class_name=labels.pop(CLASS, EVERY_CLASS),
        window=_between(ends) if ends else window_of(window) if window else None,
        parameters=parameters,
        labels=labels,
    )


def parameter_value(metric: Metric, setting: Setting) -> float:
    """What a metric is told, in the parameter's own unit; a number without a unit is in that."""
    parameter = placed(setting, lambda: metric.parameter(setting.key.text))
    factor, unit = unit_of_metric(parameter.unit)
    found = quantity(setting.value.text)
    if found is None:
        raise MisplacedError(setting.value.at, f"`{setting.value.text}` is no number for `{parameter.name}`")
    value, given = found
    if given == PURE:
        return value
    if given != unit:
        wanted = unit.name() if unit != PURE else "a number without unit"
        raise MisplacedError(
            setting.value.at, f"`{setting.value.text}` is {given.name()}; `{parameter.name}` is {wanted}"
        )
    return value / factor


def placed(node: Node, ask: Callable[[], T]) -> T:
    """What a question gives; a complaint is about the place of a node."""
    try:
        return ask()
    except UsageError as error:
        raise MisplacedError(node.at, str(error)) from error


def _between(ends: Mapping[str, float]) -> Window:
    return Window(ends.get(FROM, -math.inf), ends.get(UNTIL, math.inf))
