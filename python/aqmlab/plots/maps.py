"""Maps of a sweep: a metric, or the difference of two arms, over two axes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from aqmlab.errors import UsageError
from aqmlab.figures.differences import differences
from aqmlab.figures.view import View
from aqmlab.metrics import Metric
from aqmlab.plots.appearance import (
    legend_below,
)
from aqmlab.plots.panel_grid import (
    Panel,
    PanelGrid,
    columns_of,
    empty_plots,
    label_x,
    metric_labels,
    panel_grid,
    titled,
)
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results
from aqmlab.text.numbers import display_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def heat(results: Results, view: View, queue: str | None) -> Figure:
    """A metric over two axes, one map for each arm, with the mean over the seeds in each cell.

    With several metrics, each has a row of maps and a scale of its own.
    """
    grid = panel_grid(results, view, queue, down=True)
    _need_axes(grid)
    maps = [
        _MapsOf(metric, titled(metric), {arm: _means(grid, metric, arm) for arm in grid.arms})
        for metric in grid.metrics
    ]

    def norm(values: Sequence[float]) -> Any:  # noqa: ANN401 (matplotlib's own)
        return _norm(min(values), max(values)) if values else _norm(0.0, 1.0)

    return _figure(grid, maps, metric_labels(grid) if len(maps) > 1 else maps[0].what, "viridis", norm)


def difference_maps(results: Results, view: View, queue: str | None) -> Figure:
    """The paired difference of arms over two axes; hatched where it is not significant.

    With several metrics, each has a row of maps and a scale of its own.
    """
    from matplotlib.patches import Patch

    grid = panel_grid(results, view, queue, down=True)
    _need_axes(grid)
    maps = [_differences_of(grid, metric) for metric in grid.metrics]

    def norm(values: Sequence[float]) -> Any:  # noqa: ANN401 (matplotlib's own)
        most = max(map(abs, values), default=0.0) or 1.0
        return _norm(-most, most)

    what = maps[0].what if len(maps) == 1 else f"differences in {metric_labels(grid)}"
    figure = _figure(grid, maps, what, "PuOr_r", norm)
    patch = Patch(facecolor="white", edgecolor="0.4", hatch="////", linewidth=0.4)
    legend_below(figure, [], {"hatched: not significant (95 %, Holm over a map)": patch})
    return figure


class _MapsOf(NamedTuple):
    """The maps of one metric: the values of each, by its title, and those that are not significant."""

    metric: Metric
    what: str
    values: Mapping[str, Mapping[tuple[int, int], float]]
    doubtful: Mapping[str, Collection[tuple[int, int]]] = MappingProxyType({})


def _differences_of(grid: PanelGrid, metric: Metric) -> _MapsOf:
    of_metric = differences(grid.answer, metric)
    maps: dict[str, dict[tuple[int, int], float]] = {}
    doubtful: dict[str, set[tuple[int, int]]] = {}
    for pair in _pairs(grid):
        name = f"{pair[0]} − {pair[1]}"
        maps[name], doubtful[name] = {}, set()
        places = _places(grid, pair[0])
        for contrast in of_metric.between(*pair):
            if contrast.cell in places and contrast.found.estimate is not None:
                place = places[contrast.cell]
                maps[name][place] = display_value(contrast.found.estimate.mean, metric.unit)
                if not contrast.stands:
                    doubtful[name].add(place)
    return _MapsOf(metric, f"differences in {titled(metric)}", maps, doubtful)


def _figure(
    grid: PanelGrid,
    maps: Sequence[_MapsOf],
    what: str,
    colors: str,
    norm_of: Callable[[Sequence[float]], Any],
) -> Figure:
    """Draw the maps of all metrics, with a colour bar for each metric."""
    figure, of_metrics = _maps(grid, maps, what)
    for one, plots in zip(maps, of_metrics, strict=True):
        norm = norm_of([value for of_map in one.values.values() for value in of_map.values()])
        for (_, axes), (name, of_map) in zip(plots, one.values.items(), strict=True):
            _map(axes, of_map, norm, colors, one.doubtful.get(name, ()))
        _scale(figure, plots, norm, colors, one.what)
    return figure


def _need_axes(grid: PanelGrid) -> None:
    if grid.x is None:
        raise UsageError("a map needs an axis of a sweep; for arms alone, use `bar` or `box`")


def _pairs(grid: PanelGrid) -> list[tuple[str, str]]:
    """The pairs of arms to compare: each later arm, minus the first one."""
    arms = list(grid.arms)
    if len(arms) < 2:
        raise UsageError("a difference needs two arms")
    first, *others = arms
    return [(arm, first) for arm in others]


def _places(grid: PanelGrid, arm: str) -> dict[Cell, tuple[int, int]]:
    """Return, for each of an arm's cells, its column and its row in the map."""
    panel = grid.panels[0]
    down = ("",) if grid.y is None else grid.y.labels
    return {
        cell: (column, row)
        for column, label in enumerate(grid.labels)
        for row, other in enumerate(down)
        if (cell := grid.cell(arm, panel, label, other)) is not None
    }


def _means(grid: PanelGrid, metric: Metric, arm: str) -> dict[tuple[int, int], float]:
    found = {place: grid.answer.estimate(cell, metric.name) for cell, place in _places(grid, arm).items()}
    return {place: display_value(e.mean, metric.unit) for place, e in found.items() if e is not None}


def _maps(
    grid: PanelGrid, maps: Sequence[_MapsOf], what: str
) -> tuple[Figure, list[list[tuple[Panel, Axes]]]]:
    """One plot for each map, with the two axes of the grid; the plots of each metric begin a row."""
    held = grid.panels[0].held
    columns = columns_of(max(len(one.values) for one in maps))
    rows: list[tuple[Panel, ...]] = []
    counts = []
    for one in maps:
        panels = [Panel(title, held, one.metric) for title in one.values]
        counts.append(len(panels))
        rows += [tuple(panels[i : i + columns]) for i in range(0, len(panels), columns)]
    of_maps = PanelGrid(grid.answer, grid.arms, grid.x, grid.y, tuple(rows), grid.held)
    figure, plots = empty_plots(of_maps, what)
    label_x(of_maps, plots)
    firsts = {id(row[0]) for row in rows}
    for panel, axes in plots:
        axes.grid(visible=False)
        down = ("",) if grid.y is None else grid.y.labels
        axes.set_yticks(range(len(down)), down)
        if id(panel) in firsts and grid.y is not None:
            axes.set_ylabel(grid.y.short)
        axes.set_xlim(-0.5, len(grid.labels) - 0.5)
        axes.set_ylim(-0.5, len(down) - 0.5)
    ends = list(accumulate(counts))
    return figure, [plots[end - count : end] for end, count in zip(ends, counts, strict=True)]


def _norm(low: float, high: float) -> Any:  # noqa: ANN401 (matplotlib's own)
    from matplotlib.colors import Normalize

    return Normalize(low, high if high > low else low + 1.0)


def _map(
    axes: Axes,
    values: Mapping[tuple[int, int], float],
    norm: Any,  # noqa: ANN401 (matplotlib's own)
    colors: str,
    doubtful: Collection[tuple[int, int]] = (),
) -> None:
    """Draw a square for each value, in its colour and labelled with it."""
    import matplotlib as mpl
    from matplotlib.patches import Rectangle

    palette = mpl.colormaps[colors]
    for (column, row), value in values.items():
        color = palette(norm(value))
        lightness = 0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2]
        ink = "black" if lightness > 0.45 else "white"
        square = Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=color, edgecolor="white", linewidth=0.8)
        axes.add_patch(square)
        if (column, row) in doubtful:
            hatch = Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, hatch="////", linewidth=0)
            hatch.set_edgecolor("0.55")
            axes.add_patch(hatch)
        back = {"boxstyle": "square,pad=0.1", "facecolor": color, "edgecolor": "none"}
        axes.text(
            column, row, _brief(value), ha="center", va="center", color=ink, fontsize="small", bbox=back
        )


def _brief(value: float) -> str:
    size = abs(value)
    places = 0 if size >= 100 or size == 0 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:.{places}f}".replace("-", "−")


def _scale(
    figure: Figure,
    plots: Sequence[tuple[Panel, Axes]],
    norm: Any,  # noqa: ANN401 (matplotlib's own)
    colors: str,
    label: str,
) -> None:
    """Draw the colour bar, which maps colours to values."""
    from matplotlib.cm import ScalarMappable

    bar = figure.colorbar(ScalarMappable(norm, colors), ax=[axes for _, axes in plots], label=label)
    bar.outline.set_visible(False)
