"""Whether a claim holds: each comparison by its interval, and conditions of many of them.

A condition that needs ``k`` of ``m`` comparisons (all of them: ``and``, ``for all``; one: ``or``, ``for
some``) holds if ``k`` of them do, each decided at ``alpha / (m - k + 1)``, and fails if ``m - k + 1`` fail,
each decided at ``alpha / k``. Then it is decided wrongly with a probability of at most ``alpha``, however
the comparisons depend on each other: if only ``t < k`` are true, ``k - t`` of the other ``m - t`` would have
to be decided wrongly, of which by Markov's inequality the probability is at most
``(m - t) / (k - t) * alpha / (m - k + 1) <= alpha``. For "all hold" this is the intersection-union test,
every comparison at its own 95 %; for "one holds" it is Bonferroni's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from aqmlab.claims.check import MOST_COMPARISONS, Level, kind_of
from aqmlab.claims.names import Bindings, Names
from aqmlab.claims.points import is_difference
from aqmlab.claims.ranges import Range
from aqmlab.claims.scan import MisplacedError
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
from aqmlab.claims.tree import (
    And,
    BestIs,
    Between,
    Call,
    Comparison,
    Condition,
    Expression,
    For,
    Negative,
    Not,
    Or,
    Relation,
    Test,
)
from aqmlab.claims.units import PERCENT, Unit
from aqmlab.claims.values import Evaluator, Floats, constant, needed
from aqmlab.results import Results
from aqmlab.stats import CONFIDENCE, Interval, estimate
from aqmlab.stats.verdict import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Verdict,
    at_least,
    judge,
    judge_range,
    negated,
    undecided,
)

Located: TypeAlias = tuple[Expression, Bindings]
"""An expression, and what is fixed around it."""

ALPHA = 1.0 - CONFIDENCE
SHARE_OF_ANY = 0.15
"""Share of the seeds that ``any`` would have shown where it fails: twenty seeds show it with 95 %."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    Attributes
    ----------
    text
        The expression.
    estimate
        The mean over the seeds, or the figure, with its 95 % interval; without ends for a constant.
    difference
        Whether it is the distance of two measured figures: that of percentages is in percentage points.
    """

    text: str
    estimate: Interval
    difference: bool = False

    @property
    def constant(self) -> bool:
        """Whether it is a number of the claim, and nothing measured."""
        return self.estimate.method == "constant"


@dataclass(frozen=True)
class Part:
    """One comparison of a claim, with what was compared.

    Attributes
    ----------
    text
        The comparison.
    at
        What ``for``, ``over`` and ``where`` fix for it: axis as people call it, and label.
    left, right
        What was compared; ``right`` is ``None`` for a range.
    found
        What the verdict is about: the difference of the sides, their ratio, or the left side alone.
    effect
        Which of these: ``"difference"``, ``"ratio"``, ``"value"``.
    unit
        Of the sides, and of the difference.
    verdict
        By itself, at 95 %.
    """

    text: str
    at: tuple[tuple[str, str], ...]
    left: Side
    right: Side | None
    found: Interval
    effect: str
    unit: Unit
    verdict: Verdict


@dataclass(frozen=True)
class _Levels:
    """Probabilities of a wrong ``holds`` and of a wrong ``fails`` that are allowed."""

    holds: float = ALPHA
    fails: float = ALPHA

    def swapped(self) -> _Levels:
        return _Levels(self.fails, self.holds)

    def of_one(self, need: int, count: int) -> _Levels:
        """For each of ``count`` parts of which ``need`` must hold."""
        return _Levels(self.holds / (count - need + 1), self.fails / need)


class Decider:
    """Decides conditions over results, and keeps the parts of what was compared."""

    def __init__(self, results: Results, names: Names) -> None:
        self._results = results
        self._names = names
        self._leaves = SeedLeaves(results, names)
        self._inner = Evaluator(names, self._leaves)
        self.parts: list[Part] = []

    def decide(self, claim: Condition, bound: Bindings) -> Verdict:
        """The verdict of a claim that has been checked; ``parts`` has its comparisons then."""
        self.parts = []
        return self._verdict(claim, dict(bound), _Levels())

    def _verdict(self, node: Condition, bound: Bindings, levels: _Levels) -> Verdict:  # noqa: PLR0911 (one a kind)
        match node:
            case Comparison():
                return self._comparison(node, bound, levels)
            case Between():
                return self._between(node, bound, levels)
            case BestIs():
                return self._best(node, bound, levels)
            case Test():
                return self._test(node, bound, levels)
            case Not():
                return negated(self._verdict(node.of, bound, levels.swapped()))
            case And() | Or():
                need = len(node.parts) if isinstance(node, And) else 1
                ask = [self._asking(part, bound) for part in node.parts]
                return self._at_least(need, ask, levels)
            case For():
                insides = list(self._inner.inside(node.choices, bound))
                ask = [self._asking(node.condition, inside) for inside in insides]
                return self._at_least(needed(node.quantifier, len(ask)), ask, levels)
        raise AssertionError(node)

    def _asking(self, node: Condition, bound: Bindings) -> Callable[[_Levels], Verdict]:
        return lambda levels: self._verdict(node, bound, levels)

    def _at_least(self, need: int, ask: Sequence[Callable[[_Levels], Verdict]], levels: _Levels) -> Verdict:
        each = levels.of_one(need, len(ask))
        return at_least(need, [of_part(each) for of_part in ask])

    # --- comparisons

    def _comparison(self, node: Comparison, bound: Bindings, levels: _Levels) -> Verdict:
        firsts = [node.first, *(part for _, part in node.rest)]
        steps = [
            Comparison(a.at, a, ((relation, b),)) for a, (relation, b) in zip(firsts, node.rest, strict=False)
        ]
        if len(steps) > 1:
            return self._at_least(len(steps), [self._asking(step, bound) for step in steps], levels)
        ((relation, right),) = node.rest
        return self._compared(str(node), (node.first, bound), relation, (right, bound), levels)

    def _compared(  # noqa: PLR0913, PLR0917 (a comparison and how it is decided)
        self,
        text: str,
        left: Located,
        relation: Relation,
        right: Located,
        levels: _Levels,
        tolerance: float = 0.0,
    ) -> Verdict:
        """One comparison; with a tolerance it is the difference of the sides that is compared with that."""
        if kind_of(left[0], self._names, left[1]).level == Level.CONSTANT:
            turned: dict[Relation, Relation] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
            left, right, relation = right, left, turned[relation]
        measure = self._measure(left, right, plain=tolerance != 0)
        threshold = measure.threshold + tolerance

        def verdict(confidence: float) -> Verdict:
            return judge(measure.interval(confidence), relation, threshold)

        return self._kept(text, measure, verdict, levels)

    def _between(self, node: Between, bound: Bindings, levels: _Levels) -> Verdict:
        ends = [kind_of(end, self._names, bound).level for end in (node.low, node.high)]
        if max(ends) > Level.CONSTANT or kind_of(node.value, self._names, bound).level == Level.CONSTANT:
            above = Comparison(node.at, node.value, ((">=", node.low),))
            below = Comparison(node.at, node.value, (("<=", node.high),))
            return self._verdict(And(node.at, (above, below)), bound, levels)
        measure = self._measure((node.value, bound), None)
        low, high = constant(node.low), constant(node.high)

        def verdict(confidence: float) -> Verdict:
            return judge_range(measure.interval(confidence), low, high)

        return self._kept(str(node), measure, verdict, levels)

    def _kept(
        self, text: str, measure: _Measure, verdict: Callable[[float], Verdict], levels: _Levels
    ) -> Verdict:
        alone = verdict(CONFIDENCE)
        if len(self.parts) >= MOST_COMPARISONS:
            raise MisplacedError(0, f"the claim makes more than {MOST_COMPARISONS} comparisons")
        self.parts.append(measure.part(text, self._names, alone))
        if alone.status == UNDECIDED:
            return alone
        # What decides among several has to be more certain than what stands alone.
        allowed = levels.holds if alone.status == HOLDS else levels.fails
        sure = alone if allowed >= ALPHA else verdict(1.0 - allowed)
        if sure.status == alone.status:
            return alone
        return replace(alone, status=UNDECIDED, reason=sure.reason or "not certain enough among several")

    def _measure(self, left: Located, right: Located | None, *, plain: bool = False) -> _Measure:
        """A difference, or with standard deviations and unless it is to be ``plain`` a ratio."""
        return _Measure(self._leaves, self._names, left, right, plain=plain)

    # --- labels and courses

    def _best(self, node: BestIs, bound: Bindings, levels: _Levels) -> Verdict:
        (choice,) = node.best.over
        body = _expression(node.best.arguments[0])
        key = self._names.key(choice.axis)
        options = self._names.options(choice)
        wanted = [self._names.resolve(key, label) for label in node.labels]
        others = [label for label in options if label not in wanted]
        relation: Relation = ">" if node.best.function == "argmax" else "<"

        def beats(label: str, other: str) -> Callable[[_Levels], Verdict]:
            places = [_place({key: of}, self._names) for of in (label, other)]
            text = f"{body} at {places[0]} {relation} at {places[1]}"
            sides = (body, {**bound, key: label}), (body, {**bound, key: other})
            return lambda inner: self._compared(text, sides[0], relation, sides[1], inner)

        def beats_all(label: str) -> Callable[[_Levels], Verdict]:
            ask = [beats(label, other) for other in others]
            return lambda inner: self._at_least(len(ask), ask, inner)

        return self._at_least(1, [beats_all(label) for label in wanted], levels)

    def _test(self, node: Test, bound: Bindings, levels: _Levels) -> Verdict:
        if node.function == "any":
            return self._any(node, bound, levels)
        body = _expression(node.arguments[0])
        if node.function == "no_trend":
            tolerance = _expression(node.arguments[1])
            change = Call(node.at, "change", (body,), node.over)
            return self._between(
                Between(node.at, change, Negative(node.at, tolerance), tolerance), bound, levels
            )
        rising = node.function == "increasing"
        relation: Relation = ">" if rising else "<"
        tolerance_value = self._inner.tolerance(node, bound) * (-1.0 if rising else 1.0)
        insides = list(self._inner.inside(node.over, bound))
        labels = self._names.options(node.over[0])
        axis = self._names.short(self._names.key(node.over[0].axis))

        def step(i: int) -> Callable[[_Levels], Verdict]:
            text = f"{body} at {axis} {labels[i + 1]} {relation} at {axis} {labels[i]}"
            later, earlier = (body, insides[i + 1]), (body, insides[i])
            return lambda inner: self._compared(text, later, relation, earlier, inner, tolerance_value)

        return self._at_least(len(labels) - 1, [step(i) for i in range(len(labels) - 1)], levels)

    def _any(self, node: Test, bound: Bindings, levels: _Levels) -> Verdict:
        """Holds as soon as it was seen: that is no statistics."""
        condition = node.arguments[0]
        assert isinstance(condition, Condition)
        self._leaves.fresh()
        truth = self._inner.truth(condition, bound)
        seen = self._leaves.seen
        known = truth[~np.isnan(truth)]
        share = constant(_expression(node.arguments[1])) if len(node.arguments) > 1 else SHARE_OF_ANY
        n = len(known)
        count = int(known.sum())
        part = count / n if n else None
        found = Interval(part, None, None, n, CONFIDENCE, "count of seeds")
        enough = math.ceil(math.log(levels.fails) / math.log1p(-share))
        if count:
            verdict = Verdict(HOLDS, part, n=n, reason=f"seen in {count} of {n} seeds")
        elif n >= enough and n == int((~seen.missing).sum()):
            verdict = Verdict(FAILS, part, n=n, reason=f"seen in none of {n} seeds")
        else:
            why = (
                f"seen in none of {n} seeds; {enough} would tell that it is so in less than {100 * share:g} %"
            )
            verdict = undecided(why, n)
        side = Side(str(condition), found)
        self.parts.append(
            Part(str(node), _shown(bound, self._names), side, None, found, "value", PERCENT, verdict)
        )
        return verdict


class _Measure:
    """What one comparison is about, and its interval at any confidence."""

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
        """What the interval is of."""
        return "value" if self._alone else "ratio" if self._logarithmic else "difference"

    @property
    def threshold(self) -> float:
        """What the interval is compared with."""
        if self._constant is not None:
            return self._constant
        return 1.0 if self._logarithmic else 0.0

    def part(self, text: str, names: Names, verdict: Verdict) -> Part:
        """What is kept of the comparison."""
        left, right = self._left[1], self._left[1] if self._right is None else self._right[1]
        common = {key: label for key, label in left.items() if right.get(key) == label}
        sides = [
            Side(_labelled(node, bound, common, names), self._side((node, bound)), is_difference(node))
            for node, bound in (self._left, self._right or self._left)
        ]
        found = self.interval(CONFIDENCE)
        second = sides[1] if self._right is not None else None
        return Part(text, _shown(common, names), sides[0], second, found, self.effect, self._unit, verdict)

    def interval(self, confidence: float) -> Interval:
        """Of the difference, the ratio, or the left side alone."""
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
        """One side by itself, at 95 %."""
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

    # --- ways to an interval

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
            reason = ends.reason or "it is not defined throughout its interval"
            known = None if math.isnan(middle) else middle
            return Interval(known, None, None, n, confidence, method, reason)
        return Interval(middle, found.low, found.high, n, confidence, method)

    # --- seeds

    def _collect(self) -> Seen:
        """What the comparison meets: both sides together, for seeds count in pairs."""
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
        """What there is instead of an interval where a seed, or every seed, has no value."""
        present = len(self._chosen)
        lacking = sorted(i for i in self._seen.lacking if not self._seen.missing[i])
        if present and not lacking:
            return None
        what = self._seen.suspects.get(lacking[0], str(self._left[0])) if lacking else ""
        reason = (
            f"{what} is not defined in {len(lacking)} of {present} seeds" if present else "nothing was run"
        )
        return Interval(None, None, None, present, CONFIDENCE, "", reason)

    def _all_positive(self) -> bool:
        if self._undefined() is not None or not len(self._chosen):
            return False
        leaves = Jackknife(self._leaves, self._names, self._chosen)
        evaluator = Evaluator(self._names, leaves)
        sides = [self._left, *([] if self._right is None else [self._right])]
        return all(bool((np.asarray(evaluator.value(*side)) > 0).all()) for side in sides)


def _shown(bound: Bindings, names: Names) -> tuple[tuple[str, str], ...]:
    return tuple((names.short(key), label) for key, label in bound.items())


def _labelled(node: Expression, bound: Bindings, common: Bindings, names: Names) -> str:
    """An expression, and what is fixed for it alone: ``x at buffer 4p``."""
    own = {key: label for key, label in bound.items() if key not in common}
    return f"{node} at {_place(own, names)}" if own else str(node)


def _place(bound: Bindings, names: Names) -> str:
    return ", ".join(f"{axis} {label}" for axis, label in _shown(bound, names))


def _array(evaluator: Evaluator, node: Expression, bound: Bindings) -> Floats:
    value = evaluator.value(node, bound)
    assert isinstance(value, np.ndarray)
    return value


def _scalar(value: object) -> float | Range:
    assert isinstance(value, float | Range)
    return value


def _expression(node: Expression | Condition) -> Expression:
    assert isinstance(node, Expression)
    return node
