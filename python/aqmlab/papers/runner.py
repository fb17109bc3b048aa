"""Running the experiments of a paper, each as a sweep."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab.papers.live import REPEATS, Refused, until_faithful
from aqmlab.papers.paper import Paper, PaperExperiment, Thinned
from aqmlab.papers.variants import Reading, variant
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results
from aqmlab.sweeps.cases import Cases
from aqmlab.sweeps.parcel import RECORDINGS
from aqmlab.sweeps.progress import Progress
from aqmlab.sweeps.store import Store
from aqmlab.sweeps.sweep import Sweep, sweep
from aqmlab.sweeps.task import LIVE, SIMULATOR
from aqmlab.sweeps.where import LOCAL, cluster_of

if TYPE_CHECKING:
    from aqmlab.sweeps.connection import Cluster

Watcher = Callable[[str, Progress], object]
"""Receives the name of the current experiment and its progress."""


@dataclass
class Runner:
    """Runs experiments under readings, each combination once.

    Attributes
    ----------
    store
        The store of runs.
    jobs, seeds
        As in :func:`aqmlab.sweep`.
    watcher
        Receives the progress.
    executor, host, interrupted
        As in :func:`aqmlab.sweep`.
    repeats
        Largest number of repetitions of a live run that is not faithful; only faithful runs count.
    runs, refused
        Numbers of runs made, and of live runs that did not count.
    """

    paper: Paper
    store: Path
    jobs: int | None = None
    seeds: int | None = None
    watcher: Watcher | None = None
    executor: str | Cluster = LOCAL
    host: str = SIMULATOR
    repeats: int = REPEATS
    interrupted: Callable[[], object] | None = None
    runs: int = 0
    refused: int = 0
    _done: dict[tuple[str, frozenset[Cell] | None], Results] = field(default_factory=dict)

    def results(
        self,
        experiment: PaperExperiment,
        reading: Reading,
        thinned: Thinned,
        among: frozenset[Cell] | None = None,
        seed: int | None = None,
    ) -> Results:
        """Return the results of all or some cells of an experiment; runs in the store are not repeated.

        ``seed`` is the first seed; as in the scenario if not given.
        """
        text = variant(self.paper, experiment, reading, thinned)
        runs = self.seeds or thinned.runs or None
        name = hashlib.sha256(f"{experiment.file}\n{text}\n{runs}\n{seed}".encode()).hexdigest()[:8]
        if (name, among) not in self._done:
            watcher = self.watcher
            title = f"{self.paper.key}: {experiment.title}"
            file = self._file(experiment, text, name)

            def begin() -> Sweep:
                return sweep(
                    file,
                    store=self.store,
                    seed=seed,
                    runs=runs,
                    jobs=self.jobs,
                    executor=self._where,
                    host=self.host,
                    among=among,
                    faithful=self.host == LIVE,
                    progress=None if watcher is None else lambda now: watcher(title, now),
                    interrupted=self.interrupted,
                    report=False,
                )

            if self.host == LIVE:
                rounds = until_faithful(begin, self.repeats, self._refused)
                self._done[name, among] = rounds.results
                self.runs, self.refused = self.runs + rounds.made, self.refused + rounds.refused
            else:
                under_way = begin()
                self._done[name, among] = under_way.wait()
                self.runs += under_way.progress.runs_done
        return self._done[name, among]

    def cases(self, experiment: PaperExperiment, reading: Reading, thinned: Thinned) -> Cases:
        """Return all cases of an experiment, or of a smaller version, under a reading; nothing is run."""
        text = variant(self.paper, experiment, reading, thinned)
        name = hashlib.sha256(f"{experiment.file}\n{text}".encode()).hexdigest()[:8]
        return Cases(self._file(experiment, text, name), runs=thinned.runs or None)

    @cached_property
    def _refused(self) -> Refused:
        """The live runs that did not count, as the store lists them."""
        return Refused(Store.made(self.store).path / "papers" / self.paper.key / "refused.json")

    def forget(self) -> None:
        """Release results; later requests read them from the store again."""
        self._done.clear()

    @cached_property
    def _where(self) -> str | Cluster:
        """The executor. It returns whole recordings, because findings and figures may need time series."""
        return cluster_of(self.executor, self.jobs, RECORDINGS) or LOCAL

    def _file(self, experiment: PaperExperiment, text: str, name: str) -> Path:
        """The scenario as a file: the folder's own, or a variant that is kept in the store."""
        own = self.paper.path / experiment.file
        if text == own.read_text(encoding="utf-8"):
            return own
        # The store is made before the file: a directory that has files but is not a store is rejected.
        store = Store.made(self.store)
        file = store.path / "papers" / self.paper.key / f"{Path(experiment.file).stem}-{name}.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file
