"""Runs of an uncongested scenario, and the loads that they offered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aqmlab.calibration.network import Uncongested
from aqmlab.calibration.places import PAYLOAD, Load
from aqmlab.calibration.population import Population
from aqmlab.errors import ScenarioError, UsageError
from aqmlab.metrics import EVERY_CLASS, Measured
from aqmlab.sweeps.progress import Progress
from aqmlab.sweeps.sweep import sweep
from aqmlab.text.numbers import counted, number

MOST_BUSY = 0.3
"""Share of the time for which a link may be busy and still count as uncongested.

At this load, packets of equal size that arrive as a Poisson process would wait for a fifth of a
transmission time on average (M/D/1).
"""

Loads = Mapping[float, Mapping[int, float]]
"""Load in bit/s by value and seed."""

Watcher = Callable[[str, Progress], object]
"""Receives the current run and its progress."""


class CongestedError(UsageError):
    """A link that should be uncongested is congested.

    Attributes
    ----------
    loads
        The loads that were offered despite the congestion, by value and seed.
    """

    def __init__(self, message: str, loads: Loads) -> None:
        super().__init__(message)
        self.loads = loads


@dataclass
class Trials:
    """Runs at several values, each kept in a store.

    Attributes
    ----------
    scenario
        The uncongested scenario.
    network
        The rules by which the scenario was made uncongested.
    asked
        The requested load.
    seed
        The first seed.
    store, jobs, watcher
        As in :func:`aqmlab.sweep`.
    """

    scenario: Mapping[str, Any]
    network: Uncongested
    asked: Load
    seed: int
    store: Path | str | None = None
    jobs: int | None = None
    watcher: Watcher | None = None
    runs_done: int = field(default=0, init=False)

    @property
    def first(self) -> Population:
        """The population whose number is sought; the others keep their ratio to it."""
        return self.network.populations[0]

    def others_at(self, value: float) -> list[float]:
        """Return the numbers of all populations for the given number of the first one."""
        factor = value / self.first.written
        return [value, *(one.rounded(factor * one.written) for one in self.network.populations[1:])]

    def loads(self, values: Sequence[float], runs: int, what: str) -> Loads:
        """Return the load at each value by seed.

        Raises
        ------
        CongestedError
            If a link drops packets, or is busy more than :data:`MOST_BUSY` of the time.
        UsageError
            If a value exceeds the capacity of this machine.
        """
        watcher = self.watcher
        try:
            under_way = sweep(
                self._swept(values),
                store=self.store,
                seed=self.seed,
                runs=runs,
                jobs=self.jobs,
                report=False,
                progress=None if watcher is None else lambda now: watcher(what, now),
            )
        except ScenarioError as error:
            reason = error.errors[0]["message"] if error.errors else str(error)
            raise UsageError(f"{self.first.text(max(values))} cannot be run: {reason}") from error
        results = under_way.wait()
        self.runs_done += under_way.progress.runs_done
        by_value = dict(zip(values, results.cells, strict=True))
        measured = {value: results.measured(cell) for value, cell in by_value.items()}
        loads = {
            value: {run.run.seed: self._load(run) for run in runs_of} for value, runs_of in measured.items()
        }
        for value, runs_of in measured.items():
            for run in runs_of:
                if congestion := self._congestion(run):
                    at = f"{self.first.text(value)}, seed {run.run.seed}"
                    raise CongestedError(f"links are congested ({at}): {congestion}", loads)
        return loads

    def _swept(self, values: Sequence[float]) -> dict[str, Any]:
        """Return the scenario with one case per value."""
        (arm,) = self.scenario["arm"]
        numbers = [self.others_at(value) for value in values]
        axis: dict[str, Any] = {"name": "value", "labels": [self.first.text(value) for value in values]}
        for i, one in enumerate(self.network.populations):
            axis[one.path] = [one.toml(each[i]) for each in numbers]
        own = {path: value for path, value in arm.items() if path not in axis or path == "name"}
        return {**self.scenario, "arm": [own], "sweep": {"zip": [axis]}}

    def _load(self, run: Measured) -> float:
        """Return the bits that arrived at the link from the populations, divided by the measured interval."""
        total = 0
        for one in self.network.populations:
            counts = run.queues.get((self.asked.link.name, one.name))
            if counts is None:
                continue
            packets = counts["arrivals_packets"]
            if self.asked.count == PAYLOAD:
                # Without losses, no packet carries TCP options, so all headers have the same length.
                total -= packets * int((one.of.tcp or {})["header_bytes"])
            else:
                total += packets * self.asked.link.overhead_bytes
            total += counts["arrivals_bytes"]
        return 8 * total / run.interval_s

    def _congestion(self, run: Measured) -> str:
        """Return the evidence that links are congested; empty if there is none."""
        for link in run.run.plan.links:
            counts = run.queues.get((link.name, EVERY_CLASS))
            if counts is None:
                continue
            kept = self.network.is_kept(link.name)
            remedy = "leave it out of `--keep`" if kept else "give a larger `--faster`"
            busy = counts["busy_ns"] / run.interval_ns
            if dropped := counts.sum_over_reasons("dropped"):
                return f"`{link.name}` with {link.rate} drops {counted(dropped, 'packet')}; {remedy}"
            if busy > MOST_BUSY and not kept:
                return (
                    f"`{link.name}` with {link.rate} is busy {number(100 * busy, 2)} % of the time,"
                    f" more than {100 * MOST_BUSY:.0f} %; {remedy}"
                )
        return ""
