"""Distributions of response times as a paper has them: one curve per cell, and a reference behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from aqmlab.cells import Cell, axis_named
from aqmlab.claims import Names
from aqmlab.errors import ScenarioError, UsageError, unknown
from aqmlab.metrics import EVERY_CLASS, named_classes
from aqmlab.metrics.waits import REQUESTS
from aqmlab.papers.over_time import COLUMN, time_of
from aqmlab.papers.paper import PaperFigure
from aqmlab.plots.appearance import entitle, legend_below, new_figure
from aqmlab.plots.panel_grid import band_note
from aqmlab.plots.response_curves import SHARES, WaitLine, draw_lines, limits_of, point_rows, share_label
from aqmlab.plots.view import View
from aqmlab.reports.distributions import wait_cdf
from aqmlab.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT = 2.8


@dataclass(frozen=True)
class CellCurve:
    """A curve of a figure: what it is called, the cell that it is of, and whether it is the reference."""

    label: str
    cell: Cell
    reference: bool = False


def cell_curves(figure: PaperFigure, of: Names) -> list[CellCurve]:
    """The curves of a figure, the reference last.

    Raises
    ------
    ScenarioError
        If an arm, a class or a label is not there, or an axis is left open.
    """
    wrong = f"figure {figure.name}"
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
    """What each curve is called, and its arm and labels."""
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
    """The cell of an arm and labels, which leave no axis open."""
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
        raise UsageError(f"a curve of `{arm}` is of several cells: name a label of {', '.join(still)}")
    return Cell(tuple((axis.name, fixed.get(axis.name, axis.labels[0])) for axis in of.axes), arm)


def view_of(figure: PaperFigure) -> View:
    """Whose response times are shown, and until when."""
    class_name = str(figure.content.get("class", EVERY_CLASS))
    return View(class_name=class_name, until_s=time_of(figure, "until"))


def response_lines(figure: PaperFigure, results: Results) -> list[WaitLine]:
    """The curves of a figure.

    Raises
    ------
    ScenarioError
        If one of them has no completed request.
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
    drawn = new_figure(COLUMN, _HEIGHT)
    axes = drawn.subplots()
    draw_lines(axes, lines, limits_of(lines, view_of(figure), REQUESTS, tail=tail), tail=tail)
    axes.set(xlabel="response time [s]", ylabel=share_label(REQUESTS, tail=tail))
    entitle(drawn, title)
    legend_below(drawn, [axes], band_note() if any(line.curve.n > 1 for line in lines) else None)
    return drawn


def line_rows(lines: Sequence[WaitLine]) -> Iterator[tuple[Any, ...]]:
    """The points of the curves."""
    yield ("curve", "response_time_s", "share", "low", "high", "n")
    for line in lines:
        yield from point_rows(line)
