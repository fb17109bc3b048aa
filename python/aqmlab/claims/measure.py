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

from aqmlab.claims.arithmetic import Floats
from aqmlab.claims.check import Level, ValueKind, kind_of
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
)
from aqmlab.claims.tree import Expression
from aqmlab.claims.values import Evaluator, constant
from aqmlab.stats import CONFIDENCE, Interval, intervals
from aqmlab.stats.jackknife import jackknife
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
        plain: bool = False,
    ) -> None:
        self._leaves, self._names = leaves, names
        self._sides = sides = [left] if right is None else [left, right]
        self._kinds = kinds = [kind_of(node, names, bound) for node, bound in sides]
        self._level = max(kind.level for kind in kinds)
        self._constant = constant(right[0]) if right and kinds[1].constant else None
        self._alone = right is None or self._constant is not None
        unit = next((kind.unit for kind in kinds if kind.unit.powers), kinds[0].unit)
        self._unit = replace(unit, percent=unit.pure and any(kind.unit.percent for kind in kinds))
        self._seen = self._collect()
        self._smooth = all(kind.smooth for kind in kinds)
        spread = self._smooth and any(kind.spread for kind in kinds)
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
        first, last = self._sides[0][1], self._sides[-1][1]
        common = {key: label for key, label in first.items() if last.get(key) == label}
        sides = [
            Operand(
                labelled(node, bound, common, names),
                self._side((node, bound), kind),
                kind.difference,
                node,
                shown(bound, names),
            )
            for (node, bound), kind in zip(self._sides, self._kinds, strict=True)
        ]
        found = self.interval(CONFIDENCE)
        left, right = sides[0], sides[1] if len(sides) > 1 else None
        return ClaimComparison(
            text, shown(common, names), left, right, found, self.effect, self._unit, verdict
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
        return self._of_figures(self._sides[:1] if self._alone else self._sides, confidence)

    def _side(self, side: Located, kind: ValueKind) -> Interval:
        """Return the interval of one side alone, at 95 %."""
        node, bound = side
        if kind.constant:
            value = constant(node)
            return Interval(value, None, None, 0, CONFIDENCE, "constant")
        wrong = self._undefined()
        if wrong is not None:
            return wrong
        if kind.level == Level.SEED:
            return self._of_values(Evaluator(self._names, self._leaves).of_each_seed(node, bound), CONFIDENCE)
        if kind.smooth:
            leaves = Jackknife(self._leaves, self._names, self._chosen)
            replicates = Evaluator(self._names, leaves).of_each_seed(node, bound)
            logarithmic = kind.spread and bool((replicates > 0).all())
            return jackknife(replicates, CONFIDENCE, logarithmic=logarithmic)
        return self._of_figures([side], CONFIDENCE)

    # --- methods for intervals

    def _difference(self, evaluator: Evaluator) -> Floats:
        values = evaluator.of_each_seed(*self._sides[0])
        if self._alone:
            return values
        other = evaluator.value(*self._sides[1])
        assert not isinstance(other, Range)
        return values / other if self._logarithmic else values - other

    def _of_values(self, values: Floats, confidence: float) -> Interval:
        return intervals.mean(values[self._chosen].tolist(), confidence)

    def _of_figures(self, sides: Sequence[Located], confidence: float) -> Interval:
        each = 1.0 - (1.0 - confidence) / max(len(self._seen.figures), 1)
        ends = Ends(self._leaves, self._names, self._chosen, each)
        n = len(self._chosen)
        ranges, points = [], []
        for side in sides:
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
        everything = Collect(self._leaves, self._names, np.arange(len(self._leaves.seen.missing)))
        evaluator = Evaluator(self._names, everything)
        values = [evaluator.value(*side) for side in self._sides]
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
        what = self._seen.suspects.get(lacking[0], str(self._sides[0][0])) if lacking else ""
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
        return all(bool((np.asarray(evaluator.value(*side)) > 0).all()) for side in self._sides)


def _scalar(value: object) -> float | Range:
    assert isinstance(value, float | Range)
    return value
