"""The answer: arms by metrics, each a mean over seeds with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aqmlab.arguments import names
from aqmlab.errors import RecordingError, UsageError, unknown
from aqmlab.figures import counted, estimate_cell, listed, with_unit
from aqmlab.frames import REAL, TEXT, WHOLE, Columns, Framed
from aqmlab.grid import Column, Grid
from aqmlab.metrics import EVERY_CLASS, EVERY_QUEUE, Measured, Metric, find, measure
from aqmlab.recording import Experiment
from aqmlab.stats import Estimate, estimate, paired_difference

HEADLINE = (
    "goodput_bps",
    "utilisation_percent",
    "queueing_delay_mean_s",
    "queueing_delay_p50_s",
    "queueing_delay_p95_s",
    "queueing_delay_p99_s",
    "backlog_mean_packets",
    "drop_percent",
    "mark_percent",
    "jain_index",
    "timeouts_per_flow",
)
"""What the answer table shows, with the metrics that a scenario names, unless asked for something else."""


@dataclass(frozen=True, repr=False)
class Table(Framed):
    """Metrics of the arms of an experiment at one queue.

    Printed, it is the table of the command line. As a data frame (:meth:`to_frame`) it has a row per run,
    with the columns ``arm``, ``seed`` and one per metric.

    Attributes
    ----------
    queue, class_name
        Where and of whom; class ``*`` is everybody whose data cross the queue, queue ``*`` all of them.
    arms
        Those with a finished run, in the order of the scenario.
    metrics
        The columns.
    values
        By arm, metric name and seed; ``None`` where the metric is not defined.
    """

    experiment: Experiment
    queue: str
    class_name: str
    arms: tuple[str, ...]
    metrics: tuple[Metric, ...]
    values: Mapping[str, Mapping[str, Mapping[int, float | None]]] = field(repr=False)

    def estimate(self, arm: str, metric: str) -> Estimate | None:
        """Mean over the seeds, with a 95 % t interval where there are at least two.

        Raises
        ------
        UsageError
            For an arm or a metric that the table does not have, with the nearest name.
        """
        return estimate(self._of(arm, metric).values())

    def _of(self, arm: str, metric: str) -> Mapping[int, float | None]:
        if arm not in self.values:
            raise unknown("arm", arm, self.arms)
        if metric not in self.values[arm]:
            find(metric)
            raise unknown("metric in this table", metric, self.values[arm])
        return self.values[arm][metric]

    def defined_in(self, arm: str, metric: str) -> str:
        """``"3 of 10"`` where only some seeds have the figure: those without it may be the bad ones."""
        values = self._of(arm, metric).values()
        count = sum(value is not None for value in values)
        return f"{count} of {len(values)}" if 0 < count < len(values) else ""

    def difference(self, arm: str, other: str, metric: str) -> Estimate | None:
        """Mean of ``arm - other`` over the seeds that both have run."""
        return paired_difference(self._of(arm, metric), self._of(other, metric))

    def without_chance(self) -> tuple[str, ...]:
        """Arms of which all seeds gave exactly the same: nothing in them is random, no interval is due."""
        return tuple(arm for arm in self.arms if _all_the_same(self.values[arm].values()))

    def chance_note(self) -> str:
        """What :meth:`without_chance` finds, in words; empty if it finds nothing."""
        fixed = self.without_chance()
        return f"nothing is random in {', '.join(fixed)}: all seeds gave the same" if fixed else ""

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of traffic, in the order of the scenario."""
        return tuple(dict.fromkeys(entry.name for run in self.experiment.runs for entry in run.plan.classes))

    @property
    def crossed_by(self) -> tuple[str, ...]:
        """Those whose data cross the queue in some arm: figures of flows are of theirs."""
        plans = {run.manifest.plan_digest: run.plan for run in self.experiment.runs}.values()
        if self.queue == EVERY_QUEUE:
            return self.classes
        absent = [plan.elsewhere(self.queue) for plan in plans]
        return tuple(name for name in self.classes if any(name not in of_arm for of_arm in absent))

    def where_text(self) -> str:
        """Of which queue and whom the figures are, in words."""
        of_whom = "" if self.class_name == EVERY_CLASS else f", class {self.class_name}"
        if self.queue == EVERY_QUEUE:
            return f"all queues: every flow of the network{of_whom}"
        others = [name for name in self.classes if name not in self.crossed_by]
        if not others or of_whom:
            return f"queue {self.queue}{of_whom}"
        crossed_by = listed(self.crossed_by) if self.crossed_by else "nobody's data"
        return f"queue {self.queue}, crossed by {crossed_by} (not by {listed(others)})"

    def grid(self) -> Grid:
        """The table as text: a row per metric that any arm has, a column per arm."""
        grid = Grid("", *(Column(arm, right=True) for arm in self.arms), turns=True)
        for metric in self.metrics:
            estimates = [self.estimate(arm, metric.name) for arm in self.arms]
            if any(estimates):
                cells = zip(self.arms, estimates, strict=True)
                texts = [
                    estimate_cell(est, metric.unit, self.defined_in(arm, metric.name)) for arm, est in cells
                ]
                grid.add(with_unit(metric.label, metric.unit), *texts)
        return grid

    def footnote(self) -> str:
        """Where the figures are of, over which seeds, and what is missing."""
        seeds = self.experiment.finished_seeds
        where = self.where_text()
        missing = len(self.experiment.missing)
        lost = f"; {missing} {'run is' if missing == 1 else 'runs are'} missing" if missing else ""
        if len(seeds) == 1:
            return f"{where}; one run (seed {seeds[0]}): no interval{lost}"
        chance = f"; {note}" if (note := self.chance_note()) else ""
        seen = f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]})"
        return f"{where}; mean ± 95 % t interval over {seen}{lost}{chance}"

    def __repr__(self) -> str:
        from aqmlab.notebook import names_text

        metrics = counted(len(self.metrics), "metric")
        return (
            f"<Table of {self.experiment.title!r}: {metrics} of {names_text(self.arms)}; {self.footnote()}>"
        )

    def _repr_html_(self) -> str:
        from aqmlab.notebook import block, note, title

        return block(title(self.experiment.title), self.grid().html(), note(self.footnote()))

    def _frame_columns(self) -> Columns:
        runs = [(arm, seed) for arm in self.arms for seed in self._seeds(arm)]
        return {
            "arm": (TEXT, [arm for arm, _ in runs]),
            "seed": (WHOLE, [seed for _, seed in runs]),
            **{
                metric.name: (REAL, [self.values[arm][metric.name].get(seed) for arm, seed in runs])
                for metric in self.metrics
            },
        }

    def _seeds(self, arm: str) -> list[int]:
        return [run.seed for run in self.experiment.runs_of(arm)]

    def __str__(self) -> str:
        return f"{self.experiment.title}\n\n{self.grid()}\n{self.footnote()}"

    def to_json(self) -> dict[str, Any]:
        """The table as plain data: what ``--json`` prints."""
        return {
            "format_version": 1,
            "title": self.experiment.title,
            "path": str(self.experiment.path),
            "queue": self.queue,
            "crossed_by": list(self.crossed_by),
            "class": self.class_name,
            "confidence": 0.95,
            "metrics": [
                {"name": m.name, "unit": m.unit, "definition": m.definition, "source": m.source}
                for m in self.metrics
            ],
            "arms": [{"name": arm, "values": self._arm_json(arm)} for arm in self.arms],
            "missing_runs": [{"arm": arm, "seed": seed} for arm, seed in self.experiment.missing],
        }

    def _arm_json(self, arm: str) -> dict[str, Any]:
        result = {}
        for metric in self.metrics:
            of_seed = self.values[arm][metric.name]
            est = self.estimate(arm, metric.name)
            result[metric.name] = {
                "mean": est and est.mean,
                "half_width": est and est.half_width,
                "n": est.n if est else 0,
                "by_seed": {str(seed): value for seed, value in of_seed.items()},
            }
        return result


def _all_the_same(of_metrics: Iterable[Mapping[int, float | None]]) -> bool:
    columns = [list(of_seed.values()) for of_seed in of_metrics]
    return bool(columns) and all(len(values) > 1 and len(set(values)) == 1 for values in columns)


def table(
    experiment: Experiment,
    metrics: str | Sequence[str] | None = None,
    *,
    queue: str | None = None,
    class_name: str = EVERY_CLASS,
    measured: Sequence[Measured] | None = None,
) -> Table:
    """Compute metrics for every arm and seed.

    Parameters
    ----------
    experiment
        From :func:`aqmlab.load`.
    metrics
        Names; those of :data:`HEADLINE` and the experiment's own if not given.
    queue
        The queue to look at; the bottleneck (:func:`bottleneck`) if not given, or of a class that does not
        cross it the busiest that it crosses. Figures of flows are of those whose data cross it; ``*`` is the
        whole network.
    class_name
        A traffic class; everybody if not given.
    measured
        The counts of the runs, if they have been read already.

    Raises
    ------
    UsageError
        For an unknown metric, queue or class.
    RecordingError
        If no run has finished, or a recording cannot be read.
    """
    given = names(metrics)
    wanted = dict.fromkeys((*HEADLINE, *experiment.metrics) if given is None else given)
    chosen = tuple(map(find, wanted))
    runs = measure(experiment) if measured is None else measured
    if not runs:
        raise RecordingError(f"`{experiment.path}` holds no finished run")
    _known(class_name, {c for run in runs for _, c in run.queues}, "class")
    if queue is None:
        queue = judged(runs, bottleneck(runs), class_name)
    elif queue != EVERY_QUEUE:
        _known(queue, {q for run in runs for q, _ in run.queues}, "queue")
    values: dict[str, dict[str, dict[int, float | None]]] = {}
    for run in runs:
        of_arm = values.setdefault(run.run.arm, {metric.name: {} for metric in chosen})
        for metric in chosen:
            of_arm[metric.name][run.run.seed] = metric.compute(run, queue, class_name)
    arms = tuple(arm for arm in experiment.arms if arm in values)
    return Table(experiment, queue, class_name, arms, chosen, values)


def bottleneck(runs: Sequence[Measured]) -> str:
    """The queue called ``bottleneck``, or else the one whose link was busiest over all runs."""
    busy = _busy(runs)
    if not busy:
        raise RecordingError("the recording has no queue")
    return "bottleneck" if "bottleneck" in busy else max(busy, key=lambda name: (busy[name], name))


def judged(runs: Sequence[Measured], queue: str, class_name: str) -> str:
    """A queue if the data of a class cross it, or else the one of those they cross whose link was busiest."""
    if class_name == EVERY_CLASS or any(class_name not in run.run.plan.elsewhere(queue) for run in runs):
        return queue
    busy = {
        name: ns
        for name, ns in _busy(runs).items()
        if any(class_name not in run.run.plan.elsewhere(name) for run in runs)
    }
    return max(busy, key=lambda name: (busy[name], name)) if busy else queue


def _busy(runs: Sequence[Measured]) -> dict[str, int]:
    """By queue, how long its link was busy in all runs together."""
    busy: dict[str, int] = {}
    for run in runs:
        for (queue, class_name), totals in run.queues.items():
            if class_name == EVERY_CLASS and totals.has_link:
                busy[queue] = busy.get(queue, 0) + totals["busy_ns"]
    return busy


def _known(name: str, known: set[str], what: str) -> str:
    if name in known:
        return name
    raise UsageError(f"there is no {what} `{name}`; there are {', '.join(f'`{k}`' for k in sorted(known))}")
