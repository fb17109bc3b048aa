"""Claims as trees, and their conversion back to text.

Nodes know their position (``at``: characters from the beginning of the text), which is ignored when nodes
are compared. A claim is never evaluated as Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Literal

Relation = Literal["<", "<=", ">", ">=", "=="]
Quantifier = Literal["all", "most", "some"]
_WORDS = (
    "all",
    "and",
    "every",
    "except",
    "for",
    "from",
    "in",
    "most",
    "not",
    "or",
    "over",
    "some",
    "to",
    "until",
)
WORDS = frozenset(_WORDS)
"""Keywords of the grammar; as labels, they must be quoted."""

PLAIN = re.compile(r"[^\s,(){}\[\]=<>\"':]+")
"""Labels that are valid without quotes."""


@dataclass(frozen=True)
class Node:
    """A part of a claim, with its position in the text."""

    at: int = field(compare=False, repr=False)


@dataclass(frozen=True)
class Label(Node):
    """The value of an axis, an arm, a queue or a class, as it is written in the scenario."""

    text: str
    quoted: bool = False
    """Quoted text is always a label; without quotes, ``first`` is a position and ``to`` is a keyword."""

    def __str__(self) -> str:
        return in_quotes(self.text) if self.quoted else self.text


@dataclass(frozen=True)
class Pick(Node):
    """A label, or all labels from one to another in the order of the axis."""

    first: Label
    last: Label | None = None

    def __str__(self) -> str:
        return f"{self.first} to {self.last}" if self.last else str(self.first)


@dataclass(frozen=True)
class Every(Node):
    """Consecutive windows of time: ``every 20s from 0s until 200s``."""

    step: Label
    first: Label
    last: Label

    def __str__(self) -> str:
        return f"every {self.step} from {self.first} until {self.last}"


@dataclass(frozen=True)
class Choice(Node):
    """An axis, ``arm`` or ``window``, with the labels that are selected."""

    axis: Label
    mode: Literal["", "in", "except"]
    picks: tuple[Pick | Every, ...] = ()

    def __str__(self) -> str:
        return f"{self.axis} {self.mode} ({_list(self.picks)})" if self.mode else str(self.axis)


class Expression(Node):
    """Something with a value."""


class Condition(Node):
    """A part of a claim that is true or false."""


@dataclass(frozen=True)
class Number(Expression):
    """A number with or without a unit, as written."""

    digits: str
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.digits}{' ' if self.unit == '%' else ''}{self.unit}"


@dataclass(frozen=True)
class Matcher(Node):
    """A setting of a metric: ``arm=RED``, ``buffer=4p``, ``from=10s``, ``low=9``."""

    key: Label
    value: Label

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


@dataclass(frozen=True)
class MetricOf(Expression):
    """A metric of a cell."""

    name: str
    settings: tuple[Matcher, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}{{{_list(self.settings)}}}" if self.settings else self.name


@dataclass(frozen=True)
class Negative(Expression):
    """Unary minus."""

    of: Expression

    def __str__(self) -> str:
        return f"-{_operand(self.of)}"


@dataclass(frozen=True)
class Arithmetic(Expression):
    """A chain of sums and differences, or of products and quotients: ``a + b - c``."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]

    @property
    def product(self) -> bool:
        """Whether the chain consists of products and quotients."""
        return self.rest[0][0] in "*/"

    def __str__(self) -> str:
        rest = [f"{sign} {self._operand(part)}" for sign, part in self.rest]
        return " ".join([self._operand(self.first), *rest])

    def _operand(self, part: Expression) -> str:
        binds_tighter = not self.product and isinstance(part, Arithmetic) and part.product
        return str(part) if binds_tighter else _operand(part)


@dataclass(frozen=True)
class Called(Node):
    """A function with its arguments: several values, values over an axis, or values over the seeds."""

    function: str
    arguments: tuple[Expression | Condition, ...]
    over: tuple[Choice, ...] = ()

    @property
    def body(self) -> Expression:
        """The first argument of a function that takes a value, not a condition."""
        body = self.arguments[0]
        assert isinstance(body, Expression)  # the parser ensures this
        return body

    @property
    def numbers(self) -> tuple[Expression, ...]:
        """The other arguments; the first is the only one that may be a condition."""
        return tuple(part for part in self.arguments[1:] if isinstance(part, Expression))

    def __str__(self) -> str:
        first, *others = map(str, self.arguments)
        axes = " and ".join(map(str, self.over))
        return f"{self.function}({', '.join([f'{first} over {axes}' if axes else first, *others])})"


@dataclass(frozen=True)
class Call(Called, Expression):
    """A function with a value: ``max(x over axis)``."""


@dataclass(frozen=True)
class Compare(Condition):
    """``a < b``, or ``a < b < c``."""

    first: Expression
    rest: tuple[tuple[Relation, Expression], ...]

    def __str__(self) -> str:
        return " ".join([str(self.first), *(f"{relation} {part}" for relation, part in self.rest)])


@dataclass(frozen=True)
class Between(Condition):
    """``a in [low, high]``, both endpoints included."""

    value: Expression
    low: Expression
    high: Expression

    def __str__(self) -> str:
        return f"{self.value} in [{self.low}, {self.high}]"


@dataclass(frozen=True)
class BestIs(Condition):
    """``argmax(x over axis) == label`` or ``in (label, ...)``."""

    best: Call
    labels: tuple[Label, ...]

    def __str__(self) -> str:
        if len(self.labels) == 1:
            return f"{self.best} == {self.labels[0]}"
        return f"{self.best} in ({_list(self.labels)})"


@dataclass(frozen=True)
class Test(Called, Condition):
    """A function that is true or false: ``increasing(x over axis)``."""


@dataclass(frozen=True)
class Not(Condition):
    """The negation of a condition."""

    of: Condition

    def __str__(self) -> str:
        return f"not {_clause(self.of)}"


@dataclass(frozen=True)
class And(Condition):
    """True if all conditions are true."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(map(_clause, self.parts))


@dataclass(frozen=True)
class Or(Condition):
    """True if at least one condition is true."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(map(_clause, self.parts))


@dataclass(frozen=True)
class For(Condition):
    """A condition that must be true for all, most or some combinations of labels."""

    quantifier: Quantifier
    choices: tuple[Choice, ...]
    condition: Condition

    def __str__(self) -> str:
        return f"for {self.quantifier} {_list(self.choices)}: {self.condition}"


def children(node: Node) -> Iterator[Node]:
    """Return the direct children of a node."""
    for each in fields(node):
        yield from _nodes(getattr(node, each.name))


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _nodes(part)


def label(text: str, at: int = 0) -> Label:
    """Return a label with this text, quoted if necessary."""
    return Label(at, text, not PLAIN.fullmatch(text) or text in WORDS)


def in_quotes(text: str) -> str:
    """Return a quoted label."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _list(parts: Iterable[object]) -> str:
    return ", ".join(map(str, parts))


def _operand(node: Expression) -> str:
    return f"({node})" if isinstance(node, Arithmetic) else str(node)


def _clause(node: Condition) -> str:
    return f"({node})" if isinstance(node, And | Or | For | Not) else str(node)
