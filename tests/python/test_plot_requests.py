"""Figures of requests show the same numbers as the metrics, in experiments and in sweeps."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from scipy import stats as scipy_stats

import aqmlab
from aqmlab.errors import UsageError
from aqmlab.figures.kinds import WAIT_KINDS
from aqmlab.metrics import Scope
from aqmlab.metrics.waits import PAGES, REQUESTS
from aqmlab.plots.draw import draw
from aqmlab.reports.render import render
from aqmlab.reports.waits import waits_context
from laid_out import nothing_is_covered
from web_runs import ran, ran_one_web_at_a_time, ran_over_rates, ran_with_pages


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    return ran(tmp_path_factory.mktemp("requests"))


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    return ran_over_rates(tmp_path_factory.mktemp("swept"))


@pytest.fixture(scope="module")
def paged(tmp_path_factory):
    return ran_with_pages(tmp_path_factory.mktemp("paged"))


@pytest.fixture(scope="module")
def one_web(tmp_path_factory):
    return ran_one_web_at_a_time(tmp_path_factory.mktemp("one"))


def within(results, cell, seconds, class_name="*", waits=REQUESTS):
    found = results.values(
        waits.metric("within_percent"), cell, Scope(class_name=class_name, parameters={"within": seconds})
    )
    return np.array(list(found.values())) / 100


def line_of(axes, label):
    (line,) = (line for line in axes.lines if line.get_label() == label)
    return line


def test_a_curve_is_the_mean_of_the_seeds_and_its_band_students_interval(experiment):
    axes = aqmlab.figure(experiment.path, "response-cdf", class_name="web", arms=experiment.arms).axes[0]
    assert [line.get_label() for line in axes.lines] == list(experiment.arms)
    assert axes.get_xlim() == (0.0, 2.0)
    (cell,) = experiment.select("CoDel")
    x, y = line_of(axes, "CoDel").get_data()
    edges = axes.collections[2].get_paths()[0].vertices
    for i in range(20, len(x) - 1, 25):
        shares = within(experiment, cell, x[i], "web")
        assert y[i] == pytest.approx(shares.mean(), abs=1e-9)
        half = scipy_stats.t.ppf(0.975, 2) * scipy_stats.sem(shares)
        here = edges[np.isclose(edges[:, 0], x[i])][:, 1]
        low, high = max(0, shares.mean() - half), min(1, shares.mean() + half)
        assert (here.min(), here.max()) == pytest.approx((low, high), abs=1e-9)


def test_a_tail_is_what_is_left_on_logarithmic_axes(experiment):
    axes = aqmlab.figure(experiment.path, "response-ccdf", class_name="web").axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    (cell,) = experiment.select("DropTail")
    x, y = line_of(axes, "DropTail").get_data()
    assert np.all(y > 0)
    for i in range(10, len(x), 25):
        assert y[i] == pytest.approx(1 - within(experiment, cell, x[i], "web").mean(), abs=1e-9)
    completed = sum(experiment.values("requests_completed", cell, Scope(class_name="web")).values())
    # The tail extends approximately to the slowest request of all seeds.
    assert y[-1] < 10 / completed
    assert axes.get_ylim()[0] < y[-1]


@pytest.mark.parametrize("given", [{}, {"reference": "Uncongested"}])
def test_the_reference_is_grey_and_behind_the_others(experiment, given):
    axes = aqmlab.figure(experiment.path, "response-cdf", **given).axes[0]
    reference = line_of(axes, "Uncongested (reference)")
    others = [line for line in axes.lines if line is not reference]
    assert [line.get_label() for line in others] == ["DropTail", "CoDel"]
    assert all(line.get_zorder() > reference.get_zorder() for line in others)
    # The appearance of the other arms does not depend on the reference.
    usual = aqmlab.figure(experiment.path, "response-cdf", arms=experiment.arms).axes[0]
    assert [line.get_color() for line in others] == [line.get_color() for line in usual.lines[1:]]


def test_another_arm_can_be_the_reference(experiment):
    axes = aqmlab.figure(experiment.path, "response-cdf", reference="CoDel").axes[0]
    assert [line.get_label() for line in axes.lines] == ["Uncongested", "DropTail", "CoDel (reference)"]


def test_the_time_that_is_shown_is_chosen(experiment):
    assert aqmlab.figure(experiment.path, "response-cdf", until_s=0.5).axes[0].get_xlim() == (0.0, 0.5)
    assert aqmlab.figure(experiment.path, "response-ccdf", until_s=60.0).axes[0].get_xlim()[1] == 60.0


def test_a_sweep_has_a_plot_for_each_label(swept):
    figure = aqmlab.figure(swept.path, "response-cdf", reference="Uncongested", class_name="web")
    assert [axes.get_title() for axes in figure.axes] == ["rate 5/s", "rate 20/s"]
    for axes, rate in zip(figure.axes, ("5/s", "20/s"), strict=True):
        (cell,) = swept.select("CoDel", {"rate": rate})
        x, y = line_of(axes, "CoDel").get_data()
        assert y[100] == pytest.approx(within(swept, cell, x[100], "web").mean(), abs=1e-9)


def test_a_scatter_has_a_dot_for_each_request_of_the_sample(experiment, tmp_path):
    figure = aqmlab.figure(experiment.path, "response-scatter", class_name="web", reference="Uncongested")
    assert [axes.get_title() for axes in figure.axes] == ["DropTail", "CoDel"]
    run = experiment.runs_of("CoDel")[0]
    rows = experiment.tables.rows(
        "request_sample", "response_bytes / 1e3, response_time_ns / 1e9", "WHERE class = 'web'", [run]
    )
    x, y = figure.axes[1].lines[1].get_data()
    assert np.array(sorted(zip(x, y, strict=True))) == pytest.approx(np.array(sorted(rows)))
    file = aqmlab.plot(
        experiment.path, "response-scatter", tmp_path / "s.csv", class_name="web", arms=["CoDel"]
    )
    with file.open() as text:
        assert sum(row["arm"] == "CoDel" for row in csv.DictReader(text)) == len(rows)


def test_percentiles_of_size_bands_are_those_of_the_metrics(experiment):
    figure = aqmlab.figure(experiment.path, "response-quantiles", class_name="web")
    assert len(figure.axes) == 3
    median, _, p99 = figure.axes
    labels = [text.get_text() for text in median.get_xticklabels()]
    assert labels[:3] == ["below 1kB", "1kB to 10kB", "10kB to 100kB"]
    (cell,) = experiment.select("DropTail")
    for axes, name in ((median, "response_time_median_s"), (p99, "response_time_p99_s")):
        of_band = experiment.values(
            name, cell, Scope(class_name="web", parameters={"at_least": 1e4, "below": 1e5})
        ).values()
        assert line_of(axes, "DropTail").get_ydata()[2] == pytest.approx(np.mean(list(of_band)))


@pytest.mark.parametrize("width", [None, 3.5, 7.16])
@pytest.mark.parametrize("kind", WAIT_KINDS)
def test_no_legend_lies_on_data_and_no_word_leaves_the_figure(one_web, kind, width):
    figure = aqmlab.figure(one_web.path, kind, width=width, reference="Uncongested")
    FigureCanvasAgg(figure).draw()
    assert len(figure.legends) == 1
    nothing_is_covered(figure, width)


@pytest.mark.parametrize("kind", WAIT_KINDS)
def test_numbers_of_figures_are_written_as_csv(one_web, paged, kind, tmp_path):
    for results in (one_web, paged):
        waits, name = (PAGES, "pages") if kind.startswith("page") else (REQUESTS, "web")
        file = aqmlab.plot(results.path, kind, tmp_path / "a.csv", reference="Uncongested", class_name=name)
        with file.open() as text:
            rows = list(csv.DictReader(text))
        assert {row["arm"] for row in rows} == set(results.arms)
        if kind.endswith("cdf"):
            row = rows[len(rows) // 2]
            labels = {axis.short: row[axis.short] for axis in results.axes}
            (cell,) = results.select(row["arm"], labels)
            share = within(results, cell, float(row[waits.metric("s")]), name, waits).mean()
            assert float(row["share"]) == pytest.approx(share, abs=1e-8)


@pytest.mark.parametrize("kind", WAIT_KINDS)
def test_a_title_is_text_in_every_figure(paged, kind, tmp_path):
    named = replace(paged, title=r"$\nosuch$ at 5 $ " + "and on " * 30)
    drawing = draw(named, kind, tmp_path / "a.svg").read_text(encoding="utf-8")
    assert r"$\nosuch$ at 5 $" in drawing


@pytest.mark.parametrize("kind", WAIT_KINDS)
@pytest.mark.parametrize("ending", [".pdf", ".svg", ".png"])
def test_the_same_recording_gives_the_same_file(paged, kind, ending, tmp_path):
    files = [aqmlab.plot(paged.path, kind, tmp_path / f"{i}{ending}") for i in range(2)]
    assert files[0].read_bytes() == files[1].read_bytes()


CUT_OFF = """
duration = "6s"
warmup = "2s"
runs = 3
[topology]
kind = "dumbbell"
rate = "100Mbit"
delay = "1ms"
queue = { kind = "droptail", limit = "1000p" }
[[traffic]]
name = "web"
kind = "requests"
rate = "50/s"
request = "100B"
response = "100B"
server_delay = { list = ["100ms", "100ms", "20s"] }
[[traffic]]
name = "stuck"
kind = "requests"
rate = "5/s"
request = "100B"
response = "100B"
server_delay = "1000s"
"""


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory):
    """Requests of which none, or two in three, complete within the greatest age that is seen, 6 s."""
    path = tmp_path_factory.mktemp("cut") / "run"
    return aqmlab.run(tomllib.loads(CUT_OFF), output=path, report=False)


def test_a_curve_ends_where_the_function_is_not_known(cut_off):
    (line,) = aqmlab.figure(cut_off.path, "response-cdf", class_name="web", until_s=30.0).axes[0].lines
    x, y = line.get_data()
    assert 5 < x[-1] < 6
    assert y[-1] == pytest.approx(2 / 3, abs=0.02)
    (cell,) = cut_off.cells
    assert within(cut_off, cell, x[-1] - 1e-6, "web").mean() == pytest.approx(y[-1], abs=1e-9)
    past = cut_off.values(
        "response_time_within_percent", cell, Scope(class_name="web", parameters={"within": 6.1})
    )
    assert set(past.values()) == {None}


def test_percentiles_that_no_seed_reaches_are_left_out(cut_off):
    axes = aqmlab.figure(cut_off.path, "response-quantiles", class_name="web").axes
    drawn = [sum(len(line.get_xdata()) for line in each.lines) for each in axes]
    # The median is that of the fast ones; plots of other percentiles would be empty.
    assert drawn == [1]


def test_a_class_without_a_completed_request_is_in_the_report(cut_off):
    (section,) = waits_context(cut_off)["waits"]
    (row,) = (row for row in section["rows"] if "stuck" in row["labels"])
    heads = [column["label"] for column in section["columns"]]
    cells = dict(zip(heads, row["cells"], strict=True))
    assert cells["completed requests"]["mean"] == "0"
    assert float(cells["censored requests"]["mean"]) == pytest.approx(30, abs=15)
    assert cells["response time, median"]["mean"] == cells["response time, mean of completed"]["mean"]
    assert "Response times" in render(cut_off)


@pytest.mark.parametrize("kind", WAIT_KINDS)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"reference": "Uncongestd"}, "did you mean `Uncongested`"),
        ({"arms": ["Codel"]}, "did you mean `CoDel`"),
        ({"class_name": "wob"}, "did you mean `web`"),
        ({"class_name": "ftp"}, "no completed (request|page) of `ftp`"),
    ],
)
def test_what_is_not_there_is_named(paged, kind, given, message):
    with pytest.raises(UsageError, match=message):
        aqmlab.figure(paged.path, kind, **given)


@pytest.mark.parametrize("kind", [kind for kind in WAIT_KINDS if kind.startswith("page")])
def test_without_pages_there_is_no_figure_of_them(experiment, kind):
    with pytest.raises(UsageError, match="no completed page: there are no page times"):
        aqmlab.figure(experiment.path, kind)


def test_there_is_no_plot_of_a_case_without_pages(one_web):
    """Both cases have requests, and one of them has pages, whose objects are requests, too."""
    of_requests = aqmlab.figure(one_web.path, "response-cdf").axes
    (of_pages,) = aqmlab.figure(one_web.path, "page-cdf").axes
    assert [axes.get_title() for axes in of_requests] == ["kind old", "kind new"]
    assert of_pages.get_title() == "kind new"
    assert (of_pages.get_xlabel(), of_pages.get_ylabel()) == ("page time [s]", "share of pages")
    assert of_pages.get_xlim() == (0.0, 20.0)
    (cell,) = one_web.select("CoDel", {"kind": "new"})
    x, y = line_of(of_pages, "CoDel").get_data()
    for i in range(10, len(x) - 1, 25):
        assert y[i] == pytest.approx(within(one_web, cell, x[i], waits=PAGES).mean(), abs=1e-9)


@pytest.mark.parametrize("kind", ["series", "box", "cumulative-ack"])
def test_other_figures_refuse_a_class_and_a_reference(experiment, kind):
    refused = f"`{kind}` is not a figure of requests or pages; leave out"
    with pytest.raises(UsageError, match=f"{refused} `--class`"):
        aqmlab.figure(experiment.path, kind, class_name="web", reference="CoDel")
    with pytest.raises(UsageError, match=f"{refused} `--reference`"):
        aqmlab.figure(experiment.path, kind, reference="CoDel")
