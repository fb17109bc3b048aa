"""Runs: results do not depend on simultaneous runs, and nothing unfinished remains."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import aqmlab
from aqmlab.paths import load
from aqmlab.sweeps.cases import Cases, chosen_seeds
from aqmlab.sweeps.experiment_directory import directory_name


def digests(experiment):
    return {
        (run.arm, run.seed): {name: facts.digest for name, facts in run.manifest.tables.items()}
        for run in experiment.runs
    }


def test_results_do_not_depend_on_the_number_of_workers(small, experiment, tmp_path):
    alone = aqmlab.run(small, output=tmp_path / "alone", jobs=1, report=False)
    assert digests(alone) == digests(experiment)
    assert len(set(map(str, digests(alone).values()))) == 4  # different seeds and arms give different results


def test_another_process_gets_the_same(small_file, experiment, tmp_path):
    command = [
        sys.executable,
        "-m",
        "aqmlab",
        "run",
        small_file,
        "-o",
        tmp_path / "other",
        "--no-report",
        "-q",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert digests(load(tmp_path / "other")) == digests(experiment)


def test_an_experiment_is_complete(experiment):
    assert experiment.missing == ()
    assert [(run.arm, run.seed) for run in experiment.runs] == [
        ("DropTail", 1),
        ("DropTail", 2),
        ("RED + ECN", 1),
        ("RED + ECN", 2),
    ]
    assert {path.name for path in experiment.path.iterdir()} == {
        "scenario.toml",
        "experiment.json",
        "report.html",
        "droptail",
        "red-ecn",
    }


def test_arms_share_their_arrivals(experiment):
    """The unresponsive class sends the same packets in every arm; the arms differ only in the queue."""
    sent = {
        run.arm: list(experiment.tables.rows("flows", "class, start_ns, base_rtt_ns", "ORDER BY flow", [run]))
        for run in experiment.runs
        if run.seed == 1
    }
    assert sent["DropTail"] == sent["RED + ECN"]


def test_marks_take_the_place_of_drops(experiment):
    answer = aqmlab.answer(experiment, ["drop_early_percent", "mark_percent"])
    assert answer.estimate("RED + ECN", "mark_percent").mean > 0
    assert answer.estimate("DropTail", "mark_percent") is None
    assert answer.estimate("DropTail", "drop_early_percent").mean == 0


def test_some_arms_and_some_seeds(small, tmp_path):
    part = aqmlab.run(small, output=tmp_path / "part", arms=["RED + ECN"], seed=7, runs=1, report=False)
    assert [(run.arm, run.seed) for run in part.runs] == [("RED + ECN", 7)]
    assert part.missing == ()


def test_progress_is_told(small, tmp_path):
    told = []
    small |= {"duration": "60s", "runs": 3}
    aqmlab.run(small, output=tmp_path / "told", progress=told.append, report=False)
    assert {now.runs_total for now in told} == {6}
    assert [now.runs_done for now in told] == sorted(now.runs_done for now in told)
    assert [now.events for now in told] == sorted(now.events for now in told)
    assert (told[-1].runs_done, told[-1].to_go_s) == (6, 0.0)
    assert told[-1].events > 100_000


def test_progress_tells_of_runs_that_are_being_done(small, tmp_path):
    seen, to_go = [], []

    def look(now):
        seen.extend(now.under_way)
        to_go.append(now.to_go_s)
        if len({run.events for run in seen}) > 2:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        aqmlab.run(small | {"duration": "48h"}, output=tmp_path / "long", jobs=1, progress=look)
    assert {(run.arm, run.seed, run.total_s) for run in seen} == {("DropTail", 1, 48 * 3600.0)}
    assert [run.done_s for run in seen] == sorted(run.done_s for run in seen)
    assert 0 < seen[-1].share < 1
    assert seen[-1].events > seen[0].events
    assert to_go[-1] > 0, "the rest of the first run is estimated before it has ended"


def test_an_error_in_the_callback_stops_the_runs(small, tmp_path):
    def fail(_now):
        raise ZeroDivisionError

    small |= {"duration": "2h", "runs": 1}
    begun = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        aqmlab.run(small, output=tmp_path / "failed", progress=fail)
    assert time.monotonic() - begun < 20
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(small, experiment):
    before = (experiment.path / "experiment.json").read_bytes()
    with pytest.raises(aqmlab.UsageError, match="exists already"):
        aqmlab.run(small, output=experiment.path)
    assert (experiment.path / "experiment.json").read_bytes() == before


def test_a_wrong_scenario_writes_nothing_and_says_where(small, tmp_path):
    small["topology"]["rate"] = "10MB"
    with pytest.raises(aqmlab.ScenarioError, match="10MB") as caught:
        aqmlab.run(small, output=tmp_path / "wrong")
    (problem,) = caught.value.errors
    assert problem["line"] > 0
    assert problem["path"] == "topology.rate"
    assert list(tmp_path.iterdir()) == []


def test_what_only_a_kernel_has_is_refused_with_its_place_before_anything_runs(small, tmp_path):
    small["arm"] = [{"name": "a"}, {"name": "b", "traffic.ftp.tcp.congestion": "vegas"}]
    with pytest.raises(aqmlab.ScenarioError, match='no congestion control "vegas"') as caught:
        aqmlab.run(small, output=tmp_path / "refused")
    (problem,) = caught.value.errors
    assert problem["line"] > 0
    assert problem["path"] == "traffic.ftp.tcp.congestion"
    assert list(tmp_path.iterdir()) == []


def test_cubic_is_another_sender_than_reno(small, tmp_path):
    small["arm"] = [{"name": "reno"}, {"name": "cubic", "traffic.ftp.tcp.congestion": "cubic"}]
    experiment = aqmlab.run(small, output=tmp_path / "both", runs=1)
    windows = [
        experiment.tables.rows("flow_series", "sum(cwnd_segments)", runs=[run]) for run in experiment.runs
    ]
    assert len(windows) == 2
    assert windows[0] != windows[1]


@pytest.mark.parametrize("name", ["b", "b with a name so long that a writer might break the line"])
def test_a_table_in_an_arm_of_a_dict_replaces_wholly(small, name):
    small["topology"]["queue"] = {
        "kind": "red",
        "limit": "40p",
        "min_th": "5p",
        "max_th": "15p",
        "max_p": 0.3,
    }
    queue = {"kind": "red", "limit": "20p", "min_th": "4p", "max_th": "12p", "byte_mode": "off"}
    small["arm"] = [{"name": "a"}, {"name": name, "topology.queue": queue}]
    first, second = (arm["plan"]["links"][0]["queue"]["settings"] for arm in aqmlab.show(small)["arms"])
    assert first["max_p"] == 0.3
    assert second["max_p"] == 0.1  # the default, not the value of the other arm


def test_what_comes_after_a_table_of_a_dict_is_not_in_it(small):
    small["duration"] = small.pop("duration")
    assert list(small)[-1] == "duration"
    assert aqmlab.show(small)["arms"][0]["end_ns"] > 0


def test_a_dict_with_what_toml_cannot_hold(small):
    small["duration"] = object()
    with pytest.raises(aqmlab.ScenarioError, match="TOML cannot"):
        aqmlab.show(small)


def test_a_run_that_outgrows_its_memory_is_ended(small, tmp_path, monkeypatch):
    monkeypatch.setattr("aqmlab.sweeps.where.memory_cap", lambda _jobs: 20_000)
    small |= {"duration": "2h"}
    with pytest.raises(aqmlab.HostError, match="memory"):
        aqmlab.run(small, output=tmp_path / "large")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("planned", "seed", "runs", "expected"),
    [
        ([5, 6], None, None, [5, 6]),
        ([5, 6], 1, None, [1, 2]),
        ([5, 6], None, 3, [5, 6, 7]),
        ([5], 2, 2, [2, 3]),
    ],
)
def test_seeds(planned, seed, runs, expected):
    assert chosen_seeds(planned, seed, runs) == expected


@pytest.mark.parametrize(("seed", "runs"), [(None, 0), (-1, None), (2**63, None)])
def test_seeds_that_make_no_sense(seed, runs):
    with pytest.raises(aqmlab.UsageError):
        chosen_seeds([1], seed, runs)


def test_a_directory_name_tells_time_title_and_content(small):
    from datetime import UTC, datetime

    cases = Cases(small | {"title": "RED / DropTail: «ü»!"})
    name = directory_name(cases, datetime(2026, 11, 21, 19, 7, 5, tzinfo=UTC))
    assert name.startswith("20261121T190705Z-red-droptail-")
    others = [
        Cases(small | {"title": "RED / DropTail: «ü»!"}, **other) for other in ({"seed": 2}, {"host": "live"})
    ]
    names = {directory_name(other, datetime(2026, 11, 21, 19, 7, 5, tzinfo=UTC)) for other in others}
    assert len(names | {name}) == 3


def test_interrupted_runs_keep_what_has_finished(small, tmp_path):
    """Ctrl-C: exit code 130; the short runs before it are kept and readable; the long one leaves nothing."""
    import tomli_w

    small["arm"] = [{"name": "short"}, {"name": "long", "duration": "20h"}]
    file = tmp_path / "scenario.toml"
    file.write_text(tomli_w.dumps(small), encoding="utf-8")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "aqmlab", "run", file, "-o", out, "-j", "1", "--runs", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (out / "short" / "seed-1" / "manifest.json").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert f"finished runs are kept in `{out}`" in stderr
    assert stdout == ""
    kept = load(out)
    assert [(run.arm, run.seed) for run in kept.runs] == [("short", 1)]
    assert [(lost.cell.arm, lost.seed) for lost in kept.missing] == [("long", 1)]
    assert not (out / "long").exists() or list((out / "long").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="a full disk is made with mount, which needs root")
def test_a_full_disk_ends_with_exit_3_and_no_partial_run(small_file, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", disk], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("mount is not allowed here")
    try:
        command = [sys.executable, "-m", "aqmlab", "run", small_file, "-o", disk / "out", "-j", "1"]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        assert ended.returncode == 3, ended.stderr
        assert "the disk is full" in ended.stderr or "No space left" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert [path for path in disk.rglob("*") if "partial" in path.name] == []
        for folder in disk.glob("out/*/seed-*"):
            assert json.loads((folder / "manifest.json").read_text())["books_balanced"]
    finally:
        subprocess.run(["umount", disk], check=True)
