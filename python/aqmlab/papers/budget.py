"""What a search may take.

It is the time of what was looked at, as it was noted down then: a repetition ends where the first time ended.
"""

from __future__ import annotations

import math


class OverBudgetError(Exception):
    """What would come next takes longer than what is left."""


class Budget:
    """Seconds to be spent.

    Parameters
    ----------
    total_s
        How many there are.
    """

    def __init__(self, total_s: float = math.inf) -> None:
        self.total_s = total_s
        self.spent_s = 0.0
        self._seeds = 0
        self._share = 1.0

    @property
    def each_s(self) -> float:
        """What a reading takes with one seed, as far as it was seen."""
        return self.spent_s / self._seeds if self._seeds else 0.0

    def allow(self, share: float) -> None:
        """Let a share of all be spent from now on."""
        self._share = share

    def enough(self, share: float, seeds: int) -> bool:
        """Whether a share of all is enough for so many seeds more."""
        return self.spent_s + seeds * self.each_s <= share * self.total_s

    def check(self, seeds: int) -> None:
        """Complain if so many seeds more would be over what may be spent now.

        Raises
        ------
        OverBudgetError
            If they would.
        """
        if not self.enough(self._share, seeds):
            raise OverBudgetError

    def spend(self, seconds: float, seeds: int) -> None:
        """Count what so many seeds took."""
        self.spent_s += seconds
        self._seeds += seeds
