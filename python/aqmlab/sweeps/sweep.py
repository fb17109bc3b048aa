"""Sweeps: every cell of a scenario with every seed, except runs that exist already."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from aqmlab import errors
from aqmlab.arguments import typed
from aqmlab.errors import (
    AqmlabError,
    DisciplineError,
    FormatError,
    MemoryCapError,
    RecordingError,
    RunError,
)
from aqmlab.language.scenario import Scenario
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results
from aqmlab.sweeps.cases import Cases, PlannedCell, Shard
from aqmlab.sweeps.conclusion import Conclusion
from aqmlab.sweeps.directory import Directory, SweepDirectory
from aqmlab.sweeps.executor import SKIPPED, Executor
from aqmlab.sweeps.parcel import RECORDINGS, SUMMARIES, Bring, enough
from aqmlab.sweeps.place import Needs, Place
from aqmlab.sweeps.progress import Intervals, Progress
from aqmlab.sweeps.store import Store, store_path
from aqmlab.sweeps.tally import EndedRun, Tally
from aqmlab.sweeps.task import LIVE, SIMULATOR, Capture
from aqmlab.sweeps.where import LOCAL, Where
from aqmlab.system.memory import check_address_space
from aqmlab.system.stopping import Stop, Stopped, raise_if_stopped, wait_heeding_signals
from aqmlab.text.numbers import counted

if TYPE_CHECKING:
    from aqmlab.claims import Scored
    from aqmlab.sweeps.connection import Cluster

Watcher = Callable[[Progress], object]
"""Receives the progress of the runs, about ten times per second."""

_TICK_S = 0.1
_PATIENCE_S = 10.0
"""Time that the sweep's thread has to remove unfinished files after a second Ctrl-C."""
_TASKS_AHEAD = 256
"""Number of tasks queued at the executor, so that no worker waits while results are evaluated."""
_READ_AHEAD = 100
"""Number of new runs above which it is worthwhile to read them while others run."""
_LOOK_S = 5.0
"""Shortest time in seconds between two evaluations of the intervals."""
_SHARE_OF_LOOKING = 0.05
"""Largest share of the time that may be spent on evaluating the intervals."""


class Sweep:
    """A sweep that is in progress or has ended; :func:`sweep` makes one.

    Iterating over it yields each run as it ends (:class:`~aqmlab.sweeps.tally.EndedRun`). Used as a context
    manager, it is cancelled when an exception leaves the block.

    Attributes
    ----------
    cases
        The cases requested.
    path
        The directory of its tables and its report.
    workers
        Number of runs in parallel.
    damaged
        The damage or the missing parts of existing runs, keyed by the run's name; these runs are repeated.
    """

    def __init__(  # noqa: PLR0913 (keyword arguments)
        self,
        cases: Cases,
        place: Place,
        directory: Directory,
        where: Where,
        *,
        shard: Shard | None = None,
        among: Container[Cell] | None = None,
        force: bool = False,
        faithful: bool = False,
        watcher: Watcher | None = None,
        report: bool = True,
    ) -> None:
        check_address_space()
        self.cases = cases
        self.path = directory.path
        self._place, self._directory = place, directory
        self._force = force
        self._watcher = watcher
        self._where = where
        self._bring = _to_bring(cases, where.cluster)
        cells: dict[str, tuple[PlannedCell, int]] = {}
        for cell, seed, digest in cases.runs(among):
            if shard is None or shard.has(digest):
                cells.setdefault(place.name_of(cell.slug, seed, digest), (cell, seed))
        needs = Needs(whole=self._bring == RECORDINGS, capture=cases.capture, ended=True, faithful=faithful)
        there = set() if force else place.present(cells)
        self.damaged = _insufficient(place, [name for name in cells if name in there], needs)
        todo = dict.fromkeys(name for name in cells if name in self.damaged or name not in there)
        self.workers = max(min(where.jobs, len(todo)), 1)
        self._tally = Tally(cells, todo.keys())
        directory.update(todo, {})
        self._recordings = directory.recordings()
        self._intervals = Intervals()
        self._read, self._looked_s, self._look_took_s, self._told_s = 0, time.monotonic(), 0.0, 0.0
        self._stop, self._over = Stop(), threading.Event()
        self._error: BaseException | None = None
        self._working: Executor | None = None
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
        """The present progress."""
        return self._tally.progress()

    @property
    def results(self) -> Results:
        """The present results."""
        if self._conclusion is not None:
            return self._conclusion.results
        return self._directory.recordings().results(self._tally.there())

    @property
    def lasts_s(self) -> float:
        """The real time that the requested live runs take, excluding start-up and shutdown."""
        todo = (self._tally.cells[name][0].end_ns for name in self._tally.todo)
        return sum(todo) / 1e9 if self.cases.host == LIVE else 0.0

    @property
    def claims(self) -> tuple[Scored, ...]:
        """The scored claims, once the sweep has ended; none while other shards are missing."""
        return () if self._conclusion is None else self._conclusion.claims

    @property
    def report(self) -> Path | None:
        """The report, once the sweep has ended; none while other shards are missing."""
        return None if self._conclusion is None else self._conclusion.report

    @property
    def skipped(self) -> Mapping[str, str]:
        """The arms whose queue this machine's kernel lacks, each with the reason."""
        return dict(self._tally.skipped)

    @property
    def done(self) -> bool:
        """Whether the sweep has ended, for any reason."""
        return self._over.is_set()

    def __iter__(self) -> Iterator[EndedRun]:
        """Yields each run as it ends, starting with the first, until the last has ended."""
        return iter(self._tally)

    def wait(self) -> Results:
        """Wait until the sweep has ended and its tables are written.

        Raises
        ------
        RunError
            If runs failed; the others are kept, and ``results`` has them.
        RecordingError
            If existing runs cannot be read; ``results`` omits them.
        HostError
            If this machine cannot continue: no space, no permission. Finished runs are kept.
        KeyboardInterrupt
            If interrupted, which cancels the sweep. Finished runs are kept.
        """
        with self:
            # `join` is not used because, if interrupted, it would consider the thread ended.
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
        """Cancel the sweep if an exception leaves the block."""
        if error is not None and not self.done:
            self.cancel()
            if isinstance(error, KeyboardInterrupt):
                self._say_what_is_kept(error)

    def cancel(self) -> None:
        """End the sweep now: runs in progress are dropped, finished ones kept, and tables left unchanged.

        A live run may still forward packets in flight; a second Ctrl-C ends it at once.
        """
        self._stop.ask()
        try:
            while not self._over.wait(_TICK_S):
                self._stop.ask()
        except KeyboardInterrupt:
            if self._working is not None:
                self._working.close(now=True)
            self._over.wait(_PATIENCE_S)
            return
        self._thread.join()

    def _say_what_is_kept(self, error: BaseException) -> None:
        kept = self._place.kept()
        if kept:
            error.add_note(kept)

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
            # This is not an error, because no caller waits; a repeated request continues where this one
            # stopped.
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._over.set()

    def _work(self) -> None:
        """Have the executor run everything that is missing."""
        tasks = (
            replace(self.cases.task(*self._tally.cells[name]), name=name, replace=name in self.damaged)
            for name in self._tally.todo
        )
        executor = self._working = self._where.executor(
            self._place, self.workers, bring=self._bring, replace=self._force
        )
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
                        raise errors.called(outcome.cause, outcome.reason)
                    self._tally.add(outcome)
                if not self._stop.asked:
                    self._tally.under_way, self._tally.note = executor.under_way(), executor.note
                    self._look(last=not waiting)
        except AqmlabError as error:
            executor.close(now=True)
            self._say_what_is_kept(error)
            raise
        finally:
            self.remarks = tuple(executor.remarks)
            executor.close(now=waiting > 0)
            # Workers that were killed may have left partial files.
            self._place.sweep_out()

    def _look(self, *, last: bool) -> None:
        """Report progress; meanwhile read new runs and compute their intervals."""
        now = time.monotonic()
        if self._watcher is not None and (last or now - self._told_s >= _TICK_S):
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
        """Write the tables of all existing runs, including those of other processes."""
        self._directory.update(self._tally.todo, self._tally.failed)
        if self._partial:
            # Tables and claims would cover the whole sweep, which may take longer to read than this part took
            # to run.
            self._conclusion = Conclusion(self._recordings.results(self._tally.there()).sound())
        else:
            self._conclusion = self._directory.conclude(
                self._recordings, judge=self._whole, report=self._report
            )

    def _failure(self) -> AqmlabError | None:
        """Return the error that a waiting caller receives."""
        damage = self.results.damage()
        if damage is not None:
            return damage
        failed = self._tally.failed
        if not failed:
            return None
        if set(self._tally.causes) == {SKIPPED}:
            # This machine can still execute the runs of other arms.
            return None if self._tally.there() else DisciplineError(next(iter(failed.values())))
        # Failures are in the order of the cells, not in the order in which runs end, so that the message is
        # the same for any number of workers.
        name = next(name for name in self._tally.cells if name in failed)
        cell, seed = self._tally.cells[name]
        where = f"{self.cases.cell_of(cell)}, seed {seed}"
        only_memory = set(self._tally.causes) == {"memory"}
        kept = f"; the others are kept in `{self._place.path}`" if self._tally.there() else ""
        return (MemoryCapError if only_memory else RunError)(
            f"{len(failed)} of {counted(len(self._tally.todo), 'run')} failed{kept}; the first: {where}:"
            f" {failed[name]}"
        )


def _to_bring(cases: Cases, cluster: Cluster | None) -> Bring | None:
    """Return the part of each recording that workers must send back; ``None`` without a cluster."""
    if cluster is None:
        return None
    asked = cluster.bring or SUMMARIES
    return RECORDINGS if cases.capture.ports else enough(cases.about, asked)


def _insufficient(place: Place, names: Iterable[str], needs: Needs) -> dict[str, tuple[str, ...]]:
    """Return the existing runs that have changed or lack required parts.

    Raises
    ------
    FormatError
        If a run has another format.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        try:
            found[name] = place.short_of(name, needs)
        except FormatError:
            raise
        except RecordingError:
            # Unreadable runs raise an error where they are read.
            continue
    return {name: reasons for name, reasons in found.items() if reasons}


def _warm_up() -> None:
    """Import the modules for reading results while workers start."""
    import duckdb

    _ = duckdb


@typed
def sweep(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    *,
    store: Path | str | None = None,
    seed: int | None = None,
    runs: int | None = None,
    jobs: int | None = None,
    executor: str | Cluster = LOCAL,
    host: str = SIMULATOR,
    pcap: str | Sequence[str] = (),
    pcap_bytes: int | None = None,
    shard: Shard | str | None = None,
    among: Container[Cell] | None = None,
    force: bool = False,
    faithful: bool = False,
    progress: Watcher | None = None,
    interrupted: Callable[[], object] | None = None,
    report: bool = True,
) -> Sweep:
    """Run every cell of a scenario with every seed that the store lacks.

    Runs are executed in other processes, and the call returns once they have begun. If this process exits
    before the runs have finished, they are stopped, so call ``wait()``.

    Parameters
    ----------
    scenario
        A TOML file, or its content as a dict.
    store
        The directory of the store; ``AQMLAB_STORE``, or ``runs/store``, if not given.
    seed, runs
        The first seed, and the number of seeds per cell; as in the scenario if not given.
    jobs
        Number of runs in parallel on this machine; one per processor by default. Results do not depend on it.
    executor
        Where runs are executed: ``"local"``, in processes on this machine, or on the workers of a Dask
        cluster, a :class:`aqmlab.Cluster`; ``"dask"`` stands for the cluster in Dask's configuration.
    host
        ``"sim"``, or ``"live"`` for runs between this machine's TCP stacks. Live runs are executed one at a
        time, and each takes the scenario's duration in real time (:attr:`Sweep.lasts_s`).
    pcap, pcap_bytes
        As for :func:`aqmlab.run`. An existing run without these packets is repeated.
    shard
        ``"2/8"``: the second of eight parts of the runs; all of them if not given.
    among
        The requested cells; all if not given. With a selection, the results have only these cells, and no
        tables or report are written, because these cover the whole sweep.
    force
        Whether to repeat existing runs.
    faithful
        Whether to repeat existing live runs that are not faithful.
    progress
        Receives the progress of the runs, about ten times per second.
    interrupted
        Called once, when a live run has been asked to end.
    report
        Whether to make ``report.html`` at the end.

    Returns
    -------
    Sweep
        A sweep that can be waited for, iterated, inspected or cancelled.

    Raises
    ------
    ScenarioError
        If any case of the scenario is invalid; nothing is written then.
    UsageError
        If an argument is invalid.
    RecordingError
        If the store is corrupt or in another format.
    HostError
        If the store cannot be written.
    """
    part = Shard.parse(shard) if isinstance(shard, str) else shard
    where = Where.chosen(host, executor, jobs, interrupted=interrupted)
    cases = Cases(scenario, seed=seed, runs=runs, host=host, capture=Capture.chosen(pcap, pcap_bytes))
    place = Store.made(store_path(store))
    return Sweep(
        cases,
        place,
        SweepDirectory(place, cases),
        where,
        shard=part,
        among=among,
        force=force,
        faithful=faithful,
        watcher=progress,
        report=report,
    )
