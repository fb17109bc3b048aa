"""How far the runs are: a line that is rewritten on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self, TextIO

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BEFORE_ETA = 0.5


class ProgressLine:
    """Progress on stderr: runs done, events a second, time to go.

    Parameters
    ----------
    enabled
        If false, nothing is written.
    stream
        Where to write.
    """

    def __init__(self, *, enabled: bool = True, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._enabled = enabled
        self._rewrites = self._stream.isatty()
        self._begun = time.monotonic()
        self._last = self._begun
        self._drawn = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            self._stream.write("\r" + " " * self._drawn + "\r")
            self._stream.flush()

    def update(self, now: Mapping[str, float]) -> None:
        """Show how far the runs are; called about ten times a second."""
        if not self._enabled:
            return
        moment = time.monotonic()
        text = progress_text(now, moment - self._begun)
        if self._rewrites:
            self._stream.write("\r" + text.ljust(self._drawn))
            self._drawn = len(text)
            self._stream.flush()
        elif moment - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = moment
            self._stream.write(text + "\n")
            self._stream.flush()


def progress_text(now: Mapping[str, float], elapsed_s: float) -> str:
    """``runs 12/70 · 3.1 M events/s · 8 s to go``."""
    parts = [f"runs {now['runs_done']:.0f}/{now['runs_total']:.0f}"]
    if elapsed_s > 0:
        parts.append(f"{now['events'] / elapsed_s / 1e6:.1f} M events/s")
    done, total = now["sim_done_s"], now["sim_total_s"]
    if done > 0 and elapsed_s >= _SECONDS_BEFORE_ETA:
        parts.append(f"{duration_text(elapsed_s * max(total - done, 0.0) / done)} to go")
    return " · ".join(parts)


def duration_text(seconds: float) -> str:
    """``8 s``, ``3 min``, ``2.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
