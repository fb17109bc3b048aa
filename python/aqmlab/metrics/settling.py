"""A sampled value over time: its moving mean, the time when it settles near a target, and its variation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aqmlab.metrics.measured import Samples

WINDOW_S = 10.0
"""Length of the moving mean: forty round-trip times of 250 ms, so that TCP's sawtooth is averaged out."""
BAND = 0.2
"""Distance from the target, as a share of the target, up to which the moving mean counts as near it."""
HOLD_S = 60.0
"""How long the moving mean must stay near the target at the end of the samples.

It is six windows long, so that staying there is not a coincidence.
"""
BIN_S = 1.0
"""Length of the bins over which the probability is averaged."""


def moving_mean(samples: Samples, window_s: float = WINDOW_S) -> Samples:
    """Mean of the samples in ``(t - window_s, t]``, for each sample time t, starting at ``window_s``.

    Samples are taken to be equally spaced. The result is empty if they do not fill a window.
    """
    if len(samples.t_s) < 2:
        return Samples(samples.t_s[:0], samples.values[:0])
    width = max(round(window_s / float(samples.t_s[1] - samples.t_s[0])), 1)
    sums = np.concatenate([[0.0], np.cumsum(samples.values)])
    return Samples(samples.t_s[width - 1 :], (sums[width:] - sums[:-width]) / width)


def reach_time(samples: Samples, target: float, band: float = BAND) -> float | None:
    """Return when the moving mean first comes within ``band`` of the target; ``None`` if it never does."""
    means = moving_mean(samples)
    inside = np.flatnonzero(_is_inside(means, target, band))
    return float(means.t_s[inside[0]]) if len(inside) else None


def settling_time(samples: Samples, target: float, band: float = BAND) -> float | None:
    """Return the time after which the moving mean stays within ``band`` of the target.

    ``None`` unless it stays there for at least the last :data:`HOLD_S` of the samples.
    """
    means = moving_mean(samples)
    inside = _is_inside(means, target, band)
    if not len(inside) or not inside[-1]:
        return None
    outside = np.flatnonzero(~inside)
    settled = float(means.t_s[outside[-1] + 1 if len(outside) else 0])
    # Rounding of the times must not affect the result.
    return settled if means.t_s[-1] - settled >= HOLD_S - 1e-6 else None


def stretches_between(values: npt.NDArray[np.float64], low: float, high: float) -> list[tuple[int, int]]:
    """Return the beginning and the length of each unbroken interval of values strictly between two bounds."""
    inside = (values > low) & (values < high)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(np.int8)))
    return [(int(begin), int(end - begin)) for begin, end in edges.reshape(-1, 2)]


def coefficient_of_variation(samples: Samples, from_s: float, bin_s: float = BIN_S) -> float | None:
    """Standard deviation of the means of bins after ``from_s``, divided by their mean.

    ``None`` if there is no bin, or if the mean is zero.
    """
    late = samples.t_s > from_s
    # A sample at the end of a bin belongs to it.
    bins = np.unique(np.ceil((samples.t_s[late] - from_s) / bin_s - 1e-9), return_inverse=True)[1]
    if not len(bins):
        return None
    means = np.bincount(bins, weights=samples.values[late]) / np.bincount(bins)
    mean = float(means.mean())
    return float(means.std()) / mean if mean else None


def _is_inside(means: Samples, target: float, band: float) -> npt.NDArray[np.bool_]:
    return np.abs(means.values - target) <= band * target
