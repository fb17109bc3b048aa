"""The course of a link's rate, as files of other programs give it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aqmlab.errors import UsageError


@dataclass(frozen=True)
class Level:
    """A rate for some time.

    Attributes
    ----------
    lasts_s
        For how long, in seconds.
    rate_bps
        The rate, in bit/s.
    """

    lasts_s: float
    rate_bps: float


@dataclass(frozen=True)
class RateTrace:
    """A rate over time.

    Attributes
    ----------
    levels
        The rates, one after another.
    assumed
        What the file does not say, and was assumed; whole sentences without a full stop.
    """

    levels: tuple[Level, ...]
    assumed: tuple[str, ...]

    @property
    def lasts_s(self) -> float:
        """The length, in seconds."""
        return sum(level.lasts_s for level in self.levels)

    @property
    def mean_bps(self) -> float:
        """The mean rate, in bit/s."""
        return sum(level.lasts_s * level.rate_bps for level in self.levels) / self.lasts_s

    def rows(self) -> list[tuple[float, float]]:
        """The rows of a file for ``rate = { kind = "file", .. }``: instants in seconds, and rates in bit/s.

        There, the last level lasts as long as the one before it, so the last row may stand twice.
        """
        levels = list(self.levels)
        if len(levels) == 1 or levels[-1].lasts_s != levels[-2].lasts_s:
            half = Level(levels[-1].lasts_s / 2, levels[-1].rate_bps)
            levels[-1:] = [half, half]
        found, at_s = [], 0.0
        for level in levels:
            found.append((at_s, level.rate_bps))
            at_s += level.lasts_s
        return found

    def write(self, path: Path) -> None:
        """Write the rows to a new CSV file.

        Raises
        ------
        FileExistsError
            If there is a file of this name.
        """
        with path.open("x", encoding="utf-8") as file:
            file.write("time_s,rate_bps\n")
            file.writelines(f"{at_s:.9f},{rate_bps:.0f}\n" for at_s, rate_bps in self.rows())


def trace(levels: Iterable[Level], assumed: Sequence[str], path: Path) -> RateTrace:
    """Return a trace, with adjacent equal levels joined.

    Raises
    ------
    UsageError
        If the rate is always zero.
    """
    joined: list[Level] = []
    for level in levels:
        before_s = joined.pop().lasts_s if joined and joined[-1].rate_bps == level.rate_bps else 0.0
        joined.append(Level(before_s + level.lasts_s, level.rate_bps))
    if not any(level.rate_bps > 0 for level in joined):
        raise UsageError(f"`{path}`: the rate is zero all the time, so nothing would ever be sent")
    return RateTrace(tuple(joined), tuple(assumed))


def number(text: str, name: str, path: Path, row: int) -> float:
    """Return a number of at least zero from a file.

    Raises
    ------
    UsageError
        If it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"`{path}`, row {row}: {name} `{text}` is not a number of at least 0")
    return value
