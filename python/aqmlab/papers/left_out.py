"""What a smaller version of an experiment lacks that a statement or a figure names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aqmlab.claims import Claim, Names
from aqmlab.claims.names import CLASS, FROM, QUEUE, UNTIL, WINDOW
from aqmlab.claims.scan import MisplacedError
from aqmlab.claims.tree import BestIs, Choice, Label, Node, Pick, Setting, children, label


def left_out(claim: Claim, whole: Names, small: Names) -> str:
    """The labels that a claim names and that only the whole experiment has: ```48` of `buffer```."""
    named = [*_labels_of(claim.where), *_named(claim.tree)]
    return _lacking(named, whole, small)


def left_out_of(where: Mapping[str, str], whole: Names, small: Names) -> str:
    """The same of what ``where`` fixes."""
    return _lacking(_labels_of(where), whole, small)


def _labels_of(where: Mapping[str, str]) -> list[tuple[Label, Label]]:
    return [(label(axis), label(of)) for axis, of in where.items()]


def _named(node: Node) -> Iterator[tuple[Label, Label]]:
    """Axis, or whatever else stands before a label, and label."""
    match node:
        case Setting():
            yield node.key, node.value
        case Choice():
            for pick in node.picks:
                if isinstance(pick, Pick):
                    yield from ((node.axis, end) for end in (pick.first, pick.last) if end is not None)
        case BestIs():
            yield from ((node.best.over[0].axis, of) for of in node.labels)
    for child in children(node):
        yield from _named(child)


def _lacking(named: list[tuple[Label, Label]], whole: Names, small: Names) -> str:
    lacking = []
    for axis, of in named:
        if axis.text in (FROM, UNTIL, WINDOW, QUEUE, CLASS):
            continue
        try:
            key = whole.key(axis)
        except MisplacedError:
            continue  # a parameter of a metric
        if of.text in whole.labels(key) and of.text not in small.labels(key):
            lacking.append(f"`{of.text}` of `{whole.short(key)}`")
    return ", ".join(dict.fromkeys(lacking))
