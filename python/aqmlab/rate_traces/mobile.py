"""Logs of downloads in 3G and 4G networks: bytes received, and the milliseconds that this took.

Six columns: time, milliseconds since the start, latitude, longitude, bytes since the row before, milliseconds
since the row before (Ghent's 4G logs, van der Hooft et al. 2016; the HSDPA logs of Riiser et al. 2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aqmlab.errors import UsageError
from aqmlab.rate_traces.model import Level, RateTrace, number, trace

COLUMNS = 6


def fits(lines: Sequence[str]) -> bool:
    """Whether these lines have six numbers each."""
    try:
        return bool(lines) and all(len([float(word) for word in line.split()]) == COLUMNS for line in lines)
    except ValueError:
        return False


def read(path: Path, lines: Sequence[str]) -> RateTrace:
    """Return the mean rate of each row."""
    levels = []
    apart = 0
    before_ms: float | None = None
    for row, line in enumerate(lines, start=1):
        words = line.split()
        if len(words) != COLUMNS:
            raise UsageError(f"`{path}`, row {row}: {len(words)} columns instead of {COLUMNS}")
        at_ms = number(words[1], "the time since the start", path, row)
        received = number(words[4], "the number of bytes", path, row)
        took_ms = number(words[5], "the number of milliseconds", path, row)
        if before_ms is not None and at_ms < before_ms:
            raise UsageError(
                f"`{path}`, row {row}: {words[1]} ms is before {before_ms:g} ms of the row before"
            )
        if not took_ms:
            raise UsageError(f"`{path}`, row {row}: the row took 0 ms; leave it out")
        apart += before_ms is not None and abs(at_ms - before_ms - took_ms) > 0.05 * took_ms
        before_ms = at_ms
        levels.append(Level(took_ms / 1000, 8000 * received / took_ms))
    assumed = [
        "a download used the whole rate: the log has what it received, not what the link could have sent",
        "received bytes are those of the application, so the link sent its headers in addition",
    ]
    if apart:
        assumed.append(
            f"rows follow one another without gaps, although the times of {apart} of {len(levels)} differ by"
            " more than 5 % from their durations"
        )
    return trace(levels, assumed, path)
