"""The standard streams of this process, lent to a program that a user has started through it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple


class Streams(NamedTuple):
    """Streams for a program.

    Attributes
    ----------
    descriptors
        Standard input, output and error, under their present numbers in this process.
    foreground
        Whether the program becomes the foreground job of the terminal, which receives Ctrl-C.
    """

    descriptors: tuple[int, int, int]
    foreground: bool


@contextmanager
def lent() -> Iterator[Streams]:
    """Lend the standard streams; afterwards, this process is the terminal's foreground job again."""
    foreground = _is_foreground()
    try:
        yield Streams((0, 1, 2), foreground)
    finally:
        if foreground:
            _take_back()


def _is_foreground() -> bool:
    try:
        return os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _take_back() -> None:
    # A process in the background may do this only while it ignores SIGTTOU.
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    with suppress(OSError):
        os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, before)
