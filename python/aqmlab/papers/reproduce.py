"""Runs a paper's experiments as sweeps, scores its findings as claims, and fills its tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aqmlab.claims import Names
from aqmlab.errors import unknown
from aqmlab.papers.folder import papers
from aqmlab.papers.live import REPEATS, LiveRuns, compare, live_part
from aqmlab.papers.paper import Finding, Paper, PaperFigure, PublishedTable, Thinned
from aqmlab.papers.readings import Scorer
from aqmlab.papers.required_cells import Question, RequiredCells
from aqmlab.papers.runner import Runner, Watcher
from aqmlab.papers.scoring import ScoredFinding, claim_of, claims_of
from aqmlab.papers.tables import FilledTable, fill
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results
from aqmlab.sweeps.store import store_path
from aqmlab.sweeps.task import LIVE, SIMULATOR
from aqmlab.sweeps.where import LOCAL

if TYPE_CHECKING:
    from aqmlab.sweeps.connection import Cluster

Named = TypeVar("Named", Finding, PublishedTable, PaperFigure)


@dataclass(frozen=True)
class Wanted:
    """The requested parts of a paper; the whole paper if nothing is named.

    Attributes
    ----------
    tables, figures, findings
        Their numbers in the paper. ``III`` also stands for ``III, 72`` and ``III, 300``, unless a table has
        exactly this number.
    """

    tables: Sequence[str] = ()
    figures: Sequence[str] = ()
    findings: Sequence[str] = ()

    @property
    def everything(self) -> bool:
        """Whether nothing is named."""
        return not (self.tables or self.figures or self.findings)


EVERYTHING = Wanted()


@dataclass(frozen=True)
class Reproduction:
    """A paper with our results.

    Attributes
    ----------
    results
        Results of each experiment that was run, by file.
    findings, tables
        The scored findings, and the filled tables.
    figures
        The requested figures.
    seeds, most_seeds
        The smallest and the largest number of seeds of any scored cell or, if none is scored, of any drawn
        cell.
    quick
        Whether this was the small version, which must not be quoted.
    wall_s, runs
        The duration of the reproduction, and the number of runs made in that time.
    whole
        For the small version: the names that each whole experiment defines, by file.
    live
        For live experiments: the counts of their runs, and the same runs simulated.
    """

    paper: Paper
    results: Mapping[str, Results]
    findings: tuple[ScoredFinding, ...]
    tables: tuple[FilledTable, ...]
    figures: tuple[PaperFigure, ...]
    seeds: int
    quick: bool
    wall_s: float
    runs: int = 0
    most_seeds: int = 0
    whole: Mapping[str, Names] = field(default_factory=dict)
    live: LiveRuns | None = None


def reproduce(  # noqa: PLR0913 (keyword arguments)
    paper: Paper,
    *,
    wanted: Wanted = EVERYTHING,
    seeds: int | None = None,
    quick: bool = False,
    store: Path | str | None = None,
    jobs: int | None = None,
    executor: str | Cluster = LOCAL,
    live: bool = False,
    repeats: int = REPEATS,
    progress: Watcher | None = None,
    interrupted: Callable[[], object] | None = None,
    notify: Callable[[Mapping[str, RequiredCells]], object] | None = None,
) -> Reproduction:
    """Run a paper's experiments, score its findings, and fill its tables.

    Parameters
    ----------
    paper
        A paper from :func:`aqmlab.papers.find_paper`.
    wanted
        The requested parts; by default all. Only the cells that these parts need are run, except in the
        whole small version.
    seeds
        Number of seeds per cell; by default as in the scenarios.
    quick
        The smaller version, a test that must not be quoted.
    store
        The store of runs, from which an interrupted reproduction is resumed.
    jobs
        Number of runs in parallel; one per processor by default.
    executor
        As in :func:`aqmlab.sweep`; a cluster returns whole recordings, unless set otherwise.
    live
        Whether to run the live experiments instead, between this machine's TCP stacks. Only faithful
        runs count, and the same seeds are simulated.
    repeats
        Largest number of repetitions of a live run that is not faithful.
    progress
        Receives the progress.
    interrupted
        Called once, when a live run has been asked to end.
    notify
        Receives the required cells by file before the first run.

    Raises
    ------
    UsageError
        If a table, figure or finding is unknown, or no experiment can run live.
    ScenarioError
        If the paper's folder is invalid.
    RunError, HostError, RecordingError
        As for :func:`aqmlab.sweep`.
    """
    begin = time.monotonic()
    if live:
        paper = live_part(paper, papers)
    findings, tables, figures = choose(paper, wanted)
    scored_files = {part.experiment for finding in findings for part in finding.parts}
    scored_files |= {table.experiment for table in tables}
    needed = scored_files | {figure.experiment for figure in figures if figure.experiment}
    files = [experiment.file for experiment in paper.experiments if experiment.file in needed]
    host = LIVE if live else SIMULATOR
    runner = Runner(
        paper, store_path(store), jobs, seeds, progress, executor, host, repeats, interrupted=interrupted
    )
    versions = {e.file: e.quick if quick else Thinned() for e in paper.experiments}
    scorer = Scorer(runner, versions, "--quick" if quick else "")
    _check_findings(findings, scorer)
    parts = {}
    # The whole small version runs all its cells; tables are filled as far as these cells permit.
    for file in () if quick and wanted.everything else files:
        asked: list[Question] = [
            *claims_of(findings, file),
            *(table for table in tables if table.experiment == file),
            *(figure for figure in figures if figure.experiment == file),
        ]
        parts[file] = scorer.required(file, asked)
    among = {file: parts[file].cells if parts else None for file in files}
    if notify is not None:
        notify(parts)
    results = {file: scorer.results(file, {}, among[file]) for file in files}
    scored = scorer.score(findings, results)
    seeds_of = [len(results[file].seeds) for file in scored_files or files]
    return Reproduction(
        paper,
        results,
        scored,
        tuple(fill(table, results[table.experiment], lenient=quick) for table in tables),
        tuple(figures),
        min(seeds_of, default=0),
        quick,
        time.monotonic() - begin,
        runner.runs,
        max(seeds_of, default=0),
        {file: scorer.names(file, whole=True) for file in files} if quick else {},
        _beside(scorer, results, findings, among) if live else None,
    )


def _beside(
    scorer: Scorer,
    results: Mapping[str, Results],
    findings: Sequence[Finding],
    among: Mapping[str, frozenset[Cell] | None],
) -> LiveRuns:
    """Simulate the experiments that were run live, score them in the same way, and compare the results."""
    runner = scorer.runner
    simulator = replace(scorer, runner=replace(runner, host=SIMULATOR, runs=0, _done={}))
    twin = {file: simulator.results(file, {}, among[file]) for file in results}
    runner.runs += simulator.runner.runs
    faithful = sum(len(one.finished) for one in results.values())
    total = faithful + sum(len(one.missing) for one in results.values())
    return LiveRuns(
        faithful,
        total,
        runner.refused,
        simulator.score(findings, twin),
        {file: compare(twin[file], results[file]) for file in results if results[file].finished},
    )


def _check_findings(findings: Sequence[Finding], scorer: Scorer) -> None:
    """Raise an error, before anything is run, for a finding that its experiment cannot decide.

    Raises
    ------
    ScenarioError
        If a finding is invalid; the message gives the nearest name.
    """
    for finding in findings:
        for part in finding.parts:
            claim, names = claim_of(finding, part), scorer.names(part.experiment, whole=True)
            claim.check(names)
            claim.asks(names)


def choose(
    paper: Paper, wanted: Wanted
) -> tuple[Sequence[Finding], Sequence[PublishedTable], Sequence[PaperFigure]]:
    """The requested findings, tables and figures.

    Raises
    ------
    UsageError
        If the paper has no such finding, table or figure.
    """
    if wanted.everything:
        return paper.findings, paper.tables, paper.figures
    return (
        _named("finding", wanted.findings, paper.findings),
        _named("table", wanted.tables, paper.tables),
        _named("figure", wanted.figures, paper.figures),
    )


def _named(what: str, names: Sequence[str], known: Sequence[Named]) -> list[Named]:
    found: list[Named] = []
    for name in names:
        matches = [item for item in known if item.name.lower() == name.lower()]
        matches = matches or [item for item in known if _is_part_of(item.name, name)]
        if not matches:
            raise unknown(what, name, [item.name for item in known])
        found += [item for item in matches if item not in found]
    return found


def _is_part_of(name: str, whole: str) -> bool:
    """Whether ``III, 72`` is a part of ``III``, and ``9a`` of ``9``; ``12`` is not part of ``1``."""
    if not whole or not name.lower().startswith(whole.lower()):
        return False
    last, following = whole[-1], name[len(whole)]
    return not (last.isdigit() and following.isdigit()) and not (last.isalpha() and following.isalpha())
