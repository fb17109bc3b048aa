"""Causes: findings that fail in a scorecard, scored again under the readings that may explain the failure."""

import json
import shutil
from pathlib import Path

import pytest

from aqmlab.papers.folder import read_paper
from aqmlab.papers.reproduce import reproduce
from aqmlab.papers.scorecard import making, write_scorecard
from aqmlab.papers.scorecard_json import as_json
from toy_paper import TOY


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


def causes(aqmlab_cli, folder, store, *words):
    return aqmlab_cli("paper", "causes", folder, "-o", folder, "--store", store, "-q", *words)


@pytest.fixture(scope="module")
def scored(tmp_path_factory, store):
    """The toy paper with its scorecard: T2 fails and names a cause; T1 and T3 hold."""
    folder = Path(shutil.copytree(TOY, tmp_path_factory.mktemp("scored") / "toy"))
    done = reproduce(read_paper(folder), store=store)
    write_scorecard(done.paper, as_json(done, making("0.0", "")), folder)
    return folder


@pytest.fixture
def folder(scored, tmp_path):
    return Path(shutil.copytree(scored, tmp_path / "toy"))


def test_what_fails_is_scored_under_its_causes_and_nothing_else_is_run(folder, store, aqmlab_cli):
    before = json.loads((folder / "scorecard.json").read_text())
    done = causes(aqmlab_cli, folder, store, "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content == json.loads((folder / "causes.json").read_text())
    (finding,) = content["findings"]
    assert (finding["name"], finding["status"]) == ("T2", "fails")
    (cause,) = finding["causes"]
    assert cause["reading"] == {"least RTO": "200 ms"}
    assert cause["status"] == "fails"
    # The evidence is the finding's statement with the value that decides it, from as many seeds as the
    # multiverse has.
    assert "drops" in cause["evidence"][0]
    assert cause["evidence"][0].endswith("n = 5 seeds")
    # What was measured stays; the scorecard now names the outcome.
    after = json.loads((folder / "scorecard.json").read_text())
    t2, tried = (card["findings"][1] for card in (before, after))
    assert (t2["explained"], t2["explanation"]) == ([], "It is wrong.")
    assert tried["explained"] == [{"reading": {"least RTO": "200 ms"}, "status": "fails"}]
    assert tried["explanation"].startswith("It is wrong. With another reading (least RTO: 200 ms)")
    kept = {"explained": [], "explanation": "It is wrong."}
    assert after | {"findings": [after["findings"][0], tried | kept, after["findings"][2]]} == before
    text = (folder / "causes.md").read_text()
    assert "| T2 | fails | none |" in text
    assert "| least RTO: 200 ms | fails |" in text


def test_findings_that_are_not_asked_about_keep_their_entries(folder, store, aqmlab_cli):
    assert causes(aqmlab_cli, folder, store).returncode == 0
    content = json.loads((folder / "causes.json").read_text())
    # T1 was scored on an earlier day, when it failed; the statement of another entry is no longer in the
    # paper.
    (entry,) = content["findings"]
    t1 = entry | {"name": "T1", "text": "RED's queue is shorter than DropTail's.", "date": "2020-01-01"}
    t1["expect"] = ["for all limit: backlog_mean_packets{arm=RED} < backlog_mean_packets{arm=DropTail}"]
    content["findings"] = [t1, entry | {"date": "2020-01-01"}, entry | {"name": "T3"}, entry | {"name": "T9"}]
    (folder / "causes.json").write_text(json.dumps(content))
    assert causes(aqmlab_cli, folder, store, "--finding", "T2").returncode == 0
    after = json.loads((folder / "causes.json").read_text())["findings"]
    assert [one["name"] for one in after] == ["T1", "T2"]
    assert after[0] == t1
    assert after[1] == entry


def test_nothing_to_explain_is_an_error(folder, store, aqmlab_cli):
    done = causes(aqmlab_cli, folder, store, "--finding", "T1")
    assert done.returncode == 2
    assert "nothing to explain" in done.stderr
    (folder / "scorecard.json").write_text("{}")
    done = causes(aqmlab_cli, folder, store)
    assert done.returncode == 4
    assert "is not a scorecard ('findings'); repeat `aqmlab paper reproduce toy" in done.stderr
    (folder / "scorecard.json").unlink()
    done = causes(aqmlab_cli, folder, store)
    assert done.returncode == 2
    assert "scorecard.json is missing" in done.stderr
    assert not (folder / "causes.json").exists()


def test_damaged_causes_are_not_overwritten(folder, store, aqmlab_cli):
    (folder / "causes.json").write_text("[")
    done = causes(aqmlab_cli, folder, store)
    assert done.returncode == 4
    assert "is damaged" in done.stderr
    assert (folder / "causes.json").read_text() == "["
