"""Differences between arms, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping

from aqmlab.stats.intervals import CONFIDENCE, Estimate, estimate


def paired_difference(
    a: Mapping[int, float | None], b: Mapping[int, float | None], confidence: float = CONFIDENCE
) -> Estimate | None:
    """Mean of ``a - b`` over the seeds that both have.

    Arms share their arrivals seed by seed, so that differences vary less than values do.

    Parameters
    ----------
    a, b
        Value by seed.
    confidence
        Coverage of the interval.
    """
    differences: list[float | None] = []
    for seed in sorted(a.keys() & b.keys()):
        x, y = a[seed], b[seed]
        differences.append(None if x is None or y is None else x - y)
    return estimate(differences, confidence)
