"""The executor of a Dask cluster: tasks go to its workers, and outcomes and recordings come back.

Dask restarts a run whose worker dies. Tasks that Dask loses with its scheduler are resubmitted. Runs are
named by their digests, so a run that two simultaneous sweeps need is executed only once.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aqmlab.errors import HostError, RecordingError
from aqmlab.recordings.recording import load_run
from aqmlab.sweeps import remote
from aqmlab.sweeps.connection import Cluster, Connection
from aqmlab.sweeps.executor import Outcome
from aqmlab.sweeps.named_files import named_files
from aqmlab.sweeps.parcel import SUMMARIES, Bring, unpack
from aqmlab.sweeps.place import Place
from aqmlab.sweeps.progress import UnderWay
from aqmlab.sweeps.task import Task
from aqmlab.text.numbers import counted

if TYPE_CHECKING:
    from distributed import Future

_LOOK_S = 0.005
"""Interval between checks for returned results."""
_SENT_TOGETHER = 64
"""Largest number of tasks per message."""


@dataclass
class _Sent:
    """A task, how often it was sent, its future, and the workers that may execute it (``None`` for all)."""

    task: Task
    times: int = 0
    future: Future[Any] | None = None
    allowed: frozenset[str] | None = None


@dataclass(frozen=True)
class _Refusal:
    """Why a worker executes no runs or, with ``parts``, no runs that need versions other than these."""

    reason: str
    parts: Mapping[str, int] | None = None

    def is_of(self, task: Task) -> bool:
        if self.parts is None:
            return True
        return any(self.parts.get(name) != version for name, version in task.parts.items())


class DaskExecutor:
    """Workers of a Dask cluster.

    Parameters
    ----------
    cluster
        The scheduler's address.
    place
        The local place of results; workers that share it write there themselves.
    bring
        The part of a recording that other workers send back.
    replace
        Whether existing runs are repeated.

    Raises
    ------
    HostError
        If the scheduler cannot be reached or Dask is not installed.
    """

    def __init__(
        self, cluster: Cluster, place: Place, *, bring: Bring = SUMMARIES, replace: bool = False
    ) -> None:
        self._cluster, self._place = cluster, place
        self._waiting: deque[_Sent] = deque()
        self._sent: dict[str, _Sent] = {}
        self._outcomes: deque[Outcome] = deque()
        self._refusals: dict[str, _Refusal] = {}
        self._under_way: dict[str, UnderWay] = {}
        self._brought = 0
        self._bring = bring
        with ExitStack() as stack:
            self._staging = stack.enter_context(place.staging())
            self._request = {
                "format": remote.FORMAT,
                "release": remote.release(),
                "place": str(place.path.resolve()),
                "token": self._token(),
                "bring": bring,
                "replace": replace,
                "silence_s": cluster.silence_s,
            }
            self._connection = stack.enter_context(Connection(cluster, {remote.NEWS: self._hear}))
            self._open = stack.pop_all()
        self.workers = max(sum(self._connection.workers.values()), 1)

    def submit(self, task: Task) -> None:
        """Accept a task; it is sent when the next outcome is requested."""
        self._waiting.append(_Sent(task))

    def outcome(self, timeout_s: float) -> Outcome | None:
        """The next outcome; ``None`` if there is none within the given time.

        Raises
        ------
        HostError
            If the scheduler has been unreachable for too long.
        """
        until = time.monotonic() + timeout_s
        while not self._outcomes:
            if not self._connection.look():
                self._send_again(list(self._sent))
            if self._connection.up:
                self._send()
                self._receive()
            if not self._outcomes:
                if time.monotonic() >= until:
                    return None
                time.sleep(_LOOK_S)
        return self._outcomes.popleft()

    def under_way(self) -> Mapping[str, UnderWay]:
        """Return, by name, the progress of the current runs on which a worker has reported."""
        return dict(self._under_way)

    def close(self, *, now: bool) -> None:
        """Release the cluster; with ``now``, cancel the runs that have not begun."""
        if now:
            self._connection.cancel([sent.future for sent in self._sent.values() if sent.future])
        self._open.close()

    @property
    def note(self) -> str:
        """Return the current problems of the cluster; empty if there are none."""
        return self._connection.note

    @property
    def remarks(self) -> list[str]:
        """Return remarks to show at the end of the sweep."""
        found = [
            f"worker {address} was given no more {'' if refusal.parts is None else 'incompatible '}runs:"
            f" {refusal.reason}"
            for address, refusal in self._refusals.items()
        ]
        if self._brought:
            what = "summaries" if self._bring == SUMMARIES else "recordings"
            found.append(
                f"{counted(self._brought, 'run')} came back as {what}: the workers do not see"
                f" `{self._place.path}`"
            )
        return found

    def _token(self) -> dict[str, str]:
        """Create a file by which a worker can prove that it sees the same place."""
        content = os.urandom(16).hex()
        token = self._staging / "token"
        with self._place.writing():
            token.write_text(content, encoding="ascii")
        return {"file": str(token.relative_to(self._place.path)), "content": content}

    def _send(self) -> None:
        """Send the waiting tasks, each to the workers that have not refused it."""
        if self._refusals:
            workers = self._connection.workers.keys()
            self._send_again(
                [k for k, sent in self._sent.items() if sent.allowed and not sent.allowed & workers]
            )
            if not workers:
                return
        while self._waiting:
            files, allowed = _files_of(self._waiting[0].task), self._allowed(self._waiting[0].task)
            batch = [self._waiting.popleft()]
            while (
                self._waiting
                and len(batch) < _SENT_TOGETHER
                and _files_of(self._waiting[0].task) is files
                and self._allowed(self._waiting[0].task) == allowed
            ):
                batch.append(self._waiting.popleft())
            self._send_batch(batch, files, allowed)

    def _allowed(self, task: Task) -> frozenset[str] | None:
        """The workers that may execute a task; ``None`` if all may.

        Raises
        ------
        HostError
            If none of the present workers may execute the task.
        """
        refused = {address for address, refusal in self._refusals.items() if refusal.is_of(task)}
        workers = self._connection.workers.keys()
        if workers and workers <= refused:
            found = "; ".join(f"{address}: {self._refusals[address].reason}" for address in sorted(workers))
            raise HostError(f"no worker of {self._cluster} can execute the runs: {found}")
        return frozenset(workers - refused) if refused else None

    def _send_batch(
        self, batch: Sequence[_Sent], files: Mapping[str, bytes], allowed: frozenset[str] | None
    ) -> None:
        for sent in batch:
            sent.times += 1
            sent.allowed = allowed
        keys = [self._key(sent) for sent in batch]
        requests = [json.dumps({**self._request, "task": sent.task.to_json()}) for sent in batch]
        futures = self._connection.map(remote.attempt, requests, keys, files, sorted(allowed or ()))
        for key, sent, future in zip(keys, batch, futures, strict=True):
            sent.future = future
            self._sent[key] = sent

    def _key(self, sent: _Sent) -> str:
        """Return a readable name for Dask's dashboard, which then groups runs by arm."""
        task = sent.task
        again = f"-{sent.times}" if sent.times > 1 else ""
        how = "new" if self._request["replace"] or task.replace else self._bring
        return f"{task.arm}-seed {task.seed}-{task.digest[:16]}-{how}{again}"

    def _send_again(self, keys: Sequence[str]) -> None:
        again = [self._sent.pop(key) for key in keys]
        for sent in again:
            self._under_way.pop(sent.task.name, None)
        self._connection.cancel([sent.future for sent in again if sent.future])
        self._waiting.extend(again)

    def _receive(self) -> None:
        """Take finished tasks."""
        for key, result in self._connection.ended():
            sent = self._sent.pop(key, None)
            if sent is None:
                continue
            self._under_way.pop(sent.task.name, None)
            if isinstance(result, dict):
                self._take(sent, result)
            elif isinstance(result, ImportError | AttributeError):
                self._without_us(sent, result)
            elif result is not None:
                self._outcomes.append(_failed(sent.task, result))
            else:
                self._waiting.append(sent)

    def _hear(self, event: tuple[float, Mapping[str, Any]]) -> None:
        """Receive a worker's report on a run, perhaps another client's; called in the connection's thread."""
        sent = self._sent.get(event[1]["key"])
        if sent is not None:
            self._under_way[sent.task.name] = UnderWay(sent.task.arm, sent.task.seed, **event[1]["now"])

    def _take(self, sent: _Sent, result: Mapping[str, Any]) -> None:
        """Take a worker's result."""
        answer = result["answer"]
        wrong = answer["reason"] if answer["status"] in (remote.REFUSED, "machine") else ""
        files = result.get("files")
        if files is not None and not wrong:
            wrong = self._put(sent.task, files)
            self._brought += not wrong
        if wrong:
            self._refuse(result["worker"], _Refusal(wrong, result.get("parts")))
            self._waiting.append(sent)
        else:
            self._outcomes.append(Outcome(sent.task, **answer))

    def _without_us(self, sent: _Sent, error: Exception) -> None:
        """Handle the error of a worker that lacks the function that executes runs."""
        lacking = self._connection.lacking()
        if lacking:
            for address, reason in lacking.items():
                self._refuse(address, _Refusal(reason))
            self._waiting.append(sent)
        else:
            self._outcomes.append(_failed(sent.task, error))

    def _refuse(self, address: str, refusal: _Refusal) -> None:
        """Send a worker no more runs, or none that need other versions; the stricter refusal wins."""
        known = self._refusals.setdefault(address, refusal)
        if known.parts is not None and refusal.parts is None:
            self._refusals[address] = refusal

    def _put(self, task: Task, files: Mapping[str, bytes]) -> str:
        """Put returned files into their place; return the problem with them, or an empty string."""
        staged = self._staging / task.digest
        try:
            with self._place.writing():
                unpack(files, staged)
            run = load_run(staged)
            wrong = "; ".join(run.damage())
            if run.manifest.run_digest != task.digest:
                wrong = "it belongs to another run"
        except (RecordingError, ValueError) as error:
            wrong = str(error)
        if wrong:
            shutil.rmtree(staged, ignore_errors=True)
            return f"it sent a recording that cannot be used: {wrong}"
        self._place.put(staged, task.name, replace=task.replace or bool(self._request["replace"]))
        return ""


def _files_of(task: Task) -> Mapping[str, bytes]:
    """Return a scenario's files, as the same object for all of its tasks."""
    return named_files(task.toml, task.file_name)


def _failed(task: Task, error: Exception) -> Outcome:
    """Return the outcome of a run that Dask has abandoned."""
    cause = "crash" if type(error).__name__ == "KilledWorker" else type(error).__name__
    return Outcome(task, "failed", cause, " ".join(str(error).split()))
