"""The words of a claim, one at a time, and errors with their location."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from aqmlab.claims.tree import PLAIN, Label
from aqmlab.errors import Problem, ScenarioError
from aqmlab.text.units import LITERALS

LONGEST = 4000
"""Largest number of characters in a claim; the longest sensible claim has far fewer."""

_BLANK = re.compile(r"\s*")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_UNIT = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)?|%")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATOR = re.compile(r"<=|>=|==|[-+*/(){}\[\],:<>=]")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class MisplacedError(Exception):
    """An error at the character ``at`` of a claim, raised where the claim's own location is not known."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True)
class SourceLocation:
    """The location of a claim, for messages.

    Attributes
    ----------
    claim
        Its name.
    file
        The file from which it was read; empty if there is none.
    line, column
        The position of the first character of its text, from 1; 0 if it is not known.
    """

    claim: str = ""
    file: str = ""
    line: int = 0
    column: int = 0

    def place(self, text: str, at: int) -> tuple[int, int]:
        """Return the line and column of a character; within the claim if the claim's location is unknown."""
        before = text[:at]
        line = before.count("\n")
        column = len(before) - (before.rfind("\n") + 1)
        if line == 0:
            column += max(self.column, 1)
        else:
            column += 1
        return max(self.line, 1) + line, column

    def error(self, text: str, at: int, message: str) -> ScenarioError:
        """Return an error with file, line and column."""
        line, column = self.place(text, at)
        known = self.line > 0
        place = f"{self.file}:{line}:{column}" if self.file else f"line {line}, column {column}"
        where = place if known else f"character {at + 1}"
        called = f"claim `{self.claim}`" if self.claim else "claim"
        problem: Problem = {
            "line": line if known else 0,
            "column": column if known else 0,
            "path": "claim",
            "message": message,
        }
        full = f"{where}: {called}: {message}" if known else f"{called}, {where}: {message}"
        return ScenarioError(full, [problem])


def place_in(text: str, expect: str) -> tuple[int, int]:
    """Return the line and column of a claim's text in its file; 0, 0 unless it occurs exactly once."""
    if text.count(expect) != 1:
        return 0, 0
    before = text[: text.index(expect)]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


Kind = Literal["number", "name", "operator", "text", "end"]


@dataclass(frozen=True)
class Token:
    """A word of the text.

    Attributes
    ----------
    kind
        The kind of word; ``"text"`` means text in quotes.
    text
        The word; for a number, its digits.
    unit
        The unit of a number, empty if it has none.
    at, end
        The positions of its first character and of the character after its last one.
    """

    kind: Kind
    text: str
    at: int
    end: int
    unit: str = ""

    def shown(self) -> str:
        """Return the word as messages show it."""
        return "the end" if self.kind == "end" else f"`{self.text}{self.unit}`"


_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("name", _NAME),
    ("operator", _OPERATOR),
    ("text", _QUOTED),
)


class Scanner:
    """Reads the text of a claim from beginning to end."""

    def __init__(self, text: str, origin: SourceLocation) -> None:
        self.text = text
        self.origin = origin
        self._at = 0
        self._next: Token | None = None
        if len(text) > LONGEST:
            raise self.wrong(LONGEST, f"it has {len(text)} characters; at most {LONGEST} are allowed")

    def wrong(self, at: int, message: str) -> ScenarioError:
        """Return an error that points at the character ``at``."""
        return self.origin.error(self.text, at, message)

    def peek(self) -> Token:
        """Return the next word without taking it."""
        if self._next is None:
            self._next = self._read()
        return self._next

    def take(self) -> Token:
        """Take the next word."""
        token = self.peek()
        self._at, self._next = token.end, None
        return token

    def takes(self, *words: str) -> bool:
        """Take the next word if it is one of these."""
        token = self.peek()
        if token.kind in ("operator", "name") and token.text in words:
            self.take()
            return True
        return False

    def expect(self, word: str, why: str = "") -> Token:
        """Take the given word, or raise an error if a different word follows."""
        token = self.peek()
        if token.kind not in ("operator", "name") or token.text != word:
            raise self.wrong(token.at, f"`{word}` is missing before {token.shown()}{why}")
        return self.take()

    def label(self, what: str) -> Label:
        """Take a label: quoted text, or all characters up to the first one that labels cannot contain."""
        self._next = None
        at = self._skip_blanks(self._at)
        found = _QUOTED.match(self.text, at)
        if found:
            self._at = found.end()
            inside = found[1] if found[1] is not None else found[2]
            return Label(at, _ESCAPE.sub(r"\1", inside), quoted=True)
        plain = PLAIN.match(self.text, at)
        if plain is None:
            raise self.wrong(at, f"{what} is missing before {self._shown(at)}")
        self._at = plain.end()
        return Label(at, plain[0])

    def _read(self) -> Token:
        at = self._skip_blanks(self._at)
        if at == len(self.text):
            return Token("end", "", at, at)
        number = _NUMBER.match(self.text, at)
        if number:
            return self._number(number)
        for kind, pattern in _KINDS:
            found = pattern.match(self.text, at)
            if found:
                return Token(kind, found[0], at, found.end())
        raise self.wrong(at, f"{self._shown(at)} has no meaning here")

    def _number(self, number: re.Match[str]) -> Token:
        """Take a number with its unit, which follows directly or after spaces."""
        at, end = number.span()
        unit = _UNIT.match(self.text, self._skip_blanks(end))
        if unit is None:
            return Token("number", number[0], at, end)
        if unit[0] in LITERALS:
            return Token("number", number[0], at, unit.end(), unit[0])
        # `5ms/x` is a quotient, `5foo` is a typo, and `5 foo` is left to the parser.
        plain = unit[0].split("/")[0]
        if plain in LITERALS:
            return Token("number", number[0], at, unit.start() + len(plain), plain)
        if unit.start() > end:
            return Token("number", number[0], at, end)
        known = ", ".join(f"`{name}`" for name in LITERALS if "/" not in name and "bps" not in name)
        raise self.wrong(unit.start(), f"`{plain}` is not a unit; the units are {known}")

    def _skip_blanks(self, at: int) -> int:
        found = _BLANK.match(self.text, at)
        assert found is not None
        return found.end()

    def _shown(self, at: int) -> str:
        if at >= len(self.text):
            return "the end"
        character = self.text[at]
        return f"`{character}`" if character.isprintable() else f"the character U+{ord(character):04X}"
