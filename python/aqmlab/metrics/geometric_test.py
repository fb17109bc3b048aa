"""Gaps between marks, tested against a geometric distribution; a separate module because it imports NumPy."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

LEAST_MARKS = 100
LEAST_EXPECTED = 20.0
"""Minimum expected number of gaps in each class of the test: four times Cochran's rule of five."""


def geometric_p_value(marked: npt.NDArray[np.bool_]) -> float | None:
    """Pearson's chi-square test of gaps between marks against a geometric distribution.

    Parameters
    ----------
    marked
        Whether each of the successive arrivals was marked.

    Returns
    -------
    float or None
        The probability of a larger statistic if each arrival is marked independently with the same
        probability. That probability is estimated from the gaps, which costs a degree of freedom.
        ``None`` if there are fewer than 100 marks, or if marks are so frequent that the gaps fall
        into fewer than three classes.
    """
    gaps = np.diff(np.flatnonzero(marked))
    if len(gaps) < LEAST_MARKS - 1:
        return None
    p = len(gaps) / float(gaps.sum())
    ends = _class_ends(p, len(gaps))
    if len(ends) < 2:
        return None
    # Classes are (0, e1], (e1, e2], ..., (ek, infinity).
    tails = np.concatenate([[1.0], (1.0 - p) ** np.asarray(ends), [0.0]])
    expected = -len(gaps) * np.diff(tails)
    observed = np.bincount(np.searchsorted(ends, gaps), minlength=len(ends) + 1)
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return chi_square_beyond(statistic, len(expected) - 2)


def chi_square_beyond(statistic: float, degrees: int) -> float:
    """Return the probability that chi-square exceeds a statistic.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.4.4 and 26.4.5.

    Parameters
    ----------
    statistic
        At least 0.
    degrees
        Degrees of freedom, at least 1.
    """
    half = statistic / 2.0
    odd = degrees % 2
    total = math.erfc(math.sqrt(half)) if odd else 0.0
    term = math.exp(-half) * (math.sqrt(half / math.pi) * 2.0 if odd else 1.0)
    for n in range(odd, degrees - 1, 2):
        total += term
        term *= statistic / (n + 2)
    return total


def _class_ends(p: float, number: int) -> list[int]:
    """Upper limits of the classes of gaps.

    The expected number of gaps is at least :data:`LEAST_EXPECTED` in each class and in the tail.
    """
    ends: list[int] = []
    tail, end = 1.0, 0
    while True:
        end += 1
        beyond = (1.0 - p) ** end
        if number * beyond < LEAST_EXPECTED:
            return ends
        if number * (tail - beyond) >= LEAST_EXPECTED:
            ends.append(end)
            tail = beyond
