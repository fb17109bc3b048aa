"""The values of expressions: numbers, one value per seed, or intervals, depending on the leaves.

Claims are never evaluated as Python: this module walks the tree and handles each kind of node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import numpy as np

from aqmlab.claims.arithmetic import OPERATORS, Floats, Value, all_of, compared, floats
from aqmlab.claims.functions import meaning
from aqmlab.claims.names import Bindings, Names
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
    Test,
)
from aqmlab.text.units import LITERALS, in_base


class Leaves:
    """The source of the values at the leaves of a tree."""

    def metric(self, node: MetricOf, bound: Bindings) -> Value:
        """Return a metric of the cell given by ``bound`` and the metric's braces."""
        raise NotImplementedError

    def of_curves(self, function: str, one: MetricOf, other: MetricOf, bound: Bindings) -> Value:
        """Return a value computed from the distribution functions of two metrics, such as ``cdf_gap``."""
        raise NotImplementedError

    def over_seeds(self, node: Call | Test, bound: Bindings) -> Value:
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
            found = OPERATORS[sign](found, self.value(part, bound))
        return found

    def _call(self, node: Call | Test, bound: Bindings) -> Value:
        function = meaning(node)
        if function.domain == "seeds":
            return self._leaves.over_seeds(node, bound)
        if function.domain == "curves":
            one, other = node.arguments
            assert isinstance(one, MetricOf)
            assert isinstance(other, MetricOf)
            return self._leaves.of_curves(node.function, one, other, bound)
        if function.domain == "values":
            return function.value(*(self._either(part, bound) for part in node.arguments))
        insides = list(self.inside(node.over, bound))
        columns = [[self._either(part, inside) for inside in insides] for part in node.arguments]
        return function.value(self._names.options(node.over[0]), *columns)

    def _either(self, node: Expression | Condition, bound: Bindings) -> Value:
        return self.truth(node, bound) if isinstance(node, Condition) else self.value(node, bound)

    def of_each_seed(self, node: Expression | Condition, bound: Bindings) -> Floats:
        """Return a value for each seed: that of an expression, or the truth of a condition."""
        found = self._either(node, bound)
        assert isinstance(found, np.ndarray)
        return found

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
                return all_of([compared(a, relation, b) for relation, (a, b) in sides])
            case Between():
                value, low, high = (self.value(part, bound) for part in (node.value, node.low, node.high))
                return all_of([compared(value, ">=", low), compared(value, "<=", high)])
            case BestIs():
                return self._best(node, bound)
            case Test():
                return floats(self._call(node, bound))
            case Not():
                return 1.0 - self.truth(node.of, bound)
            case And():
                return all_of([self.truth(part, bound) for part in node.parts])
            case Or():
                return 1.0 - all_of([1.0 - self.truth(part, bound) for part in node.parts])
            case For():
                return self._for(node, bound)
        raise AssertionError(node)

    def _best(self, node: BestIs, bound: Bindings) -> Floats:
        (choice,) = node.best.over
        options = self._names.options(choice)
        values = floats(self._call(node.best, bound))
        wanted = [
            options.index(self._names.resolve(self._names.key(choice.axis), label)) for label in node.labels
        ]
        others = [i for i in range(len(options)) if i not in wanted]
        # A listed label that ties with one that is not listed does not count as best.
        so = values[wanted].max(axis=0) > values[others].max(axis=0)
        return np.where(np.isnan(values).any(axis=0), np.nan, so)

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
