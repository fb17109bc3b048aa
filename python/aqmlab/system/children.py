"""Child processes from the outside: their start, their lines, their interruption, their death.

A child reads requests and writes messages, one JSON object per line. :mod:`aqmlab.system.parent` is its side.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

LONGEST_LINE = 1 << 20
"""Largest number of bytes in a message; what is longer is not a message."""

_LOOK_S = 0.1
"""Interval between two calls of ``heed``."""
_TIME_TO_GO_S = 5.0
"""Time for a process to exit after its last message, or after the end of its input."""
_LAST_WORDS = 2000
"""Number of bytes read from the end of a dead process's stderr."""


class SilentError(Exception):
    """A child has written no line for too long."""


class EndedError(Exception):
    """A child has exited. The text says how, with its last output but without a traceback.

    Attributes
    ----------
    killed
        Whether SIGKILL ended it.
    """

    def __init__(self, how: str, *, killed: bool) -> None:
        super().__init__(how)
        self.killed = killed


def python(module: str, *arguments: object) -> list[str]:
    """Return the command that runs a module as a child; its first argument is the parent's process id."""
    # -P: no file in the current directory may be taken for a module.
    return [sys.executable, "-P", "-m", module, str(os.getpid()), *map(str, arguments)]


class Child:
    """A child process and the pipes to it.

    Parameters
    ----------
    command
        The program and its arguments.
    alone
        Whether it is in a process group of its own, which Ctrl-C does not reach.
    lent
        Descriptors of this process that the child gets, each under a number that ``write`` may name.

    Raises
    ------
    OSError
        If it cannot be started.
    """

    def __init__(self, command: Sequence[str], *, alone: bool = False, lent: Sequence[int] = ()) -> None:
        self._unread = b""
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                process_group=0 if alone else None,
                pass_fds=lent,
            )
        except OSError:
            self._stderr.close()
            raise
        self.pid = self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def write(self, request: Mapping[str, Any]) -> None:
        """Pass a request to the process. The next line shows whether it was received."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def line(self, patience_s: float, heed: Callable[[], object] | None = None) -> bytes:
        """Return the next line that the process writes; of a line that is too long, its beginning.

        Parameters
        ----------
        patience_s
            How long to wait for it.
        heed
            Called ten times per second while waiting.

        Raises
        ------
        SilentError
            If no line arrives in time.
        EndedError
            If the process has exited.
        """
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        until = time.monotonic() + patience_s
        while b"\n" not in self._unread and len(self._unread) <= LONGEST_LINE:
            if heed is not None:
                heed()
            left_s = max(until - time.monotonic(), 0.0)
            wait_s = left_s if heed is None else min(left_s, _LOOK_S)
            if not select.select([descriptor], [], [], wait_s)[0]:
                if left_s > wait_s:
                    continue
                raise SilentError
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                raise self._ended()
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def interrupt(self) -> None:
        """Ask the process to end."""
        with suppress(OSError):
            self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill the process, whatever it is doing."""
        self._process.kill()

    def end(self) -> None:
        """Let the process end by itself, or else kill it. It is gone afterwards, even after an interrupt."""
        try:
            with suppress(OSError):
                assert self._process.stdin is not None
                self._process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_TIME_TO_GO_S)
        finally:
            self.kill()
            self._reap()

    def _reap(self) -> None:
        signalled: KeyboardInterrupt | None = None
        # The system takes a moment to end a killed process, whether or not anything waits for it.
        while self._process.returncode is None:
            try:
                self._process.wait()
            except KeyboardInterrupt as again:
                signalled = again
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        if signalled is not None:
            raise signalled

    def _ended(self) -> EndedError:
        """Describe how a process that has closed its output died."""
        try:
            code = self._process.wait(_TIME_TO_GO_S)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        how = f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with {code}"
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(self._stderr.tell() - _LAST_WORDS, 0))
        words = self._stderr.read().decode(errors="replace").strip().splitlines()
        said = f": {words[-1].strip()}" if words else ""
        return EndedError(how + said, killed=-code == signal.SIGKILL)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
