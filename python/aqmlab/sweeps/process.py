"""A worker process and the pipes to it: one request per line, then progress lines until the answer."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

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

_LAST_WORDS = 2000
"""Number of bytes read from the end of a dead process's stderr."""
_PATIENCE_S = 5.0
"""Time allowed for an idle process to end by itself."""
_READ_BYTES = 1 << 16


def _unheard(_now: Mapping[str, Any]) -> None:
    """The callback for callers that do not need the progress of a run."""


class WorkerProcess:
    """A process that executes runs, one at a time, and stores their recordings.

    The kernel kills it when the thread that started it exits.

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
        self._silence_s = silence_s
        self._silent = False
        self._unread = b""
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            # -P: no file in the current directory may be taken for a module.
            [sys.executable, "-P", "-m", "aqmlab.sweeps.worker", str(place), str(os.getpid()), str(idle_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        self.pid = self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def ask(self, request: Mapping[str, Any], hear: Hear = _unheard) -> dict[str, Any] | None:
        """Send a request and return the answer; return ``None`` if the process has died or hangs."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            return None
        for line in self._lines():
            found: dict[str, Any] = json.loads(line)
            if ALIVE not in found:
                return found
            hear(found[ALIVE])
        return None

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    def died(self) -> str:
        """A description of how the process ended."""
        if self.alive:
            self._process.kill()
        code = self._process.wait()
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(self._stderr.tell() - _LAST_WORDS, 0))
        words = self._stderr.read().decode(errors="replace").strip().splitlines()
        self._close()
        if self._silent:
            how = f"made no progress for {self._silence_s:g} s and was killed"
        else:
            how = f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with {code}"
        return f"the worker {how}{f': {words[-1]}' if words else ''}"

    def end(self) -> None:
        """Let the idle process end by itself, or kill it if it does not."""
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close()

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines that the process writes, until it ends or is silent for too long."""
        assert self._process.stdout is not None
        stdout = self._process.stdout.fileno()
        until = time.monotonic() + self._silence_s
        while True:
            line, newline, rest = self._unread.partition(b"\n")
            if newline:
                self._unread = rest
                until = time.monotonic() + self._silence_s
                yield line
                continue
            ready, _, _ = select.select([stdout], [], [], max(until - time.monotonic(), 0.0))
            if not ready:
                self._silent = True
                return
            more = os.read(stdout, _READ_BYTES)
            if not more:
                return
            self._unread += more

    def _close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            with suppress(OSError):
                if stream is not None:
                    stream.close()


class Keeper:
    """Keeps a worker process, and replaces it if it dies; each death uses up one of the run's attempts.

    Parameters
    ----------
    place, idle_s, silence_s
        As for :class:`WorkerProcess`.
    """

    def __init__(self, place: Path, *, idle_s: float = 0.0, silence_s: float = SILENCE_S) -> None:
        self._place, self._idle_s, self._silence_s = place, idle_s, silence_s
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        self._killed = False

    @property
    def pid(self) -> int | None:
        """The process id, while there is a process."""
        process = self._process
        return process.pid if process is not None else None

    def answer(self, request: Mapping[str, Any], hear: Hear = _unheard) -> dict[str, Any] | None:
        """The outcome of a run; ``None`` after :meth:`kill`."""
        deaths: list[str] = []
        while len(deaths) < ATTEMPTS and not self._killed:
            process = self._living()
            found = process.ask(request, hear)
            if found is not None:
                return found
            deaths.append(process.died())
            self._process = None
        if self._killed:
            return None
        return {"status": "failed", "cause": "crash", "reason": "; then ".join(dict.fromkeys(deaths))}

    def kill(self) -> None:
        """Kill the process and do not replace it; called from a thread that executes no runs."""
        with self._lock:
            self._killed = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Let the process end, if there is one."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def _living(self) -> WorkerProcess:
        if self._process is not None and not self._process.alive:
            # The process ended after a long idle time, or was ended between two runs.
            self.close()
        with self._lock:
            if self._process is None:
                self._process = WorkerProcess(self._place, idle_s=self._idle_s, silence_s=self._silence_s)
                if self._killed:
                    self._process.kill()
            return self._process


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


__all__ = ["ALIVE", "ATTEMPTS", "SILENCE_S", "Keeper", "WorkerProcess"]
