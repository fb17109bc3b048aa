"""Live experiments of a paper: runs repeated until faithful, and the same experiments simulated."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.papers.paper import Paper
from aqmlab.papers.scoring import ScoredFinding
from aqmlab.recordings.faithfulness import faithfulness_of
from aqmlab.recordings.recording import Run
from aqmlab.results.comparison import Comparison, compare_sides
from aqmlab.results.pairing import side_of
from aqmlab.results.results import Missing, Results
from aqmlab.sweeps.sweep import Sweep
from aqmlab.system.files import save
from aqmlab.text.numbers import counted

REPEATS = 2
"""Largest number of repetitions of a live run that is not faithful."""

SIMULATED, LIVE = "simulated", "live"


@dataclass(frozen=True)
class LiveRuns:
    """The live runs of a reproduction, and the same runs simulated.

    Attributes
    ----------
    faithful, total
        Numbers of runs that count, and of all runs.
    refused
        Number of runs that did not count because they were not faithful, including those that were repeated.
    twin
        The findings as scored from the simulated runs, in the order of the live findings.
    compared
        How live results compare with simulated ones, by the experiment's file.
    """

    faithful: int
    total: int
    refused: int
    twin: tuple[ScoredFinding, ...]
    compared: Mapping[str, Comparison]

    def to_json(self) -> dict[str, Any]:
        """Return the counts and comparisons as plain data, without the findings."""
        return {
            "faithful": self.faithful,
            "total": self.total,
            "refused": self.refused,
            "compared": {file: comparison.to_json() for file, comparison in self.compared.items()},
        }


def live_text(faithful: int, total: int, refused: int) -> str:
    """Return the counts of live runs as a sentence."""
    told = f"{counted(refused, 'run')} {'was' if refused == 1 else 'were'} refused"
    return f"{faithful} of {counted(total, 'live run')} are faithful and count; {told}."


def live_part(paper: Paper, others: Callable[[], Sequence[Paper]]) -> Paper:
    """Return the part of the paper that consists of its live experiments.

    Raises
    ------
    UsageError
        If the paper has no live experiments; the message lists the papers that have some.
    """
    if paper.live is not None:
        return paper.live
    known = [f"`{other.key}`" for other in others() if other.live is not None]
    have = f"; those of {', '.join(known)} can" if known else ""
    raise UsageError(f"no experiment of `{paper.key}` can run live{have}")


def compare(simulated: Results, live: Results) -> Comparison:
    """Compare the metrics of the scenario, cell by cell."""
    sides = (side_of(simulated, ""), side_of(live, ""))
    return compare_sides(*sides, metrics=live.metrics or None, names=(SIMULATED, LIVE))


class Refused:
    """The runs that did not count, listed in a file because a repeated run replaces the earlier one.

    Parameters
    ----------
    file
        The file that lists them.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._runs = set(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else set[str]()

    def add(self, runs: Sequence[Run]) -> None:
        """Add runs; a run that is already listed is not counted again."""
        made = {f"{run.path.name} {(run.path / 'manifest.json').stat().st_mtime_ns}" for run in runs}
        if not made <= self._runs:
            self._runs |= made
            self._file.parent.mkdir(parents=True, exist_ok=True)
            save(self._file, json.dumps(sorted(self._runs), indent=1) + "\n")

    def of(self, results: Results) -> int:
        """Return the number of attempts at the runs in these results that did not count."""
        names = {run.path.name for run in results.finished.values()}
        return sum(made.partition(" ")[0] in names for made in self._runs)


@dataclass(frozen=True)
class Rounds:
    """The outcome of the live runs of an experiment.

    Attributes
    ----------
    results
        The results of the faithful runs; the other runs count as missing.
    made
        The number of runs made by this call.
    refused
        The number of runs that did not count, including earlier ones.
    """

    results: Results
    made: int
    refused: int


def until_faithful(begin: Callable[[], Sweep], repeats: int, refused: Refused) -> Rounds:
    """Repeat runs until all are faithful, or until each has been repeated the allowed number of times.

    Parameters
    ----------
    begin
        Begins the missing runs and those that are not faithful.
    repeats
        Largest number of repetitions of each run.
    refused
        Receives the runs that were not faithful.
    """
    made = 0
    while True:
        under_way = begin()
        results = under_way.wait()
        made += under_way.progress.runs_done
        not_faithful = [run for run in results.finished.values() if _reasons(run)]
        refused.add(not_faithful)
        if not not_faithful or repeats == 0:
            return Rounds(only_faithful(results), made, refused.of(results))
        repeats -= 1


def only_faithful(results: Results) -> Results:
    """Return the results without the runs that are not faithful, which count as missing."""
    reasons = {at: _reasons(run) for at, run in results.finished.items()}
    lost = [Missing(*at, f"not faithful: {'; '.join(why)}") for at, why in reasons.items() if why]
    if not lost:
        return results
    rest = {at: run for at, run in results.finished.items() if not reasons[at]}
    return replace(results, finished=rest, missing=(*results.missing, *lost))


def _reasons(run: Run) -> tuple[str, ...]:
    """Why a run does not count."""
    verdict = faithfulness_of(run)
    if verdict is None:
        return ("it was simulated",)
    return (*verdict.reasons, *(("interrupted",) if verdict.interrupted else ()))
