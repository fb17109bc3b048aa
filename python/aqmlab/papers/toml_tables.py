"""Reads entries of a paper's files; errors give the place of a missing entry or of one of the wrong kind."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from aqmlab.claims.scan import SourceLocation, place_in
from aqmlab.errors import ScenarioError, unknown
from aqmlab.language import toml_files

T = TypeVar("T")
_KINDS = {str: "a string", list: "a list", dict: "a table", bool: "true or false", int: "a whole number"}


class TomlTable:
    """A TOML table that knows its location in the file.

    Parameters
    ----------
    content
        The table.
    place
        File, line and name of the table, for messages: ``papers/blue/paper.toml:12: setting
        `RTO```.
    text
        Text of the whole file, in which the line numbers of its tables are looked up.
    """

    def __init__(self, content: Mapping[str, Any], place: str, text: str = "") -> None:
        self.content = content
        self.place = place
        self._text = text

    def has(self, key: str) -> bool:
        """Whether the key exists."""
        return key in self.content

    def need(self, key: str, kind: type[T]) -> T:
        """The value of a required key."""
        if key not in self.content:
            raise self.error(f"`{key}` is missing; write {_KINDS[kind]}")
        return self._of_kind(key, kind)

    def get(self, key: str, kind: type[T], default: T) -> T:
        """The value of a key, or a default if it is missing."""
        return self._of_kind(key, kind) if key in self.content else default

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings; empty if the key is missing."""
        values = self.get(key, list, [])
        if not all(isinstance(value, str) for value in values):
            raise self.error(f"`{key}` must be a list of strings")
        return tuple(values)

    def labels(self, key: str) -> dict[str, str]:
        """A table of labels by axis; empty if the key is missing."""
        return {str(axis): str(label) for axis, label in self.get(key, dict, {}).items()}

    def choice(self, key: str, among: Iterable[str], default: str | None = None) -> str:
        """Return the value, which must be one of a few words; the key is required unless it has a default."""
        options = tuple(among)
        if default is None and key not in self.content:
            raise self.error(f"`{key}` is missing; write {_either(options)}")
        word = self.need(key, str) if default is None else self.get(key, str, default)
        if word not in options:
            raise self.error(f"`{key}`: {unknown('value', word, options)}")
        return word

    def only(self, *keys: str) -> None:
        """Raise an error if the table has any key other than these."""
        for key in self.content:
            if key not in keys:
                raise self.error(str(unknown("key", key, keys)))

    def tables(self, key: str, named_by: str) -> list[TomlTable]:
        """The tables of ``[[key]]``, each named by its key ``named_by``, which must be unique."""
        found: list[TomlTable] = []
        seen: set[str] = set()
        contents = self.get(key, list, [])
        lines = self._lines(key, len(contents))
        for number, content in enumerate(contents, 1):
            if not isinstance(content, dict):
                raise self.error(f"`{key}` must be written as [[{key}]]")
            name = content.get(named_by)
            line = f":{lines[number - 1]}" if lines else ""
            entry = TomlTable(content, f"{self.place}{line}: {key} {f'`{name}`' if name else number}")
            name = entry.need(named_by, str)
            if name in seen:
                raise entry.error(f"there are two entries with this `{named_by}`")
            seen.add(name)
            found.append(entry)
        return found

    def section(self, key: str) -> TomlTable:
        """The table of ``[key]``, with its line; an empty table if the key is missing."""
        head = re.compile(rf"\s*\[\s*{re.escape(key)}\s*\]\s*(#.*)?")
        lines = [i for i, line in enumerate(self._text.splitlines(), 1) if head.fullmatch(line)]
        line = f":{lines[0]}" if len(lines) == 1 else ""
        return TomlTable(self.get(key, dict, {}), f"{self.place}{line}: [{key}]")

    def number(self, key: str, default: float) -> float:
        """A number above zero, or a default if it is missing."""
        value = self.content.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise self.error(f"`{key}` is {value!r}; write a number above 0")
        return float(value)

    def origin_of(self, claim: str, expect: str) -> SourceLocation:
        """Return the location of a claim's text in this file, as far as it can be determined."""
        return SourceLocation(claim, self.place, *place_in(self._text, expect))

    def error(self, message: str) -> ScenarioError:
        """An error about this table."""
        return ScenarioError(f"{self.place}: {message}")

    def _lines(self, key: str, count: int) -> list[int]:
        """Return the line numbers of the headers ``[[key]]``; none if they do not match the tables."""
        head = re.compile(rf"\s*\[\[\s*{re.escape(key)}\s*\]\]\s*(#.*)?")
        found = [i for i, line in enumerate(self._text.splitlines(), 1) if head.fullmatch(line)]
        return found if len(found) == count else []

    def _of_kind(self, key: str, kind: type[T]) -> T:
        value = self.content[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(f"`{key}` must be {_KINDS[kind]}")
        return value


def _either(options: tuple[str, ...]) -> str:
    """``"firm"`` or ``"soft"``."""
    quoted = [f'"{option}"' for option in options]
    return " or ".join([*([", ".join(quoted[:-1])] if quoted[:-1] else []), *quoted[-1:]])


def read_toml(file: Path) -> TomlTable:
    """A whole file.

    Raises
    ------
    ScenarioError
        If the file cannot be read or is not TOML.
    """
    try:
        content, text = toml_files.read_toml(file)
    except OSError as error:
        raise ScenarioError(f"{file}: cannot be read: {error.strerror}") from error
    return TomlTable(content, str(file), text)
