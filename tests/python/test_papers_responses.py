"""Figures of papers that show response times: their cells and their numbers."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from aqmlab.claims import Names
from aqmlab.errors import ScenarioError
from aqmlab.metrics import Scope
from aqmlab.papers.figures import draw_figure
from aqmlab.papers.folder import read_paper
from aqmlab.papers.paper import RESPONSES, SCATTER, PaperFigure
from aqmlab.papers.required_cells import required_cells
from aqmlab.papers.response_figure import (
    cell_curves,
    response_dots,
    response_figure,
    response_lines,
    scatter_figure,
)
from aqmlab.plots.render import render
from web_runs import RATES, ran_over_rates

HEAD = {"id": "2", "title": "Response times", "experiment": "web.toml"}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    return ran_over_rates(tmp_path_factory.mktemp("swept"))


def figure_of(kind="response_cdf", **content):
    return PaperFigure("2", "Response times", "web.toml", kind, {**HEAD, "kind": kind, **content})


def curves(swept, **content):
    return [
        (curve.label, curve.cell.arm, curve.cell.label("rate"), curve.reference)
        for curve in cell_curves(figure_of(**content), Names.of_results(swept))
    ]


def test_arms_are_curves_and_the_reference_comes_last(swept):
    assert curves(swept, where={"rate": "20/s"}, reference="Uncongested") == [
        ("DropTail", "DropTail", "20/s", False),
        ("CoDel", "CoDel", "20/s", False),
        ("Uncongested", "Uncongested", "20/s", True),
    ]


def test_labels_of_an_axis_are_curves(swept):
    reference = {"arm": "Uncongested", "rate": "5/s", "label": "idle"}
    assert curves(swept, curves="rate", arms=["CoDel"], reference=reference) == [
        *((rate, "CoDel", rate, False) for rate in RATES),
        ("idle", "Uncongested", "5/s", True),
    ]
    assert [label for label, *_ in curves(swept, curves="rate", arms=["CoDel", "DropTail"])] == [
        *(f"CoDel, {rate}" for rate in RATES),
        *(f"DropTail, {rate}" for rate in RATES),
    ]


def test_curves_are_listed_cell_by_cell(swept):
    listed = [
        {"label": "few", "arm": "CoDel", "rate": "5/s"},
        {"label": "many", "arm": "DropTail", "rate": "20/s"},
    ]
    assert curves(swept, curves=listed) == [
        ("few", "CoDel", "5/s", False),
        ("many", "DropTail", "20/s", False),
    ]


@pytest.mark.parametrize("kind", [kind for kind in RESPONSES if kind != SCATTER])
def test_a_figure_is_drawn_with_its_numbers(swept, kind, tmp_path):
    figure = figure_of(kind, where={"rate": "20/s"}, reference="Uncongested", until="1s", **{"class": "web"})
    file = draw_figure(figure, swept, tmp_path, "0.0")
    text = file.read_text()
    assert "Figure 2: Response times" in text
    assert "Uncongested (reference)" in text
    with file.with_suffix(".csv").open() as rows:
        of_codel = [row for row in csv.DictReader(rows) if row["curve"] == "CoDel"]
    (cell,) = swept.select("CoDel", {"rate": "20/s"})
    row = of_codel[len(of_codel) // 2]
    shares = swept.values(
        "response_time_within_percent",
        cell,
        Scope(class_name="web", parameters={"within": float(row["response_time_s"])}),
    )
    assert 100 * float(row["share"]) == pytest.approx(np.mean(list(shares.values())), abs=1e-5)
    assert int(row["n"]) == 2
    axes = render(response_figure(figure, "t", response_lines(figure, swept))).axes[0]
    assert axes.get_xlim()[1] == 1.0
    assert axes.get_yscale() == ("log" if kind == "response_ccdf" else "linear")


def test_a_scatter_has_the_requests_of_the_sample_within_its_axes(swept, tmp_path):
    asked = {"where": {"rate": "20/s"}, "arms": ["DropTail", "CoDel"], "class": "web"}
    figure = figure_of(SCATTER, **asked, below="20kB", until="600ms")
    file = draw_figure(figure, swept, tmp_path, "0.0")
    assert "Figure 2: Response times" in file.read_text()
    with file.with_suffix(".csv").open() as rows:
        dots = [row for row in csv.DictReader(rows) if row["curve"] == "CoDel"]
    (cell,) = swept.select("CoDel", {"rate": "20/s"})
    sample = swept.tables.rows(
        "request_sample",
        "response_bytes, response_time_ns",
        "WHERE class = 'web' AND response_bytes < 20000 AND response_time_ns < 600e6",
        swept.runs_of(cell)[:1],
    )
    assert 0 < len(sample) == len(dots)
    assert sorted(int(row["response_bytes"]) for row in dots) == sorted(size for size, _ in sample)
    first, second = render(scatter_figure(figure, "t", response_dots(figure, swept))).axes
    assert (first.get_title(), second.get_title()) == ("DropTail", "CoDel")
    assert first.get_xlim() == second.get_xlim() == (0, 20)
    assert first.get_ylim() == (0, 0.6)


def test_a_scatter_without_a_request_within_its_axes_is_refused(swept, tmp_path):
    figure = figure_of(SCATTER, where={"rate": "20/s"}, until="1us", **{"class": "web"})
    with pytest.raises(ScenarioError, match="has no request within the axes"):
        draw_figure(figure, swept, tmp_path, "0.0")
    assert not list(tmp_path.iterdir())


def test_only_the_cells_of_curves_are_run(swept):
    names = Names.of_results(swept)
    figure = figure_of(where={"rate": "5/s"}, reference="Uncongested", arms=["CoDel"], **{"class": "web"})
    found = required_cells(names, [figure])
    assert (found.count, found.of) == (2, 6)
    assert {cell.arm for cell in found.cells} == {"CoDel", "Uncongested"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"arms": ["Codel"], "where": {"rate": "5/s"}}, "did you mean `CoDel`"),
        ({"reference": "Uncongest", "where": {"rate": "5/s"}}, "did you mean `Uncongested`"),
        ({"where": {"rate": "6/s"}}, "there is no value of `traffic.web.rate` `6/s`"),
        ({"arms": ["CoDel"]}, "shows one cell, but several match: also set rate"),
        ({"curves": [{"arm": "CoDel", "rate": "5/s"}]}, "a curve has no 'label'; write `label`, `arm`"),
        ({"where": {"rate": "5/s"}, "until": "2"}, "`until` is `2`; write a time"),
        ({"where": {"rate": "5/s"}, "below": "2s"}, "`below` is `2s`; write an amount of data: `100kB`"),
        ({"where": {"rate": "5/s"}, "class": "wob"}, "there is no class `wob`; did you mean `web`"),
    ],
)
def test_what_is_not_there_is_named_before_anything_is_run(swept, content, message):
    with pytest.raises(ScenarioError, match="figure 2: ") as caught:
        cell_curves(figure_of(**content), Names.of_results(swept))
    assert message in str(caught.value)


def test_a_key_of_another_kind_is_refused(tmp_path):
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "paper.toml").write_text(
        'key = "toy"\ntitle = "t"\nauthors = ["a"]\nyear = 2001\npublished = "p"\nsummary = "s"\n'
        'cost = { full = "1 s", quick = "1 s" }\n[reading]\nfixed = "f"\n'
        '[[experiment]]\nfile = "web.toml"\ntitle = "Web"\nfigures = []\ntables = []\nquick = {}\n'
        '[[figure]]\nid = "2"\ntitle = "T"\nkind = "response_cdf"\nexperiment = "web.toml"\n'
        'y = "drop_percent"\n'
    )
    (folder / "expected.toml").write_text("")
    (folder / "web.toml").write_text("")
    with pytest.raises(ScenarioError, match=r"figure `2`: .*`y`"):
        read_paper(folder)
