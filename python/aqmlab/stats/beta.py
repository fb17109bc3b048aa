"""The regularized incomplete beta function, which gives the tails of the binomial and of Student's t.

SciPy has it too, but would make up a third of the installation.
"""

from __future__ import annotations

import math

_STEPS = 100_000
"""Largest number of terms; about ``sqrt(max(a, b))`` terms are enough."""


def share_below(x: float, a: float, b: float) -> float:
    """Return the probability that a beta variable with parameters ``a`` and ``b`` is below ``x``.

    Source: the continued fraction of the NIST Digital Library of Mathematical Functions, 8.17.22,
    evaluated by the modified method of Lentz (Thompson and Barnett, Journal of Computational Physics
    64, 1986).

    Parameters
    ----------
    x
        Between 0 and 1.
    a, b
        Above 0.
    """
    if not 0.0 < x < 1.0:
        return 0.0 if x <= 0.0 else 1.0
    # The fraction converges quickly below the mean; above it, the other tail is computed.
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _lower(1.0 - x, b, a)
    return _lower(x, a, b)


def _lower(x: float, a: float, b: float) -> float:
    log_scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    denominator = 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    numerator, value = 1.0, denominator
    for m in range(1, _STEPS):
        at = a + 2.0 * m
        even = m * (b - m) * x / ((at - 1.0) * at)
        odd = -(a + m) * (a + b + m) * x / (at * (at + 1.0))
        before = value
        for term in (even, odd):
            denominator = 1.0 / _not_zero(1.0 + term * denominator)
            numerator = _not_zero(1.0 + term / numerator)
            value *= denominator * numerator
        if abs(value - before) <= 1e-16 * abs(value):
            break
    return math.exp(log_scale) * value / a


def _not_zero(value: float) -> float:
    return value or 1e-300


def quantile(p: float, a: float, b: float) -> float:
    """Return the ``x`` for which :func:`share_below` is ``p``, by bisection to the last bit."""
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2.0) < high:
        if share_below(middle, a, b) < p:
            low = middle
        else:
            high = middle
    return middle
