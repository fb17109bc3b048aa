"""A queue over time: one column of plots per run, one row per quantity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from aqmlab.errors import ScenarioError, unknown
from aqmlab.figures.looks import PALETTE
from aqmlab.figures.view import View
from aqmlab.papers.paper import PaperFigure
from aqmlab.plots.appearance import entitle, new_figure, warmup
from aqmlab.plots.panels import fit
from aqmlab.recordings.time_series import MOST_BINS, Floats, RunSeries, run_series
from aqmlab.results.results import Results
from aqmlab.text.units import TIME, Unit, quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 3.5
"""Width of a column of a two-column paper, in inches."""
LETTERS = 50
"""Largest number of letters in a one-line title above such a column."""
_LEAST = 2.4
_ROW = 1.2
_MARGINS = 1.0


class TimeLine(NamedTuple):
    """A line of a plot: its times in s and its values, its index in the palette, and its width."""

    times: Floats
    values: Floats
    color: int
    width: float = 0.6


class Row(NamedTuple):
    """A row of plots: its label with the unit, and the function that returns its lines by name."""

    label: str
    lines: Callable[[RunSeries, Sequence[str]], Mapping[str, TimeLine]]


def _rates(of_run: RunSeries, _laws: Sequence[str]) -> dict[str, TimeLine]:
    times, values = of_run.queue.t_s, of_run.queue.values
    return {
        name: TimeLine(times, [rate / 1e6 for rate in values[f"{name}_bps"]], color)
        for name, color in (("arrivals", 0), ("departures", 3))
    }


def _queue(of_run: RunSeries, _laws: Sequence[str]) -> dict[str, TimeLine]:
    lines = {"queue": TimeLine(of_run.queue.t_s, of_run.queue.values["backlog_packets"], 0)}
    if "avg" in of_run.law:
        lines["average"] = TimeLine(*of_run.law["avg"], 3, 1.0)
    return lines


def _law(of_run: RunSeries, laws: Sequence[str]) -> dict[str, TimeLine]:
    known = [law for law in laws if law in of_run.law]
    return {law: TimeLine(*of_run.law[law], i, 1.0) for i, law in enumerate(known)}


def _signals(of_run: RunSeries, _laws: Sequence[str]) -> dict[str, TimeLine]:
    times, values = of_run.queue.t_s, of_run.queue.values
    by_law, others = values["dropped_by_law_per_s"], values["dropped_not_by_law_per_s"]
    drops = [a + b for a, b in zip(by_law, others, strict=True)]
    return {"marks": TimeLine(times, values["marked_per_s"], 0), "drops": TimeLine(times, drops, 3)}


ROWS: dict[str, Row] = {
    "rates": Row("rate [Mbit/s]", _rates),
    "queue": Row("queue [packets]", _queue),
    "law": Row("probability", _law),
    "signals": Row("packets/s", _signals),
}
"""The available quantities: arrivals and departures, the queue, the law, marks and drops."""


class Shown(NamedTuple):
    """What a figure of kind ``series`` requests: names of rows, variables of the law, and the interval."""

    rows: Sequence[str]
    laws: Sequence[str]
    view: View


def shown(figure: PaperFigure) -> Shown:
    """Read what a figure requests; by default, the queue and the law over the whole run.

    Raises
    ------
    ScenarioError
        If a row is unknown or a time is invalid.
    """
    content = figure.content
    rows = [str(row) for row in content.get("rows", ("queue", "law"))]
    for row in rows:
        if row not in ROWS:
            raise ScenarioError(f"figure {figure.name}: rows: {unknown('row', row, ROWS)}")
    view = View(from_s=time_of(figure, "from"), until_s=time_of(figure, "until"))
    return Shown(rows, [str(law) for law in content.get("laws", ("p",))], view)


def time_of(figure: PaperFigure, key: str) -> float | None:
    """A time that a figure specifies, in seconds; ``None`` if it specifies none.

    Raises
    ------
    ScenarioError
        If the value is not a time.
    """
    return amount_of(figure, key, TIME, "a time: `20s`")


def amount_of(figure: PaperFigure, key: str, unit: Unit, wanted: str) -> float | None:
    """An amount that a figure specifies, in base units; ``None`` if it specifies none.

    Raises
    ------
    ScenarioError
        If the amount has another unit; ``wanted`` describes the accepted form.
    """
    if key not in figure.content:
        return None
    text = str(figure.content[key])
    found = quantity(text)
    if found is None or found[1] != unit:
        raise ScenarioError(f"figure {figure.name}: `{key}` is `{text}`; write {wanted}")
    return found[0]


def over_time(experiment: Results, queue: str, what: Shown) -> Figure:
    """Draw the runs of an experiment side by side.

    Raises
    ------
    UsageError
        If the interval shown is empty.
    """
    rows, laws, view = what
    end_s = max(run.t1_ns for run in experiment.runs) / 1e9
    begin, end = view.limits(0.0, end_s)
    # The visible part has as many points as a whole run would have.
    bins = ceil(MOST_BINS * end_s / (end - begin))
    columns = run_series(experiment.tables, experiment.runs, queue, bins)
    size = (max(COLUMN, _LEAST * len(columns)), _MARGINS + _ROW * len(rows))
    drawn = new_figure(*size, len(rows))
    axes = drawn.subplots(len(rows), len(columns), sharex=True, sharey="row", squeeze=False)
    for plots, of_run in zip(axes.T, columns, strict=True):
        plots[0].set_title(of_run.run.arm, loc="left")
        warmup(plots, of_run.run.t0_ns / 1e9, begin)
        plots[-1].set_xlabel("time [s]")
        for one, name in zip(plots, rows, strict=True):
            _draw(one, ROWS[name].lines(of_run, laws))
    fit(axes, (begin, end), bottom=0.0)
    for row, name in zip(axes, rows, strict=True):
        row[0].set_ylabel(ROWS[name].label)
        lines = {line.get_label(): line for one in row for line in one.lines}
        if len(lines) > 1:
            # The legend is above the plot, where it covers nothing.
            place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.1}
            row[-1].legend(lines.values(), lines.keys(), fontsize=6, ncols=2, **place)
    title = f"{experiment.title} (seed {experiment.runs[0].seed})"
    entitle(drawn, title)
    return drawn


def _draw(axes: Axes, lines: Mapping[str, TimeLine]) -> None:
    for name, line in lines.items():
        axes.plot(line.times, line.values, color=PALETTE[line.color], linewidth=line.width, label=name)
