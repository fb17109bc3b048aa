"""Queueing delay and its price: a scenario's question, choices that no other one beats, starved links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from aqmlab.metrics import Metric, Scope, find
from aqmlab.results.answers import Answer, Settings
from aqmlab.results.answers import answer as answer_of
from aqmlab.results.cells import Axis, Cell
from aqmlab.soundness.bottleneck import BUSY_PERCENT
from aqmlab.stats import CONFIDENCE, Difference, Estimate, difference, estimate
from aqmlab.stats.multiple import adjusted
from aqmlab.text.numbers import display_value

DELAY = "queueing_delay_mean_s"
GOODPUT = "goodput_bps"
DROPS = "drop_percent"
UTILISATION = "utilisation_percent"
SHARE = "goodput_share_percent"
"""A metric that describes a class only: the share of all traffic is 100 %."""

_CHOSEN = frozenset({"queue", "reverse_queue", "tcp"})
"""Parts of a key by which a queue or a sender is configured, rather than the network or the load."""


Ahead = Mapping[tuple[Cell, Cell], int]
"""By pair of cells: 1 if the first is significantly better, -1 if the second is, 0 if neither is."""


@dataclass(frozen=True)
class Question:
    """The metrics that answer the question of a scenario.

    Attributes
    ----------
    asked
        The metrics that the scenario names, and that have a value in some run.
    delay
        Queueing delay: the first one that the scenario names, else the mean.
    price
        The metric by which the choice of a queue is judged in addition to delay: the first one that the
        scenario names and of which less or more is better, else goodput.
    """

    asked: tuple[Metric, ...]
    delay: Metric
    price: Metric

    @property
    def of_delay(self) -> bool:
        """Whether it asks for a queueing delay and its price, as it does unless other metrics are named."""
        return not self.asked or self.delay in self.asked

    @property
    def others(self) -> tuple[Metric, ...]:
        """The metrics in addition to :attr:`delay` and :attr:`price`; by default drops."""
        if not self.asked:
            return (find(DROPS),)
        return tuple(metric for metric in self.asked if metric not in (self.delay, self.price))


@dataclass(frozen=True)
class Beaten:
    """A choice that another one dominates."""

    cell: Cell
    by: Cell


@dataclass(frozen=True)
class Starved:
    """A choice under which flows that always have something to send leave a link idle.

    It uses less than nine tenths of what another choice in the same circumstances uses
    (:data:`aqmlab.soundness.bottleneck.BUSY_PERCENT`), and significantly so. The link is the one by
    whose queue the choices are judged, or another one that a choice fills.

    Attributes
    ----------
    cell
        The choice.
    queue
        The link.
    used, most
        Utilisation in per cent, and that of :attr:`other`.
    other
        The choice with the highest utilisation.
    """

    cell: Cell
    queue: str
    used: Estimate
    most: Estimate
    other: Cell


@dataclass(frozen=True)
class Front:
    """The choices in one set of circumstances, by delay and price.

    Attributes
    ----------
    cells
        The choices that have both values.
    best
        The undominated choices, beginning with the best price.
    beaten
        The dominated ones: some other choice is at least as good in both means, and significantly better in
        one. (A difference that is not significant does not show that two choices are equal.)
    ahead
        Which of two choices is significantly better, first in delay, then in price (:meth:`TradeOff.ahead`).
    """

    cells: tuple[Cell, ...]
    best: tuple[Cell, ...]
    beaten: tuple[Beaten, ...]
    ahead: tuple[Ahead, ...]


class TradeOff:
    """The question of a scenario, and how the choices compare in the metrics that answer it.

    Choices are cells that differ in their arm or in settings of the queue or of TCP. Cells that differ
    in anything else, such as the rate of a link or the number of flows, are different circumstances.
    All comparisons are paired by seed.

    Parameters
    ----------
    of
        The answer whose cells are compared. Its metrics need not include those of the question.
    """

    def __init__(self, of: Answer) -> None:
        self.results = of.results
        named = tuple(dict.fromkeys(map(find, of.results.metrics)))
        needed = dict.fromkeys([DELAY, GOODPUT, DROPS, *(metric.name for metric in named)])
        known = {metric.name for metric in of.metrics}
        if of.by or not needed.keys() <= known:
            of = answer_of(of.results, [*needed], queue=of.asked_queue, class_name=of.class_name)
        self.answer = of
        self.question = self._question(named)

    def _question(self, named: Sequence[Metric]) -> Question:
        there = tuple(metric for metric in named if self.defined(metric) or metric.name == SHARE)
        delays = [metric for metric in there if metric.name.startswith("queueing_delay")]
        delay = delays[0] if delays else find(DELAY)
        judged = [m for m in there if m.better and m.name != SHARE and m not in delays]
        return Question(there, delay, judged[0] if judged else find(GOODPUT))

    def defined(self, metric: Metric) -> bool:
        """Whether some compared cell has a value of a metric."""
        return any(self.mean(cell, metric) is not None for of in self.groups for cell in of)

    @cached_property
    def chosen_axes(self) -> tuple[Axis, ...]:
        """The axes that set a queue or TCP."""
        return tuple(axis for axis in self.results.axes if axis.keys and all(map(_is_chosen, axis.keys)))

    @cached_property
    def groups(self) -> tuple[tuple[Cell, ...], ...]:
        """The cells that are compared and have finished runs, by circumstances."""
        chosen = {axis.name for axis in self.chosen_axes}
        there = {row.cell for row in self.answer.rows if self.results.runs_of(row.cell)}
        of_case: dict[Settings, list[Cell]] = {}
        for cell in self.results.cells:
            if cell in there and cell.arm in self.answer.compared:
                rest = tuple(setting for setting in cell.settings if setting[0] not in chosen)
                of_case.setdefault(rest, []).append(cell)
        return tuple(map(tuple, of_case.values()))

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The names of all choices, in the order of the scenario."""
        return tuple(dict.fromkeys(self.name(cell) for of in self.groups for cell in of))

    def name(self, cell: Cell) -> str:
        """The name of a choice: its arm and the labels that were chosen for it."""
        labels = dict(cell.settings)
        settings = " × ".join(f"{axis.short} {labels[axis.name]}" for axis in self.chosen_axes)
        if len(self.answer.compared) == 1 and settings:
            return settings
        return f"{cell.arm} at {settings}" if settings else cell.arm

    def place(self, cell: Cell) -> dict[str, str]:
        """The circumstances of a cell: labels by axis."""
        chosen = {axis.name for axis in self.chosen_axes}
        return {axis: label for axis, label in cell.settings if axis not in chosen}

    def mean(self, cell: Cell, metric: Metric) -> Estimate | None:
        """The mean of a metric in a cell."""
        return self.answer.estimate(cell, metric.name)

    def largest(self, metric: Metric) -> float | None:
        """The largest mean, which sets the unit of all values; ``None`` for queueing delays, always in ms."""
        if metric.name.startswith("queueing_delay"):
            return None
        means = (self.mean(cell, metric) for of in self.groups for cell in of)
        return max((mean.mean for mean in means if mean is not None), default=None)

    def contrast(self, cell: Cell, other: Cell, metric: Metric) -> Difference:
        """The difference ``cell - other``."""
        return self.answer.contrast(cell, other, metric.name)

    def ahead(self, metric: Metric, pairs: Sequence[tuple[Cell, Cell]]) -> Ahead:
        """Which of two cells is significantly better, after Holm's correction over all given pairs.

        Returns
        -------
        Ahead
            Each pair in both orders.
        """
        found = [self.contrast(*pair, metric) for pair in pairs]
        sign = -1 if metric.better == "less" else 1
        ahead: dict[tuple[Cell, Cell], int] = {}
        for (cell, other), one, p in zip(pairs, found, adjusted([c.p_value for c in found]), strict=True):
            stands = p is not None and p <= 1.0 - CONFIDENCE and one.estimate is not None
            first = sign * (1 if one.estimate.mean > 0 else -1) if stands and one.estimate else 0
            ahead[cell, other], ahead[other, cell] = first, -first
        return ahead

    @property
    def prices(self) -> tuple[Metric, ...]:
        """The metrics that the figure can show as the price: those of the question, and goodput."""
        asked = (m for m in self.question.asked if m.better and m.name != SHARE and m != self.question.delay)
        listed = dict.fromkeys((self.question.price, *asked, find(GOODPUT)))
        return tuple(filter(self.defined, listed))

    def fronts(self, price: Metric) -> tuple[Front, ...]:
        """The front of each set of circumstances, by delay and the given price."""
        return tuple(self._front(of, price) for of in self.groups)

    @cached_property
    def front(self) -> tuple[Front, ...]:
        """The fronts by the price of the question."""
        return self.fronts(self.question.price)

    def _front(self, group: Sequence[Cell], price: Metric) -> Front:
        two = (self.question.delay, price)
        places = {
            cell: (x.mean * _sign(two[0]), y.mean * _sign(two[1]))
            for cell in group
            if (x := self.mean(cell, two[0])) and (y := self.mean(cell, two[1]))
        }
        cells = sorted(places, key=lambda cell: (-places[cell][1], -places[cell][0]))
        ahead = tuple(self.ahead(metric, self.pairs(cells, places)) for metric in two)
        beats = {
            cell: [
                other
                for other in cells
                if all(a >= b for a, b in zip(places[other], places[cell], strict=True))
                and any(of.get((other, cell), 0) > 0 for of in ahead)
            ]
            for cell in cells
        }
        best = tuple(cell for cell in cells if not beats[cell])
        wins = {cell: sum(cell in by for by in beats.values()) for cell in cells}
        beaten = []
        for cell in group:
            if by := beats.get(cell):
                beaten.append(Beaten(cell, max(by, key=lambda one: (one in best, wins[one]))))
        return Front(tuple(cells), best, tuple(beaten), ahead)

    def pairs(self, cells: Sequence[Cell], places: Mapping[Cell, Sequence[float]]) -> list[tuple[Cell, Cell]]:
        """The pairs that are compared: all of them or, in a sweep, those with a cell that may be undominated.

        Parameters
        ----------
        cells
            The cells.
        places
            Means of the metrics by cell, of which more is better.
        """
        pairs = list(combinations(cells, 2))
        if not self.results.axes:
            return pairs

        def worse(cell: Cell, other: Cell) -> bool:
            return all(a <= b for a, b in zip(places[cell], places[other], strict=True)) and (
                places[cell] != places[other]
            )

        first = {cell for cell in cells if not any(worse(cell, other) for other in cells)}
        return [pair for pair in pairs if first & set(pair)]

    def idles(self, cell: Cell) -> bool:
        """Whether a choice starves the link by whose queue it is judged."""
        one = self.starved.get(cell)
        return one is not None and any(one.queue == of.partition("/")[0] for of in self.answer.queues)

    @cached_property
    def starved(self) -> Mapping[Cell, Starved]:
        """The choices that starve a link, which another choice in the same circumstances uses more."""
        found: dict[Cell, Starved] = {}
        for group in self.groups:
            for queue in self._queues(group):
                for one in self._starved(group, queue):
                    found.setdefault(one.cell, one)
        return found

    def _queues(self, group: Sequence[Cell]) -> list[str]:
        """Return the links that flows without end cross, beginning with those whose queues are judged."""
        plans = [run.plan for cell in group for run in self.results.runs_of(cell)[:1]]
        crossed = dict.fromkeys(link for plan in plans for entry in plan.greedy for link in entry.path)
        judged = {queue.partition("/")[0] for queue in self.answer.queues}
        return sorted(crossed, key=lambda link: link not in judged)

    def _starved(self, group: Sequence[Cell], queue: str) -> list[Starved]:
        values = {
            cell: self.results.values(UTILISATION, cell, Scope(queue))
            for cell in group
            if any(queue in of.path for run in self.results.runs_of(cell)[:1] for of in run.plan.greedy)
        }
        used = {cell: mean for cell, of_seed in values.items() if (mean := estimate(of_seed.values()))}
        if not used:
            return []
        most = max(used, key=lambda cell: used[cell].mean)
        judged = any(queue == of.partition("/")[0] for of in self.answer.queues)
        if not judged and used[most].mean < BUSY_PERCENT:
            return []
        little = BUSY_PERCENT / 100 * used[most].mean
        idle = [cell for cell in used if used[cell].mean < little]
        apart = [difference(values[most], values[cell]) for cell in idle]
        starved = []
        for cell, one, p in zip(idle, apart, adjusted([d.p_value for d in apart]), strict=True):
            lower = one.estimate is not None and one.estimate.mean > 0
            if lower and (p is None or p <= 1.0 - CONFIDENCE):
                starved.append(Starved(cell, queue, used[cell], used[most], most))
        return starved


def trade_off_points(
    answer: Answer, cell: Cell, delay: Metric, price: Metric, like: float | None = None
) -> dict[int, tuple[float, float]]:
    """By seed, the values of two metrics, in displayed units, in those runs of a cell that have both.

    ``like`` is the largest price that is shown (:func:`aqmlab.text.numbers.display_unit`).
    """
    xs, ys = (answer.by_seed(cell, metric.name) for metric in (delay, price))
    return {
        seed: (display_value(x, delay.unit), display_value(y, price.unit, like))
        for seed, x in xs.items()
        if x is not None and (y := ys.get(seed)) is not None
    }


def _is_chosen(key: str) -> bool:
    return not _CHOSEN.isdisjoint(key.split("."))


def _sign(metric: Metric) -> int:
    return -1 if metric.better == "less" else 1
