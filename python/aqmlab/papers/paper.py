"""A paper as data: experiments, settings that it leaves open, findings, tables, figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aqmlab.claims.scan import SourceLocation

MARKS = ("given", "inferred", "recalled", "unknown")
"""How well a value is known; ``papers/README.md`` explains each word."""
SCORED_MARKS = ("given", "inferred")
THRESHOLD_BASES = ("given", "inferred", "ours")
"""The origin of a threshold: the paper, a consequence of the paper, or our own choice."""
STRENGTHS = ("firm", "soft")
BY_CONSTRUCTION = "by construction"
KINDS = ("distinguishes", "no difference", BY_CONSTRUCTION)
"""What a finding states: a difference between disciplines or settings, none, or what our set-up implies."""
DESIGNS = ("one_at_a_time", "product")
CAUSE_SEEDS = ("multiverse", "scored")
DISTANCES = ("log", "relative")
SCENARIO_ENDING = ".toml"
"""The extension that distinguishes a scenario file from a scenario key among a candidate's changes."""
SCATTER = "response_scatter"
RESPONSES = ("response_cdf", "response_ccdf", SCATTER)
"""Kinds of figures: distributions of response times, their tails, and individual times by size."""
ARM = "arm"
"""The key under which a candidate has changes for individual arms."""


@dataclass(frozen=True)
class Thinned:
    """A smaller version of an experiment.

    Attributes
    ----------
    runs
        Seeds per cell; as in the scenario if 0.
    keep
        The labels that are kept, by axis.
    """

    runs: int = 0
    keep: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class PaperExperiment:
    """One scenario of a paper.

    Attributes
    ----------
    file
        Its name in the folder.
    title
        Title for headings.
    figures, tables
        Numbers of those figures and tables of the paper that it reproduces.
    quick
        The smaller version for ``--quick``.
    live
        Whether it runs between this machine's TCP stacks, with ``--live``.
    """

    file: str
    title: str
    figures: tuple[str, ...]
    tables: tuple[str, ...]
    quick: Thinned
    live: bool = False


@dataclass(frozen=True)
class Change:
    """One change that a candidate makes: a scenario key, its value, and the arms affected (all if empty)."""

    key: str
    value: Any
    arms: tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """A value that the paper, as far as known, does not state.

    Attributes
    ----------
    name
        The setting's name, which is unique in the paper.
    mark
        How well the value is known, one of :data:`MARKS`.
    why
        The known facts, and the reason for the chosen candidate.
    experiments
        Files that it concerns; all if empty.
    arms
        Arms that it concerns; all if empty.
    chosen
        The candidate in the scenario files.
    candidates
        The scenario keys and values of each candidate, by its label, written as in ``[[arm]]``. Those
        under the name of a scenario file apply to that experiment only, and those under ``arm`` and
        the name of an arm to that arm only.
    test
        Whether the paper contradicts the other candidates. They are then run only where one of them
        is a cause, and are not readings of the multiverse.
    source
        Its place in the paper; not empty if the value is given.
    """

    name: str
    mark: str
    why: str
    experiments: tuple[str, ...]
    arms: tuple[str, ...]
    chosen: str
    candidates: Mapping[str, Mapping[str, Any]]
    test: bool = False
    source: str = ""

    def changes(self, file: str, label: str) -> tuple[Change, ...]:
        """Return the changes of a candidate in an experiment; later ones take precedence."""
        if self.experiments and file not in self.experiments:
            return ()
        table = self.candidates[label]
        return (*self._changes(table), *self._changes(table.get(file, {})))

    def _changes(self, table: Mapping[str, Any]) -> Iterator[Change]:
        for key, value in table.items():
            if key == ARM:
                for arm, keys in value.items():
                    yield from (Change(inner, of_arm, (arm,)) for inner, of_arm in keys.items())
            elif not key.endswith(SCENARIO_ENDING):
                yield Change(key, value, self.arms)


@dataclass(frozen=True)
class Part:
    """A statement of a finding about one experiment; ``origin`` is its location, for messages."""

    experiment: str
    expect: str
    where: Mapping[str, str]
    origin: SourceLocation = field(default_factory=SourceLocation, compare=False)


@dataclass(frozen=True)
class Threshold:
    """The basis of the thresholds in a finding's statements.

    Attributes
    ----------
    basis
        One of :data:`THRESHOLD_BASES`.
    what
        The numbers, in words; empty where the paper's own numbers are used.
    """

    basis: str
    what: str = ""

    def __str__(self) -> str:
        return f"{self.basis}: {self.what}" if self.what else self.basis


@dataclass(frozen=True)
class Finding:
    """A result stated by the paper.

    Attributes
    ----------
    name
        Its number.
    text
        The statement in words.
    mark
        How well it is known, one of :data:`SCORED_MARKS`.
    strength
        ``"firm"``: stated as a result; ``"soft"``: an explanation, a single run, or something read off a
        figure.
    kind
        One of :data:`KINDS`.
    source
        Its place in the paper.
    threshold
        The basis of the thresholds in the statements.
    parts
        Statements that must all hold.
    causes
        For a failing finding: readings with which it holds, as candidates by setting. Such a reading explains
        the failure.
    cause_seeds
        The number of seeds for its causes, one of :data:`CAUSE_SEEDS`; if empty, the multiverse decides.
    note
        Notes on the score, such as why the finding fails and what was tried.
    published
        How far the published result lies from the thresholds, with units; empty if it has no numbers.
    """

    name: str
    text: str
    strength: str
    kind: str
    source: str
    threshold: Threshold
    parts: tuple[Part, ...]
    causes: tuple[Mapping[str, str], ...]
    cause_seeds: str = ""
    note: str = ""
    mark: str = "given"
    published: str = ""


@dataclass(frozen=True)
class PublishedTable:
    """A table of the paper, and how our values for it are computed.

    Attributes
    ----------
    name, title, source
        Its number, its title, and its place in the paper.
    experiment
        The scenario file.
    mark
        How well the numbers are known.
    kind
        What their agreement shows, one of :data:`KINDS`.
    value
        A claim's expression; ``{row.x}`` and ``{column.x}`` stand for entries of rows and columns.
    unit
        Unit of the numbers, for the heading.
    tolerance
        ``"15 %"``, ``"factor 2"``, or empty where nothing is scored.
    both_below
        With a factor: two values that are both below this agree, whatever their ratio.
    branches
        A condition that classifies seeds where the system has two modes; empty otherwise.
    rows, columns
        ``label`` and the entries that the expression uses.
    published
        A number for each row and column; ``None`` where the paper has none.
    """

    name: str
    title: str
    source: str
    experiment: str
    mark: str
    kind: str
    value: str
    unit: str
    tolerance: str
    both_below: float
    branches: str
    rows: tuple[Mapping[str, str], ...]
    columns: tuple[Mapping[str, str], ...]
    published: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class PaperFigure:
    """A figure to redraw: ``content`` is what its ``kind`` requires; a law's figure has no ``experiment``."""

    name: str
    title: str
    experiment: str
    kind: str
    content: Mapping[str, Any]

    @property
    def file_name(self) -> str:
        """The name of the figure's file in a folder of figures."""
        return f"figure-{re.sub(r'[^0-9A-Za-z]+', '-', self.name)}.svg"


@dataclass(frozen=True)
class Multiverse:
    """How the findings of a paper are scored under its alternative readings (the multiverse).

    Attributes
    ----------
    design
        One of :data:`DESIGNS`.
    thinned
        A smaller version of each experiment.
    cause_seeds
        The number of seeds for readings named as causes, one of :data:`CAUSE_SEEDS`: that of the multiverse
        or, if close findings need it, that of the scored reading.
    """

    design: str = "one_at_a_time"
    thinned: Thinned = field(default_factory=Thinned)
    cause_seeds: str = "multiverse"

    def for_causes(self, finding: Finding) -> Thinned:
        """Return the version of an experiment that runs under the readings named as the finding's causes."""
        which = finding.cause_seeds or self.cause_seeds
        return Thinned(self.thinned.runs if which == "multiverse" else 0)


@dataclass(frozen=True)
class Target:
    """A published item with which a reading can be compared: a cell of a table, or a finding.

    Attributes
    ----------
    finding
        Its number; empty for a cell.
    table, row, column
        For a cell: the table's number, and the positions of row and column.
    """

    finding: str = ""
    table: str = ""
    row: int = 0
    column: int = 0


@dataclass(frozen=True)
class Inference:
    """The search for readings: the values to fit, and those withheld from the search.

    Attributes
    ----------
    fit, test
        The published values that the search uses, and those that it never sees; the two do not overlap.
    rule
        How the two parts were chosen, and when.
    settings
        Names of the settings that are searched.
    distance
        How the distance of a cell is measured, one of :data:`DISTANCES`.
    seeds
        Number of seeds with which each reading is evaluated.
    final_seeds
        Number of seeds with which the fixed and the inferred reading are finally evaluated.
    minutes
        The total budget.
    seed
        Seed of the order in which a design assigns candidates.
    shorter
        Keys of the scenarios, written like a candidate's, that shorten the runs of the search. The
        final evaluation uses whole runs.
    """

    fit: tuple[Target, ...] = ()
    test: tuple[Target, ...] = ()
    rule: str = ""
    settings: tuple[str, ...] = ()
    distance: str = "log"
    seeds: int = 3
    final_seeds: int = 10
    minutes: float = 90.0
    seed: int = 1
    shorter: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Paper:
    """The folder of a paper; ``citation`` has the BibTeX fields other than authors, title and year.

    Experiments, settings, findings, tables and figures are the simulated ones; ``live`` is the same paper
    with the live ones, or ``None`` if it has none.
    """

    path: Path
    key: str
    title: str
    authors: tuple[str, ...]
    year: int
    published: str
    summary: str
    fixed: str
    cost: Mapping[str, str]
    experiments: tuple[PaperExperiment, ...]
    settings: tuple[Setting, ...]
    findings: tuple[Finding, ...]
    tables: tuple[PublishedTable, ...]
    figures: tuple[PaperFigure, ...]
    multiverse: Multiverse
    inference: Inference = field(default_factory=Inference)
    citation: Mapping[str, str] = field(default_factory=dict)
    live: Paper | None = None

    def experiment(self, file: str) -> PaperExperiment:
        """Return the experiment that a scenario file describes."""
        return next(e for e in self.experiments if e.file == file)

    def parted(self, fixed_live: str = "") -> Paper:
        """Return the paper with its live experiments, and what belongs to them, moved to ``live``."""
        files = {experiment.file for experiment in self.experiments if experiment.live}
        if not files:
            return self

        def part(*, live: bool) -> dict[str, Any]:
            return {
                "experiments": tuple(e for e in self.experiments if e.live == live),
                "settings": tuple(s for s in self.settings if (not files.isdisjoint(s.experiments)) == live),
                "findings": tuple(f for f in self.findings if (f.parts[0].experiment in files) == live),
                "tables": tuple(t for t in self.tables if (t.experiment in files) == live),
                "figures": tuple(f for f in self.figures if (f.experiment in files) == live),
            }

        of_live = replace(
            self, **part(live=True), fixed=fixed_live, multiverse=Multiverse(), inference=Inference()
        )
        return replace(self, **part(live=False), live=of_live)
