"""Metrics of laws that hold a queue: how far off, how soon, how calmly.

Unlike all others the times and the spread are computed from samples, for they are about the course of the
run. They look at the whole of it, the warm-up included.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aqmlab.metrics.measured import EVERY_CLASS, Measured, Samples
from aqmlab.metrics.registry import metric
from aqmlab.plan import network

WINDOW_S = 10.0
"""Length of the moving mean: forty round-trip times of 250 ms, so that TCP's saw tooth is averaged out."""
BAND = 0.2
"""How far the moving mean may be from the target, as a share of the target."""
HOLD_S = 60.0
"""How long the moving mean must have stayed there at the end: six windows, so that no chance visit counts."""
BIN_S = 1.0
"""Length of a bin of the probability."""


def target_packets(run: Measured, queue: str) -> float | None:
    """The queue that the law is told to hold, ``q_ref``; ``None`` without one, or where it is in bytes."""
    link = network(run.run.plan).link(queue)
    text = str(link.settings.get("q_ref", "")) if link else ""
    return float(text.removesuffix("p")) if text.endswith("p") else None


def moving_mean(samples: Samples, window_s: float = WINDOW_S) -> Samples:
    """Mean of the samples in ``(t - window_s, t]``, for each sample time t from ``window_s`` on.

    Samples are taken to be equally spaced. Empty where they do not fill a window.
    """
    if len(samples.t_s) < 2:
        return Samples(samples.t_s[:0], samples.values[:0])
    width = max(round(window_s / float(samples.t_s[1] - samples.t_s[0])), 1)
    sums = np.concatenate([[0.0], np.cumsum(samples.values)])
    return Samples(samples.t_s[width - 1 :], (sums[width:] - sums[:-width]) / width)


def reach_time(samples: Samples, target: float, band: float = BAND) -> float | None:
    """When the moving mean first is within ``band`` of the target; ``None`` if it never is."""
    means = moving_mean(samples)
    inside = np.flatnonzero(_is_inside(means, target, band))
    return float(means.t_s[inside[0]]) if len(inside) else None


def settling_time(samples: Samples, target: float, band: float = BAND) -> float | None:
    """From when on the moving mean stays within ``band`` of the target.

    ``None`` if it does not do so for the last :data:`HOLD_S` of the samples.
    """
    means = moving_mean(samples)
    inside = _is_inside(means, target, band)
    if not len(inside) or not inside[-1]:
        return None
    outside = np.flatnonzero(~inside)
    settled = float(means.t_s[outside[-1] + 1 if len(outside) else 0])
    # Rounding of the times is not to decide.
    return settled if means.t_s[-1] - settled >= HOLD_S - 1e-6 else None


def coefficient_of_variation(samples: Samples, from_s: float, bin_s: float = BIN_S) -> float | None:
    """Standard deviation of the means of bins after ``from_s``, by their mean.

    ``None`` without a bin, and where the mean is zero.
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


@metric(
    "backlog_error_percent",
    label="backlog off q_ref",
    unit="%",
    definition="time-weighted mean of the packets that wait less the law's q_ref, by q_ref",
    source="steady-state error of a controller: Hollot, Misra, Towsley, Gong 2001",
)
def backlog_error(run: Measured, queue: str, _class_name: str) -> float | None:
    """Mean backlog less q_ref by q_ref, from exact integrals."""
    totals, target = run.queues.get((queue, EVERY_CLASS)), target_packets(run, queue)
    if totals is None or target is None:
        return None
    return 100.0 * (totals["backlog_packets_integral_ns"] / run.interval_ns - target) / target


@metric(
    "backlog_reach_s",
    label="q_ref reached after",
    unit="s",
    definition="time from the start of the run at which the mean backlog of the last 10 s first is within"
    " 20 % of q_ref",
    source="rise time of a controller; window and band are ours",
    better="less",
)
def backlog_reach(run: Measured, queue: str, _class_name: str) -> float | None:
    """When the queue comes to q_ref."""
    target = target_packets(run, queue)
    return None if target is None else reach_time(run.samples("queues", "backlog_packets", queue), target)


@metric(
    "backlog_settling_s",
    label="q_ref held after",
    unit="s",
    definition="time from the start of the run from which on the mean backlog of the last 10 s stays within"
    " 20 % of q_ref to the end; not defined where it does not, or for less than 60 s",
    source="settling time of a controller; window and band are ours",
    better="less",
)
def backlog_settling(run: Measured, queue: str, _class_name: str) -> float | None:
    """From when on the queue stays at q_ref."""
    target = target_packets(run, queue)
    return None if target is None else settling_time(run.samples("queues", "backlog_packets", queue), target)


@metric(
    "probability_spread_percent",
    label="spread of p",
    unit="%",
    definition="standard deviation of the law's probability over bins of 1 s in the second half of the run,"
    " by its mean",
    source="stability of the marking probability: Feng, Kandlur, Saha, Shin 2002",
    better="less",
)
def probability_spread(run: Measured, queue: str, _class_name: str) -> float | None:
    """How much the probability still moves once there has been time to find it."""
    spread = coefficient_of_variation(run.samples("law", "p", queue), run.run.t1_ns / 2e9)
    return None if spread is None else 100.0 * spread
