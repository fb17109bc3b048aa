"""Stalls of a live run are shaded in charts over time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aqmlab.figures.over_time import series_of
from aqmlab.plots.render import render as as_file
from aqmlab.recordings.recording import Run
from aqmlab.recordings.time_series import run_series
from aqmlab.reports.render import render
from browser import ask, browse, data_of, needs_chromium
from live_worlds import live_object
from manifests import with_runs


@pytest.fixture(scope="module")
def stalled(experiment):
    """The first arm stalled for 12 ms at 1.5 s; the second arm never stalled."""

    def as_live(run):
        live = live_object(faithful=run.arm != experiment.arms[0])
        return Run(run.path, replace(run.manifest, host="live", live=live))

    return with_runs(experiment, map(as_live, experiment.runs))


def test_stalls_come_with_the_series_of_a_run(stalled, experiment):
    firsts = [stalled.runs_of(arm)[0] for arm in stalled.arms]
    assert [of_run.stalls for of_run in run_series(stalled.tables, firsts, "bottleneck")] == [
        ((1.5, 1.512),),
        (),
    ]
    simulated = [experiment.runs_of(arm)[0] for arm in experiment.arms]
    assert [of_run.stalls for of_run in run_series(experiment.tables, simulated, "bottleneck")] == [(), ()]
    of_runs = [
        [run["stalls"] for run in data_of(render(of))["courses"]["runs"]] for of in (stalled, experiment)
    ]
    assert of_runs == [[[[1.5, 1.512]], []], [[], []]]


def test_the_figure_shades_them_in_the_column_of_their_arm(stalled):
    figure = as_file(series_of(stalled, "bottleneck", [stalled.runs_of(arm)[0] for arm in stalled.arms]))
    first, second = figure.axes[0], figure.axes[1]
    said = "stall: the router stood still"
    (stripe,) = [patch for patch in first.patches if patch.get_label() == said]
    assert (stripe.get_x(), stripe.get_x() + stripe.get_width()) == pytest.approx((1.5, 1.512))
    assert [patch.get_label() for patch in second.patches] == ["warm-up, not measured"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()].count(said) == 1


SHADED = """(() => {
  const { data, figures } = aqmlab.report;
  const courses = figures.find((figure) => figure.name === "courses");
  const shaded = (arm) => {
    const select = courses.bar.querySelector("select[data-key=arm]");
    select.value = String(arm);
    select.dispatchEvent(new Event("change"));
    const plots = [...courses.body.querySelectorAll("svg.plot")];
    return plots.map((plot) => [...plot.querySelectorAll(".stall")].map((strip) => strip.getAttribute("x")));
  };
  const none = shaded(1), one = shaded(0);
  return { none, one, width: courses.width, csv: csvFile.text(courses.rows) };
})()"""


@needs_chromium
def test_the_report_shades_those_of_the_arm_that_is_chosen(stalled, tmp_path):
    page = render(stalled)
    shown = ask(page, SHADED, tmp_path)
    assert [len(strips) for strips in shown["none"]] == [0] * 5
    # DropTail has no law, so there is one chart fewer. The 6 s are drawn between margins of 52 pixels on the
    # left and 10 on the right.
    begin = 52 + 1.5 / 6 * (shown["width"] - 62)
    assert [float(x) for strips in shown["one"] for x in strips] == pytest.approx([begin] * 4)
    rows = [line.split(",") for line in shown["csv"].splitlines()]
    assert [float(row[4]) for row in rows if row[3] == "stall"] == pytest.approx([1.5, 1.512], rel=1e-6)
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    _, console, fetched = browse(file, tmp_path)
    assert console == []
    assert fetched == set()
