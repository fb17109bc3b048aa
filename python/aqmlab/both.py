"""A scenario simulated and live: two experiments in one directory, and how they differ, arm by arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.answers import HEADLINE
from aqmlab.errors import RecordingError
from aqmlab.faithfulness import Faithfulness, verdicts
from aqmlab.figures import change_text, counted
from aqmlab.integrity import read_json
from aqmlab.loading import load_recording
from aqmlab.results import Results

if TYPE_CHECKING:
    from aqmlab.comparison import Comparison

SIMULATED, LIVE = "simulated", "live"
"""The folders of the two experiments, and what they are called."""

FILE = "both.json"
"""The file that distinguishes such a directory from that of an experiment."""


_SUMMED_UP = {
    "goodput_bps": "goodput",
    "backlog_mean_packets": "the mean queue",
    "mark_percent": "the share of marks",
}


@dataclass(frozen=True, repr=False)
class Both:
    """A scenario simulated and live.

    Attributes
    ----------
    path
        The directory of both.
    simulated, live
        The two experiments: the same plans, the same seeds.
    comparison
        What is different live, for each metric and arm.
    """

    path: Path
    simulated: Results
    live: Results
    comparison: Comparison

    def __repr__(self) -> str:
        return f"<Both of {self.live.title!r}: {self.comparison!r}, in {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        from aqmlab.notebook import comparison_html

        return comparison_html(self.comparison)

    @property
    def verdicts(self) -> tuple[Faithfulness, ...]:
        """Those on the live runs."""
        return verdicts(self.live.runs)

    @property
    def summary(self) -> str:
        """How far live and simulated are apart, in one sentence over all arms."""
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
        return f"Live against simulated, over {counted(len(self.live.arms), 'arm')}: {told}."

    @property
    def note(self) -> str:
        """What the intervals are of, and how many comparisons they are."""
        seeds = self.live.finished_seeds
        if len(seeds) == 1:
            said = f"One run of each (seed {seeds[0]}): no interval, so a difference may be chance."
        elif self.comparison.unpaired:
            said = f"95 % intervals; runs are not paired by seed: {'; '.join(self.comparison.unpaired)}."
        else:
            said = (
                f"95 % t intervals over {len(seeds)} seeds, each simulated and live with the same start"
                " times, sizes and round-trip times."
            )
        several = self.comparison.multiple.note
        return f"{said} {several}." if several else said

    def to_json(self) -> dict[str, Any]:
        """As plain data: what ``--json`` prints."""
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
    """Whether a directory is what :func:`aqmlab.run_both` leaves."""
    return (Path(path) / FILE).is_file()


def load_both(path: Path | str) -> Both:
    """Open what :func:`aqmlab.run_both` left.

    Raises
    ------
    RecordingError
        If one of the two is missing, incomplete or corrupt.
    """
    path = Path(path)
    if not is_both(path):
        raise RecordingError(f"no recording at `{path}`: `{FILE}` is not there")
    read_json(path / FILE)
    if not (path / SIMULATED).exists() and (path / LIVE).exists():
        raise RecordingError(
            f"`{path}` was ended before it was simulated; `aqmlab report {path / LIVE}` has the live runs"
        )
    simulated, live = load_recording(path / SIMULATED), load_recording(path / LIVE)
    return Both(path, simulated, live, compared(simulated, live))


def compared(simulated: Results, live: Results) -> Comparison:
    """How live differs from simulated, metric by metric and in each arm by arm."""
    from aqmlab.comparison import compare_sides
    from aqmlab.pairing import side_of

    return compare_sides(side_of(simulated, ""), side_of(live, ""), usual=HEADLINE)


def by_arm(both: Both) -> Mapping[str, list[Any]]:
    """The comparisons of each arm, in the order of the scenario."""
    only = both.live.arms[0] if len(both.live.arms) == 1 else ""
    found: dict[str, list[Any]] = {arm: [] for arm in both.live.arms}
    for one in both.comparison.compared:
        found[one.case or only].append(one)
    return found


__all__ = ["FILE", "LIVE", "SIMULATED", "Both", "by_arm", "compared", "is_both", "load_both"]
