"""Recordings of another format version, lower or higher, are refused at once, and nothing of them is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import aqmlab
from aqmlab.recordings.integrity import FORMAT_VERSION, sealed
from aqmlab.results import both
from aqmlab.results.loading import SWEEP_FORMAT
from aqmlab.sweeps import store as stores
from sweeping import tiny

OTHERS = [FORMAT_VERSION - 1, FORMAT_VERSION + 1]


def refused(file, version, reads):
    return (
        f"`{file}` has format version `{version}`; this version of aqmlab reads only format version {reads}"
    )


def give(file, version, *, seal=True):
    """Give a JSON file another format version; the files of the earliest versions have no seal."""
    content = json.loads(file.read_text(encoding="utf-8")) | {"format_version": version}
    content.pop("file_digest", None)
    file.write_text(sealed(content) if seal else json.dumps(content), encoding="utf-8")


def contents(path):
    """The bytes of each file, but for locks."""
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file() and file.name[0] != "."}


def check(aqmlab_cli, path, message, commands):
    before = contents(path)
    for words in commands:
        ended = aqmlab_cli(*words)
        assert ended.returncode == 4, (words, ended)
        assert message in ended.stderr, (words, ended.stderr)
    assert before.items() <= contents(path).items()


@pytest.fixture
def copied(experiment, tmp_path):
    return Path(shutil.copytree(experiment.path, tmp_path / "copy"))


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    store = tmp_path_factory.mktemp("formats") / "store"
    scenario = tiny(runs=1, duration="1500ms", sweep={"topology.rate": ["2Mbit"]}, claim=[])
    with aqmlab.sweep(scenario, store=store, report=False) as sweep:
        sweep.wait()
    return sweep.path


@pytest.fixture
def store(swept, tmp_path):
    return Path(shutil.copytree(swept.parent.parent, tmp_path / "store"))


@pytest.mark.parametrize("version", OTHERS)
@pytest.mark.parametrize("name", ["experiment.json", "droptail/seed-1/manifest.json"])
def test_an_experiment_of_another_format(copied, small_file, aqmlab_cli, name, version):
    give(copied / name, version)
    commands = [
        ("report", copied),
        ("compare", f"{copied}:DropTail", ":RED + ECN"),
        ("verify", copied),
        ("query", "SELECT count(*) FROM flows", copied),
        ("run", small_file, "--resume", "-o", copied),
    ]
    check(aqmlab_cli, copied, refused(copied / name, version, FORMAT_VERSION), commands)


@pytest.mark.parametrize("name", ["experiment.json", "droptail/seed-1/manifest.json"])
def test_a_format_without_seals(copied, small_file, aqmlab_cli, name):
    give(copied / name, 1, seal=False)
    commands = [("report", copied), ("verify", copied), ("run", small_file, "--resume", "-o", copied)]
    check(aqmlab_cli, copied, refused(copied / name, 1, FORMAT_VERSION), commands)


@pytest.mark.parametrize("version", OTHERS)
def test_a_single_run_of_another_format(copied, aqmlab_cli, version):
    run = copied / "droptail" / "seed-1"
    give(run / "manifest.json", version)
    commands = [("report", run), ("verify", run), ("query", "SELECT count(*) FROM flows", run)]
    check(aqmlab_cli, run, refused(run / "manifest.json", version, FORMAT_VERSION), commands)


@pytest.mark.parametrize("version", OTHERS)
def test_a_run_of_another_format_in_a_store(store, tmp_path, aqmlab_cli, version):
    (sweep,) = stores.Store(store).sweeps()
    file = stores.Store(store).path_of(stores.Store(store).digests()[0]) / "manifest.json"
    give(file, version)
    commands = [
        ("report", sweep),
        ("verify", store),
        ("query", "SELECT count(*) FROM flows", store),
        ("merge", store, "--store", tmp_path / "merged"),
        ("sweep", sweep / "scenario.toml", "--store", store),
    ]
    check(aqmlab_cli, store, refused(file, version, FORMAT_VERSION), commands)


@pytest.mark.parametrize("version", [SWEEP_FORMAT - 1, SWEEP_FORMAT + 1])
def test_a_sweep_of_another_format(store, tmp_path, aqmlab_cli, version):
    (sweep,) = stores.Store(store).sweeps()
    give(sweep / "sweep.json", version)
    commands = [
        ("report", sweep),
        ("verify", store),
        ("query", "SELECT count(*) FROM flows", sweep),
        ("merge", store, "--store", tmp_path / "merged"),
        ("sweep", sweep / "scenario.toml", "--runs", "1", "--store", store),
    ]
    check(aqmlab_cli, store, refused(sweep / "sweep.json", version, SWEEP_FORMAT), commands)


@pytest.mark.parametrize("version", [stores.FORMAT_VERSION - 1, stores.FORMAT_VERSION + 1])
def test_a_store_of_another_format(store, tmp_path, aqmlab_cli, version):
    (sweep,) = stores.Store(store).sweeps()
    give(store / "store.json", version, seal=False)
    commands = [
        ("report", sweep),
        ("verify", store),
        ("query", "SELECT count(*) FROM flows", store),
        ("merge", store, "--store", tmp_path / "merged"),
        ("sweep", sweep / "scenario.toml", "--store", store),
    ]
    check(aqmlab_cli, store, refused(store / "store.json", version, stores.FORMAT_VERSION), commands)


@pytest.mark.parametrize("version", [both.FORMAT_VERSION - 1, both.FORMAT_VERSION + 1])
def test_both_sides_in_another_format(tmp_path, aqmlab_cli, version):
    file = tmp_path / "both" / both.FILE
    file.parent.mkdir()
    file.write_text(sealed({"format_version": version, "title": "Both"}), encoding="utf-8")
    commands = [("report", file.parent), ("verify", file.parent)]
    check(aqmlab_cli, file.parent, refused(file, version, both.FORMAT_VERSION), commands)
