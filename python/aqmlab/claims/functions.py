"""The functions of claims, each in one row: its arguments, its unit, its value and its words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from operator import add, mul
from typing import Any, Literal

import numpy as np

from aqmlab.claims import arithmetic
from aqmlab.claims.arithmetic import (
    Floats,
    Value,
    absolute,
    all_of,
    compared,
    floats,
    greatest,
    least,
    quotient,
)
from aqmlab.claims.scan import MisplacedError
from aqmlab.claims.tree import Called, Relation
from aqmlab.stats import Interval, intervals, proportion, quantiles
from aqmlab.stats.jackknife import deviation, spread
from aqmlab.text.units import PURE, Unit, numbers_of

Domain = Literal["values", "curves", "axis", "seeds"]
Labels = tuple[str, ...]


# --- units


def _same(_node: Called, unit: Unit, _labels: Labels) -> Unit:
    return unit


def _pure(_node: Called, _unit: Unit, _labels: Labels) -> Unit:
    return PURE


def _unit_of_logarithm(node: Called, unit: Unit, _labels: Labels) -> Unit:
    if not unit.pure:
        raise MisplacedError(
            node.at, f"`{node}` is a logarithm of {unit.name()}; divide by {unit.name()} first"
        )
    return PURE


def _unit_of_root(node: Called, unit: Unit, _labels: Labels) -> Unit:
    if any(power % 2 for _, power in unit.powers):
        raise MisplacedError(
            node.at, f"`{node}` is a square root of {unit.name()}; there is no unit for that"
        )
    return Unit(tuple((base, power // 2) for base, power in unit.powers))


def _unit_of_slope(node: Called, unit: Unit, labels: Labels) -> Unit:
    scale = numbers_of(labels)
    if scale is None:
        choice = node.over[0]
        raise MisplacedError(
            choice.at, f"the labels of `{choice.axis.text}` are not numbers with one unit; use `change`"
        )
    return unit.times(scale[1], -1)


# --- values over the labels of an axis


def _of_results(*_arguments: object) -> Value:
    raise NotImplementedError  # the results compare distribution functions


def _sum(_labels: Labels, values: Sequence[Value]) -> Value:
    return reduce(add, values)


def _mean(labels: Labels, values: Sequence[Value]) -> Value:
    return quotient(_sum(labels, values), float(len(values)))


def _range(_labels: Labels, values: Sequence[Value]) -> Value:
    return greatest(*values) - least(*values)  # type: ignore[operator]


def _largest_step(_labels: Labels, values: Sequence[Value]) -> Value:
    return greatest(*(absolute(b - a) for a, b in pairwise(values)))  # type: ignore[operator]


def _slope(labels: Labels, values: Sequence[Value]) -> Value:
    """Return the slope of the least-squares line; labels that are not numbers count by their positions."""
    centred = _scale(labels) - _scale(labels).mean()
    weights = centred / float(centred @ centred)
    return _sum(labels, [mul(value, float(weight)) for value, weight in zip(values, weights, strict=True)])


def _change(labels: Labels, values: Sequence[Value]) -> Value:
    """Return the rise of the least-squares line from the smallest label to the largest."""
    return _slope(labels, values) * float(np.ptp(_scale(labels)))


def _scale(labels: Labels) -> Floats:
    scale = numbers_of(labels)
    return np.arange(len(labels), dtype=np.float64) if scale is None else np.array(scale[0])


def _correlation(
    _labels: Labels, values: Sequence[Value], others: Sequence[Value] = (), *, ranks: bool
) -> Floats:
    """Correlate the values with others or, if there are none, with the order of the labels."""
    columns = _stack(values)
    order = np.broadcast_to(np.arange(len(columns), dtype=np.float64)[:, None], columns.shape)
    return arithmetic.correlation(columns, _stack(others) if others else order, ranks=ranks)


def _stack(values: Sequence[Value]) -> Floats:
    return np.stack([floats(value) for value in values])


def _steps(
    sign: float, _labels: Labels, values: Sequence[Value], tolerances: Sequence[float] = (0.0,)
) -> Floats:
    """Return whether each step to the next label, times ``sign``, is above minus the tolerance."""
    steps = [sign * (b - a) for a, b in pairwise(values)]  # type: ignore[operator]
    return all_of([compared(step, ">", -tolerances[0]) for step in steps])


def _no_trend(labels: Labels, values: Sequence[Value], tolerances: Sequence[float]) -> Floats:
    return compared(absolute(_change(labels, values)), "<=", tolerances[0])


# --- figures over the seeds


def _average(values: Floats) -> float:
    return math.fsum(values) / len(values)


def _quantile(values: Floats, q: float = 0.5) -> float:
    return quantiles.interpolated(sorted(values.tolist()), q)


def _order_statistics(values: Sequence[float], confidence: float, q: float = 0.5) -> Interval:
    return quantiles.quantile(values, q, confidence)


def _clopper_pearson(values: Sequence[float], confidence: float) -> Interval:
    return proportion.share(map(bool, values), confidence)


@dataclass(frozen=True)
class Function:
    """A function of the grammar.

    Attributes
    ----------
    name
        Its name.
    domain
        What it is computed over: several values of one seed, whole distribution functions of one
        seed, the labels of an axis seed by seed, or the seeds.
    value
        Computes it: from its arguments (``values``); from the labels and, for each argument, the values
        at the labels (``axis``); from the values of the seeds and the second argument (``seeds``). For
        functions that return a label, a number per label that is largest at this label.
    interval
        The interval of a figure over the seeds, from the values, the confidence and the second argument.
    least, most
        Numbers of arguments.
    unit
        Its unit, from its node, the unit of its arguments, and the labels.
    condition
        Whether its first argument is a condition.
    test
        Whether its value is a truth value, not a number.
    label
        Whether it returns a label.
    single
        Whether it takes one axis only, because the order of the labels matters or the result is a
        label.
    pairs
        Whether it may take a second value for each label, and then several axes.
    relation
        The relation of the label that is returned to the others, or of the next label to the one before.
    smooth
        Whether its value changes little when one seed is left out. It does not if it has a kink where
        its arguments are equal, or if it depends on a count and therefore jumps.
    difference
        Whether its value is a difference of its argument's values, in their unit.
    spread
        Whether it is a standard deviation over the seeds, whose distribution is skewed.
    phrase
        The function in words: ``one`` and ``last`` are the first and the last argument, ``all`` lists
        all of them, and ``st`` and ``est`` are the endings of a comparative or superlative.
    """

    name: str
    domain: Domain
    value: Callable[..., Value] = _of_results
    interval: Callable[..., Interval] | None = None
    least: int = 1
    most: int = 1
    unit: Callable[[Called, Unit, Labels], Unit] = _same
    condition: bool = False
    test: bool = False
    label: bool = False
    single: bool = False
    pairs: bool = False
    relation: Relation = ">"
    smooth: bool = True
    difference: bool = False
    spread: bool = False
    phrase: str = "{name} of {all}"


MANY = 16
"""Largest number of arguments of a call."""
_TEST: dict[str, Any] = {"test": True, "single": True, "most": 2}
_PAIRS: dict[str, Any] = {"pairs": True, "most": 2, "unit": _pure}
_QUANTILE: dict[str, Any] = {"least": 2, "most": 2, "phrase": "{last} quantile of {one}"}
_BEST: dict[str, Any] = {"label": True, "single": True}

_ALL = (
    Function("abs", "values", absolute, phrase="|{one}|"),
    Function("sqrt", "values", arithmetic.square_root, unit=_unit_of_root),
    Function("log", "values", arithmetic.logarithm, unit=_unit_of_logarithm),
    Function("min", "values", least, least=2, most=MANY, smooth=False, phrase="the small{est} of {all}"),
    Function("max", "values", greatest, least=2, most=MANY, smooth=False, phrase="the large{st} of {all}"),
    Function("default", "values", arithmetic.default, least=2, most=2, smooth=False),
    Function("defined", "values", arithmetic.defined, test=True),
    Function("cdf_gap", "curves", least=2, most=2, difference=True, phrase="largest gap between {all}"),
    Function("cdf_crossing", "curves", least=2, most=2, phrase="share above the crossing of {all}"),
    Function("min", "axis", lambda _, values: least(*values), smooth=False),
    Function("max", "axis", lambda _, values: greatest(*values), smooth=False),
    Function("mean", "axis", _mean),
    Function("sum", "axis", _sum),
    Function("range", "axis", _range, smooth=False, difference=True),
    Function("largest_step", "axis", _largest_step, single=True, smooth=False, difference=True),
    Function("slope", "axis", _slope, unit=_unit_of_slope, single=True, difference=True),
    Function("change", "axis", _change, single=True, difference=True),
    Function("rank_correlation", "axis", partial(_correlation, ranks=True), single=True, **_PAIRS),
    Function("correlation", "axis", partial(_correlation, ranks=False), least=2, **_PAIRS),
    Function("argmax", "axis", lambda _, values: _stack(values), **_BEST),
    Function("argmin", "axis", lambda _, values: -_stack(values), relation="<", **_BEST),
    Function("count", "axis", _sum, condition=True),
    Function("increasing", "axis", partial(_steps, 1.0), **_TEST),
    Function("decreasing", "axis", partial(_steps, -1.0), relation="<", **_TEST),
    Function("no_trend", "axis", _no_trend, least=2, **_TEST),
    Function("mean", "seeds", _average, intervals.mean),
    Function("median", "seeds", _quantile, _order_statistics, smooth=False),
    Function(
        "std", "seeds", deviation, spread, difference=True, spread=True, phrase="standard deviation of {one}"
    ),
    Function("quantile", "seeds", _quantile, _order_statistics, smooth=False, **_QUANTILE),
    Function("share", "seeds", _average, _clopper_pearson, condition=True, smooth=False),
    Function("any", "seeds", lambda values, *_: values.max(), most=2, condition=True, test=True),
)

FUNCTIONS: Mapping[str, Mapping[Domain, Function]] = {
    name: {f.domain: f for f in _ALL if f.name == name} for name in dict.fromkeys(f.name for f in _ALL)
}
"""The functions by name, then by domain, because ``max`` takes several values or an axis."""


def function_of(name: str, *, over: bool) -> Function | None:
    """Return the intended function: over an axis if one is named, else over several values or the seeds."""
    domains: tuple[Domain, ...] = ("axis",) if over else ("values", "curves", "seeds")
    return next((FUNCTIONS[name][d] for d in domains if d in FUNCTIONS[name]), None)


def meaning(node: Called) -> Function:
    """Return the function that a node calls."""
    function = function_of(node.function, over=bool(node.over))
    assert function is not None  # the parser ensures this
    return function
