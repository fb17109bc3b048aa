"""Estimates of the time and space that a sweep needs, made before it begins."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aqmlab.arguments import typed
from aqmlab.language.scenario import Scenario
from aqmlab.sweeps.cases import Cases, PlannedCell, Shard
from aqmlab.sweeps.store import Store, store_path
from aqmlab.sweeps.task import LIVE, SIMULATOR
from aqmlab.system.machine import job_count, memory_cap
from aqmlab.text.numbers import counted

_TRIAL_S = 2.0


@dataclass(frozen=True)
class Forecast:
    """Counts, and estimates of time and space.

    Attributes
    ----------
    cases, arms, seeds
        Numbers of cases, arms and seeds; their product is the number of runs of the sweep.
    host
        The host of the runs: ``"sim"`` or ``"live"``.
    runs
        Number of runs of this shard.
    present
        Number of these runs that are in the store already.
    wall_s
        Time for the other runs, with the requested number in parallel; ``None`` if nothing is known.
    bytes
        Disk space of the other runs; ``None`` if no run was short enough for a complete trial.
    memory_bytes
        The minimum that the parallel runs need, according to their plans.
    how
        The basis of the estimates.
    left_out
        Number of combinations that `[[sweep.exclude]]` leaves out or that cannot run.
    warnings
        Suspicious settings of the scenario, and resources that this machine has too little of.
    """

    cases: int
    arms: int
    seeds: int
    host: str
    runs: int
    present: int
    wall_s: float | None
    bytes: int | None
    memory_bytes: int
    how: str
    left_out: int = 0
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the forecast as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class _Trial:
    weight: float
    wall_s: float
    bytes: int | None


class _EnoughError(Exception):
    """Raised when the time allowed for a trial has run out."""


@typed
def forecast(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    *,
    store: Path | str | None = None,
    seed: int | None = None,
    runs: int | None = None,
    jobs: int | None = None,
    shard: Shard | str | None = None,
    host: str = SIMULATOR,
) -> Forecast:
    """Return how many runs are present, and the estimated cost of the others.

    One run of the cell with the slowest links and one of the cell with the fastest are simulated, each for at
    most two seconds. The cost of the other runs is interpolated linearly in the total capacity of their links
    times the simulated time.

    Parameters
    ----------
    scenario, store, seed, runs, jobs, shard, host
        As for :func:`aqmlab.sweeps.sweep.sweep`. Nothing is written.
    """
    workers = job_count(jobs)
    part = Shard.parse(shard) if isinstance(shard, str) else shard
    cases = Cases(scenario, seed=seed, runs=runs, host=host)
    path = store_path(store)
    there = Store(path) if path.exists() else None
    asked = {digest: cell for cell, _, digest in cases if part is None or part.has(digest)}
    present = set() if there is None else there.present(asked)
    todo = [cell for digest, cell in asked.items() if digest not in present]
    wall_s: float | None = None
    size: int | None = None
    how = "there is nothing to run"
    if todo and host == LIVE:
        wall_s = sum(cell.end_ns for cell in todo) / 1e9
        how = "live runs take place one after the other, each for its own duration plus a few seconds"
    elif todo:
        cells = sorted(todo, key=lambda cell: cell.weight)
        ends = [cells[0]] if cells[0].weight == cells[-1].weight else [cells[0], cells[-1]]
        trials = [_tried(cases, cell) for cell in ends]
        wall_s = sum(_between(trials, cell.weight) for cell in cells) / min(workers, len(cells))
        sizes = [trial.bytes for trial in trials if trial.bytes is not None]
        size = round(sum(sizes) / len(sizes) * len(todo)) if sizes else None
        how = _how(trials)
    workers = 1 if host == LIVE else workers
    memory = sum(sorted(cell.memory_bytes for cell in todo)[-workers:])
    return Forecast(
        cases=cases.case_count,
        arms=len(cases.about["arms"]),
        seeds=len(cases.seeds),
        host=host,
        runs=len(asked),
        present=len(present),
        wall_s=wall_s,
        bytes=size,
        memory_bytes=memory,
        how=how,
        left_out=cases.about["excluded"] + len(cases.left_out),
        warnings=(*cases.about["warnings"], *_lacks(path, size, todo, workers)),
    )


def _lacks(path: Path, size: int | None, todo: Sequence[PlannedCell], workers: int) -> Iterator[str]:
    """Return a remark on each resource that the machine currently has too little of."""
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    free = shutil.disk_usage(there).free
    if size is not None and size > free:
        yield f"the disk of `{path}` has {free / 1e6:.3g} MB left, and about {size / 1e6:.3g} MB are needed"
    cap = memory_cap(workers)
    large = sum(cell.memory_bytes > cap for cell in todo)
    if cap and large:
        yield (
            f"{large} of {counted(len(todo), 'run')} need more memory than the {cap / 1e6:.3g} MB that each"
            f" of {workers} parallel runs may take now, and would fail; give fewer `--jobs`"
        )


def _how(trials: list[_Trial]) -> str:
    tried = "one run" if len(trials) == 1 else "the runs with the slowest and the fastest links"
    cut = any(trial.bytes is None for trial in trials)
    return f"from simulating {tried}{f', for at most {_TRIAL_S:.0f} s each' if cut else ''}"


def _tried(cases: Cases, cell: PlannedCell) -> _Trial:
    """Simulate one run of a cell until it ends or has taken :data:`_TRIAL_S`."""
    from aqmlab import _core

    task = cases.task(cell, cases.seeds[0])
    begun = time.monotonic()
    share = 0.0

    def look(now: Mapping[str, float]) -> None:
        nonlocal share
        share = now["done_s"] / now["total_s"] if now["total_s"] else 0.0
        if share and time.monotonic() - begun >= _TRIAL_S:
            raise _EnoughError

    with tempfile.TemporaryDirectory(prefix="aqmlab-") as parent:
        out = Path(parent) / "run"
        try:
            _core.run_one(task.toml, task.file_name, task.arm, task.seed, out, progress=look)
        except _EnoughError:
            return _Trial(cell.weight, (time.monotonic() - begun) / share, None)
        size = sum(file.stat().st_size for file in out.iterdir())
        return _Trial(cell.weight, time.monotonic() - begun, size)


def _between(trials: list[_Trial], weight: float) -> float:
    """The seconds that a run of a given weight takes, according to the line through the trials."""
    first, last = trials[0], trials[-1]
    if first.weight == last.weight:
        return first.wall_s
    slope = (last.wall_s - first.wall_s) / (last.weight - first.weight)
    return first.wall_s + slope * (weight - first.weight)
