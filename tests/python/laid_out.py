"""The layout of figures: nothing covers data, and no word extends beyond the figure."""

from __future__ import annotations


def nothing_is_covered(figure, width=None):
    """Check a drawn figure; ``width`` is the requested width."""
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)
    parts = [*figure.legends, figure._suptitle, *figure.axes]
    for part in parts:
        extent = part.get_tightbbox()
        assert figure.bbox.x0 - 1 <= extent.x0
        assert extent.x1 <= figure.bbox.x1 + 1
        assert figure.bbox.y0 - 1 <= extent.y0
    if width is not None:
        assert figure.get_figwidth() == width
    assert min(axes.get_window_extent().height for axes in figure.axes) > 0.35 * figure.dpi
