"""Progress of the runs: one line that is rewritten on a terminal, or occasional lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

if TYPE_CHECKING:
    from aqmlab.sweeps.progress import Progress, UnderWay

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BEFORE_ETA = 0.5


Text = Callable[[Any, float], str]


class ProgressLine:
    """Progress on stderr: runs done, speed, remaining time.

    Parameters
    ----------
    enabled
        If false, nothing is written.
    stream
        The destination.
    text
        Returns the text to show for a state and the elapsed seconds; by default :func:`progress_text`.
    """

    def __init__(
        self, *, enabled: bool = True, stream: TextIO | None = None, text: Text | None = None
    ) -> None:
        self._text = text or progress_text
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

    def update(self, now: Any) -> None:  # noqa: ANN401 (the arguments of the text)
        """Show the progress; called about ten times per second."""
        if not self._enabled:
            return
        moment = time.monotonic()
        text = self._text(now, moment - self._begun)
        if self._rewrites:
            self._stream.write("\r" + text.ljust(self._drawn))
            self._drawn = len(text)
            self._stream.flush()
        elif moment - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = moment
            self._stream.write(text + "\n")
            self._stream.flush()


def progress_text(now: Progress, elapsed_s: float) -> str:
    """``runs 12/24 · 14/s · 3.1 M events/s · 9 s to go · widest ±12 % (goodput: RED) · failed: 2 crash``."""
    parts = [f"runs {now.runs_present + now.runs_done}/{now.runs_total}"]
    if elapsed_s > 0:
        if now.runs_done:
            parts.append(f"{now.runs_done / elapsed_s:.3g}/s")
        if now.events:
            parts.append(f"{now.events / elapsed_s / 1e6:.1f} M events/s")
    if now.to_go_s is not None and elapsed_s >= _SECONDS_BEFORE_ETA:
        parts.append(f"{duration_text(now.to_go_s)} to go")
    parts += [_live_text(run) for run in now.under_way if run.phase]
    if now.widest is not None:
        of = now.widest
        where = ", ".join([of.cell.arm, *(label for _, label in of.cell.settings)])
        parts.append(f"widest ±{100 * of.relative:.2g} % ({of.metric}: {where})")
    if now.failures:
        parts.append("failed: " + ", ".join(f"{count} {cause}" for cause, count in now.failures.items()))
    if now.note:
        parts.append(now.note)
    return " · ".join(parts)


def titled_text(now: tuple[str, Progress], elapsed_s: float) -> str:
    """Return the current experiment and its progress."""
    return f"{now[0]} · {progress_text(now[1], elapsed_s)}"


def _live_text(run: UnderWay) -> str:
    """``RED, seed 1: run 14/20 s, worst 1.2 ms late``."""
    late = f", worst {1e3 * run.lateness_max_s:.1f} ms late" if run.lateness_max_s else ""
    return f"{run.arm}, seed {run.seed}: {run.phase} {run.done_s:.0f}/{run.total_s:.0f} s{late}"


def check_text(now: Mapping[str, Any], elapsed_s: float) -> str:
    """``scripts 1200/9000 · 600/s · 13 s to go``."""
    done, total = now["scripts_done"], now["scripts_total"]
    parts = [f"scripts {done}" if total is None else f"scripts {done}/{total}"]
    if elapsed_s > 0:
        parts.append(f"{done / elapsed_s:.0f}/s")
    if now["findings"]:
        parts.append(f"{now['findings']} settings fail")
    if total is not None and done and elapsed_s >= _SECONDS_BEFORE_ETA:
        parts.append(f"{duration_text(elapsed_s * (total - done) / done)} to go")
    return " · ".join(parts)


def duration_s(text: str) -> float:
    """Return the seconds of a time as scenarios write it: ``250ms``, ``90s``, ``10min`` or ``1.5h``."""
    from aqmlab import _core

    return _core.quantity(text, "ns") / 1e9


def duration_text(seconds: float) -> str:
    """``8 s``, ``3 min``, ``2.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
