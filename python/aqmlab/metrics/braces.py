"""Metrics with settings in braces: ``loss_bins_percent{queue=last, window=20s-40s, bin=100ms}``.

Such a text is the name of a metric wherever metrics are named. Claims have a larger grammar, in which braces
also select arms and labels (:mod:`aqmlab.claims.metric_query`).
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aqmlab.errors import UsageError, unknown
from aqmlab.metrics.measured import Window
from aqmlab.text.units import PURE, TIME, quantity, unit_of_metric

if TYPE_CHECKING:
    from aqmlab.metrics.registry import Metric

_SETTING = re.compile(r"""\s*([^\s={},"]+)\s*=\s*(?:"([^"]*)"|([^={},"]+?))\s*(?:,|$)""")
_PARTS = {"queue": "queue", "class": "class_name", "kind": "kind", "router": "router"}
"""The keys that select a part of the traffic, with the field of a `Scope` for each."""
_WINDOW, _FROM, _UNTIL = "window", "from", "until"


def with_settings(metric: Metric, text: str) -> Metric:
    """Return a metric with the settings of a text such as ``queue=last, window=20s-40s}``.

    Raises
    ------
    UsageError
        If the text is malformed, or for a key or a value that the metric does not accept.
    """
    settings = _settings(metric, text)
    bound: dict[str, Any] = {}
    parameters: dict[str, float] = {}
    ends: dict[str, float] = {}
    for key, value in settings.items():
        if key in (parameter.name for parameter in metric.parameters):
            parameters[key] = _parameter(metric, key, value)
        elif key not in _keys(metric):
            if key == "arm":
                raise UsageError(f"`arm` in `{metric.name}{{{text}` selects a cell, which only claims do")
            raise unknown(f"setting of `{metric.name}`", key, _keys(metric))
        elif key in (_FROM, _UNTIL):
            ends[key] = _time(value)
        elif key == _WINDOW:
            begin, _, end = value.partition("-")
            ends = {_FROM: _time(begin), _UNTIL: _time(end)}
        else:
            bound[_PARTS[key]] = value
    if ends:
        bound["window"] = Window(ends.get(_FROM, -math.inf), ends.get(_UNTIL, math.inf))
    if parameters:
        bound["parameters"] = parameters
    said = ", ".join(f"{key.replace('_', ' ')} {spaced(value)}" for key, value in settings.items())
    written = ", ".join(f"{key}={_quoted(value)}" for key, value in settings.items())
    return replace(
        metric,
        name=f"{metric.name}{{{written}}}",
        label=f"{metric.label} ({said})",
        base=metric.name,
        bound=bound,
    )


def spaced(value: str) -> str:
    """``2s`` as ``2 s``."""
    return re.sub(r"^([\d.]+)(?=[^\d.])", r"\1 ", value)


def _settings(metric: Metric, text: str) -> dict[str, str]:
    inner, closing, rest = text.rpartition("}")
    found: dict[str, str] = {}
    at = 0
    while closing and at < len(inner):
        setting = _SETTING.match(inner, at)
        if setting is None or setting[1] in found:
            break
        found[setting[1]] = setting[2] if setting[2] is not None else setting[3]
        at = setting.end()
    if not found or at < len(inner) or rest.strip():
        raise UsageError(f"`{metric.name}{{{text}` is malformed; write `{metric.name}{{KEY=VALUE, ...}}`")
    return found


def _keys(metric: Metric) -> list[str]:
    """Return the keys that a metric accepts, its parameters first."""
    parts = [key for key in metric.asked_of if key != _WINDOW]
    return [
        *(p.name for p in metric.parameters),
        *parts,
        *((_WINDOW, _FROM, _UNTIL) if _WINDOW in metric.asked_of else ()),
    ]


def _parameter(metric: Metric, key: str, value: str) -> float:
    try:
        return parameter_value(metric, key, value)
    except ValueError as error:
        raise UsageError(f"`{metric.name}`: {error}") from error


def parameter_value(metric: Metric, name: str, text: str) -> float:
    """Return a metric's parameter in its own unit; a number without a unit is taken to be in that unit.

    Raises
    ------
    ValueError
        If the text is not a number, or has another dimension.
    UsageError
        If the metric has no such parameter.
    """
    factor, unit = unit_of_metric(metric.parameter(name).unit)
    found = quantity(text)
    if found is None:
        raise ValueError(f"`{text}` is not a number for `{name}`")
    value, given = found
    if given == PURE:
        return value
    if given != unit:
        wanted = unit.name() if unit != PURE else "a number without unit"
        raise ValueError(f"`{text}` is {given.name()}; `{name}` must be {wanted}")
    return value / factor


def _time(text: str) -> float:
    found = quantity(text)
    if found is None or found[1] != TIME or found[0] < 0:
        raise UsageError(f"`{text}` is not a time of a run; write `20s`, or a window as `20s-40s`")
    return found[0]


def _quoted(value: str) -> str:
    return f'"{value}"' if re.search(r"[\s,{}=]", value) else value
