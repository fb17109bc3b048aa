"""The texts of a scorecard, written again from its values and the paper's current texts, without a run."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from aqmlab.papers.causes import explained, score_causes
from aqmlab.papers.figures import draw_figure
from aqmlab.papers.folder import read_paper
from aqmlab.papers.reproduce import reproduce
from aqmlab.papers.runner import Runner
from aqmlab.papers.scorecard import making, write_scorecard
from aqmlab.papers.scorecard_json import as_json
from aqmlab.papers.scoring import evidence
from toy_paper import TOY, edit

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import pages  # noqa: E402

FILES = ("scorecard.md", "scorecard.html", "scorecard.json")


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """The toy paper with its scorecard and one of its figures."""
    folder = tmp_path_factory.mktemp("scored") / "toy"
    shutil.copytree(TOY, folder)
    store = tmp_path_factory.mktemp("store")
    done = reproduce(read_paper(folder), store=store, jobs=2)
    draw_figure(done.figures[0], done.results["loss.toml"], folder / "figures", "0.0")
    made = making("0.0", "abc1234")
    t2 = done.findings[1]
    tried = [(reading, one) for reading, (one,) in score_causes([t2.finding], Runner(done.paper, store))]
    entry = {"status": t2.status, "evidence": list(evidence(t2))}
    causes = [explained(done.paper, t2.finding, entry, tried, made)]
    write_scorecard(done.paper, as_json(done, made, causes=causes), folder)
    (folder / "causes.json").write_text(json.dumps({"findings": causes}))
    return folder


@pytest.fixture
def folder(scored, tmp_path):
    return Path(shutil.copytree(scored, tmp_path / "toy"))


@pytest.fixture
def text(aqmlab_cli, folder, tmp_path):
    """Write the texts again, with a store that must stay empty."""

    def call(*words):
        done = aqmlab_cli("paper", "text", folder, "-o", folder, "--store", tmp_path / "no", *words)
        assert not (tmp_path / "no").exists()
        return done

    return call


def test_the_same_texts_are_written_again_without_a_run(folder, text):
    before = {name: (folder / name).read_bytes() for name in FILES}
    for name in FILES[:2]:
        (folder / name).unlink()
    done = text()
    assert done.returncode == 0, done.stderr
    assert {name: (folder / name).read_bytes() for name in FILES} == before


def test_texts_are_those_of_the_paper_and_values_those_of_the_scorecard(folder, text):
    before = json.loads((folder / "scorecard.json").read_text())
    for old, new in (
        ('note = "It is wrong."', 'note = "It is **not** so."'),
        ("RED loses nothing.", "RED does not lose packets."),
        ('published = "9 against 31 packets"', 'published = "10 against 31 packets"'),
        ('kind = "no difference"', 'kind = "distinguishes"'),
        ('strength = "soft"', 'strength = "firm"'),
    ):
        edit(folder, "expected.toml", old, new)
    edit(folder, "paper.toml", 'title = "Loss against buffer"\nkind', 'title = "Drops"\nkind')
    edit(folder, "loss.toml", "duration", "# a comment changes nothing\nduration")
    done = text("--json")
    assert done.returncode == 0, done.stderr
    after = json.loads((folder / "scorecard.json").read_text())
    assert json.loads(done.stdout) == after
    markdown = (folder / "scorecard.md").read_text()
    for said in (
        "It is **not** so. With another reading (least RTO: 200 ms), all else the same, it fails.",
        "RED does not lose packets.",
        "<br>published: 10 against 31 packets",
        "![Figure 1: Drops]",
        "| a difference between disciplines or settings | 1 of 2 holds, 1 fails, 0 are undecided | – |",
        "| true by construction of the set-up | 1 of 1 holds, 0 fail, 0 are undecided | – |",
    ):
        assert said in markdown
    assert after["counts"]["firm"] == {"holds": 2, "fails": 1, "undecided": 0}
    assert after["kinds"]["no difference"]["firm"] == {"holds": 0, "fails": 0, "undecided": 0}
    for key in ("evidence", "status", "statements"):
        assert [f[key] for f in after["findings"]] == [f[key] for f in before["findings"]]
    for key in ("date", "commit", "wall_s", "runs", "scenarios"):
        assert after[key] == before[key]


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "expected.toml",
            "<= 0.001 %",
            "<= 0.002 %",
            "expected.toml:16: finding `T2`: its statement has changed",
        ),
        (
            "expected.toml",
            'limit = "40p" }\nexpect',
            'limit = "8p" }\nexpect',
            "finding `T3`: its statement has",
        ),
        ("expected.toml", '"T1"', '"T9"', "expected.toml: finding `T1` is gone since"),
        ("expected.toml", "[[1.9, 1.0]", "[[1.9, 1.1]", "table `I`: it has changed since"),
        ("expected.toml", '"15 %"', '"16 %"', "table `I`: it has changed since"),
        ("loss.toml", '"8s"', '"9s"', "loss.toml: what it runs has changed since"),
        (
            "paper.toml",
            'chosen = "0.1"',
            'chosen = "0.02"',
            "setting `max_p`: `chosen` has changed from `0.1`",
        ),
    ],
)
def test_a_changed_statement_or_scenario_is_refused(folder, text, file, old, new, said):
    edit(folder, file, old, new)
    before = {name: (folder / name).read_bytes() for name in FILES}
    done = text()
    assert done.returncode == 2
    told = " ".join(done.stderr.split())
    assert said in told.replace(f"{folder}/", "")
    assert f"run `aqmlab paper reproduce toy -o {folder}`" in told
    assert {name: (folder / name).read_bytes() for name in FILES} == before


def test_what_an_earlier_version_did_not_keep_is_left_out(folder, text):
    card = json.loads((folder / "scorecard.json").read_text())
    for key in ("runs", "most_seeds", "scenarios", "kinds", "inference"):
        del card[key]
    for entry in card["findings"]:
        for key in ("kind", "source", "published", "explained"):
            del entry[key]
        for statement in entry["statements"]:
            del statement["words"]
    for table in card["tables"]:
        for key in ("kind", "value", "tolerance", "both_below", "branches_by"):
            del table[key]
    (folder / "scorecard.json").write_text(json.dumps(card))
    done = text()
    assert done.returncode == 0
    assert "does not say which scenarios it is of" in done.stderr
    markdown = (folder / "scorecard.md").read_text()
    assert "**T2** fails. It is wrong. With another reading (least RTO: 200 ms)" in markdown


@pytest.mark.parametrize(
    ("where", "value", "outcome"),
    [
        ((), None, " With another reading (least RTO: 200 ms), all else the same, it holds."),
        (("expect",), ["drop_percent{arm=RED} == 0"], ""),
        (("scenarios", "loss.toml"), "0", ""),
    ],
)
def test_an_outcome_of_a_cause_is_that_of_the_same_statement_and_scenario(
    folder, text, where, value, outcome
):
    (entry,) = json.loads((folder / "causes.json").read_text())["findings"]
    entry["causes"][0]["status"] = "holds"
    changed = entry
    for key in where[:-1]:
        changed = changed[key]
    if where:
        changed[where[-1]] = value
    (folder / "causes.json").write_text(json.dumps({"findings": [entry]}))
    assert text().returncode == 0
    assert f"**T2** fails. It is wrong.{outcome}\n" in (folder / "scorecard.md").read_text()
    assert ("| T2 | fails | least RTO: 200 ms |" in (folder / "causes.md").read_text()) == bool(outcome)


def test_a_readme_has_each_finding_with_its_score_on_one_screen(folder):
    assert list(pages.score_rows(read_paper(folder))) == [
        "| T1: RED's queue is shorter than DropTail's. | holds | – | – |\n",
        "| T2: RED loses nothing. | fails | It is wrong. | none of 1 tried |\n",
        "| T3: Two parts. | holds | by construction | – |\n",
    ]
    causes = json.loads((folder / "causes.json").read_text())
    causes["findings"][0]["causes"][0]["status"] = "holds"
    (folder / "causes.json").write_text(json.dumps(causes))
    edit(folder, "expected.toml", '"It is wrong."', '"At 2.5 Mbit/s, it\\nis `wrong`. More on this."')
    edit(folder, "expected.toml", "backlog_mean_packets{arm=RED} <", "2 * backlog_mean_packets{arm=RED} <")
    rows = list(pages.score_rows(read_paper(folder)))
    assert rows[0].endswith(" | not scored yet | – | – |\n")
    assert rows[1].endswith(" | fails | At 2.5 Mbit/s, it is `wrong`. | least RTO: 200 ms |\n")
    (folder / "README.md").write_text("# Toy\n")
    with pytest.raises(SystemExit, match="the lines between which the score stands are missing"):
        pages.readme(read_paper(folder))
    begin, end = pages.SCORE
    (folder / "README.md").write_text(f"# Toy\n{begin}old\n{end}The rest.\n")
    text = pages.readme(read_paper(folder))
    assert text.startswith(f"# Toy\n{begin}\n| finding | score | why | reading that changes it |\n")
    assert text.endswith(f"{rows[2]}\n{end}The rest.\n")


def test_texts_need_a_scorecard(folder, text):
    (folder / "scorecard.json").write_text("{}")
    done = text()
    assert done.returncode == 4
    assert "is not a scorecard" in done.stderr
    (folder / "scorecard.json").unlink()
    done = text()
    assert done.returncode == 2
    assert "scorecard.json is missing" in done.stderr
