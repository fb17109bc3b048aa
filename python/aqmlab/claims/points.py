"""Which figures are differences: those of percentages are in percentage points, and not in percent."""

from __future__ import annotations

from aqmlab.claims.tree import Arithmetic, Call, Expression, MetricOf, Negative, Node, children

_DIFFERENCES = frozenset({"range", "largest_step", "change", "slope", "std"})
"""Functions that give the distance of values, in the unit of these."""


def is_difference(node: Expression) -> bool:
    """Whether a figure is the distance of two that were measured, or is made of such.

    What is left of a constant is none: ``100 % - utilisation_percent`` is a percentage itself.
    """
    match node:
        case Negative():
            return is_difference(node.of)
        case Arithmetic():
            return _is_difference_of(node) or any(map(is_difference, _operands(node)))
        case Call():
            figures = [part for part in node.arguments if isinstance(part, Expression)]
            return bool(figures) and (node.function in _DIFFERENCES or any(map(is_difference, figures)))
    return False


def _is_difference_of(node: Arithmetic) -> bool:
    taken = [part for sign, part in node.rest if sign == "-"]
    left = [node.first, *(part for sign, part in node.rest if sign == "+")]
    return not node.product and any(map(_is_measured, taken)) and any(map(_is_measured, left))


def _operands(node: Arithmetic) -> list[Expression]:
    return [node.first, *(part for _, part in node.rest)]


def _is_measured(node: Node) -> bool:
    return isinstance(node, MetricOf) or any(map(_is_measured, children(node)))
