"""A scenario that was both simulated and run live: two experiments or two sweeps, and their differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.recordings.faithfulness import Faithfulness, verdicts
from aqmlab.results.answers import HEADLINE
from aqmlab.results.results import Results
from aqmlab.text.numbers import change_text, counted

if TYPE_CHECKING:
    from aqmlab.results.comparison import Compared, Comparison

SIMULATED, LIVE = "simulated", "live"
"""The names of the two sides, which in an experiment are also the names of their folders."""

FILE = "both.json"
"""The file that marks a directory as one that holds both sides; a single side's directory lacks it.

For sweeps, the file gives the directory of each side, relative to the file's own directory.
"""

FORMAT_VERSION = 2
"""The ``format_version`` of this file, the only one that is read."""

_SUMMED_UP = {
    "goodput_bps": "goodput",
    "backlog_mean_packets": "the mean queue",
    "mark_percent": "the proportion of marked packets",
}


@dataclass(frozen=True, repr=False)
class Both:
    """A scenario that was both simulated and run live.

    Attributes
    ----------
    path
        The directory with both sides.
    simulated, live
        The two experiments or sweeps, with the same plans and the same seeds.
    comparison
        How the live runs differ from the simulated ones, per metric and per arm (per cell in a sweep).
    """

    path: Path
    simulated: Results
    live: Results
    comparison: Comparison

    def __repr__(self) -> str:
        return f"<Both of {self.live.title!r}: {self.comparison!r}, in {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        from aqmlab.text.notebook import comparison_html

        return comparison_html(self.comparison)

    @property
    def sides(self) -> Mapping[str, Results]:
        """The two sides by their names."""
        return {SIMULATED: self.simulated, LIVE: self.live}

    @property
    def verdicts(self) -> tuple[Faithfulness, ...]:
        """The verdicts on the live runs."""
        return verdicts(self.live.runs)

    @property
    def summary(self) -> str:
        """Describe in one sentence how far live runs differ from simulated ones, over all arms or cells."""
        parts = []
        for name, called in _SUMMED_UP.items():
            apart = [
                100 * one.found.relative.estimate
                for one in self.comparison.compared
                if one.metric.name == name and one.found.relative.estimate is not None
            ]
            if apart:
                parts.append(f"{called} differs by {_range(apart)}")
        if not parts:
            return "Nothing was delivered on one of the two sides, so there is nothing to compare."
        told = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
        live = self.live
        over = counted(len(live.cells), "cell") if live.axes else counted(len(live.arms), "arm")
        return f"Live runs against simulated ones, over {over}: {told}."

    @property
    def note(self) -> str:
        """Describe the basis of the intervals, and the number of comparisons."""
        seeds = self.live.finished_seeds
        if len(seeds) == 1:
            said = f"One run on each side (seed {seeds[0]}): no interval; differences may be due to chance."
        elif self.comparison.unpaired:
            said = f"95 % intervals; runs are not paired by seed: {'; '.join(self.comparison.unpaired)}."
        else:
            said = (
                f"95 % t intervals over {len(seeds)} seeds, each both simulated and run live with the same"
                " start times, sizes and round-trip times."
            )
        several = self.comparison.multiple.note
        return f"{said} {several}." if several else said

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, as printed by ``--json``."""
        return {
            "format_version": 1,
            "title": self.live.title,
            "path": str(self.path),
            "faithful": all(verdict.faithful for verdict in self.verdicts),
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
            "comparison": self.comparison.to_json(),
        }


def _range(percent: Sequence[float]) -> str:
    low, high = (change_text(value / 100) for value in (min(percent), max(percent)))
    return low if low == high else f"{low} to {high}"


def is_both(path: Path | str) -> bool:
    """Return whether a directory was made by :func:`aqmlab.run_both` or :func:`aqmlab.beside`."""
    return (Path(path) / FILE).is_file()


def of_sides(path: Path, simulated: Results, live: Results) -> Both:
    """Combine two sides that are already open, and compare them; ``path`` is their common directory."""
    from aqmlab.results.comparison import compare_sides
    from aqmlab.results.pairing import side_of

    sides = (side_of(simulated, ""), side_of(live, ""))
    usual = None if live.axes else HEADLINE
    return Both(path, simulated, live, compare_sides(*sides, usual=usual, names=(SIMULATED, LIVE)))


def grouped(both: Both) -> Mapping[str, list[tuple[str, Compared]]]:
    """Return the comparisons as tables: a table per arm if there is a single case, else one per metric."""
    if both.live.axes:
        metrics: dict[str, list[tuple[str, Compared]]] = {}
        for one in both.comparison.compared:
            metrics.setdefault(one.title, []).append((one.case, one))
        return metrics
    only = both.live.arms[0] if len(both.live.arms) == 1 else ""
    arms: dict[str, list[tuple[str, Compared]]] = {arm: [] for arm in both.live.arms}
    for one in both.comparison.compared:
        arms[one.case or only].append((one.title, one))
    return arms
