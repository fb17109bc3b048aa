"""Results: recordings, and the queries on them that statistics, claims and reports need.

A *case* is one combination of the swept values, a *cell* a case under one arm, and a *run* a cell
with a seed. An experiment has one case, without settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from aqmlab.arguments import typed
from aqmlab.errors import DamageError, RecordingError, unknown
from aqmlab.metrics import (
    EVERY_CLASS,
    EVERY_QUEUE,
    EVERY_ROUTER,
    EVERYTHING,
    Measured,
    Scope,
    find,
    named_classes,
)
from aqmlab.metrics.response_times import CdfUntil
from aqmlab.metrics.scope import Asked
from aqmlab.recordings.plan import Plan
from aqmlab.recordings.recording import Run, Tables
from aqmlab.results.cells import Axis, Cell, LeftOut, axis_named
from aqmlab.results.reader import RUNS_READ_TOGETHER, Reader
from aqmlab.system.stopping import raise_if_stopped
from aqmlab.text.numbers import counted, left_out

_OF_CURVES = {"cdf_gap": CdfUntil.gap, "cdf_crossing": CdfUntil.crossing}

if TYPE_CHECKING:
    from aqmlab.metrics.response_times import CdfUntil

NOT_RUN = "not run"
UNCONGESTED = "uncongested"
"""The name of the arm that serves as the reference for the others in every case."""

Value = float | None
Curve = tuple[str, Cell, Scope]
"""Metric, cell and scope of a distribution function."""


class Missing(NamedTuple):
    """A requested run that does not exist."""

    cell: Cell
    seed: int
    reason: str
    damaged: bool = False
    """Whether a recording exists but cannot be read."""
    skipped: bool = False
    """Whether this machine's kernel lacks the queue of the run's arm."""


# Compared by identity, because each object caches the values computed for it.
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Results:
    """The results of runs: recordings by cell and seed, and their metrics.

    Attributes
    ----------
    path
        The directory of the experiment, of its only run, or of the sweep.
    title, question
        Title and question of the scenario.
    axes
        The swept dimensions in the order of the scenario; none for an experiment.
    arms
        Names of the arms in the order of the scenario, including arms without a finished run.
    cells
        The cells, case by case, and within a case in the order of the arms.
    seeds
        The seeds that were requested: the same in every cell.
    finished
        The runs that have finished, by cell and seed.
    claims
        Claims of the scenario: ``name``, ``text``, ``expect``, ``where``, ``strength``, ``source``,
        and ``line`` and ``column`` of the first character of ``expect``.
    metrics
        Names of the metrics that the scenario requests in addition to those of every experiment.
    missing
        Requested runs that have not finished, with the reasons.
    warnings
        Warnings about allowed but suspicious settings of the scenario.
    left_out
        Cases of a sweep that cannot run, because their values do not fit together; they have no cells.
    details
        The contents of ``experiment.json`` for an experiment.
    reader
        The data read from the recordings.
    """

    path: Path
    title: str
    question: str = ""
    axes: tuple[Axis, ...] = ()
    arms: tuple[str, ...]
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    finished: Mapping[tuple[Cell, int], Run]
    claims: Sequence[Mapping[str, Any]] = ()
    metrics: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    warnings: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    reader: Reader = field(default_factory=Reader)

    def __repr__(self) -> str:
        from aqmlab.text.notebook import names_text, seeds_text

        axes = f"{counted(len(self.cells), 'cell')} over {', '.join(axis.short for axis in self.axes)}, "
        lost = f", {len(self.missing)} missing" if self.missing else ""
        return (
            f"<Results of {self.title!r}: {axes if self.axes else ''}"
            f"{counted(len(self.arms), 'arm')} ({names_text(self.arms)}), {seeds_text(self.seeds)},"
            f" {counted(len(self.runs), 'finished run')}{lost}, in {str(self.path)!r}>"
        )

    def _repr_html_(self) -> str:
        from aqmlab.soundness.notebook import results_html

        return results_html(self)

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The finished runs, cell by cell, and within each cell in ascending order of seed."""
        return tuple(run for cell in self.cells for run in self._of_cells[cell])

    @cached_property
    def _of_cells(self) -> Mapping[Cell, tuple[Run, ...]]:
        return {
            cell: tuple(self.finished[cell, seed] for seed in self.seeds if (cell, seed) in self.finished)
            for cell in self.cells
        }

    @typed
    def runs_of(self, of: Cell | str) -> tuple[Run, ...]:
        """Return the finished runs of a cell or of an arm, sorted by seed; none for a cell left out."""
        if isinstance(of, str):
            if of not in self.arms:
                raise unknown("arm", of, self.arms)
            return tuple(run for cell in self.cells if cell.arm == of for run in self._of_cells[cell])
        return self._of_cells.get(of, ())

    @cached_property
    def tables(self) -> Tables:
        """The recorded tables of the runs."""
        return Tables(self._distinct, self.reader.remedy)

    @property
    def reference(self) -> str | None:
        """The arm ``uncongested``, with which response times are compared; ``None`` if there is none."""
        return next((arm for arm in self.arms if arm.lower() == UNCONGESTED), None)

    @cached_property
    def version(self) -> str:
        """The version of aqmlab that made the runs; if they differ, all versions, separated by commas."""
        return ", ".join(sorted({run.manifest.aqmlab_version for run in self.runs}))

    @typed
    def to_frame(
        self,
        metrics: str | Sequence[str] | None = None,
        library: str | None = None,
        *,
        queue: str | None = None,
        class_name: str = EVERY_CLASS,
    ) -> Any:  # noqa: ANN401 (the type belongs to an optional package)
        """Return a data frame with a row per run: its axes, ``arm``, ``seed`` and one column per metric.

        Parameters
        ----------
        metrics, queue, class_name
            As in :func:`aqmlab.answer`.
        library
            ``"pandas"`` or ``"polars"``; by default the first of them that is installed.

        Raises
        ------
        UsageError
            For an unknown metric, queue, class or library.
        HostError
            If the library is not installed.
        RecordingError
            If a recording cannot be read.
        """
        from aqmlab.results.answers import answer

        return answer(self, metrics, queue=queue, class_name=class_name).to_frame(library)

    @typed
    def axis(self, name: str) -> Axis:
        """Return the axis with this name; an ending of its name suffices if no other axis has that ending.

        Raises
        ------
        UsageError
            If no axis, or more than one, has this name; the message gives the nearest name.
        """
        return axis_named(self.axes, name)

    @typed
    def select(
        self, arm: str | None = None, labels: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[Cell, ...]:
        """Return the cells of an arm (by default of all arms) that have the given labels, by axis.

        Raises
        ------
        UsageError
            For an unknown arm, axis or label; the message gives the nearest name.
        """
        if arm is not None and arm not in self.arms:
            raise unknown("arm", arm, self.arms)
        wanted: dict[str, str] = {}
        for name, label in labels.items():
            axis = self.axis(name)
            if label not in axis.labels:
                raise unknown(f"value of `{axis.name}`", label, axis.labels)
            wanted[axis.name] = label
        return tuple(
            cell
            for cell in self.cells
            if arm in (None, cell.arm) and wanted.items() <= dict(cell.settings).items()
        )

    @property
    def finished_arms(self) -> tuple[str, ...]:
        """The arms with a finished run, in the order of the scenario."""
        return tuple(arm for arm in self.arms if self.runs_of(arm))

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the finished runs, each once, in the order of the cells."""
        return tuple({run.manifest.plan_digest: run.plan for run in self.runs}.values())

    @cached_property
    def finished_seeds(self) -> tuple[int, ...]:
        """The seeds with a finished run in at least one cell, ascending."""
        return tuple(sorted({run.seed for run in self.runs}))

    def measured(self, cell: Cell | None = None) -> tuple[Measured, ...]:
        """Counts, integrals and distributions of the runs of a cell, or of all runs.

        Raises
        ------
        RecordingError
            If a recording cannot be read.
        """
        return tuple(map(self._measured, self.runs if cell is None else self.runs_of(cell)))

    @typed
    def values(self, metric: str, cell: Cell, scope: Scope = EVERYTHING) -> dict[int, Value]:
        """The values of a metric in the finished runs of a cell, by seed; ``None`` where it is not defined.

        Parameters
        ----------
        metric
            Its name; settings in braces take precedence over the scope.
        cell
            One of ``cells``.
        scope
            What the values are about, for instance ``aqmlab.Scope(class_name="web")``.

        Raises
        ------
        UsageError
            For an unknown metric, queue, class, kind, router or parameter, or one that the metric
            does not accept.
        RecordingError
            If a recording cannot be read.
        """
        raise_if_stopped()
        found = find(metric)
        asked = Asked(found.base or metric, found.within(scope))
        if (cell, asked) not in self._values:
            self._values[cell, asked] = self._computed(cell, asked)
        return dict(self._values[cell, asked])

    def of_curves(self, function: str, one: Curve, other: Curve) -> dict[int, Value]:
        """A percentage that compares two distribution functions, for each seed that finished in both cells.

        Parameters
        ----------
        function
            ``"cdf_gap"``, the largest distance between them, or ``"cdf_crossing"``, the share of
            requests that take longer than the time at which the first function falls behind the other.
        one, other
            Metric, cell and scope, as in :meth:`values`. Each metric must be the value of a distribution
            function at a given time; the functions are compared up to the time given for ``one``.

        Raises
        ------
        UsageError
            If a metric is not a value of a distribution function, or for the reasons given at :meth:`values`.
        RecordingError
            If a recording cannot be read.
        """
        raise_if_stopped()
        first, second = (self._cdfs(*curve) for curve in (one, other))
        pairs = {seed: (first[seed], second[seed]) for seed in first if seed in second}
        compare = _OF_CURVES[function]
        return {seed: None if a is None or b is None else compare(a, b) for seed, (a, b) in pairs.items()}

    def _cdfs(self, metric: str, cell: Cell, scope: Scope) -> dict[int, CdfUntil | None]:
        found = find(metric)
        runs = self.measured(cell)
        if not runs:
            return {}
        here = self._here(runs, cell, scope)
        if here is None:
            return dict.fromkeys(run.run.seed for run in runs)
        return {run.run.seed: found.distribution(run, here) for run in runs}

    def _computed(self, cell: Cell, asked: Asked) -> Mapping[int, Value]:
        metric = find(asked.metric)
        runs = self.measured(cell)
        if not runs:
            return {}
        here = self._here(runs, cell, asked.scope)
        if here is None:
            return dict.fromkeys(run.run.seed for run in runs)
        routers = {name for run in runs for name in run.run.plan.nodes}
        if here.router not in routers and here.router != EVERY_ROUTER:
            raise unknown("router", here.router, sorted(routers))
        return {run.run.seed: metric.compute(run, here) for run in runs}

    def _here(self, runs: Sequence[Measured], cell: Cell, scope: Scope) -> Scope | None:
        """The scope with the queue, by default the cell's; ``None`` if only other cells have the class."""
        queues = {name for run in runs for name, _ in run.queues}
        here = {name for run in runs for _, name in run.queues}
        asked = named_classes(scope.class_name)
        if not here.issuperset(asked):
            everywhere = here.union(entry.name for plan in self.plans for entry in plan.classes)
            for name in asked:
                if name not in everywhere:
                    raise unknown("class", name, sorted(everywhere))
            if here.isdisjoint(asked):
                return None
        queue = self.queue_of(cell, scope.class_name) if scope.queue is None else scope.queue
        if queue not in queues and queue != EVERY_QUEUE:
            raise unknown("queue", queue, sorted(queues))
        return replace(scope, queue=queue)

    def queue_of(self, cell: Cell, class_name: str = EVERY_CLASS) -> str:
        """Return the queue by which a cell, or a class in it, is judged by default.

        It is the one called ``bottleneck``, or else the one whose link was busiest over all runs of all
        cells. A cell without a queue of that name is judged by its own busiest queue. A class whose data do
        not cross that queue is judged by the busiest queue that they cross.
        """
        runs = self.measured(cell)
        everywhere = self._bottleneck
        there = any((everywhere, EVERY_CLASS) in run.queues for run in runs)
        return _judged(runs, everywhere if there else bottleneck(runs), class_name)

    def place(self, queue: str | None = None) -> str:
        """The queue with a given name; by default that of the first cell that has a finished run.

        Raises
        ------
        UsageError
            If no run has a queue of this name.
        RecordingError
            If no run has finished, or a recording cannot be read.
        """
        if not self.runs:
            raise RecordingError(f"`{self.path}` holds no finished run")
        if queue is None:
            return self.queue_of(next(cell for cell in self.cells if self.runs_of(cell)))
        known = {name for run in self.measured() for name, _ in run.queues}
        if queue not in known and queue != EVERY_QUEUE:
            raise unknown("queue", queue, sorted(known))
        return queue

    @cached_property
    def _bottleneck(self) -> str:
        if any(link.name == "bottleneck" for run in self.runs for link in run.links):
            return "bottleneck"
        return bottleneck(self.measured())

    def sound(self) -> Results:
        """The same results, but with unreadable runs listed as missing; each reason names the run's file."""
        broken: dict[Path, str] = {}
        for i in range(0, len(self._distinct), RUNS_READ_TOGETHER):
            together = self._distinct[i : i + RUNS_READ_TOGETHER]
            try:
                self.reader.read(together)
            except RecordingError:
                broken |= self.reader.unreadable(together)
        if not broken:
            return self
        lost = [
            Missing(cell, seed, broken[run.path], damaged=True)
            for (cell, seed), run in self.finished.items()
            if run.path in broken
        ]
        rest = {at: run for at, run in self.finished.items() if run.path not in broken}
        return replace(self, finished=rest, missing=(*self.missing, *lost))

    def damage(self) -> RecordingError | None:
        """Return the error about unreadable recordings, or ``None`` if there are none."""
        reasons = list(dict.fromkeys(missing.reason for missing in self.missing if missing.damaged))
        if not reasons:
            return None
        return DamageError(
            [f"{left_out(len(reasons), 'recording')}: {reasons[0]}", *reasons[1:]],
            "`aqmlab sweep` repeats damaged runs; an experiment is repaired by `aqmlab run --resume`",
        )

    def _measured(self, run: Run) -> Measured:
        raise_if_stopped()
        i = self._places[run.path]
        return self.reader.measured(run, self._distinct[i : i + RUNS_READ_TOGETHER])

    @cached_property
    def _values(self) -> dict[tuple[Cell, Asked], Mapping[int, Value]]:
        return {}

    @cached_property
    def _distinct(self) -> list[Run]:
        # Cells may share a run, if two settings resolve to the same plan.
        return list({run.path: run for run in self.runs}.values())

    @cached_property
    def _places(self) -> dict[Path, int]:
        return {run.path: i for i, run in enumerate(self._distinct)}


def of_runs(runs: Iterable[Run], *, arms: Sequence[str], seeds: Sequence[int], **about: Any) -> Results:  # noqa: ANN401 (what :class:`Results` has)
    """Return results without swept values: one cell per arm. The reason for a missing run is "not run"."""
    cells = {arm: Cell((), arm) for arm in arms}
    finished = {(cells[run.arm], run.seed): run for run in runs}
    missing = [
        Missing(cell, seed, NOT_RUN)
        for cell in cells.values()
        for seed in seeds
        if (cell, seed) not in finished
    ]
    return Results(
        arms=tuple(arms),
        cells=tuple(cells.values()),
        seeds=tuple(seeds),
        finished=finished,
        missing=tuple(missing),
        **about,
    )


def bottleneck(runs: Sequence[Measured]) -> str:
    """The queue called ``bottleneck``, or else the one whose link was busiest over all runs."""
    busy = _busy(runs)
    if not busy:
        raise RecordingError("the recording has no queue")
    return "bottleneck" if "bottleneck" in busy else max(busy, key=lambda name: (busy[name], name))


def _judged(runs: Sequence[Measured], queue: str, class_name: str) -> str:
    """Return the given queue if the class's data cross it, otherwise the busiest queue that they do cross."""
    names = set(named_classes(class_name))
    if class_name == EVERY_CLASS or any(names - run.run.plan.elsewhere(queue) for run in runs):
        return queue
    busy = {
        name: ns
        for name, ns in _busy(runs).items()
        if any(names - run.run.plan.elsewhere(name) for run in runs)
    }
    return max(busy, key=lambda name: (busy[name], name)) if busy else queue


def _busy(runs: Sequence[Measured]) -> dict[str, int]:
    """The total time, over all runs, for which the link of each queue was busy; by queue."""
    busy: dict[str, int] = {}
    for run in runs:
        for (queue, class_name), totals in run.queues.items():
            if class_name == EVERY_CLASS and totals.has_link:
                busy[queue] = busy.get(queue, 0) + totals["busy_ns"]
    return busy
