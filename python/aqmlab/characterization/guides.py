"""The documents that a characterization follows: what each tests, and with what it compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from aqmlab.characterization.sections import Section
    from aqmlab.papers.toml_tables import TomlTable


class Subject(Protocol):
    """What is characterized: an AQM or a congestion control."""

    @property
    def name(self) -> str:
        """Its name in tables."""
        ...

    @property
    def described(self) -> Mapping[str, Any]:
        """Its table in a scenario."""
        ...

    def settings(self, section: Section, scenario: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The keys of a section's scenario that make it the one under test, with their values."""
        ...


@dataclass(frozen=True)
class Guide:
    """A document that says in which situations something is evaluated.

    Attributes
    ----------
    name
        Its name, as of an RFC.
    subject
        What it evaluates.
    reference
        With what it is compared: the name of the scenarios' own arm.
    fair
        What both have in common.
    tables
        The file with the table of its sections, in this package.
    read
        Reads what a command line names.
    check
        Refuses a scenario without a place for what is tested.
    is_document
        Whether it is a published document, with numbered sections.
    """

    name: str
    subject: str
    reference: str
    fair: str
    tables: str
    read: Callable[[Sequence[str]], tuple[Subject, ...]]
    check: Callable[[Section, TomlTable], None]
    is_document: bool = True
