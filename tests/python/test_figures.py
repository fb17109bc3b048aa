"""Figures of a report: the packing of their numbers, and the charts that a browser draws."""

from __future__ import annotations

import base64
import csv
import gzip
import math
import sys
from array import array
from itertools import pairwise
from pathlib import Path

import pytest

from aqmlab.figures.kinds import KINDS, SWEEP_KINDS, FigureKind, kinds_text
from aqmlab.figures.looks import UNIT_MARKS, color
from aqmlab.figures.model import Axis, Box, Entry, Line, Look, Panel, Span, alone
from aqmlab.reports.charts import chart_json, charts_json
from aqmlab.reports.courses import CHARTS, _Packed
from aqmlab.reports.page import SCRIPTS, json_in_html, resource
from aqmlab.reports.render import render
from browser import ask, browse, data_of, needs_chromium

EVIL = "Cost </script><b>"
ARMS = ("RED", "PI")


def one_of_each():
    dashed = Look(0, (6, 3))
    flows, drops = Axis("flows", log=True), Axis("drops [%]", log=True)
    line = Line("RED", [1, 10, 1000], [0.01, 1, 40], dashed, [0.005, 0.9, 30], [0.02, 1.1, 50])
    cost = alone("", Panel(EVIL, flows, drops, (line,)), notes=(Entry("RED", dashed),))
    marks = Look(1, mark="triangle", line=False)
    panel = Panel(
        "Places", Axis("x"), Axis("y", begin=0.0, end=4.0), (Line("PI, ftp", [1, 2], [3, 1], marks),)
    )
    places = alone("", panel, notes=(Entry("ftp", Look("", mark="triangle", line=False)),))
    empty = alone("", Panel("Empty", Axis("x"), Axis("y"), ()))
    return {"cost": cost, "places": places, "empty": empty}


def packed_courses():
    """One run with two flows, a stall, and a gap in its backlog."""
    packed = _Packed()
    queue = {"t": [1.0, 2.0, 3.0, 4.0], "backlog": [5.0, None, 7.0, 8.0]}
    flows = [{"t": [1.0, 3.0], "cwnd": [2.0, 4.0]}, {"t": [2.0], "cwnd": [9.0]}]
    tables = {"queue": [queue], "law": [], "flows": flows, "mean": [{"t": [1.0, 3.0], "cwnd": [2.0, 6.5]}]}
    placed = {name: list(map(packed.table, of)) for name, of in tables.items()}
    run = {"cell": 0, "seed": 7, "tables": placed, "stalls": [[1.5, 1.75]]}
    numbers = {"warmup": 1, "end": 4, "first": 0, "packed": packed.text()}
    return {"charts": CHARTS, "runs": [run], **numbers}


def page_of():
    data = {
        "axes": [],
        "arms": [
            {"name": arm, "color": color(i), "dash": [], "mark": UNIT_MARKS["circle"]}
            for i, arm in enumerate(ARMS)
        ],
        "metrics": [],
        "cells": [{"at": [], "arm": i} for i in range(len(ARMS))],
        **{"estimates": {}, "pairs": [], "differences": {}, "tradeOff": None, "cdf": []},
        "charts": charts_json(one_of_each()),
        "courses": packed_courses(),
    }
    figures = "".join(
        f'<div class="figure" data-figure="{name}"></div>' for name in ("cost", "places", "courses")
    )
    boxes = "".join(f'<input type="checkbox" data-arm="{i}" checked>' for i in range(len(ARMS)))
    scripts = "".join(f"<script>{resource(name)}</script>" for name in SCRIPTS)
    return (
        f'<!doctype html><meta charset="utf-8"><style>{resource("style.css")}</style>'
        f"<body><main>{boxes}{figures}</main>"
        f'<script type="application/json" id="report-data">{json_in_html(data)}</script>{scripts}</body>'
    )


def test_columns_of_numbers_are_packed_one_after_the_other():
    packed = _Packed()
    first = packed.table({"t": [0.0, 30.0], "y": [1.0, None]})
    second = packed.table({"t": [math.pi]})
    assert (first, second) == ({"t": [0, 2], "y": [2, 2]}, {"t": [4, 1]})
    numbers = array("f", gzip.decompress(base64.b64decode(packed.text())))
    if sys.byteorder == "big":
        numbers.byteswap()
    assert numbers[:3].tolist() == [0, 30, 1]
    assert math.isnan(numbers[3])
    assert numbers[4] == pytest.approx(math.pi, rel=1e-7)


def test_a_chart_without_anything_to_show_is_left_out():
    assert list(charts_json({**one_of_each(), "none": None})) == ["cost", "places"]


def test_a_page_gets_what_a_figure_shows_and_refuses_what_it_cannot_draw():
    line = Line("p", [0, 1], [2.0, float("nan")], Look("#123456"))
    axis = Axis("size", labels=("small", "large"))
    (panel,) = chart_json(alone("", Panel("P", axis, Axis("p"), (line, Span("load", 0.25, 0.5)))))
    assert panel["x"]["labels"] == ("small", "large")
    assert panel["series"] == [{"color": "#123456", "name": "p", "x": [0, 1], "y": [2.0, None], "dash": []}]
    assert panel["spans"] == [[0.25, 0.5]]
    with pytest.raises(TypeError, match="no plain chart with Box"):
        chart_json(alone("", Panel("B", axis, axis, (Box("RED", 0, 1, 0, [1.0]),))))


def test_every_kind_is_there_and_described():
    text = (Path(__file__).parents[2] / "docs" / "figures.md").read_text(encoding="utf-8")
    for name, kind in {**KINDS, **SWEEP_KINDS}.items():
        assert f"`{name}`" in text
        assert f" {name}" in f" {kinds_text()}"
        for function in filter(None, (kind.figure, kind.numbers, kind.page)):
            assert callable(kind._function(function))


def test_a_kind_without_a_place_on_the_page_gets_a_section(experiment, monkeypatch):
    shown = alone("", Panel("The middle", Axis("x"), Axis("y"), (Line("RED", [1, 2], [3, 1], Look(0)),)))
    monkeypatch.setattr("aqmlab.figures.over_time.of_answer", lambda _answer: shown, raising=False)
    kinds = {**KINDS, "middle": FigureKind("over_time", "series", page="of_answer")}
    monkeypatch.setattr("aqmlab.reports.render.KINDS", kinds)
    page = render(experiment)
    assert '<h2 id="middle">The middle</h2><div class="figure" data-figure="middle"></div>' in page
    assert data_of(page)["charts"]["middle"] == chart_json(shown)


def test_no_text_ends_the_script_that_it_stands_in():
    assert "<" not in json_in_html(charts_json(one_of_each()))


@needs_chromium
def test_a_browser_draws_every_kind_without_errors(tmp_path):
    file = tmp_path / "page.html"
    file.write_text(page_of(), encoding="utf-8")
    dom, console, _ = browse(file, tmp_path)
    assert console == []
    # The only series over time in this run are the backlog and the congestion windows.
    assert dom.count('class="plot') == 4


DRAWN = """(() => {
  const plot = (name, at = 0) => document.querySelectorAll(`[data-figure=${name}] svg.plot`)[at];
  const texts = (of, which) => [...of.querySelectorAll(which)].map((text) => text.textContent);
  const rows = Object.fromEntries(aqmlab.report.figures.map(({ name, rows }) => [name, csvFile.text(rows)]));
  const ticks = (side) => [...plot("cost").querySelectorAll(`.axes text[text-anchor=${side}]`)];
  return {
    rows,
    titles: texts(document, ".panel-title"),
    decades: ticks("middle").map((text) => [Number(text.textContent), Number(text.getAttribute("x"))]),
    percents: ticks("end").map((text) => [Number(text.textContent), Number(text.getAttribute("y"))]),
    bold: document.querySelectorAll("main b").length,
    curve: plot("cost").querySelector(".curve").getAttribute("points"),
    dashes: plot("cost").querySelector(".curve").getAttribute("stroke-dasharray"),
    marks: [...plot("places").querySelectorAll(".mark")].map((mark) => mark.getAttribute("transform")),
    pieces: plot("courses").querySelector(".course").getAttribute("d").split("M").length - 1,
    flows: plot("courses", 1).querySelectorAll(".course").length,
    stall: ["x", "width"].map((name) => Number(plot("courses").querySelector(".stall").getAttribute(name))),
    width: aqmlab.report.figures.find(({ name }) => name === "courses").width,
  };
})()"""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return ask(page_of(), DRAWN, tmp_path_factory.mktemp("drawn"))


def interpolated(ticks, value):
    """The pixel coordinate of a value on a logarithmic axis, computed from two ticks of the axis."""
    (a, x), (b, y) = ticks[0], ticks[-1]
    return x + (y - x) * math.log(value / a) / math.log(b / a)


@needs_chromium
def test_points_lie_where_the_ticks_of_a_logarithmic_axis_say(drawn):
    decades, percents = drawn["decades"], [(value, y - 4) for value, y in drawn["percents"]]
    assert [value for value, _ in decades] == [1, 10, 100, 1000]
    steps = [b - a for (_, a), (_, b) in pairwise(decades)]
    assert steps == pytest.approx([steps[0]] * 3)
    points = [tuple(map(float, point.split(","))) for point in drawn["curve"].split()]
    for (x, y), (flows, share) in zip(points, [(1, 0.01), (10, 1), (1000, 40)], strict=True):
        assert x == pytest.approx(interpolated(decades, flows), abs=0.1)
        assert y == pytest.approx(interpolated(percents, share), abs=0.1)
    assert drawn["dashes"] == "6 3"


@needs_chromium
def test_titles_are_texts_and_gaps_stay_gaps(drawn):
    assert drawn["titles"][0] == EVIL
    assert drawn["bold"] == 0
    assert drawn["titles"][2:] == ["Backlog and the law's average [packets]", "Congestion windows [segments]"]
    assert drawn["pieces"] == 2
    assert drawn["flows"] == 2 + 1
    assert len(drawn["marks"]) == 2
    second = (drawn["width"] - 62) / 4
    assert drawn["stall"] == pytest.approx([52 + 1.5 * second, 0.25 * second])


@needs_chromium
def test_a_chart_saves_its_numbers_as_csv(drawn):
    assert list(csv.reader(drawn["rows"]["cost"].splitlines())) == [
        ["series", "flows", "drops [%]", "low_95", "high_95"],
        ["RED", "1", "0.01", "0.005", "0.02"],
        ["RED", "10", "1", "0.9", "1.1"],
        ["RED", "1000", "40", "30", "50"],
    ]
    assert list(csv.reader(drawn["rows"]["places"].splitlines()))[1:] == [
        ["PI, ftp", "1", "3"],
        ["PI, ftp", "2", "1"],
    ]
    rows = [row[3:] for row in csv.reader(drawn["rows"]["courses"].splitlines())]
    assert rows[1:5] == [
        ["backlog", "1", "5"],
        ["backlog", "2", ""],
        ["backlog", "3", "7"],
        ["backlog", "4", "8"],
    ]
    assert rows[5:] == [
        *(["a flow 1", "1", "2"], ["a flow 1", "3", "4"], ["a flow 2", "2", "9"]),
        *(["mean of all flows", "1", "2"], ["mean of all flows", "3", "6.5"]),
        *(["stall", "1.5", ""], ["stall", "1.75", ""]),
    ]


REACHED = """(async () => {
  const tip = () => document.getElementById("tip")?.textContent ?? "";
  const press = (plot, key) => {
    plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    return tip();
  };
  const of = (name) => document.querySelectorAll(`[data-figure=${name}] svg.plot`);
  const [backlog, windows] = of("courses");
  const keys = [press(backlog, "ArrowRight"), press(backlog, "ArrowRight"), press(backlog, "ArrowLeft")];
  const lines = document.querySelectorAll(".cursor").length;
  const gone = press(backlog, "Escape");
  const place = of("places")[0], box = place.getBoundingClientRect();
  const mark = place.querySelector(".mark").getBoundingClientRect();
  const at = { clientX: mark.x + mark.width / 2, clientY: mark.y + mark.height / 2, bubbles: true };
  place.dispatchEvent(new PointerEvent("pointermove", at));
  const pointed = tip();
  document.querySelector("input[data-arm='1']").click();
  const without = of("places")[0].querySelectorAll(".mark").length;
  const left = document.querySelectorAll(".cursor").length;
  return { keys, lines, gone, left, window: press(windows, "ArrowRight"), pointed, without };
})()"""


@needs_chromium
def test_keys_and_pointer_reach_every_mark(tmp_path):
    reached = ask(page_of(), REACHED, tmp_path)
    assert reached["keys"] == ["1 s\nbacklog 5", "3 s\nbacklog 7", "1 s\nbacklog 5"]
    assert (reached["lines"], reached["gone"], reached["left"]) == (2, "", 0)
    assert reached["window"] == "1 s\nmean of all flows 2"
    assert reached["pointed"] == "PI, ftp\nx 1\ny 3"
    assert reached["without"] == 0
