"""Arithmetic of the values of claims: numbers, arrays with one value per seed, and intervals."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from aqmlab.claims.ranges import Range
from aqmlab.claims.tree import Relation

Floats = npt.NDArray[np.float64]
Value: TypeAlias = float | Floats | Range
"""A constant, an interval, or one value per seed (or per jackknife replicate), with NaN where undefined."""


def compared(a: Value, relation: Relation, b: Value) -> Floats:
    """Return, seed by seed, whether the relation between ``a`` and ``b`` holds."""
    left, right = np.broadcast_arrays(floats(a), floats(b))
    with np.errstate(invalid="ignore"):
        so = _RELATIONS[relation](left, right)
    return np.where(np.isnan(left) | np.isnan(right), np.nan, so)


def correlation(values: Floats, others: Floats, *, ranks: bool) -> Floats:
    """Return Pearson's coefficient of corresponding columns or, for ranks, Spearman's.

    Tied values all get the mean of their ranks.
    """
    lacking = np.isnan(values).any(axis=0) | np.isnan(others).any(axis=0)
    x, y = (np.apply_along_axis(_ranks, 0, side) if ranks else side for side in (values, others))
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    spread = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    # If all labels have the same value, there is no order.
    found: Floats = np.divide(
        (x * y).sum(axis=0), spread, out=np.full(spread.shape, np.nan), where=spread > 0
    )
    return np.where(lacking, np.nan, found)


def _ranks(values: Floats) -> Floats:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = np.cumsum(counts) - (counts - 1) / 2.0
    return ranks[places]


def absolute(a: Value) -> Value:
    """Return the absolute value."""
    return a.absolute() if isinstance(a, Range) else _same(a, np.abs(a))


def square_root(a: Value) -> Value:
    """Return the square root; undefined below zero."""
    if isinstance(a, Range):
        return a.rising(math.sqrt)
    with np.errstate(invalid="ignore"):
        return _same(a, np.sqrt(a))


def logarithm(a: Value) -> Value:
    """Return the natural logarithm; undefined at zero and below."""
    if isinstance(a, Range):
        return a.rising(math.log)
    positive = np.where(np.asarray(a) > 0, a, np.nan)
    return _same(a, np.log(positive))


def least(*values: Value) -> Value:
    """Return the smallest of several values, seed by seed."""
    return reduce(_lesser, values)


def _lesser(a: Value, b: Value) -> Value:
    if isinstance(a, Range) or isinstance(b, Range):
        return _range(a).least(_range(b))
    return _same(a, np.minimum(a, b), b)


def greatest(*values: Value) -> Value:
    """Return the largest of several values, seed by seed."""
    return reduce(_greater, values)


def _greater(a: Value, b: Value) -> Value:
    if isinstance(a, Range) or isinstance(b, Range):
        return _range(a).greatest(_range(b))
    return _same(a, np.maximum(a, b), b)


def default(a: Value, b: Value) -> Value:
    """Return ``a`` or, where it is undefined, ``b``."""
    if isinstance(a, Range) or isinstance(b, Range):
        first = _range(a)
        return _range(b) if math.isnan(first.low) else first
    return _same(a, np.where(np.isnan(a), b, a), b)


def defined(a: Value) -> Floats:
    """Return, seed by seed, whether a value is defined."""
    return 1.0 - np.isnan(floats(a))


def quotient(a: Value, b: Value) -> Value:
    """Return the quotient; division by zero is undefined."""
    if isinstance(a, Range) or isinstance(b, Range):
        return _range(a) / _range(b)
    return _same(a, np.divide(a, np.where(np.asarray(b) == 0, np.nan, b)), b)


OPERATORS: Mapping[str, Callable[[Value, Value], Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": quotient,
}
_RELATIONS: Mapping[Relation, Callable[[Floats, Floats], npt.NDArray[np.bool_]]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
}


def _same(a: Value, found: Floats, b: Value = 0.0) -> Value:
    """Return a plain number, not a zero-dimensional array, if both operands are plain numbers."""
    return float(found) if isinstance(a, float) and isinstance(b, float) else found


def _range(a: Value) -> Range:
    assert not isinstance(a, np.ndarray)
    return Range.of(a)


def floats(a: Value) -> Floats:
    """Return a value that is not an interval as an array."""
    assert not isinstance(a, Range)
    return np.asarray(a, dtype=np.float64)


def all_of(truths: Sequence[Floats]) -> Floats:
    """Apply Kleene's conjunction: one false operand makes it false, whatever the unknown ones are."""
    stack = np.stack(np.broadcast_arrays(*truths))
    no, unknown = (stack == 0.0).any(axis=0), np.isnan(stack).any(axis=0)
    return np.where(no, 0.0, np.where(unknown, np.nan, 1.0))
