"""Findings scored under other readings than the fixed one, for the multiverse and for causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aqmlab.claims import Names
from aqmlab.papers.names import names_of
from aqmlab.papers.paper import Finding, Thinned
from aqmlab.papers.reproduce import claims_of
from aqmlab.papers.required_cells import required_cells
from aqmlab.papers.runner import Runner
from aqmlab.papers.scoring import ScoredFinding, Smaller, score_finding
from aqmlab.papers.variants import Reading, axis_names, changes
from aqmlab.results.cells import Cell


@dataclass
class Scorer:
    """Scores findings under readings.

    Attributes
    ----------
    runner
        Runs the experiments; its store makes an interrupted loop resumable.
    thinned
        The smaller version of each experiment that is run; an axis that an experiment lacks does not matter.
    """

    runner: Runner
    thinned: Thinned
    _names: dict[str, Names] = field(default_factory=dict)

    def scored(self, reading: Reading, findings: Sequence[Finding]) -> tuple[ScoredFinding | None, ...]:
        """Return the score of each finding, from the cells that all of them need together.

        It is ``None`` where the reading changes no experiment of the finding.

        Raises
        ------
        ScenarioError, RunError, RecordingError
            If the reading cannot be run.
        """
        paper = self.runner.paper
        touched = {
            experiment.file: experiment
            for experiment in paper.experiments
            if not reading or changes(paper, experiment, reading)
        }
        asked = [f for f in findings if any(part.experiment in touched for part in f.parts)]
        files = dict.fromkeys(part.experiment for finding in asked for part in finding.parts)
        results = {
            file: self.runner.results(
                paper.experiment(file), reading, self._smaller(file), self._cells(file, asked)
            )
            for file in files
        }
        names = {file: self._names_in(file) for file in files}
        smaller = Smaller("the multiverse") if self.thinned.keep else None
        return tuple(score_finding(f, results, names, smaller) if f in asked else None for f in findings)

    def _smaller(self, file: str) -> Thinned:
        axes = axis_names(self.runner.paper.path / file)
        keep: Mapping[str, tuple[str, ...]] = {a: of for a, of in self.thinned.keep.items() if a in axes}
        return Thinned(self.thinned.runs, keep)

    def _names_in(self, file: str) -> Names:
        if file not in self._names:
            paper = self.runner.paper
            self._names[file] = names_of(paper, paper.experiment(file), self._smaller(file))
        return self._names[file]

    def _cells(self, file: str, findings: Sequence[Finding]) -> frozenset[Cell] | None:
        smaller = bool(self.thinned.keep)
        return required_cells(self._names_in(file), claims_of(findings, file), smaller=smaller).cells


__all__ = ["Scorer"]
