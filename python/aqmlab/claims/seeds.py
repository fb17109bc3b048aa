"""Figures over the seeds with their intervals.

Three ways, by what is compared:

* values of each seed, or differences of them: Student's t over the seeds;
* what is smooth in means and standard deviations, such as a ratio of two means: the jackknife over the seeds
  (Miller, Biometrika 61, 1974), of which Student's t is the special case of one mean. Where a standard
  deviation is compared with something positive, logarithms are: Miller, Annals of Mathematical Statistics 39,
  1968, for the spread of small samples is skewed;
* anything else: each figure has its own interval (order statistics for medians and quantiles, Clopper and
  Pearson for shares), and what is calculated of several of them is calculated with intervals, each at
  ``1 - (1 - confidence) / k`` for k figures (Bonferroni): at least as certain as it says, and often more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Unpack

import numpy as np
import numpy.typing as npt

from aqmlab.cells import Axis, Cell
from aqmlab.claims.functions import function_of
from aqmlab.claims.metric_query import MetricQuery, metric_query, placed
from aqmlab.claims.names import Bindings, Names
from aqmlab.claims.ranges import UNKNOWN, Range
from aqmlab.claims.tree import Call, Condition, Expression, MetricOf, Node, children
from aqmlab.claims.units import in_base, unit_of_metric
from aqmlab.claims.values import Evaluator, Floats, Leaves, Value, constant
from aqmlab.metrics.asked import Part
from aqmlab.stats import Interval, estimate, t_quantile
from aqmlab.stats.proportion import share
from aqmlab.stats.quantiles import interpolated, quantile

SMOOTH = ("mean", "std")
"""Figures over the seeds that change little when a seed is left out."""
CORNERED = ("min", "max", "range", "largest_step", "median", "quantile", "share", "default")
"""Functions with a corner where their arguments meet, or that count."""

Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass
class Seen:
    """What was met while a comparison was evaluated."""

    missing: npt.NDArray[np.bool_]
    """Seeds without a finished run in some cell of the comparison."""
    suspects: dict[int, str] = field(default_factory=dict)
    """Index of a seed: a metric that is not defined there, which need not matter: ``default(x, 0)``."""
    lacking: set[int] = field(default_factory=set)
    """Indices of the seeds for which what is compared is not defined."""
    figures: set[Key] = field(default_factory=set)
    """The figures over the seeds."""


class MetricValues(Protocol):
    """Where metrics come from: :class:`aqmlab.Results`, or values that were measured before."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The same in every cell."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The swept dimensions."""

    @property
    def arms(self) -> tuple[str, ...]:
        """In the order of the scenario."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Those of which there may be values."""

    def values(self, metric: str, cell: Cell, **part: Unpack[Part]) -> dict[int, float | None]:
        """As of :meth:`aqmlab.Results.values`."""

    def of_curves(
        self, function: str, one: Mapping[str, Any], other: Mapping[str, Any]
    ) -> dict[int, float | None]:
        """As of :meth:`aqmlab.Results.of_curves`."""


class SeedLeaves(Leaves):
    """Metrics of each seed, in the order of ``results.seeds``; over seeds there is nothing."""

    def __init__(self, results: MetricValues, names: Names) -> None:
        self._results = results
        self._names = names
        self.seen = Seen(np.zeros(len(results.seeds), dtype=bool))
        self._columns: dict[Key, tuple[Floats, npt.NDArray[np.bool_]]] = {}
        self._cells = {(cell.arm, *(label for _, label in cell.settings)): cell for cell in results.cells}

    def fresh(self) -> None:
        """Forget what was seen, not what was computed."""
        self.seen = Seen(np.zeros(len(self._results.seeds), dtype=bool))

    def metric(self, node: MetricOf, bound: Bindings) -> Value:
        """The values of one cell."""
        key = (str(node), tuple(sorted(bound.items())))
        if key not in self._columns:
            self._columns[key] = self._column(node, bound)
        return self._met(key)

    def _met(self, key: Key) -> Floats:
        """A column that was computed; what it lacks is remembered."""
        values, missing = self._columns[key]
        self.seen.missing |= missing
        for i in np.flatnonzero(np.isnan(values) & ~missing):
            self.seen.suspects.setdefault(int(i), key[0])
        return values

    def of_curves(self, function: str, one: MetricOf, other: MetricOf, bound: Bindings) -> Value:
        """A figure of two cells, seed by seed."""
        key = (f"{function}({one}, {other})", tuple(sorted(bound.items())))
        if key not in self._columns:
            first, second = (self._asked(node, bound) for node in (one, other))
            of_seed = placed(one, lambda: self._results.of_curves(function, first, second))
            self._columns[key] = self._by_seed(of_seed, metric_query(one, self._names, bound))
        return self._met(key)

    def _asked(self, node: MetricOf, bound: Bindings) -> dict[str, Any]:
        """What is asked of the results."""
        what = metric_query(node, self._names, bound)
        # What is not said has one label only: the claim was checked.
        labels = [what.labels.get(axis.name, axis.labels[0]) for axis in self._results.axes]
        return {
            "metric": what.metric.name,
            "cell": self._cells[what.arm or self._results.arms[0], *labels],
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
        """Values in base units in the order of the seeds, and which seeds have no run."""
        factor = unit_of_metric(what.metric.unit)[0]
        values = [of_seed.get(seed) for seed in self._results.seeds]
        column = [math.nan if value is None else in_base(value, factor) for value in values]
        missing = [seed not in of_seed for seed in self._results.seeds]
        return np.array(column, dtype=np.float64), np.array(missing, dtype=bool)


class _OverSeeds(Leaves):
    """Figures over the seeds by some rule."""

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
        """One figure of the values of all seeds."""
        raise NotImplementedError


class Collect(_OverSeeds):
    """Meets every leaf, and computes nothing."""

    def metric(self, node: MetricOf, bound: Bindings) -> Value:
        """The values of all seeds, where nothing is over them."""
        return self.seeds.metric(node, bound)

    def of_curves(self, function: str, one: MetricOf, other: MetricOf, bound: Bindings) -> Value:
        """The figures of all seeds, where nothing is over them."""
        return self.seeds.of_curves(function, one, other, bound)

    def figure(self, function: str, values: Floats, q: float) -> Value:  # noqa: ARG002 (not computed)
        """Nothing is known of it."""
        self.seeds.seen.lacking.update(map(int, np.flatnonzero(np.isnan(values))))
        return UNKNOWN


class Point(_OverSeeds):
    """The figure itself."""

    def figure(self, function: str, values: Floats, q: float) -> Value:
        """By the seeds that count."""
        return figure(function, values[self.chosen], q)


class Jackknife(_OverSeeds):
    """The figure, and then the same with each seed left out in turn."""

    def figure(self, function: str, values: Floats, q: float) -> Value:
        """One more than there are seeds that count."""
        kept = values[self.chosen]
        without = [figure(function, np.delete(kept, i), q) for i in range(len(kept))]
        return np.array([figure(function, kept, q), *without], dtype=np.float64)


class Ends(_OverSeeds):
    """The interval of each figure, at one confidence."""

    def __init__(
        self, seeds: SeedLeaves, names: Names, chosen: npt.NDArray[np.intp], confidence: float
    ) -> None:
        super().__init__(seeds, names, chosen)
        self._confidence = confidence
        self.reason = ""

    def figure(self, function: str, values: Floats, q: float) -> Value:
        """Unknown where there is no interval; ``reason`` says why."""
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
    """A figure over the seeds; NaN where there are too few."""
    if len(values) < (2 if function == "std" else 1) or np.isnan(values).any():
        return math.nan
    if function == "std":
        return float(values.std(ddof=1))
    if function in ("mean", "share"):
        return math.fsum(values) / len(values)
    return interpolated(sorted(values.tolist()), q)


def spread(values: Floats, confidence: float) -> Interval:
    """The standard deviation of the seeds by the jackknife of its logarithm."""
    whole = figure("std", values, 0.5)
    if whole == 0:
        return Interval(0.0, 0.0, 0.0, len(values), confidence, "no spread at all")
    without = [figure("std", np.delete(values, i), 0.5) for i in range(len(values))]
    return jackknife(np.array([whole, *without]), confidence, logarithmic=True)


def jackknife(replicates: Floats, confidence: float, *, logarithmic: bool = False) -> Interval:
    """The interval of a figure of which the first entry is of all seeds, the others leave out one each.

    Parameters
    ----------
    replicates
        One more than there are seeds.
    confidence
        Coverage, nearly.
    logarithmic
        Whether the logarithm is taken to be the one that is about normal; all entries are positive then.
    """
    n = len(replicates) - 1
    method = "jackknife of the logarithm" if logarithmic else "jackknife"
    used = np.log(replicates) if logarithmic and (replicates > 0).all() else replicates
    if np.isnan(used).any() or (logarithmic and used is replicates):
        return Interval(None, None, None, n, confidence, method, "a seed decides whether it is defined")
    pseudo = n * used[0] - (n - 1) * used[1:]
    middle = float(used[0])
    if n < 2:
        return Interval(float(replicates[0]), None, None, n, confidence, method, "one value has no interval")
    reach = t_quantile(confidence, n - 1) * float(pseudo.std(ddof=1)) / math.sqrt(n)
    if np.ptp(used) <= 1e-12 * abs(middle):
        reach = 0.0  # no rounding is to look like a spread
    low, high = middle - reach, middle + reach
    back: Callable[[float], float] = math.exp if logarithmic else float
    return Interval(float(replicates[0]), back(low), back(high), n, confidence, method)


def is_smooth(node: Node) -> bool:
    """Whether an expression over the seeds has no corner and counts nothing."""
    return not any(
        isinstance(each, Call) and each.function in CORNERED for each in figures_and_above(node)
    ) and not any(isinstance(each, Call) and each.function not in SMOOTH for each in figures_of(node))


def has_spread(node: Node) -> bool:
    """Whether a standard deviation over the seeds is in it."""
    return any(isinstance(each, Call) and each.function == "std" for each in figures_and_above(node))


def figures_of(node: Node) -> Iterator[Node]:
    """The figures over the seeds in an expression."""
    return (each for each in figures_and_above(node) if _is_figure(each))


def figures_and_above(node: Node) -> Iterator[Node]:
    """An expression and what is in it down to the figures over the seeds, without what those are of."""
    yield node
    if not _is_figure(node):
        for child in children(node):
            yield from figures_and_above(child)


def _is_figure(node: Node) -> bool:
    if not isinstance(node, Call):
        return False
    function = function_of(node.function, over=bool(node.over))
    return function is not None and function.domain == "seeds"


def _array(evaluator: Evaluator, node: Expression, bound: Bindings) -> Floats:
    value = evaluator.value(node, bound)
    assert isinstance(value, np.ndarray)
    return value


def _expression(node: Expression | Condition) -> Expression:
    assert isinstance(node, Expression)
    return node
