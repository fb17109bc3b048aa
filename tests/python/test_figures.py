"""Figures of a report: documents that Bokeh itself reads back, and charts that a browser draws."""

from __future__ import annotations

import json
import math
import re
from array import array

import bokeh
from bokeh.document import Document

from aqmlab.reports.bokeh_json import Model, bokehjs, document
from aqmlab.reports.figures import (
    ChartAxis,
    Figure,
    charts_json,
    cursor,
    fitted,
    interval,
    shades,
    source,
)
from aqmlab.reports.page import json_in_html, resource
from browser import ask, browse, needs_chromium

BLUE = "#1f83c7"


def read_back(figures):
    """The document as Bokeh understands it."""
    content = json.loads(json.dumps(charts_json(figures)["document"]))
    config = {"type": "object", "name": "DocumentConfig", "id": "config"}
    return Document.from_json(content | {"version": bokeh.__version__, "config": config})


def one_of_each():
    shared, line = interval(0, 60, fixed=True), cursor()
    course = source(
        {"t": [0, 30, 60], "y": [1, 2, None], "low": [0.5, 1, 2], "high": [2, 3, 4]}, name="course"
    )
    many = source({"t": [[0, 60], [0, 30]], "y": [[1, 1], [2, 2]]})
    over_time = Figure("Over time </script>", x=ChartAxis("time [s]", range=shared), height=190)
    over_time.band(course, "t", "low", "high", color=BLUE, name="interval")
    over_time.line(course, "t", "y", color=BLUE, label="RED", dash="dashed")
    over_time.lines(many, "t", "y", color=BLUE, alpha=0.3, name="a flow")
    over_time.upright(10)
    bounded = Figure("Bounded", x=ChartAxis(range=shared), y=ChartAxis(range=fitted()))
    bounded.line(course, "t", "low", color=BLUE, label="low")
    for figure in (over_time, bounded):
        figure.follow(line)
    bounded.carry([source({"t": array("d", [math.pi])}, name="other")])
    loads = source(
        {"n": [1, 1000], "p": [0.01, 40], "low": [0.005, 30], "high": [0.02, 50], "who": ['a,"b"', "c"]}
    )
    cost = Figure("Cost", x=ChartAxis("flows", scale="log"), y=ChartAxis("drops [%]", scale="log"))
    cost.bars(loads, "n", "low", "high", color=BLUE, name="interval")
    cost.scatter(loads, "n", "p", color=BLUE, marker="triangle", label="drops", tips=[("who", "@who")])
    cells = source({"limit": ["10p", "20p"], "rate": ["1Mbit", "1Mbit"], "delay": [3, None]})
    heat = Figure(
        "Delay", x=ChartAxis("limit", factors=["10p", "20p"]), y=ChartAxis("rate", factors=["1Mbit"])
    )
    heat.heat(cells, "limit", "rate", "delay", low=0, high=9, unit="ms")
    return {"chart-time": over_time, "chart-bounded": bounded, "chart-cost": cost, "chart-heat": heat}


def test_bokeh_reads_every_kind_of_figure():
    read = {figure.name: figure for figure in read_back(one_of_each()).roots}
    kinds = {name: [type(mark.glyph).__name__ for mark in figure.renderers] for name, figure in read.items()}
    assert kinds == {
        "chart-time": ["VArea", "Line", "MultiLine"],
        "chart-bounded": ["Line"],
        "chart-cost": ["Segment", "Scatter"],
        "chart-heat": ["Rect"],
    }
    over_time, bounded, cost, heat = read.values()
    assert over_time.x_range is bounded.x_range
    assert tuple(over_time.x_range.bounds) == (0, 60)
    assert over_time.renderers[0].data_source is over_time.renderers[1].data_source
    assert over_time.title.text == "Over time </script>"
    assert over_time.renderers[1].glyph.line_dash == [6]
    assert [tag.name for tag in bounded.tags] == ["other"]
    assert (type(cost.x_scale).__name__, type(cost.below[0]).__name__) == ("LogScale", "LogAxis")
    assert heat.x_range.factors == ["10p", "20p"]
    assert heat.renderers[0].glyph.fill_color.transform is heat.right[0].color_mapper
    # Each mark has one set of tips: its own, or those of the figure.
    tips = [tool for tool in cost.toolbar.tools if type(tool).__name__ == "HoverTool"]
    assert [[mark.name for mark in tool.renderers] for tool in tips] == [["drops"], ["interval"]]


def test_numbers_arrive_as_they_were():
    over_time, bounded, _, heat = read_back(one_of_each()).roots
    course = over_time.renderers[1].data_source.data
    assert course["t"].tolist() == [0, 30, 60]
    assert course["y"].tolist()[:2] == [1, 2]
    assert math.isnan(course["y"][2])
    assert [line.tolist() for line in over_time.renderers[2].data_source.data["t"]] == [[0, 60], [0, 30]]
    assert bounded.tags[0].data["t"].tolist() == [math.pi]
    assert list(heat.renderers[0].data_source.data["limit"]) == ["10p", "20p"]


def test_a_document_holds_each_model_once():
    shared = Model("Range1d", start=0.0, end=float("inf"))
    written = document({"a": Model("Figure", x_range=shared), "b": Model("Figure", x_range=shared)})
    first, second = written["document"]["roots"]
    assert first["attributes"]["x_range"]["attributes"]["end"] == {"type": "number", "value": "+inf"}
    assert second["attributes"]["x_range"] == {"id": first["attributes"]["x_range"]["id"]}
    assert written["places"] == {first["id"]: "a", second["id"]: "b"}


def test_no_text_ends_the_script_that_it_stands_in():
    written = json_in_html(charts_json(one_of_each()))
    assert "<" not in written
    assert "Over time </script>" in json.dumps(json.loads(written))


def test_shades_grow_lighter():
    lightness = [
        sum(share * int(color[i : i + 2], 16) for i, share in ((1, 0.299), (3, 0.587), (5, 0.114)))
        for color in shades()
    ]
    assert lightness == sorted(lightness)
    assert len(set(shades())) == 61


def page_of(figures):
    csv, charts, style = map(resource, ("csv.js", "charts.js", "style.css"))
    places = "".join(f'<div class="chart"><div id="{place}"></div></div>' for place in figures)
    return (
        f'<!doctype html><meta charset="utf-8"><style>{style}</style><body><main>{places}</main>'
        f'<script type="application/json" id="charts">{json_in_html(charts_json(figures))}</script>'
        f"<script>{bokehjs()}</script><script>{csv}</script><script>{charts}</script></body>"
    )


SAVED = """Object.fromEntries(["chart-time", "chart-cost", "chart-heat"].map(
  (name) => [name, charts.csv(charts.model(name))]))"""


@needs_chromium
def test_a_browser_draws_every_kind_without_errors(tmp_path):
    file = tmp_path / "page.html"
    file.write_text(page_of(one_of_each()), encoding="utf-8")
    dom, console, _ = browse(file, tmp_path)
    assert any("document idle" in line for line in console), console
    assert [line for line in console if "INFO:CONSOLE" not in line or "rror" in line] == []
    assert dom.count("bk-Figure") >= 4
    assert dom.count('class="csv"') == 4


@needs_chromium
def test_a_chart_saves_its_numbers_as_csv(tmp_path):
    saved = ask(page_of(one_of_each()), SAVED, tmp_path)
    assert saved["chart-time"].splitlines() == [
        "series,time [s],Over time </script>",
        *("interval low,0,0.5", "interval low,30,1", "interval low,60,2"),
        *("interval high,0,2", "interval high,30,3", "interval high,60,4"),
        *("RED,0,1", "RED,30,2", "RED,60,"),
        *("a flow 1,0,1", "a flow 1,60,1", "a flow 2,0,2", "a flow 2,30,2"),
    ]
    assert saved["chart-cost"].splitlines()[-2:] == ["drops,1,0.01", "drops,1000,40"]
    assert saved["chart-heat"].splitlines() == [
        "series,limit,rate,value",
        "delay,10p,1Mbit,3",
        "delay,20p,1Mbit,",
    ]


HOVER = """(async () => {
  const view = Bokeh.index.get(charts.model("chart-cost"));
  const surface = view.canvas_view.events_el, frame = view.frame;
  const box = surface.getBoundingClientRect();
  const at = { clientX: box.x + frame.x_scale.compute(1000), clientY: box.y + frame.y_scale.compute(40) };
  const mouse = { ...at, bubbles: true, pointerType: "mouse", pointerId: 1, isPrimary: true };
  for (const type of ["pointerover", "pointermove"]) surface.dispatchEvent(new PointerEvent(type, mouse));
  await new Promise((resume) => setTimeout(resume, 500));
  const texts = [];
  const walk = (node) => {
    if (node.classList?.contains("bk-tooltip-content")) texts.push(node.textContent);
    for (const child of [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes]) walk(child);
  };
  walk(document.body);
  return texts;
})()"""


@needs_chromium
def test_hovering_over_a_mark_tells_of_it(tmp_path):
    told = ask(page_of(one_of_each()), HOVER, tmp_path)
    assert any(re.fullmatch(r"who:?\s*c\s*", text) for text in told), told
    assert any("interval" in text and "1000.00" in text for text in told), told
