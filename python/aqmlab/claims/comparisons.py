"""What is kept of a claim: each comparison, what was compared in it, and where."""

from __future__ import annotations

from dataclasses import dataclass

from aqmlab.claims.names import Bindings, Names
from aqmlab.claims.tree import Expression
from aqmlab.claims.units import Unit
from aqmlab.stats import Interval
from aqmlab.stats.verdict import Verdict


@dataclass(frozen=True)
class Operand:
    """One side of a comparison.

    Attributes
    ----------
    text
        The expression.
    estimate
        The mean over the seeds, or the figure, with its 95 % interval; without ends for a constant.
    difference
        Whether it is the distance of two measured figures: that of percentages is in percentage points.
    """

    text: str
    estimate: Interval
    difference: bool = False

    @property
    def constant(self) -> bool:
        """Whether it is a number of the claim, and nothing measured."""
        return self.estimate.method == "constant"


@dataclass(frozen=True)
class ClaimComparison:
    """One comparison of a claim, with what was compared.

    Attributes
    ----------
    text
        The comparison.
    at
        What ``for``, ``over`` and ``where`` fix for it: axis as people call it, and label.
    left, right
        What was compared; ``right`` is ``None`` for a range.
    found
        What the verdict is about: the difference of the sides, their ratio, or the left side alone.
    effect
        Which of these: ``"difference"``, ``"ratio"``, ``"value"``.
    unit
        Of the sides, and of the difference.
    verdict
        By itself, at 95 %.
    """

    text: str
    at: tuple[tuple[str, str], ...]
    left: Operand
    right: Operand | None
    found: Interval
    effect: str
    unit: Unit
    verdict: Verdict


def shown(bound: Bindings, names: Names) -> tuple[tuple[str, str], ...]:
    """What is fixed: axes as people call them, and labels."""
    return tuple((names.short(key), label) for key, label in bound.items())


def labelled(node: Expression, bound: Bindings, common: Bindings, names: Names) -> str:
    """An expression, and what is fixed for it alone: ``x at buffer 4p``."""
    own = {key: label for key, label in bound.items() if key not in common}
    return f"{node} at {place(own, names)}" if own else str(node)


def place(bound: Bindings, names: Names) -> str:
    """What is fixed, in words: ``buffer 4p, count 20``."""
    return ", ".join(f"{axis} {label}" for axis, label in shown(bound, names))
