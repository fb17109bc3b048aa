"""A bundle is one file with which a referee checks and repeats the runs; changes to it are detected."""

from __future__ import annotations

import copy
import json
import shutil
import zipfile

import pytest

import aqmlab
from aqmlab.recordings.integrity import sealed
from conftest import SMALL
from resealed import reseal


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A bundle of two arms and two seeds."""
    folder = tmp_path_factory.mktemp("bundles")
    scenario = copy.deepcopy(SMALL) | {"duration": "3s"}
    experiment = aqmlab.run(scenario, output=folder / "run", report=False)
    return aqmlab.bundle(experiment.path, folder / "b.zip"), experiment


@pytest.fixture
def changed(made, tmp_path):
    """A function that applies ``change`` to the bundle's dict of members, and returns the changed copy's
    file."""

    def call(change):
        with zipfile.ZipFile(made[0]) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        change(members)
        file = tmp_path / "changed.zip"
        with zipfile.ZipFile(file, "w") as out:
            for name, content in members.items():
                out.writestr(name, content)
        return file

    return call


def test_a_bundle_holds_everything_and_repeats(made, aqmlab_cli, monkeypatch, tmp_path):
    file, experiment = made
    # The check runs in another directory, which contains only the bundle.
    monkeypatch.chdir(tmp_path)
    shutil.copy(file, "mine.zip")
    ended = aqmlab_cli("bundle", "--check", "--rerun", "mine.zip")
    assert (ended.returncode, ended.stderr) == (0, "")
    first, *again = ended.stdout.splitlines()
    assert first.endswith(", 4 recordings")
    tables = len(experiment.runs[0].manifest.tables)
    assert again == [
        f"same      DropTail, seed 1: all {tables} tables",
        f"same      RED + ECN, seed 1: all {tables} tables",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["mine.zip"]
    with zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
        assert b"numpy==" in archive.read("lock/requirements.txt")
        archive.extractall("out")
    assert {"README.txt", "bundle.json", "experiment/scenario.toml", "lock/Cargo.lock"} <= names
    for run in experiment.runs:
        below = run.path.relative_to(experiment.path)
        assert {f"experiment/{below}/{file.name}" for file in run.path.iterdir()} <= names
    loaded = aqmlab.load(tmp_path / "out" / "experiment")
    assert str(aqmlab.answer(loaded)) == str(aqmlab.answer(experiment))


def test_the_same_runs_give_the_same_bundle(made, tmp_path):
    file, experiment = made
    assert aqmlab.bundle(experiment.path, tmp_path / "b.zip").read_bytes() == file.read_bytes()


def test_summaries_are_smaller_and_repeat_too(made, tmp_path):
    file, experiment = made
    small = aqmlab.bundle(experiment.path, tmp_path / "s.zip", summaries=True)
    assert small.stat().st_size < file.stat().st_size
    with zipfile.ZipFile(small) as archive:
        assert not [name for name in archive.namelist() if name.endswith("flow_series.parquet")]
    found = aqmlab.check_bundle(small, rerun=True, seed=2)
    assert [(run.arm, run.seed, run.differ) for run in found.repeated] == [
        ("DropTail", 2, ()),
        ("RED + ECN", 2, ()),
    ]
    # The rerun also checks tables that are not in the bundle, because the bundle contains their digests.
    assert found.repeated[0].tables == len(experiment.runs[0].manifest.tables)


def test_a_sweep_is_bundled_with_its_part_of_the_store(tmp_path):
    scenario = copy.deepcopy(SMALL) | {"runs": 1, "duration": "3s"}
    scenario |= {"sweep": {"topology.rate": ["1Mbit", "2Mbit"]}}
    work = aqmlab.sweep(scenario, store=tmp_path / "store", report=False)
    work.wait()
    file = aqmlab.bundle(work.results.path, tmp_path / "s.zip")
    shutil.rmtree(tmp_path / "store")
    found = aqmlab.check_bundle(file, rerun=True)
    assert (found.recordings, found.same, len(found.repeated)) == (4, True, 2)
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path / "out")
    (place,) = (tmp_path / "out" / "store" / "sweeps").iterdir()
    assert len(aqmlab.load(place).runs) == 4


def test_a_file_beside_the_scenario_goes_with_it(tmp_path, small, aqmlab_cli, monkeypatch):
    import tomli_w

    (tmp_path / "mine").mkdir()
    scenario = tmp_path / "mine" / "s.toml"
    vectors = tmp_path / "mine" / "v.csv"
    web = {"name": "web", "kind": "requests", "from": "right", "to": "left", "rate": "5/s"}
    web |= {"request": "400B", "response": "5kB", "rtt": "30ms"}
    scenario.write_text(tomli_w.dumps(small | {"traffic": [web], "arm": [{"name": "A"}]}), encoding="utf-8")
    aqmlab.write_vectors(scenario, vectors)
    traced = {"name": "web", "kind": "trace", "file": "v.csv", "from": "right", "to": "left", "rtt": "30ms"}
    scenario.write_text(
        tomli_w.dumps(small | {"traffic": [traced], "arm": [{"name": "A"}]}), encoding="utf-8"
    )
    experiment = aqmlab.run(scenario, output=tmp_path / "run", runs=1, report=False)
    file = aqmlab.bundle(experiment.path, tmp_path / "t.zip")
    shutil.rmtree(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    ended = aqmlab_cli("bundle", "--check", "--rerun", file)
    assert ended.returncode == 0, ended.stderr
    assert "same      A, seed 1" in ended.stdout


def test_a_file_that_is_not_below_the_scenario_is_refused(tmp_path, small, aqmlab_cli):
    import tomli_w

    (tmp_path / "mine").mkdir()
    scenario = tmp_path / "mine" / "s.toml"
    web = {"name": "web", "kind": "requests", "from": "right", "to": "left", "rate": "5/s", "rtt": "30ms"}
    web |= {"request": "400B", "response": "5kB"}
    scenario.write_text(tomli_w.dumps(small | {"traffic": [web], "arm": [{"name": "A"}]}), encoding="utf-8")
    aqmlab.write_vectors(scenario, tmp_path / "v.csv")
    traced = {
        "name": "web",
        "kind": "trace",
        "file": "../v.csv",
        "from": "right",
        "to": "left",
        "rtt": "30ms",
    }
    scenario.write_text(
        tomli_w.dumps(small | {"traffic": [traced], "arm": [{"name": "A"}]}), encoding="utf-8"
    )
    experiment = aqmlab.run(scenario, output=tmp_path / "run", runs=1, report=False)
    ended = aqmlab_cli("bundle", experiment.path, "-o", tmp_path / "t.zip")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "names the file `../v.csv`, which cannot be put into a bundle" in ended.stderr
    assert not [path for path in tmp_path.iterdir() if ".zip" in path.name]


TABLE = "experiment/droptail/seed-1/summary.parquet"


def swap(members):
    members[TABLE] = members["experiment/droptail/seed-2/summary.parquet"]


def reword(members):
    members["experiment/scenario.toml"] += b"\n# more\n"


def add(members):
    members["experiment/more.txt"] = b"x"


def lose(members):
    del members[TABLE]


def touch_index(members):
    members["bundle.json"] = members["bundle.json"].replace(b'"runs": 4', b'"runs": 5')


def lead_out(members):
    about = json.loads(members["bundle.json"])
    about["files"]["../evil"] = "0" * 64
    members["../evil"] = b"x"
    members["bundle.json"] = sealed(about).encode()


def no_files(members):
    about = json.loads(members["bundle.json"])
    members["bundle.json"] = sealed({k: v for k, v in about.items() if k != "files"}).encode()


def later(members):
    about = json.loads(members["bundle.json"])
    members["bundle.json"] = sealed(about | {"format_version": 2}).encode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swap, f"`{TABLE}` has changed since it was written"),
        (reword, "`experiment/scenario.toml` has changed since it was written"),
        (add, "`experiment/more.txt` is not in `bundle.json`"),
        (lose, f"`{TABLE}` is missing"),
        (touch_index, "is corrupt"),
        (lead_out, "`../evil` is outside the bundle"),
        (no_files, "`bundle.json` has no list of files"),
        (later, "format version `2`"),
        (dict.clear, "is not a bundle"),
    ],
)
def test_what_was_changed_is_found(changed, aqmlab_cli, tmp_path, change, message):
    file = changed(change)
    ended = aqmlab_cli("bundle", "--check", file)
    assert (ended.returncode, ended.stdout) == (4, "")
    assert message in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["changed.zip"]


def test_a_rerun_finds_numbers_that_no_run_gave(made, changed, aqmlab_cli, tmp_path):
    """All hashes agree because they were recomputed with the table; only a repeated run detects the
    change."""
    import hashlib

    other = tmp_path / "seed-2"
    (run,) = (run for run in made[1].runs_of("DropTail") if run.seed == 2)
    shutil.copytree(run.path, other)
    reseal(other, seed=1)

    def forge(members):
        about = json.loads(members["bundle.json"])
        for file in other.iterdir():
            name = f"experiment/droptail/seed-1/{file.name}"
            members[name] = file.read_bytes()
            about["files"][name] = hashlib.sha256(members[name]).hexdigest()
        members["bundle.json"] = sealed(about).encode()

    file = changed(forge)
    assert aqmlab_cli("bundle", "--check", file).returncode == 0
    ended = aqmlab_cli("bundle", "--check", "--rerun", file)
    assert ended.returncode == 1, ended.stderr
    differs, same = ended.stdout.splitlines()[1:]
    assert differs.startswith("differs   DropTail, seed 1: ")
    assert "summary" in differs
    assert same.startswith("same      RED + ECN")
    found = json.loads(aqmlab_cli("bundle", "--check", "--rerun", "--json", file).stdout)
    assert "summary" in found["repeated"][0]["differ"]


def test_live_runs_are_not_repeated(made, aqmlab_cli, tmp_path):
    shutil.copytree(made[1].path, tmp_path / "live")
    for arm in ("droptail", "red-ecn"):
        for seed in (1, 2):
            reseal(tmp_path / "live" / arm / f"seed-{seed}", host="live")
    file = aqmlab.bundle(tmp_path / "live", tmp_path / "live.zip")
    ended = aqmlab_cli("bundle", "--check", "--rerun", file)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "live runs cannot be repeated" in ended.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["{run}", "-o", "{there}"], 2, "exists already"),
        (["{run}/droptail/seed-1", "-o", "{new}"], 2, "is a single run"),
        (["{run}", "-o", "{tmp}/none/x.zip"], 3, "cannot write"),
        (["{tmp}/none"], 4, "no such directory"),
        (["{run}", "--rerun"], 2, "require `--check`"),
        (["--check", "{zip}", "-o", "{new}"], 2, "`--check` writes no file"),
        (["--check", "{zip}", "--seed", "2"], 2, "`--rerun` repeats"),
        (["--check", "--rerun", "{zip}", "--seed", "9"], 2, "there is no seed `9`"),
        (["--check", "{tmp}/none.zip"], 4, "no such file"),
        (["--check", "{there}"], 4, "is not a ZIP file"),
    ],
)
def test_a_wrong_request_writes_nothing(made, aqmlab_cli, tmp_path, words, code, message):
    there = tmp_path / "there.zip"
    there.write_text("mine", encoding="utf-8")
    names = {
        "run": made[1].path,
        "zip": made[0],
        "there": there,
        "new": tmp_path / "new.zip",
        "tmp": tmp_path,
    }
    ended = aqmlab_cli("bundle", *(word.format(**names) for word in words))
    assert (ended.returncode, ended.stdout) == (code, ""), ended.stderr
    assert message in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["there.zip"]
    assert there.read_text(encoding="utf-8") == "mine"
