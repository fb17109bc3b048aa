"""The quantity of one comparison, and its interval at any confidence.

The quantity is the difference of the sides, or their ratio where standard deviations are compared,
or the left side alone if the other side is a constant. What the sides consist of determines which method of
:mod:`aqmlab.claims.seeds` computes the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from aqmlab.claims.check import Level, kind_of
from aqmlab.claims.comparisons import ClaimComparison, Operand, labelled, shown
from aqmlab.claims.names import Bindings, Names
from aqmlab.claims.ranges import Range
from aqmlab.claims.seeds import (
    Collect,
    Ends,
    Jackknife,
    Point,
    SeedLeaves,
    Seen,
    has_spread,
    is_smooth,
    jackknife,
)
from aqmlab.claims.tree import Arithmetic, Call, Expression, MetricOf, Negative, Node, children
from aqmlab.claims.values import Evaluator, Floats, constant
from aqmlab.stats import CONFIDENCE, Interval, estimate
from aqmlab.stats.verdict import Verdict
from aqmlab.text.numbers import counted

Located: TypeAlias = tuple[Expression, Bindings]
"""An expression and the bindings around it."""


class Measure:
    """The quantity of one comparison, and its interval at any confidence."""

    def __init__(
        self,
        leaves: SeedLeaves,
        names: Names,
        left: Located,
        right: Located | None,
        *,
        plain: bool,
    ) -> None:
        self._leaves, self._names = leaves, names
        self._left, self._right = left, right
        sides = [left] if right is None else [left, right]
        kinds = [kind_of(node, names, bound) for node, bound in sides]
        self._level = max(kind.level for kind in kinds)
        self._constant = constant(right[0]) if right and kinds[1].level == Level.CONSTANT else None
        self._alone = right is None or self._constant is not None
        unit = next((kind.unit for kind in kinds if kind.unit.powers), kinds[0].unit)
        self._unit = replace(unit, percent=unit.pure and any(kind.unit.percent for kind in kinds))
        self._seen = self._collect()
        self._smooth = all(is_smooth(node) for node, _ in sides)
        spread = self._smooth and any(has_spread(node) for node, _ in sides)
        self._logarithmic = spread and not plain and self._all_positive()

    @property
    def effect(self) -> str:
        """The kind of quantity."""
        return "value" if self._alone else "ratio" if self._logarithmic else "difference"

    @property
    def threshold(self) -> float:
        """The number with which the interval is compared."""
        if self._constant is not None:
            return self._constant
        return 1.0 if self._logarithmic else 0.0

    def part(self, text: str, names: Names, verdict: Verdict) -> ClaimComparison:
        """Return the record of the comparison."""
        left, right = self._left[1], self._left[1] if self._right is None else self._right[1]
        common = {key: label for key, label in left.items() if right.get(key) == label}
        sides = [
            Operand(
                labelled(node, bound, common, names),
                self._side((node, bound)),
                is_difference(node),
                node,
                shown(bound, names),
            )
            for node, bound in (self._left, self._right or self._left)
        ]
        found = self.interval(CONFIDENCE)
        second = sides[1] if self._right is not None else None
        return ClaimComparison(
            text, shown(common, names), sides[0], second, found, self.effect, self._unit, verdict
        )

    def interval(self, confidence: float) -> Interval:
        """Return the interval of the difference, the ratio, or the left side alone."""
        wrong = self._undefined()
        if wrong is not None:
            return wrong
        if self._level == Level.SEED:
            return self._of_values(self._difference(Evaluator(self._names, self._leaves)), confidence)
        if self._smooth:
            leaves = Jackknife(self._leaves, self._names, self._chosen)
            return jackknife(
                self._difference(Evaluator(self._names, leaves)), confidence, logarithmic=self._logarithmic
            )
        return self._of_figures([self._left, *([] if self._alone else [self._right])], confidence)

    def _side(self, side: Located) -> Interval:
        """Return the interval of one side alone, at 95 %."""
        node, bound = side
        level = kind_of(node, self._names, bound).level
        if level == Level.CONSTANT:
            value = constant(node)
            return Interval(value, None, None, 0, CONFIDENCE, "constant")
        wrong = self._undefined()
        if wrong is not None:
            return wrong
        if level == Level.SEED:
            return self._of_values(_array(Evaluator(self._names, self._leaves), node, bound), CONFIDENCE)
        if is_smooth(node):
            leaves = Jackknife(self._leaves, self._names, self._chosen)
            replicates = _array(Evaluator(self._names, leaves), node, bound)
            logarithmic = has_spread(node) and bool((replicates > 0).all())
            return jackknife(replicates, CONFIDENCE, logarithmic=logarithmic)
        return self._of_figures([side], CONFIDENCE)

    # --- methods for intervals

    def _difference(self, evaluator: Evaluator) -> Floats:
        values = _array(evaluator, *self._left)
        if self._alone or self._right is None:
            return values
        other = evaluator.value(*self._right)
        assert not isinstance(other, Range)
        return values / other if self._logarithmic else values - other

    def _of_values(self, values: Floats, confidence: float) -> Interval:
        found = estimate(values[self._chosen].tolist(), confidence)
        if found is None:
            return Interval(None, None, None, 0, confidence, "Student t", "no seed has a value")
        return found.interval()

    def _of_figures(self, sides: Sequence[Located | None], confidence: float) -> Interval:
        each = 1.0 - (1.0 - confidence) / max(len(self._seen.figures), 1)
        ends = Ends(self._leaves, self._names, self._chosen, each)
        n = len(self._chosen)
        ranges, points = [], []
        for side in sides:
            assert side is not None
            ranges.append(Range.of(_scalar(Evaluator(self._names, ends).value(*side))))
            point = Evaluator(self._names, Point(self._leaves, self._names, self._chosen)).value(*side)
            assert isinstance(point, float)
            points.append(point)
        found = ranges[0] - ranges[1] if len(ranges) > 1 else ranges[0]
        middle = points[0] - points[1] if len(points) > 1 else points[0]
        method = "intervals of figures" if len(self._seen.figures) > 1 else "interval of a figure"
        if math.isnan(found.low) or math.isnan(middle):
            reason = ends.reason or "the compared quantity is undefined in part of its interval"
            known = None if math.isnan(middle) else middle
            return Interval(known, None, None, n, confidence, method, reason)
        return Interval(middle, found.low, found.high, n, confidence, method)

    # --- seeds

    def _collect(self) -> Seen:
        """Evaluate the leaves of both sides together: a seed counts for both sides or for neither."""
        self._leaves.fresh()
        everything = Collect(self._leaves, self._names, np.arange(0))
        evaluator = Evaluator(self._names, everything)
        values = [evaluator.value(*side) for side in (self._left, self._right) if side is not None]
        for value in values:
            if isinstance(value, np.ndarray):
                self._leaves.seen.lacking.update(map(int, np.flatnonzero(np.isnan(value))))
        return self._leaves.seen

    @property
    def _chosen(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(~self._seen.missing)

    def _undefined(self) -> Interval | None:
        """Return an interval without endpoints, with the reason, if no seed was run or one has no value."""
        present = len(self._chosen)
        lacking = sorted(i for i in self._seen.lacking if not self._seen.missing[i])
        if present and not lacking:
            return None
        what = self._seen.suspects.get(lacking[0], str(self._left[0])) if lacking else ""
        reason = (
            f"{what} is not defined in {len(lacking)} of {counted(present, 'seed')}"
            if present
            else "nothing was run"
        )
        return Interval(None, None, None, present, CONFIDENCE, "", reason)

    def _all_positive(self) -> bool:
        if self._undefined() is not None or not len(self._chosen):
            return False
        leaves = Jackknife(self._leaves, self._names, self._chosen)
        evaluator = Evaluator(self._names, leaves)
        sides = [self._left, *([] if self._right is None else [self._right])]
        return all(bool((np.asarray(evaluator.value(*side)) > 0).all()) for side in sides)


def _array(evaluator: Evaluator, node: Expression, bound: Bindings) -> Floats:
    value = evaluator.value(node, bound)
    assert isinstance(value, np.ndarray)
    return value


def _scalar(value: object) -> float | Range:
    assert isinstance(value, float | Range)
    return value


_DIFFERENCES = frozenset({"cdf_gap", "range", "largest_step", "change", "slope", "std"})
"""Functions whose result is a difference of values, in the unit of the values."""


def is_difference(node: Expression) -> bool:
    """Return whether a figure is the difference of two measured figures, or consists of such differences.

    A constant minus a measured value does not count: ``100 % - utilisation_percent`` is itself a percentage.
    """
    match node:
        case Negative():
            return is_difference(node.of)
        case Arithmetic():
            return _is_difference_of(node) or any(map(is_difference, _operands(node)))
        case Call():
            figures = [part for part in node.arguments if isinstance(part, Expression)]
            return bool(figures) and (node.function in _DIFFERENCES or any(map(is_difference, figures)))
    return False


def _is_difference_of(node: Arithmetic) -> bool:
    taken = [part for sign, part in node.rest if sign == "-"]
    left = [node.first, *(part for sign, part in node.rest if sign == "+")]
    return not node.product and any(map(_is_measured, taken)) and any(map(_is_measured, left))


def _operands(node: Arithmetic) -> list[Expression]:
    return [node.first, *(part for _, part in node.rest)]


def _is_measured(node: Node) -> bool:
    return isinstance(node, MetricOf) or any(map(_is_measured, children(node)))
