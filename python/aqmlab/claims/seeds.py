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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Unpack

import numpy as np
import numpy.typing as npt

from aqmlab.claims.metric_query import MetricQuery, metric_query, placed
from aqmlab.claims.names import Bindings, Names
from aqmlab.claims.ranges import UNKNOWN, Range
from aqmlab.claims.tree import Call, Condition, Expression, MetricOf
from aqmlab.claims.values import Evaluator, Floats, Leaves, Value, constant
from aqmlab.metrics.asked import Part
from aqmlab.results.cells import Axis, Cell
from aqmlab.stats import Interval, estimate, t_quantile
from aqmlab.stats.proportion import share
from aqmlab.stats.quantiles import interpolated, quantile
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

    def values(self, metric: str, cell: Cell, **part: Unpack[Part]) -> dict[int, float | None]:
        """As for :meth:`aqmlab.Results.values`."""

    def of_curves(
        self, function: str, one: Mapping[str, Any], other: Mapping[str, Any]
    ) -> dict[int, float | None]:
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

    def metric(self, node: MetricOf, bound: Bindings) -> Value:
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

    def of_curves(self, function: str, one: MetricOf, other: MetricOf, bound: Bindings) -> Value:
        """Return a number per seed that compares the distribution functions of two metrics."""
        key = (f"{function}({one}, {other})", tuple(sorted(bound.items())))
        if key not in self._columns:
            first, second = (self._asked(node, bound) for node in (one, other))
            of_seed = placed(one, lambda: self._results.of_curves(function, first, second))
            self._columns[key] = self._by_seed(of_seed, metric_query(one, self._names, bound))
        return self._met(key)

    def _asked(self, node: MetricOf, bound: Bindings) -> dict[str, Any]:
        """Return the arguments with which the results are queried for a metric."""
        what = metric_query(node, self._names, bound)
        # An axis that is not named has only one label; the check of the claim ensured this.
        # A sweep may leave cases out; their cells have no runs, so claims about them are undecided.
        settings = tuple(
            (axis.name, what.labels.get(axis.name, axis.labels[0])) for axis in self._results.axes
        )
        return {
            "metric": what.metric.name,
            "cell": Cell(settings, what.arm or self._results.arms[0]),
            "queue": what.queue,
            "class_name": what.class_name,
            "parameters": what.parameters,
        }

    def _column(self, node: MetricOf, bound: Bindings) -> tuple[Floats, npt.NDArray[np.bool_]]:
        what = metric_query(node, self._names, bound)
        asked = self._asked(node, bound)
        of_seed = placed(
            node,
            lambda: self._results.values(**asked, window=what.window, kind=what.kind, router=what.router),
        )
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

    def over_seeds(self, node: Call, bound: Bindings) -> Value:
        self.seeds.seen.figures.add((str(node), tuple(sorted(bound.items()))))
        body = node.arguments[0]
        values = (
            self._inner.truth(body, bound)
            if isinstance(body, Condition)
            else _array(self._inner, body, bound)
        )
        share_of = constant(_expression(node.arguments[1])) if len(node.arguments) > 1 else 0.5
        return self.figure(node.function, values, share_of)

    def figure(self, function: str, values: Floats, q: float) -> Value:
        """Compute one figure from the values of all seeds."""
        raise NotImplementedError


class Collect(_OverSeeds):
    """Visits every leaf without computing anything."""

    def metric(self, node: MetricOf, bound: Bindings) -> Value:
        """Return the values of all seeds, for a metric outside any figure over the seeds."""
        return self.seeds.metric(node, bound)

    def of_curves(self, function: str, one: MetricOf, other: MetricOf, bound: Bindings) -> Value:
        """Return the values of all seeds, for a function outside any figure over the seeds."""
        return self.seeds.of_curves(function, one, other, bound)

    def figure(self, function: str, values: Floats, q: float) -> Value:  # noqa: ARG002 (not computed)
        """Return an unknown value."""
        self.seeds.seen.lacking.update(map(int, np.flatnonzero(np.isnan(values))))
        return UNKNOWN


class Point(_OverSeeds):
    """The figure itself."""

    def figure(self, function: str, values: Floats, q: float) -> Value:
        """Compute the figure from the chosen seeds."""
        return figure(function, values[self.chosen], q)


class Jackknife(_OverSeeds):
    """The figure, followed by its values with each seed left out in turn."""

    def figure(self, function: str, values: Floats, q: float) -> Value:
        """Return the figure of the chosen seeds, then the figure with each of them left out in turn."""
        kept = values[self.chosen]
        without = [figure(function, np.delete(kept, i), q) for i in range(len(kept))]
        return np.array([figure(function, kept, q), *without], dtype=np.float64)


class Ends(_OverSeeds):
    """Computes the interval of each figure, at a given confidence."""

    def __init__(
        self, seeds: SeedLeaves, names: Names, chosen: npt.NDArray[np.intp], confidence: float
    ) -> None:
        super().__init__(seeds, names, chosen)
        self._confidence = confidence
        self.reason = ""

    def figure(self, function: str, values: Floats, q: float) -> Value:
        """Return the interval, or an unknown one; ``reason`` then explains why."""
        kept = values[self.chosen]
        if function == "std":
            found = spread(kept, self._confidence)
        elif function == "mean":
            of = estimate(kept.tolist(), self._confidence)
            found = of.interval() if of else Interval(None, None, None, 0)
        elif function == "share":
            found = share([bool(value) for value in kept], self._confidence)
        else:
            found = quantile(kept.tolist(), q, self._confidence)
        if found.low is None or found.high is None:
            self.reason = self.reason or found.reason
            return UNKNOWN
        return Range(found.low, found.high)


def figure(function: str, values: Floats, q: float) -> float:
    """Return a statistic of one value per seed, or NaN if there are too few seeds or a value is NaN."""
    if len(values) < (2 if function == "std" else 1) or np.isnan(values).any():
        return math.nan
    if function == "std":
        return float(values.std(ddof=1))
    if function in ("mean", "share"):
        return math.fsum(values) / len(values)
    return interpolated(sorted(values.tolist()), q)


def spread(values: Floats, confidence: float) -> Interval:
    """Return the standard deviation over the seeds; its interval comes from a jackknife of the logarithm."""
    whole = figure("std", values, 0.5)
    if whole == 0:
        return Interval(0.0, 0.0, 0.0, len(values), confidence, "no spread at all")
    without = [figure("std", np.delete(values, i), 0.5) for i in range(len(values))]
    return jackknife(np.array([whole, *without]), confidence, logarithmic=True)


def jackknife(replicates: Floats, confidence: float, *, logarithmic: bool = False) -> Interval:
    """Return the interval of a figure from its value for all seeds and its values without each seed in turn.

    Parameters
    ----------
    replicates
        The values; one more than there are seeds.
    confidence
        Approximate coverage.
    logarithmic
        Whether the logarithm is assumed to be approximately normally distributed; if so, there is an
        interval only if all values are positive.
    """
    n = len(replicates) - 1
    method = "jackknife of the logarithm" if logarithmic else "jackknife"
    used = np.log(replicates) if logarithmic and (replicates > 0).all() else replicates
    if np.isnan(used).any() or (logarithmic and used is replicates):
        return Interval(
            None, None, None, n, confidence, method, "whether it is defined depends on a single seed"
        )
    pseudo = n * used[0] - (n - 1) * used[1:]
    middle = float(used[0])
    if n < 2:
        return Interval(float(replicates[0]), None, None, n, confidence, method, "one value has no interval")
    reach = t_quantile(confidence, n - 1) * float(pseudo.std(ddof=1)) / math.sqrt(n)
    if np.ptp(used) <= 1e-12 * abs(middle):
        reach = 0.0  # rounding errors must not look like a spread
    low, high = middle - reach, middle + reach
    back: Callable[[float], float] = math.exp if logarithmic else float
    return Interval(float(replicates[0]), back(low), back(high), n, confidence, method)


def _array(evaluator: Evaluator, node: Expression, bound: Bindings) -> Floats:
    value = evaluator.value(node, bound)
    assert isinstance(value, np.ndarray)
    return value


def _expression(node: Expression | Condition) -> Expression:
    assert isinstance(node, Expression)
    return node
