"""Reading what metrics need of many runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aqmlab.errors import RecordingError
from aqmlab.metrics import Measured, measure
from aqmlab.recording import Experiment, Run

RUNS_READ_TOGETHER = 500
"""Runs whose tables one query reads."""
RUNS_KEPT = 4 * RUNS_READ_TOGETHER
"""Runs of which counts and distributions are kept in memory."""


class Reader:
    """Reads what metrics need of runs: of many at a time, and keeps what it found of the last few thousand.

    Parameters
    ----------
    whole
        An experiment whose runs they are, if there is one: who has measured it has read them.
    """

    def __init__(self, whole: Experiment | None = None) -> None:
        self._whole = whole
        self._kept: OrderedDict[Path, Measured] = OrderedDict()

    def measured(self, run: Run, then: Sequence[Run]) -> Measured:
        """The counts of one run; if it was not read before, then of others with it that will be asked for."""
        if run.path not in self._kept:
            self.read([run, *(other for other in then if other.path != run.path)])
        found = self._kept[run.path]
        return found if found.run is run else replace(found, run=run)

    def read(self, runs: Sequence[Run]) -> None:
        """Read runs, unless they are kept."""
        runs = [run for run in runs if run.path not in self._kept]
        if not runs:
            return
        experiment = self._whole
        if experiment is None or list(experiment.runs) != runs:
            experiment = Experiment(Path(), "", "", (), (), tuple(runs))
        for run, found in zip(runs, measure(experiment), strict=True):
            self._kept[run.path] = found
        while len(self._kept) > max(RUNS_KEPT, len(runs)):
            self._kept.popitem(last=False)

    def unreadable(self, runs: Sequence[Run]) -> dict[Path, str]:
        """Which of some runs cannot be read, and why."""
        found = {}
        for run in runs:
            try:
                self.read([run])
            except RecordingError as error:
                found[run.path] = str(error)
        return found


__all__ = ["RUNS_KEPT", "RUNS_READ_TOGETHER", "Reader"]
