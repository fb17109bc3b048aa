"""The one way to results and scores: what is asked of experiments under a reading is run, then scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from aqmlab.claims import Names
from aqmlab.papers.names import AS_IT_STANDS, names_of
from aqmlab.papers.paper import Finding, Thinned
from aqmlab.papers.required_cells import Question, RequiredCells, required_cells
from aqmlab.papers.runner import Runner
from aqmlab.papers.scoring import ScoredFinding, Smaller, claims_of, score_finding
from aqmlab.papers.variants import Reading, changes
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results


@dataclass
class Scorer:
    """Scores findings under readings.

    Attributes
    ----------
    runner
        Runs the experiments; its store makes an interrupted loop resumable.
    versions
        The version of each experiment that is run, by file.
    smaller_by
        What makes these versions smaller: ``"--quick"``; empty if nothing does.
    """

    runner: Runner
    versions: Mapping[str, Thinned]
    smaller_by: str = ""
    _names: dict[tuple[str, bool], Names] = field(default_factory=dict)

    def names(self, file: str, *, whole: bool = False) -> Names:
        """Return the names that an experiment defines in the version that is run, or as a whole."""
        whole |= not self.smaller_by
        if (file, whole) not in self._names:
            paper = self.runner.paper
            version = AS_IT_STANDS if whole else self.versions[file]
            self._names[file, whole] = names_of(paper, paper.experiment(file), version)
        return self._names[file, whole]

    def required(self, file: str, questions: Iterable[Question]) -> RequiredCells:
        """Return the cells of an experiment that statements, tables and figures need."""
        return required_cells(self.names(file), questions, smaller=bool(self.smaller_by))

    def results(self, file: str, reading: Reading, among: frozenset[Cell] | None) -> Results:
        """Return the results of all or some cells of an experiment."""
        experiment = self.runner.paper.experiment(file)
        return self.runner.results(experiment, reading, self.versions[file], among)

    def score(self, findings: Iterable[Finding], results: Mapping[str, Results]) -> tuple[ScoredFinding, ...]:
        """Score findings from the results of their experiments, by file."""
        names = {file: self.names(file) for file in results}
        whole = Smaller(self.smaller_by, lambda file: self.names(file, whole=True))
        return tuple(score_finding(f, results, names, whole if self.smaller_by else None) for f in findings)

    def scored(self, reading: Reading, findings: Sequence[Finding]) -> tuple[ScoredFinding | None, ...]:
        """Return the score of each finding, from the cells that all of them need together.

        It is ``None`` where the reading changes no experiment of the finding.

        Raises
        ------
        ScenarioError, RunError, RecordingError
            If the reading cannot be run.
        """
        paper = self.runner.paper
        touched = {e.file for e in paper.experiments if not reading or changes(paper, e, reading)}
        asked = [f for f in findings if any(part.experiment in touched for part in f.parts)]
        files = dict.fromkeys(part.experiment for finding in asked for part in finding.parts)
        among = {file: self.required(file, claims_of(asked, file)).cells for file in files}
        results = {file: self.results(file, reading, among[file]) for file in files}
        scores = {one.finding.name: one for one in self.score(asked, results)}
        return tuple(scores.get(finding.name) for finding in findings)
