"""Figures over the seeds with their intervals.

There are three methods, depending on the comparison:

* for a value per seed, or a difference of such values: Student's t over the seeds;
* for smooth functions of means and standard deviations, such as a ratio of two means: the jackknife over the
  seeds (Miller, Biometrika 61, 1974), which for a single mean is Student's t. If a side contains a standard
  deviation and both sides are positive, their logarithms are compared (Miller, Annals of Mathematical
  Statistics 39, 1968), because the standard deviation of a small sample has a skewed distribution;
* for anything else: each figure has its own interval (order statistics for medians and quantiles,
  Clopper-Pearson for shares). Functions of several figures use interval arithmetic, each
  interval at ``1 - (1 - confidence) / k`` for k figures (Bonferroni). The coverage is at least the
  nominal one, and often higher.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from aqmlab.claims.arithmetic import Floats, Value
from aqmlab.claims.functions import Function, meaning
from aqmlab.claims.metric_query import MetricQuery, metric_query, placed
from aqmlab.claims.names import Bindings, Names
from aqmlab.claims.ranges import UNKNOWN, Range
from aqmlab.claims.tree import Call, MetricOf, Test
from aqmlab.claims.values import Evaluator, Leaves, constant
from aqmlab.metrics import Scope
from aqmlab.results.cells import Axis, Cell
from aqmlab.results.results import Curve
from aqmlab.text.units import in_base, unit_of_metric

Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass
class Seen:
    """The observations made while a comparison was evaluated."""

    missing: npt.NDArray[np.bool_]
    """Seeds without a finished run in some cell of the comparison."""
    suspects: dict[int, str] = field(default_factory=dict)
    """A metric that is undefined for a seed, by seed index; this need not matter, as in ``default(x, 0)``."""
    lacking: set[int] = field(default_factory=set)
    """Indices of the seeds for which the comparison itself is undefined."""
    figures: set[Key] = field(default_factory=set)
    """The figures over the seeds."""


class MetricValues(Protocol):
    """The source of metrics: :class:`aqmlab.Results`, or values measured earlier."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, which are the same in every cell."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The swept dimensions."""

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms in the order of the scenario."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that may have values."""

    def values(self, metric: str, cell: Cell, scope: Scope) -> dict[int, float | None]:
        """As for :meth:`aqmlab.Results.values`."""

    def of_curves(self, function: str, one: Curve, other: Curve) -> dict[int, float | None]:
        """As for :meth:`aqmlab.Results.of_curves`."""


class SeedLeaves(Leaves):
    """Metrics seed by seed, in the order of ``results.seeds``, without figures over the seeds."""

    def __init__(self, results: MetricValues, names: Names) -> None:
        self._results = results
        self._names = names
        self.seen = Seen(np.zeros(len(results.seeds), dtype=bool))
        self._columns: dict[Key, tuple[Floats, npt.NDArray[np.bool_]]] = {}

    def fresh(self) -> None:
        """Clear the observations, but keep the computed values."""
        self.seen = Seen(np.zeros(len(self._results.seeds), dtype=bool))

    def metric(self, node: MetricOf, bound: Bindings) -> Floats:
        """The values of one cell."""
        key = (str(node), tuple(sorted(bound.items())))
        if key not in self._columns:
            self._columns[key] = self._column(node, bound)
        return self._met(key)

    def _met(self, key: Key) -> Floats:
        """Return a computed column, and record its undefined values."""
        values, missing = self._columns[key]
        self.seen.missing |= missing
        for i in np.flatnonzero(np.isnan(values) & ~missing):
            self.seen.suspects.setdefault(int(i), key[0])
        return values

    def of_curves(self, function: str, one: MetricOf, other: MetricOf, bound: Bindings) -> Floats:
        """Return a number per seed that compares the distribution functions of two metrics."""
        key = (f"{function}({one}, {other})", tuple(sorted(bound.items())))
        if key not in self._columns:
            first, second = (metric_query(node, self._names, bound) for node in (one, other))
            asked = self._asked(first), self._asked(second)
            of_seed = placed(one, lambda: self._results.of_curves(function, *asked))
            self._columns[key] = self._by_seed(of_seed, first)
        return self._met(key)

    def _asked(self, what: MetricQuery) -> Curve:
        """Return the arguments with which the results are queried for a metric."""
        # An axis that is not named has only one label; the check of the claim ensured this.
        # A sweep may leave cases out; their cells have no runs, so claims about them are undecided.
        settings = tuple(
            (axis.name, what.labels.get(axis.name, axis.labels[0])) for axis in self._results.axes
        )
        return what.metric.name, Cell(settings, what.arm or self._results.arms[0]), what.scope

    def _column(self, node: MetricOf, bound: Bindings) -> tuple[Floats, npt.NDArray[np.bool_]]:
        what = metric_query(node, self._names, bound)
        of_seed = placed(node, lambda: self._results.values(*self._asked(what)))
        return self._by_seed(of_seed, what)

    def _by_seed(
        self, of_seed: Mapping[int, float | None], what: MetricQuery
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return values in base units in the order of the seeds, and the seeds without a run."""
        factor = unit_of_metric(what.metric.unit)[0]
        values = [of_seed.get(seed) for seed in self._results.seeds]
        column = [math.nan if value is None else in_base(value, factor) for value in values]
        missing = [seed not in of_seed for seed in self._results.seeds]
        return np.array(column, dtype=np.float64), np.array(missing, dtype=bool)


class _OverSeeds(Leaves):
    """Base class for evaluators, each with its own rule for figures over the seeds."""

    def __init__(self, seeds: SeedLeaves, names: Names, chosen: npt.NDArray[np.intp]) -> None:
        self._inner = Evaluator(names, seeds)
        self.seeds = seeds
        self.chosen = chosen

    def over_seeds(self, node: Call | Test, bound: Bindings) -> Value:
        self.seeds.seen.figures.add((str(node), tuple(sorted(bound.items()))))
        values = self._inner.of_each_seed(node.arguments[0], bound)
        return self.figure(meaning(node), values, *map(constant, node.numbers))

    def metric(self, node: MetricOf, bound: Bindings) -> Value:
        """Return the values of the chosen seeds, for a metric outside any figure over the seeds."""
        return self.seeds.metric(node, bound)[self.chosen]

    def of_curves(self, function: str, one: MetricOf, other: MetricOf, bound: Bindings) -> Value:
        """Return the values of the chosen seeds, for a function outside any figure over the seeds."""
        return self.seeds.of_curves(function, one, other, bound)[self.chosen]

    def figure(self, function: Function, values: Floats, *q: float) -> Value:
        """Compute one figure from the values of all seeds."""
        raise NotImplementedError


class Collect(_OverSeeds):
    """Visits every leaf without computing anything."""

    def figure(self, function: Function, values: Floats, *q: float) -> Value:  # noqa: ARG002 (not computed)
        """Return an unknown value."""
        self.seeds.seen.lacking.update(map(int, np.flatnonzero(np.isnan(values))))
        return UNKNOWN


class Point(_OverSeeds):
    """The figure itself."""

    def figure(self, function: Function, values: Floats, *q: float) -> Value:
        """Compute the figure from the chosen seeds."""
        return figure(function, values[self.chosen], *q)


class Jackknife(_OverSeeds):
    """The figure, followed by its values with each seed left out in turn."""

    def figure(self, function: Function, values: Floats, *q: float) -> Value:
        """Return the figure of the chosen seeds, then the figure with each of them left out in turn."""
        kept = values[self.chosen]
        without = [figure(function, np.delete(kept, i), *q) for i in range(len(kept))]
        return np.array([figure(function, kept, *q), *without], dtype=np.float64)


class Ends(_OverSeeds):
    """Computes the interval of each figure, at a given confidence."""

    def __init__(
        self, seeds: SeedLeaves, names: Names, chosen: npt.NDArray[np.intp], confidence: float
    ) -> None:
        super().__init__(seeds, names, chosen)
        self._confidence = confidence
        self.reason = ""

    def figure(self, function: Function, values: Floats, *q: float) -> Value:
        """Return the interval, or an unknown one; ``reason`` then explains why."""
        assert function.interval is not None
        found = function.interval(values[self.chosen].tolist(), self._confidence, *q)
        if found.low is None or found.high is None:
            self.reason = self.reason or found.reason
            return UNKNOWN
        return Range(found.low, found.high)


def figure(function: Function, values: Floats, *q: float) -> float:
    """Return a statistic of one value per seed, or NaN if there are no seeds or a value is NaN."""
    if not len(values) or np.isnan(values).any():
        return math.nan
    found = function.value(values, *q)
    assert isinstance(found, float)
    return found
