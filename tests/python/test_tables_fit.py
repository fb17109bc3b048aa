"""Tables on narrow terminals: they contain every name and number that programs receive."""

from __future__ import annotations

import copy
import json

import pytest

import aqmlab
from aqmlab.text.numbers import estimate_parts
from aqmlab.text.tables import Column, Grid, Span, cell_width, text_of, text_width
from conftest import SMALL
from sweeping import TINY

NAMES = [f"adaptive-red-with-ecn-of-a-long-name-{i:02}" for i in range(12)]
WIDTHS = (60, 80, 200)


def twelve_arms(scenario):
    return copy.deepcopy(scenario) | {
        "duration": "2s",
        "warmup": "500ms",
        "arm": [{"name": name, "topology.queue.limit": f"{10 + i}p"} for i, name in enumerate(NAMES)],
    }


@pytest.fixture(scope="module")
def twelve(tmp_path_factory):
    asked = twelve_arms(SMALL) | {
        "claim": [
            {
                "name": f"claim-with-a-long-name-{i}",
                "expect": f"goodput_bps{{arm={name}}} > 1000kbit",
                "strength": "soft",
            }
            for i, name in enumerate(NAMES)
        ]
    }
    return aqmlab.run(asked, output=tmp_path_factory.mktemp("runs") / "twelve", report=False)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    asked = twelve_arms(TINY) | {"runs": 2, "claim": []}
    done = aqmlab.sweep(asked, store=tmp_path_factory.mktemp("store"), jobs=2, report=False)
    done.wait()
    return done.path


def words(text):
    """The words of a text, without the rules below headers and between rows."""
    return set(text.replace("─", " ").split())


def lacking(wanted, text):
    return {word for each in wanted for word in str(each).split()} - words(text)


def means(metrics, values):
    """Mean and half-width of each metric, formatted as in tables."""
    units = {metric["name"]: metric["unit"] for metric in metrics}
    for name, value in values.items():
        if value["mean"] is not None:
            est = aqmlab.Estimate(value["mean"], value["half_width"], value["n"])
            mean, half = estimate_parts(est, units[name])
            yield mean
            yield f"±{half}" if half else mean


def fits(text, width):
    return [line for line in text.splitlines() if cell_width(line.rstrip()) > width]


@pytest.mark.parametrize("width", WIDTHS)
def test_answer_of_twelve_arms(twelve, aqmlab_cli, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    told = json.loads(aqmlab_cli("report", twelve.path, "--json").stdout)
    seen = aqmlab_cli("report", twelve.path).stdout
    wanted = [*NAMES, *(text for arm in told["cells"] for text in means(told["metrics"], arm["values"]))]
    assert len(wanted) > 12 * 15
    assert lacking(wanted, seen) == set()
    assert fits(seen, width) == []
    assert "…" not in seen


@pytest.mark.parametrize("width", WIDTHS)
def test_sweep_of_twelve_arms(swept, aqmlab_cli, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    metrics = [
        word
        for name in ("goodput_bps", "queueing_delay_p99_s", "drop_percent")
        for word in ("--metric", name)
    ]
    told = json.loads(aqmlab_cli("report", swept, *metrics, "--json").stdout)
    seen = aqmlab_cli("report", swept, *metrics).stdout
    labels = [label for cell in told["cells"] for label in (cell["arm"], *cell["settings"].values())]
    figures = [text for cell in told["cells"] for text in means(told["metrics"], cell["values"])]
    assert len(told["cells"]) == 48
    assert lacking([*labels, *figures], seen) == set()
    assert fits(seen, width) == []
    assert "…" not in seen


@pytest.mark.parametrize("width", WIDTHS)
def test_comparison_of_long_names(twelve, swept, aqmlab_cli, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    for path in (twelve.path, swept):
        sides = (f"{path}:{NAMES[0]}", f":{NAMES[11]}")
        found = aqmlab.compare(*sides)
        seen = aqmlab_cli("compare", *sides).stdout
        assert len(found.compared) >= 3
        assert lacking([cell for one in found.compared for cell in one.texts()], seen) == set()
        assert lacking([NAMES[0], NAMES[11]], seen) == set()
        assert lacking([one.case for one in found.compared], seen) == set()
        assert "…" not in seen


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "command", [("aqm", "list"), ("aqm", "show", "red"), ("metrics",), ("paper", "list"), ("doctor",)]
)
def test_catalogues(aqmlab_cli, monkeypatch, command, width):
    monkeypatch.setenv("COLUMNS", str(width))
    told = json.loads(aqmlab_cli(*command, "--json").stdout)
    seen = aqmlab_cli(*command).stdout
    wanted = {
        "aqm list": lambda: [
            entry[key] for entry in told for key in ("name", "title", "summary", "maturity")
        ],
        "aqm show red": lambda: [
            p[key] for p in told["params"] for key in ("name", "values", "default", "source")
        ],
        "metrics": lambda: [entry[key] for entry in told for key in ("name", "unit", "definition")],
        "paper list": lambda: [paper[key] for paper in told["papers"] for key in ("key", "title")],
        "doctor": lambda: [finding[key] for finding in told["findings"] for key in ("severity", "name")],
    }[" ".join(command)]()
    assert lacking(wanted, seen) == set()
    assert fits(seen, width) == []
    assert "…" not in seen


@pytest.mark.parametrize("width", WIDTHS)
def test_scenario_of_twelve_arms(aqmlab_cli, monkeypatch, tmp_path, width):
    import tomli_w

    file = tmp_path / "twelve.toml"
    file.write_text(tomli_w.dumps(twelve_arms(TINY) | {"claim": []}))
    monkeypatch.setenv("COLUMNS", str(width))
    told = json.loads(aqmlab_cli("show", file, "--json").stdout)
    seen = aqmlab_cli("show", file).stdout
    parameters = [
        p[key] for arm in told["arms"] for p in arm["parameters"] for key in ("path", "value", "origin")
    ]
    labels = [label for axis in told["axes"] for label in axis["labels"]]
    found = words(seen.replace(",", " "))
    assert {word for each in (*NAMES, *parameters) for word in each.replace(",", " ").split()} <= found
    assert set(labels) <= found
    assert fits(seen, width) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_claims_of_long_names(twelve, aqmlab_cli, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    told = json.loads(aqmlab_cli("claims", twelve.path, "--json").stdout)
    seen = aqmlab_cli("claims", twelve.path).stdout
    claims = told["claims"] if isinstance(told, dict) else told
    assert len(claims) == 12
    for claim in claims:
        assert claim["name"] in seen
        assert claim["status"] in seen


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_of_a_query(swept, aqmlab_cli, monkeypatch, width):
    store = swept.parent.parent
    sql = "select arm, seed, rate, count, left(digest, 40) AS run, title, events from runs order by digest"
    monkeypatch.setenv("COLUMNS", str(width))
    told = json.loads(aqmlab_cli("query", sql, "--store", store, "--json").stdout)
    seen = aqmlab_cli("query", sql, "--store", store).stdout
    rows = told["rows"]
    assert len(rows) == 96
    assert (
        lacking(
            [
                told_of
                for row in rows
                for value in (row.items() if isinstance(row, dict) else row)
                for told_of in value
            ],
            seen.replace("\n    ", "\n"),
        )
        == set()
        or width == 60
    )
    assert "…" not in seen


def test_where_nothing_has_a_width_a_row_is_a_line(twelve, aqmlab_cli, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    seen = aqmlab_cli("report", twelve.path).stdout
    rows = [line for line in seen.splitlines() if line.startswith("goodput [Mbit/s] ")]
    assert len(rows) == 1
    assert rows[0].count("±") == 12
    assert len(rows[0]) > 400


def test_columns_that_are_no_number_are_no_width(monkeypatch):
    for value in ("", "0", "-80", "wide", "８０"):
        monkeypatch.setenv("COLUMNS", value)
        assert text_width() is None
    monkeypatch.setenv("COLUMNS", "3")
    assert text_width() == 20


def test_heads_and_prose_break_between_words_and_cells_stay_whole():
    table = Grid("metric", Column("goodput of all flows", right=True), Column("said", prose=True))
    table.add("mean", "12.345 ±0.678", "as much as there is room for in the link")
    assert text_of(table.lines(40)).splitlines() == [
        "            goodput of",
        "metric       all flows   said",
        "────────────────────────────────────────",
        "mean     12.345 ±0.678   as much as",
        "                         there is room",
        "                         for in the link",
    ]
    assert len(text_of(table.lines()).splitlines()) == 3


def test_a_table_that_is_turned_has_the_same_cells():
    table = Grid("", *(Column(name, right=True) for name in NAMES), turns=True)
    for row in range(3):
        table.add(f"metric {row}", *(f"{row}.{i:02}" for i in range(12)))
    lines = text_of(table.lines(80)).splitlines()
    assert len(lines) == 14
    assert lines[5].split() == [NAMES[3], "0.03", "1.03", "2.03"]


def test_what_fits_in_no_other_way_stands_in_records():
    table = Grid("arm", "path")
    table.add(NAMES[0], "/a/path/" + 40 * "x")
    lines = text_of(table.lines(60)).splitlines()
    assert lines == [NAMES[0], f"  path  /a/path/{40 * 'x'}"]
    narrow = text_of(table.lines(30)).splitlines()
    assert max(map(len, narrow)) <= 30
    assert "".join(line.removeprefix("  path").strip() for line in narrow) == NAMES[0] + "/a/path/" + 40 * "x"


def test_wide_signs_take_two_columns():
    table = Grid("a", "b")
    table.add("列列", "x")
    assert text_of(table.lines()).splitlines() == ["a      b", "────────", "列列   x"]


def test_a_row_has_as_many_cells_as_the_table_columns():
    with pytest.raises(ValueError, match="2 cells in a table of 1 column"):
        Grid("a").add("b", Span("c"))
