"""Reading the input of metrics for many runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from aqmlab.errors import RecordingError
from aqmlab.metrics import Measured, measure
from aqmlab.recordings.recording import Run, Tables

RUNS_READ_TOGETHER = 500
"""Largest number of runs whose tables one query reads."""
FLOWS_READ_TOGETHER = 200_000
"""The same limit as a number of flows: a row takes a kilobyte of memory while it is read."""
RUNS_KEPT = 4 * RUNS_READ_TOGETHER
"""Largest number of runs whose counts and distributions are kept in memory."""
FLOWS_KEPT = 4_000_000
"""The same limit as a number of flows, including those just read; this many flows take half a gigabyte."""


class Reader:
    """Reads the input of metrics, many runs at a time, and caches that of the last few thousand runs.

    Parameters
    ----------
    remedy
        The remedy for damage, where known.
    """

    def __init__(self, remedy: str = "") -> None:
        self.remedy = remedy
        self._kept: OrderedDict[Path, Measured] = OrderedDict()
        self._flows_kept = 0

    def measured(self, run: Run, then: Sequence[Run]) -> Measured:
        """Return the counts of one run; other runs that will be needed may be read in the same query."""
        if run.path not in self._kept:
            others = (other for other in then if other.path != run.path and other.path not in self._kept)
            self._read(next(_batches([run, *others])))
        found = self._kept[run.path]
        return found if found.run is run else replace(found, run=run)

    def read(self, runs: Sequence[Run]) -> None:
        """Read the runs that are not in memory."""
        for batch in _batches([run for run in runs if run.path not in self._kept]):
            self._read(batch)

    def _read(self, runs: Sequence[Run]) -> None:
        for run, found in zip(runs, measure(Tables(runs, self.remedy)), strict=True):
            self._kept[run.path] = found
            self._flows_kept += len(found.flows)
        while len(self._kept) > len(runs) and (len(self._kept) > RUNS_KEPT or self._flows_kept > FLOWS_KEPT):
            _, oldest = self._kept.popitem(last=False)
            self._flows_kept -= len(oldest.flows)

    def unreadable(self, runs: Sequence[Run]) -> dict[Path, str]:
        """Return the runs that cannot be read, with the reasons."""
        found = {}
        for run in runs:
            try:
                self.read([run])
            except RecordingError as error:
                found[run.path] = "; ".join(str(error).splitlines())
        return found


def _batches(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """The runs in their order, in groups that are read by one query each."""
    batch: list[Run] = []
    flows = 0
    for run in runs:
        own = _flows_of(run)
        if batch and (len(batch) == RUNS_READ_TOGETHER or flows + own > FLOWS_READ_TOGETHER):
            yield batch
            batch, flows = [], 0
        batch.append(run)
        flows += own
    if batch:
        yield batch


def _flows_of(run: Run) -> int:
    """Return the number of flows of a run, according to its manifest."""
    try:
        return run.flow_count
    except (KeyError, TypeError, ValueError):
        # The manifest is damaged, which is reported when the table is read.
        return 0
