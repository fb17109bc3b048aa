"""Curves against an axis: their range, unit and legend."""

import pytest

from aqmlab.papers.paper import PaperFigure
from aqmlab.papers.sweep_figure import SweepLine, sweep_figure
from aqmlab.plots.render import render
from aqmlab.stats import Estimate

LABELS = ("4", "36", "72")


def drawn(curves, unit, **content):
    """The plot of named curves, which have a mean and a half-width for each label."""
    lines = [
        SweepLine(name, tuple((label, Estimate(*of, 20)) for label, of in zip(LABELS, points, strict=True)))
        for name, points in curves.items()
    ]
    figure = PaperFigure("1", "A figure", "x.toml", "sweep", {"x": "buffer", "y": "a", **content})
    whole = render(sweep_figure(figure, "Figure 1", lines, unit))
    whole.draw_without_rendering()
    return whole, whole.axes[0]


@pytest.mark.parametrize(
    ("points", "least"),
    [
        # The values are constant at 100 %, so the curve is visibly flat, and nothing is above it.
        ([(100.0, 0.0), (100.0, 0.0), (100.0, 0.0)], 90.0),
        ([(99.9997, 0.0005), (99.999, 0.001), (100.0, 0.0)], 90.0),
        ([(60.0, 1.0), (90.0, 1.0), (100.0, 0.0)], 55.0),
        ([(0.0, 0.0), (0.0, 0.0), (0.0, 0.0)], -1.5),
    ],
)
def test_no_tick_lies_beyond_100_percent(points, least):
    _, axes = drawn({"RED": points}, "%")
    bottom, top = axes.get_ylim()
    assert max(axes.get_yticks()) <= 100.0
    assert min(axes.get_yticks()) >= 0.0
    assert len(axes.get_yticks()) >= 2
    assert least < bottom < min(mean - half for mean, half in points)
    assert max(mean for mean, _ in points) < top
    assert top - bottom > 0.02 * max(mean for mean, _ in points)


def test_small_losses_keep_their_shape():
    _, axes = drawn({"RED": [(0.3, 0.01), (0.1, 0.01), (0.0, 0.0)]}, "%")
    bottom, top = axes.get_ylim()
    assert -0.02 < bottom < 0.0
    assert 0.31 < top < 0.35
    # Values above 100 % are shown as they are, and so are values of metrics that have no maximum.
    _, axes = drawn({"RED": [(90.0, 1.0), (120.0, 1.0), (140.0, 1.0)]}, "%")
    assert axes.get_ylim()[1] > 141.0
    _, axes = drawn({"RED": [(100.0, 1.0)] * 3}, "packets")
    assert axes.get_ylim()[1] > 101.0


def test_the_legend_covers_no_curve():
    curves = {
        f"{kind}{i}": [(80.0 + i, 1.0), (90.0, 1.0), (100.0, 0.0)] for kind in "RB" for i in range(1, 5)
    }
    whole, axes = drawn(curves, "%")
    (legend,) = whole.legends
    assert axes.get_legend() is None
    assert [text.get_text() for text in legend.get_texts()] == [
        *curves,
        "band: 95 % interval of the mean",
    ]
    box = legend.get_window_extent()
    assert not box.overlaps(axes.get_tightbbox())
    assert whole.bbox.x0 <= box.x0
    assert box.x1 <= whole.bbox.x1
    alone, _ = drawn({"RED": [(1.0, 0.1)] * 3}, "%")
    (only,) = alone.legends
    assert [text.get_text() for text in only.get_texts()] == ["band: 95 % interval of the mean"]


@pytest.mark.parametrize(
    ("size", "label", "highest"), [(9.0, "a [s]", 9.0), (0.9, "a [ms]", 900.0), (1.5, "a [s]", 1.5)]
)
def test_times_are_in_seconds_or_milliseconds_by_their_size(size, label, highest):
    _, axes = drawn({"RED": [(size / 10, 0.0), (size / 2, 0.0), (size, 0.0)]}, "s")
    assert axes.get_ylabel() == label
    assert max(axes.lines[0].get_ydata()) == pytest.approx(highest)
