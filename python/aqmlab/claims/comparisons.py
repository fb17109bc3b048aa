"""What is recorded when a claim is decided: its comparisons, with their sides and bindings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aqmlab.claims.names import Bindings, Names
from aqmlab.claims.tree import Expression
from aqmlab.stats import Interval
from aqmlab.stats.verdict import Verdict
from aqmlab.text.units import Unit


@dataclass(frozen=True)
class Operand:
    """One side of a comparison.

    Attributes
    ----------
    text
        The expression.
    estimate
        The mean over the seeds, or another figure over them, with its 95 % interval; a constant has no
        interval.
    difference
        Whether it is the difference of two measured figures, which for percentages is in percentage
        points.
    node
        The expression as a tree; ``None`` for a condition.
    at
        Its bindings, as pairs of an axis's short name and a label.
    """

    text: str
    estimate: Interval
    difference: bool = False
    node: Expression | None = None
    at: tuple[tuple[str, str], ...] = ()

    @property
    def constant(self) -> bool:
        """Whether the side is a number written in the claim, not a measurement."""
        return self.estimate.method == "constant"


@dataclass(frozen=True)
class ClaimComparison:
    """One comparison of a claim, with its sides.

    Attributes
    ----------
    text
        The comparison.
    at
        The bindings of ``for``, ``over`` and ``where``, as pairs of an axis's short name and a label.
    left, right
        The sides; ``right`` is ``None`` for a range.
    found
        The quantity that is judged: the difference of the sides, their ratio, or the left side alone.
    effect
        The kind of this quantity: ``"difference"``, ``"ratio"``, ``"value"``.
    unit
        Unit of the sides and of the difference.
    verdict
        Verdict on this comparison alone, at 95 %.
    """

    text: str
    at: tuple[tuple[str, str], ...]
    left: Operand
    right: Operand | None
    found: Interval
    effect: str
    unit: Unit
    verdict: Verdict

    @property
    def measured(self) -> tuple[Operand, ...]:
        """The sides that are not constants, which are shown; the claim itself shows the constants."""
        return tuple(side for side in (self.left, self.right) if side is not None and not side.constant)


def shown(bound: Bindings, names: Names) -> tuple[tuple[str, str], ...]:
    """Return the bindings as pairs: the short name of an axis, and the label."""
    return tuple((names.short(key), label) for key, label in bound.items())


def labelled(node: Expression, bound: Bindings, common: Bindings, names: Names) -> str:
    """Return an expression with its own bindings: ``x at buffer 4p``."""
    own = {key: label for key, label in bound.items() if key not in common}
    return f"{node} at {where_text(shown(own, names))}" if own else str(node)


def where_text(at: Iterable[tuple[str, str]]) -> str:
    """Return axes and labels in words: ``buffer 4p, count 20``."""
    return ", ".join(f"{axis} {label}" for axis, label in at)
