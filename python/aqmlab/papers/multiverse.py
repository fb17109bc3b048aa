"""All readings of a paper, and which findings hold in each.

A paper leaves settings open, which a reproduction must choose. The fixed reading is scored; the
others show how much the score depends on the choice (a multiverse analysis: Steegen et al.,
Perspectives on Psychological Science 11, 2016).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab.errors import AqmlabError, RecordingError, RunError
from aqmlab.papers.paper import Finding, Paper
from aqmlab.papers.readings import Scorer
from aqmlab.papers.reproduce import EVERYTHING, Wanted, choose
from aqmlab.papers.runner import Runner, Watcher
from aqmlab.papers.scoring import ScoredFinding
from aqmlab.papers.variants import Reading, as_far_as_swept
from aqmlab.sweeps.store import store_path
from aqmlab.sweeps.where import LOCAL

if TYPE_CHECKING:
    from aqmlab.sweeps.connection import Cluster

STATUSES = ("holds", "fails", "undecided")


@dataclass(frozen=True)
class Universe:
    """One reading, scored.

    Attributes
    ----------
    reading
        How it differs from the fixed reading; empty for the fixed reading itself.
    findings
        Verdicts in the order of the paper's findings; ``None`` where the reading affects no
        experiment of the finding, so the verdict is that of the fixed one.
    failure
        Why the reading could not be run; empty if it was.
    """

    reading: Reading
    findings: tuple[ScoredFinding | None, ...]
    failure: str = ""

    @property
    def label(self) -> str:
        """``"window 20, RTO 1 s"``."""
        return ", ".join(f"{name}: {label}" for name, label in self.reading.items()) or "the fixed reading"


@dataclass(frozen=True)
class MultiverseTable:
    """Every finding under every reading."""

    paper: Paper
    findings: tuple[Finding, ...]
    universes: tuple[Universe, ...]

    def status(self, universe: Universe, place: int) -> str:
        """Return a reading's verdict on a finding, or the fixed reading's if the finding is not affected."""
        scored = universe.findings[place] if universe.findings else None
        if scored is None and not universe.failure:
            scored = self.universes[0].findings[place]
        return scored.status if scored is not None else "undecided"

    def share(self, place: int, status: str = "holds") -> float:
        """Return the share of the runnable readings in which a finding holds."""
        ran = [u for u in self.universes if not u.failure]
        return sum(self.status(u, place) == status for u in ran) / len(ran)

    def held(self, universe: Universe, strength: str = "firm") -> int:
        """Return how many findings of a given strength hold under a reading."""
        return sum(
            self.status(universe, i) == "holds"
            for i, finding in enumerate(self.findings)
            if finding.strength == strength
        )

    def best(self) -> Universe:
        """Return the reading with the largest number of firm findings that hold, or the first of several."""
        return max((u for u in self.universes if not u.failure), key=self.held)


def readings(paper: Paper) -> Iterator[Reading]:
    """The readings to evaluate, the fixed one first."""
    yield {}
    others = {
        setting.name: [label for label in setting.candidates if label != setting.chosen]
        for setting in paper.settings
        if not setting.test
    }
    if paper.multiverse.design == "one_at_a_time":
        for name, labels in others.items():
            for label in labels:
                yield {name: label}
        return
    names = list(others)
    for choice in product(*(["", *others[name]] for name in names)):
        reading = {name: label for name, label in zip(names, choice, strict=True) if label}
        if reading:
            yield reading


def multiverse(  # noqa: PLR0913 (keyword arguments)
    paper: Paper,
    *,
    wanted: Wanted = EVERYTHING,
    seeds: int | None = None,
    store: Path | str | None = None,
    jobs: int | None = None,
    executor: str | Cluster = LOCAL,
    progress: Watcher | None = None,
) -> MultiverseTable:
    """Score every reading; arguments are those of :func:`aqmlab.papers.reproduce`.

    A reading that cannot be run (its values contradict each other) is listed with the reason.
    """
    findings = choose(paper, wanted)[0]
    thinned = paper.multiverse.thinned
    scorer = Scorer(
        Runner(paper, store_path(store), jobs, seeds, progress, executor),
        {e.file: as_far_as_swept(paper, e, thinned) for e in paper.experiments},
        "the multiverse" if thinned.keep else "",
    )
    universes = []
    for reading in readings(paper):
        universes.append(_universe(scorer, reading, findings))
        scorer.runner.forget()
    return MultiverseTable(paper, tuple(findings), tuple(universes))


def _universe(scorer: Scorer, reading: Reading, findings: Sequence[Finding]) -> Universe:
    try:
        return Universe(reading, scorer.scored(reading, findings))
    except (RunError, RecordingError) as error:
        return Universe(reading, (), str(error))
    except AqmlabError as error:
        if not reading:
            raise
        return Universe(reading, (), str(error))
