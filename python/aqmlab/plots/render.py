"""Draws a figure with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aqmlab.figures.looks import FACE_ALPHA, brief
from aqmlab.figures.model import (
    Axis,
    Bar,
    Box,
    Entry,
    Figure,
    Ladder,
    Line,
    Look,
    Mark,
    Names,
    Outline,
    Panel,
    Scale,
    Span,
    Squares,
)
from aqmlab.plots.appearance import (
    arm_color,
    dashes,
    entitle,
    legend_below,
    mark_of,
    mark_size,
    new_figure,
    points_of,
    text_width,
    width_asked,
)
from aqmlab.plots.ladder import draw_ladder
from aqmlab.plots.point_names import name_points

if TYPE_CHECKING:
    import matplotlib.figure as mpl
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as Ruler

_PANEL = (1.9, 2.0)
_HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++")
_COLORS = {False: "viridis", True: "PuOr_r"}
Drawn = list[tuple[Panel, "Axes"]]


def render(figure: Figure) -> mpl.Figure:
    """Draw a figure in the current style."""
    rows = list(_wrapped(figure)) if figure.wraps else [list(row) for row in figure.rows]
    across, down = max(map(len, rows)), len(rows)
    size = figure.size or (max(4.9, _PANEL[0] * across + 0.6), max(3.5, _PANEL[1] * down + 1.4))
    made = new_figure(*size, down)
    share_x, share_y = figure.share
    grid = made.subplots(down, across, sharex=share_x, sharey=share_y, squeeze=False)
    of_rows: list[Drawn] = []
    for row, axes in zip(rows, grid, strict=True):
        for unused in axes[len(row) :]:
            unused.remove()
        of_rows.append(list(zip(row, axes[: len(row)], strict=True)))
    drawn = [pair for row in of_rows for pair in row]
    for panel, axes in drawn:
        axes.set_title(panel.title, loc="left" if figure.legend == "rows" else "center")
        for mark in panel.marks:
            _draw(axes, mark)
    for i, pairs in enumerate(of_rows):
        for column, (panel, axes) in enumerate(pairs):
            below = i + 1 == down or column >= len(of_rows[i + 1])
            _horizontal(made, axes, panel.x, across, named=below or share_x == "none")
            same = column > 0 and pairs[column - 1][0].y.label == panel.y.label
            # A figure of its own size has plots that are close together, and only one horizontal label.
            room = made.get_figheight() / down - (1.1 if figure.size is None else 0.5)
            _vertical(axes, panel.y, 72.0 * room, named=not same)
    entitle(made, figure.title)
    _scales(made, drawn)
    if figure.legend == "rows":
        _row_legends(of_rows)
    elif figure.legend == "below":
        notes = {entry.text: _handle(entry) for entry in figure.notes}
        legend_below(made, [axes for _, axes in drawn], notes)
    for panel, axes in drawn:
        for mark in panel.marks:
            if isinstance(mark, Names):
                # The layout is final, so names can be placed.
                name_points(axes, mark.names, mark.others)
    return made


def _wrapped(figure: Figure) -> Iterator[list[Panel]]:
    """Break rows so that each has as many plots as fit, evenly filled."""
    most = min(max(int(width_asked(7.6) / 1.75), 1), 4)
    plots = max(map(len, figure.rows))
    columns = math.ceil(plots / math.ceil(plots / most))
    for row in figure.rows:
        for i in range(0, len(row), columns):
            yield list(row[i : i + columns])


# --- axes


def _horizontal(made: mpl.Figure, axes: Axes, axis: Axis, across: int, *, named: bool) -> None:
    room = 72.0 * (made.get_figwidth() / across - 0.6)
    if named:
        axes.set_xlabel(_broken(axis.label, ", ", ",\n", room))
        axes.tick_params(labelbottom=True)
    if axis.labels is not None:
        size = points_of("xtick.labelsize")
        needed = sum(text_width(label, size) + size for label in axis.labels)
        turned = needed > 72.0 * (made.get_figwidth() / across - 0.55)
        turn: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if turned else {}
        axes.set_xticks(range(len(axis.labels)), axis.labels, **turn)
        axes.grid(visible=False, axis="x")
    _scaled(axes, axes.xaxis, axis)
    if axis.begin is not None or axis.end is not None:
        axes.set_xlim(axis.begin, axis.end)


def _vertical(axes: Axes, axis: Axis, room: float, *, named: bool) -> None:
    if named:
        axes.set_ylabel(_broken(axis.label, " [", "\n[", room))
    if axis.labels is not None:
        axes.set_yticks(range(len(axis.labels)), axis.labels)
        axes.grid(visible=False, axis="y")
    _scaled(axes, axes.yaxis, axis)
    if axis.begin is not None or axis.end is not None:
        axes.set_ylim(axis.begin, axis.end)
    if axis.within is not None:
        least, most = axis.within
        axes.set_yticks([tick for tick in axes.get_yticks() if least <= tick <= most])


def _broken(label: str, at: str, by: str, room: float) -> str:
    """The label in two lines, if one line is too long."""
    size = points_of("axes.labelsize")
    return (
        label.replace(at, by) if max(text_width(line, size) for line in label.split("\n")) > room else label
    )


def _scaled(axes: Axes, ruler: Ruler, axis: Axis) -> None:
    if not axis.log:
        return
    scale = axes.set_xscale if ruler is axes.xaxis else axes.set_yscale
    if axis.linear_below is not None:
        scale("symlog", linthresh=axis.linear_below)
        return
    scale("log")
    _plain_powers(ruler)


def _plain_powers(ruler: Ruler) -> None:
    """Label a logarithmic axis in plain text, without mathematical typesetting.

    Labels are at powers of ten and, if the plot spans fewer than two of them, also at 2 and 5 times these.
    """

    def between(value: float, _position: float) -> str:
        low, high = sorted(ruler.get_view_interval())
        digit = value / 10 ** np.floor(np.log10(value))
        return f"{value:g}" if high < 100 * low and round(digit) in (2, 5) else ""

    ruler.set_major_formatter("{x:g}")
    ruler.set_minor_formatter(between)


# --- what is drawn in a plot


def _draw(axes: Axes, mark: Mark) -> None:
    match mark:
        case Line():
            _line(axes, mark)
        case Ladder():
            draw_ladder(axes, mark)
        case Span():
            shade: dict[str, Any] = {"color": mark.color, "alpha": mark.alpha, "linewidth": mark.edge}
            axes.axvspan(mark.begin, mark.end, zorder=0, label=mark.name or None, **shade)
        case Outline():
            _outline(axes, mark)
        case Squares():
            _squares(axes, mark)
        case Box():
            _box(axes, mark)
        case Bar():
            _bar(axes, mark)


def _color(look: Look) -> str:
    return arm_color(look.hue) if isinstance(look.hue, int) else look.hue


def _drawn(look: Look) -> dict[str, Any]:
    """The properties of a line of matplotlib."""
    found: dict[str, Any] = {
        "color": _color(look),
        "linestyle": dashes(look.dash) if look.line else "none",
        "alpha": look.alpha,
    }
    if look.mark:
        found |= {"marker": mark_of(look.mark), "markersize": look.size * mark_size()}
        if not look.every and isinstance(look.hue, int):
            # The marks of each line begin at a different point, so that those of neighbours do not overlap.
            found["markevery"] = (0.03 + 0.023 * (look.hue % 7), 0.17)
        if look.alpha is not None:
            found["markeredgewidth"] = 0
        if look.hollow == "clear":
            found["fillstyle"] = "none"
        if look.hollow == "white":
            found |= {"markerfacecolor": "white", "markeredgewidth": 1.3}
    if look.width is not None:
        found["linewidth"] = look.width
    if look.order is not None:
        found["zorder"] = look.order
    if look.many:
        found["rasterized"] = True
    return found


def _line(axes: Axes, line: Line) -> None:
    style = {"drawstyle": "steps-post" if line.steps else "default", **_drawn(line.look)}
    axes.plot(line.x, line.y, label=line.name or None, **style)
    if line.low is None or line.high is None:
        return
    x, low, high = (np.asarray(of, dtype=np.float64) for of in (line.x, line.low, line.high))
    sure = np.isfinite(low) & np.isfinite(high)
    if sure.sum() == 1:
        # A single point has no band, so its interval is drawn as a line.
        axes.vlines(x[sure], low[sure], high[sure], color=_color(line.look), linewidth=1.0)
    elif sure.any():
        shade: dict[str, Any] = {"color": _color(line.look), "alpha": 0.18, "linewidth": 0}
        axes.fill_between(x[sure], low[sure], high[sure], **shade)


def _outline(axes: Axes, outline: Outline) -> None:
    from matplotlib.patches import Ellipse

    long, short = (2 * half for half in outline.of.half_axes)
    shape = Ellipse(outline.of.centre, long, short, angle=outline.of.angle_degrees)
    look = {"linewidth": outline.look.width, "linestyle": dashes(outline.look.dash)}
    shape.set(fill=False, edgecolor=_color(outline.look), **look)
    axes.add_patch(shape)


def _squares(axes: Axes, squares: Squares) -> None:
    """Draw a square for each value, in its colour and labelled with it."""
    import matplotlib as mpl
    from matplotlib.patches import Rectangle

    palette, norm = mpl.colormaps[_COLORS[squares.scale.diverging]], _norm(squares.scale)
    for (column, row), value in squares.values.items():
        color = palette(norm(value))
        lightness = 0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2]
        corner = (column - 0.5, row - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, facecolor=color, edgecolor="white", linewidth=0.8))
        if (column, row) in squares.doubtful:
            hatch = Rectangle(corner, 1, 1, fill=False, hatch="////", linewidth=0)
            hatch.set_edgecolor("0.55")
            axes.add_patch(hatch)
        look: dict[str, Any] = {
            "color": "black" if lightness > 0.45 else "white",
            "bbox": {"boxstyle": "square,pad=0.1", "facecolor": color, "edgecolor": "none"},
        }
        axes.text(column, row, brief(value), ha="center", va="center", fontsize="small", **look)


def _norm(scale: Scale) -> Any:  # noqa: ANN401 (matplotlib's own)
    from matplotlib.colors import Normalize

    return Normalize(scale.low, scale.high if scale.high > scale.low else scale.low + 1.0)


def _face(arm: int) -> dict[str, Any]:
    """Return the fill of an arm's area, which is also distinguishable in grey."""
    face = (arm_color(arm), FACE_ALPHA)
    return {"facecolor": face, "edgecolor": arm_color(arm), "hatch": _HATCHES[arm % len(_HATCHES)]}


def _box(axes: Axes, box: Box) -> None:
    color = arm_color(box.arm)
    axes.boxplot(
        [list(box.values)],
        positions=[box.x],
        widths=box.width,
        patch_artist=True,
        manage_ticks=False,
        boxprops={**_face(box.arm), "linewidth": 0.8, "label": box.name},
        medianprops={"color": "black", "linewidth": 1.4},
        whiskerprops={"color": color, "linestyle": dashes(box.dash)},
        capprops={"color": color},
        flierprops={"marker": "o", "markersize": 2.5, "markeredgecolor": color},
    )


def _bar(axes: Axes, bar: Bar) -> None:
    axes.bar([bar.x], [bar.mean], bar.width, label=bar.name, linewidth=0.8, **_face(bar.arm))
    if bar.half is not None:
        look: dict[str, Any] = {"ecolor": "black", "elinewidth": 0.9, "capsize": 2.5, "fmt": "none"}
        axes.errorbar([bar.x], [bar.mean], [bar.half], **look)


# --- what explains it


def _scales(made: mpl.Figure, drawn: Drawn) -> None:
    """Draw a colour bar for each scale of the maps."""
    from matplotlib.cm import ScalarMappable

    plots: dict[Scale, list[Axes]] = {}
    for panel, axes in drawn:
        for mark in panel.marks:
            if isinstance(mark, Squares):
                plots.setdefault(mark.scale, []).append(axes)
    for scale, those in plots.items():
        colors = ScalarMappable(_norm(scale), _COLORS[scale.diverging])
        bar = made.colorbar(colors, ax=those, label=scale.label)
        bar.outline.set_visible(False)


def _row_legends(rows: Sequence[Drawn]) -> None:
    """Draw a legend above each row with several lines, where it covers nothing."""
    for row in rows:
        lines = {str(line.get_label()): line for _, axes in row for line in axes.lines}
        if len(lines) > 1:
            place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.1}
            row[-1][1].legend(lines.values(), lines.keys(), fontsize=6, ncols=2, **place)


def _handle(entry: Entry) -> Artist:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if entry.shape == "area":
        return Patch(color="0.8")
    if entry.shape == "hatch":
        return Patch(facecolor="white", edgecolor="0.4", hatch="////", linewidth=0.4)
    if entry.look is None:
        return Line2D([], [], linestyle="none")
    return Line2D([], [], **{**_drawn(entry.look), "rasterized": None})
