"""Figures of sweeps, box plots and bar charts show the same numbers as the statistics, and nothing covers
data."""

from __future__ import annotations

import csv
from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from scipy import stats as scipy_stats

import aqmlab
from aqmlab.errors import UsageError
from aqmlab.figures.differences import differences
from aqmlab.figures.kinds import PART_KINDS, SWEEP_KINDS, WAIT_KINDS
from aqmlab.figures.trade_off import TradeOff
from aqmlab.figures.view import View
from aqmlab.metrics import find
from aqmlab.plots.appearance import Appearance
from aqmlab.plots.draw import draw, figure_of
from aqmlab.results.answers import answer
from laid_out import nothing_is_covered
from synthetic_sweep import COUNTS, DELAY, RATES, synthetic

OF_PACKETS = [
    kind for kind in SWEEP_KINDS if kind not in {*WAIT_KINDS, *PART_KINDS, "series", "frame-delay-cdf"}
]
MANY = tuple(f"arm {i}" for i in range(12))


@pytest.fixture(scope="module")
def noisy():
    """A sweep with few seeds, so that many differences are not significant."""
    return synthetic(arms=("DropTail", "RED", "PI"), seeds=3)


def drawn(results, kind, view=None, look=None):
    figure = figure_of(results, kind, view=view or View(), look=look or Appearance())
    FigureCanvasAgg(figure).draw()
    return figure


def words(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def interval(values):
    mean = np.mean(values)
    return mean, scipy_stats.t.ppf(0.975, len(values) - 1) * scipy_stats.sem(values)


@pytest.mark.parametrize("width", [None, 3.5, 7.16])
@pytest.mark.parametrize("kind", OF_PACKETS)
def test_no_legend_lies_on_data_and_no_word_leaves_the_figure(noisy, kind, width):
    figure = drawn(noisy, kind, look=Appearance(width))
    # The colour bar of a heat map is its legend.
    assert len(figure.legends) == (kind != "heat")
    nothing_is_covered(figure, width)


def test_lines_are_means_and_bands_their_intervals(grid):
    figure = drawn(grid, "lines")
    assert [axes.get_title() for axes in figure.axes] == [f"count {count}" for count in COUNTS]
    for axes, count in zip(figure.axes, COUNTS, strict=True):
        lines = [line for line in axes.lines if line.get_label() in grid.arms]
        assert [line.get_label() for line in lines] == list(grid.arms)
        for line, arm, band in zip(lines, grid.arms, axes.collections, strict=True):
            found = []
            for rate in RATES:
                (cell,) = grid.select(arm, {"rate": rate, "count": count})
                found.append(interval([1e3 * v for v in grid.values(DELAY, cell).values()]))
            assert line.get_ydata() == pytest.approx([mean for mean, _ in found])
            edges = band.get_paths()[0].vertices
            for i, (mean, half) in enumerate(found):
                here = edges[edges[:, 0] == i][:, 1]
                assert (here.min(), here.max()) == pytest.approx((mean - half, mean + half))
    assert words(figure) == ["RED", "PI", "band: 95 % interval of the mean"]


def test_axes_arms_labels_and_metrics_are_chosen(grid):
    view = View(x="count", where={"topology.rate": "20Mbit"}, arms=["PI"], metrics=["goodput_bps", DELAY])
    figure = drawn(grid, "lines", view)
    goodput, delay = figure.axes
    assert (goodput.get_ylabel(), delay.get_ylabel()) == ("goodput [Mbit/s]", "queueing delay, p95 [ms]")
    (line,) = delay.lines
    cells = [grid.select("PI", {"rate": "20Mbit", "count": count})[0] for count in COUNTS]
    assert line.get_ydata() == pytest.approx(
        [1e3 * np.mean(list(grid.values(DELAY, cell).values())) for cell in cells]
    )
    assert [text.get_text() for text in delay.get_xticklabels()] == list(COUNTS)
    assert "(rate 20Mbit)" in figure._suptitle.get_text().replace("\n", " ")
    # The arm keeps the appearance that it has among all arms.
    assert line.get_marker() == drawn(grid, "lines").axes[0].lines[1].get_marker() == "s"


def test_heat_maps_show_means_and_differences_hatch_what_may_be_chance(noisy):
    figure = drawn(noisy, "heat")
    for axes, arm in zip(figure.axes, noisy.arms, strict=False):
        shown = {text.get_position(): text.get_text() for text in axes.texts}
        assert len(shown) == len(RATES) * len(COUNTS)
        (cell,) = noisy.select(arm, {"rate": "10Mbit", "count": "80"})
        mean = 1e3 * np.mean(list(noisy.values(DELAY, cell).values()))
        assert float(shown[1, 2]) == pytest.approx(mean, rel=0.005)
    figure = drawn(noisy, "differences", View(arms=["RED", "PI"]))
    axes = figure.axes[0]
    assert axes.get_title() == "PI − RED"
    of_metric = differences(answer(noisy, [DELAY]), find(DELAY))
    doubtful = [c for c in of_metric.between("PI", "RED") if not c.stands]
    assert 0 < len(doubtful) < len(RATES) * len(COUNTS)
    hatched = [patch for patch in axes.patches if patch.get_hatch()]
    places = {(RATES.index(c.cell.label("rate")), COUNTS.index(c.cell.label("count"))) for c in doubtful}
    assert {(round(patch.get_x() + 0.5), round(patch.get_y() + 0.5)) for patch in hatched} == places
    assert words(figure)[0].startswith("hatched: not significant")


def test_trade_off_and_distributions_have_a_plot_for_each_label(grid):
    figure = drawn(grid, "goodput-delay", View(where={"count": "80"}))
    assert [axes.get_title() for axes in figure.axes] == [f"rate {rate}" for rate in RATES]
    assert [len(axes.lines[0].get_xdata()) for axes in figure.axes] == [10, 10, 10, 10]
    assert "median of the runs" in words(figure)
    figure = drawn(grid, "delay-cdf")
    for axes in figure.axes:
        for line in axes.lines:
            assert np.all(np.diff(line.get_ydata()) >= 0)
            assert line.get_ydata()[-1] == pytest.approx(1.0)


def test_the_settings_of_a_queue_are_named_points_of_one_plot():
    limits, fractions = ["50p", "100p", "200p", "400p"], ["1", "2", "3"]
    axes = {"topology.queue.limit": limits, "topology.queue.weight": fractions}
    results = synthetic(arms=["RED"], axes=axes, seeds=6)
    figure = drawn(results, "goodput-delay")
    (plot,) = figure.axes
    names = {text.get_text(): text for text in plot.texts}
    assert set(names) <= {f"{limit}, {fraction}" for limit in limits for fraction in fractions}
    (front,) = TradeOff(answer(results)).front
    assert {", ".join(label for _, label in cell.settings) for cell in front.best} <= set(names)
    boxes = [Text.get_window_extent(text) for text in names.values()]  # without the leader lines
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    assert all(plot.bbox.padded(1).contains(*corner) for box in boxes for corner in (box.min, box.max))
    # With a label fixed, the other axis remains; asked for by name, it has a plot per label.
    (fixed,) = drawn(results, "goodput-delay", View(where={"weight": "2"})).axes
    assert {text.get_text() for text in fixed.texts} <= {*limits}
    assert len(drawn(results, "goodput-delay", View(by="limit")).axes) == len(limits)
    assert words(figure)[1] == "not dominated"


def test_boxes_are_quartiles_and_bars_intervals(experiment):
    results = aqmlab.load(experiment.path)
    values = {
        cell.arm: [1e3 * v for v in results.values("queueing_delay_p95_s", cell).values()]
        for cell in results.cells
    }
    box = aqmlab.figure(experiment.path, "box", metrics=["queueing_delay_p95_s"])
    (axes,) = box.axes
    for patch, of_arm in zip(axes.patches, values.values(), strict=True):
        heights = patch.get_path().vertices[:, 1]
        assert (heights.min(), heights.max()) == pytest.approx(tuple(np.percentile(of_arm, [25, 75])))
    assert [text.get_text() for text in axes.get_xticklabels()] == list(results.arms)
    assert len({patch.get_hatch() for patch in axes.patches}) == len(results.arms)
    bar = aqmlab.figure(experiment.path, "bar", metrics=["queueing_delay_p95_s"])
    (axes,) = bar.axes
    assert [patch.get_height() for patch in axes.patches] == pytest.approx(
        [np.mean(of_arm) for of_arm in values.values()]
    )
    for whisker, of_arm in zip(axes.collections, values.values(), strict=True):
        mean, half = interval(of_arm)
        assert whisker.get_segments()[0][:, 1] == pytest.approx([mean - half, mean + half])
    assert words(bar) == ["bar: mean over the seeds", "whisker: 95 % Student t interval"]


def test_flows_are_compared_by_their_goodput(experiment):
    bar = aqmlab.figure(experiment.path, "bar", over="flows")
    (axes,) = bar.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["ftp 0", "ftp 1", "ftp 2", "cbr 0"]
    total = sum(patch.get_height() for patch in axes.patches if patch.get_hatch() == "////")
    mean = aqmlab.answer(experiment).estimate("RED + ECN", "goodput_bps").mean
    assert total == pytest.approx(mean / 1e6)
    box = aqmlab.figure(experiment.path, "box", over="flows")
    assert [text.get_text() for text in box.axes[0].get_xticklabels()] == ["ftp", "cbr"]
    with pytest.raises(UsageError, match="flows are compared by their goodput only"):
        aqmlab.figure(experiment.path, "box", over="flows", metrics=["drop_percent"])
    with pytest.raises(UsageError, match="there is no choice of `--over` `packets`"):
        aqmlab.figure(experiment.path, "box", over="packets")


def test_bars_of_classes_are_the_values_of_the_classes(experiment, tmp_path):
    bar = aqmlab.figure(experiment.path, "bar", over="classes", metrics=["goodput_bps"])
    (axes,) = bar.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["ftp", "cbr"]
    found = aqmlab.answer(experiment, ["goodput_bps"], by="class")
    means = [found.estimate(arm, "goodput_bps", name).mean for name in ("ftp", "cbr") for arm in found.arms]
    heights = [patch.get_height() for patch in axes.patches]
    assert sorted(heights) == pytest.approx(sorted(mean / 1e6 for mean in means))
    file = draw(experiment, "bar", tmp_path / "bar.csv", view=View(over="classes", metrics=["goodput_bps"]))
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    assert {row["class"] for row in rows} == {"ftp", "cbr"}
    assert len(rows) == 2 * len(experiment.runs)
    with pytest.raises(UsageError, match="names a class: leave it out of the braces"):
        aqmlab.figure(experiment.path, "bar", over="classes", metrics=["drop_percent{class=ftp}"])


@pytest.mark.parametrize("kind", ["heat", "differences"])
def test_each_metric_has_its_own_maps(grid, kind):
    view = View(metrics=["goodput_bps", "queueing_delay_p95_s"])
    figure = figure_of(grid, kind, view=view)
    of_bars = [axes.get_ylabel() for axes in figure.axes if axes.get_label() == "<colorbar>"]
    head = "differences in " if kind == "differences" else ""
    assert of_bars == [f"{head}goodput [Mbit/s]", f"{head}queueing delay, p95 [ms]"]
    alone = [figure_of(grid, kind, view=View(metrics=[name])) for name in view.metrics]

    def shown(one):
        return [text.get_text() for axes in one.axes for text in axes.texts]

    assert shown(figure) == [text for one in alone for text in shown(one)]
    assert shown(alone[0]) != shown(alone[1])


def test_a_series_of_chosen_arms_has_only_these(experiment):
    figure = aqmlab.figure(experiment.path, "series", arms=["RED + ECN"])
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == ["RED + ECN"]
    assert len(aqmlab.figure(experiment.path, "series").axes) == 6
    with pytest.raises(UsageError, match="leave out `--metric`"):
        aqmlab.figure(experiment.path, "series", metrics=["goodput_bps"])


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
@pytest.mark.parametrize("kind", OF_PACKETS)
def test_every_kind_has_every_format_and_the_same_bytes(noisy, tmp_path, kind, suffix):
    first, again = (draw(noisy, kind, tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab")
    assert first == again
    assert first[:4] == {"pdf": b"%PDF", "svg": b"<?xm", "png": b"\x89PNG"}[suffix]


def test_the_numbers_of_a_figure_are_saved(grid, tmp_path):
    view = View(where={"count": "80"}, arms=["PI"], metrics=[DELAY])
    file = draw(grid, "lines", tmp_path / "lines.csv", view=view)
    head, *rows = csv.reader(file.read_text().splitlines())
    assert head == ["topology.rate", "traffic.ftp.count", "arm", "metric", "unit", "seed", "value"]
    assert len(rows) == len(RATES) * 10
    (cell,) = grid.select("PI", {"rate": "5Mbit", "count": "80"})
    assert [float(row[-1]) for row in rows[:10]] == pytest.approx(
        [1e3 * v for v in grid.values(DELAY, cell).values()]
    )


def test_twelve_arms_have_twelve_looks():
    results = synthetic(arms=MANY, axes={"topology.rate": RATES}, seeds=2)
    figure = drawn(results, "lines")
    looks = {
        (line.get_color(), str(line.get_linestyle()), line.get_marker(), line._unscaled_dash_pattern)
        for line in figure.axes[0].lines
    }
    assert len(looks) == 12
    assert words(figure)[:12] == list(MANY)


@pytest.mark.parametrize(
    ("kind", "view", "message"),
    [
        (
            "cwnd",
            View(),
            "`cwnd` is a figure of single runs, and this is a sweep; figures of sweeps: `lines`",
        ),
        ("line", View(), "there is no figure `line` of a sweep"),
        ("lines", View(x="rat"), 'axis "rat"'),
        ("lines", View(x="rate", by="rate"), "the axis `topology.rate` is requested twice"),
        ("lines", View(x="rate", where={"rate": "5Mbit"}), "the axis `topology.rate` is requested twice"),
        ("lines", View(where={"rate": "6Mbit"}), "6Mbit"),
        ("lines", View(metrics=["goodput"]), "goodput_bps"),
        ("heat", View(arms=["Red"]), "RED"),
        ("differences", View(arms=["RED"]), "a difference needs two arms"),
        ("delay-cdf", View(x="rate"), "the horizontal axis of this figure is not an axis of the sweep"),
        ("goodput-delay", View(metrics=[DELAY]), "leave out the metric"),
        ("box", View(over="arms"), "there is no choice of `--over` `arms`"),
    ],
)
def test_what_makes_no_sense_is_told(grid, tmp_path, kind, view, message):
    with pytest.raises(UsageError) as error:
        draw(grid, kind, tmp_path / "never.pdf", view=view)
    assert message.replace('"', "`") in str(error.value).replace('"', "`")
    assert list(tmp_path.iterdir()) == []
