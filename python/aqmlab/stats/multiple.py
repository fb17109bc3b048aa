"""Correction for several comparisons: without it, about one in twenty finds a difference where none exists.

Source: Holm, Scandinavian Journal of Statistics 6 (1979).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aqmlab.stats.intervals import CONFIDENCE


@dataclass(frozen=True)
class MultipleComparisons:
    """The result of several comparisons, corrected for their number.

    Attributes
    ----------
    count
        Number of comparisons, including those that found nothing.
    found
        Number of those that found a difference when each is taken alone.
    kept
        Number of those that still find a difference under Holm's procedure, which keeps the probability of
        one or more errors at ``1 - confidence`` or less.
    confidence
        Confidence of each comparison taken alone, and of all together after Holm.
    """

    count: int
    found: int
    kept: int
    confidence: float = CONFIDENCE

    @property
    def note(self) -> str:
        """One sentence on the comparisons; empty for a single one, which needs no correction."""
        if self.count < 2:
            return ""
        level = 100 * self.confidence
        made = f"{self.count} comparisons were made, each at {level:g} %"
        if self.found == 0:
            return f"{made}; none found a difference"
        differ = "finds a difference" if self.found == 1 else "find a difference"
        if self.kept == self.found:
            holds = "and it stands" if self.found == 1 else "and all of them stand"
            return f"{made}: {self.found} {differ}, {holds} when all are taken together (Holm)"
        return (
            f"{made}: {self.found} {differ}, of which {self.kept or 'none'}"
            f" {'stands' if self.kept == 1 else 'stand'} when all are taken together (Holm)"
        )


def multiple_comparisons(
    p_values: Iterable[float | None], confidence: float = CONFIDENCE
) -> MultipleComparisons:
    """Count the comparisons, and how many find a difference, taken alone and taken together.

    Parameters
    ----------
    p_values
        :attr:`aqmlab.stats.differences.Difference.p_value` of each; ``None`` for one that was not tested.
    confidence
        Confidence of each interval.
    """
    tested = [p for p in p_values if p is not None]
    alpha = 1.0 - confidence
    found = sum(p <= alpha for p in tested)
    kept = sum(p <= alpha for p in holm(tested))
    return MultipleComparisons(len(tested), found, kept, confidence)


def adjusted(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """:func:`holm` applied to the comparisons that were tested; ``None`` for the others."""
    of_tested = iter(holm([p for p in p_values if p is not None]))
    return tuple(None if p is None else next(of_tested) for p in p_values)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p values, adjusted for their number, in the given order; one threshold then suits all.

    The smallest p is multiplied by the number of comparisons, the next by one less, and so on; no adjusted
    value is smaller than the one before it, or larger than 1.
    """
    count = len(p_values)
    adjusted = [0.0] * count
    largest = 0.0
    for rank, i in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (count - rank) * p_values[i]))
        adjusted[i] = largest
    return tuple(adjusted)
