"""The decrease of variance with the scale, which characterises self-similar input.

Arrivals are counted in the intervals of the queue's samples. The means of m successive counts have
a variance that falls as 1/m where counts depend on each other only over short times, and as m^(2H -
2) where they are self-similar with the Hurst parameter H (Leland, Taqqu, Willinger, Wilson 1994,
section 3.2).

Scales run from 1/400 to 1/20 of the measured interval, so that at least 20 means go into each
variance. For heavy-tailed input, the estimate is too low by about 0.03 at H = 0.75: there are only a
few block means, and they depend on each other, so their mean, about which the variance is taken,
moves with them. The estimate is too high if the smallest scale is not far above the sources' own
periods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aqmlab.metrics.measured import Measured
from aqmlab.metrics.registry import metric
from aqmlab.metrics.scope import QUEUE

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_SCALES = 14
_MOST_BLOCKS = 400
_LEAST_BLOCKS = 20


@dataclass(frozen=True)
class VarianceTime:
    """A variance-time plot.

    Attributes
    ----------
    scale_s
        Lengths of the blocks in seconds, ascending.
    variance
        Variance of the blocks' means, divided by the square of the mean of all counts.
    """

    scale_s: npt.NDArray[np.float64]
    variance: npt.NDArray[np.float64]

    @property
    def slope(self) -> float:
        """Return the slope of log variance over log scale, by least squares."""
        import numpy as np

        return float(np.polyfit(np.log(self.scale_s), np.log(self.variance), 1)[0])

    @property
    def hurst(self) -> float:
        """The Hurst parameter, ``1 + slope / 2``."""
        return 1.0 + self.slope / 2.0


def variance_time(counts: npt.NDArray[np.float64], interval_s: float) -> VarianceTime | None:
    """Variances of block means at logarithmically spaced scales.

    Parameters
    ----------
    counts
        Arrivals in successive intervals.
    interval_s
        Length of an interval in seconds.

    Returns
    -------
    VarianceTime or None
        ``None`` if there are too few counts for blocks of different lengths, or if they do not vary.
    """
    import numpy as np

    least, most = len(counts) // _MOST_BLOCKS, len(counts) // _LEAST_BLOCKS
    if least < 1 or counts.var() == 0:
        return None
    lengths = np.unique(np.geomspace(least, most, _SCALES).round().astype(np.int64))
    mean = counts.mean()
    variance = [float(_block_means(counts, int(m)).var(ddof=1) / mean**2) for m in lengths]
    scales: npt.NDArray[np.float64] = (lengths * interval_s).astype(np.float64)
    return VarianceTime(scales, np.array(variance, dtype=np.float64))


def _block_means(counts: npt.NDArray[np.float64], length: int) -> npt.NDArray[np.float64]:
    blocks = len(counts) // length
    means: npt.NDArray[np.float64] = counts[: blocks * length].reshape(blocks, length).mean(axis=1)
    return means


def of_arrivals(run: Measured, queue: str) -> VarianceTime | None:
    """The variance-time plot of the packets that arrive at a queue in the measured interval."""
    samples = run.samples("queues", "arrivals_packets", queue)
    counts = samples.values[samples.t_s > run.run.t0_ns / 1e9]
    if len(counts) < 2:
        return None
    return variance_time(counts, float(samples.t_s[-1] - samples.t_s[-2]))


@metric(
    "hurst",
    label="Hurst parameter",
    unit="",
    definition="1 + slope / 2 of the variance-time plot of arrivals, at scales from 1/400 to 1/20 of the"
    " measured interval; not defined for fewer than 400 samples of the queue",
    source="Leland, Taqqu, Willinger, Wilson 1994, section 3.2",
    takes=QUEUE,
    from_samples=True,
)
def hurst(run: Measured, queue: str) -> float | None:
    """The Hurst parameter of the arrivals."""
    found = of_arrivals(run, queue)
    return None if found is None else found.hurst
