"""Chances to send, as mm-link of Mahimahi reads them: the millisecond of each, one per line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aqmlab.errors import UsageError
from aqmlab.rate_traces.model import Level, RateTrace, trace

CHANCE_BITS = 8 * 1500
"""What a line stands for: a packet of 1500 bytes (mm-link(1))."""


def fits(lines: Sequence[str]) -> bool:
    """Whether all of these lines are whole numbers."""
    return bool(lines) and all(line.strip().isdecimal() for line in lines)


def read(path: Path, lines: Sequence[str], bin_s: float) -> RateTrace:
    """Return the mean rate in each bin."""
    stamps: list[int] = []
    for row, line in enumerate(lines, start=1):
        text = line.strip()
        if not text.isdecimal():
            raise UsageError(f"`{path}`, line {row}: `{text}` is not a whole number of milliseconds")
        if stamps and int(text) < stamps[-1]:
            raise UsageError(f"`{path}`, line {row}: {text} ms is before {stamps[-1]} ms of the line before")
        stamps.append(int(text))
    length_s = stamps[-1] / 1000
    if not length_s:
        raise UsageError(f"`{path}`: the last line is the length of the trace, so it must not be 0")
    counts = [0] * max(1, -int(-length_s // bin_s))
    for stamp in stamps:
        # A chance at the very end belongs to the last bin.
        counts[min(int(stamp / 1000 / bin_s), len(counts) - 1)] += 1
    lengths_s = [bin_s] * (len(counts) - 1) + [length_s - bin_s * (len(counts) - 1)]
    levels = [
        Level(lasts, count * CHANCE_BITS / lasts) for count, lasts in zip(counts, lengths_s, strict=True)
    ]
    assumed = [
        "each line is a chance to send 1500 bytes, as for mm-link",
        f'rates are means of {1000 * bin_s:g} ms; `rate = {{ kind = "mahimahi", file = .. }}` sends at the'
        " chances themselves",
    ]
    return trace(levels, assumed, path)
