"""Sweeps and single runs as the core returns them."""

from __future__ import annotations

import hashlib
import json

import pytest
import tomli_w

import aqmlab
from aqmlab import _core
from aqmlab.recordings.manifest import read_manifest


@pytest.fixture
def swept(small) -> str:
    claim = {"name": "M01", "expect": "goodput_bps{arm=DropTail} > 1Mbit", "where": {"rate": "2Mbit"}}
    sweep = {"topology.rate": ["1Mbit", "2Mbit"], "traffic.ftp.count": [1, 3]}
    return tomli_w.dumps(small | {"sweep": sweep, "claim": [claim]})


def test_a_sweep_tells_of_its_axes_and_claims(swept):
    about = json.loads(_core.Sweep(swept, "small.toml").about())
    assert [(a["name"], a["short"], a["labels"]) for a in about["axes"]] == [
        ("topology.rate", "rate", ["1Mbit", "2Mbit"]),
        ("traffic.ftp.count", "count", ["1", "3"]),
    ]
    assert (about["cases"], about["runs"], about["seeds"]) == (4, 16, [1, 2])
    assert about["arms"] == ["DropTail", "RED + ECN"]
    (claim,) = about["claims"]
    assert (claim["where"], claim["strength"]) == ({"topology.rate": "2Mbit"}, "firm")
    line = swept.splitlines()[claim["line"] - 1]
    assert line[claim["column"] - 1 :].startswith(claim["expect"])


def test_a_case_is_a_scenario_with_the_same_plans(swept):
    sweep = _core.Sweep(swept, "small.toml")
    digests = set()
    for index in range(4):
        case = json.loads(sweep.case(index))
        alone = json.loads(_core.plan(case["toml"], "other.toml"))
        assert [arm["digest"] for arm in alone["arms"]] == [arm["digest"] for arm in case["arms"]]
        assert [arm["slug"] for arm in case["arms"]] == ["droptail", "red-ecn"]
        digests |= {arm["digest"] for arm in case["arms"]}
    assert len(digests) == 8
    with pytest.raises(IndexError, match="must be less than 4"):
        sweep.case(4)


def test_a_scenario_without_a_sweep_has_one_case(small):
    sweep = _core.Sweep(tomli_w.dumps(small), "small.toml")
    about = json.loads(sweep.about())
    assert (about["axes"], about["cases"], about["runs"]) == ([], 1, 4)
    assert json.loads(sweep.case(0))["settings"] == []


def test_what_is_wrong_with_a_sweep_has_a_place(swept):
    with pytest.raises(aqmlab.ScenarioError) as caught:
        _core.Sweep(swept.replace('"1Mbit"', '"1M"'), "small.toml")
    (problem,) = caught.value.errors
    assert problem["path"] == "topology.rate"
    assert swept.splitlines()[problem["line"] - 1].strip().startswith('"1Mbit"')


def test_a_runs_digest_is_that_of_plan_seed_and_versions_of_parts():
    expected = hashlib.sha256(b"abc\n7\nqdisc.red 2\nsim 1\n").hexdigest()
    assert _core.run_digest("abc", 7, {"sim": 1, "qdisc.red": 2}) == expected


def test_one_run_is_that_of_the_experiment(small, experiment, tmp_path):
    seen = []
    took = json.loads(
        _core.run_one(
            tomli_w.dumps(small),
            "small.toml",
            "RED + ECN",
            2,
            tmp_path / "deep" / "one",
            progress=seen.append,
        )
    )
    assert took["events"] > 1000
    assert 0 < took["cpu_s"] < 60
    assert seen[-1]["done_s"] == seen[-1]["total_s"] == 6.0
    assert seen[-1]["events"] == took["events"]
    (same,) = [run for run in experiment.runs if (run.arm, run.seed) == ("RED + ECN", 2)]
    assert read_manifest(tmp_path / "deep" / "one").tables == same.manifest.tables


def test_one_run_raises_what_is_wrong(small, swept, tmp_path):
    text = tomli_w.dumps(small)
    with pytest.raises(aqmlab.UsageError, match="there is no arm `red`; the arms are `DropTail`, `RED"):
        _core.run_one(text, "small.toml", "red", 1, tmp_path / "one")
    with pytest.raises(aqmlab.UsageError, match=r"a \[sweep\] of 4 cases; run it with `aqmlab sweep`"):
        _core.run_one(swept, "small.toml", "DropTail", 1, tmp_path / "one")
    long = text.replace('"6s"', '"60s"').replace('"100ms"', '"1ms"')
    with pytest.raises(aqmlab.HostError, match="memory cap"):
        _core.run_one(long, "small.toml", "DropTail", 1, tmp_path / "one", memory_cap=20_000)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "one").mkdir()
    with pytest.raises(aqmlab.RecordingError, match="exists"):
        _core.run_one(text, "small.toml", "DropTail", 1, tmp_path / "one")
    many = text.replace("[record]", '[record]\nlimit = 1\ntrace = ["ftp"]')
    with pytest.raises(aqmlab.RunError, match="arm `DropTail`, seed 1: "):
        _core.run_one(many, "small.toml", "DropTail", 1, tmp_path / "two")


def test_run_refuses_a_sweep(swept, tmp_path):
    file = tmp_path / "swept.toml"
    file.write_text(swept)
    with pytest.raises(aqmlab.UsageError, match="aqmlab sweep"):
        aqmlab.run(file, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()
