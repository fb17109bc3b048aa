"""The report's response and page times: curves and tables show the metrics' values, as drawn by a browser."""

from __future__ import annotations

import re

import numpy as np
import pytest

from aqmlab.errors import UsageError
from aqmlab.metrics import Scope
from aqmlab.reports.render import render
from aqmlab.results.results import of_runs
from aqmlab.soundness import examine
from aqmlab.stats import estimate
from aqmlab.text.numbers import estimate_parts
from browser import ask, browse, data_of, needs_chromium
from synthetic_sweep import synthetic
from web_runs import ran, ran_one_web_at_a_time, ran_over_rates


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    return ran(tmp_path_factory.mktemp("requests"))


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    return ran_over_rates(tmp_path_factory.mktemp("swept"))


@pytest.fixture(scope="module")
def one_web(tmp_path_factory):
    return ran_one_web_at_a_time(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def page(experiment):
    return render(experiment)


def rows_of(page, number=0):
    """The texts of the cells in the table of response times, or of page times, row by row."""
    table = re.findall(r'<table class="answers waits">.*?</table>', page, flags=re.S)[number]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table, flags=re.S)[1:]
    texts = (re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, flags=re.S) for row in rows)
    return [[re.sub(r"<[^>]*>|&nbsp;", " ", text).split() for text in row] for row in texts]


@pytest.mark.parametrize("results", ["experiment", "swept"])
def test_curves_are_means_of_the_metric(results, request):
    results = request.getfixturevalue(results)
    (data,) = data_of(render(results))["waits"]
    assert [name for name, _ in data["classes"]] == ["*", "web", "api"]
    for number, cell in enumerate(results.cells):
        for (name, _), curves in zip(data["classes"], data["curves"], strict=True):
            curve = curves[number]
            for i in range(5, len(curve["t"]), 17):
                # Times and shares have four digits.
                around = []
                for t_s in (curve["t"][i] * 0.999, curve["t"][i] * 1.001):
                    found = results.values(
                        "response_time_within_percent",
                        cell,
                        Scope(class_name=name, parameters={"within": t_s}),
                    )
                    around.append(np.mean(list(found.values())) / 100)
                assert around[0] - 1e-4 <= 1 - curve["more"][i] <= around[1] + 1e-4
                assert curve["low"][i] <= curve["more"][i] <= curve["high"][i]


def test_the_table_has_a_row_for_each_arm_class_and_size_band(experiment, page):
    rows = rows_of(page)
    heads = [tuple(" ".join(text) for text in row[:3]) for row in rows]
    assert heads[:3] == [
        ("Uncongested", "web", "all sizes"),
        ("Uncongested", "web", "below 1kB"),
        ("Uncongested", "web", "1kB to 10kB"),
    ]
    assert len(set(heads)) == len(heads)
    # A class whose responses are in one band has one row.
    assert [head for head in heads if head[1] == "api"] == [
        (arm, "api", "all sizes") for arm in experiment.arms
    ]
    asked = {"web": ("CoDel", "web", "1kB to 10kB"), "area": ("DropTail", "web", "all sizes")}
    cell = {arm: experiment.select(arm)[0] for arm in experiment.arms}
    median = experiment.values(
        "response_time_median_s",
        cell["CoDel"],
        Scope(class_name="web", parameters={"at_least": 1e3, "below": 1e4}),
    )
    mean, half = estimate_parts(estimate(median.values()), "s")
    assert rows[heads.index(asked["web"])][5] == [mean, "±", half]
    area = experiment.values("response_time_cdf_area_percent", cell["DropTail"], Scope(class_name="web"))
    mean, half = estimate_parts(estimate(area.values()), "%")
    assert rows[heads.index(asked["area"])][8] == [mean, "±", half]


def test_a_sweep_has_a_row_for_each_cell_and_class(swept):
    rows = rows_of(render(swept))
    heads = [tuple(" ".join(text) for text in row[:3]) for row in rows]
    assert heads == [(c.label("rate"), c.arm, name) for c in swept.cells for name in ("web", "api")]


def test_a_class_that_some_cells_lack_has_no_rows_and_no_values_there(one_web):
    rows = rows_of(render(one_web))
    there = {"old": ("web", "api"), "new": ("pages",)}
    heads = [tuple(" ".join(text) for text in row[:3]) for row in rows]
    assert heads == [(c.label("kind"), c.arm, name) for c in one_web.cells for name in there[c.label("kind")]]
    for cell in one_web.cells:
        for name in ("web", "pages", "pages,web"):
            values = one_web.values("requests_completed", cell, Scope(class_name=name))
            defined = name == "pages,web" or name in there[cell.label("kind")]
            assert all((value is not None) == defined for value in values.values())
    with pytest.raises(UsageError, match=r"there is no class `page`; .*`pages`"):
        one_web.values("requests_completed", one_web.cells[0], Scope(class_name="page"))


def test_pages_have_a_section_of_their_own(one_web):
    page = render(one_web)
    requests, pages = data_of(page)["waits"]
    assert [name for name, _ in requests["classes"]] == ["*", "web", "api", "pages"]
    assert (pages["classes"], pages["until"]) == ([["pages", "pages"]], "20")
    there = [curve is not None for curve in pages["curves"][0]]
    assert there == [cell.label("kind") == "new" for cell in one_web.cells]
    cell, curve = one_web.cells[-1], pages["curves"][0][-1]
    for i in range(5, len(curve["t"]), 17):
        around = []
        for t_s in (curve["t"][i] * 0.999, curve["t"][i] * 1.001):
            found = one_web.values("page_time_within_percent", cell, Scope(parameters={"within": t_s}))
            around.append(np.mean(list(found.values())) / 100)
        assert around[0] - 1e-4 <= 1 - curve["more"][i] <= around[1] + 1e-4
    rows = rows_of(page, 1)
    assert [" ".join(row[1]) for row in rows] == list(one_web.arms)
    mean, half = estimate_parts(estimate(one_web.values("page_time_median_s", cell).values()), "s", like=1.0)
    assert rows[-1][5] == [mean, "±", half]


def test_without_requests_there_is_no_such_section():
    page = render(synthetic(seeds=3))
    assert "Response times" not in page
    assert "waits" not in data_of(page)


def test_the_arm_called_uncongested_is_the_reference(page, experiment):
    assert "In grey: Uncongested, the reference." in page
    assert data_of(page)["reference"] == 0
    others = of_runs(
        [run for run in experiment.runs if run.arm != "Uncongested"],
        arms=["DropTail", "CoDel"],
        seeds=experiment.seeds,
        path=experiment.path,
        title="t",
    )
    without = render(others)
    assert data_of(without)["reference"] is None
    assert "In grey:" not in without


def test_the_reference_is_compared_with_nobody(page, experiment):
    """The uncongested arm is only a reference: it is never the best arm, and deliberately has no
    bottleneck."""
    answer = re.search(r'class="answer">(.*?)</div>', page, flags=re.S)[1]
    assert answer.startswith("<p>CoDel cuts mean queueing delay from")
    assert "Uncongested" not in answer
    table = re.search(r'<table id="cells".*?</table>', page, flags=re.S)[0]
    rows = re.findall(r'<tr><th scope="row"[^>]*><svg.*?</svg>([^<]*)</th>(.*?)</tr>', table, flags=re.S)
    shaded = {arm for arm, cells in rows if 'class="best"' in cells}
    assert "CoDel" in shaded
    assert "Uncongested" not in shaded
    (bottleneck,) = (check for check in examine(experiment) if check.kind == "bottleneck")
    assert "Uncongested" not in {cell.arm for doubt in bottleneck.doubts for cell in doubt.cells}


DRAWN = """(() => {
  const of = (name) => document.querySelector(`[data-figure=${name}]`);
  const figure = (name) => aqmlab.report.figures.find((one) => one.name === name);
  const all = (name, which) => [...of(name).querySelectorAll(which)];
  const colors = (name) => all(name, ".curve").map((line) => line.getAttribute("stroke"));
  const before = colors("response-cdf");
  const cdf = figure("response-cdf");
  cdf.choose("of", "1");
  cdf.choose("until", "1");
  document.querySelector("input[data-arm='1']").click();
  return {
    before,
    tail: colors("response-ccdf"),
    grey: all("response-cdf", ".reference").length,
    ticks: all("response-cdf", ".axes text[text-anchor=middle]").map((text) => text.textContent),
    rows: cdf.rows,
    long: figure("response-ccdf").rows,
    beyond: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  };
})()"""


@needs_chromium
@pytest.mark.parametrize("width", [1280, 420])
def test_a_browser_draws_classes_times_and_arms_that_are_chosen(experiment, page, tmp_path, width):
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    _, console, fetched = browse(file, tmp_path, width)
    assert console == []
    assert fetched <= {f"file://{file}"}
    drawn = ask(page, DRAWN, tmp_path, width)
    # Three arms are drawn, the reference first and in grey; then one of them is switched off.
    assert len(drawn["before"]) == 3
    assert len(drawn["tail"]) == 2
    assert drawn["grey"] == 1
    assert drawn["before"][0] == "#8a8f98"
    assert drawn["ticks"][-1] in ("1", "1.0")
    assert drawn["beyond"] <= 0
    head, *rows = drawn["rows"]
    assert head == ["class", "arm", "response_time_s", "share", "low_95", "high_95", "n"]
    assert {row[1] for row in rows} == {"Uncongested", "CoDel"}
    assert all(row[0] == "web" and row[4] <= row[3] <= row[5] and row[6] == 3 for row in rows)
    of_codel = [row for row in rows if row[1] == "CoDel"]
    t_s, share = of_codel[len(of_codel) // 2][2:4]
    (cell,) = experiment.select("CoDel")
    found = experiment.values(
        "response_time_within_percent", cell, Scope(class_name="web", parameters={"within": t_s})
    )
    assert share == pytest.approx(np.mean(list(found.values())) / 100, abs=0.005)
    assert drawn["long"][0][3] == "share_longer"
    assert min(row[3] for row in drawn["long"][1:]) > 0
