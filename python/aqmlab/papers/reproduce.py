"""Running a paper: every experiment as a sweep, every finding as a claim, every table beside ours."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from aqmlab.claims import Claim, Scored, score
from aqmlab.claims.scan import Origin
from aqmlab.errors import ScenarioError, unknown
from aqmlab.papers.folder import Finding, Paper, PaperExperiment, PaperFigure, Part, PublishedTable, Thinned
from aqmlab.papers.names import names_of
from aqmlab.papers.tables import FilledTable, fill
from aqmlab.papers.variants import Reading, variant
from aqmlab.results import Results
from aqmlab.stats.verdict import Verdict, all_of, undecided
from aqmlab.sweeps.progress import Progress
from aqmlab.sweeps.store import Store, store_path
from aqmlab.sweeps.sweep import sweep

Watcher = Callable[[str, Progress], object]
"""Told which experiment is being run, and how far it is."""

Named = TypeVar("Named", Finding, PublishedTable, PaperFigure)


@dataclass(frozen=True)
class Wanted:
    """What of a paper is asked for; everything if nothing is named.

    Attributes
    ----------
    tables, figures, findings
        The paper's numbers.
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
class ScoredFinding:
    """A finding with what our runs say of it.

    Attributes
    ----------
    verdict
        ``holds`` if all parts do.
    parts
        Each statement with its comparisons.
    explained
        For one that fails or is undecided: the same under each reading that is said to be the cause.
    """

    finding: Finding
    verdict: Verdict
    parts: tuple[Scored, ...]
    explained: tuple[Verdict, ...] = ()

    @property
    def status(self) -> str:
        """``"holds"``, ``"fails"`` or ``"undecided"``."""
        return self.verdict.status


@dataclass(frozen=True)
class Reproduction:
    """A paper with ours beside it.

    Attributes
    ----------
    results
        Of each experiment that was run, by file.
    findings, tables
        Scored; filled.
    figures
        Those that were asked for.
    seeds
        The least number of seeds of a cell.
    quick
        Whether this was the small version, which is not to be quoted.
    wall_s, runs
        How long it took, and how many runs were done in that time.
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

    def counts(self, strength: str) -> dict[str, int]:
        """How many findings hold, fail and are undecided."""
        statuses = [f.status for f in self.findings if f.finding.strength == strength]
        return {status: statuses.count(status) for status in ("holds", "fails", "undecided")}


@dataclass
class Runner:
    """Runs experiments under readings, each once.

    Attributes
    ----------
    store
        Where runs are kept.
    jobs, seeds
        As in :func:`aqmlab.sweep`.
    watcher
        Told how far it is.
    """

    paper: Paper
    store: Path
    jobs: int | None = None
    seeds: int | None = None
    watcher: Watcher | None = None
    runs: int = 0
    _done: dict[str, Results] = field(default_factory=dict)

    def results(self, experiment: PaperExperiment, reading: Reading, thinned: Thinned) -> Results:
        """The results of an experiment; runs that the store has are not done again."""
        text = variant(self.paper, experiment, reading, thinned)
        runs = self.seeds or thinned.runs or None
        name = hashlib.sha256(f"{experiment.file}\n{text}\n{runs}".encode()).hexdigest()[:8]
        if name not in self._done:
            file = self._file(experiment, text, name)
            watcher = self.watcher
            title = f"{self.paper.key}: {experiment.title}"
            progress = None if watcher is None else lambda now: watcher(title, now)
            under_way = sweep(
                file, store=self.store, runs=runs, jobs=self.jobs, progress=progress, report=False
            )
            self._done[name] = under_way.wait()
            self.runs += under_way.progress.runs_done
        return self._done[name]

    def forget(self) -> None:
        """Let go of results; what is asked for again is read from the store again."""
        self._done.clear()

    def _file(self, experiment: PaperExperiment, text: str, name: str) -> Path:
        """The scenario as a file: the folder's own, or a variant that is kept in the store."""
        own = self.paper.path / experiment.file
        if text == own.read_text(encoding="utf-8"):
            return own
        # A directory that holds a file and is no store yet would be taken for somebody else's.
        store = Store.made(self.store)
        file = store.path / "papers" / self.paper.key / f"{Path(experiment.file).stem}-{name}.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file


def reproduce(  # noqa: PLR0913 (keyword arguments)
    paper: Paper,
    *,
    wanted: Wanted = EVERYTHING,
    seeds: int | None = None,
    quick: bool = False,
    store: Path | str | None = None,
    jobs: int | None = None,
    progress: Watcher | None = None,
) -> Reproduction:
    """Run a paper's experiments, score its findings, fill its tables.

    Parameters
    ----------
    paper
        From :func:`aqmlab.papers.find_paper`.
    wanted
        What of it; all if nothing is named.
    seeds
        In each cell; as in the scenarios if not given.
    quick
        The smaller version: to see that it works, not to be quoted.
    store
        Where runs are kept, and found again: a reproduction that is interrupted goes on where it was.
    jobs
        Runs side by side; one a processor if not given.
    progress
        Told how far it is.

    Raises
    ------
    UsageError
        If there is no such table, figure or finding.
    ScenarioError
        If the folder is wrong.
    RunError, HostError, RecordingError
        As of :func:`aqmlab.sweep`.
    """
    begin = time.monotonic()
    findings, tables, figures = choose(paper, wanted)
    check_findings(paper, findings)
    files = dict.fromkeys(
        [part.experiment for finding in findings for part in finding.parts]
        + [table.experiment for table in tables]
        + [figure.experiment for figure in figures if figure.experiment]
    )
    runner = Runner(paper, store_path(store), jobs, seeds, progress)
    chosen = [experiment for experiment in paper.experiments if experiment.file in files]
    thin = {e.file: e.quick if quick else Thinned() for e in chosen}
    results = {e.file: runner.results(e, {}, thin[e.file]) for e in chosen}
    scored = [score_finding(f, results, lenient=quick) for f in findings]
    if not quick:
        scored = [_explained(finding, runner) for finding in scored]
    return Reproduction(
        paper,
        results,
        tuple(scored),
        tuple(fill(table, results[table.experiment], lenient=quick) for table in tables),
        tuple(figures),
        min((len(found.seeds) for found in results.values()), default=0),
        quick,
        time.monotonic() - begin,
        runner.runs,
    )


def check_findings(paper: Paper, findings: Sequence[Finding]) -> None:
    """Complain of a finding that cannot be asked of its experiment, before anything is run.

    Raises
    ------
    ScenarioError
        With the nearest name where one is wrong.
    """
    files = dict.fromkeys(part.experiment for finding in findings for part in finding.parts)
    names = {file: names_of(paper, paper.experiment(file)) for file in files}
    for finding in findings:
        for part in finding.parts:
            claim_of(finding, part).check(names[part.experiment])


def choose(
    paper: Paper, wanted: Wanted
) -> tuple[Sequence[Finding], Sequence[PublishedTable], Sequence[PaperFigure]]:
    """The findings, tables and figures that are asked for.

    Raises
    ------
    UsageError
        If one is not there.
    """
    if wanted.everything:
        return paper.findings, paper.tables, paper.figures
    return (
        _named("finding", wanted.findings, paper.findings),
        _named("table", wanted.tables, paper.tables),
        _named("figure", wanted.figures, paper.figures),
    )


def _named(what: str, names: Sequence[str], known: Sequence[Named]) -> list[Named]:
    found = []
    for name in names:
        match = next((item for item in known if item.name.lower() == name.lower()), None)
        if match is None:
            raise unknown(what, name, [item.name for item in known])
        found.append(match)
    return found


def score_finding(
    finding: Finding, results: Mapping[str, Results], *, lenient: bool = False
) -> ScoredFinding:
    """Score a finding by the results of its experiments.

    ``lenient``: the experiments were made smaller, and a finding about labels that were left out is undecided
    rather than wrong.
    """
    parts = tuple(
        _score(claim_of(finding, part), results[part.experiment], lenient) for part in finding.parts
    )
    return ScoredFinding(finding, all_of([part.verdict for part in parts]), parts)


def _score(claim: Claim, results: Results, lenient: bool) -> Scored:
    try:
        return score(results, [claim])[0]
    except ScenarioError as error:
        if not lenient:
            raise
        return Scored(claim, undecided(f"not in the small version: {error}"))


def claim_of(finding: Finding, part: Part) -> Claim:
    """A part of a finding as a claim."""
    origin = Origin(finding.name, "expected.toml")
    return Claim(
        finding.name, part.expect, finding.text, part.where, finding.strength, finding.source, origin
    )


def _explained(scored: ScoredFinding, runner: Runner) -> ScoredFinding:
    """Score a finding that does not hold again, under the readings that are said to be its cause.

    They are not what is scored, and have the seeds that the paper's multiverse says.
    """
    if scored.status == "holds":
        return scored
    thinned = runner.paper.multiverse.for_causes
    others = []
    for cause in scored.finding.causes:
        files = dict.fromkeys(part.experiment for part in scored.finding.parts)
        results = {file: runner.results(runner.paper.experiment(file), cause, thinned) for file in files}
        others.append(score_finding(scored.finding, results).verdict)
    return replace(scored, explained=tuple(others))


__all__ = ["Reproduction", "Runner", "ScoredFinding", "Wanted", "Watcher", "reproduce"]
