"""A child process from the inside: it ends with its parent, and its standard output is for messages.

It imports only the standard library, because the process of a live run may have no second thread.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

_DEATH_SIGNAL = 1
"""``PR_SET_PDEATHSIG`` of prctl(2)."""


class Parent:
    """The process that started this one, as the first argument says.

    Linux kills this process when that one ends; elsewhere, :meth:`check` finds out. Used as a context
    manager, this process ends when the parent no longer reads its messages.
    """

    def __init__(self) -> None:
        self._pid = int(sys.argv[1])
        if sys.platform == "linux":
            import ctypes

            ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
        self.check()
        # Output from a panic or a library must not be mistaken for a message.
        self._messages = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, BrokenPipeError):
            os._exit(0)

    def check(self) -> None:
        """End this process if the parent has ended."""
        if os.getppid() != self._pid:
            os._exit(0)

    def tell(self, message: Mapping[str, Any]) -> None:
        """Write a message as a line of JSON."""
        self._messages.write(json.dumps(message) + "\n")
        self._messages.flush()
