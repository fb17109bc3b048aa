"""Which arms are the best of a column: the shaded figures of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aqmlab.stats import Estimate


def best_arms(
    means: Mapping[str, float], better: str, difference: Callable[[str, str], Estimate | None]
) -> frozenset[str]:
    """The arm of the best mean, and the arms whose paired difference to it may be zero.

    Parameters
    ----------
    means
        By arm.
    better
        ``"less"``, ``"more"``, or empty where neither is.
    difference
        Of two arms, seed by seed.

    Returns
    -------
    frozenset
        Empty where nobody differs: a mark would say nothing.
    """
    if not better or len(means) < 2:
        return frozenset()
    top = (min if better == "less" else max)(means, key=lambda arm: means[arm])
    chosen = set()
    for arm in means:
        found = difference(arm, top)
        if found is not None and not found.excludes_zero():
            chosen.add(arm)
    return frozenset() if len(chosen) == len(means) else frozenset(chosen)
