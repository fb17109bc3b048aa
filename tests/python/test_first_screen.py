"""The first screen of a report: names that do not overlap, the front, folded checks, backlogs."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations

import pytest

import aqmlab
from aqmlab.figures.trade_off import TradeOff
from aqmlab.reports.render import render
from browser import ask, data_of, needs_chromium
from synthetic_sweep import synthetic

# Five arms of which three have the same distributions, with names that are longer than their ellipses.
ARMS = ["DropTail", "RED", "PI", "BLUE with its author's constants", "REM with the gains of its paper"]

SEEN = """(() => {
  const figure = document.querySelector("[data-figure=trade-off]");
  const boxes = (which) => [...figure.querySelectorAll(which)].map((text) => {
    const { left, right, top, bottom } = text.getBoundingClientRect();
    return { text: text.textContent, first: text.classList.contains("first"), left, right, top, bottom };
  });
  const plot = figure.querySelector("svg.plot").getBoundingClientRect();
  return {
    names: boxes(".name, .hint"),
    axes: boxes(".axes text"),
    plot: [plot.left, plot.right, plot.top, plot.bottom],
    fronts: figure.querySelectorAll(".front").length,
    idle: figure.querySelectorAll(".ellipse.idle").length,
    beyond: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    top: figure.getBoundingClientRect().top,
    answer: document.querySelector(".answer").getBoundingClientRect().bottom,
  };
})()"""


def overlap(one, other):
    return (
        one["left"] < other["right"]
        and other["left"] < one["right"]
        and one["top"] < other["bottom"]
        and other["top"] < one["bottom"]
    )


@needs_chromium
@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("axes", [{}, {"topology.queue.limit": ["50p", "100p", "200p", "400p"]}])
def test_names_stand_beside_their_ellipses_and_do_not_overlap(axes, width, tmp_path):
    results = synthetic(arms=ARMS[:3] if axes else ARMS, axes=axes, seeds=10)
    page = render(results)
    seen = ask(page, SEEN, tmp_path, width)
    texts = [*seen["names"], *seen["axes"]]
    assert [(a["text"], b["text"]) for a, b in combinations(texts, 2) if overlap(a, b)] == []
    left, right, top, bottom = seen["plot"]
    assert all(left <= name["left"] and name["right"] <= right for name in seen["names"])
    assert all(top <= name["top"] and name["bottom"] <= bottom for name in seen["names"])
    assert seen["beyond"] <= 0
    (front,) = TradeOff(aqmlab.answer(results)).front
    bold = {name["text"] for name in seen["names"] if name["first"]}
    assert bold <= {", ".join([cell.arm, *(label for _, label in cell.settings)]) for cell in front.best}
    if not axes:
        assert bold == {cell.arm for cell in front.best}
        assert {name["text"] for name in seen["names"]} >= set(ARMS)
        assert seen["fronts"] == 1


@needs_chromium
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (420, 1400)])
def test_question_answer_and_picture_are_on_the_first_screen(width, height, experiment, tmp_path):
    seen = ask((experiment.path / "report.html").read_text(encoding="utf-8"), SEEN, tmp_path, width)
    assert max(seen["answer"], seen["plot"][3]) < height
    assert (seen["plot"][2] < seen["answer"]) == (width == 1280)


def test_the_picture_has_the_fronts_and_the_starved_links_of_the_answer():
    results = synthetic(arms=ARMS, axes={}, seeds=10)
    found = TradeOff(aqmlab.answer(results))
    data = data_of(render(results))["tradeOff"]
    names = [cell.arm for cell in results.cells]
    (price,) = data["prices"]
    assert [[names[i] for i in front] for front in price["fronts"]] == [
        [cell.arm for cell in front.best] for front in found.front
    ]
    assert data["starved"] == {}
    assert price["name"] == "goodput_bps"


def test_figures_show_the_metric_of_the_question_first():
    results = synthetic(seeds=3)
    assert data_of(render(results))["first"] == "queueing_delay_p95_s"
    assert data_of(render(replace(results, metrics=("jain_index",))))["first"] == "jain_index"


def test_the_picture_has_a_price_for_each_metric_of_the_question():
    results = synthetic(arms=["DropTail", "PI"], axes={}, seeds=5)
    asked = replace(results, metrics=("drop_percent", "mark_percent", "jain_index"))
    data = data_of(render(asked))["tradeOff"]
    # Of marks, neither less nor more is better.
    assert [(price["name"], price["better"]) for price in data["prices"]] == [
        ("drop_percent", "less"),
        ("jain_index", "more"),
        ("goodput_bps", "more"),
    ]
    (cell, _) = asked.cells
    drops = list(asked.values("drop_percent", cell).values())
    assert [run[2] for run in data["prices"][0]["clouds"][0]["runs"]] == pytest.approx(drops, rel=1e-5)


def test_checks_that_passed_are_one_line():
    page = render(synthetic(arms=["DropTail", "PI"], axes={}, seeds=10))
    block = page.split('<h2 id="checks">')[1].split("</section>")[0]
    shown, folded = block.split("<details>")
    passed = len(re.findall('<li class="passed">', folded))
    assert passed > 5
    assert '<li class="passed">' not in shown
    assert re.search(rf"</span> {passed} (other )?checks passed</summary>", folded)


def test_rows_have_the_colours_of_their_arms(experiment):
    page = (experiment.path / "report.html").read_text(encoding="utf-8")
    table = re.search(r'<table id="cells".*?</table>', page, flags=re.S)[0]
    colors = [arm["color"] for arm in data_of(page)["arms"]]
    assert re.findall(r'class="chip".*?fill="(#\w+)"', table) == colors


BACKLOGS = """(() => {
  const figure = aqmlab.report.figures.find(({ name }) => name === "multiples");
  const plots = [...figure.body.querySelectorAll("svg.plot")];
  return {
    titles: plots.map((plot) => plot.querySelector(".panel-title").textContent),
    ticks: plots.map((plot) => {
      return [...plot.querySelectorAll("text[text-anchor=end]")].map((t) => t.textContent).join();
    }),
    rows: figure.rows.length,
  };
})()"""


@needs_chromium
def test_each_arm_has_a_chart_of_its_backlog_on_the_same_scale(experiment, tmp_path):
    seen = ask((experiment.path / "report.html").read_text(encoding="utf-8"), BACKLOGS, tmp_path)
    assert seen["titles"] == list(experiment.arms)
    assert len(set(seen["ticks"])) == 1
    # One row per sample: every 20 ms of 6 s, for two arms, and the header.
    assert seen["rows"] == pytest.approx(1 + 2 * 300, abs=4)
