"""Stalls of a live run are shaded in what is drawn over time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aqmlab.answers import answer
from aqmlab.metrics import measure
from aqmlab.plots.kinds import series
from aqmlab.recording import Run
from aqmlab.reports.render import render
from aqmlab.series import run_series
from browser import ask, browse, needs_chromium
from live_worlds import live_object


@pytest.fixture(scope="module")
def stalled(experiment):
    """The first arm stood still from 1.5 s on for 12 ms, the second never."""

    def as_live(run):
        live = live_object(faithful=run.arm != experiment.arms[0])
        return Run(run.path, replace(run.manifest, host="live", live=live))

    return replace(experiment, runs=tuple(map(as_live, experiment.runs)))


def test_stalls_come_with_the_series_of_a_run(stalled, experiment):
    firsts = [stalled.runs_of(arm)[0] for arm in stalled.arms]
    assert [of_run.stalls for of_run in run_series(stalled, firsts, "bottleneck")] == [((1.5, 1.512),), ()]
    simulated = [experiment.runs_of(arm)[0] for arm in experiment.arms]
    assert [of_run.stalls for of_run in run_series(experiment, simulated, "bottleneck")] == [(), ()]
    assert ("stalls-live" in render(stalled), "stalls-live" in render(experiment)) == (True, False)


def test_the_figure_shades_them_in_the_column_of_their_arm(stalled):
    runs = measure(stalled)
    figure = series(stalled, runs, answer(stalled))
    first, second = figure.axes[0], figure.axes[1]
    said = "stall: the router stood still"
    (stripe,) = [patch for patch in first.patches if patch.get_label() == said]
    assert (stripe.get_x(), stripe.get_x() + stripe.get_width()) == pytest.approx((1.5, 1.512))
    assert [patch.get_label() for patch in second.patches] == ["warm-up, not measured"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()].count(said) == 1


SHADED = """(() => {
  const strips = () => charts.model("chart-backlog").renderers.find((mark) => mark.glyph.type === "VStrip");
  const shaded = () => ["from", "to"].map((edge) => Array.from(strips().data_source.data[edge]));
  const [first, second] = document.querySelectorAll("input[name=arm]");
  second.click();
  const none = shaded();
  first.click();
  const figure = charts.model("chart-backlog");
  return { none, one: shaded(), csv: charts.csv(figure), top: figure.y_range.end };
})()"""


@needs_chromium
def test_the_report_shades_those_of_the_arm_that_is_chosen(stalled, tmp_path):
    page = render(stalled)
    shown = ask(page, SHADED, tmp_path)
    assert shown["none"] == [[], []]
    assert [edge[0] for edge in shown["one"]] == pytest.approx([1.5, 1.512], rel=1e-6)
    rows = [line.split(",") for line in shown["csv"].splitlines()]
    assert [float(row[1]) for row in rows if row[0] == "stall"] == pytest.approx([1.5, 1.512], rel=1e-6)
    assert 0 < shown["top"] < 1000, "a strip has no height of its own"
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    _, console, fetched = browse(file, tmp_path)
    assert [line for line in console if "INFO:CONSOLE" not in line or "Refused" in line] == []
    assert fetched == set()
