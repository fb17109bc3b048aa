"""Live runs as tasks: one at a time, each in a separate process, between this machine's TCP stacks."""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from aqmlab.errors import AqmlabError, DisciplineError, RecordingError, RunError
from aqmlab.live import supervisor
from aqmlab.sweeps.executor import SKIPPED, Outcome, QueueExecutor
from aqmlab.sweeps.place import Place
from aqmlab.sweeps.progress import UnderWay
from aqmlab.sweeps.task import Task
from aqmlab.system.terminal import Streams


class LiveExecutor(QueueExecutor):
    """Executes live runs one after the other, because simultaneous runs would compete for processors.

    An interrupted run is asked to end; its recording up to that point is kept and marked as interrupted.

    Parameters
    ----------
    place
        The place of the results.
    force
        Whether to run even if the router expects more load than this machine can carry.
    replace
        Whether existing runs are repeated.
    interrupted
        Called once, when a run has been asked to end.
    streams
        The standard streams of the program that a user has started directly, if there is one.
    """

    def __init__(
        self,
        place: Place,
        *,
        force: bool = False,
        replace: bool = False,
        interrupted: Callable[[], object] | None = None,
        streams: Streams | None = None,
    ) -> None:
        super().__init__(workers=1)
        self._place, self._force, self._replace = place, force, replace
        self._interrupted = interrupted
        self._streams = streams
        self._asked_to_end = self._heeded = 0
        self._skipped: list[str] = []
        self.remarks = self._skipped
        # The kernel kills a router when the thread that started it exits, so this thread must outlive its
        # routers.
        self._thread = threading.Thread(target=self._keep, name="live", daemon=True)
        self._thread.start()

    def close(self, *, now: bool) -> None:
        """End when all tasks are done; with ``now``, ask the run to end or, the second time, kill it."""
        self._asked_to_end += now
        self._tasks.put(None)
        self._thread.join()

    def _keep(self) -> None:
        with ExitStack() as stack:
            staging: Path | None = None
            while (task := self._tasks.get()) is not None and not self._asked_to_end:
                try:
                    staging = staging or stack.enter_context(self._place.staging())
                    outcome = self._done(task, staging)
                except KeyboardInterrupt:
                    return
                except (RunError, RecordingError) as error:
                    outcome = Outcome(task, "failed", cause=type(error).__name__, reason=str(error))
                except DisciplineError as error:
                    remark = f"{task.arm}: skipped: {error}"
                    self._skipped += [remark] if remark not in self._skipped else []
                    outcome = Outcome(task, "failed", cause=SKIPPED, reason=str(error))
                except AqmlabError as error:
                    # This machine cannot execute the run, or the scenario cannot run live; the next run would
                    # fail as well.
                    outcome = Outcome(task, "machine", cause=type(error).__name__, reason=str(error))
                except Exception as error:
                    outcome = Outcome(task, "failed", "defect", f"a defect of aqmlab: {error!r}")
                self._under_way.clear()
                self._outcomes.put(outcome)

    def _done(self, task: Task, staging: Path) -> Outcome:
        replace = task.replace or self._replace
        if not replace and self._place.has(task.name):
            return Outcome(task, "present")
        staged = staging / task.digest
        job = {
            "do": "run",
            "toml": task.toml,
            "file_name": task.file_name,
            "arm": task.arm,
            "seed": task.seed,
            "out": str(staged.absolute()),
            "force": self._force,
            "pcap": list(task.pcap),
            "pcap_bytes": task.pcap_bytes,
        }
        with ExitStack() as stack:
            lent = []
            if self._streams is not None:
                # Below 3, the child has streams of its own.
                lent = [_above(stream) for stream in self._streams.descriptors]
                for stream in lent:
                    stack.callback(os.close, stream)
                job |= {"terminal": lent, "foreground": self._streams.foreground}
            return self._ran(task, job, staged, lent, replace=replace)

    def _ran(
        self, task: Task, job: Mapping[str, Any], staged: Path, lent: Sequence[int], *, replace: bool
    ) -> Outcome:
        try:
            answer = supervisor.ask(
                job,
                progress=partial(self._hear, task),
                interrupted=self._interrupted,
                heed=self._heed,
                lent=lent,
            )
        finally:
            if (staged / "manifest.json").is_file():
                self._place.put(staged, task.name, replace=replace)
            self._tidy(staged.parent)
        return Outcome(task, "finished", wall_s=float(answer.get("wall_s", 0.0)))

    @staticmethod
    def _tidy(staging: Path) -> None:
        """Remove the partial recording of a killed process."""
        for left in staging.iterdir():
            shutil.rmtree(left, ignore_errors=True)

    def _hear(self, task: Task, now: Mapping[str, Any]) -> None:
        self._under_way[task.name] = UnderWay(
            task.arm,
            task.seed,
            done_s=now["done_s"],
            total_s=now["total_s"],
            phase=now["phase"],
            lateness_max_s=now.get("lateness_max_s") or 0.0,
        )

    def _heed(self) -> None:
        """Interrupt the run as Ctrl-C would, once for each request to end."""
        if self._heeded < self._asked_to_end:
            self._heeded += 1
            raise KeyboardInterrupt


def _above(stream: int) -> int:
    """Return a copy of a descriptor, with a number that is not one of the standard streams'."""
    return fcntl.fcntl(stream, fcntl.F_DUPFD_CLOEXEC, 10)
