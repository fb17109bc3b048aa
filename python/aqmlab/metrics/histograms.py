"""Distributions of whole numbers in bins, read from recordings on demand."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from aqmlab.text.numbers import counted

if TYPE_CHECKING:
    from aqmlab.recordings.recording import Run, Tables

    Bins = tuple[array[int], array[int], array[int]]

BINS_KEPT = 16_000_000
"""Largest number of bins of one table that are kept, unless one block has more; a bin takes 24 bytes."""


@dataclass(frozen=True, repr=False)
class Histogram:
    """A distribution of whole numbers in bins, each of which includes its low and its high end.

    Attributes
    ----------
    low, high
        Ends of the bins, ascending.
    weight
        Packets or nanoseconds in each bin.
    """

    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()
    weight: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"<Histogram: {counted(len(self.weight), 'bin')} of weight {self.total}>"

    @cached_property
    def total(self) -> int:
        """Sum of the weights."""
        return sum(self.weight)

    @cached_property
    def _cumulative(self) -> list[int]:
        return list(accumulate(self.weight))

    def up_to(self, value: float) -> float:
        """The weight of the values up to a given value, spread within a bin as in :meth:`quantile`."""
        index = bisect_right(self.low, value)
        if index == 0:
            return 0.0
        low, high, weight = self.low[index - 1], self.high[index - 1], self.weight[index - 1]
        inside = 1.0 if value >= high else (value - low) / (high - low)
        return self._cumulative[index - 1] - weight + inside * weight

    def quantile(self, p: float) -> float | None:
        """Smallest value such that at least the share ``p`` of the weight is at or below it.

        Within a bin, the weight is taken to be spread evenly, so the error is below the bin's
        width, 1 % of the value. ``None`` if the histogram is empty.
        """
        cumulative = self._cumulative
        if not cumulative or cumulative[-1] == 0:
            return None
        target = p * cumulative[-1]
        index = min(bisect_left(cumulative, target), len(cumulative) - 1)
        before = cumulative[index] - self.weight[index]
        inside = (target - before) / self.weight[index]
        return self.low[index] + inside * (self.high[index] - self.low[index])

    def cdf(self) -> tuple[Sequence[int], list[float]]:
        """Upper ends of the bins, and the share of the weight up to each."""
        total = max(self.total, 1)
        return self.high, [weight / total for weight in self._cumulative]

    @staticmethod
    def merged(parts: Sequence[Histogram]) -> Histogram:
        """Merge several histograms into one; all of them use the same bins."""
        weights: defaultdict[tuple[int, int], int] = defaultdict(int)
        for part in parts:
            for low, high, weight in zip(part.low, part.high, part.weight, strict=True):
                weights[low, high] += weight
        bins = sorted(weights)
        return Histogram(
            tuple(low for low, _ in bins),
            tuple(high for _, high in bins),
            tuple(weights[key] for key in bins),
        )


EMPTY_HISTOGRAM = Histogram()


class Histograms:
    """A table of histograms of several runs, which are read on demand.

    A run in a large network has hundreds of thousands of bins, few of which are used. A block, which consists
    of the same histograms of all runs, is read as a whole. The last few blocks are kept.

    Parameters
    ----------
    tables
        The tables of the runs.
    table
        ``"histograms"`` or one like it.
    block
        The columns that identify a block.
    within
        The columns that identify one histogram of a run in a block.

    Attributes
    ----------
    sums
        Two sums for each histogram: the sum of the weights, and the weighted sum of the low and high ends of
        the bins, which is twice the numerator of the mean. The key consists of the path of the run and the
        names of the block and of the histogram. The sums are read when the object is created, so that a
        damaged file is detected then.
    """

    def __init__(self, tables: Tables, table: str, block: Sequence[str], within: Sequence[str] = ()) -> None:
        self._tables = tables
        self._table = table
        self._block = tuple(block)
        self._within = tuple(within)
        self._kept: OrderedDict[tuple[str, ...], Mapping[tuple[object, ...], Bins]] = OrderedDict()
        self._bins_kept = 0
        self._runs = [run for run in tables.runs if table in run.manifest.tables]
        self._index = {run.path: index for index, run in enumerate(self._runs)}
        names = ", ".join(("run", *block, *within))
        sums = "sum(weight), sum((low::HUGEINT + high) * weight)"
        found = tables.rows(table, f"{names}, {sums}", f"GROUP BY {names}", self._runs)
        self.sums = {(self._runs[run].path, *own): (weight, ends) for run, *own, weight, ends in found}

    def of(self, run: Run, *names: Any) -> Histogram:  # noqa: ANN401 (values of any column)
        """Return a run's histogram, given its block's names and then its own; empty if there is none."""
        block, within = names[: len(self._block)], names[len(self._block) :]
        if block not in self._kept:
            self._read(block)
        self._kept.move_to_end(block)
        found = self._kept[block].get((self._index.get(run.path), *within))
        return EMPTY_HISTOGRAM if found is None else Histogram(*map(tuple, found))

    def _read(self, block: tuple[str, ...]) -> None:
        names = ", ".join(("run", *self._within))
        chosen = " AND ".join(f"{of} = {quoted(name)}" for of, name in zip(self._block, block, strict=True))
        lists = ", ".join(f"list({column} ORDER BY low) AS {column}s" for column in ("low", "high", "weight"))
        found = self._tables.rows(
            self._table, f"{names}, {lists}", f"WHERE {chosen} GROUP BY {names}", self._runs
        )
        # These are not NumPy arrays, because importing NumPy would take longer than computing a small answer.
        self._kept[block] = {
            tuple(key): (array("q", low), array("q", high), array("q", weight))
            for *key, low, high, weight in found
        }
        self._bins_kept += _size(self._kept[block])
        while self._bins_kept > BINS_KEPT and len(self._kept) > 1:
            self._bins_kept -= _size(self._kept.popitem(last=False)[1])


def quoted(text: str) -> str:
    """A string as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _size(block: Mapping[tuple[object, ...], Bins]) -> int:
    return sum(len(low) for low, _, _ in block.values())
