"""No bit of a recording can change unnoticed: flipped bits, and swapped, truncated and empty files."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

import aqmlab
from aqmlab.errors import DamageError
from aqmlab.paths import load
from aqmlab.recordings import integrity
from aqmlab.sweeps.store import Store
from sweeping import tables as sweep_tables
from sweeping import tiny

UNREAD = ("scenario.toml", "report.html")
"""Files on which no number depends."""


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """The directory of a sweep of four runs."""
    scenario = tiny(runs=2, duration="1500ms", sweep={"topology.rate": ["2Mbit"]}, claim=[])
    with aqmlab.sweep(scenario, store=tmp_path_factory.mktemp("digests") / "store", report=False) as sweep:
        sweep.wait()
    return sweep.path


@pytest.fixture
def copied(experiment, tmp_path):
    return Path(shutil.copytree(experiment.path, tmp_path / "copy"))


@pytest.fixture
def spoilt(swept, tmp_path):
    """A copy of the sweep for a test to corrupt."""
    store = Path(shutil.copytree(swept.parent.parent, tmp_path / "store"))
    return store / "sweeps" / swept.name


def files_of(path):
    return sorted(file for file in path.rglob("*") if file.is_file() and file.name not in UNREAD)


def everything(path):
    """All numbers of an experiment: those in its answer, and each row of each table."""
    found = load(path)
    names = found.runs[0].manifest.tables
    rows = {name: found.tables.select(name, f"SELECT * FROM {name} ORDER BY ALL") for name in names}
    return json.dumps(aqmlab.answer(found).to_json() | {"path": ""}), rows


def flip(file, place):
    content = bytearray(file.read_bytes())
    content[place // 8] ^= 1 << place % 8
    file.write_bytes(content)
    # The timestamps of the file system may be too coarse to distinguish two writes of a test.
    integrity._digests.clear()


def flips(files, count, seed):
    """Bits to flip: some in files chosen with equal probability, some chosen among all bits, and some in
    footers."""
    rng = random.Random(seed)
    sizes = [file.stat().st_size for file in files]
    for i in range(count):
        (file,) = rng.choices(files, sizes if i % 2 else None)
        size = file.stat().st_size
        begin = max(size - 300, 0) if i % 4 == 0 else 0
        yield file, rng.randrange(8 * begin, 8 * size)


def check_flips(path, count, seed):
    """Each flipped bit is detected when its file is read, and no other error is reported."""
    for file, place in flips(files_of(path), count, seed):
        before = file.read_bytes()
        flip(file, place)
        with pytest.raises(DamageError, match=r"corrupt|incomplete") as told:
            everything(path)
        assert all(str(file) in reason for reason in told.value.reasons), (seed, file, place, told.value)
        assert len(told.value.reasons) == 1
        assert aqmlab.verify(path).damaged == list(told.value.reasons)
        file.write_bytes(before)
    integrity._digests.clear()


def test_a_hundred_flipped_bits_are_all_noticed(copied):
    before = everything(copied)
    check_flips(copied, 100, seed=15)
    assert everything(copied) == before
    assert aqmlab.verify(copied).damaged == []


@pytest.mark.slow
def test_two_thousand_flipped_bits_are_all_noticed(copied):
    check_flips(copied, 2000, seed=16)


def test_flipped_bits_end_each_command_with_4_and_no_number(copied, aqmlab_cli):
    commands = [
        ("report", copied),
        ("claims", copied),
        ("verify", copied),
        ("compare", f"{copied}:DropTail", ":RED + ECN"),
    ]
    for file, place in flips(
        [file for file in files_of(copied) if file.stem in ("summary", "manifest")], 6, seed=17
    ):
        before = file.read_bytes()
        flip(file, place)
        for words in commands:
            ended = aqmlab_cli(*words)
            assert ended.returncode == 4, words
            assert str(file) in ended.stderr
            assert words[0] == "compare" or "±" not in ended.stdout
        file.write_bytes(before)


@pytest.mark.parametrize("content", [b"", b"PAR1"])
def test_every_damaged_file_is_named_and_what_to_do(copied, content, aqmlab_cli):
    broken = [
        copied / "droptail" / "seed-1" / "summary.parquet",
        copied / "droptail" / "seed-2" / "queues.parquet",
        copied / "red-ecn" / "seed-1" / "manifest.json",
        copied / "red-ecn" / "seed-2" / "flows.parquet",
    ]
    for file in broken:
        file.write_bytes(file.read_bytes()[:100] if content else b"")
    for words in (("report", copied), ("verify", copied)):
        ended = aqmlab_cli(*words)
        assert ended.returncode == 4
        assert all(str(file) in ended.stderr for file in broken), ended.stderr
        assert "--resume -o" in ended.stderr


def test_tables_of_one_seed_in_the_directory_of_another_are_noticed(copied):
    one, other = (copied / "droptail" / f"seed-{seed}" for seed in (1, 2))
    for name in ("summary", "flows"):
        kept = (one / f"{name}.parquet").read_bytes()
        (one / f"{name}.parquet").write_bytes((other / f"{name}.parquet").read_bytes())
        (other / f"{name}.parquet").write_bytes(kept)
    with pytest.raises(DamageError) as told:
        aqmlab.answer(load(copied))
    assert len(told.value.reasons) == 4


@pytest.mark.parametrize("second", ["droptail/seed-2", "red-ecn/seed-1"])
def test_directories_in_the_place_of_each_other_are_noticed(copied, second):
    one, other = copied / "droptail" / "seed-1", copied / second
    one.rename(copied / "aside")
    other.rename(one)
    (copied / "aside").rename(other)
    with pytest.raises(DamageError, match="is the recording of another run: of arm") as told:
        load(copied)
    assert len(told.value.reasons) == 2
    assert aqmlab.verify(copied).damaged == list(told.value.reasons)


def run_of(sweep, place=0):
    store = Store(sweep.parent.parent)
    return store.path_of(store.digests()[place])


def spoil(sweep):
    """Flip one bit in one table of each of two runs, and return the files."""
    files = [run_of(sweep, 0) / "histograms.parquet", run_of(sweep, 2) / "queues.parquet"]
    for file in files:
        flip(file, 8 * (file.stat().st_size // 2))
    return files


def test_a_sweep_makes_damaged_runs_anew(swept, spoilt, aqmlab_cli):
    broken = spoil(spoilt)
    stamps = {file: file.stat().st_mtime_ns for file in spoilt.parent.parent.glob("runs/*/*/manifest.json")}
    ended = aqmlab_cli("sweep", spoilt / "scenario.toml", "--store", spoilt.parent.parent, "--no-report")
    assert ended.returncode == 0
    assert all(f"repeated: `{file}` is corrupt" in ended.stderr for file in broken)
    assert sweep_tables(spoilt) == sweep_tables(swept)
    assert aqmlab.verify(spoilt.parent.parent).damaged == []
    redone = {file for file, stamp in stamps.items() if file.stat().st_mtime_ns != stamp}
    assert redone == {file.parent / "manifest.json" for file in broken}


def test_a_query_leaves_damaged_tables_out_and_ends_with_4(spoilt, aqmlab_cli):
    files = spoil(spoilt)
    ended = aqmlab_cli("query", "SELECT count(DISTINCT digest) AS runs FROM histograms", spoilt, "--csv")
    assert (ended.returncode, ended.stdout) == (4, "runs\n3\n")
    assert f"left out: `{files[0]}` is corrupt" in ended.stderr
    assert aqmlab_cli("query", "SELECT count(*) FROM flows", spoilt).returncode == 0


def test_a_merge_takes_no_damaged_run_and_heals_one_with_a_sound_one(swept, spoilt, tmp_path):
    damaged = spoil(spoilt)
    merged = aqmlab.merge([spoilt.parent.parent], tmp_path / "merged", report=False)
    assert (merged.added, len(merged.damaged)) == (2, 2)
    assert all(str(file) in merged.damaged[i] for i, file in enumerate(sorted(damaged)))
    healed = aqmlab.merge([swept.parent.parent], spoilt.parent.parent, report=False)
    assert (healed.added, healed.present, healed.damaged) == (2, 2, ())
    assert aqmlab.verify(spoilt.parent.parent).damaged == []


def test_runs_in_the_place_of_each_other_are_noticed_in_a_store(spoilt, aqmlab_cli):
    one, other = run_of(spoilt, 0), run_of(spoilt, 1)
    one.rename(spoilt / "aside")
    other.rename(one)
    (spoilt / "aside").rename(other)
    for path in (spoilt, spoilt.parent.parent):
        ended = aqmlab_cli("query", "SELECT count(DISTINCT digest) AS runs FROM summary", path, "--csv")
        assert (ended.returncode, ended.stdout) == (4, "runs\n2\n")
        assert len(aqmlab.verify(path).damaged) == 2
    assert len([m for m in load(spoilt).missing if m.damaged]) == 2


def test_a_list_of_runs_that_was_changed_is_noticed_and_made_anew(swept, spoilt, aqmlab_cli):
    file = spoilt / "sweep.json"
    file.write_bytes(file.read_bytes().replace(b'"2Mbit"', b'"3Mbit"'))
    ended = aqmlab_cli("report", spoilt)
    assert ended.returncode == 4
    assert f"`{file}` is corrupt" in ended.stderr
    assert "`aqmlab sweep SCENARIO` writes it again" in ended.stderr
    assert aqmlab_cli("sweep", spoilt / "scenario.toml", "--store", spoilt.parent.parent).returncode == 0
    assert sweep_tables(spoilt) == sweep_tables(swept)


def test_verify_tells_what_it_has_looked_at(copied, spoilt, aqmlab_cli):
    shutil.rmtree(copied / "droptail" / "seed-2")
    ended = aqmlab_cli("verify", copied, spoilt, spoilt.parent.parent, copied / "droptail" / "seed-1")
    assert ended.returncode == 0
    first, second, third, fourth = ended.stdout.splitlines()
    assert first.startswith(f"ok       {copied}: 3 recordings, 24 tables, ")
    assert first.endswith("; 1 run missing")
    assert second.startswith(f"ok       {spoilt}: 4 recordings, ")
    assert third.startswith(f"ok       {spoilt.parent.parent}: 4 recordings, ")
    assert ": 1 recording, 8 tables, " in fourth
    found = json.loads(aqmlab_cli("verify", copied, "--json").stdout)
    assert [found["directories"][0][key] for key in ("recordings", "missing", "damaged")] == [3, 1, []]
    ended = aqmlab_cli("verify", copied.parent, copied)
    assert ended.returncode == 4
    assert f"nothing to verify at `{copied.parent}`" in ended.stderr
    assert f"ok       {copied}: " in ended.stdout


def test_an_interrupted_experiment_goes_on(copied, experiment, small_file, aqmlab_cli):
    kept = copied / "droptail" / "seed-1" / "manifest.json"
    stamp = kept.stat().st_mtime_ns
    shutil.rmtree(copied / "droptail" / "seed-2")
    flip(copied / "red-ecn" / "seed-1" / "summary.parquet", 800)
    ended = aqmlab_cli("run", small_file, "--resume", "-o", copied, "-q")
    assert ended.returncode == 0, ended.stderr
    assert kept.stat().st_mtime_ns == stamp
    assert everything(copied) == everything(experiment.path)


def test_what_is_of_something_else_is_not_resumed(copied, small, aqmlab_cli, tmp_path):
    import tomli_w

    file = tmp_path / "other.toml"
    file.write_text(tomli_w.dumps(small | {"duration": "7s"}), encoding="utf-8")
    for words, message in [
        ((file,), "its arms differ, or have other values"),
        ((tmp_path / "small.toml", "--seeds", "1"), "it also has seed 2, which is not requested"),
    ]:
        (tmp_path / "small.toml").write_text(tomli_w.dumps(small), encoding="utf-8")
        ended = aqmlab_cli("run", *words, "--resume", "-o", copied)
        assert ended.returncode == 2
        assert f"`{copied}` cannot be resumed: {message}" in ended.stderr


def test_resuming_adds_seeds(copied, small_file, tmp_path, monkeypatch, aqmlab_cli):
    kept = {file: file.stat().st_mtime_ns for file in copied.glob("*/seed-*/manifest.json")}
    ended = aqmlab_cli("run", small_file, "--resume", "--seeds", "4", "-o", copied)
    assert ended.returncode == 0, ended.stderr
    assert "over 4 seeds (1 to 4)" in ended.stdout
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    found = aqmlab.load(copied)
    assert (found.seeds, found.missing, len(found.runs)) == ((1, 2, 3, 4), (), 8)
    monkeypatch.chdir(tmp_path)
    for seeds in ("2", "3"):
        words = ("run", small_file, "--resume", "--seeds", seeds, "--no-report")
        assert aqmlab_cli(*words).returncode == 0
    (directory,) = (tmp_path / "runs").iterdir()
    assert aqmlab.load(directory).seeds == (1, 2, 3)


def test_to_resume_what_was_never_begun_is_to_begin(small_file, tmp_path, monkeypatch, aqmlab_cli):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert aqmlab_cli("run", small_file, "--resume", "--runs", "1", "--no-report").returncode == 0
    (directory,) = (tmp_path / "runs").iterdir()
    assert aqmlab_cli("run", small_file, "--runs", "1", "--no-report").returncode == 0
    assert len(list((tmp_path / "runs").iterdir())) == 2
    assert directory.is_dir()


def test_two_that_begin_in_one_second_have_a_directory_each(small, tmp_path, monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    from aqmlab.sweeps import experiment_directory
    from aqmlab.sweeps.cases import Cases

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(experiment_directory, "directory_name", lambda _cases: "the-same-second")
    cases = Cases(small)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: experiment_directory.begin(cases, None).path, range(40)))
    assert len(set(made)) == 40
    assert all((path / "experiment.json").is_file() for path in made)
