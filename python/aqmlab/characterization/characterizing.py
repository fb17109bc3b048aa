"""Runs the sections of a characterization, and judges them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from aqmlab.arguments import typed
from aqmlab.characterization import baseline as bands
from aqmlab.characterization.arms import Prepared, prepare
from aqmlab.characterization.controls import CONTROLS
from aqmlab.characterization.costs import Cost, costs
from aqmlab.characterization.guides import Guide, Subject
from aqmlab.characterization.queues import AQMS, LINKS, Aqm
from aqmlab.characterization.sections import Section, chosen, own_sections, rfc_sections
from aqmlab.characterization.verdicts import (
    Branches,
    Comparison,
    compare,
    detail,
    find_branches,
    matters,
    note,
    sentences,
    values_of,
    word,
)
from aqmlab.errors import AqmlabError, UsageError
from aqmlab.metrics import find
from aqmlab.results.results import Results
from aqmlab.stats import estimate
from aqmlab.stats.differences import defined
from aqmlab.sweeps.progress import Progress
from aqmlab.sweeps.sweep import sweep
from aqmlab.system.files import json_text, save
from aqmlab.text.numbers import counted
from aqmlab.text.tables import Column, Grid

SEEDS = 10
QUICK_SEEDS = 3
DIRECTORY = Path("runs/characterization")
PAGE = "characterization.html"
_MARKS = "mark_percent"

Watcher = Callable[[str, Progress], object]
"""Receives the section and its progress."""


@dataclass(frozen=True)
class Judged:
    """A section with its results; without them, it is only stated.

    Attributes
    ----------
    section
        The section.
    prepared
        Its scenario and its arms.
    results
        Its runs.
    """

    section: Section
    prepared: Prepared | None = None
    results: Results | None = None

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """All comparisons of the section; Holm's correction covers all of them."""
        if self.prepared is None or self.results is None:
            return ()
        return compare(self.results, self.prepared.arms)

    @cached_property
    def branches(self) -> tuple[Branches, ...]:
        """The cells with two branches."""
        return () if self.results is None else find_branches(self.results)

    def of(self, subject: str) -> list[Comparison]:
        """The comparisons of one subject."""
        return [one for one in self.comparisons if one.arm.subject == subject]

    def word(self, subject: str) -> str:
        """The verdict on a subject."""
        if self._marks_nothing(subject):
            return "marks nothing"
        if self.section.parameters:
            said, others = matters(self.of(subject))
            return f"{len(said)} of {counted(len(said) + len(others), 'setting')} matter"
        return word(self.of(subject))

    def detail(self, subject: str) -> str:
        """What is better and what is worse with a subject; empty if nothing is."""
        return "" if self._marks_nothing(subject) or self.section.parameters else detail(self.of(subject))

    def sentences(self, subject: str) -> list[str]:
        """What was found about a subject."""
        silent = f"{subject} marked no packet of senders with ECN: it has no ECN to compare"
        if self.section.parameters:
            said, others = matters(self.of(subject))
            return [*said, f"no difference found, or within 1 %: {'; '.join(others)}"] if others else said
        return sentences(self.of(subject), silent if self._marks_nothing(subject) else "")

    @property
    def note(self) -> str:
        """The number of comparisons."""
        return note(self.comparisons)

    def _marks_nothing(self, subject: str) -> bool:
        if not self.section.ecn or self.results is None:
            return False
        cells = {one.cell for one in self.of(subject)}
        return not any(any(values_of(self.results, cell, _MARKS).values()) for cell in cells)


@dataclass(frozen=True)
class Characterization:
    """The result of :func:`characterize`.

    Attributes
    ----------
    path
        The directory with the page and the tables.
    guide
        The document that was followed.
    subjects
        What was characterized.
    seeds, quick, rate
        What was asked for; ``rate`` is ``None`` for the rates of the scenarios.
    sections
        The sections in the order of the RFC's numbers.
    departures
        The values that have left the bands of the baseline; none without a baseline.
    """

    path: Path
    guide: Guide
    subjects: tuple[Subject, ...]
    seeds: int
    quick: bool
    rate: str | None
    sections: tuple[Judged, ...]
    departures: tuple[bands.Departure, ...] = ()

    @property
    def page(self) -> Path:
        """The page."""
        return self.path / PAGE

    @property
    def costs(self) -> tuple[Cost, ...]:
        """Complexity and parameters of AQMs."""
        return costs([one for one in self.subjects if isinstance(one, Aqm)])

    @property
    def settings(self) -> dict[str, Any]:
        """What a baseline must agree with."""
        ids = [judged.section.id for judged in self.sections]
        return {
            "guide": self.guide.name,
            "seeds": self.seeds,
            "quick": self.quick,
            "rate": self.rate,
            "subjects": {one.name: dict(one.described) for one in self.subjects},
            "section_ids": ids,
        }

    @cached_property
    def values(self) -> dict[bands.Key, tuple[float, ...]]:
        """The values of all seeds, by section, cell and metric."""
        return {
            (judged.section.id, str(cell), name): tuple(defined(values_of(results, cell, name)).values())
            for judged in self.sections
            if (results := judged.results) is not None
            for cell in results.cells
            for name in results.metrics
        }

    def grid(self) -> Grid:
        """The summary of section 13: sections and subjects; what there is more of is its rows."""
        names = [one.name for one in self.subjects]

        def said(judged: Judged, name: str) -> str:
            return judged.detail(name) or judged.word(name) if judged.results is not None else "–"

        if len(names) > len(self.sections):
            heads = [Column(one.section.id, prose=True) for one in self.sections]
            grid = Grid(self.guide.subject, *heads)
            for name in names:
                grid.add(name, *(said(one, name) for one in self.sections))
            return grid
        grid = Grid("section", Column("", prose=True), *(Column(name, prose=True) for name in names), keys=2)
        for judged in self.sections:
            grid.add(judged.section.id, judged.section.title, *(said(judged, name) for name in names))
        return grid

    def to_json(self) -> dict[str, Any]:
        """The verdicts as plain data."""
        return {
            "format_version": 1,
            **self.settings,
            "path": str(self.path),
            "page": str(self.page),
            "sections": [self._section_json(judged) for judged in self.sections],
            "costs": [cost._asdict() for cost in self.costs],
            "left_their_bands": [one.text for one in self.departures],
        }

    def _section_json(self, judged: Judged) -> dict[str, Any]:
        section = judged.section
        return {
            "id": section.id,
            "title": section.title,
            "question": section.question,
            "states": section.states,
            "deviations": list(section.deviations),
            "note": judged.note,
            "verdicts": {
                one.name: {
                    "word": judged.word(one.name),
                    "detail": judged.detail(one.name),
                    "sentences": judged.sentences(one.name),
                }
                for one in self.subjects
                if judged.results is not None
            },
            "branches": [branches.text for branches in judged.branches],
            "left_out": [] if judged.prepared is None else list(judged.prepared.left_out),
        }

    def write(self) -> None:
        """Write the page, both CSV files and the JSON file."""
        from aqmlab.characterization.page import render

        self.path.mkdir(parents=True, exist_ok=True)
        save(self.page, render(self))
        save(self.path / "characterization.json", json_text(self.to_json()))
        save(self.path / "values.csv", _csv(_VALUES, self._value_rows()))
        save(self.path / "comparisons.csv", _csv(_COMPARISONS, self._comparison_rows()))

    def _value_rows(self) -> list[list[Any]]:
        rows = []
        for (section, cell, name), values in self.values.items():
            found = estimate(values)
            mean, half = (found.mean, found.half_width) if found is not None else (None, None)
            rows.append([section, cell, name, find(name).unit, len(values), mean, half])
        return rows

    def _comparison_rows(self) -> list[list[Any]]:
        rows = []
        for judged in self.sections:
            for one in judged.comparisons:
                found = one.found.estimate
                mean, half = (found.mean, found.half_width) if found is not None else (None, None)
                names = [judged.section.id, str(one.cell), one.arm.against, one.metric.name, one.metric.unit]
                rows.append([*names, one.found.counted, mean, half, one.found.p_value, one.outcome])
        return rows


_VALUES = ("section", "cell", "metric", "unit", "seeds", "mean", "half_width_95")
_COMPARISONS = (
    *("section", "cell", "against", "metric", "unit", "pairs", "difference"),
    *("half_width_95", "p_value", "outcome"),
)


def _csv(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()


@typed
def characterize(  # noqa: PLR0913 (keyword arguments)
    subjects: str | Sequence[str],
    *,
    cc: bool = False,
    links: bool = False,
    output: Path | str | None = None,
    rate: str | None = None,
    seeds: int | None = None,
    quick: bool = False,
    scenarios: Sequence[Path | str] = (),
    sections: Sequence[str] | None = None,
    baseline: Path | str | None = None,
    write_baseline: Path | str | None = None,
    store: Path | str | None = None,
    jobs: int | None = None,
    progress: Callable[[str, Progress], object] | None = None,
) -> Characterization:
    """Characterize AQMs as RFC 7928 describes it, or congestion controls as RFC 9743 does.

    Each AQM is compared with DropTail with the same buffer, each control with CUBIC on the same path.

    Finished runs are kept in the store, so a repeated call runs only what is missing.

    Parameters
    ----------
    subjects
        Names of disciplines, or TOML files with ``[[queue]]`` tables of ``name`` and ``queue``. With ``cc``,
        names of congestion controls or profiles of TCP, or files with ``[[control]]`` tables of ``name`` and
        ``tcp``.
    cc
        Whether congestion controls are characterized.
    links
        Whether AQMs are characterized on access links, with what a home does, instead of RFC 7928.
    output
        The directory of the page, the CSV files and the JSON file; ``runs/characterization`` by default.
    rate
        The rate of the bottleneck, such as ``"50Mbit"``; buffer and load follow it. By default 10 Mbit/s for
        AQMs and 20 Mbit/s for controls. Sections with fixed rates keep them.
    seeds
        Number of seeds; 10 by default, 3 for a quick characterization.
    quick
        Whether to leave out the sensitivity to parameters and most round-trip times.
    scenarios
        Further scenarios, or files with ``[[section]]`` tables.
    sections
        The sections to run, such as ``"8.2.3"``; all by default.
    baseline
        A file of bands: the result lists the values that have left theirs.
    write_baseline
        The file of bands to write.
    store
        The directory of the store; ``AQMLAB_STORE``, or ``runs/store``, if not given.
    jobs
        Number of runs in parallel; one per processor by default. Results do not depend on it.
    progress
        Receives the title of each section and the progress of its runs.

    Raises
    ------
    UsageError
        If nothing is named, a name is unknown, or a baseline does not fit.
    ScenarioError
        If a file has an error.
    RunError
        If runs failed; the others are kept.
    """
    if cc and links:
        raise UsageError("`cc` and `links` exclude each other: access links compare queues")
    guide = CONTROLS if cc else LINKS if links else AQMS
    tested = guide.read([subjects] if isinstance(subjects, str) else list(subjects))
    count = seeds if seeds is not None else QUICK_SEEDS if quick else SEEDS
    if count < 1:
        raise UsageError(f"the number of seeds is {count}; write at least 1")
    own = [one for file in scenarios for one in own_sections(guide, Path(file))]
    every = [*rfc_sections(guide), *own]
    if quick and sections is None:
        every = [section for section in every if not section.parameters]
    asked = chosen(every, sections)
    # Everything that can be refused is refused before the first run.
    ready = [
        None if one.scenario is None else prepare(guide, one, tested, rate, quick=quick) for one in asked
    ]
    judged = tuple(map(Judged, asked, ready))
    made = Characterization(Path(output or DIRECTORY), guide, tested, count, quick, rate, judged)
    if baseline is not None:
        bands.read_bands(Path(baseline), made.settings)
    if write_baseline is not None:
        bands.check_seeds(count)
    judged = tuple(
        one
        if one.prepared is None
        else replace(one, results=_run(one.prepared, count, store, jobs, progress))
        for one in judged
    )
    made = replace(made, sections=judged)
    if baseline is not None:
        left = bands.departures(Path(baseline), made.settings, made.values)
        made = replace(made, departures=left)
    made.write()
    if write_baseline is not None:
        bands.write_bands(Path(write_baseline), made.settings, made.values)
    return made


def _run(
    prepared: Prepared,
    seeds: int,
    store: Path | str | None,
    jobs: int | None,
    progress: Watcher | None,
) -> Results:
    title = f"{prepared.section.id} {prepared.section.title}"
    watch = None if progress is None else lambda now: progress(title, now)
    try:
        under_way = sweep(prepared.scenario, store=store, runs=seeds, jobs=jobs, progress=watch, report=False)
        return under_way.wait()
    except AqmlabError as error:
        error.add_note(f"in section {title}")
        raise
