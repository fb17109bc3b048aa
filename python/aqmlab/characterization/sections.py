"""The sections of a characterization: which scenario, what is tested in it, how it differs from the RFC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from aqmlab.characterization.guides import Guide
from aqmlab.errors import UsageError, unknown
from aqmlab.papers.toml_tables import TomlTable, read_toml

_KEYS = (
    *("id", "title", "file", "queues", "tested", "scale"),
    *("ecn", "parameters", "quick", "deviations", "states"),
)
_OWN = "own"
_TAKEN = {
    "arm": "the arms are made from what is tested",
    "claim": "there are no claims about arms that are not known",
}


@dataclass(frozen=True)
class Section:
    """One section.

    Attributes
    ----------
    id
        Number of the RFC's section, or a name.
    scenario
        The scenario; ``None`` for a section that is only stated.
    queues
        The keys that take the AQM.
    tested
        The keys that take the congestion control.
    scale
        Keys that follow the rate of the link; ``None`` if the rate is fixed.
    ecn, parameters
        Whether each AQM is compared with itself, with ECN or with other parameters.
    quick
        The labels that a quick characterization keeps, by axis.
    deviations
        How it differs from the text of the RFC.
    states
        What is said of a section without a scenario.
    """

    id: str
    own_title: str = ""
    scenario: Path | None = None
    queues: tuple[str, ...] = ("topology.queue",)
    tested: tuple[str, ...] = ("traffic.tested.tcp",)
    scale: tuple[str, ...] | None = None
    ecn: bool = False
    parameters: bool = False
    quick: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    deviations: tuple[str, ...] = ()
    states: str = ""

    @cached_property
    def content(self) -> dict[str, Any]:
        """The scenario's tables; empty without a scenario."""
        return {} if self.scenario is None else dict(read_toml(self.scenario).content)

    @property
    def title(self) -> str:
        """The section's title: its own, or the scenario's."""
        return self.own_title or str(self.content.get("title", self.id))

    @property
    def question(self) -> str:
        """The scenario's question."""
        return str(self.content.get("question", ""))


def rfc_sections(guide: Guide) -> tuple[Section, ...]:
    """The sections of the document."""
    # Packages are installed as folders, so their files have paths.
    return _of_file(guide, Path(str(resources.files("aqmlab.characterization"))) / guide.tables)


def own_sections(guide: Guide, file: Path) -> tuple[Section, ...]:
    """The sections of a user's file: a table of sections like the one of the RFC, or a single scenario.

    Raises
    ------
    ScenarioError
        If the file cannot be read, has an unknown key, or is a scenario whose arms cannot be replaced.
    """
    top = read_toml(file)
    if top.has("section"):
        return _of_file(guide, file)
    section = Section(f"{_OWN}: {file.stem}", scenario=file)
    _check(guide, section, top)
    return (section,)


def chosen(sections: Sequence[Section], wanted: Sequence[str] | None) -> tuple[Section, ...]:
    """Return the sections with these numbers; all if none is given.

    Raises
    ------
    UsageError
        For an unknown section, or none at all.
    """
    known = {section.id: section for section in sections}
    if len(known) < len(sections):
        raise UsageError("two sections have the same `id`; rename one")
    if wanted is None:
        return tuple(sections)
    for name in wanted:
        if name not in known:
            raise unknown("section", name, known)
    if not wanted:
        raise UsageError("the list of sections is empty")
    return tuple(section for section in sections if section.id in wanted)


def _of_file(guide: Guide, file: Path) -> tuple[Section, ...]:
    top = read_toml(file)
    top.only("section")
    return tuple(_section(guide, table, file.parent) for table in top.tables("section", "id"))


def _section(guide: Guide, table: TomlTable, folder: Path) -> Section:
    table.only(*_KEYS)
    name = table.get("file", str, "")
    if not name and not table.has("states"):
        raise table.error("`file` is missing; name a scenario, or write `states`")
    section = Section(
        table.need("id", str),
        table.get("title", str, ""),
        folder / name if name else None,
        table.texts("queues") or ("topology.queue",),
        table.texts("tested") or ("traffic.tested.tcp",),
        table.texts("scale") if table.has("scale") else None,
        table.get("ecn", bool, False),
        table.get("parameters", bool, False),
        table.get("quick", dict, {}),
        table.texts("deviations"),
        table.get("states", str, ""),
    )
    if section.scenario is not None:
        _check(guide, section, read_toml(section.scenario))
    return section


def _check(guide: Guide, section: Section, scenario: TomlTable) -> None:
    for key, why in _TAKEN.items():
        if scenario.has(key):
            raise scenario.error(f"remove [[{key}]]: {why}")
    guide.check(section, scenario)
