"""Worker processes: one request per line, then progress lines until the answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aqmlab.system.children import Child, EndedError, SilentError, python

Hear = Callable[[Mapping[str, Any]], object]
"""Receives the progress of a run: ``done_s``, ``total_s`` and ``events``."""

ATTEMPTS = 2
"""Number of attempts at a run whose process dies."""
SILENCE_S = 600.0
"""Time without progress after which a process is killed.

A run reports progress often, except while it creates its flows and while it writes its tables.
"""
ALIVE = "alive"
"""The key that distinguishes a progress line from an answer."""


def _unheard(_now: Mapping[str, Any]) -> None:
    """The callback for callers that do not need the progress of a run."""


class Keeper:
    """Keeps a worker process, and replaces it if it dies; each death uses up one of the run's attempts.

    The process executes runs, one at a time, and stores their recordings. The kernel kills it when the thread
    that started it exits.

    Parameters
    ----------
    place
        The directory of the place that receives the results.
    idle_s
        Time without a request after which it ends by itself; 0 for never.
    silence_s
        Time without progress after which it is killed.
    """

    def __init__(self, place: Path, *, idle_s: float = 0.0, silence_s: float = SILENCE_S) -> None:
        self._place, self._idle_s, self._silence_s = place, idle_s, silence_s
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._killed = False

    @property
    def pid(self) -> int | None:
        """The process id, while there is a process."""
        child = self._child
        return child.pid if child is not None else None

    def answer(self, request: Mapping[str, Any], hear: Hear = _unheard) -> dict[str, Any] | None:
        """The outcome of a run; ``None`` after :meth:`kill`."""
        deaths: list[str] = []
        while len(deaths) < ATTEMPTS and not self._killed:
            child = self._living()
            child.write(request)
            try:
                return self._heard(child, hear)
            except SilentError:
                deaths.append(f"the worker made no progress for {self._silence_s:g} s and was killed")
            except EndedError as how:
                deaths.append(f"the worker {how}")
            child.kill()
            self.close()
        if self._killed:
            return None
        return {"status": "failed", "cause": "crash", "reason": "; then ".join(dict.fromkeys(deaths))}

    def _heard(self, child: Child, hear: Hear) -> dict[str, Any]:
        while True:
            found: dict[str, Any] = json.loads(child.line(self._silence_s))
            if ALIVE not in found:
                return found
            hear(found[ALIVE])

    def kill(self) -> None:
        """Kill the process and do not replace it; called from a thread that executes no runs."""
        with self._lock:
            self._killed = True
            if self._child is not None:
                self._child.kill()

    def close(self) -> None:
        """Let the process end, if there is one."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _living(self) -> Child:
        if self._child is not None and not self._child.alive:
            # The process ended after a long idle time, or was ended between two runs.
            self.close()
        with self._lock:
            if self._child is None:
                self._child = Child(python("aqmlab.sweeps.worker", self._place, self._idle_s))
                if self._killed:
                    self._child.kill()
            return self._child
