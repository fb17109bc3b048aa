"""Student's t distribution.

For whole degrees of freedom, such as those of means and of pairs, the distribution is a finite sum:
Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4. For fractional degrees
(Welch's), it is an incomplete beta function: 26.7.1.
"""

from __future__ import annotations

import math
from functools import lru_cache

from aqmlab.stats.beta import share_below


def within(t: float, degrees: float) -> float:
    """Probability between ``-t`` and ``t``.

    Parameters
    ----------
    t
        At least 0.
    degrees
        Degrees of freedom, at least 1.
    """
    if degrees < 1:
        raise ValueError(f"Student's t has at least 1 degree of freedom, not {degrees:g}")
    if degrees != int(degrees):
        return share_below(t * t / (degrees + t * t), 0.5, degrees / 2.0)
    degrees = int(degrees)
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    # Terms of cos, cos^3, ... for odd degrees and of 1, cos^2, ... for even ones, up to cos^(degrees - 2).
    term, total = cosine if odd else 1.0, 0.0
    for power in range(odd, degrees - 1, 2):
        total += term
        term *= (power + 1) / (power + 2) * cosine * cosine
    return 2.0 / math.pi * (angle + sine * total) if odd else sine * total


@lru_cache(maxsize=256)
def quantile(confidence: float, degrees: float) -> float:
    """Return the ``t`` for which the probability between ``-t`` and ``t`` is ``confidence``.

    Newton's method from zero: the probability is concave in ``t``, so each step approaches the solution from
    below.

    Parameters
    ----------
    confidence
        At least 0 and below 1.
    degrees
        Degrees of freedom, at least 1.
    """
    if not 0.0 <= confidence < 1.0:
        raise ValueError(f"a confidence must be at least 0 and below 1, not {confidence:g}")
    half = (degrees + 1) / 2
    scale = 2.0 * math.exp(math.lgamma(half) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)
    t, before = 0.0, -1.0
    while t > before:
        before = t
        density = scale * math.exp(-half * math.log1p(t * t / degrees))
        t = before + (confidence - within(before, degrees)) / density
    return before
