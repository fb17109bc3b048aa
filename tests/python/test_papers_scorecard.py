"""Scorecards: where thresholds come from, and how well settings are known."""

import json

import pytest

from aqmlab.errors import ScenarioError
from aqmlab.papers.folder import read_paper
from aqmlab.papers.multiverse import multiverse
from aqmlab.papers.multiverse_report import multiverse_markdown
from aqmlab.papers.reproduce import reproduce
from aqmlab.papers.scorecard import as_html, as_markdown, cell_text, making
from aqmlab.papers.scorecard_json import as_json, cell_json
from aqmlab.papers.tables import Branch, TableCell
from aqmlab.stats import Estimate
from toy_paper import TOY, edited

MADE = making("0.0", "abc1234")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def toy(store):
    return reproduce(read_paper(TOY), seeds=5, store=store, jobs=2)


def test_a_scorecard_says_what_a_threshold_rests_on(toy, tmp_path):
    markdown = as_markdown(toy.paper, as_json(toy, MADE), tmp_path)
    assert "| RED's queue is shorter than DropTail's. | given<br>" in markdown
    assert "| RED loses nothing. | ours: a loss below 0.001 % counts as none | " in markdown
    # A threshold that is derived from given values counts as inferred, not as given.
    assert "| Two parts. | inferred | " in markdown
    counted = "inferred from it, or our own: 1 is given, 1 is inferred, 1 is ours."
    assert counted in markdown
    page = as_html(toy.paper, as_json(toy, MADE), tmp_path)
    assert counted in page
    assert '<p class="note">Threshold ours: a loss below 0.001 % counts as none</p>' in page
    assert '<p class="note">Threshold given</p>' in page
    told = {finding["name"]: finding for finding in as_json(toy, MADE)["findings"]}
    assert told["T1"]["threshold"] == {"basis": "given", "what": ""}
    assert told["T2"]["threshold"] == {"basis": "ours", "what": "a loss below 0.001 % counts as none"}
    assert [told[name]["mark"] for name in ("T1", "T2", "T3")] == ["given", "given", "inferred"]


@pytest.mark.parametrize("threshold", ["5 % is ours", "mine: 5 %", "ours:", "unknown: 5 %"])
def test_a_threshold_says_whose_it_is(tmp_path, threshold):
    old = "ours: a loss below 0.001 % counts as none"
    with pytest.raises(ScenarioError, match=r"finding `T2`: `threshold` is .*; write its origin") as refused:
        read_paper(edited(tmp_path, "expected.toml", old, threshold))
    assert '"given: ..." or "inferred: ..." or "ours: ..."' in str(refused.value)


def test_a_setting_has_its_mark_wherever_it_is_listed(toy, store, tmp_path):
    assert "| least RTO | 1 s | unknown | Not stated. |" in as_markdown(
        toy.paper, as_json(toy, MADE), tmp_path
    )
    assert "<td>recalled</td>" in as_html(toy.paper, as_json(toy, MADE), tmp_path)
    told = json.loads(json.dumps(as_json(toy, MADE)))["reading"]
    assert [(s["setting"], s["chosen"], s["mark"]) for s in told] == [
        ("least RTO", "1 s", "unknown"),
        ("max_p", "0.1", "recalled"),
    ]
    table = multiverse_markdown(multiverse(read_paper(TOY), store=store, jobs=2), MADE)
    assert "| the fixed reading |  | " in table
    assert "| least RTO: 200 ms | unknown | " in table
    assert "| least RTO: 200 ms, max_p: 0.02 | unknown, recalled | " in table


def cell(published, mean, half, *branches):
    ours = Estimate(mean, half, 20)
    return TableCell(published, ours, "agrees", tuple(Branch("", share, ours) for share in branches))


@pytest.mark.parametrize(
    ("of", "text"),
    [
        # Mean and half-width are rounded to the same decimal place: the half-width has two digits if they are
        # at most 35, otherwise one.
        (cell(12.88304, 12.85204, 0.0097), "12.88304 → 12.852 ± 0.010 ✓"),
        (cell(12.88304, 12.85204, 0.0304), "12.88304 → 12.852 ± 0.030 ✓"),
        (cell(12.88304, 12.85204, 0.0365), "12.88304 → 12.85 ± 0.04 ✓"),
        # The published number keeps exactly the digits of the paper.
        (cell(800.0, 11.093, 2.31), "800 → 11.1 ± 2.3 ✓"),
        (cell(0.0511, 1234.5, 87.0), "0.0511 → 1234 ± 87 ✓"),
        (cell(None, 5.0, 0.0), "– → 5.000 ± 0 ✓"),
        (cell(1.0, 1.422, None), "1 → 1.422 ✓"),
        (cell(2.0, 1.5, 0.21, 0.15, 0.85), "2 → 1.50 ± 0.21 ✓ {1.50 ± 0.21 (15 %) / 1.50 ± 0.21 (85 %)}"),
        # All seeds agree, and the text already states the result.
        (cell(2.0, 1.5, 0.21, 1.0), "2 → 1.50 ± 0.21 ✓"),
    ],
)
def test_digits_in_tables_follow_the_interval(of, text):
    assert cell_text(cell_json(of)) == text


@pytest.mark.parametrize("key", ["blue", "miskovic"])
def test_units_stand_once_and_in_brackets(key):
    paper = read_paper(TOY.parents[2] / "papers" / key)
    assert [t.name for t in paper.tables if t.unit and f"({t.unit}" in t.title] == []
    labels = [
        str(figure.content.get(axis, "")) for figure in paper.figures for axis in ("x_label", "y_label")
    ]
    assert [label for label in labels if label.endswith(")")] == []
