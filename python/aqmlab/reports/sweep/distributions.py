"""Distributions of queueing delay over seeds: of each cell a mean curve and a band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from aqmlab.metrics import EVERY_CLASS, Histogram
from aqmlab.results import Cell, Results
from aqmlab.stats import CONFIDENCE, t_quantile

if TYPE_CHECKING:
    import numpy.typing as npt

    Curve = npt.NDArray[np.float64]

SHARES = np.concatenate(((0.0, 0.001, 0.005), np.linspace(0.01, 0.98, 50), (0.985, 0.99, 0.995, 0.999, 1.0)))
"""Where a curve has its points: as many as a panel 300 pixels wide can show, and its two tails."""


@dataclass(frozen=True)
class DelayCdf:
    """The distribution function of queueing delay in one cell.

    Attributes
    ----------
    delay_ms
        Ends of bins that all seeds share.
    share
        Mean over the seeds of the share of packets that wait no longer.
    low, high
        Pointwise 95 % Student t interval of that mean, within 0 and 1; the curve itself for a single seed.
    n
        Seeds.
    p99_ms
        Delay that 99 % of the packets of all seeds do not exceed.
    """

    delay_ms: Curve
    share: Curve
    low: Curve
    high: Curve
    n: int
    p99_ms: float


def delay_cdf(results: Results, cell: Cell) -> DelayCdf | None:
    """The distribution of a cell at its queue; ``None`` if no packet left it."""
    measured = results.measured(cell)
    if not measured:
        return None
    queue = results.queue_of(cell)
    totals = [run.queues.get((queue, EVERY_CLASS)) for run in measured]
    of_seeds = [entry.sojourn for entry in totals if entry is not None and entry.sojourn.total]
    if not of_seeds:
        return None
    merged = Histogram.merged(of_seeds)
    high, share = merged.cdf()
    grid = np.unique(np.asarray(high)[np.searchsorted(share, SHARES).clip(0, len(high) - 1)])
    grid = np.concatenate(([0], grid))
    shares = np.array([_share_up_to(histogram, grid) for histogram in of_seeds])
    mean, n = shares.mean(axis=0), len(of_seeds)
    half = (
        t_quantile(CONFIDENCE, n - 1) * shares.std(axis=0, ddof=1) / np.sqrt(n)
        if n > 1
        else np.zeros_like(mean)
    )
    p99 = (merged.quantile(0.99) or 0.0) / 1e6
    return DelayCdf(grid / 1e6, mean, np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1), n, p99)


def _share_up_to(histogram: Histogram, ends_ns: npt.NDArray[np.int64]) -> Curve:
    """Share of the weight in bins that end at or below some ends: exact, for all have the same bins."""
    high, share = histogram.cdf()
    return np.concatenate(([0.0], share))[np.searchsorted(high, ends_ns, side="right")]
