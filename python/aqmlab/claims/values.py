"""The values of expressions: numbers, one value per seed, or intervals, depending on the leaves.

Claims are never evaluated as Python: this module walks the tree and handles each kind of node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise, product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from aqmlab.claims.functions import BEST, OF_PAIRS, function_of
from aqmlab.claims.names import Bindings, Names
from aqmlab.claims.ranges import Range
from aqmlab.claims.tree import (
    And,
    Arithmetic,
    BestIs,
    Between,
    Call,
    Choice,
    Compare,
    Condition,
    Expression,
    For,
    MetricOf,
    Negative,
    Not,
    Number,
    Or,
    Relation,
    Test,
)
from aqmlab.text.units import LITERALS, in_base, numbers_of

Floats = npt.NDArray[np.float64]
Value: TypeAlias = float | Floats | Range
"""A constant, an interval, or one value per seed (or per jackknife replicate), with NaN where undefined."""


class Leaves:
    """The source of the values at the leaves of a tree."""

    def metric(self, node: MetricOf, bound: Bindings) -> Value:
        """Return a metric of the cell given by ``bound`` and the metric's braces."""
        raise NotImplementedError

    def of_curves(self, function: str, one: MetricOf, other: MetricOf, bound: Bindings) -> Value:
        """Return a value computed from the distribution functions of two metrics, such as ``cdf_gap``."""
        raise NotImplementedError

    def over_seeds(self, node: Call, bound: Bindings) -> Value:
        """A figure over the seeds: ``mean(x)``, ``share(condition)``."""
        raise NotImplementedError


class Evaluator:
    """Walks over trees.

    Parameters
    ----------
    names
        The meanings of labels.
    leaves
        The source of values.
    """

    def __init__(self, names: Names, leaves: Leaves) -> None:
        self._names = names
        self._leaves = leaves

    def value(self, node: Expression, bound: Bindings) -> Value:
        """Return the value of an expression under the bindings ``bound``."""
        match node:
            case Number():
                return in_base(float(node.digits), LITERALS[node.unit][0] if node.unit else 1.0)
            case MetricOf():
                return self._leaves.metric(node, bound)
            case Negative():
                return -self.value(node.of, bound)
            case Arithmetic():
                return self._arithmetic(node, bound)
            case Call():
                return self._call(node, bound)
        raise AssertionError(node)

    def _arithmetic(self, node: Arithmetic, bound: Bindings) -> Value:
        found = self.value(node.first, bound)
        for sign, part in node.rest:
            found = _OPERATORS[sign](found, self.value(part, bound))
        return found

    def _call(self, node: Call, bound: Bindings) -> Value:
        function = function_of(node.function, over=bool(node.over))
        assert function is not None
        assert node.function not in BEST
        if function.domain == "seeds":
            return self._leaves.over_seeds(node, bound)
        if function.domain == "axis":
            return self._over_axis(node, bound)
        if function.domain == "curves":
            one, other = node.arguments
            assert isinstance(one, MetricOf)
            assert isinstance(other, MetricOf)
            return self._leaves.of_curves(node.function, one, other, bound)
        values = [self.value(part, bound) for part in node.arguments if isinstance(part, Expression)]
        if node.function == "default":
            return default(*values)
        if node.function in ("min", "max"):
            return reduce(least if node.function == "min" else greatest, values)
        return {"abs": absolute, "sqrt": square_root, "log": logarithm}[node.function](values[0])

    def _over_axis(self, node: Call, bound: Bindings) -> Value:
        body = node.arguments[0]
        if isinstance(body, Condition):
            truths = [self.truth(body, inside) for inside in self.inside(node.over, bound)]
            counted: Floats = np.sum(truths, axis=0)
            return counted
        values = [self.value(body, inside) for inside in self.inside(node.over, bound)]
        if node.function in OF_PAIRS:
            return self._correlation(node, values, bound)
        labels = self._names.options(node.over[0])
        return over_labels(node.function, values, labels)

    def _correlation(self, node: Call, values: Sequence[Value], bound: Bindings) -> Floats:
        """Correlate the values with the second argument, or with the order of the labels if there is none."""
        columns = np.stack([_floats(value) for value in values])
        if len(node.arguments) > 1:
            second = node.arguments[1]
            assert isinstance(second, Expression)
            others = [_floats(self.value(second, inside)) for inside in self.inside(node.over, bound)]
            against = np.stack(others)
        else:
            against = np.broadcast_to(np.arange(len(columns), dtype=np.float64)[:, None], columns.shape)
        return correlation(columns, against, ranks=node.function == "rank_correlation")

    def inside(self, choices: Sequence[Choice], bound: Bindings) -> Iterator[dict[str, str]]:
        """Return the bindings inside a choice: each combination of its labels in turn."""
        keys = [self._names.key(choice.axis) for choice in choices]
        for labels in product(*(self._names.options(choice) for choice in choices)):
            yield {**bound, **dict(zip(keys, labels, strict=True))}

    # --- conditions, evaluated seed by seed

    def truth(self, node: Condition, bound: Bindings) -> Floats:  # noqa: PLR0911 (one per kind)
        """Return for each seed 1 if the condition is true, 0 if it is false, and NaN if it is undefined."""
        match node:
            case Compare():
                values = [self.value(part, bound) for part in (node.first, *(p for _, p in node.rest))]
                relations = [relation for relation, _ in node.rest]
                sides = zip(relations, pairwise(values), strict=True)
                return _all([compared(a, relation, b) for relation, (a, b) in sides])
            case Between():
                value, low, high = (self.value(part, bound) for part in (node.value, node.low, node.high))
                return _all([compared(value, ">=", low), compared(value, "<=", high)])
            case BestIs():
                return self._best(node, bound)
            case Test():
                return self._test(node, bound)
            case Not():
                return 1.0 - self.truth(node.of, bound)
            case And():
                return _all([self.truth(part, bound) for part in node.parts])
            case Or():
                return 1.0 - _all([1.0 - self.truth(part, bound) for part in node.parts])
            case For():
                return self._for(node, bound)
        raise AssertionError(node)

    def _best(self, node: BestIs, bound: Bindings) -> Floats:
        (choice,) = node.best.over
        options = self._names.options(choice)
        body = node.best.arguments[0]
        assert isinstance(body, Expression)
        values = np.stack([_floats(self.value(body, inside)) for inside in self.inside((choice,), bound)])
        wanted = [
            options.index(self._names.resolve(self._names.key(choice.axis), label)) for label in node.labels
        ]
        if node.best.function == "argmin":
            values = -values
        others = [i for i in range(len(options)) if i not in wanted]
        # A listed label that ties with one that is not listed does not count as best.
        so = values[wanted].max(axis=0) > values[others].max(axis=0)
        return np.where(np.isnan(values).any(axis=0), np.nan, so)

    def _test(self, node: Test, bound: Bindings) -> Floats:
        body = node.arguments[0]
        assert isinstance(body, Expression)
        if node.function == "defined":
            return 1.0 - np.isnan(_floats(self.value(body, bound)))
        values = [self.value(body, inside) for inside in self.inside(node.over, bound)]
        tolerance = self.tolerance(node, bound)
        sign = 1.0 if node.function == "increasing" else -1.0
        return _all([compared(sign * (b - a), ">", -tolerance) for a, b in pairwise(values)])  # type: ignore[operator]

    def tolerance(self, node: Test, bound: Bindings) -> float:
        """Return the tolerance, which is the second argument of a test; 0 if there is none."""
        if len(node.arguments) < 2:
            return 0.0
        given = node.arguments[1]
        assert isinstance(given, Expression)
        value = self.value(given, bound)
        assert isinstance(value, float)
        return value

    def _for(self, node: For, bound: Bindings) -> Floats:
        truths = np.stack([self.truth(node.condition, inside) for inside in self.inside(node.choices, bound)])
        need = needed(node.quantifier, len(truths))
        held, unknown = (truths == 1.0).sum(axis=0), np.isnan(truths).sum(axis=0)
        return np.where(held >= need, 1.0, np.where(held + unknown < need, 0.0, np.nan))


def needed(quantifier: str, count: int) -> int:
    """Return how many of ``count`` conditions must hold for "all", "most" (more than half) or "some"."""
    return {"all": count, "most": count // 2 + 1, "some": 1}[quantifier]


def constant(node: Expression) -> float:
    """Return the value of an expression that consists only of numbers."""
    value = Evaluator(Names(()), Leaves()).value(node, {})
    assert isinstance(value, float)
    return value


def compared(a: Value, relation: Relation, b: Value) -> Floats:
    """Return, seed by seed, whether the relation between ``a`` and ``b`` holds."""
    left, right = np.broadcast_arrays(_floats(a), _floats(b))
    with np.errstate(invalid="ignore"):
        so = _RELATIONS[relation](left, right)
    return np.where(np.isnan(left) | np.isnan(right), np.nan, so)


def over_labels(function: str, values: Sequence[Value], labels: tuple[str, ...]) -> Value:
    """Apply a function to the values at the labels of an axis."""
    if function in ("min", "max"):
        return reduce(least if function == "min" else greatest, values)
    if function == "range":
        return _minus(reduce(greatest, values), reduce(least, values))
    if function == "largest_step":
        return reduce(greatest, [absolute(_minus(b, a)) for a, b in pairwise(values)])
    if function in ("sum", "mean"):
        total = reduce(_plus, values)
        return total if function == "sum" else _over(total, float(len(values)))
    scale = numbers_of(labels)
    x = np.arange(len(labels), dtype=np.float64) if scale is None else np.array(scale[0])
    centred = x - x.mean()
    weights = centred / float(centred @ centred)
    slope = reduce(_plus, [_times(value, float(w)) for value, w in zip(values, weights, strict=True)])
    return slope if function == "slope" else _times(slope, float(x.max() - x.min()))


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


# --- arithmetic of numbers, arrays and intervals


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


def least(a: Value, b: Value) -> Value:
    """Return the smaller of two values, seed by seed."""
    if isinstance(a, Range) or isinstance(b, Range):
        return _range(a).least(_range(b))
    return _same(a, np.minimum(a, b), b)


def greatest(a: Value, b: Value) -> Value:
    """Return the larger of two values, seed by seed."""
    if isinstance(a, Range) or isinstance(b, Range):
        return _range(a).greatest(_range(b))
    return _same(a, np.maximum(a, b), b)


def default(a: Value, b: Value) -> Value:
    """Return ``a`` or, where it is undefined, ``b``."""
    if isinstance(a, Range) or isinstance(b, Range):
        first = _range(a)
        return _range(b) if math.isnan(first.low) else first
    return _same(a, np.where(np.isnan(a), b, a), b)


def _plus(a: Value, b: Value) -> Value:
    return a + b  # type: ignore[operator]


def _minus(a: Value, b: Value) -> Value:
    return a - b  # type: ignore[operator]


def _times(a: Value, b: Value) -> Value:
    return a * b  # type: ignore[operator]


def _over(a: Value, b: Value) -> Value:
    if isinstance(a, Range) or isinstance(b, Range):
        return _range(a) / _range(b)
    # Division by zero is undefined.
    return _same(a, np.divide(a, np.where(np.asarray(b) == 0, np.nan, b)), b)


_OPERATORS: Mapping[str, Callable[[Value, Value], Value]] = {
    "+": _plus,
    "-": _minus,
    "*": _times,
    "/": _over,
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


def _floats(a: Value) -> Floats:
    assert not isinstance(a, Range)
    return np.asarray(a, dtype=np.float64)


def _all(truths: Sequence[Floats]) -> Floats:
    """Apply Kleene's conjunction: one false operand makes it false, whatever the unknown ones are."""
    stack = np.stack(np.broadcast_arrays(*truths))
    no, unknown = (stack == 0.0).any(axis=0), np.isnan(stack).any(axis=0)
    return np.where(no, 0.0, np.where(unknown, np.nan, 1.0))
