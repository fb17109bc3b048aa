"""The figures of a paper, redrawn from our runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from aqmlab.claims import Names
from aqmlab.errors import ScenarioError, UsageError
from aqmlab.figures.cumulative import cumulative_ack
from aqmlab.figures.model import Figure
from aqmlab.figures.over_time import quantities
from aqmlab.figures.view import EVERYTHING
from aqmlab.metrics import EVERY_QUEUE
from aqmlab.papers.expressions import ExpressionValues
from aqmlab.papers.over_time import COLUMN, shown
from aqmlab.papers.paper import RESPONSES, SCATTER, PaperFigure
from aqmlab.papers.response_figure import (
    dot_rows,
    line_rows,
    response_dots,
    response_figure,
    response_lines,
    scatter_figure,
)
from aqmlab.papers.sweep_figure import SweepLine, sweep_figure
from aqmlab.plots.appearance import AS_MADE, Appearance
from aqmlab.recordings.recording import Run
from aqmlab.results.cells import Cell, axis_named
from aqmlab.results.results import Results, of_runs
from aqmlab.stats import estimate

_COLUMN = Appearance(COLUMN, 3.6, font_size=7)
"""The look of a figure drawn for a page: it is as wide as a column."""


def draw_figure(figure: PaperFigure, results: Results | None, folder: Path, version: str) -> Path:
    """Draw one figure as SVG into a folder, with its numbers as CSV where it has curves.

    Raises
    ------
    ScenarioError
        If the figure requires something that the experiment lacks.
    HostError
        If a file cannot be written.
    """
    from aqmlab.plots.draw import save, write_csv

    file = folder / figure.file_name
    title = f"Figure {figure.name}: {figure.title}"
    if figure.kind == "law":
        from aqmlab.plots.law import draw_law

        law, settings = str(figure.content["law"]), figure.content.get("settings", {})
        presets = bool(figure.content.get("presets", False))
        return draw_law(law, settings, file, presets=presets, look=_COLUMN, heading=title)
    if results is None:
        raise ScenarioError(f"figure {figure.name}: its experiment was not run")
    made, rows = figure_data(figure, results, title)
    if rows is not None:
        write_csv(file.with_suffix(".csv"), rows)
    alone = figure.kind == "cumulative" and len(made.rows[0]) == 1
    save(made, file, title, version, _COLUMN if alone else AS_MADE)
    return file


def figure_data(
    figure: PaperFigure, results: Results, title: str
) -> tuple[Figure, Iterable[tuple[Any, ...]] | None]:
    """A figure as data: a preset of a kind of figure; and its numbers as rows, if it has curves or dots.

    Raises
    ------
    ScenarioError
        If the figure requires something that the experiment lacks.
    """
    if figure.kind == "sweep":
        lines = curves(figure, results)
        return sweep_figure(figure, title, lines, _unit(figure, results)), _rows(figure, lines)
    if figure.kind == SCATTER:
        dots = response_dots(figure, results)
        return scatter_figure(figure, title, dots), dot_rows(dots)
    if figure.kind in RESPONSES:
        of_cells = response_lines(figure, results)
        return response_figure(figure, title, of_cells), line_rows(of_cells)
    experiment = one_of_each(figure, results, title)
    if figure.kind == "cumulative":
        return cumulative_ack(experiment, EVERYTHING, EVERY_QUEUE), None
    what = shown(figure)
    queue = str(figure.content.get("queue") or results.queue_of(results.select(experiment.arms[0])[0]))
    return quantities(experiment, queue, *what), None


def curves(figure: PaperFigure, results: Results) -> tuple[SweepLine, ...]:
    """The curves of a figure of kind ``sweep``: one for each arm, and for each label of ``curves``."""
    asking = ExpressionValues(results, Names.of_results(results))
    lines = []
    for name, points in places(figure, results):
        found = []
        for label, where in points.items():
            values = asking.values(text_of(figure, "y"), where, f"figure {figure.name}, {name}, {label}")
            found.append((label, estimate(values.values())))
        lines.append(SweepLine(name, tuple(found)))
    return tuple(lines)


def _unit(figure: PaperFigure, results: Results) -> str:
    """Return the unit of a figure of kind ``sweep``: the metric's, or that of the expression."""
    _, points = next(places(figure, results))
    return ExpressionValues(results, Names.of_results(results)).unit(
        text_of(figure, "y"), next(iter(points.values())), f"figure {figure.name}"
    )


def places(figure: PaperFigure, of: Results | Names) -> Iterator[tuple[str, dict[str, dict[str, str]]]]:
    """Yield the name of each curve and, for each label of the axis, the arm and the labels of its cell."""
    content = figure.content
    axis = axis_named(of.axes, text_of(figure, "x"))
    arms = [str(arm) for arm in content.get("arms", of.arms)]
    other = content.get("curves")
    seconds = axis_named(of.axes, str(other)).labels if other else ("",)
    fixed = {str(k): str(v) for k, v in content.get("where", {}).items()}
    for arm, second in product(arms, seconds):
        where = {**fixed, "arm": arm, **({str(other): second} if other else {})}
        named = [arm] if len(arms) > 1 or not second else []
        name = ", ".join([*named, *([second] if second else [])])
        yield name, {label: {**where, axis.name: label} for label in axis.labels}


def text_of(figure: PaperFigure, key: str) -> str:
    """Return the value of a key that the figure's kind requires.

    Raises
    ------
    ScenarioError
        If the key is missing.
    """
    if key not in figure.content:
        raise ScenarioError(
            f"figure {figure.name}: `{key}` is missing; a figure of kind `{figure.kind}` needs it"
        )
    return str(figure.content[key])


def _rows(figure: PaperFigure, lines: Sequence[SweepLine]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [("curve", str(figure.content["x"]), "mean", "low", "high", "n")]
    for line in lines:
        for label, found in line.points:
            if found is not None:
                rows.append((line.label, label, found.mean, found.low, found.high, found.n))
    return rows


def one_of_each(figure: PaperFigure, results: Results, title: str) -> Results:
    """Return one run per arm, named after its arm, as plots of single runs require."""
    arms = [str(arm) for arm in figure.content.get("arms", results.arms)]
    where = {str(k): str(v) for k, v in figure.content.get("where", {}).items()}
    runs = tuple(_run(figure, results, arm, where) for arm in arms)
    seeds = tuple(sorted({run.seed for run in runs}))
    return of_runs(runs, arms=arms, seeds=seeds, path=results.path, title=title)


def _run(figure: PaperFigure, results: Results, arm: str, where: Mapping[str, str]) -> Run:
    cells: tuple[Cell, ...] = results.select(arm, where)
    if len(cells) != 1:
        raise ScenarioError(
            f"figure {figure.name}: `where` leaves {len(cells)} cells of `{arm}`; it must name one label of"
            f" each of {', '.join(axis.short for axis in results.axes)}"
        )
    runs = results.runs_of(cells[0])
    wanted = figure.content.get("seed")
    for run in runs:
        if wanted is None or run.seed == int(wanted):
            return Run(run.path, replace(run.manifest, arm=arm))
    seed = "" if wanted is None else f" with seed {wanted}"
    raise UsageError(f"figure {figure.name}: `{arm}` has no finished run{seed}")
