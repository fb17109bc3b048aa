"""The budget of a search.

Evaluations are charged at their recorded durations, so a repeated search ends where the first one did.
"""

from __future__ import annotations

import math


class OverBudgetError(Exception):
    """Raised when the next step would exceed the remaining budget."""


class Budget:
    """The budget in seconds.

    Parameters
    ----------
    total_s
        The seconds that may be spent.
    """

    def __init__(self, total_s: float = math.inf) -> None:
        self.total_s = total_s
        self.spent_s = 0.0
        self._seeds = 0
        self._share = 1.0

    @property
    def each_s(self) -> float:
        """Return the time per reading and seed, from the evaluations so far."""
        return self.spent_s / self._seeds if self._seeds else 0.0

    def allow(self, share: float) -> None:
        """From now on, allow spending up to a share of the total budget."""
        self._share = share

    def enough(self, share: float, seeds: int) -> bool:
        """Return whether a share of the budget suffices for this many more seeds."""
        return self.spent_s + seeds * self.each_s <= share * self.total_s

    def check(self, seeds: int) -> None:
        """Raise an error if this many more seeds would exceed the budget.

        Raises
        ------
        OverBudgetError
            If the budget would be exceeded.
        """
        if not self.enough(self._share, seeds):
            raise OverBudgetError

    def spend(self, seconds: float, seeds: int) -> None:
        """Record that evaluating this many seeds took ``seconds``."""
        self.spent_s += seconds
        self._seeds += seeds
