"""Sweeps: every cell of a scenario with every seed, as far as the store does not have them already."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from aqmlab.errors import AqmlabError, HostError, RecordingError, RunError, unknown
from aqmlab.experiment import job_count, memory_cap
from aqmlab.figures import counted
from aqmlab.results import Cell, Results
from aqmlab.scenario import Scenario
from aqmlab.stopping import Stop, Stopped, raise_if_stopped, wait_heeding_signals
from aqmlab.sweeps.cases import Cases, PlannedCell, Shard
from aqmlab.sweeps.conclusion import Conclusion, conclude
from aqmlab.sweeps.directory import Recordings, SweepFile, update_about
from aqmlab.sweeps.executor import Executor, LocalExecutor
from aqmlab.sweeps.parcel import RECORDINGS, SUMMARIES, Bring, enough
from aqmlab.sweeps.progress import Intervals, Progress
from aqmlab.sweeps.store import Store, alone_in, kept_in, store_path, writing
from aqmlab.sweeps.tally import EndedRun, Tally

if TYPE_CHECKING:
    from aqmlab.claims import Scored
    from aqmlab.sweeps.connection import Cluster

Watcher = Callable[[Progress], object]
"""Told how far the runs are, about ten times a second."""

LOCAL = "local"
DASK = "dask"

_TICK_S = 0.1
_TASKS_AHEAD = 256
"""Tasks that wait at the executor, so that no worker waits while somebody looks at results."""
_READ_AHEAD = 100
"""New runs that are worth being read while others are done."""
_LOOK_S = 5.0
"""Between looks at the intervals, at least ..."""
_SHARE_OF_LOOKING = 0.05
"""... and so that no more of the time is spent on them."""


class Sweep:
    """A sweep that is under way, or has ended; :func:`sweep` makes one.

    Iterating gives each run as it ends (:class:`~aqmlab.sweeps.tally.Ended`). As a context, it is cancelled
    when the block is left by an exception.

    Attributes
    ----------
    cases
        What was asked for.
    path
        Its directory in the store.
    workers
        Runs side by side.
    damaged
        By digest, what is wrong with runs that were there: they are made anew.
    """

    def __init__(  # noqa: PLR0913 (keyword arguments)
        self,
        cases: Cases,
        store: Store,
        *,
        jobs: int,
        shard: Shard | None = None,
        among: Container[Cell] | None = None,
        force: bool = False,
        watcher: Watcher | None = None,
        report: bool = True,
        cluster: Cluster | None = None,
    ) -> None:
        self.cases = cases
        self.path = store.sweep_directory(cases.name)
        self._store = store
        self._force = force
        self._watcher = watcher
        self._cluster = cluster
        self._bring = _to_bring(cases, cluster)
        cells: dict[str, tuple[PlannedCell, int]] = {}
        for cell, seed, digest in cases.runs(among):
            if shard is None or shard.has(digest):
                cells.setdefault(digest, (cell, seed))
        self.damaged = {} if force else _damaged(store, cells, whole=self._bring == RECORDINGS)
        todo = dict.fromkeys(d for d in cells if force or d in self.damaged or not store.has(d))
        self.workers = max(min(jobs, len(todo)), 1)
        self._tally = Tally(cells, todo.keys())
        with writing(store.path):
            self.path.mkdir(parents=True, exist_ok=True)
            with alone_in(self.path):
                self._update_about()
        self._recordings = Recordings(store, SweepFile(self.path))
        self._intervals = Intervals()
        self._read, self._looked_s, self._look_took_s, self._told_s = 0, time.monotonic(), 0.0, 0.0
        self._stop, self._over = Stop(), threading.Event()
        self._error: BaseException | None = None
        self._whole, self._report = shard is None, report
        self._partial = among is not None
        self._conclusion: Conclusion | None = None
        self.remarks: tuple[str, ...] = ()
        self._thread = threading.Thread(target=self._run, name="sweep", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        now = self._tally.progress()
        state = "ended" if self.done else "under way"
        done = f"{now.runs_present + now.runs_done} of {counted(now.runs_total, 'run')}"
        return f"<Sweep {state}: {done} done, in {str(self.path)!r}>"

    @property
    def progress(self) -> Progress:
        """How far it is now."""
        return self._tally.progress()

    @property
    def results(self) -> Results:
        """What is there now."""
        if self._conclusion is not None:
            return self._conclusion.results
        return Recordings(self._store, SweepFile(self.path)).results(self._tally.there())

    @property
    def claims(self) -> tuple[Scored, ...]:
        """The scored claims, once it has ended; none while other shards are to come."""
        return () if self._conclusion is None else self._conclusion.claims

    @property
    def report(self) -> Path | None:
        """The report, once it has ended; none while other shards are to come."""
        return None if self._conclusion is None else self._conclusion.report

    @property
    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._over.is_set()

    def __iter__(self) -> Iterator[EndedRun]:
        """Each run as it ends, from the first on; ends with the last one."""
        return iter(self._tally)

    def wait(self) -> Results:
        """Wait until it has ended, tables included.

        Raises
        ------
        RunError
            If runs failed; the others are kept, and ``results`` has them.
        RecordingError
            If runs that were there cannot be read; ``results`` is without them.
        HostError
            If this machine cannot go on: no space, no permission. What is done is kept.
        KeyboardInterrupt
            If interrupted: the sweep is cancelled then. What is done is kept.
        """
        with self:
            # Not by `join`: interrupted, it would take the thread for ended.
            wait_heeding_signals(self._over)
        self._thread.join()
        if self._error is not None:
            raise self._error
        failure = self._failure()
        if failure is not None:
            raise failure
        return self.results

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel it, if the block is left by an exception."""
        if error is not None and not self.done:
            self.cancel()
            if isinstance(error, KeyboardInterrupt):
                error.add_note(kept_in(self._store.path))

    def cancel(self) -> None:
        """End it now: runs in progress are dropped, finished ones kept, and tables as they were."""
        self._stop.ask()
        while not self._over.wait(_TICK_S):
            self._stop.ask()
        self._thread.join()

    def _executor(self) -> Executor:
        if self._cluster is not None and self._bring is not None:
            from aqmlab.sweeps.cluster import DaskExecutor

            return DaskExecutor(self._cluster, self._store, bring=self._bring, replace=self._force)
        cap = memory_cap(self.workers)
        return LocalExecutor(self._store.path, self.workers, memory_cap=cap, replace=self._force)

    def _run(self) -> None:
        try:
            with self._stop.heeded():
                try:
                    if self._tally.todo:
                        self._work()
                finally:
                    self._tally.close()
                raise_if_stopped()
                self._finish()
        except Stopped:
            # Nobody waits for it: who asks for the same again goes on where it was.
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._over.set()

    def _work(self) -> None:
        """Have all runs done that are to be done."""
        tasks = (
            replace(self.cases.task(*self._tally.cells[digest]), replace=digest in self.damaged)
            for digest in self._tally.todo
        )
        executor = self._executor()
        self.workers = executor.workers
        waiting = 0
        try:
            _warm_up()
            while not self._stop.asked:
                while waiting < _TASKS_AHEAD + self.workers and (task := next(tasks, None)) is not None:
                    executor.submit(task)
                    waiting += 1
                if not waiting:
                    break
                outcome = executor.outcome(_TICK_S)
                if outcome is not None:
                    waiting -= 1
                    if outcome.status == "machine":
                        raise HostError(f"{outcome.reason}; finished runs are kept in `{self._store.path}`")
                    self._tally.add(outcome)
                self._tally.note = executor.note
                self._look()
        finally:
            self.remarks = tuple(executor.remarks)
            executor.close(now=waiting > 0)
            # Workers that were ended have left what they were at.
            self._store.sweep_out()

    def _look(self) -> None:
        """Tell how far it is; read new runs, while others are being done, and what intervals they make."""
        now = time.monotonic()
        if self._watcher is not None and now - self._told_s >= _TICK_S:
            self._told_s = now
            self._watcher(self.progress)
        fresh = len(self._tally) - self._read
        pause = max(_LOOK_S, self._look_took_s / _SHARE_OF_LOOKING)
        if fresh >= _READ_AHEAD or (fresh and now - self._looked_s >= pause):
            self._read += fresh
            self._tally.widest = self._intervals.look(self._recordings.results(self._tally.there()).sound())
            self._looked_s = time.monotonic()
            self._look_took_s = self._looked_s - now

    def _finish(self) -> None:
        """Write the tables of all that is there, also of what other processes have done."""
        with writing(self._store.path), alone_in(self.path):
            self._update_about()
            self._recordings.file = SweepFile(self.path)
            if self._partial:
                # Tables and claims are of the whole sweep, and reading that may take longer than the part.
                self._conclusion = Conclusion(self._recordings.results(self._tally.there()).sound())
                return
            found = self._recordings.results()
            judge = self._whole or not found.missing
            self._conclusion = conclude(found, judge=judge, report=self._report)

    def _update_about(self) -> None:
        """Say what the sweep consists of, and which runs fail."""
        update_about(self.path, self._store, self.cases, self._tally.todo, self._tally.failed)

    def _failure(self) -> AqmlabError | None:
        """What the one who waits has to know."""
        damage = self.results.damage()
        if damage is not None:
            return damage
        failed = self._tally.failed
        if not failed:
            return None
        # In the order of the cells, not of their ends: the same message for any number of workers.
        digest = next(digest for digest in self._tally.cells if digest in failed)
        reason = failed[digest]
        cell, seed = self._tally.cells[digest]
        where = f"{self.cases.cell_of(cell)}, seed {seed}"
        return RunError(
            f"{len(failed)} of {counted(len(self._tally.todo), 'run')} failed; the others are kept; the"
            f" first: {where}: {reason}"
        )


def _to_bring(cases: Cases, cluster: Cluster | None) -> Bring | None:
    """How much of the recordings has to be there in the end; ``None`` if that is not known to matter."""
    return None if cluster is None else enough(cases.about, cluster.checked().bring or SUMMARIES)


def _damaged(store: Store, digests: Iterable[str], *, whole: bool) -> dict[str, tuple[str, ...]]:
    """The runs that are there and not as they were written, or not whole though they have to be."""
    found: dict[str, tuple[str, ...]] = {}
    for digest in digests:
        if store.has(digest):
            with suppress(RecordingError):
                # What cannot be read, or is of a later format, is told by who reads it.
                found[digest] = store.damage(digest, whole=whole)
    return {digest: reasons for digest, reasons in found.items() if reasons}


def _warm_up() -> None:
    """Import what reading results takes, while workers start."""
    import duckdb

    _ = duckdb


def sweep(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    *,
    store: Path | str | None = None,
    seed: int | None = None,
    runs: int | None = None,
    jobs: int | None = None,
    executor: str | Cluster = LOCAL,
    shard: Shard | str | None = None,
    among: Container[Cell] | None = None,
    force: bool = False,
    progress: Watcher | None = None,
    report: bool = True,
) -> Sweep:
    """Run every cell of a scenario with every seed, as far as the store has not got them.

    Runs are done in other processes, and the call returns when they have begun. They end with this process at
    the latest: ``wait()`` for them.

    Parameters
    ----------
    scenario
        A TOML file, or its content as a dict.
    store
        The directory of the store; ``AQMLAB_STORE``, or ``runs/store``, if not given.
    seed, runs
        The first seed and how many in each cell; as in the scenario if not given.
    jobs
        Runs in parallel; one per processor by default. Results do not depend on it.
    executor
        Where runs are done: ``"local"``, in processes of this machine, or on the workers of a Dask cluster, a
        :class:`aqmlab.Cluster`; ``"dask"`` is the one that Dask is configured for.
    shard
        ``"2/8"``: the second of eight parts of the runs; all of them if not given.
    among
        The cells that are wanted; all if not given. With some of them the results have no others, and
        neither tables nor a report are made, for these are of the whole sweep.
    force
        Whether to do runs again that are there.
    progress
        Told how far the runs are.
    report
        Whether to make ``report.html`` at the end.

    Returns
    -------
    Sweep
        To be waited for, iterated, looked at or cancelled.

    Raises
    ------
    ScenarioError
        If the scenario is wrong, in whatever case; nothing is written then.
    UsageError
        If an argument makes no sense.
    RecordingError
        If the store is corrupt or of a later format.
    HostError
        If the store cannot be written.
    """
    part = Shard.parse(shard) if isinstance(shard, str) else shard
    workers = job_count(jobs)
    cases = Cases(scenario, seed=seed, runs=runs)
    return Sweep(
        cases,
        Store.made(store_path(store)),
        jobs=workers,
        shard=part,
        among=among,
        force=force,
        watcher=progress,
        report=report,
        cluster=cluster_of(executor),
    )


def cluster_of(executor: str | Cluster) -> Cluster | None:
    """The cluster that is meant; ``None`` for this machine.

    Raises
    ------
    UsageError
        If there is no such executor.
    """
    if executor == LOCAL:
        return None
    if isinstance(executor, str):
        if executor != DASK:
            raise unknown("executor", executor, (LOCAL, DASK))
        from aqmlab.sweeps.connection import Cluster

        return Cluster()
    return executor


__all__ = ["Sweep", "Watcher", "sweep"]
