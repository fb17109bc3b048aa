"""Response times as a paper shows them: as distributions, and individually by response size.

Distributions have one curve per cell and a reference behind the curves; scatter plots have one plot per cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import Any, NamedTuple

from aqmlab.claims import Names
from aqmlab.errors import ScenarioError, UsageError, unknown
from aqmlab.figures.distributions import wait_cdf
from aqmlab.figures.model import BAND, Figure
from aqmlab.figures.response_curves import SHARES, WaitLine, curve_panel, limits_of, point_rows
from aqmlab.figures.response_sizes import dots as dots_of
from aqmlab.figures.response_sizes import scatter_panel
from aqmlab.figures.view import View
from aqmlab.metrics import EVERY_CLASS, named_classes
from aqmlab.metrics.waits import REQUESTS, Sample
from aqmlab.papers.over_time import COLUMN, amount_of, time_of
from aqmlab.papers.paper import PaperFigure
from aqmlab.results.cells import Cell, axis_named
from aqmlab.results.results import Results
from aqmlab.text.units import SIZE

_HEIGHT = 2.8


@dataclass(frozen=True)
class CellCurve:
    """A curve of a figure: its name, its cell, and whether it is the reference."""

    label: str
    cell: Cell
    reference: bool = False


def cell_curves(figure: PaperFigure, of: Names) -> list[CellCurve]:
    """The curves of a figure, the reference last.

    Raises
    ------
    ScenarioError
        If an arm, a class or a label is unknown, or an axis is not fixed.
    """
    wrong = f"figure {figure.name}"
    _below(figure)
    try:
        for name in named_classes(view_of(figure).class_name):
            if of.classes and name not in (*of.classes, EVERY_CLASS):
                raise unknown("class", name, of.classes)
        found = [CellCurve(label, _cell(of, labels)) for label, labels in _asked(figure, of)]
        reference = figure.content.get("reference")
        if reference is not None:
            labels = {**_where(figure), **(reference if isinstance(reference, dict) else {"arm": reference})}
            found.append(
                CellCurve(str(labels.pop("label", labels["arm"])), _cell(of, labels), reference=True)
            )
    except UsageError as error:
        raise ScenarioError(f"{wrong}: {error}") from error
    except KeyError as error:
        raise ScenarioError(
            f"{wrong}: a curve has no {error}; write `label`, `arm` and labels of axes"
        ) from error
    return found


def _asked(figure: PaperFigure, of: Names) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return the name of each curve, with its arm and labels."""
    where, curves = _where(figure), figure.content.get("curves")
    reference = figure.content.get("reference")
    arms = figure.content.get("arms") or [arm for arm in of.arms if arm != reference]
    if isinstance(curves, list):
        for entry in curves:
            yield str(entry["label"]), {**where, **{k: v for k, v in entry.items() if k != "label"}}
        return
    labels = ("",) if curves is None else axis_named(of.axes, str(curves)).labels
    for arm, label in product(arms, labels):
        named = [str(arm)] if len(arms) > 1 or not label else []
        fixed = {} if curves is None else {str(curves): label}
        yield ", ".join([*named, *([label] if label else [])]), {**where, **fixed, "arm": arm}


def _where(figure: PaperFigure) -> dict[str, Any]:
    return dict(figure.content.get("where", {}))


def _cell(of: Names, labels: Mapping[str, Any]) -> Cell:
    """Return the cell of an arm and labels, which must fix every axis."""
    arm = str(labels["arm"])
    if arm not in of.arms:
        raise unknown("arm", arm, of.arms)
    fixed: dict[str, str] = {}
    for name, label in labels.items():
        if name != "arm":
            axis = axis_named(of.axes, name)
            if str(label) not in axis.labels:
                raise unknown(f"value of `{axis.name}`", str(label), axis.labels)
            fixed[axis.name] = str(label)
    still = [axis.short for axis in of.axes if axis.name not in fixed and len(axis.labels) > 1]
    if still:
        raise UsageError(f"a curve of `{arm}` shows one cell, but several match: also set {', '.join(still)}")
    return Cell(tuple((axis.name, fixed.get(axis.name, axis.labels[0])) for axis in of.axes), arm)


def view_of(figure: PaperFigure) -> View:
    """Return the class whose response times are shown, and the end of the time axis."""
    class_name = str(figure.content.get("class", EVERY_CLASS))
    return View(class_name=class_name, until_s=time_of(figure, "until"))


def response_lines(figure: PaperFigure, results: Results) -> list[WaitLine]:
    """The curves of a figure.

    Raises
    ------
    ScenarioError
        If a curve has no completed request.
    """
    class_name = view_of(figure).class_name
    lines = []
    for number, asked in enumerate(cell_curves(figure, Names.of_results(results))):
        curve = wait_cdf(results, asked.cell, REQUESTS, class_name, shares=SHARES)
        if curve is None:
            raise ScenarioError(f"figure {figure.name}: `{asked.cell}` has no completed request")
        lines.append(WaitLine(asked.label, None if asked.reference else number, curve))
    return lines


def response_figure(figure: PaperFigure, title: str, lines: Sequence[WaitLine]) -> Figure:
    """Draw the curves of a figure of kind ``response_cdf`` or ``response_ccdf``."""
    tail = figure.kind == "response_ccdf"
    panel = curve_panel(
        "", lines, limits_of(lines, view_of(figure), REQUESTS, tail=tail), REQUESTS, tail=tail
    )
    notes = (BAND,) if any(line.curve.n > 1 for line in lines) else ()
    return Figure(title, ((panel,),), notes, size=(COLUMN, _HEIGHT))


class Dots(NamedTuple):
    """What one scatter plot shows: its title, and the sample of requests of the cell's first run."""

    title: str
    number: int
    sample: Sample


def response_dots(figure: PaperFigure, results: Results) -> list[Dots]:
    """The requests of the sample that lie within a figure's axes.

    Raises
    ------
    ScenarioError
        If a cell has no finished run, or its first run has no sampled request within the axes.
    """
    view, below = view_of(figure), _below(figure)
    found = []
    for number, asked in enumerate(cell_curves(figure, Names.of_results(results))):
        runs = results.runs_of(asked.cell)
        if not runs:
            raise ScenarioError(f"figure {figure.name}: `{asked.cell}` has no finished run")
        sizes, times = REQUESTS.sample(results.tables, runs[0], view.class_name)
        shown = (sizes < below) & (times < (inf if view.until_s is None else view.until_s))
        if not shown.any():
            raise ScenarioError(f"figure {figure.name}: `{asked.cell}` has no request within the axes")
        found.append(Dots(asked.label, number, Sample(sizes[shown], times[shown])))
    return found


def scatter_figure(figure: PaperFigure, title: str, dots: Sequence[Dots]) -> Figure:
    """Draw a figure of kind ``response_scatter``: a plot per cell, linear axes, a dot per request."""
    until_s, below = view_of(figure).until_s, _below(figure)
    panels = []
    for name, number, sample in dots:
        panel = scatter_panel(name if len(dots) > 1 else "", REQUESTS, [dots_of(sample, number)], log=False)
        x = replace(panel.x, begin=0.0, end=None if below == inf else below / 1e3)
        panels.append(replace(panel, x=x, y=replace(panel.y, begin=0.0, end=until_s)))
    size = (COLUMN * min(len(dots), 2), _HEIGHT)
    return Figure(title, (tuple(panels),), size=size, share=("all", "all"), legend="none")


def dot_rows(dots: Sequence[Dots]) -> Iterator[tuple[Any, ...]]:
    """Yield the dots of scatter plots as rows of a table, the header first."""
    yield ("curve", "response_bytes", "response_time_s")
    for title, _, (sizes, times) in dots:
        for size, time in zip(sizes, times, strict=True):
            yield (title, int(size), f"{time:.9f}")


def _below(figure: PaperFigure) -> float:
    """Return where the size axis ends, in bytes."""
    bits = amount_of(figure, "below", SIZE, "an amount of data: `100kB`")
    return inf if bits is None else bits / 8


def line_rows(lines: Sequence[WaitLine]) -> Iterator[tuple[Any, ...]]:
    """Yield the points of the curves as rows of a table, the header first."""
    yield ("curve", "response_time_s", "share", "low", "high", "n")
    for line in lines:
        yield from point_rows(line)
