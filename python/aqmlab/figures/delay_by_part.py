"""Distributions of queueing delay in parts: of the queues inside a queue, or of classes of traffic.

There is a plot per arm. The delays of parts differ by orders of magnitude, so their axis is logarithmic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from aqmlab.errors import UsageError
from aqmlab.figures.distributions import DelayCdf, delay_cdf
from aqmlab.figures.looks import color, dash_lengths
from aqmlab.figures.model import BAND, Axis, Entry, Figure, Line, Look, Panel
from aqmlab.figures.panel_grid import MEAN_DELAY, PanelGrid, at_queue, panel_grid
from aqmlab.figures.view import View
from aqmlab.results.answers import Answer, has_inner_queues, inner_queues
from aqmlab.results.cells import Cell
from aqmlab.results.classes import classes_of
from aqmlab.results.results import Results

Curves = dict[str, DelayCdf]
"""Distributions by the name of the part."""
_SHORTEST_MS = 0.01


def of_inner_queues(results: Results, cell: Cell, queue: str | None) -> Curves:
    """The distribution at each innermost queue inside a queue, by its name there; none without packets."""
    outer = results.queue_of(cell) if queue is None else queue
    names = inner_queues(results, cell, outer)
    innermost = [name for name in names if not any(other.startswith(f"{name}/") for other in names)]
    found = {name[len(outer) + 1 :]: delay_cdf(results, cell, name) for name in innermost}
    return {name: cdf for name, cdf in found.items() if cdf is not None}


def of_classes(results: Results, cell: Cell, queue: str | None) -> Curves:
    """The distribution of each class of traffic at a queue, if packets of at least two classes left it."""
    found = {name: delay_cdf(results, cell, queue, name) for name in classes_of(results)}
    known = {name: cdf for name, cdf in found.items() if cdf is not None}
    return known if len(known) > 1 else {}


class _Parts(NamedTuple):
    """A way of dividing the packets of a cell."""

    kind: str
    """The kind of figure."""
    what: str
    """Its title."""
    column: str
    """The word for a part, which names its column among the numbers."""
    of: Callable[[Results, Cell, str | None], Curves]
    lacking: str
    """What a queue without parts lacks."""


_INNER = _Parts(
    "inner-delay",
    "queueing delay by inner queue",
    "queue",
    of_inner_queues,
    "no arm has a queue inside",
)
_CLASSES = _Parts(
    "class-delay",
    "queueing delay by class",
    "class",
    of_classes,
    "in no arm, packets of two classes left",
)


def inner_delay(results: Results, view: View, queue: str | None) -> Figure:
    """Distributions of queueing delay at the queues inside a queue, one plot per arm that has any."""
    return _figure(results, view, queue, _INNER)


def class_delay(results: Results, view: View, queue: str | None) -> Figure:
    """Distributions of queueing delay of the classes of traffic at a queue, one plot per arm."""
    return _figure(results, view, queue, _CLASSES)


def inner_delay_rows(results: Results, view: View, queue: str | None) -> Iterator[tuple[Any, ...]]:
    """The points of :func:`inner_delay`."""
    return _rows(results, view, queue, _INNER)


def class_delay_rows(results: Results, view: View, queue: str | None) -> Iterator[tuple[Any, ...]]:
    """The points of :func:`class_delay`."""
    return _rows(results, view, queue, _CLASSES)


def inner_delay_of_answer(answer: Answer) -> Figure | None:
    """The figure that a report shows of an experiment; ``None`` if no arm has queues inside the queue."""
    return _of_answer(answer, _INNER)


def class_delay_of_answer(answer: Answer) -> Figure | None:
    """The same by class, if an arm has queues inside the queue, which may treat classes differently."""
    inside = not answer.results.axes and has_inner_queues(answer.results, answer.asked_queue)
    return _of_answer(answer, _CLASSES) if inside else None


def _found(
    results: Results, view: View, queue: str | None, parts: _Parts
) -> tuple[PanelGrid, list[tuple[str, Cell, Curves]]]:
    """Return the cells that have parts, each with the title of its plot."""
    if view.metrics:
        raise UsageError(f"`{parts.kind}` shows queueing delay: leave out the metric")
    grid = panel_grid(results, view, queue, along=False, metrics=(MEAN_DELAY,))
    found = []
    for subject, arm in product(grid.subjects, grid.arms):
        cell = grid.cell(arm, subject, "")
        curves = {} if cell is None or not results.runs_of(cell) else parts.of(results, cell, queue)
        if cell is not None and curves:
            found.append((f"{arm}, {subject.title}" if subject.title else arm, cell, curves))
    if not found:
        where = f"`{queue}`" if queue is not None else "the queue of any cell"
        raise UsageError(f"`{parts.kind}` has nothing to show: {parts.lacking} {where}")
    return grid, found


def _figure(results: Results, view: View, queue: str | None, parts: _Parts) -> Figure:
    grid, found = _found(results, view, queue, parts)
    panels = delay_panels([(title, curves) for title, _, curves in found], lambda i: Look(i, dash_lengths(i)))
    notes = (BAND,) if len(results.seeds) > 1 else ()
    title = grid.title(f"{parts.what}{at_queue(queue)}")
    return Figure(title, (tuple(panels),), notes, wraps=True, share=("all", "all"))


def _rows(results: Results, view: View, queue: str | None, parts: _Parts) -> Iterator[tuple[Any, ...]]:
    axes = (axis.name for axis in results.axes)
    yield (*axes, "arm", parts.column, "delay_ms", "share", "low_95", "high_95", "n")
    for _, cell, curves in _found(results, view, queue, parts)[1]:
        labels = (label for _, label in cell.settings)
        head = (*labels, cell.arm)
        for name, cdf in curves.items():
            for delay, *share in zip(cdf.delay_ms, cdf.share, cdf.low, cdf.high, strict=True):
                yield (*head, name, f"{delay:.9g}", *(f"{value:.9g}" for value in share), cdf.n)


def _of_answer(answer: Answer, parts: _Parts) -> Figure | None:
    results = answer.results
    if results.axes:
        return None
    found = [(row.cell.arm, parts.of(results, row.cell, answer.asked_queue)) for row in answer.rows]
    found = [(arm, curves) for arm, curves in found if curves]
    if not found:
        return None

    # The colour is that of a part, not of an arm, so the check boxes of arms leave these lines alone.
    def look(i: int) -> Look:
        return Look(color(i), dash_lengths(i))

    names = dict.fromkeys(name for _, curves in found for name in curves)
    notes = tuple(Entry(name, look(i)) for i, name in enumerate(names))
    title = f"{parts.what[0].upper()}{parts.what[1:]}"
    panels = [replace(panel, arm=answer.arms.index(panel.title)) for panel in delay_panels(found, look)]
    return Figure(title, (tuple(panels),), notes)


def delay_panels(found: Sequence[tuple[str, Curves]], look: Callable[[int], Look]) -> list[Panel]:
    """Return a plot for each title; a part has the same look in all plots, and all have the same axes."""
    names = list(dict.fromkeys(name for _, curves in found for name in curves))
    longest = max(cdf.delay_ms[-1] for _, curves in found for cdf in curves.values())
    x = Axis("queueing delay [ms]", log=True, begin=_SHORTEST_MS, end=max(longest, 10 * _SHORTEST_MS))
    y = Axis("share of packets", begin=0.0, end=1.01)
    return [
        Panel(title, x, y, tuple(_line(name, cdf, look(names.index(name))) for name, cdf in curves.items()))
        for title, curves in found
    ]


def _line(name: str, cdf: DelayCdf, look: Look) -> Line:
    """The curve from the beginning of a logarithmic axis on, where all shorter delays are."""
    first = max(sum(delay <= _SHORTEST_MS for delay in cdf.delay_ms) - 1, 0)
    delays = [_SHORTEST_MS, *cdf.delay_ms[first + 1 :]]
    edges = (cdf.low[first:], cdf.high[first:]) if cdf.n > 1 else ()
    return Line(name, delays, cdf.share[first:], look, *edges)
