"""Checks of a claim before any run: names, units, and the sides of comparisons.

Each expression has a unit and a *level*: a constant, a value for each seed, or a figure over the seeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import pairwise

from aqmlab.claims.functions import Function, meaning
from aqmlab.claims.metric_query import parameter_value, placed, setting_key
from aqmlab.claims.names import FROM, KIND, ROUTER, UNTIL, WINDOW, Bindings, Names, seconds
from aqmlab.claims.scan import MisplacedError
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
    Label,
    Matcher,
    MetricOf,
    Negative,
    Node,
    Not,
    Number,
    Or,
    Test,
)
from aqmlab.claims.values import constant
from aqmlab.metrics import Metric, Takes, all_metrics, find
from aqmlab.text.units import LITERALS, PURE, Unit, unit_of_metric

MOST_COMPARISONS = 10_000
"""Largest number of comparisons in a claim."""


class Level(IntEnum):
    """The level of a value: a constant, one value per seed, or one figure over all seeds."""

    CONSTANT = 0
    SEED = 1
    SEEDS = 2


@dataclass(frozen=True)
class ValueKind:
    """The properties of an expression that are known without a run.

    Attributes
    ----------
    node
        The expression.
    unit, level
        The expression's dimension and level.
    bare
        Whether the expression consists of numbers without units.
    difference
        Whether it is the difference of two measured values, or consists of such differences. A constant
        minus a measured value does not count: ``100 % - utilisation_percent`` is itself a percentage.
    smooth
        Whether it is a smooth function of the figures over the seeds in it, which contain no count.
    spread
        Whether it contains a standard deviation over the seeds.
    """

    node: Node
    unit: Unit
    level: Level = Level.SEED
    bare: bool = False
    difference: bool = False
    smooth: bool = True
    spread: bool = False

    @property
    def constant(self) -> bool:
        """Whether the expression consists of numbers."""
        return self.level == Level.CONSTANT

    def joined(self, other: ValueKind, node: Node, unit: Unit, level: Level) -> ValueKind:
        """Return the properties of a node that combines this expression with another."""
        smooth, spread = self.smooth and other.smooth, self.spread or other.spread
        difference = self.difference or other.difference
        return ValueKind(node, unit, level, self.bare and other.bare, difference, smooth, spread)

    def under(self, function: Function, node: Node, unit: Unit, level: Level) -> ValueKind:
        """Return the properties of a function of this expression."""
        smooth = function.smooth and (self.smooth or self.level == Level.SEED)
        difference, spread = self.difference or function.difference, self.spread or function.spread
        return ValueKind(node, unit, level, self.bare, difference, smooth, spread)


@dataclass(frozen=True)
class _Scope:
    """The bindings that apply to a node, and whether the node is evaluated per seed."""

    bound: frozenset[str]
    of_seed: bool = False

    def binding(self, *keys: str) -> _Scope:
        return replace(self, bound=self.bound | set(keys))


def check(
    claim: Condition, names: Names, where: Bindings | None = None, *, of_each_seed: bool = False
) -> None:
    """Raise an error for a claim that cannot be scored.

    Parameters
    ----------
    claim
        The claim as a tree.
    names
        The names that it may use.
    where
        The outer bindings.
    of_each_seed
        Whether it is evaluated for each seed, like the condition of ``share``, and not over the seeds.

    Raises
    ------
    MisplacedError
        If it cannot be scored; the error has the position in the text.
    """
    _Checker(names).condition(claim, _Scope(frozenset(where or ()), of_each_seed))


def kind_of(node: Expression, names: Names, bound: Bindings) -> ValueKind:
    """Return the unit and the level of an expression that has already been checked."""
    return _Checker(names).expression(node, _Scope(frozenset(bound)))


class _Checker:
    def __init__(self, names: Names) -> None:
        self._names = names

    # --- conditions

    def condition(self, node: Condition, scope: _Scope) -> None:
        match node:
            case Compare():
                sides = [self.expression(part, scope) for part in (node.first, *(p for _, p in node.rest))]
                for left, right in pairwise(sides):
                    self._compared(node, left, right, scope)
            case Between():
                value, *ends = [self.expression(part, scope) for part in (node.value, node.low, node.high)]
                for end in ends:
                    self._compared(node, value, end, scope)
            case BestIs():
                self._best(node, scope)
            case Test():
                self._test(node, scope)
            case Not():
                self.condition(node.of, scope)
            case And() | Or():
                for part in node.parts:
                    self.condition(part, scope)
            case For():
                self.condition(node.condition, self._bound(node.choices, scope))

    def _compared(self, node: Node, left: ValueKind, right: ValueKind, scope: _Scope) -> None:
        self._agree(left, right, "compared")
        level = self._level(left, right)
        if level == Level.CONSTANT:
            raise MisplacedError(node.at, "two constants are compared; one side must be a measured value")
        if level == Level.SEEDS:
            wrong = max(left, right, key=lambda side: side.level).node
            self._over_all_seeds(wrong, str(wrong), scope)

    def _over_all_seeds(self, node: Node, text: str, scope: _Scope) -> None:
        if scope.of_seed:
            raise MisplacedError(
                node.at, f"`{text}` is computed over the seeds, but here each seed is evaluated separately"
            )

    def _best(self, node: BestIs, scope: _Scope) -> None:
        call = node.best
        (choice,) = call.over
        options = self._names.options(choice)
        self._measured(call.arguments[0], self._bound(call.over, scope))
        listed = [self._names.resolve(self._names.key(choice.axis), label) for label in node.labels]
        for label, meant in zip(node.labels, listed, strict=True):
            if meant not in options:
                raise MisplacedError(label.at, f"`{meant}` is not among the labels of `{call.function}`")
        if set(listed) >= set(options):
            raise MisplacedError(node.at, f"`{call.function}` always returns one of these labels")

    def _test(self, node: Test, scope: _Scope) -> None:
        if meaning(node).domain == "seeds":
            self._over_seeds(node, scope)
            return
        kind = self._measured(node.arguments[0], self._bound(node.over, scope))
        if node.function == "defined" and not scope.of_seed:
            raise MisplacedError(
                node.at, "`defined` is evaluated for each seed; write `share(defined(...)) > 90 %`"
            )
        if node.function == "defined" and kind.level == Level.SEEDS:
            raise MisplacedError(
                kind.node.at,
                f"`{kind.node}` is computed over the seeds, but `defined` is evaluated for each seed",
            )
        if node.function == "no_trend":
            self._over_all_seeds(node, node.function, scope)
        self._two_labels(node)
        for tolerance in node.numbers:
            self._tolerance(tolerance, kind, scope)

    def _tolerance(self, node: Expression, of: ValueKind, scope: _Scope) -> None:
        kind = self.expression(node, scope)
        self._agree(of, kind, "compared")
        if not kind.constant or not constant(node) >= 0:
            raise MisplacedError(node.at, "a tolerance is a number of at least 0")

    # --- expressions

    def expression(self, node: Expression, scope: _Scope) -> ValueKind:
        match node:
            case Number():
                return self._number(node)
            case MetricOf():
                return self._metric(node, scope)
            case Negative():
                return replace(self.expression(node.of, scope), node=node)
            case Arithmetic():
                return self._arithmetic(node, scope)
            case Call():
                return self._call(node, scope)
        raise AssertionError(node)

    def _argument(self, node: Expression | Condition, scope: _Scope) -> ValueKind:
        """Return the kind of an expression; the truth of a condition is a number for each seed."""
        if isinstance(node, Expression):
            return self.expression(node, scope)
        self.condition(node, replace(scope, of_seed=True))
        return ValueKind(node, PURE)

    def _measured(self, node: Expression | Condition, scope: _Scope) -> ValueKind:
        kind = self._argument(node, scope)
        if kind.constant:
            raise MisplacedError(node.at, f"`{node}` is a constant, not a measured value")
        return kind

    def _number(self, node: Number) -> ValueKind:
        if not math.isfinite(constant(node)):
            raise MisplacedError(node.at, f"`{node}` is too large")
        unit = LITERALS[node.unit][1] if node.unit else PURE
        return ValueKind(node, unit, Level.CONSTANT, bare=not node.unit)

    def _arithmetic(self, node: Arithmetic, scope: _Scope) -> ValueKind:
        found = first = self.expression(node.first, scope)
        added, taken = not first.constant, False
        for i, (sign, part) in enumerate(node.rest):
            kind = self.expression(part, scope)
            level = self._level(found, kind)
            if node.product:
                unit = found.unit.times(kind.unit, 1 if sign == "*" else -1)
            else:
                unit = self._agree(found, kind, "added" if sign == "+" else "subtracted")
            found = found.joined(kind, replace(node, rest=node.rest[: i + 1]), unit, level)
            added |= sign == "+" and not kind.constant
            taken |= sign == "-" and not kind.constant
        return replace(found, difference=found.difference or (added and taken))

    def _call(self, node: Call, scope: _Scope) -> ValueKind:
        function = meaning(node)
        if function.label:
            raise MisplacedError(node.at, f"`{node.function}` returns a label; compare it: `{node} == LABEL`")
        of = {
            "values": self._of_values,
            "curves": self._of_curves,
            "axis": self._over_axis,
            "seeds": self._over_seeds,
        }
        return of[function.domain](node, scope)

    def _of_values(self, node: Call | Test, scope: _Scope) -> ValueKind:
        function = meaning(node)
        kind, *others = [self._argument(part, scope) for part in node.arguments]
        for other in others:
            level = self._level(kind, other)
            kind = kind.joined(other, kind.node, self._agree(kind, other, "compared"), level)
        return kind.under(function, node, function.unit(node, kind.unit, ()), kind.level)

    def _of_curves(self, node: Call | Test, scope: _Scope) -> ValueKind:
        """Check a function of two distribution functions: both must extend to the same time."""
        places = []
        for part in (node.body, *node.numbers):
            kind = self.expression(part, scope)
            metric = find(part.name) if isinstance(part, MetricOf) else None
            if not isinstance(part, MetricOf) or metric is None or metric.cdf is None:
                known = ", ".join(f"`{each.name}`" for each in all_metrics() if each.cdf is not None)
                raise MisplacedError(
                    part.at,
                    f"`{node.function}` compares two distribution functions; write {known}, not `{part}`",
                )
            of = metric.parameters[0]
            given = [s for s in part.settings if s.key.text == of.name]
            places.append(parameter_value(metric, given[0]) if given else of.default)
        if places[0] != places[1]:
            raise MisplacedError(
                node.arguments[1].at,
                f"the two differ in `{of.name}`; `{node.function}` compares them up to the same time",
            )
        return kind.under(meaning(node), node, kind.unit, kind.level)

    def _over_axis(self, node: Call | Test, scope: _Scope) -> ValueKind:
        function, inner = meaning(node), self._bound(node.over, scope)
        kind = self._measured(node.arguments[0], inner)
        self._two_labels(node)
        for part in node.arguments if function.pairs else ():
            other = self._measured(part, inner)
            kind = replace(kind, difference=kind.difference or other.difference)
            if other.level == Level.SEEDS:
                raise MisplacedError(
                    part.at,
                    f"`{part}` is computed over the seeds, but `{node.function}` is computed seed by seed",
                )
        unit = function.unit(node, kind.unit, self._names.options(node.over[0]))
        return kind.under(function, node, unit, kind.level)

    def _two_labels(self, node: Call | Test) -> None:
        function = meaning(node)
        if (function.single or function.pairs) and self._count(node.over) < 2:
            raise MisplacedError(node.over[0].at, f"`{node.function}` needs at least two labels")

    def _over_seeds(self, node: Call | Test, scope: _Scope) -> ValueKind:
        function = meaning(node)
        self._over_all_seeds(node, node.function if function.test else str(node), scope)
        kind = self._argument(node.arguments[0], scope)
        if kind.level != Level.SEED:
            what = "a number" if kind.constant else "computed over the seeds already"
            raise MisplacedError(
                kind.node.at, f"`{kind.node}` is {what}; `{node.function}` takes one value per seed"
            )
        for part in node.numbers:
            self._share(part, scope)
        return kind.under(function, node, kind.unit, Level.SEEDS)

    def _share(self, node: Expression, scope: _Scope) -> None:
        kind = self.expression(node, scope)
        if not kind.constant or not kind.unit.pure or not 0 < constant(node) < 1:
            raise MisplacedError(node.at, "a share is a number between 0 and 1, or 0 % and 100 %")

    # --- metrics

    def _metric(self, node: MetricOf, scope: _Scope) -> ValueKind:
        metric = placed(node, lambda: find(node.name))
        fixed = set(scope.bound)
        given: set[str] = set()
        for setting in node.settings:
            key = self._setting(setting, metric, scope)
            if key in given:
                raise MisplacedError(setting.at, f"`{setting.key.text}` is given twice")
            given.add(key)
        if WINDOW in given and given & {FROM, UNTIL}:
            raise MisplacedError(node.at, "a window and `from` or `until` exclude each other")
        if Takes.WINDOW not in metric.takes and (given | fixed) & {FROM, UNTIL, WINDOW}:
            raise MisplacedError(
                node.at, f"metric `{metric.name}` covers the measured interval; it accepts no window of time"
            )
        self._of_a_part(node, metric, given | fixed)
        if still := self._names.open(fixed | given):
            listed = " and ".join(
                f"`{self._names.short(key)}` ({_some(self._names.labels(key))})" for key in still
            )
            raise MisplacedError(
                node.at,
                f"`{node}` applies to several cells because {listed}"
                f" {'is' if len(still) == 1 else 'are'} not fixed:"
                " fix each in braces, in `where`, or by `for all`",
            )
        return ValueKind(node, unit_of_metric(metric.unit)[1])

    def _of_a_part(self, node: MetricOf, metric: Metric, fixed: set[str]) -> None:
        """Check a kind of packet or a router: only some metrics accept one, and none does within a window."""
        for key, takes, what in (
            (KIND, Takes.KIND in metric.takes, "a kind of packet"),
            (ROUTER, Takes.ROUTER in metric.takes, "a router"),
        ):
            if key in fixed and not takes:
                raise MisplacedError(node.at, f"metric `{metric.name}` cannot be computed for {what}")
            if key in fixed and fixed & {FROM, UNTIL, WINDOW}:
                raise MisplacedError(
                    node.at,
                    f"metric `{metric.name}` of {what} covers the measured interval; it accepts no window",
                )

    def _setting(self, setting: Matcher, metric: Metric, scope: _Scope) -> str:
        key = setting.key.text
        if key in (FROM, UNTIL):
            seconds(setting.value, f"`{key}`")
            return key
        if key in {parameter.name for parameter in metric.parameters}:
            parameter_value(metric, setting)
            return f"parameter {key}"
        if metric.parameters and not self._is_axis(setting.key):
            placed(setting, lambda: metric.parameter(key))
        of = setting_key(setting, metric, self._names)
        if of not in scope.bound and setting.value.text in ("previous", "next") and not setting.value.quoted:
            self._names.resolve(of, setting.value, {})
        self._names.resolve(of, setting.value)
        return of

    def _is_axis(self, key: Label) -> bool:
        try:
            self._names.key(key)
        except MisplacedError:
            return False
        return True

    # --- choices

    def _bound(self, choices: tuple[Choice, ...], scope: _Scope) -> _Scope:
        keys: list[str] = []
        for choice in choices:
            key = self._names.key(choice.axis)
            if key in keys:
                raise MisplacedError(choice.at, f"`{choice.axis.text}` is selected twice")
            keys.append(key)
        if self._count(choices) > MOST_COMPARISONS:
            raise MisplacedError(choices[0].at, f"this makes more than {MOST_COMPARISONS} combinations")
        return scope.binding(*keys)

    def _count(self, choices: tuple[Choice, ...]) -> int:
        return math.prod(len(self._names.options(choice)) for choice in choices)

    # --- units and levels

    def _agree(self, left: ValueKind, right: ValueKind, verb: str) -> Unit:
        for side, other in ((left, right), (right, left)):
            if is_zero(side.node):
                return other.unit
        a, b = left.unit, right.unit
        if a.powers != b.powers:
            raise MisplacedError(
                right.node.at,
                f"`{left.node}` is {a.name()} and `{right.node}` is {b.name()}: they cannot be {verb}",
            )
        for side, other in ((left, right), (right, left)):
            if side.bare and other.unit.percent:
                raise MisplacedError(
                    side.node.at,
                    f"`{other.node}` is a percentage: write `{side.node} %` if that is meant",
                )
        return replace(a, percent=a.percent or b.percent)

    def _level(self, left: ValueKind, right: ValueKind) -> Level:
        levels = {left.level, right.level}
        if levels == {Level.SEED, Level.SEEDS}:
            wrong = min(left, right, key=lambda side: side.level).node
            raise MisplacedError(
                wrong.at,
                f"`{wrong}` has a value per seed but is combined with a figure over seeds; write mean(...)",
            )
        return max(levels)


def is_zero(node: Node) -> bool:
    """Whether an expression is the number 0 without a unit, which can be compared with anything."""
    return isinstance(node, Number) and not node.unit and float(node.digits) == 0


def _some(labels: tuple[str, ...]) -> str:
    return ", ".join(labels[:4]) + (", ..." if len(labels) > 4 else "")
