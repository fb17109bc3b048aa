"""Live experiments of papers: the runs that count, repetitions, and both sides in the scorecard.

The router is a stand-in (``live_worlds.py``); the simulated side is real.
"""

import json
import shutil

import pytest

import live_worlds
from aqmlab.cli.progress import ProgressLine
from aqmlab.errors import ScenarioError
from aqmlab.papers.check import problems
from aqmlab.papers.folder import find_paper, read_paper
from toy_paper import TOY

EXPERIMENT = """
[[experiment]]
file = "live.toml"
title = "The testbed"
live = true
quick = { runs = 1 }
[[setting]]
name = "testbed"
mark = "unknown"
why = "Not stated."
experiments = ["live.toml"]
chosen = "60 ms"
[setting.candidates]
"60 ms" = {}
"20 ms" = { "traffic.ftp.rtt" = "20ms" }
[[figure]]
id = "L"
title = "Queue"
kind = "series"
experiment = "live.toml"
"""
FINDINGS = """
[[finding]]
id = "L1"
text = "RED's queue is shorter."
strength = "firm"
kind = "distinguishes"
source = "section 5"
experiment = "live.toml"
expect = "backlog_mean_packets{arm=RED} < backlog_mean_packets{arm=DropTail}"
"""


@pytest.fixture
def router(router, monkeypatch, tmp_path):
    """Set the mode of the stand-in, which keeps marks."""
    (tmp_path / "marks").mkdir()
    monkeypatch.setenv("LIVE_WORLDS", str(tmp_path / "marks"))
    return router


@pytest.fixture
def folder(tmp_path):
    """The toy paper with an experiment that runs live: two arms, five seeds."""
    folder = tmp_path / "toy"
    shutil.copytree(TOY, folder)
    text = (folder / "loss.toml").read_text().partition("[sweep]")[0].replace("runs = 6", "runs = 5")
    (folder / "live.toml").write_text(
        text.replace("8s", "4s").replace("2s", "1s").replace("0.25buffer", "2p").replace("0.75buffer", "6p")
    )
    for name, more in (("paper.toml", EXPERIMENT), ("expected.toml", FINDINGS)):
        file = folder / name
        file.write_text(file.read_text() + more)
    return folder


@pytest.fixture
def again(aqmlab_cli, folder, tmp_path):
    """Reproduce the paper live."""
    return lambda *words: aqmlab_cli(
        "paper", "live", folder, "--store", tmp_path / "store", "-o", tmp_path / "out", *words
    )


def scored(tmp_path):
    """The scorecard as data."""
    return json.loads((tmp_path / "out" / "live.json").read_text())


def test_what_is_live_is_apart_from_what_is_simulated(folder):
    paper = read_paper(folder)
    assert [e.file for e in paper.experiments] == ["loss.toml"]
    assert "L1" not in [f.name for f in paper.findings]
    assert [f.name for f in paper.live.findings] == ["L1"]
    assert [s.name for s in paper.live.settings] == ["testbed"]
    assert problems(paper.live) == []
    assert read_paper(TOY).live is None


def test_live_runs_are_scored_beside_the_same_simulated(again, router, tmp_path):
    router("faithful")
    ended = again()
    assert ended.returncode == 0, ended.stderr
    assert "10 of 10 live runs are faithful and count; 0 runs were refused." in ended.stdout
    content = scored(tmp_path)
    assert content["findings"][0]["status"] == content["live"]["simulated"][0]["status"] == "holds"
    markdown = (tmp_path / "out" / "live.md").read_text()
    for words in (
        "aqmlab paper live toy",
        "| simulated |",
        "## The testbed: ",
        "figures/live/figure-L.svg",
    ):
        assert words in markdown
    compared = content["live"]["compared"]["live.toml"]["compared"]
    # The stand-in simulates, so the two sides are the same runs.
    assert {one["difference"] for one in compared} <= {None, 0}
    assert len(compared) > 3
    assert "simulated</th>" in (tmp_path / "out" / "live.html").read_text()
    assert not (tmp_path / "out" / "scorecard.md").exists()
    # Nothing is left to do.
    router("killed")
    assert again().returncode == 0


def test_runs_that_are_not_faithful_are_repeated_and_counted(again, router, tmp_path):
    router("faithful-when-repeated")
    ended = again()
    assert ended.returncode == 0, ended.stderr
    content = scored(tmp_path)["live"]
    assert (content["faithful"], content["total"], content["refused"]) == (10, 10, 2)


def test_only_faithful_runs_count(again, router, tmp_path):
    router("red-unfaithful")
    ended = again("--repeats", "0")
    assert "5 of 10 live runs are faithful and count; 5 runs were refused." in ended.stdout
    content = scored(tmp_path)
    assert content["findings"][0]["status"] == "undecided"
    assert content["live"]["simulated"][0]["status"] == "holds"
    # Unfaithful runs are repeated the next time, and the number of refused runs is remembered.
    router("faithful")
    assert again().returncode == 0
    content = scored(tmp_path)["live"]
    assert (content["faithful"], content["total"], content["refused"]) == (10, 10, 5)


def test_ctrl_c_keeps_what_is_done(again, router, monkeypatch):
    router("obedient")
    update = live_worlds.interrupt_when_it_runs()
    with monkeypatch.context() as during:
        during.setattr(ProgressLine, "update", lambda line, now: update(line, now[1]))
        ended = again()
    assert ended.returncode == 130, ended.stderr
    assert "are kept" in ended.stderr
    router("faithful")
    assert again().returncode == 0


def test_a_paper_without_live_experiments_says_so(aqmlab_cli, tmp_path):
    ended = aqmlab_cli("paper", "live", TOY, "--store", tmp_path / "store")
    assert ended.returncode == 2
    assert "no experiment of `toy` can run live; those of `blue`, `le` can" in ended.stderr
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "expected.toml",
            'experiment = "live.toml"\nexpect = "backlog',
            'part = [{ experiment = "live.toml", expect = "goodput_bps{arm=RED} > 0" },'
            ' { experiment = "loss.toml", expect = "drop_percent{arm=RED, limit=8p} > 0" }]\n# "',
            "a finding must be about live experiments only, or about no live experiment",
        ),
        (
            "paper.toml",
            'experiments = ["live.toml"]',
            'experiments = ["live.toml", "loss.toml"]',
            "a setting must be about live experiments only, or about no live experiment",
        ),
    ],
)
def test_what_is_live_and_what_is_not_do_not_mix(folder, file, old, new, said):
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    with pytest.raises(ScenarioError, match=said):
        read_paper(folder)


@pytest.mark.parametrize("key", ["blue", "le"])
def test_the_testbeds_describe_what_can_be_run(key):
    assert problems(find_paper(key).live) == []
