"""Claims of a scenario, from the scenario's file to the exit code."""

from __future__ import annotations

import json

import pytest
import tomli_w

import aqmlab
from aqmlab.claims import read_claims
from aqmlab.errors import AqmlabError, ScenarioError, UsageError

CLAIMS = [
    {
        "name": "delay",
        "text": "RED keeps the queue shorter.",
        "expect": "queueing_delay_mean_s{arm='RED + ECN'} < queueing_delay_mean_s{arm=DropTail}",
        "source": "a test",
    },
    {"name": "busy", "expect": "for all arm: utilisation_percent < 50 %", "strength": "soft"},
]


@pytest.fixture
def claimed(small, tmp_path):
    """A function that writes the small scenario, with five seeds and further claims, to a file."""

    def write(*claims):
        small["runs"] = 5
        small["claim"] = [*CLAIMS, *claims]
        file = tmp_path / "claimed.toml"
        file.write_text(tomli_w.dumps(small), encoding="utf-8")
        return file

    return write


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    import copy

    from conftest import SMALL

    path = tmp_path_factory.mktemp("claims") / "out"
    aqmlab.run({**copy.deepcopy(SMALL), "runs": 5, "claim": CLAIMS}, output=path, report=False)
    return path


def test_run_scores_the_claims_of_its_scenario(aqmlab_cli, claimed, tmp_path):
    ended = aqmlab_cli("run", claimed(), "-o", tmp_path / "out", "--no-report")
    assert ended.returncode == 0, ended.stderr
    for words in (
        "Claims: 1 holds, 1 fails; 3 comparisons, each at 95 %",
        "holds      delay (firm, a test): RED keeps the queue shorter.",
        "fails      busy (soft): for all arm: utilisation_percent < 50 %",
        "difference −",
        "n = 5 pairs",
    ):
        assert words in ended.stdout
    content = json.loads((tmp_path / "out" / "claims.json").read_text())
    assert [claim["status"] for claim in content["claims"]] == ["holds", "fails"]


def test_a_firm_claim_that_fails_ends_with_1(aqmlab_cli, claimed, tmp_path):
    firm = {"name": "idle", "expect": "for some arm: utilisation_percent < 50 %"}
    ended = aqmlab_cli("run", claimed(firm), "-o", tmp_path / "out", "--no-report", "--json", "-q")
    assert ended.returncode == 1
    assert json.loads(ended.stdout)["claims"]["counts"]["firm"] == {"holds": 1, "fails": 1, "undecided": 0}


def test_a_wrong_claim_is_told_before_the_runs(aqmlab_cli, claimed, tmp_path):
    file = claimed({"name": "slip", "expect": "goodput_bps{arm=Droptail} > 1Mbit"})
    ended = aqmlab_cli("run", file, "-o", tmp_path / "out")
    line = next(i for i, text in enumerate(file.read_text().splitlines(), 1) if "Droptail" in text)
    assert ended.returncode == 2
    column = len('expect = "goodput_bps{arm=') + 1
    assert f"claimed.toml:{line}:{column}: claim `slip`: there is no arm `Droptail`" in ended.stderr
    assert "did you mean `DropTail`?" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_an_arm_that_was_left_out_leaves_a_claim_undecided(aqmlab_cli, claimed, tmp_path):
    ended = aqmlab_cli("run", claimed(), "-o", tmp_path / "out", "--arm", "DropTail", "--no-report")
    assert ended.returncode == 0
    assert "undecided  delay" in ended.stdout
    assert "there is no arm `RED + ECN`" in ended.stdout


def test_claims_are_scored_again_with_the_same_outcome(aqmlab_cli, recording):
    ended = aqmlab_cli("claims", recording)
    assert ended.returncode == 0
    assert "holds      delay" in ended.stdout
    assert json.loads(aqmlab_cli("claims", recording, "--json").stdout)["format_version"] == 1
    assert [each.status for each in aqmlab.score_claims(recording)] == ["holds", "fails"]
    assert (
        aqmlab_cli("claims", recording, "--json").stdout == aqmlab_cli("claims", recording, "--json").stdout
    )


def test_other_claims_of_a_file(aqmlab_cli, recording, tmp_path):
    file = tmp_path / "other.toml"
    file.write_text('[[claim]]\nname = "x"\nexpect = "goodput_bps > 99Mbit"\nwhere = { arm = "DropTail" }\n')
    ended = aqmlab_cli("claims", recording, "--file", file)
    assert ended.returncode == 1
    assert "fails      x (firm): goodput_bps > 99Mbit" in ended.stdout
    file.write_text('[[claim]]\nname = "x"\nexpect = "goodput_bp > 99Mbit"\n')
    ended = aqmlab_cli("claims", recording, "--file", file)
    assert ended.returncode == 2
    assert "other.toml:3:11: claim `x`: there is no metric `goodput_bp`" in ended.stderr


def test_a_recording_without_claims(aqmlab_cli, experiment):
    ended = aqmlab_cli("claims", experiment.path)
    assert (ended.returncode, ended.stdout) == (0, "There are no claims.\n")


def test_a_class_or_queue_is_that_of_the_network(aqmlab_cli, recording, tmp_path):
    file = tmp_path / "other.toml"
    file.write_text(
        '[[claim]]\nname = "x"\n'
        'expect = "for all class in (ftp, cbr), arm: goodput_bps{queue=bottleneck} > 1kbit"\n'
    )
    assert aqmlab_cli("claims", recording, "--file", file).returncode == 0
    file.write_text('[[claim]]\nname = "x"\nexpect = "for all arm: goodput_bps{class=fpt} > 1kbit"\n')
    assert "did you mean `ftp`" in aqmlab_cli("claims", recording, "--file", file).stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it has no [[claim]]"),
        ("claim = 5", "it has no [[claim]]"),
        ("[[claim", "c.toml:1: Expected ']]'"),
        ("claim = [5]", "claim 1: it is not a table"),
        ("[[claim]]\nexpect = 5 %\n", "c.toml:2:12: Expected newline"),
        ('[[claim]]\nname = "a"', "claim 1: `expect` is missing or is not a string"),
        ('[[claim]]\nexpect = "a"', "claim 1: `name` is missing or is not a string"),
        (
            '[[claim]]\nname = "a"\nexpect = "a > 0"\nexpct = ""',
            "there is no key `expct`; did you mean `expect`?",
        ),
        ('[[claim]]\nname = "a"\nexpect = "a > 0"\ntext = 5', "`text` is not a string"),
        (
            '[[claim]]\nname = "a"\nexpect = "a > 0"\nstrength = "frm"',
            "there is no strength `frm`; did you mean `firm`?",
        ),
        (
            '[[claim]]\nname = "a"\nexpect = "a > 0"\nwhere = { count = 20 }',
            "`where` is not a table of strings",
        ),
        ('[[claim]]\nname = "a"\nexpect = "a > 0"\n' * 2, "the claim `a` occurs twice"),
    ],
)
def test_wrong_files_of_claims(tmp_path, content, message):
    file = tmp_path / "c.toml"
    file.write_text(content)
    with pytest.raises(ScenarioError) as caught:
        read_claims(file)
    assert message in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        read_claims(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(AqmlabError, match=r"bytes\.toml"):
        read_claims(tmp_path / "bytes.toml")


@pytest.fixture
def swept(small, tmp_path):
    """A sweep of two buffers with five seeds and one claim."""

    def write(expect):
        small.update(runs=5, duration="4s", sweep={"topology.queue.limit": ["20p", "40p"]})
        del small["arm"][1]["topology.queue"]["limit"]
        small["claim"] = [{"name": "longer", "expect": expect}]
        file = tmp_path / "swept.toml"
        file.write_text(tomli_w.dumps(small), encoding="utf-8")
        return file

    return write


def test_a_sweep_scores_its_claims(aqmlab_cli, swept, tmp_path):
    file = swept("increasing(queueing_delay_mean_s{arm=DropTail} over limit)")
    ended = aqmlab_cli("sweep", file, "--store", tmp_path / "store", "-q")
    assert ended.returncode == 0, ended.stderr
    assert "holds      longer (firm)" in ended.stdout
    assert "queueing_delay_mean_s{arm=DropTail} at limit 40p = " in ended.stdout
    (kept,) = (tmp_path / "store").glob("sweeps/*/claims.json")
    content = kept.read_bytes()
    assert json.loads(aqmlab_cli("claims", kept.parent, "--json").stdout) == json.loads(content)
    kept.unlink()
    events = aqmlab_cli("sweep", file, "--store", tmp_path / "store", "-q", "--json").stdout.splitlines()
    assert kept.read_bytes() == content
    assert json.loads(events[-1])["claims"] == json.loads(content)


def test_a_sweep_whose_firm_claim_fails_ends_with_1(aqmlab_cli, swept, tmp_path):
    file = swept("for some limit, arm: goodput_bps > 90Mbit")
    assert aqmlab_cli("sweep", file, "--store", tmp_path / "store", "-q").returncode == 1


def test_a_sweep_tells_a_wrong_claim_before_its_runs(aqmlab_cli, swept, tmp_path):
    ended = aqmlab_cli("sweep", swept("goodput_bps{limit=11p} > 0"), "--store", tmp_path / "store", "-q")
    assert ended.returncode == 2
    assert "there is no value of `topology.queue.limit` `11p`" in ended.stderr
    assert not list((tmp_path / "store").glob("runs/*/*"))
