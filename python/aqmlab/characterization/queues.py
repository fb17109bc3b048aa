"""The AQMs to characterize: a discipline's name, or the queue tables of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.characterization.guides import Guide
from aqmlab.disciplines.catalogue import aqm_list, aqm_show
from aqmlab.errors import ScenarioError, UsageError, unknown
from aqmlab.language.scenario import resolve
from aqmlab.papers.toml_tables import TomlTable, read_toml

if TYPE_CHECKING:
    from aqmlab.characterization.sections import Section

REQUIRED = "required"
"""What a parameter table says of a parameter without a default."""
_PACKET_BYTES = 1500
_EXAMPLE = '[[queue]], name = "my RED", queue = { kind = "red", min_th = "5p" }'

Table = Mapping[str, Any]


@dataclass(frozen=True)
class Aqm:
    """An AQM under test.

    Attributes
    ----------
    name
        Its name in tables.
    queue
        Its table in a scenario, without the buffer unless its author set one.
    """

    name: str
    queue: Table

    @property
    def kind(self) -> str:
        """The discipline's name."""
        return str(self.queue["kind"])

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """The rows of the discipline's parameter table, by name."""
        return {row["name"]: row for row in aqm_show(self.kind)["params"]}

    @property
    def described(self) -> Table:
        """Its table in a scenario."""
        return self.queue

    def settings(self, section: Section, scenario: Table) -> dict[str, dict[str, Any]]:
        """The section's queues, each with the room that DropTail has there.

        Raises
        ------
        ScenarioError
            If one of them is no DropTail queue with a limit in packets.
        """
        return {key: self.with_buffer(_buffer(scenario, key)) for key in section.queues}

    def with_buffer(self, packets: int) -> dict[str, Any]:
        """Return the queue with room for this many packets of 1500 bytes.

        A buffer that its author set stays, and so do those of queues inside a queue.
        """
        nested = any(isinstance(value, Mapping | list) for value in self.queue.values())
        if nested or {"limit", "memory_limit"} & self.queue.keys():
            return dict(self.queue)
        if "limit" in self.parameters:
            return {**self.queue, "limit": f"{packets}p"}
        if "memory_limit" in self.parameters:
            return {**self.queue, "memory_limit": f"{packets * _PACKET_BYTES}B"}
        return dict(self.queue)


def read_aqms(words: Sequence[str]) -> tuple[Aqm, ...]:
    """Return the AQMs of a command line, in its order.

    Raises
    ------
    UsageError
        If there is none, a discipline is unknown or needs a table, or two have the same name.
    ScenarioError
        If a file cannot be read or has an invalid table.
    """
    titles = {str(row["name"]): str(row["title"]) for row in aqm_list()}
    found = [aqm for word in words for aqm in _read(word, titles)]
    compared = [aqm for aqm in found if aqm != Aqm(AQMS.reference, {"kind": "droptail"})]
    if not compared:
        given = f"{AQMS.reference} is what they are compared with; " if found else ""
        raise UsageError(f"there is no AQM to characterize: {given}name a discipline, such as `codel`")
    names = [aqm.name for aqm in compared]
    for name in names:
        if name == AQMS.reference or names.count(name) > 1:
            raise UsageError(f"two queues are called `{name}`; give them names of their own")
    return tuple(compared)


def _read(word: str, titles: Mapping[str, str]) -> list[Aqm]:
    if word in titles:
        required = [row["name"] for row in aqm_show(word)["params"] if row["default"] == REQUIRED]
        if required:
            raise UsageError(
                f"`{word}` has no default for `{required[0]}`; describe the queue in a file: {_EXAMPLE}"
            )
        return [Aqm(titles[word], {"kind": word})]
    if not word.endswith(".toml") and not Path(word).exists():
        raise unknown("queue discipline", word, titles)
    top = read_toml(Path(word))
    top.only("queue")
    tables = top.tables("queue", "name")
    if not tables:
        raise top.error(f"there is no queue; write {_EXAMPLE}")
    return [_of_table(table) for table in tables]


def _of_table(table: TomlTable) -> Aqm:
    table.only("name", "queue")
    queue = table.need("queue", dict)
    aqm = Aqm(table.need("name", str), queue)
    try:
        resolve(
            {
                "duration": "1s",
                "topology": {"kind": "dumbbell", "rate": "10Mbit", "delay": "50ms", "queue": queue},
                "traffic": [{"name": "long", "kind": "bulk"}],
            }
        )
    except ScenarioError as error:
        first = error.errors[0] if error.errors else None
        said = f"`{first['path'].removeprefix('topology.')}`: {first['message']}" if first else str(error)
        raise table.error(said) from None
    return aqm


def _buffer(scenario: Mapping[str, Any], key: str) -> int:
    """Return the packets for which the scenario's DropTail queue has room."""
    found: Any = scenario
    for part in key.split("."):
        found = found.get(part, {}) if isinstance(found, Mapping) else {}
    limit = str(found.get("limit", "")) if isinstance(found, Mapping) else ""
    if not re.fullmatch(r"\d+p", limit) or found.get("kind") != "droptail":
        raise ScenarioError(
            f'`{key}` must be {{ kind = "droptail", limit = "83p" }}, with a limit in packets'
        )
    return int(limit[:-1])


def _check(section: Section, scenario: TomlTable) -> None:
    topology = scenario.need("topology", dict)
    for key in section.queues:
        first, _, rest = key.partition(".")
        if first == "topology" and "." not in rest and not isinstance(topology.get(rest), dict):
            raise scenario.error(f"`{key}` must be a table with DropTail's `limit`, the buffer of all queues")


AQMS = Guide(
    name="RFC 7928",
    subject="AQM",
    reference="DropTail",  # section 4.3: every AQM is compared with a tail-drop queue
    fair="with the same buffer",
    tables="scenarios/queues/sections.toml",
    read=read_aqms,
    check=_check,
)
"""Characterization guidelines for AQMs."""

LINKS = replace(AQMS, name="access links", tables="scenarios/links/sections.toml", is_document=False)
"""What a home does on kinds of access links; no document has such a list."""
