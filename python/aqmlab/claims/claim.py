"""Claims in scenarios and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from aqmlab.claims.check import check
from aqmlab.claims.metric_query import MetricQuery, asked_by
from aqmlab.claims.names import Names
from aqmlab.claims.parse import parse
from aqmlab.claims.scan import MisplacedError, SourceLocation, place_in
from aqmlab.claims.tree import Condition, label
from aqmlab.errors import ScenarioError, UsageError, unknown
from aqmlab.language.toml_files import read_toml

STRENGTHS = ("firm", "soft")
KEYS = ("name", "text", "expect", "where", "strength", "source")
MOST_CLAIMS = 1000


@dataclass(frozen=True)
class Claim:
    """A statement that runs can confirm or refute.

    Attributes
    ----------
    name
        The name, which is unique among the claims of a file.
    expect
        The statement in the grammar of ``docs/claims.md``.
    text
        The statement in words; may be empty.
    where
        Labels that apply to the whole expression, by axis.
    strength
        ``"firm"``: a failure is an error. ``"soft"``: a failure is only reported.
    source
        The publication or other source from which the claim is taken.
    origin
        The location of the claim's text.
    """

    name: str
    expect: str
    text: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    strength: str = "firm"
    source: str = ""
    origin: SourceLocation = field(default_factory=SourceLocation, compare=False)

    @staticmethod
    def of_entry(entry: Mapping[str, Any], file: str = "") -> Claim:
        """Return a claim from the form in which recordings and ``_core.Sweep`` hold it."""
        name, expect = str(entry["name"]), str(entry["expect"])
        line, column = int(entry.get("line") or 0), int(entry.get("column") or 0)
        return Claim(
            name,
            expect,
            str(entry.get("text") or ""),
            {str(axis): str(of) for axis, of in (entry.get("where") or {}).items()},
            str(entry.get("strength") or "firm"),
            str(entry.get("source") or ""),
            SourceLocation(name, file, line, column),
        )

    @cached_property
    def tree(self) -> Condition:
        """Parse the text, and return it as a tree.

        Raises
        ------
        ScenarioError
            If the text is not a claim.
        """
        return parse(self.expect, self.origin)

    def bound(self, names: Names) -> dict[str, str]:
        """Return the bindings of ``where``, by full names."""
        fixed = {}
        for axis, of in self.where.items():
            key = names.key(label(axis))
            fixed[key] = names.resolve(key, label(of))
        return fixed

    def check(self, names: Names, *, of_each_seed: bool = False) -> None:
        """Raise an error if the claim cannot be scored: over the seeds or, if asked, for each seed.

        Raises
        ------
        ScenarioError
            For an unknown name, incompatible units or an incomplete cell; the message has the location.
        """
        try:
            bound = self.bound(names)
        except MisplacedError as error:
            raise self.error(0, f"where: {error}") from error
        try:
            check(self.tree, names, bound, of_each_seed=of_each_seed)
        except MisplacedError as error:
            raise self.error(error.at, str(error)) from error

    def asks(self, names: Names) -> tuple[MetricQuery, ...]:
        """Return every metric that the claim uses, with its cell; the claim must have been checked.

        Raises
        ------
        ScenarioError
            If the claim refers to a label beyond the end of an axis.
        """
        try:
            return tuple(asked_by(self.tree, names, self.bound(names)))
        except MisplacedError as error:
            raise self.error(error.at, str(error)) from error

    def error(self, at: int, message: str) -> ScenarioError:
        """Return an error that points at a character of the text."""
        return self.origin.error(self.expect, at, message)


def check_claims(entries: Iterable[Mapping[str, Any]], names: Names, file: str = "") -> None:
    """Raise one error for all claims that cannot be scored, before any run.

    Parameters
    ----------
    entries
        Claims in the form of ``_core.Sweep.about()``.
    names
        The names that they may use.
    file
        File name for messages.

    Raises
    ------
    ScenarioError
        With file, line and column.
    """
    wrong = []
    for entry in entries:
        try:
            Claim.of_entry(entry, file).check(names)
        except ScenarioError as error:
            wrong.append(error)
    _refuse(wrong)


def _refuse(wrong: Sequence[ScenarioError]) -> None:
    """Raise all errors of claims together, one per line."""
    if wrong:
        problems = [problem for error in wrong for problem in error.errors]
        raise ScenarioError("\n".join(map(str, wrong)), problems)


def read_claims(file: Path | str) -> tuple[Claim, ...]:
    """Return the ``[[claim]]`` tables of a TOML file; everything else in it is ignored.

    Raises
    ------
    UsageError
        If the file cannot be read or contains no claims.
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
        raise ScenarioError(f"{path}: it has no [[claim]]")
    if len(entries) > MOST_CLAIMS:
        raise ScenarioError(f"{path}: it has {len(entries)} claims; at most {MOST_CLAIMS} are allowed")
    claims: list[Claim] = []
    wrong: list[ScenarioError] = []
    for i, entry in enumerate(entries):
        found = [ScenarioError(f"{path}: claim {i + 1}: {words}") for words in _wrong_with(entry)]
        wrong += found
        if not found:
            line, column = place_in(text, entry["expect"])
            claim = Claim.of_entry({**entry, "line": line, "column": column}, str(path))
            if any(claim.name == other.name for other in claims):
                wrong.append(ScenarioError(f"{path}: the claim `{claim.name}` occurs twice"))
            claims.append(claim)
    _refuse(wrong)
    return tuple(claims)


def _wrong_with(entry: object) -> Iterator[str]:
    """Return the errors in the keys and values of a claim's table."""
    if not isinstance(entry, dict):
        yield "it is not a table"
        return
    for key in entry:
        if key not in KEYS:
            yield str(unknown("key", key, KEYS))
    for key in ("name", "expect"):
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            yield f"`{key}` is missing or is not a string"
    for key in ("text", "source", "strength"):
        if key in entry and not isinstance(entry[key], str):
            yield f"`{key}` is not a string"
    fixed = entry.get("where", {})
    if not isinstance(fixed, dict) or not all(isinstance(of, str) for of in fixed.values()):
        yield '`where` is not a table of strings; write `where = { count = "20" }`'
    strength = entry.get("strength", "firm")
    if isinstance(strength, str) and strength not in STRENGTHS:
        yield str(unknown("strength", strength, STRENGTHS))
