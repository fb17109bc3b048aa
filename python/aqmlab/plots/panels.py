"""Small multiples: one column per arm, one row per flow, with common axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aqmlab.plots.appearance import entitle, legend_below, new_figure

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

WIDTH = 7.0
_LEAST_COLUMN = 1.7
_MARGIN = 0.05


def panels(
    title: str, columns: Sequence[str], rows: Sequence[str], label: str, *, height: float = 1.7
) -> tuple[Figure, np.ndarray[Any, np.dtype[np.object_]]]:
    """A grid of plots over time, with named columns and rows; a row is ``height`` inches high."""
    figure = new_figure(max(WIDTH, _LEAST_COLUMN * len(columns)), 1.0 + height * len(rows), len(rows))
    axes = figure.subplots(len(rows), len(columns), sharex=True, sharey="row", squeeze=False)
    for column, name in enumerate(columns):
        axes[0, column].set_title(name)
        axes[-1, column].set_xlabel("time [s]")
    for row, name in enumerate(rows):
        axes[row, 0].set_ylabel(f"{name}\n{label}" if name else label)
    entitle(figure, title)
    return figure, axes


def fit(
    axes: np.ndarray[Any, np.dtype[np.object_]],
    limits: tuple[float, float],
    *,
    bottom: float | None = None,
    ignoring: Sequence[str] = (),
) -> None:
    """Set the limits of the time axis, and fit the vertical axis of each row to its visible lines.

    Parameters
    ----------
    axes
        The axes from :func:`panels`.
    limits
        Beginning and end of the time axis.
    bottom
        Lower end of the vertical axes, if not the smallest value.
    ignoring
        Labels of lines that may extend beyond the plot.
    """
    import numpy as np

    axes[0, 0].set_xlim(*limits)
    for row in axes:
        lines = [line for one in row for line in one.lines if line.get_label() not in ignoring]
        visible = [_within(np.asarray(line.get_xydata(), dtype=np.float64), limits) for line in lines]
        values = np.concatenate(visible) if visible else np.zeros(0)
        if len(values):
            low = float(values.min()) if bottom is None else bottom
            high = float(values.max())
            room = _MARGIN * (high - low) or 1.0
            row[0].set_ylim(low - room if bottom is None else low, high + room)


def _within(points: Any, limits: tuple[float, float]) -> Any:  # noqa: ANN401 (arrays)
    import numpy as np

    times, values = points.T if len(points) else np.zeros((2, 0))
    return values[(times >= limits[0]) & (times <= limits[1]) & np.isfinite(values)]


def plain_powers(axis: Axis) -> None:
    """Label a logarithmic axis in plain text, without mathematical typesetting.

    Labels are at powers of ten and, if the plot spans fewer than two of them, also at 2 and 5 times these.
    """
    import numpy as np

    def between(value: float, _position: float) -> str:
        low, high = sorted(axis.get_view_interval())
        digit = value / 10 ** np.floor(np.log10(value))
        return f"{value:g}" if high < 100 * low and round(digit) in (2, 5) else ""

    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(between)


__all__ = ["WIDTH", "fit", "legend_below", "panels", "plain_powers"]
