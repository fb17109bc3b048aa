"""Parsing: from the text of a claim to its tree, by recursive descent.

``docs/claims.md`` describes the grammar. Any text either becomes a tree or is refused with a
:class:`~aqmlab.errors.ScenarioError` that names the location.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aqmlab.claims.functions import FUNCTIONS, Function, function_of, meaning
from aqmlab.claims.scan import Scanner, SourceLocation, Token
from aqmlab.claims.tree import (
    WORDS,
    And,
    Arithmetic,
    BestIs,
    Between,
    Call,
    Choice,
    Compare,
    Condition,
    Every,
    Expression,
    For,
    Label,
    Matcher,
    MetricOf,
    Negative,
    Not,
    Number,
    Or,
    Pick,
    Quantifier,
    Relation,
    Test,
)
from aqmlab.errors import unknown

DEEPEST = 30
"""Largest depth of nested parentheses, calls and quantifiers."""

Either = Expression | Condition

_RELATIONS: tuple[Relation, ...] = ("<", "<=", ">", ">=", "==")


def parse(text: str, origin: SourceLocation | None = None) -> Condition:
    """Return the tree of a claim.

    Parameters
    ----------
    text
        The text in ``expect``.
    origin
        Its location, for messages.

    Raises
    ------
    ScenarioError
        If the text is not a claim; the message gives line and column.
    """
    parser = _Parser(Scanner(text, origin or SourceLocation()))
    return parser.claim()


class _Parser:
    def __init__(self, scanner: Scanner) -> None:
        self._s = scanner
        self._depth = 0

    def claim(self) -> Condition:
        condition = self._condition("a claim is a condition")
        rest = self._s.peek()
        if rest.kind != "end":
            raise self._s.wrong(rest.at, f"{rest.shown()} comes after the end of the claim")
        return condition

    # --- conditions

    def _condition(self, why: str) -> Condition:
        at = self._s.peek().at
        return self._as_condition(self._either(), at, why)

    def _either(self) -> Either:
        """Parse a condition, or an expression for an enclosing comparison; parentheses may contain either."""
        with self._deeper():
            return self._joined("or", Or, lambda: self._joined("and", And, self._unit))

    def _joined(self, word: str, kind: type[And] | type[Or], part: Callable[[], Either]) -> Either:
        at = self._s.peek().at
        first = part()
        if not self._is_name(word):
            return first
        parts = [self._as_condition(first, at, f"`{word}` joins conditions")]
        while self._s.takes(word):
            at = self._s.peek().at
            parts.append(self._as_condition(part(), at, f"`{word}` joins conditions"))
        return kind(parts[0].at, tuple(parts))

    def _unit(self) -> Either:
        token = self._s.peek()
        if self._s.takes("not"):
            with self._deeper():
                at = self._s.peek().at
                inner = self._unit()
            return Not(token.at, self._as_condition(inner, at, "`not` applies to a condition"))
        if self._s.takes("for"):
            return self._for(token)
        return self._comparison()

    def _for(self, begin: Token) -> For:
        token = self._s.take()
        if token.text not in ("all", "most", "some"):
            raise self._s.wrong(
                token.at, f"`for` is followed by `all`, `most` or `some`, not by {token.shown()}"
            )
        quantifier: Quantifier = token.text  # type: ignore[assignment]
        choices = [self._choice()]
        while self._s.takes(","):
            choices.append(self._choice())
        self._s.expect(":")
        return For(begin.at, quantifier, tuple(choices), self._condition("`for` applies to a condition"))

    def _comparison(self) -> Either:
        at = self._s.peek().at
        left = self._sum()
        token = self._s.peek()
        if token.kind == "operator" and token.text in _RELATIONS:
            return self._compared(self._as_expression(left, at, "is compared"))
        if self._is_name("in"):
            self._s.take()
            return self._within(self._as_expression(left, at, "is compared"))
        if token.text == "=" and token.kind == "operator":
            raise self._s.wrong(token.at, "`=` is not a comparison; write `==`")
        return left

    def _compared(self, left: Expression) -> Condition:
        if isinstance(left, Call) and meaning(left).label:
            relation = self._s.take()
            if relation.text != "==":
                raise self._s.wrong(
                    relation.at, f"a label is compared with `==` or `in`, not `{relation.text}`"
                )
            return BestIs(left.at, left, (self._label("a label"),))
        rest: list[tuple[Relation, Expression]] = []
        while self._s.peek().kind == "operator" and self._s.peek().text in _RELATIONS:
            relation = self._s.take()
            if len(rest) == 2:
                raise self._s.wrong(relation.at, "a chain of comparisons has at most three parts; use `and`")
            word: Relation = relation.text  # type: ignore[assignment]
            at = self._s.peek().at
            rest.append((word, self._as_expression(self._sum(), at, "is compared")))
        return Compare(left.at, left, tuple(rest))

    def _within(self, value: Expression) -> Condition:
        if isinstance(value, Call) and meaning(value).label:
            self._s.expect("(", ": `in` is followed by labels in parentheses")
            labels = [self._label("a label")]
            while self._s.takes(","):
                labels.append(self._label("a label"))
            self._s.expect(")")
            return BestIs(value.at, value, tuple(labels))
        self._s.expect("[", ": `in` is followed by a range, `[2 %, 5 %]`")
        low = self._expression("a range has two endpoints")
        self._s.expect(",")
        high = self._expression("a range has two endpoints")
        self._s.expect("]")
        return Between(value.at, value, low, high)

    # --- labels

    def _choice(self) -> Choice:
        axis = self._label("an axis")
        for mode in ("in", "except"):
            if self._is_name(mode):
                self._s.take()
                self._s.expect("(")
                picks = [self._pick()]
                while self._s.takes(","):
                    picks.append(self._pick())
                self._s.expect(")")
                return Choice(axis.at, axis, mode, tuple(picks))
        return Choice(axis.at, axis, "")

    def _pick(self) -> Pick | Every:
        label = self._s.label("a label")
        if label.text == "every" and not label.quoted:
            step = self._label("a time")
            self._s.expect("from")
            first = self._label("a time")
            self._s.expect("until")
            return Every(label.at, step, first, self._label("a time"))
        self._check_label(label)
        if self._is_name("to"):
            self._s.take()
            return Pick(label.at, label, self._label("a label"))
        return Pick(label.at, label)

    def _label(self, what: str) -> Label:
        label = self._s.label(what)
        self._check_label(label)
        return label

    def _check_label(self, label: Label) -> None:
        if not label.quoted and label.text in WORDS:
            raise self._s.wrong(
                label.at,
                f"`{label.text}` is a keyword of the grammar; to use it as a label, put it in quotes",
            )

    # --- expressions

    def _expression(self, why: str) -> Expression:
        at = self._s.peek().at
        return self._as_expression(self._sum(), at, why)

    def _sum(self) -> Either:
        return self._chain("+-", lambda: self._chain("*/", self._factor))

    def _chain(self, signs: str, part: Callable[[], Either]) -> Either:
        at = self._s.peek().at
        first = part()
        rest = []
        while self._s.peek().kind == "operator" and self._s.peek().text in signs:
            sign = self._s.take().text
            place = self._s.peek().at
            rest.append((sign, self._as_expression(part(), place, f"is an operand of `{sign}`")))
        if not rest:
            return first
        return Arithmetic(at, self._as_expression(first, at, f"is an operand of `{rest[0][0]}`"), tuple(rest))

    def _factor(self) -> Either:
        token = self._s.take()
        if token.kind == "operator" and token.text == "-":
            with self._deeper():
                at = self._s.peek().at
                return Negative(token.at, self._as_expression(self._factor(), at, "is an operand of `-`"))
        if token.kind == "operator" and token.text == "(":
            inner = self._either()
            self._s.expect(")")
            return inner
        if token.kind == "number":
            return Number(token.at, token.text, token.unit)
        if token.kind == "name" and token.text not in WORDS:
            following = self._s.peek()
            if following.text == "(" and following.kind == "operator":
                return self._call(token)
            return self._metric(token)
        raise self._s.wrong(token.at, f"a metric, a number or a function is missing before {token.shown()}")

    def _metric(self, name: Token) -> MetricOf:
        settings: list[Matcher] = []
        if self._s.takes("{"):
            while not settings or self._s.takes(","):
                key = self._s.label("a key")
                self._s.expect("=", f" after the key `{key.text}`")
                settings.append(Matcher(key.at, key, self._label("a value")))
            closing = self._s.peek()
            if closing.kind not in ("operator",) or closing.text not in ("}", ","):
                hint = "; put a label with spaces in quotes"
                raise self._s.wrong(closing.at, f"`}}` is missing before {closing.shown()}{hint}")
            self._s.expect("}")
        return MetricOf(name.at, name.text, tuple(settings))

    def _call(self, name: Token) -> Call | Test:
        if name.text not in FUNCTIONS:
            error = unknown("function", name.text, FUNCTIONS)
            raise self._s.wrong(name.at, str(error))
        self._s.expect("(")
        arguments: list[Either] = []
        over: list[Choice] = []
        if not self._s.takes(")"):
            arguments.append(self._either())
            if self._s.takes("over"):
                over.append(self._choice())
                while self._s.takes("and"):
                    over.append(self._choice())
            while self._s.takes(","):
                arguments.append(self._either())
            self._s.expect(")")
        function = self._function(name, len(arguments), over)
        self._check_arguments(name, function, arguments)
        kind = Test if function.test else Call
        return kind(name.at, name.text, tuple(arguments), tuple(over))

    def _function(self, name: Token, given: int, over: list[Choice]) -> Function:
        function = function_of(name.text, over=bool(over))
        if function is None and over:
            raise self._s.wrong(name.at, f"`{name.text}` takes no axis")
        if function is None or (not over and given == 1 < function.least and "axis" in FUNCTIONS[name.text]):
            raise self._s.wrong(name.at, f"`{name.text}` needs an axis; write `{name.text}(x over AXIS)`")
        if not function.least <= given <= function.most:
            wanted = (
                f"{function.least}"
                if function.least == function.most
                else f"{function.least} to {function.most}"
            )
            raise self._s.wrong(
                name.at, f"`{name.text}` takes {wanted} argument{'s' * (wanted != '1')}; {given} are given"
            )
        if function.single and len(over) > 1 and not (function.pairs and given > 1):
            raise self._s.wrong(over[1].at, f"`{name.text}` takes only one axis")
        return function

    def _check_arguments(self, name: Token, function: Function, arguments: list[Either]) -> None:
        for i, argument in enumerate(arguments):
            if i == 0 and function.condition:
                self._as_condition(argument, argument.at, f"`{name.text}` takes a condition")
            else:
                self._as_expression(argument, argument.at, f"is an argument of `{name.text}`")

    # --- kinds

    def _as_condition(self, node: Either, at: int, why: str) -> Condition:
        if not isinstance(node, Condition):
            raise self._s.wrong(at, f"{why}, but this is a value; compare it: `... > 5 %`")
        return node

    def _as_expression(self, node: Either, at: int, why: str) -> Expression:
        if not isinstance(node, Expression):
            raise self._s.wrong(at, f"this {why} and must be a value, but it is a condition")
        return node

    def _is_name(self, word: str) -> bool:
        token = self._s.peek()
        return token.kind == "name" and token.text == word

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._s.wrong(self._s.peek().at, f"more than {DEEPEST} levels of nesting")
        yield
        self._depth -= 1
