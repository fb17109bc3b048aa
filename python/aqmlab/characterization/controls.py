"""The congestion controls to characterize: a control's or a profile's name, or the tables of a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab import _core
from aqmlab.characterization.guides import Guide
from aqmlab.errors import ScenarioError, UsageError, unknown
from aqmlab.language.scenario import resolve
from aqmlab.papers.toml_tables import TomlTable, read_toml

if TYPE_CHECKING:
    from aqmlab.characterization.sections import Section

Table = Mapping[str, Any]

_PROFILE = "modern"
"""The profile around a control that is named alone, and around the reference."""
_REFERENCE = {"profile": _PROFILE, "congestion": "cubic"}
_TITLES = {
    "reno": "Reno",
    "cubic": "CUBIC",
    "dctcp": "DCTCP",
    "bbr": "BBR",
    "bbr3": "BBRv3",
    "prague": "Prague",
}
_EXAMPLE = (
    '[[control]], name = "my CUBIC", tcp = { profile = "modern", congestion = "cubic", cubic_beta = 0.8 }'
)


@dataclass(frozen=True)
class Control:
    """A congestion control under test.

    Attributes
    ----------
    name
        Its name in tables.
    tcp
        Its table in a scenario.
    """

    name: str
    tcp: Table

    @property
    def described(self) -> Table:
        """Its table in a scenario."""
        return self.tcp

    def settings(self, section: Section, scenario: Table) -> dict[str, dict[str, Any]]:
        """The classes of flows that use the control, each with all settings of its TCP."""
        del scenario
        return {key: dict(self.tcp) for key in section.tested}


def read_controls(words: Sequence[str]) -> tuple[Control, ...]:
    """Return the controls of a command line, in its order.

    Raises
    ------
    UsageError
        If there is none, a control is unknown, or two have the same name.
    ScenarioError
        If a file cannot be read or has an invalid table.
    """
    found = [control for word in words for control in _read(word)]
    compared = [control for control in found if control != Control(CONTROLS.reference, _REFERENCE)]
    if not compared:
        given = f"{CONTROLS.reference} is what they are compared with; " if found else ""
        raise UsageError(f"there is no control to characterize: {given}name one, such as `reno`")
    names = [control.name for control in compared]
    for name in names:
        if name == CONTROLS.reference or names.count(name) > 1:
            raise UsageError(f"two controls are called `{name}`; give them names of their own")
    return tuple(compared)


def _read(word: str) -> list[Control]:
    profiles, controls = (_words(key) for key in ("profile", "congestion"))
    if word in profiles:
        return [Control(_TITLES.get(word, word), {"profile": word})]
    if word in controls:
        table = {"profile": _PROFILE, "congestion": word}
        return [Control(_TITLES.get(word, word), table if _fits(table) else {**table, "ecn": True})]
    if not word.endswith(".toml") and not Path(word).exists():
        raise unknown("congestion control", word, [*controls, *profiles])
    top = read_toml(Path(word))
    top.only("control")
    tables = top.tables("control", "name")
    if not tables:
        raise top.error(f"there is no control; write {_EXAMPLE}")
    return [_of_table(table) for table in tables]


def _of_table(table: TomlTable) -> Control:
    table.only("name", "tcp")
    control = Control(table.need("name", str), table.need("tcp", dict))
    try:
        resolve(_probe(control.tcp))
    except ScenarioError as error:
        first = error.errors[0] if error.errors else None
        said = f"`{first['path'].removeprefix('traffic.long.')}`: {first['message']}" if first else str(error)
        raise table.error(said) from None
    return control


def _probe(tcp: Table) -> dict[str, Any]:
    """A small scenario with this TCP."""
    return {
        "duration": "1s",
        "topology": {"kind": "dumbbell", "rate": "10Mbit", "delay": "5ms"},
        "traffic": [{"name": "long", "kind": "bulk", "tcp": dict(tcp)}],
    }


def _fits(tcp: Table) -> bool:
    """Whether a control runs without further settings; some need ECN."""
    try:
        resolve(_probe(tcp))
    except ScenarioError:
        return False
    return True


def _words(key: str) -> tuple[str, ...]:
    """The words of a key of TCP, from the schema of scenarios."""
    return tuple(next(_enums(json.loads(_core.schema("scenario")), key)))


def _enums(schema: object, key: str) -> Iterator[list[str]]:
    """Yield the words of each property with this name."""
    if isinstance(schema, list):
        for item in schema:
            yield from _enums(item, key)
    if not isinstance(schema, dict):
        return
    found = schema.get("properties", {}).get(key)
    for one in [found, *found.get("anyOf", ())] if isinstance(found, dict) else ():
        if "enum" in one:
            yield one["enum"]
    for value in schema.values():
        yield from _enums(value, key)


def _check(section: Section, scenario: TomlTable) -> None:
    names = [table.get("name", str, "") for table in scenario.tables("traffic", "name")]
    for key in section.tested:
        pattern = key.removeprefix("traffic.").removesuffix(".tcp")
        if not any(fnmatchcase(name, pattern) for name in names):
            raise scenario.error(f"there is no class `{pattern}`, whose flows use the control under test")


CONTROLS = Guide(
    name="RFC 9743",
    subject="congestion control",
    reference="CUBIC",  # section 5.2.1: standard controls, of which it is the one that hosts use
    fair="on the same path",
    tables="scenarios/controls/sections.toml",
    read=read_controls,
    check=_check,
)
"""Specifying new congestion control algorithms (BCP 133)."""
