"""Response times by size, and page times by weight: individual times, and percentiles of size bands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.figures.lines import estimates, with_band_note
from aqmlab.figures.model import INK, REFERENCE, Axis, Entry, Figure, Line, Look, Panel, arm_look
from aqmlab.figures.panel_grid import PanelGrid, Subject, titled
from aqmlab.figures.response_curves import MEDIAN, named, other_arms, reference, wait_grid
from aqmlab.figures.view import View
from aqmlab.metrics import Scope
from aqmlab.metrics.waits import Sample, SizeBand, Waits
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results
from aqmlab.stats import Estimate, estimate

PERCENTILES = (MEDIAN, "p90_s", "p99_s")


# --- individual times


def scatter_figure(results: Results, view: View, queue: str | None, *, waits: Waits) -> Figure:
    """Time against size, both axes logarithmic; a plot per arm, a dot per request or page."""
    grid = _held(results, view, queue, waits)
    arms = other_arms(grid, view)
    held = grid.subjects[0].held
    behind = None if view.reference is None else _sample(grid, view.reference, view, waits)

    def panel(subject: Subject) -> Panel:
        sample = _sample(grid, subject.title, view, waits)
        grey = [] if behind is None else [dots(behind, REFERENCE.hue, 0)]
        own = [] if sample is None else [dots(sample, arms[subject.title], 1)]
        return scatter_panel(subject.title, waits, (*grey, *own), log=True)

    rows = (tuple(Subject(arm, held, grid.subjects[0].metric) for arm in arms),)
    what = named(results, view, waits, f"{waits.time}s of single {waits.many}")
    return replace(grid, rows=rows, wraps=True).figure(
        f"{what}, seed {results.finished_seeds[0]}", panel, notes=_dot_notes(view, waits)
    )


def dots(sample: Sample, hue: int | str, order: float | None = None) -> Line:
    """A dot for each request or page: its time against its size in kB."""
    return Line("", sample.sizes / 1e3, sample.times, replace(_DOT, hue=hue, order=order))


def scatter_panel(title: str, waits: Waits, marks: Sequence[Line], *, log: bool) -> Panel:
    """A plot of times against sizes."""
    across, up = Axis(f"{waits.size} [kB]", log), Axis(f"{waits.time} [s]", log)
    return Panel(title, across, up, tuple(marks))


_DOT = Look(INK, mark="dot", size=0.8, line=False, alpha=0.5, many=True)


def _dot_notes(view: View, waits: Waits) -> list[Entry]:
    """Return the legend entry that explains the dots; the titles of the plots name the arms."""
    dot = Look(INK, mark="dot", size=1 / 0.55, line=False)
    notes = [Entry(f"a dot: a completed {waits.one} of the sample", dot)]
    if view.reference is not None:
        notes.append(Entry(reference(view.reference)[0], replace(dot, hue=REFERENCE.hue)))
    return notes


def scatter_rows(
    results: Results, view: View, queue: str | None, *, waits: Waits
) -> Iterator[tuple[Any, ...]]:
    """The dots of :func:`scatter_figure`."""
    yield ("arm", f"{waits.key}_bytes", waits.metric("s"))
    grid = _held(results, view, queue, waits)
    for arm in dict.fromkeys([*grid.arms, *([view.reference] if view.reference else [])]):
        sample = _sample(grid, arm, view, waits)
        if sample is not None:
            for size, time in zip(*sample, strict=True):
                yield (arm, int(size), f"{time:.9f}")


def _held(results: Results, view: View, queue: str | None, waits: Waits) -> PanelGrid:
    """A single case: every axis of a sweep is fixed at a label."""
    if view.metrics or view.by is not None:
        raise UsageError(f"a scatter of {waits.many} has a plot for each arm: leave out the metric and `by`")
    grid = wait_grid(results, view, queue, waits)
    return replace(grid, held=grid.subjects[0].held)


def _sample(grid: PanelGrid, arm: str, view: View, waits: Waits) -> Sample | None:
    """The recorded sample of the first finished run of a cell."""
    results = grid.answer.results
    cell = _cell(results, arm, grid)
    runs = () if cell is None else results.runs_of(cell)
    if not runs:
        return None
    return waits.sample(results.tables, runs[0], view.class_name)


def _cell(results: Results, arm: str, grid: PanelGrid) -> Cell | None:
    return next((c for c in results.cells if c.arm == arm and dict(c.settings) == dict(grid.held)), None)


# --- size bands


def quantiles_figure(results: Results, view: View, queue: str | None, *, waits: Waits) -> Figure:
    """Draw percentiles of the times by size band: one line per arm, with means and their intervals."""
    bands = _bands(results, view, waits)
    grid = _of_known(wait_grid(results, view, queue, waits, PERCENTILES), bands, view, waits)
    points = {
        (subject.title, subject.metric, arm): [_estimate(grid, subject, arm, band, view) for band in bands]
        for subject in grid.subjects
        for arm, _ in _drawn(grid, view)
    }

    def panel(subject: Subject) -> Panel:
        found = {arm: points[subject.title, subject.metric, arm] for arm, _ in _drawn(grid, view)}
        looks = [
            reference(arm) if i is None else (arm, arm_look(i, every=True)) for arm, i in _drawn(grid, view)
        ]
        lines = [estimates(*look, of, log=True) for look, of in zip(looks, found.values(), strict=True)]
        # The means set the limits, because the interval of a few requests can be arbitrarily wide.
        # All plots of the same metric have the same limits.
        means = [
            point.mean
            for (_, metric, _), of in points.items()
            for point in of
            if metric == subject.metric and point is not None
        ]
        across = Axis(waits.size, labels=tuple(map(str, bands)))
        # Seconds, as in the other figures of these times.
        up = Axis(titled(subject.metric, "s"), log=True, begin=min(means) / 2, end=max(means) * 2)
        return Panel(subject.title, across, up, tuple(lines))

    what = f"{named(results, view, waits, f'{waits.time}s')} by {waits.size}"
    return with_band_note(grid.figure(what, panel))


def quantile_rows(
    results: Results, view: View, queue: str | None, *, waits: Waits
) -> Iterator[tuple[Any, ...]]:
    """The points of :func:`quantiles_figure`."""
    axes = tuple(axis.short for axis in results.axes)
    yield (
        *axes,
        "arm",
        f"{waits.key}_at_least_bytes",
        f"{waits.key}_below_bytes",
        "metric",
        "unit",
        "mean",
        "half_width_95",
        "n",
    )
    grid = wait_grid(results, view, queue, waits, PERCENTILES)
    for subject in grid.subjects:
        labels = [subject.held[axis.name] for axis in results.axes]
        for arm, _ in _drawn(grid, view):
            for band in _bands(results, view, waits):
                found = _estimate(grid, subject, arm, band, view)
                if found is not None:
                    numbers = (
                        f"{found.mean:.9g}",
                        "" if found.half_width is None else f"{found.half_width:.9g}",
                    )
                    what = (subject.metric.name, subject.metric.unit)
                    yield (*labels, arm, band.at_least, band.below or "", *what, *numbers, found.n)


def _of_known(grid: PanelGrid, bands: Sequence[SizeBand], view: View, waits: Waits) -> PanelGrid:
    """Return the plots of percentiles that are reached, by any arm in any size band.

    Raises
    ------
    UsageError
        If there is none.
    """

    def known(subject: Subject) -> bool:
        arms = [arm for arm, _ in _drawn(grid, view)]
        return any(_estimate(grid, subject, arm, band, view) for arm in arms for band in bands)

    rows = (tuple(filter(known, row)) for row in grid.rows)
    found = replace(grid, rows=tuple(filter(None, rows)))
    if not found.rows:
        raise UsageError(
            f"too many {waits.many} had not ended with the run: no percentile of their {waits.time}s is known"
        )
    return found


def _drawn(grid: PanelGrid, view: View) -> list[tuple[str, int | None]]:
    """The arms to draw, each with its number, and the reference, which has none."""
    reference = [] if view.reference is None else [(view.reference, None)]
    return [*other_arms(grid, view).items(), *reference]


def _bands(results: Results, view: View, waits: Waits) -> list[SizeBand]:
    return sorted({band for run in results.measured() for band in waits.bands(run, view.class_name)})


def _estimate(grid: PanelGrid, subject: Subject, arm: str, band: SizeBand, view: View) -> Estimate | None:
    cell = grid.cell(arm, subject, "")
    if cell is None:
        return None
    values = grid.answer.results.values(
        subject.metric.name, cell, Scope(class_name=view.class_name, parameters=band.parameters)
    )
    return estimate(value for value in values.values() if value is not None)
