"""The reading that best fits one part of a paper's published results, and its error on the other part.

The fixed reading is the one that is scored. The inferred one is found by a search, which shows what the
published numbers say about each setting that the paper leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aqmlab.claims.arithmetic import Floats
from aqmlab.errors import AqmlabError, RunError, ScenarioError, UsageError
from aqmlab.papers.budget import Budget
from aqmlab.papers.inference_spec import LEAST_SEEDS, SHORTER, length_settings
from aqmlab.papers.measured_values import MeasuredValues, Measurer, Queries
from aqmlab.papers.names import names_of
from aqmlab.papers.paper import Paper, Setting, Target
from aqmlab.papers.runner import Runner, Watcher
from aqmlab.papers.search import Found, Measured, Search, expected_seeds
from aqmlab.papers.targets import Targets
from aqmlab.papers.variants import Reading
from aqmlab.stats import Estimate, estimate
from aqmlab.stats.screening import Row
from aqmlab.sweeps.store import Store, store_path
from aqmlab.sweeps.where import LOCAL

if TYPE_CHECKING:
    from aqmlab.sweeps.connection import Cluster

_LAST = 0.4
"""Largest share of the budget for evaluating the fixed and the inferred reading with all seeds."""


@dataclass(frozen=True)
class SearchedSetting:
    """A setting with the candidates that affect the fit, the chosen one first."""

    name: str
    candidates: tuple[str, ...]


@dataclass(frozen=True)
class HeldAgainst:
    """A cell or a finding under the fixed reading and under the inferred one.

    Attributes
    ----------
    published
        The published number of a cell.
    fixed, inferred
        For a cell, our value; for a finding, the share of the seeds in which it is true. ``None``
        where undefined.
    fixed_errors, inferred_errors
        Errors, one per seed.
    """

    target: Target
    published: float | None
    fixed: Estimate | None
    inferred: Estimate | None
    fixed_errors: tuple[float, ...]
    inferred_errors: tuple[float, ...]


@dataclass(frozen=True)
class InferredReading:
    """The result of an inference.

    Attributes
    ----------
    searched
        The settings, in the order of the rows of ``found``.
    untouched
        Settings in the search that affect no fitted cell or finding.
    found
        The result of the search.
    failures
        The reason for each reading that could not be run.
    fit, test
        The cells or findings of the fitted part, and those of the part that the search did not use.
    final_seeds
        Number of seeds for ``fit`` and ``test``; fewer than requested if the budget is small.
    """

    paper: Paper
    searched: tuple[SearchedSetting, ...]
    untouched: tuple[str, ...]
    found: Found
    failures: Mapping[Row, str]
    fit: tuple[HeldAgainst, ...]
    test: tuple[HeldAgainst, ...]
    final_seeds: int

    @property
    def reading(self) -> Reading:
        """The inferred candidates that differ from the chosen ones, by setting."""
        return reading_of(self.searched, self.found.inferred)

    def error(self, part: Sequence[HeldAgainst], which: str) -> Estimate:
        """The mean error of a part over its cells or findings, seed by seed, under one of the readings."""
        of_each = np.mean([getattr(held, f"{which}_errors") for held in part], axis=0)
        found = estimate(of_each.tolist())
        assert found is not None
        return found

    def difference(self, part: Sequence[HeldAgainst]) -> Estimate:
        """The error under the inferred reading minus the error under the fixed one, with the same seeds."""
        pairs = [np.subtract(held.inferred_errors, held.fixed_errors) for held in part]
        found = estimate(np.mean(pairs, axis=0).tolist())
        assert found is not None
        return found


def reading_of(searched: Sequence[SearchedSetting], row: Row) -> dict[str, str]:
    """Return the candidates of a row that differ from the chosen ones, by setting."""
    pairs = zip(searched, row, strict=True)
    return {setting.name: setting.candidates[level] for setting, level in pairs if level}


@dataclass
class _Looker:
    """Evaluates readings: compares measured with published values."""

    paper: Paper
    measurer: Measurer
    targets: Targets
    parts: Mapping[str, Sequence[Target]]
    queries: Mapping[str, Mapping[str, Queries]]
    searched: tuple[SearchedSetting, ...] = ()
    failures: dict[Row, str] = field(default_factory=dict)

    def ours(self, part: str, reading: Reading, which: range) -> tuple[dict[Target, Floats], float]:
        """Return the measured values of each cell and finding of a part, and the seconds that they took."""
        measured: dict[str, MeasuredValues] = {}
        seconds = 0.0
        for file, queries in self.queries[part].items():
            experiment, names = self.paper.experiment(file), self.targets.names[file]
            measured[file], took = self.measurer.measure(experiment, reading, queries, names, which)
            seconds += took
        return {target: self.targets.ours(target, measured) for target in self.parts[part]}, seconds

    def errors(self, row: Row, begin: int, end: int) -> Measured:
        """Return the mean error of the fit for each seed, or ``None`` if the reading cannot be run."""
        reading = reading_of(self.searched, row)
        if self.paper.inference.shorter:
            reading |= SHORTER
        try:
            ours, seconds = self.ours("fit", reading, range(begin, end))
        except (ScenarioError, UsageError, RunError) as error:
            if not any(row):
                raise
            self.failures[row] = _reason(error)
            return Measured(None, 0.0)
        errors = [self.targets.errors(target, values) for target, values in ours.items()]
        return Measured(tuple(np.mean(errors, axis=0).tolist()), seconds)


def _reason(error: AqmlabError) -> str:
    """Return the first line of an error, without a line number in the scenario, which is not kept."""
    if isinstance(error, ScenarioError) and error.errors:
        first = error.errors[0]
        return f"{first['path']}: {first['message']}"
    return str(error).splitlines()[0]


def infer(  # noqa: PLR0913 (keyword arguments)
    paper: Paper,
    *,
    minutes: float | None = None,
    seeds: int | None = None,
    store: Path | str | None = None,
    jobs: int | None = None,
    executor: str | Cluster = LOCAL,
    progress: Watcher | None = None,
    notify: Callable[[str], object] = lambda _: None,
) -> InferredReading:
    """Search for the reading that best fits the part of a paper named in ``[infer]``; test it on the rest.

    Parameters
    ----------
    paper
        A paper from :func:`aqmlab.papers.find_paper`.
    minutes, seeds
        The budget, and the number of seeds per reading; as in the paper's folder if not given. The search
        ends before the first reading that would exceed the budget. Measurements made earlier count against
        the budget with the time recorded for them.
    store
        Where measured values are kept, from which an interrupted search is resumed.
    jobs, executor
        As for :func:`aqmlab.sweep`.
    progress
        Receives the progress of a reading.
    notify
        Receives a description of the next step and its expected time.

    Raises
    ------
    UsageError
        If the fit does not depend on the settings searched.
    ScenarioError, RunError, HostError
        If the fixed reading cannot be run.
    """
    spec = paper.inference
    spec = replace(spec, minutes=minutes or spec.minutes, seeds=_checked(seeds) or spec.seeds)
    paper = replace(paper, inference=replace(spec, final_seeds=max(spec.final_seeds, spec.seeds)))
    looker = _looker(paper, store_path(store), jobs, executor, progress)
    looker.searched, untouched = _searched(looker)
    budget, final_seeds = _budget(looker, notify)
    watch = _Watch(looker, progress, notify)
    search = Search(
        tuple(len(setting.candidates) for setting in looker.searched),
        watch.errors,
        budget,
        paper.inference.seeds,
        final_seeds,
        paper.inference.seed,
        watch.stage,
    )
    found = search.run()
    notify("the fixed reading and the inferred one, with all seeds")
    fit, test = (_held(looker, part, found.inferred, final_seeds) for part in ("fit", "test"))
    failures = dict(looker.failures)
    return InferredReading(paper, looker.searched, untouched, found, failures, fit, test, final_seeds)


def _checked(seeds: int | None) -> int | None:
    if seeds is not None and seeds < LEAST_SEEDS:
        raise UsageError(
            f"`{seeds}` seeds are too few; give at least {LEAST_SEEDS}: the noise is estimated from their"
            " spread"
        )
    return seeds


def _looker(
    paper: Paper, store: Path, jobs: int | None, executor: str | Cluster, progress: Watcher | None
) -> _Looker:
    paper = replace(paper, settings=(*paper.settings, *length_settings(paper.inference)))
    parts = {"fit": paper.inference.fit, "test": paper.inference.test}
    for part, of_part in parts.items():
        if not of_part:
            raise UsageError(f"paper `{paper.key}` has no findings to split; name what to {part} in [infer]")
    targets = Targets(
        paper, {experiment.file: names_of(paper, experiment) for experiment in paper.experiments}
    )
    queries = {part: targets.queries(of_part) for part, of_part in parts.items()}
    folder = Store.made(store).path / "papers" / paper.key / "inference"
    runner = Runner(paper, folder, jobs, None, progress, executor)
    return _Looker(paper, Measurer(runner, folder), targets, parts, queries)


def _searched(looker: _Looker) -> tuple[tuple[SearchedSetting, ...], tuple[str, ...]]:
    """Return the settings with the candidates that change a fitted run, and the settings without any."""
    searched, untouched = [], []
    for setting in looker.paper.settings:
        if setting.name not in looker.paper.inference.settings:
            continue
        others = [label for label in setting.candidates if label != setting.chosen]
        touching = [label for label in others if _touches(looker, setting, label)]
        if touching:
            searched.append(SearchedSetting(setting.name, (setting.chosen, *touching)))
        else:
            untouched.append(setting.name)
    if not searched:
        raise UsageError(
            f"no fitted result of paper `{looker.paper.key}` depends on a setting that is searched"
        )
    return tuple(searched), tuple(untouched)


def _touches(looker: _Looker, setting: Setting, label: str) -> bool:
    for file, queries in looker.queries["fit"].items():
        if not setting.changes(file, label):
            continue
        asked = looker.paper.experiment(file), tuple(queries)
        try:
            other = looker.measurer.digests(asked[0], {setting.name: label}, asked[1], 1)
        except (ScenarioError, UsageError):
            return True  # the search fails to evaluate the candidate, too, and lists it with the reason
        if other != looker.measurer.digests(asked[0], {}, asked[1], 1):
            return True
    return False


def _budget(looker: _Looker, notify: Callable[[str], object]) -> tuple[Budget, int]:
    """Return the search's own budget, and the number of seeds for the final evaluation of both readings."""
    spec = looker.paper.inference
    first = range(spec.seeds)
    (_, of_fit), (_, of_test) = (looker.ours(part, {}, first) for part in ("fit", "test"))
    each_s = (of_fit + of_test) / spec.seeds
    total_s = 60.0 * spec.minutes
    final_seeds = spec.final_seeds
    if each_s and 2 * final_seeds * each_s > _LAST * total_s:
        final_seeds = max(int(_LAST * total_s / (2 * each_s)), spec.seeds)
    last_s = 2 * final_seeds * each_s
    levels = [len(setting.candidates) for setting in looker.searched]
    one_s = looker.errors((0,) * len(levels), 0, spec.seeds).seconds
    search_s = one_s / spec.seeds * expected_seeds(levels, spec.seeds, final_seeds, spec.seed)
    notify(
        f"{len(levels)} settings with {sum(levels) - len(levels)} other candidates; a reading with"
        f" {spec.seeds} seeds takes {one_s:.1f} s, the whole search about {search_s / 60:.0f} min, the last"
        f" comparison of two readings with {final_seeds} seeds {last_s / 60:.1f} min; the budget is"
        f" {spec.minutes:g} min"
    )
    return Budget(max(total_s - last_s, 0.0)), final_seeds


def _held(looker: _Looker, part: str, inferred: Row, seeds: int) -> tuple[HeldAgainst, ...]:
    """Each cell or finding of a part under both readings."""
    which = range(seeds)
    fixed, _ = looker.ours(part, {}, which)
    other, _ = looker.ours(part, reading_of(looker.searched, inferred), which)
    targets = looker.targets
    return tuple(
        HeldAgainst(
            target,
            None if target.finding else targets.published(target),
            _mean(fixed[target]),
            _mean(other[target]),
            tuple(targets.errors(target, fixed[target]).tolist()),
            tuple(targets.errors(target, other[target]).tolist()),
        )
        for target in looker.parts[part]
    )


def _mean(values: Floats) -> Estimate | None:
    return estimate(None if np.isnan(value) else float(value) for value in values)


class _Watch:
    """Counts the readings evaluated, and shows the stage of the search."""

    def __init__(self, looker: _Looker, progress: Watcher | None, notify: Callable[[str], object]) -> None:
        self._looker, self._notify = looker, notify
        self._stage, self._readings, self._best = "", 0, float("inf")
        if progress is not None:
            runner = looker.measurer.runner
            looker.measurer.runner = replace(
                runner, watcher=lambda what, now: progress(self._text(what), now)
            )

    def stage(self, name: str) -> None:
        """Record that the next stage begins."""
        self._stage = name
        self._notify(f"{name}: {self._readings} readings so far")

    def errors(self, row: Row, begin: int, end: int) -> Measured:
        """Return the errors of a reading, and show the progress."""
        self._readings += 1
        found = self._looker.errors(row, begin, end)
        if found.errors:
            self._best = min(self._best, sum(found.errors) / len(found.errors))
        return found

    def _text(self, what: str) -> str:
        return f"{self._stage}, reading {self._readings}, least error {self._best:.3g} · {what}"
