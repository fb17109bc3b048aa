"""Bootstrap intervals, for what is neither a mean nor a quantile nor a share.

The BCa interval (bias-corrected and accelerated) reads its ends from the distribution of the statistic over
resamples, at levels corrected for its bias and for how its spread changes with its value. It fits skewed
statistics, and never leaves their range: no standard deviation below zero. Its coverage is right to the
second order in n, which helps nobody below some thirty values, where it covers too little; so it is refused
there.

Quantiles have a better interval (:mod:`aqmlab.stats.quantiles`): the jackknife, from which the acceleration
comes, is not consistent for them.

Source: Efron, Journal of the American Statistical Association 82 (1987); Efron and Tibshirani, An
Introduction to the Bootstrap (1993), chapter 14. Computed by ``scipy.stats.bootstrap``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from aqmlab.stats.intervals import CONFIDENCE, Interval, present

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LEAST_VALUES = 30
RESAMPLES = 9999
"""So many that chance moves an end by a hundredth or two of the interval's width."""
_METHOD = "BCa bootstrap"

Statistic = Callable[..., Any]
"""As SciPy has it: takes an array and ``axis``, and returns the statistic along it (``numpy.std``)."""


def bca(values: Iterable[float | None], statistic: Statistic, confidence: float = CONFIDENCE) -> Interval:
    """A statistic and its BCa interval.

    The resamples are drawn by a generator whose seed is the number of values: the same values give the same
    interval, in whatever process.

    Parameters
    ----------
    values
        One a seed; ``None`` and NaN are seeds for which the metric is not defined.
    statistic
        Of an array, along ``axis``: ``numpy.std``.
    confidence
        Nominal coverage.

    Returns
    -------
    Interval
        Without ends, and with the reason, below 30 values.
    """
    import numpy as np

    array: npt.NDArray[np.float64] = np.asarray(present(values), dtype=np.float64)
    n = array.size
    if n == 0:
        return Interval(None, None, None, 0, confidence, _METHOD, "no seed has a value")
    found = float(statistic(array, axis=-1))
    if n < LEAST_VALUES:
        there = "is" if n == 1 else "are"
        reason = f"a bootstrap interval needs {LEAST_VALUES} values at least, there {there} {n}"
        return Interval(found, None, None, n, confidence, _METHOD, reason)
    if array.min() == array.max():
        # All resamples are the same: SciPy has no interval for that, and none is due.
        return Interval(found, found, found, n, confidence, _METHOD)
    low, high = _ends(array, statistic, confidence)
    if not (np.isfinite(low) and np.isfinite(high)):
        reason = "nearly all resamples give the same: there is no bootstrap interval"
        return Interval(found, None, None, n, confidence, _METHOD, reason)
    return Interval(found, low, high, n, confidence, _METHOD)


def _ends(array: npt.NDArray[np.float64], statistic: Statistic, confidence: float) -> tuple[float, float]:
    import warnings

    import numpy as np
    from scipy import stats

    generator = np.random.default_rng(array.size)
    with warnings.catch_warnings():
        # What it warns of is that there are no ends, which the caller sees.
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        found = stats.bootstrap(
            (array,),
            statistic,
            n_resamples=RESAMPLES,
            # A hundred thousand values at a time, whatever n.
            batch=max(1, 100_000 // array.size),
            vectorized=True,
            confidence_level=confidence,
            method="BCa",
            random_state=generator,
        )
    low, high = found.confidence_interval
    return float(low), float(high)
