"""Comparisons of two arms, two recordings or two cells of a sweep, metric by metric.

If both sides ran the same seeds with the same traffic, the two runs of a seed form a pair, because
they share arrivals and start times. Otherwise, the two sets of runs are independent and are
compared as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from aqmlab.arguments import names as given_names
from aqmlab.errors import RecordingError
from aqmlab.metrics import EVERY_CLASS, Metric, Scope, find
from aqmlab.recordings.frames import REAL, TEXT, WHOLE, YES_OR_NO, Columns, Framed
from aqmlab.recordings.manifest import Manifest
from aqmlab.recordings.plan import Plan, TrafficClass
from aqmlab.results.answers import HEADLINE
from aqmlab.results.cells import Cell
from aqmlab.results.pairing import Side, match, named
from aqmlab.results.results import Results
from aqmlab.stats import CONFIDENCE, Estimate, estimate
from aqmlab.stats.differences import Difference, Values, difference, unpaired_difference
from aqmlab.stats.multiple import MultipleComparisons, adjusted, multiple_comparisons
from aqmlab.stats.sentence import relative_sentence, sentence
from aqmlab.text.numbers import change_text, counted, estimate_text, listed, with_unit
from aqmlab.text.tables import Column, Grid

MAIN = ("queueing_delay_p95_s", "goodput_bps", "drop_percent")
"""The default metrics if there are several cases; those of the scenario are added."""


@dataclass(frozen=True, repr=False)
class Compared:
    """One metric of the two sides in one case.

    Attributes
    ----------
    case
        The case, where there are several; empty for a single case.
    metric
        The metric compared.
    first, second
        Means of the two sides with their intervals.
    found
        The difference, second minus first.
    adjusted_p
        The p value of :attr:`found` after correction for multiple comparisons (Holm).
    unpaired
        Why seeds do not form pairs; empty if they do.
    sentence
        The difference in words.
    """

    case: str
    metric: Metric
    first: Estimate | None
    second: Estimate | None
    found: Difference
    adjusted_p: float | None
    unpaired: str
    sentence: str

    def __repr__(self) -> str:
        case = f" in {self.case!r}" if self.case else ""
        return f"<Compared {self.metric.name}{case}: {self.sentence}>"

    def texts(self) -> tuple[str, str, str, str]:
        """Return first, second, difference and relative difference as strings for tables."""
        unit, relative = self.metric.unit, self.found.relative.estimate
        mark = " n.s." if self.unclear else ""
        return (
            estimate_text(self.first, unit),
            estimate_text(self.second, unit),
            f"{estimate_text(self.found.estimate, unit)}{mark}".replace("-", "−"),
            "" if relative is None else change_text(relative),
        )

    @property
    def title(self) -> str:
        """The metric with its unit."""
        return with_unit(self.metric.label, self.metric.unit)

    @property
    def unclear(self) -> bool:
        """Whether the difference was tested and is not significant."""
        return self.found.p_value is not None and not self.stands

    @property
    def stands(self) -> bool:
        """Whether the difference is significant when all comparisons are taken together."""
        return self.adjusted_p is not None and self.adjusted_p <= 1.0 - CONFIDENCE


@dataclass(frozen=True, repr=False)
class Comparison(Framed):
    """All comparisons of two sides. As a data frame, it has a row per case and metric.

    Attributes
    ----------
    first, second
        Names of the sides.
    compared
        The comparisons, metric by metric, and for each metric case by case.
    multiple
        The number of comparisons, and how many of them are significant after correction.
    unmatched
        Cells of one side that the other does not have.
    """

    first: str
    second: str
    compared: tuple[Compared, ...]
    multiple: MultipleComparisons
    unmatched: tuple[str, ...]

    def __repr__(self) -> str:
        made = counted(len(self.compared), "comparison")
        return f"<Comparison of {self.second!r} against {self.first!r}: {made}, {self.multiple.kept} stand>"

    def __str__(self) -> str:
        return f"{self.second} against {self.first}\n\n{self.grid()}"

    def _repr_html_(self) -> str:
        from aqmlab.text.notebook import comparison_html

        return comparison_html(self)

    def grid(self) -> Grid:
        """The comparison as text: a row per case and metric."""
        cases = ["case"] if any(one.case for one in self.compared) else []
        rows = (([one.case, one.title] if cases else [one.title], one) for one in self.compared)
        return self._grid([*cases, ""], rows)

    def grids(self) -> Iterator[Grid]:
        """Return a table of the metrics, or one table per metric if there are several cases."""
        if not any(one.case for one in self.compared):
            yield self.grid_under("", ((one.title, one) for one in self.compared))
            return
        for title, of_metric in groupby(self.compared, lambda one: one.title):
            yield self.grid_under(title, ((one.case, one) for one in of_metric))

    def grid_under(self, title: str, rows: Iterable[tuple[str, Compared]]) -> Grid:
        """Return a table of the given comparisons under a title, each with its row header."""
        return self._grid([title], (([head], one) for head, one in rows))

    def _grid(self, keys: Sequence[str], rows: Iterable[tuple[Sequence[str], Compared]]) -> Grid:
        heads = (self.first, self.second, "difference", "relative")
        grid = Grid(*keys, *(Column(head, right=True) for head in heads), keys=len(keys))
        for head, one in rows:
            grid.add(*head, *one.texts())
        return grid

    def _frame_columns(self) -> Columns:
        rows = [_to_json(one) for one in self.compared]
        kinds = {str: TEXT, bool: YES_OR_NO, int: WHOLE}
        of_kind = {
            key: kinds.get(type(value), REAL) for key, value in rows[0].items() if type(value) is not list
        }
        return {key: (kind, [row[key] for row in rows]) for key, kind in of_kind.items()}

    @property
    def unpaired(self) -> tuple[str, ...]:
        """The reasons why seeds do not form pairs, each listed once; empty if they all do."""
        return tuple(dict.fromkeys(one.unpaired for one in self.compared if one.unpaired))

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain data, as printed by ``--json``."""
        return {
            "format_version": 1,
            "first": self.first,
            "second": self.second,
            "confidence": CONFIDENCE,
            "comparisons": self.multiple.count,
            "found": self.multiple.found,
            "kept": self.multiple.kept,
            "compared": [_to_json(one) for one in self.compared],
            "unmatched": list(self.unmatched),
        }


def compare_sides(  # noqa: PLR0913 (keyword arguments)
    one: Side,
    other: Side,
    *,
    metrics: str | Sequence[str] | None = None,
    queue: str | None = None,
    class_name: str = EVERY_CLASS,
    usual: Sequence[str] | None = None,
    names: tuple[str, str] | None = None,
) -> Comparison:
    """Compare results that are already open, in the same way as :func:`aqmlab.compare`.

    ``usual`` are the default metrics, in addition to those of the scenario; ``names`` are the names
    of the sides; by default, each is named by the settings in which it differs from the other.
    """
    pairs, unmatched = match(one, other)
    names = names or named(one, other)
    given = given_names(metrics)
    if usual is None:
        usual = HEADLINE if len(pairs) == 1 else MAIN
    chosen = [find(n) for n in (dict.fromkeys((*usual, *one.results.metrics)) if given is None else given)]
    compared = []
    for metric in chosen:
        for case, cell, versus in pairs:
            sides = ((one.results, cell), (other.results, versus))
            values = [results.values(metric.name, of, Scope(queue, class_name)) for results, of in sides]
            entry = _compared(case, metric, values, names, why_not_paired(*sides[0], *sides[1]))
            # Metrics that were not named and have no values are left out.
            if metrics is not None or entry.first is not None or entry.second is not None:
                compared.append(entry)
    if not compared:
        raise RecordingError(f"neither {names[0]} nor {names[1]} has a finished run")
    return Comparison(*names, *_counted(compared), unmatched)


def _compared(
    case: str, metric: Metric, values: Sequence[Values], names: tuple[str, str], unpaired: str
) -> Compared:
    first, second = values
    found = unpaired_difference(second, first) if unpaired else difference(second, first)
    said = sentence(found, names[1], names[0], metric)
    if found.seen and (more := relative_sentence(found, names[0])):
        said = f"{said}; {more}"
    means = (estimate(first.values()), estimate(second.values()))
    return Compared(case, metric, *means, found, None, unpaired, said)


def why_not_paired(results: Results, cell: Cell, others: Results, other: Cell) -> str:
    """Return why the seeds of two cells do not form pairs; empty if they do."""
    runs, against = results.runs_of(cell), others.runs_of(other)
    if not runs or not against:
        return ""
    if not {run.seed for run in runs} & {run.seed for run in against}:
        return "they have no seeds in common"
    drawing = [_drawing(run.manifest) for run in (*runs, *against)]
    versions: dict[str, set[int]] = {}
    for parts in drawing:
        for part, version in parts.items():
            versions.setdefault(part, set()).add(version)
    if several := [f"`{part}`" for part, found in versions.items() if len(found) > 1]:
        return f"their runs used different versions of {listed(several)}, which draw the traffic"
    # Other traffic uses other parts of the program, whatever their versions.
    if other_traffic := _other_traffic(runs[0].plan, against[0].plan):
        return other_traffic
    if any(parts.keys() != drawing[0].keys() for parts in drawing):
        return (
            "their runs used different versions of the program, which draw the same traffic with other parts"
        )
    return ""


def _drawing(manifest: Manifest) -> dict[str, int]:
    """Return the versions of those parts of the program that determine a run's arrivals (queues do not)."""
    deciding = ("random", "scenario", "traffic")
    return {name: version for name, version in manifest.parts.items() if name.partition(".")[0] in deciding}


def _other_traffic(plan: Plan, other: Plan) -> str:
    """Return the differences between two plans' traffic: classes, flows, starts, sizes, periods."""
    ours, theirs = ({entry.name: _draws(entry) for entry in which.classes} for which in (plan, other))
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        if name not in ours or name not in theirs:
            return f"only one of them has the traffic `{name}`"
        for key, value in ours[name].items():
            if theirs[name].get(key) != value:
                values = f"{value} in one and {theirs[name].get(key)} in the other"
                return f"their traffic differs: {key} of `{name}` is {values}"
    return ""


def _draws(entry: TrafficClass) -> dict[str, Any]:
    """Return the settings on which a class's random draws depend.

    The settings of TCP's behaviour are not among them, so arms may differ in those.
    """
    rtt = entry.access.rtt_ns if entry.access else None
    return {
        "count": entry.count,
        "start_ns": entry.start_ns,
        "rtt_ns": rtt,
        "kind": entry.kind,
        **entry.workload,
    }


def _counted(compared: Sequence[Compared]) -> tuple[tuple[Compared, ...], MultipleComparisons]:
    """Return the comparisons with p values corrected for their number."""
    p_values = [one.found.p_value for one in compared]
    counted = zip(compared, adjusted(p_values), strict=True)
    return tuple(replace(one, adjusted_p=p) for one, p in counted), multiple_comparisons(p_values)


def _to_json(one: Compared) -> dict[str, Any]:
    est, relative = one.found.estimate, one.found.relative
    return {
        "case": one.case,
        "metric": one.metric.name,
        "unit": one.metric.unit,
        "first": one.first and one.first.mean,
        "second": one.second and one.second.mean,
        "difference": est and est.mean,
        "low": est and est.low,
        "high": est and est.high,
        "n": est.n if est else 0,
        "paired": not one.unpaired,
        "why_not_paired": one.unpaired,
        "left_out_seeds": list(one.found.alone),
        "relative": relative.estimate,
        "relative_low": relative.low,
        "relative_high": relative.high,
        "p_value": one.found.p_value,
        "adjusted_p_value": one.adjusted_p,
        "stands": one.stands,
        "sentence": one.sentence,
    }
