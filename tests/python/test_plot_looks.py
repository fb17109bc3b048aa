"""Figures for papers: arms that differ even in grey, legends that cover no data, sizes, styles, identical
bytes."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import aqmlab
from aqmlab.errors import UsageError
from aqmlab.figures import looks
from aqmlab.plots.appearance import _MARKS, COLORS, Appearance, arm_color, dashes, length_in, mark_of

KINDS = ("series", "delay-cdf", "goodput-delay", "cumulative-ack")
# How readers with a severe deficiency of one of the three cones see colours, as matrices that apply to linear
# light (Machado, Oliveira, Fernandes 2009).
DEFICIENCIES = {
    "none": np.eye(3),
    "protan": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deutan": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "tritan": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}
TO_XYZ = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])


def cielab(color, seen=None):
    """A colour's lightness and its position on the two colour axes."""
    part = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip((np.eye(3) if seen is None else seen) @ linear, 0, 1) / TO_XYZ.sum(axis=1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_colours_differ_in_lightness_and_for_readers_who_see_two_of_three():
    lightness = sorted(cielab(color)[0] for color in COLORS)
    assert np.diff(lightness).min() > 6.5
    assert lightness[-1] < 80  # not too pale for white paper
    for seen in DEFICIENCIES.values():
        labs = [cielab(color, seen) for color in COLORS]
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(labs, 2)) > 10


def test_sixteen_arms_have_dashes_and_marks_that_none_shares():
    grays = [(str(dashes(looks.dash_lengths(i))), mark_of(looks.marker(i))) for i in range(16)]
    with Appearance().applied():
        found = [(arm_color(i), *gray) for i, gray in enumerate(grays)]
    for pair in ((0, 1), (1, 2), (0, 2)):
        assert len({tuple(look[i] for i in pair) for look in found}) == 16
    # A style without colours has the same dashes and marks.
    assert len(set(grays)) == 16
    # Dashes and marks differ even among the first arms, not only after the colours are exhausted.
    assert len({look[1] for look in found[:7]}) == 7
    assert len({look[2] for look in found[:9]}) == 9
    assert found[0][1] == "-"


def test_reports_have_the_order_of_dashes_and_marks_of_figures():
    assert tuple(_MARKS)[: len(looks.MARKERS)] == looks.MARKERS
    with Appearance().applied():
        for arm in range(16):
            lengths = looks.dash_lengths(arm)
            assert dashes(lengths) == ((0, tuple(n / 1.8 for n in lengths)) if lengths else "-")
    assert len({(looks.color(i), looks.dash_lengths(i)) for i in range(16)}) == 16


def drawn(experiment, kind, **look):
    figure = aqmlab.figure(experiment.path, kind, **look)
    FigureCanvasAgg(figure).draw()
    return figure


def boxes(figure):
    """The rectangles that the axes occupy, and those that the legends occupy."""
    renderer = figure.canvas.get_renderer()
    data = [axes.get_window_extent(renderer) for axes in figure.axes]
    legends = [
        *figure.legends,
        *(legend for axes in figure.axes if (legend := axes.get_legend()) is not None),
    ]
    return data, [legend.get_window_extent(renderer) for legend in legends]


@pytest.mark.parametrize(
    "look", [{}, {"width": "1col"}, {"style": "slides"}, {"width": "2col", "font_size": 11}]
)
@pytest.mark.parametrize("kind", KINDS)
def test_no_legend_lies_on_data_or_leaves_the_figure(experiment, kind, look):
    figure = drawn(experiment, kind, **look)
    data, legends = boxes(figure)
    assert legends
    for legend in legends:
        assert not any(legend.overlaps(axes) for axes in data)
        assert figure.bbox.x0 <= legend.x0
        assert legend.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= legend.y0
    title = figure._suptitle.get_window_extent()
    assert figure.bbox.x0 <= title.x0
    assert title.x1 <= figure.bbox.x1
    # Legends and title leave more than a narrow strip for the data.
    assert min(axes.height for axes in data) > 0.3 * figure.dpi


def words(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_the_legend_says_what_signs_mean(experiment):
    said = words(drawn(experiment, "goodput-delay"))
    assert said == [
        "DropTail",
        "RED + ECN",
        "not dominated",
        "one run",
        "median of the runs",
        "outline: 1-sigma ellipse of the runs",
    ]
    for kind in ("series", "cumulative-ack"):
        assert "warm-up, not measured" in words(drawn(experiment, kind))


@pytest.mark.parametrize("kind", ["series", "cumulative-ack"])
def test_the_warm_up_is_shaded_to_its_end(experiment, kind):
    figure = drawn(experiment, kind)
    for axes in figure.axes:
        spans = [patch for patch in axes.patches if patch.get_label() == "warm-up, not measured"]
        assert [(span.get_x(), span.get_x() + span.get_width()) for span in spans] == [(0.0, 1.0)]


@pytest.mark.parametrize(
    ("text", "inches"),
    [
        *(("88.9mm", 3.5), ("8.89 cm", 3.5), ("3.5in", 3.5), ("252pt", 3.5), ("1col", 3.5), (3.5, 3.5)),
        *(("3.5", 3.5), ("2col", 7.16), ("2 columns", 7.16), ("1.5COL", 5.33), (".5in", 0.5)),
    ],
)
def test_lengths(text, inches):
    assert length_in(text) == pytest.approx(inches)


def bare_height(figure):
    """Height of a figure in inches, without the rows of its legend after the first."""
    (legend,) = figure.legends
    size = legend.get_texts()[0].get_fontsize()
    rows = -(-len(legend.get_texts()) // legend._ncols)
    return figure.get_figheight() - (rows - 1) * 1.6 * size / 72


def test_sizes_are_what_was_asked_for(experiment, tmp_path):
    assert tuple(drawn(experiment, "delay-cdf", width="88.9mm", height="2in").get_size_inches()) == (3.5, 2.0)
    made = drawn(experiment, "delay-cdf")
    narrow = drawn(experiment, "delay-cdf", width="1col")
    assert narrow.get_figwidth() == pytest.approx(3.5)
    # The proportions remain the same, apart from the rows of a legend after the first.
    assert bare_height(narrow) / 3.5 == pytest.approx(bare_height(made) / made.get_figwidth())
    from PIL import Image

    file = aqmlab.plot(experiment.path, "delay-cdf", tmp_path / "a.png", width=4, height=3)
    with Image.open(file) as image:
        assert image.size == (800, 600)


def test_letters_title_and_style(experiment, tmp_path):
    large = drawn(experiment, "delay-cdf", font_size=13)
    assert large.axes[0].xaxis.label.get_fontsize() == 13
    assert {label.get_fontsize() for label in large.axes[0].get_xticklabels()} == {13}
    assert drawn(experiment, "series", title=False)._suptitle is None
    assert [axes.get_title() for axes in drawn(experiment, "series", title=False).axes[:2]] == [
        *("DropTail", "RED + ECN"),
    ]
    assert drawn(experiment, "delay-cdf", style="slides").get_figwidth() == 11
    gray = drawn(experiment, "delay-cdf", style="gray")
    assert {line.get_color() for line in gray.axes[0].lines} <= {"#000000", "#606060", "#969696"}
    cycled = drawn(experiment, "delay-cdf", style="tableau-colorblind10")
    assert cycled.axes[0].lines[0].get_color() == "#006ba4"
    sheet = tmp_path / "mine.mplstyle"
    sheet.write_text(
        "# mine\nfont.size: 10.5\naxes.grid: False # no grid\naxes.prop_cycle: cycler('color', ['#123456'])\n"
        "font.family: serif\n",
        encoding="utf-8",
    )
    mine = drawn(experiment, "delay-cdf", style=str(sheet))
    assert {line.get_color() for line in mine.axes[0].lines} == {"#123456"}
    assert mine.axes[0].xaxis.label.get_fontsize() == 10.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"width": "wide"},
            "`wide` is not a width; write a number with mm, cm, in, pt or col: `88mm`, `1col`",
        ),
        ({"height": "5px"}, "`5px` is not a height"),
        ({"width": "-3in"}, "`-3in` is not a width"),
        ({"width": "nan"}, "`nan` is not a width"),
        ({"width": "1mm"}, "a width of 0.0393701 in is out of range; write 0.5 in to 100 in"),
        ({"height": "9999in"}, "a height of 9999 in"),
        ({"font_size": 0}, "a font size of 0 pt is out of range; write 2 to 100"),
        ({"font_size": float("nan")}, "a font size of nan pt"),
        ({"style": "slide"}, "there is no style `slide`; did you mean `slides`?"),
        ({"style": "none.mplstyle"}, "there is no style sheet `none.mplstyle`"),
    ],
)
def test_looks_that_make_no_sense_are_told(experiment, tmp_path, given, message):
    with pytest.raises(UsageError) as error:
        aqmlab.figure(experiment.path, "delay-cdf", **given)
    assert message in str(error.value)
    with pytest.raises(UsageError):
        aqmlab.plot(experiment.path, "delay-cdf", tmp_path / "never.pdf", **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("font.sice: 8", "bad.mplstyle:2: `font.sice` is not a matplotlib setting"),
        ("font.size: big", "bad.mplstyle:2: "),
        ("font.size 8", "bad.mplstyle:2: write `key: value`"),
    ],
)
def test_a_wrong_style_sheet_is_told_by_its_line(experiment, tmp_path, line, message):
    sheet = tmp_path / "bad.mplstyle"
    sheet.write_text(f"# first\n{line}\n", encoding="utf-8")
    with pytest.raises(UsageError) as error:
        aqmlab.figure(experiment.path, "delay-cdf", style=str(sheet))
    assert message in str(error.value)


def test_the_command_line_takes_looks_and_tells_bad_ones(experiment, aqmlab_cli, tmp_path):
    file = tmp_path / "small.svg"
    looks = ("--width", "88mm", "--height", "60mm", "--font-size", "7", "--no-title", "--style", "gray")
    assert aqmlab_cli("plot", experiment.path, "delay-cdf", "-o", file, *looks).returncode == 0
    drawing = file.read_text(encoding="utf-8")
    assert 'width="249.4' in drawing
    assert "Small: queueing delay" not in drawing.partition("</metadata>")[2]
    ended = aqmlab_cli("plot", experiment.path, "delay-cdf", "-o", file, "--width", "wide")
    assert ended.returncode == 2
    assert "`wide` is not a width" in ended.stderr
    law = tmp_path / "law.svg"
    assert aqmlab_cli("plot", "law", "red", "-o", law, "--width", "1col", "--no-title").returncode == 0
    assert 'width="252pt"' in law.read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_figure_has_the_same_bytes_whatever_the_caller_has_set(experiment, tmp_path, kind, suffix):
    first = aqmlab.plot(experiment.path, kind, tmp_path / f"a.{suffix}").read_bytes()
    with mpl.rc_context({"font.size": 20, "savefig.dpi": 30, "lines.linewidth": 5}):
        assert aqmlab.plot(experiment.path, kind, tmp_path / f"b.{suffix}").read_bytes() == first
        assert mpl.rcParams["font.size"] == 20


def test_a_figure_can_be_changed_and_saved_by_whoever_asked(experiment, tmp_path):
    figure = aqmlab.figure(experiment.path, "delay-cdf")
    assert isinstance(figure, Figure)
    figure.axes[0].axvline(20, color="black")
    figure.savefig(tmp_path / "mine.svg")
    assert (tmp_path / "mine.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("kind", "choice", "message"),
    [
        ("series", {"flows": ["ftp"]}, "shows all flows; leave out `--flow`$"),
        ("variance-time", {"from_s": 1.0}, "shows the whole experiment; leave out `--from` and `--arm`$"),
    ],
)
def test_a_choice_without_effect_is_refused(kind, choice, message, experiment, tmp_path):
    with pytest.raises(UsageError, match=f"`{kind}` {message}"):
        aqmlab.plot(experiment.path, kind, tmp_path / "x.pdf", **choice, arms=["RED + ECN"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["delay-cdf", "goodput-delay", "box", "bar", "response-scatter"])
def test_a_time_is_refused_where_whole_runs_are_shown(kind, experiment, tmp_path):
    with pytest.raises(UsageError, match=f"`{kind}` shows whole runs; leave out `--flow` and `--from`"):
        aqmlab.plot(experiment.path, kind, tmp_path / "x.pdf", from_s=1.0, flows=["ftp"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["delay-cdf", "goodput-delay"])
def test_arms_of_an_experiment_are_chosen(kind, experiment):
    axes = aqmlab.figure(experiment.path, kind, arms=["RED + ECN"]).axes[0]
    assert axes.lines[0].get_label() == "RED + ECN"
    assert "DropTail" not in [line.get_label() for line in axes.lines]
    assert axes.lines[0].get_color() == COLORS[1]
