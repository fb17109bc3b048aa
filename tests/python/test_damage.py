"""Recordings that cannot be read are named, left out and counted, and the command exits with 4."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import aqmlab
from aqmlab.paths import load
from aqmlab.sweeps.store import Store
from sweeping import tiny


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The directory of a sweep of four runs."""
    scenario = tiny(runs=2, duration="1500ms", claim=[], sweep={"topology.rate": ["2Mbit"]})
    with aqmlab.sweep(scenario, store=tmp_path_factory.mktemp("damage") / "store", report=False) as sweep:
        sweep.wait()
    return sweep.path


@pytest.fixture
def swept(whole, tmp_path):
    """A copy of the sweep for a test to corrupt."""
    store = Path(shutil.copytree(whole.parent.parent, tmp_path / "store"))
    return store / "sweeps" / whole.name


def recording(swept, place=0):
    """The directory of one of the sweep's runs."""
    store = Store(swept.parent.parent)
    return store.path_of(store.digests()[place])


def truncated_table(run):
    file = run / "summary.parquet"
    file.write_bytes(file.read_bytes()[:100])
    return file


def truncated_manifest(run):
    file = run / "manifest.json"
    file.write_bytes(file.read_bytes()[:100])
    return file


def missing_table(run):
    (run / "flows.parquet").unlink()
    return "flows.parquet"


def directory_for_a_table(run):
    (run / "summary.parquet").unlink()
    (run / "summary.parquet").mkdir()


SPOILT = [truncated_table, truncated_manifest, missing_table]


@pytest.mark.parametrize("spoil", SPOILT)
def test_every_command_answers_over_the_others(swept, spoil, aqmlab_cli, tmp_path):
    named = Path(spoil(recording(swept))).name
    arms = (f"{swept}:DropTail", ":RED")
    commands = [
        ("report", swept, "-o", tmp_path / "report.html"),
        ("compare", *arms, "--metric", "goodput_bps"),
        ("merge", swept.parent.parent, "--store", tmp_path / "merged", "--no-report"),
    ]
    for words in commands:
        ended = aqmlab_cli(*words)
        assert ended.returncode == 4, words
        assert "error: 1 recording cannot be read and is left out: " in ended.stderr, words
        assert named in ended.stderr
        assert "goodput" in ended.stdout, words
    assert "<html" in (tmp_path / "report.html").read_text()


def test_what_cannot_be_read_is_not_merged(swept, aqmlab_cli, tmp_path):
    run = recording(swept)
    directory_for_a_table(run)
    ended = aqmlab_cli("merge", swept.parent.parent, "--store", tmp_path / "merged", "--no-report")
    assert ended.returncode == 4
    assert f"error: 1 recording cannot be read and is left out: `{run}` is incomplete: " in ended.stderr


def test_claims_are_scored_over_the_others(swept, aqmlab_cli, tmp_path):
    claims = tmp_path / "claims.toml"
    claims.write_text('[[claim]]\nname = "a"\nexpect = "drop_percent{arm=RED} <= 100 %"\n', encoding="utf-8")
    assert aqmlab_cli("claims", swept, "--file", claims).returncode == 0
    for run in (0, 1, 2, 3):
        truncated_table(recording(swept, run))
    ended = aqmlab_cli("claims", swept, "--file", claims)
    assert ended.returncode == 4
    assert "undecided  a" in ended.stdout
    assert "error: 4 recordings cannot be read and are left out: " in ended.stderr
    for run in (0, 1, 2, 3):
        assert str(recording(swept, run) / "summary.parquet") in ended.stderr


def test_the_recording_of_another_run_is_none_of_this_one(swept):
    run, other = recording(swept, 0), recording(swept, 1)
    shutil.rmtree(run)
    shutil.copytree(other, run)
    results = load(swept)
    (missing,) = results.missing
    assert missing.damaged
    assert missing.reason.startswith(f"`{run}` is the recording of another run: of arm ")
    assert sum(len(results.runs_of(cell)) for cell in results.cells) == 3


def test_what_is_removed_is_done_again(swept, whole):
    run = recording(swept)
    truncated_table(run)
    shutil.rmtree(run)
    with aqmlab.sweep(swept / "scenario.toml", store=swept.parent.parent, report=False) as sweep:
        sweep.wait()
    assert sweep.path == swept
    for name in ("results.csv", "answer.csv", "sweep.json"):
        assert (swept / name).read_bytes() == (whole / name).read_bytes()
