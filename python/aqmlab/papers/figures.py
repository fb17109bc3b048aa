"""The figures of a paper, redrawn from our runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from aqmlab.claims import Names
from aqmlab.errors import AqmlabError, ScenarioError, UsageError
from aqmlab.figures.cumulative import cumulative_ack
from aqmlab.figures.model import Figure
from aqmlab.figures.over_time import quantities
from aqmlab.figures.view import EVERYTHING
from aqmlab.metrics import EVERY_QUEUE
from aqmlab.papers.expressions import ExpressionValues, of_each_seed
from aqmlab.papers.names import selected
from aqmlab.papers.over_time import COLUMN, shown
from aqmlab.papers.paper import SCATTER, PaperFigure
from aqmlab.papers.response_figure import (
    cell_curves,
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

Data = tuple[Figure, Iterable[tuple[Any, ...]] | None]
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


def figure_data(figure: PaperFigure, results: Results, title: str) -> Data:
    """A figure as data: a preset of a kind of figure; and its numbers as rows, if it has curves or dots.

    Raises
    ------
    ScenarioError
        If the figure requires something that the experiment lacks.
    """
    return PRESETS[figure.kind].data(figure, results, title)


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


def cells_of_runs(figure: PaperFigure, names: Names) -> Iterator[Cell]:
    """Yield the cells from each of which a figure shows one run."""
    arms = [str(arm) for arm in figure.content.get("arms", names.arms)]
    where = {
        axis_named(names.axes, str(axis)).name: str(label)
        for axis, label in figure.content.get("where", {}).items()
    }
    return selected(names, [arm for arm in arms if arm in names.arms], where)


class Preset(NamedTuple):
    """What a kind of a paper's figure makes of a kind of figure.

    Attributes
    ----------
    data
        The figure as data, and its numbers as rows.
    check
        Raises an error if it refers to something that the experiment lacks.
    cells
        The cells that it shows; ``None`` if they are those of the expressions in it.
    by_default
        Whether it shows the default queue.
    """

    data: Callable[[PaperFigure, Results, str], Data]
    check: Callable[[PaperFigure, Names], object] = lambda _figure, _names: None
    cells: Callable[[PaperFigure, Names], Iterable[Cell]] | None = cells_of_runs
    by_default: Callable[[PaperFigure], bool] = lambda _figure: False


def _sweep(figure: PaperFigure, results: Results, title: str) -> Data:
    lines = curves(figure, results)
    return sweep_figure(figure, title, lines, _unit(figure, results)), _rows(figure, lines)


def _sweep_check(figure: PaperFigure, names: Names) -> None:
    """Check the query of the first point of the first curve; those of all other points have the same form."""
    what = f"figure {figure.name}"
    try:
        _, points = next(places(figure, names))
        of_each_seed(text_of(figure, "y"), next(iter(points.values())), what, names)
    except AqmlabError as error:
        raise ScenarioError(f"{what}: {error}") from error


def _series(figure: PaperFigure, results: Results, title: str) -> Data:
    experiment = one_of_each(figure, results, title)
    queue = str(figure.content.get("queue") or results.queue_of(results.select(experiment.arms[0])[0]))
    return quantities(experiment, queue, *shown(figure)), None


def _cumulative(figure: PaperFigure, results: Results, title: str) -> Data:
    return cumulative_ack(one_of_each(figure, results, title), EVERYTHING, EVERY_QUEUE), None


def _responses(figure: PaperFigure, results: Results, title: str) -> Data:
    lines = response_lines(figure, results)
    return response_figure(figure, title, lines), line_rows(lines)


def _scatter(figure: PaperFigure, results: Results, title: str) -> Data:
    dots = response_dots(figure, results)
    return scatter_figure(figure, title, dots), dot_rows(dots)


def _of_classes(data: Callable[[PaperFigure, Results, str], Data]) -> Preset:
    """A figure of response times, whose cells have the default queue unless it shows one class."""
    return Preset(
        data,
        cell_curves,
        lambda figure, names: (curve.cell for curve in cell_curves(figure, names)),
        lambda figure: "class" not in figure.content,
    )


PRESETS: dict[str, Preset] = {
    "sweep": Preset(_sweep, _sweep_check, None),
    "series": Preset(
        _series,
        lambda figure, _names: shown(figure),
        by_default=lambda figure: "queue" not in figure.content,
    ),
    "cumulative": Preset(_cumulative),
    "response_cdf": _of_classes(_responses),
    "response_ccdf": _of_classes(_responses),
    SCATTER: _of_classes(_scatter),
}
"""The kinds of figures of experiments; a ``law`` needs none."""
