"""Claims as scenarios and files hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from aqmlab.claims.asked import Asked
from aqmlab.claims.check import check
from aqmlab.claims.names import Names
from aqmlab.claims.parse import parse
from aqmlab.claims.reach import asked_by
from aqmlab.claims.scan import MisplacedError, Origin, place_in
from aqmlab.claims.tree import Condition, label
from aqmlab.errors import ScenarioError, UsageError, unknown
from aqmlab.toml_files import read_toml

STRENGTHS = ("firm", "soft")
KEYS = ("name", "text", "expect", "where", "strength", "source")
MOST_CLAIMS = 1000


@dataclass(frozen=True)
class Claim:
    """A statement that runs can confirm or refute.

    Attributes
    ----------
    name
        Unique among the claims of a file.
    expect
        The statement in the grammar of ``docs/claims.md``.
    text
        The same in words; may be empty.
    where
        Labels that hold in the whole of it, by axis.
    strength
        ``"firm"``: it failing is an error of somebody's. ``"soft"``: it is only reported.
    source
        Who says so.
    origin
        Where it stands.
    """

    name: str
    expect: str
    text: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    strength: str = "firm"
    source: str = ""
    origin: Origin = field(default_factory=Origin, compare=False)

    @staticmethod
    def of_entry(entry: Mapping[str, Any], file: str = "") -> Claim:
        """A claim as recordings and ``_core.Sweep`` describe it."""
        name, expect = str(entry["name"]), str(entry["expect"])
        line, column = int(entry.get("line") or 0), int(entry.get("column") or 0)
        return Claim(
            name,
            expect,
            str(entry.get("text") or ""),
            {str(axis): str(of) for axis, of in (entry.get("where") or {}).items()},
            str(entry.get("strength") or "firm"),
            str(entry.get("source") or ""),
            Origin(name, file, line, column),
        )

    @cached_property
    def tree(self) -> Condition:
        """What the text means.

        Raises
        ------
        ScenarioError
            If it is no claim.
        """
        return parse(self.expect, self.origin)

    def bound(self, names: Names) -> dict[str, str]:
        """What ``where`` fixes, by full names."""
        fixed = {}
        for axis, of in self.where.items():
            key = names.key(label(axis))
            fixed[key] = names.resolve(key, label(of))
        return fixed

    def check(self, names: Names) -> None:
        """Complain if it cannot be scored.

        Raises
        ------
        ScenarioError
            With the place: an unknown name, units that do not fit, a cell that is not said.
        """
        try:
            bound = self.bound(names)
        except MisplacedError as error:
            raise self.error(0, f"where: {error}") from error
        try:
            check(self.tree, names, bound)
        except MisplacedError as error:
            raise self.error(error.at, str(error)) from error

    def asks(self, names: Names) -> tuple[Asked, ...]:
        """Every metric that it asks, and of which cell, once it was checked.

        Raises
        ------
        ScenarioError
            If it asks for the label beyond the end of an axis.
        """
        try:
            return tuple(asked_by(self.tree, names, self.bound(names)))
        except MisplacedError as error:
            raise self.error(error.at, str(error)) from error

    def error(self, at: int, message: str) -> ScenarioError:
        """A complaint about a character of the text."""
        return self.origin.error(self.expect, at, message)


def check_claims(entries: Iterable[Mapping[str, Any]], names: Names, file: str = "") -> None:
    """Complain about the first claim that cannot be scored; before runs that would be for nothing.

    Parameters
    ----------
    entries
        As ``_core.Sweep.about()`` has them.
    names
        What they may speak of.
    file
        For messages.

    Raises
    ------
    ScenarioError
        With file, line and column.
    """
    for entry in entries:
        Claim.of_entry(entry, file).check(names)


def read_claims(file: Path | str) -> tuple[Claim, ...]:
    """The ``[[claim]]`` tables of a TOML file; whatever else is in it is not looked at.

    Raises
    ------
    UsageError
        If it cannot be read, or has no claims.
    ScenarioError
        If a claim has wrong keys or values.
    """
    path = Path(file)
    try:
        content, text = read_toml(path)
    except OSError as error:
        raise UsageError(f"cannot read `{path}`: {error.strerror}") from error
    entries = content.get("claim")
    if not isinstance(entries, list) or not entries:
        raise ScenarioError(f"{path}: there is no [[claim]] in it")
    if len(entries) > MOST_CLAIMS:
        raise ScenarioError(f"{path}: it has {len(entries)} claims; {MOST_CLAIMS} are the most")
    claims = tuple(_of_table(entry, i, path, text) for i, entry in enumerate(entries))
    names = [claim.name for claim in claims]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ScenarioError(f"{path}: the claim `{twice}` comes twice")
    return claims


def _of_table(entry: object, i: int, path: Path, text: str) -> Claim:
    where = f"{path}: claim {i + 1}"
    if not isinstance(entry, dict):
        raise ScenarioError(f"{where}: it is no table")
    for key in entry:
        if key not in KEYS:
            raise ScenarioError(f"{where}: {unknown('key', key, KEYS)}")
    for key in ("name", "expect"):
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            raise ScenarioError(f"{where}: `{key}` is missing or no text")
    for key in ("text", "source", "strength"):
        if key in entry and not isinstance(entry[key], str):
            raise ScenarioError(f"{where}: `{key}` is no text")
    fixed = entry.get("where", {})
    if not isinstance(fixed, dict) or not all(isinstance(of, str) for of in fixed.values()):
        raise ScenarioError(f'{where}: `where` is no table of texts; write `where = {{ count = "20" }}`')
    strength = entry.get("strength", "firm")
    if strength not in STRENGTHS:
        raise ScenarioError(f"{where}: {unknown('strength', strength, STRENGTHS)}")
    line, column = place_in(text, entry["expect"])
    return Claim.of_entry({**entry, "line": line, "column": column}, str(path))
