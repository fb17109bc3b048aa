"""The search for the best reading, independent of papers: it sees only rows of candidates and errors.

Screening comes first; then the settings that matter are searched, one at a time; then the better readings get
more seeds (successive halving: Karnin, Koren and Somekh, ICML 2013); finally, every candidate of every
setting is compared with the reading found, on seeds that the search has not used. A candidate is taken only
if it is better by more than the noise between seeds: among equivalent readings, the one nearest to the fixed
reading wins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from aqmlab.papers.budget import Budget, OverBudgetError
from aqmlab.stats.screening import Effect, Row, effects, screening_rows, seed_variance
from aqmlab.stats.student import quantile

CONFIDENCE = 0.95
PASSES = 3
"""Largest number of rounds over the settings that matter."""
FINALISTS = 8
"""Number of readings that enter the first round of successive halving, in which they get more seeds."""
_SCREENING, _SEARCH, _HALVING, _PROFILE = 0.4, 0.7, 0.8, 1.0
"""Largest share of the budget that may be spent by the end of each stage."""


class Measured(NamedTuple):
    """The result of an evaluation: an error per seed, or ``None`` if the reading cannot be run."""

    errors: tuple[float, ...] | None
    seconds: float


Measure = Callable[[Row, int, int], Measured]
"""Evaluates a reading with the seeds of a half-open range."""


@dataclass(frozen=True)
class Beside:
    """A candidate of one setting in place of the inferred candidate, with everything else as inferred.

    Attributes
    ----------
    errors
        Errors, one per seed; ``None`` if the candidate could not be run or was not evaluated.
    half_width
        Half-width of the interval of its difference from the inferred candidate; ``None`` if the noise is
        unknown.
    """

    errors: tuple[float, ...] | None
    half_width: float | None = None


@dataclass(frozen=True)
class Found:
    """The result of a search.

    Attributes
    ----------
    inferred
        The reading.
    design
        Number of readings screened, and whether the design was folded over; ``(0, False)`` without
        screening.
    effects
        Effect of each candidate except the first of each setting, averaged over the other settings;
        empty without screening.
    tried
        Errors of every evaluated reading, seed by seed; ``None`` for a reading that cannot be run.
    beside
        The comparison for each setting and candidate.
    profile_seeds
        The range of seeds of ``beside``.
    ended
        The stage in which the budget ended; empty if the budget sufficed.
    """

    inferred: Row
    design: tuple[int, bool]
    effects: tuple[tuple[Effect, ...], ...]
    tried: Mapping[Row, tuple[float, ...] | None]
    beside: tuple[tuple[Beside, ...], ...]
    profile_seeds: tuple[int, int]
    ended: str


@dataclass
class Search:
    """A search in progress.

    Attributes
    ----------
    levels
        Number of candidates of each setting; the first candidate is that of the fixed reading.
    measure
        Evaluates a reading and returns its errors.
    budget
        Its budget.
    seeds, final_seeds
        Number of seeds for each reading, and for the readings compared last.
    seed
        Seed of the design.
    notify
        Receives the current step.
    """

    levels: tuple[int, ...]
    measure: Measure
    budget: Budget
    seeds: int
    final_seeds: int
    seed: int = 1
    notify: Callable[[str], object] = lambda _: None
    _tried: dict[Row, tuple[float, ...] | None] = field(default_factory=dict)
    _design: tuple[int, bool] = (0, False)
    _effects: tuple[tuple[Effect, ...], ...] = ()
    _ended: str = ""

    def run(self) -> Found:
        """Run all stages, as far as the budget permits."""
        fixed = (0,) * len(self.levels)
        self._current = fixed
        self._errors(fixed)
        for name, share, stage in (
            ("screening", _SCREENING, self._screen),
            ("search", _SEARCH, self._descend),
            ("more seeds", _HALVING, self._halve),
        ):
            self._stage(name, share, stage)
        begin, end = self.final_seeds, self.final_seeds + self.seeds
        fresh: dict[Row, tuple[float, ...] | None] = {}
        self._stage("profile", _PROFILE, lambda: self._look_beside(fresh, begin, end))
        return Found(
            self._current,
            self._design,
            self._effects,
            dict(self._tried),
            self._beside(fresh),
            (begin, end),
            self._ended,
        )

    def _stage(self, name: str, share: float, stage: Callable[[], object]) -> None:
        self.budget.allow(share)
        self.notify(name)
        try:
            stage()
        except OverBudgetError:
            self._ended = self._ended or name

    # --- looking at readings

    def _errors(self, row: Row, count: int = 0) -> tuple[float, ...] | None:
        """Return the errors of a reading for at least this many seeds, or ``None`` if it cannot be run."""
        count = count or self.seeds
        known = self._tried.get(row, ())
        if known is None or len(known) >= count:
            return known
        found = self._look(row, len(known), count)
        self._tried[row] = None if found is None else known + found
        return self._tried[row]

    def _look(self, row: Row, begin: int, end: int) -> tuple[float, ...] | None:
        self.budget.check(end - begin)
        found = self.measure(row, begin, end)
        self.budget.spend(found.seconds, end - begin)
        return found.errors

    def _mean(self, row: Row, begin: int = 0, end: int = 0) -> float:
        """Return the mean error over some seeds; infinite if the reading was not run with all of them."""
        known, end = self._tried.get(row), end or self.seeds
        return math.inf if known is None or len(known) < end else math.fsum(known[begin:end]) / (end - begin)

    def _by_error(self, rows: Iterable[Row], begin: int = 0, end: int = 0) -> list[Row]:
        """Return the runnable readings, the best first; among equals, those nearer to the fixed one first."""
        can = [row for row in dict.fromkeys(rows) if self._mean(row, begin, end) < math.inf]
        return sorted(can, key=lambda row: (self._mean(row, begin, end), departures(row), row))

    def _reach(self, begin: int, end: int) -> float:
        """Return the difference that noise may cause between the means of two readings.

        The noise is estimated from the better half of the readings tried, because readings with large errors
        are noisier. The level is corrected for the number of comparisons (Bonferroni).
        """
        rows = self._by_error(self._tried, 0, end)
        half = rows[: max(len(rows) // 2, 2)]
        if len(half) < 2:
            return math.inf
        variance, degrees = seed_variance(np.array([(self._tried[row] or ())[:end] for row in half]))
        t = quantile(1.0 - (1.0 - CONFIDENCE) / (sum(self.levels) - len(self.levels)), degrees)
        return t * math.sqrt(2.0 * variance / (end - begin))

    def _alike(self, rows: Iterable[Row], begin: int = 0, end: int = 0) -> list[Row]:
        """Return the best of some readings and those that are not clearly worse than it, the best first."""
        ranked = self._by_error(rows, begin, end)
        if not ranked:
            return []
        limit = self._mean(ranked[0], begin, end) + self._reach(begin, end or self.seeds)
        return [row for row in ranked if row == ranked[0] or self._mean(row, begin, end) < limit]

    def _nearest(self, rows: Iterable[Row], begin: int = 0, end: int = 0) -> Row:
        """Return, of the best reading and those equivalent to it, the one nearest to the fixed reading."""
        alike = self._alike(rows, begin, end)
        return min(alike, key=lambda row: (departures(row), self._mean(row, begin, end)))

    # --- stages

    def _screen(self) -> None:
        """Evaluate the largest design over all settings that this stage's share of the budget allows."""
        designs = [screening_rows(self.levels, folded=folded, seed=self.seed) for folded in (True, False)]
        for rows, folded in zip(designs, (True, False), strict=True):
            if self.budget.enough(_SCREENING, len(rows) * self.seeds):
                self._design = (len(rows), folded)
                try:
                    for row in rows:
                        self._errors(row)
                finally:
                    self._effects = self._effects_of(rows)
                return

    def _effects_of(self, rows: Sequence[Row]) -> tuple[tuple[Effect, ...], ...]:
        """Return the effects of a design; none unless it has more evaluated readings than settings."""
        ran = [row for row in rows if self._tried.get(row)]
        if len(ran) <= len(self.levels):
            return ()
        values = np.array([(self._tried[row] or ())[: self.seeds] for row in ran])
        return effects(ran, values, self.levels, CONFIDENCE)

    def _descend(self) -> None:
        """Search one setting at a time, from the best reading so far."""
        self._current = self._by_error(self._tried)[0]
        promised = self._promised()
        self._errors(promised)
        self._current = self._by_error([self._current, promised])[0]
        order = sorted(range(len(self.levels)), key=lambda j: -self._size(j))
        matter = [j for j in order if not self._effects or any(e.matters for e in self._effects[j])]
        rest = [j for j in order if j not in matter]
        for _ in range(2):
            for _ in range(PASSES):
                if not self._round(matter):
                    break
            if not self._round(rest):
                break

    def _promised(self) -> Row:
        """Return the reading that the effects predict to be best; it changes only settings that matter."""
        row = []
        for of_setting in self._effects or [()] * len(self.levels):
            known = [(effect.value, level) for level, effect in enumerate(of_setting, 1) if effect.matters]
            row.append(min([(0.0, 0), *known])[1])
        return tuple(row)

    def _size(self, j: int) -> float:
        values = [0.0, *(effect.value for effect in self._effects[j])] if self._effects else [0.0]
        return max(values) - min(values)

    def _round(self, settings: Sequence[int]) -> bool:
        """Optimise each of some settings in turn, and return whether any has changed."""
        before = self._current
        for j in settings:
            options = [replaced(self._current, j, level) for level in range(self.levels[j])]
            for row in options:
                self._errors(row)
            alike = self._alike(options)
            if alike:
                kept = [row for row in (options[0], self._current) if row in alike]
                self._current = [*kept, alike[0]][0]
        return self._current != before

    def _halve(self) -> None:
        """Keep the better half of the finalists and double their seeds, until the finalists have all seeds.

        They are compared on seeds that were not used to select the finalists, which removes any advantage due
        to chance.
        """
        fixed = (0,) * len(self.levels)
        begin, end = self.seeds, self.seeds
        descended, self._current = self._current, self._nearest(self._tried)
        ranked = self._by_error(self._tried)
        pool = list(dict.fromkeys([descended, self._current, *ranked]))[:FINALISTS]
        while end < self.final_seeds:
            end = min(2 * end, self.final_seeds)
            for row in dict.fromkeys([*pool, fixed]):
                self._errors(row, end)
            self._current = self._nearest([*pool, fixed], begin, end)
            ranked = self._by_error(pool, begin, end)
            pool = list(dict.fromkeys([self._current, *ranked]))[: max(len(pool) // 2, 2)]

    def _look_beside(self, fresh: dict[Row, tuple[float, ...] | None], begin: int, end: int) -> None:
        """Compare the inferred reading with all that differ in one setting, on seeds new to the search."""
        for row in dict.fromkeys([self._current, *(row for _, _, row in self._neighbours())]):
            known = self._tried.get(row, ())
            fresh[row] = None if known is None else self._look(row, begin, end)

    def _neighbours(self) -> Iterator[tuple[int, int, Row]]:
        for j, count in enumerate(self.levels):
            for level in range(count):
                yield j, level, replaced(self._current, j, level)

    def _beside(self, fresh: Mapping[Row, tuple[float, ...] | None]) -> tuple[tuple[Beside, ...], ...]:
        ran = {row: np.array(errors) for row, errors in fresh.items() if errors}
        better = sorted(ran, key=lambda row: (float(ran[row].mean()), row))[: max(len(ran) // 2, 2)]
        variance, degrees = (
            seed_variance(np.array([ran[row] for row in better])) if len(better) > 1 else (0.0, 0)
        )
        found: list[list[Beside]] = [[] for _ in self.levels]
        for j, _, row in self._neighbours():
            half = None
            if degrees and row in ran:
                # Readings with large errors are noisier: their variance, if larger, replaces the pooled one.
                both = variance + max(variance, float(ran[row].var(ddof=1)))
                # One comparison per candidate other than the inferred one.
                t = quantile(1.0 - (1.0 - CONFIDENCE) / (self.levels[j] - 1), degrees)
                half = t * math.sqrt(both / len(ran[row]))
            found[j].append(Beside(fresh.get(row), half))
        return tuple(map(tuple, found))


def expected_seeds(levels: Sequence[int], seeds: int, final_seeds: int, seed: int) -> int:
    """Return roughly how many seeds all stages evaluate, if the budget suffices.

    The search is counted as one round over all settings, although it may take less than one round, or two.
    """
    others = sum(levels) - len(levels)
    found = seeds * (len(screening_rows(levels, folded=True, seed=seed)) + others + 1 + others)
    pool, end = FINALISTS, seeds
    while end < final_seeds:
        before, end = end, min(2 * end, final_seeds)
        found += (pool + 1) * (end - before)
        pool = max(pool // 2, 2)
    return found


def replaced(row: Row, place: int, level: int) -> Row:
    """Return a reading with another candidate of one setting."""
    return (*row[:place], level, *row[place + 1 :])


def departures(row: Row) -> int:
    """Return the number of settings in which a reading differs from the fixed one."""
    return sum(level != 0 for level in row)
