"""The process of a live run, from the outside: its start, its messages, its interruption and its death."""

from __future__ import annotations

import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

from aqmlab.errors import HostError, RunError, called
from aqmlab.live.messages import INTERRUPTED, LONGEST_LINE

Progress = Callable[[Mapping[str, Any]], object]

SILENCE_S = 60.0
"""Silence after which a process counts as hung; a run reports ten times per second."""

PATIENCE_S = 20.0
"""Time for an interrupted run to forward packets in flight and to end by itself."""

_LOOK_S = 0.1
"""Interval between checks of whether the run should end."""

_TIME_TO_GO_S = 5.0
"""Time for a process to exit after its last message."""

_LAST_WORDS = 2000
"""Number of bytes of a dead process's stderr that are examined."""


def ask(
    job: Mapping[str, Any],
    *,
    progress: Progress | None = None,
    interrupted: Callable[[], object] | None = None,
    heed: Callable[[], object] | None = None,
    command: Sequence[str] | None = None,
) -> Any:  # noqa: ANN401 (plain data)
    """Run a job in a separate process, and return its answer.

    Parameters
    ----------
    job
        Plain data: ``do`` and its arguments.
    progress
        Receives the progress of the job.
    interrupted
        Called once, when the first Ctrl-C has been passed on.
    heed
        Called ten times per second. A :exc:`KeyboardInterrupt` that this callback raises is handled like
        Ctrl-C, which reaches only the main thread.
    command
        The process to start; by default :mod:`aqmlab.live.child`.

    Raises
    ------
    AqmlabError
        The error that the process raised.
    RunError
        If the process died, hung, or wrote something other than a message.
    HostError
        If the process could not be started.
    KeyboardInterrupt
        If interrupted. The process is asked to end; after a second interrupt, or if it takes too
        long, it is killed.
    """
    process = _Process(command or _command(), heed)
    try:
        process.write(job)
        message = _heard(process, progress, interrupted)
    except BaseException:
        process.kill()
        raise
    finally:
        process.end()
    return _ended(message)


def _command() -> list[str]:
    # -P: no file in the current directory may be taken for a module.
    return [sys.executable, "-P", "-m", "aqmlab.live", str(os.getpid())]


def _heard(
    process: _Process, progress: Progress | None, interrupted: Callable[[], object] | None
) -> Mapping[str, Any]:
    """Return the last message of a process; progress goes to the caller, and Ctrl-C to the process."""
    stopping: KeyboardInterrupt | None = None
    until = math.inf
    while True:
        try:
            for message in process.messages(until):
                if message["event"] != "progress":
                    if stopping is not None:
                        raise stopping
                    return message
                if progress is not None and stopping is None:
                    progress(message)
        except KeyboardInterrupt as signalled:
            if stopping is not None:
                raise stopping from None
            stopping, until = signalled, time.monotonic() + PATIENCE_S
            process.interrupt()
            if interrupted is not None:
                interrupted()
        except RunError:
            # If the process was asked to end, the request may have killed it, which is not the run's error.
            if stopping is not None:
                raise stopping from None
            raise


def _ended(message: Mapping[str, Any]) -> Any:  # noqa: ANN401
    if message["event"] == "done":
        return message["answer"]
    if message["kind"] == INTERRUPTED:
        # The request did not come from here: another process sent the signal.
        raise RunError("the live router received a signal to end")
    raise called(message["kind"], message["message"])


class _Process:
    """A process and the pipes to it, in a separate process group, so that Ctrl-C is passed on explicitly."""

    def __init__(self, command: Sequence[str], heed: Callable[[], object] | None = None) -> None:
        self._heed = heed
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._unread = b""
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                process_group=0,
            )
        except OSError as error:
            self._stderr.close()
            raise HostError(f"cannot start the live router: {error.strerror or error}") from error

    def write(self, job: Mapping[str, Any]) -> None:
        """Pass the job to the process. The next message shows whether it was received."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()

    def messages(self, until: float) -> Iterator[Mapping[str, Any]]:
        """The process's messages as they arrive, up to the given time of the monotonic clock.

        Raises
        ------
        RunError
            If the process has ended, is silent for ``SILENCE_S`` seconds, has not ended by the given time, or
            writes something other than a message.
        """
        while (left_s := until - time.monotonic()) > 0:
            yield self._message(self._line(min(left_s, SILENCE_S)))
        raise RunError("the live router did not end in time and was killed")

    def _line(self, patience_s: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        until = time.monotonic() + patience_s
        while b"\n" not in self._unread:
            if len(self._unread) > LONGEST_LINE:
                raise RunError(f"the live router sent an invalid message: {_shown(self._unread)}")
            if self._heed is not None:
                self._heed()
            left_s = max(until - time.monotonic(), 0.0)
            ready, _, _ = select.select([descriptor], [], [], min(left_s, _LOOK_S))
            if not ready:
                if left_s > _LOOK_S:
                    continue
                raise RunError(f"the live router has sent no message for {patience_s:.0f} s and was killed")
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                raise RunError(self._obituary())
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    @staticmethod
    def _message(line: bytes) -> Mapping[str, Any]:
        try:
            message = json.loads(line)
            if message["event"] in ("progress", "done") or isinstance(message["kind"], str):
                return dict(message)
        except (ValueError, KeyError, TypeError):
            pass
        raise RunError(f"the live router sent an invalid message: {_shown(line)}")

    def interrupt(self) -> None:
        """Ask the process to end."""
        with suppress(OSError):
            self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill the process, whatever it is doing."""
        if self._process.poll() is None:
            self._process.kill()

    def end(self) -> None:
        """Make sure, even if interrupted, that the process is gone, because there is no later clean-up."""
        try:
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

    def _obituary(self) -> str:
        """Describe how the process died, with its last output but without a final traceback."""
        code = self._process.wait()
        how = f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with {code}"
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(self._stderr.tell() - _LAST_WORDS, 0))
        words = self._stderr.read().decode(errors="replace").strip().splitlines()
        said = f": {words[-1].strip()}" if words else ""
        memory = "; unless a user ended it, memory may have run out" if -code == signal.SIGKILL else ""
        return f"the live router {how}{said}{memory}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _shown(line: bytes) -> str:
    text = repr(line[:80].decode(errors="replace"))
    return f"`{text[1:-1]}`" + (" ..." if len(line) > 80 else "")


__all__ = ["PATIENCE_S", "SILENCE_S", "Progress", "ask"]
