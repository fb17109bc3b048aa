"""Comparisons in words, for readers who do not write claims: ``throughput: load 90 / load 98 = 0.92``.

A metric is named by its label. The properties that all measured values of a comparison share are stated
once, in front; each value is then named by its remaining properties, usually by its arm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from aqmlab.claims.comparisons import ClaimComparison, Operand, where_text
from aqmlab.claims.functions import meaning
from aqmlab.claims.text import sentence
from aqmlab.claims.tree import (
    Arithmetic,
    Call,
    Condition,
    Expression,
    MetricOf,
    Negative,
    Node,
    children,
)
from aqmlab.metrics.braces import spaced
from aqmlab.metrics.registry import find
from aqmlab.text.numbers import listed

_ARM = "arm"
_SIGNS = {"-": "−", "*": "×"}


def worded(part: ClaimComparison) -> str:
    """Return a comparison as one line: ``load 98: drops: PI = 2.3 ± 0.1 %, RED = 4.0 ± 0.2 %, ...``.

    Parameters
    ----------
    part
        A comparison. An expression without a description in words is shown as it is written.
    """
    wording = _Wording.of(part)
    return ": ".join(filter(None, [wording.where, wording.subject, sentence(part, wording.named)]))


@dataclass(frozen=True)
class _Wording:
    """What the measured values of a comparison have in common.

    Attributes
    ----------
    where
        The labels that all the values share: ``load 98, arm PI``.
    subject
        The metric that all values share; empty if they differ in it.
    varying
        The axes in which values differ.
    """

    where: str
    subject: str
    varying: tuple[str, ...]

    @classmethod
    def of(cls, part: ClaimComparison) -> _Wording:
        around, sides = dict(part.at), part.measured
        measured = [
            (leaf, {**around, **dict(side.at), **_labels(leaf)})
            for side in sides
            if side.node is not None
            for leaf in _measured(side.node)
        ]
        places = [place for _, place in measured]
        axes = dict.fromkeys([*around, *(axis for place in places for axis in place)])
        varying = tuple(axis for axis in axes if len({place.get(axis) for place in places}) > 1)
        first = places[0] if places else around
        shared = [(axis, first[axis]) for axis in axes if axis not in varying and axis in first]
        quantities = {_quantity(leaf) for leaf, _ in measured}
        bare = all(isinstance(side.node, MetricOf) for side in sides)
        subject = quantities.pop() if len(quantities) == 1 and (varying or bare) else ""
        return cls(where_text(shared), subject, varying)

    def named(self, side: Operand) -> str:
        """Return one side of the comparison in words."""
        return self.text(side.node, dict(side.at)) if side.node is not None else side.text

    def text(self, node: Expression | Condition, at: Mapping[str, str]) -> str:
        """Return an expression in words; ``at`` has the labels that apply to it."""
        match node:
            case MetricOf():
                return self._value(node, at)
            case Negative():
                return f"−{self._operand(node.of, at)}"
            case Arithmetic():
                rest = [
                    f"{_SIGNS.get(sign, sign)} {self._operand(part, at, node)}" for sign, part in node.rest
                ]
                return " ".join([self._operand(node.first, at, node), *rest])
            case Call():
                return self._call(node, at)
        return str(node)

    def _value(self, node: MetricOf, at: Mapping[str, str]) -> str:
        place = {**at, **_labels(node)}
        axes = sorted((axis for axis in self.varying if axis in place), key=lambda axis: axis != _ARM)
        of = [place[axis] if axis == _ARM else f"{axis} {place[axis]}" for axis in axes]
        where = ", ".join(of)
        if self.subject:
            return where
        return f"{_quantity(node)} of {where}" if where else _quantity(node)

    def _operand(
        self, part: Expression | Condition, at: Mapping[str, str], of: Arithmetic | None = None
    ) -> str:
        text = self.text(part, at)
        binds_tighter = of is not None and not of.product and isinstance(part, Arithmetic) and part.product
        open_ended = isinstance(part, Arithmetic) and not binds_tighter
        return f"({text})" if open_ended or _is_phrase(part) else text

    def _call(self, node: Call, at: Mapping[str, str]) -> str:
        function = meaning(node)
        if _between_bars(node):
            return function.phrase.format(one=self.text(node.arguments[0], at))
        if not _is_phrase(node):
            return str(node)
        parts = [self._operand(part, at) for part in node.arguments]
        return function.phrase.format(
            name=function.name.replace("_", " "),
            one=parts[0],
            last=parts[-1],
            all=listed(parts),
            st="r" if len(parts) == 2 else "st",
            est="er" if len(parts) == 2 else "est",
        )


def _between_bars(node: Call) -> bool:
    return meaning(node).phrase.startswith("|")


def _is_phrase(node: Expression | Condition) -> bool:
    """Return whether an expression is worded as a phrase whose end is not marked, such as ``mean of RED``."""
    return (
        isinstance(node, Call)
        and not _between_bars(node)
        and not node.over
        and not any(isinstance(part, Condition) for part in node.arguments)
    )


def _measured(node: Node) -> Iterator[MetricOf]:
    if isinstance(node, MetricOf):
        yield node
    else:
        for child in children(node):
            yield from _measured(child)


def _labels(node: MetricOf) -> dict[str, str]:
    """Return the labels of the cell and the window that a measured value names."""
    parameters = {parameter.name for parameter in find(node.name).parameters}
    return {each.key.text: each.value.text for each in node.settings if each.key.text not in parameters}


def _quantity(node: MetricOf) -> str:
    """``drops``, ``completed in time (within 2 s)``."""
    metric = find(node.name)
    parameters = {parameter.name for parameter in metric.parameters}
    given = [
        f"{each.key.text} {spaced(each.value.text)}" for each in node.settings if each.key.text in parameters
    ]
    return f"{metric.label} ({', '.join(given).replace('_', ' ')})" if given else metric.label
