"""The process of a live run, from the outside: its messages and its interruption."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aqmlab.errors import HostError, RunError, called
from aqmlab.live.messages import INTERRUPTED
from aqmlab.system.children import Child, EndedError, SilentError, python

Progress = Callable[[Mapping[str, Any]], object]

SILENCE_S = 60.0
"""Silence after which a process counts as hung; a run reports ten times per second."""

PATIENCE_S = 20.0
"""Time for an interrupted run to forward packets in flight and to end by itself."""


def ask(  # noqa: PLR0913 (keyword arguments)
    job: Mapping[str, Any],
    *,
    progress: Progress | None = None,
    interrupted: Callable[[], object] | None = None,
    heed: Callable[[], object] | None = None,
    command: Sequence[str] | None = None,
    lent: Sequence[int] = (),
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
    lent
        Descriptors of this process that the job names.

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
    try:
        child = Child(command or _command(), alone=True, lent=lent)
    except OSError as error:
        raise HostError(f"cannot start the live router: {error.strerror or error}") from error
    try:
        child.write(job)
        message = _heard(child, progress, interrupted, heed)
    except BaseException:
        child.kill()
        raise
    finally:
        child.end()
    return _ended(message)


def _command() -> list[str]:
    return python("aqmlab.live")


def _heard(
    child: Child,
    progress: Progress | None,
    interrupted: Callable[[], object] | None,
    heed: Callable[[], object] | None,
) -> Mapping[str, Any]:
    """Return the last message of a process; progress goes to the caller, and Ctrl-C to the process."""
    stopping: KeyboardInterrupt | None = None
    until = math.inf
    while True:
        try:
            message = _message(child, until, heed)
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
            child.interrupt()
            if interrupted is not None:
                interrupted()
        except RunError:
            # If the process was asked to end, the request may have killed it, which is not the run's error.
            if stopping is not None:
                raise stopping from None
            raise


def _message(child: Child, until: float, heed: Callable[[], object] | None) -> Mapping[str, Any]:
    """Return the next message of a process, which must end by the given time of the monotonic clock."""
    left_s = min(until - time.monotonic(), SILENCE_S)
    if left_s <= 0:
        raise RunError("the live router did not end in time and was killed")
    try:
        line = child.line(left_s, heed)
    except SilentError:
        raise RunError(f"the live router has sent no message for {left_s:.0f} s and was killed") from None
    except EndedError as how:
        memory = "; unless a user ended it, memory may have run out" if how.killed else ""
        raise RunError(f"the live router {how}{memory}") from None
    try:
        message = json.loads(line)
        if message["event"] in ("progress", "done") or isinstance(message["kind"], str):
            return dict(message)
    except (ValueError, KeyError, TypeError):
        pass
    raise RunError(f"the live router sent an invalid message: {_shown(line)}")


def _ended(message: Mapping[str, Any]) -> Any:  # noqa: ANN401
    if message["event"] == "done":
        return message["answer"]
    if message["kind"] == INTERRUPTED:
        # The request did not come from here: another process sent the signal.
        raise RunError("the live router received a signal to end")
    raise called(message["kind"], message["message"])


def _shown(line: bytes) -> str:
    text = repr(line[:80].decode(errors="replace"))
    return f"`{text[1:-1]}`" + (" ..." if len(line) > 80 else "")
