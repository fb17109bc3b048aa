"""Decisions on claims: on each comparison by its interval, and on conditions made of many comparisons.

A condition that needs ``k`` of ``m`` comparisons (all of them: ``and``, ``for all``; one: ``or``,
``for some``) holds if ``k`` of them do, each decided at ``alpha / (m - k + 1)``, and fails if ``m - k + 1``
fail, each decided at ``alpha / k``. The condition is then decided wrongly with a probability of at most
``alpha``, however the comparisons depend on each other: if only ``t < k`` are true, ``k - t`` of the other
``m - t`` would have to be decided wrongly, and by Markov's inequality the probability of this is at most
``(m - t) / (k - t) * alpha / (m - k + 1) <= alpha``. For "all hold", this is the intersection-union test,
with every comparison at its own 95 %; for "one holds", it is Bonferroni's correction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aqmlab.claims.check import MOST_COMPARISONS, Level, kind_of
from aqmlab.claims.comparisons import ClaimComparison, Operand, shown, where_text
from aqmlab.claims.functions import meaning
from aqmlab.claims.measure import Located, Measure
from aqmlab.claims.names import Bindings, Names
from aqmlab.claims.scan import MisplacedError
from aqmlab.claims.seeds import SeedLeaves
from aqmlab.claims.tree import (
    And,
    BestIs,
    Between,
    Call,
    Compare,
    Condition,
    For,
    Negative,
    Not,
    Or,
    Relation,
    Test,
)
from aqmlab.claims.values import Evaluator, constant, needed
from aqmlab.results.results import Results
from aqmlab.stats import CONFIDENCE, Interval
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
from aqmlab.system.stopping import raise_if_stopped
from aqmlab.text.numbers import counted
from aqmlab.text.units import PERCENT

ALPHA = 1.0 - CONFIDENCE
SHARE_OF_ANY = 0.15
"""If the condition of ``any`` is true for this share of seeds, 19 seeds detect that with 95 % probability."""


@dataclass(frozen=True)
class _Levels:
    """The allowed probabilities of a wrong ``holds`` and of a wrong ``fails``."""

    holds: float = ALPHA
    fails: float = ALPHA

    def swapped(self) -> _Levels:
        return _Levels(self.fails, self.holds)

    def of_one(self, need: int, count: int) -> _Levels:
        """Return the levels at which each part is decided, where ``need`` of ``count`` parts must hold."""
        return _Levels(self.holds / (count - need + 1), self.fails / need)


class Decider:
    """Decides conditions from results, and records every comparison made."""

    def __init__(self, results: Results, names: Names) -> None:
        self._results = results
        self._names = names
        self._leaves = SeedLeaves(results, names)
        self._inner = Evaluator(names, self._leaves)
        self.parts: list[ClaimComparison] = []

    def decide(self, claim: Condition, bound: Bindings) -> Verdict:
        """Return the verdict on a checked claim; afterwards, ``parts`` contains its comparisons."""
        self.parts = []
        return self._verdict(claim, dict(bound), _Levels())

    def _verdict(self, node: Condition, bound: Bindings, levels: _Levels) -> Verdict:  # noqa: PLR0911 (one per kind)
        raise_if_stopped()
        match node:
            case Compare():
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

    def _comparison(self, node: Compare, bound: Bindings, levels: _Levels) -> Verdict:
        firsts = [node.first, *(part for _, part in node.rest)]
        steps = [
            Compare(a.at, a, ((relation, b),)) for a, (relation, b) in zip(firsts, node.rest, strict=False)
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
        """Make one comparison; if there is a tolerance, the difference of the sides is compared with it."""
        if kind_of(left[0], self._names, left[1]).level == Level.CONSTANT:
            turned: dict[Relation, Relation] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
            left, right, relation = right, left, turned[relation]
        measure = Measure(self._leaves, self._names, left, right, plain=tolerance != 0)
        threshold = measure.threshold + tolerance

        def verdict(confidence: float) -> Verdict:
            return judge(measure.interval(confidence), relation, threshold)

        return self._kept(text, measure, verdict, levels)

    def _between(self, node: Between, bound: Bindings, levels: _Levels) -> Verdict:
        ends = [kind_of(end, self._names, bound).level for end in (node.low, node.high)]
        if max(ends) > Level.CONSTANT or kind_of(node.value, self._names, bound).level == Level.CONSTANT:
            above = Compare(node.at, node.value, ((">=", node.low),))
            below = Compare(node.at, node.value, (("<=", node.high),))
            return self._verdict(And(node.at, (above, below)), bound, levels)
        measure = Measure(self._leaves, self._names, (node.value, bound), None)
        low, high = constant(node.low), constant(node.high)

        def verdict(confidence: float) -> Verdict:
            return judge_range(measure.interval(confidence), low, high)

        return self._kept(str(node), measure, verdict, levels)

    def _kept(
        self, text: str, measure: Measure, verdict: Callable[[float], Verdict], levels: _Levels
    ) -> Verdict:
        alone = verdict(CONFIDENCE)
        if len(self.parts) >= MOST_COMPARISONS:
            raise MisplacedError(0, f"the claim makes more than {MOST_COMPARISONS} comparisons")
        self.parts.append(measure.part(text, self._names, alone))
        if alone.status == UNDECIDED:
            return alone
        # Each of several decisions must be more certain than a single decision needs to be.
        allowed = levels.holds if alone.status == HOLDS else levels.fails
        sure = alone if allowed >= ALPHA else verdict(1.0 - allowed)
        if sure.status == alone.status:
            return alone
        return replace(
            alone,
            status=UNDECIDED,
            reason=sure.reason or "not significant after correction for several comparisons",
        )

    # --- labels and courses

    def _best(self, node: BestIs, bound: Bindings, levels: _Levels) -> Verdict:
        (choice,) = node.best.over
        body = node.best.body
        key = self._names.key(choice.axis)
        options = self._names.options(choice)
        wanted = [self._names.resolve(key, label) for label in node.labels]
        others = [label for label in options if label not in wanted]
        relation = meaning(node.best).relation

        def beats(label: str, other: str) -> Callable[[_Levels], Verdict]:
            places = [where_text([(self._names.short(key), of)]) for of in (label, other)]
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
        body = node.body
        if node.function == "no_trend":
            (end,) = node.numbers
            change = Call(node.at, "change", (body,), node.over)
            return self._between(Between(node.at, change, Negative(node.at, end), end), bound, levels)
        relation = meaning(node).relation
        tolerance = constant(node.numbers[0]) if node.numbers else 0.0
        insides = list(self._inner.inside(node.over, bound))
        labels = self._names.options(node.over[0])
        axis = self._names.short(self._names.key(node.over[0].axis))

        def step(i: int) -> Callable[[_Levels], Verdict]:
            text = f"{body} at {axis} {labels[i + 1]} {relation} at {axis} {labels[i]}"
            later, earlier = (body, insides[i + 1]), (body, insides[i])
            shift = -tolerance if relation == ">" else tolerance
            return lambda inner: self._compared(text, later, relation, earlier, inner, shift)

        return self._at_least(len(labels) - 1, [step(i) for i in range(len(labels) - 1)], levels)

    def _any(self, node: Test, bound: Bindings, levels: _Levels) -> Verdict:
        """Judge ``any``: it holds as soon as the condition is true for one seed, without statistics."""
        condition = node.arguments[0]
        self._leaves.fresh()
        truth = self._inner.of_each_seed(condition, bound)
        seen = self._leaves.seen
        known = truth[~np.isnan(truth)]
        share = constant(node.numbers[0]) if node.numbers else SHARE_OF_ANY
        n = len(known)
        count = int(known.sum())
        part = count / n if n else None
        found = Interval(part, None, None, n, CONFIDENCE, "count of seeds")
        enough = math.ceil(math.log(levels.fails) / math.log1p(-share))
        if count:
            verdict = Verdict(HOLDS, part, n=n, reason=f"seen in {count} of {counted(n, 'seed')}")
        elif n >= enough and n == int((~seen.missing).sum()):
            verdict = Verdict(FAILS, part, n=n, reason=f"seen in none of {counted(n, 'seed')}")
        else:
            why = (
                f"seen in none of {counted(n, 'seed')};"
                f" {enough} are needed to show a share below {100 * share:g} %"
            )
            verdict = undecided(why, n)
        side = Operand(str(condition), found)
        self.parts.append(
            ClaimComparison(
                str(node), shown(bound, self._names), side, None, found, "value", PERCENT, verdict
            )
        )
        return verdict
