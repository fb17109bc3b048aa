"""The selection of runs to export, and the names of their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from aqmlab.errors import RecordingError, UsageError, unknown
from aqmlab.recordings.recording import Run
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results
from aqmlab.system.files import slug


@dataclass(frozen=True)
class Chosen:
    """One run to export: its cell, the queue of interest, and its file's name."""

    run: Run
    cell: Cell
    queue: str
    stem: str


def choose(results: Results, arms: Sequence[str], seed: int | None, queue: str | None) -> list[Chosen]:
    """Return the finished runs of the given arms and seed; by default of all arms and seeds.

    Raises
    ------
    UsageError
        For an unknown arm, seed or queue.
    RecordingError
        If no run has finished.
    """
    for arm in arms:
        if arm not in results.arms:
            raise unknown("arm", arm, results.arms)
    if not results.runs:
        raise RecordingError(f"`{results.path}` holds no finished run")
    if seed is not None and seed not in results.finished_seeds:
        raise unknown("seed", str(seed), map(str, results.finished_seeds))
    if queue is not None:
        results.place(queue)
    wanted = [
        (cell, run)
        for cell in results.cells
        if not arms or cell.arm in arms
        for run in results.runs_of(cell)
        if seed in (None, run.seed)
    ]
    if not wanted:
        raise UsageError("there is no finished run of these arms with this seed")
    stems = [f"{slug(str(cell))}-seed-{run.seed}" for cell, run in wanted]
    several = Counter(stems)
    # Names that differ only in special characters get a number.
    unique = [
        stem if several[stem] == 1 else f"{stem}-{stems[:i].count(stem) + 1}" for i, stem in enumerate(stems)
    ]
    return [
        Chosen(run, cell, queue or results.queue_of(cell), stem)
        for (cell, run), stem in zip(wanted, unique, strict=True)
    ]


def lacks(run: Run, what: str, key: str) -> UsageError:
    """Return the error for a run that did not record ``what``, with the key that would have recorded it."""
    return UsageError(
        f"`{run.path}` recorded no {what}: write `{key}` into [record] of the scenario and run it again"
    )
