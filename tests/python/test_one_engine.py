"""`run`, `live` and `--both` continue where they were interrupted, like sweeps, and in the same order."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tomli_w

import aqmlab
import live_worlds
from aqmlab import load
from aqmlab.sweeps.cases import Cases
from aqmlab.sweeps.experiment_directory import ExperimentDirectory
from sweeping import manifests as sweep_manifests
from sweeping import tables, tiny


def manifests(directory):
    """The digests of the tables of each run, by the run's path."""
    return {
        str(run.path.relative_to(directory)): {
            name: facts.digest for name, facts in run.manifest.tables.items()
        }
        for run in load(directory).runs
    }


def left_over(directory):
    return [path for path in directory.rglob(".*") if path.name != ".lock"]


def workers_of(directory):
    """Process ids of the workers that write an experiment's directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"aqmlab.sweeps.worker" in words and str(directory).encode() in words:
            found.append(int(entry.name))
    return found


def wait_until(true, patience_s=60):
    until = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.fixture
def many(small, tmp_path):
    """A scenario of sixteen runs, and the command that runs it in a separate process."""
    file = tmp_path / "many.toml"
    file.write_text(tomli_w.dumps(small | {"runs": 8, "duration": "20s"}), encoding="utf-8")

    def begun(out, *options):
        command = [sys.executable, "-m", "aqmlab", "run", file, "-o", out, "-j", "2", "--no-report", *options]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    return file, begun


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The same sixteen runs, executed by one worker."""
    from conftest import SMALL

    folder = tmp_path_factory.mktemp("alone")
    scenario = {**SMALL, "runs": 8, "duration": "20s"}
    return manifests(aqmlab.run(scenario, output=folder / "out", jobs=1, report=False).path)


def test_results_of_a_run_do_not_depend_on_the_number_of_workers(small, alone, tmp_path):
    scenario = small | {"runs": 8, "duration": "20s"}
    four = aqmlab.run(scenario, output=tmp_path / "four", jobs=4, report=False)
    assert manifests(four.path) == alone
    assert len(alone) == 16


def test_a_worker_that_is_killed_costs_nothing_but_time(many, alone, tmp_path):
    _, begun = many
    out = tmp_path / "out"
    with begun(out) as process:
        wait_until(lambda: len(list(out.glob("*/seed-*/manifest.json"))) >= 2)
        workers = workers_of(out)
        os.kill(workers[0], signal.SIGKILL)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert manifests(out) == alone
    assert left_over(out) == []


def test_a_client_that_is_killed_goes_on_with_resume(many, alone, tmp_path):
    _, begun = many
    out = tmp_path / "out"
    with begun(out) as process:
        wait_until(lambda: len(list(out.glob("*/seed-*/manifest.json"))) >= 2)
        process.kill()
    wait_until(lambda: not workers_of(out))
    kept = {file: file.stat().st_mtime_ns for file in out.glob("*/seed-*/manifest.json")}
    assert 2 <= len(kept) < 16
    with begun(out, "--resume") as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert manifests(out) == alone
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    assert left_over(out) == []


def test_a_damaged_run_stays_until_it_has_been_done_again(small, tmp_path):
    out = aqmlab.run(small, output=tmp_path / "out", report=False).path
    file = out / "droptail" / "seed-1" / "summary.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    place = ExperimentDirectory(out)
    assert place.damage("droptail/seed-1")
    assert place.damage("droptail/seed-2") == ()
    (out / "red-ecn" / "seed-1").rename(out / "away")
    (out / "red-ecn" / "seed-2").rename(out / "red-ecn" / "seed-1")
    assert place.damage("red-ecn/seed-1") == (
        f"`{out / 'red-ecn' / 'seed-1'}` is the recording of another run: of arm `RED + ECN` and seed 2",
    )


def swept(store, **options):
    scenario = tiny(runs=1, claim=[], sweep={"topology.rate": ["2Mbit", "4Mbit"]})
    sweep = aqmlab.sweep(scenario, store=store, report=False, jobs=2, **options)
    return sweep, sweep.wait()


def captures(store):
    return {file.parent.name: file.stat().st_mtime_ns for file in store.glob("runs/*/*/packets.pcapng")}


def test_a_capture_is_made_where_it_is_missing_and_changes_no_result(tmp_path):
    store = tmp_path / "store"
    plain, _ = swept(store)
    before, files = tables(plain.path), sweep_manifests(store)
    assert captures(store) == {}
    for kept_bytes, again in ((40, 4), (40, 0), (30, 0), (60, 4)):
        captured, _ = swept(store, pcap=["bottleneck"], pcap_bytes=kept_bytes)
        assert captured.progress.runs_done == again
        assert all(
            "lacks requested packets" in reason for reasons in captured.damaged.values() for reason in reasons
        )
    assert len(captures(store)) == 4
    every, _ = swept(store, pcap="all")
    assert every.progress.runs_done == 4
    assert swept(store, pcap=["reverse"], pcap_bytes=128)[0].progress.runs_done == 0
    assert swept(store)[0].progress.runs_done == 0
    assert (tables(every.path), sweep_manifests(store)) == (before, files)
    with pytest.raises(aqmlab.UsageError, match="there is no port `middle` in arm `DropTail`"):
        swept(store, pcap=["middle"])


def test_a_run_goes_on_with_the_packets_that_it_lacks(small, tmp_path):
    small["runs"] = 1
    out = tmp_path / "out"
    aqmlab.run(small, output=out, report=False)
    before = manifests(out)
    aqmlab.run(small, output=out, resume=True, pcap=["all"], report=False)
    assert len(list(out.glob("*/seed-1/packets.pcapng"))) == 2
    assert manifests(out) == before


def test_live_runs_go_seed_by_seed_and_simulated_ones_arm_by_arm(small):
    def order(host):
        return [(cell.arm, seed) for cell, seed, _ in Cases(small, host=host)]

    arms = ("DropTail", "RED + ECN")
    assert order("sim") == [(arm, seed) for arm in arms for seed in (1, 2)]
    assert order("live") == [(arm, seed) for seed in (1, 2) for arm in arms]
    assert {d for *_, d in Cases(small)}.isdisjoint(d for *_, d in Cases(small, host="live"))


@pytest.mark.parametrize("does", [aqmlab.run, aqmlab.sweep])
def test_a_host_that_does_not_exist_or_is_not_on_the_cluster_is_refused(does, small):
    with pytest.raises(aqmlab.UsageError, match="no host `lve`; did you mean `live`"):
        does(small, host="lve")
    with pytest.raises(aqmlab.UsageError, match="live runs use this machine: leave out the executor"):
        does(small, host="live", executor=aqmlab.Cluster("tcp://127.0.0.1:1"))


def test_live_runs_that_are_there_are_kept_and_others_done(router, small, tmp_path):
    out = tmp_path / "out"
    router("second-killed")
    with pytest.raises(aqmlab.RunError, match="2 of 4 runs failed"):
        aqmlab.run(small, host="live", output=out, report=False)
    kept = {file: file.stat().st_mtime_ns for file in out.glob("*/seed-*/manifest.json")}
    assert len(kept) == 2
    router("faithful")
    done = aqmlab.run(small, host="live", output=out, resume=True, report=False)
    assert done.missing == ()
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    with pytest.raises(aqmlab.UsageError, match="its runs are of the other kind"):
        aqmlab.run(small, output=out, resume=True)


def test_a_live_run_that_was_interrupted_is_done_again(router, small, tmp_path, aqmlab_cli, monkeypatch):
    from aqmlab.cli.progress import ProgressLine

    small |= {"runs": 1, "duration": "3s"}
    file = tmp_path / "tiny.toml"
    file.write_text(tomli_w.dumps(small), encoding="utf-8")
    router("leaves-a-part")
    with monkeypatch.context() as patched:
        patched.setattr(ProgressLine, "update", live_worlds.interrupt_when_it_runs())
        assert aqmlab_cli("live", file, "-o", tmp_path / "out").returncode == 130
    (part,) = load(tmp_path / "out").runs
    assert part.manifest.live["interrupted"]
    router("faithful")
    ended = aqmlab_cli("live", file, "-o", tmp_path / "out", "--resume")
    assert ended.returncode == 0, ended.stderr
    runs = load(tmp_path / "out").runs
    assert [run.manifest.live["interrupted"] for run in runs] == [False, False]


def test_a_sweep_of_live_runs(router, tmp_path, aqmlab_cli):
    router("faithful")
    file, store = tmp_path / "tiny.toml", tmp_path / "store"
    file.write_text(
        tomli_w.dumps(tiny(runs=2, claim=[], sweep={"topology.rate": ["2Mbit", "4Mbit"]})), encoding="utf-8"
    )
    words = ("sweep", file, "--store", store, "--no-report")
    forecast = aqmlab_cli(*words, "--host", "live", "--dry-run")
    assert "about 24 s" in forecast.stdout
    assert "live" in forecast.stdout
    assert aqmlab_cli(*words).returncode == 0
    ended = aqmlab_cli(*words, "--host", "live")
    assert ended.returncode == 0, ended.stderr
    assert "live runs: 24 s in real time, one after the other" in ended.stderr
    assert ended.stdout.startswith("faithful: 8 of 8 runs\n")
    rows = [line for line in ended.stdout.splitlines() if line.endswith(" faithful")]
    assert [row.split("  ")[0] for row in rows] == [
        f"{arm}, rate {rate}" for rate in ("2Mbit", "4Mbit") for arm in ("DropTail", "RED")
    ]
    simulated, live = sorted((store / "sweeps").iterdir(), key=lambda path: path.name.endswith("-live"))
    assert live.name.endswith("-live")
    assert "live runs: " not in aqmlab_cli(*words, "--host", "live").stderr, "all are there"
    # The stand-in's live run is the simulation, so nothing differs.
    compared = aqmlab_cli("compare", simulated, live, "--metric", "goodput_bps", "--json")
    assert compared.returncode == 0, compared.stderr
    found = json.loads(compared.stdout)["compared"]
    assert len(found) == 4
    router("unfaithful")
    ended = aqmlab_cli(*words, "--host", "live", "--force")
    assert ended.returncode == 5
    assert len(re.findall(r"^\w+, rate .Mbit .* 2300\.0 .* NOT FAITHFUL: 2 of 2$", ended.stdout, re.M)) == 4
    events = aqmlab_cli(*words, "--host", "live", "--json").stdout.splitlines()
    end = json.loads(events[-1])
    assert (end["faithful"], len(end["verdicts"])) == (False, 8)
    # Half of the runs are repeated; the others are faithful and therefore kept.
    router("red-unfaithful")
    assert aqmlab_cli(*words, "--host", "live", "--force").returncode == 5
    kept = {run: run.stat().st_mtime_ns for run in (store / "runs").rglob("manifest.json")}
    router("faithful")
    ended = aqmlab_cli(*words, "--host", "live", "--faithful")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("faithful: 8 of 8 runs\n")
    assert sum(run.stat().st_mtime_ns != at for run, at in kept.items()) == 4
    for wrong in (("--faithful",), ("--host", "live", "--faithful", "--dry-run")):
        refused = aqmlab_cli(*words, *wrong)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "`--faithful` repeats live runs; add --host live or --both" in refused.stderr
    ended = aqmlab_cli(*words, "--host", "alive")
    assert ended.returncode == 2
    assert "there is no host `alive`" in ended.stderr
    assert aqmlab_cli("verify", store).returncode == 0


def test_a_sweep_simulated_and_live_is_compared_cell_by_cell(router, tmp_path, aqmlab_cli):
    router("faithful")
    file, store = tmp_path / "tiny.toml", tmp_path / "store"
    file.write_text(
        tomli_w.dumps(tiny(runs=2, claim=[], sweep={"topology.rate": ["2Mbit", "4Mbit"]})), encoding="utf-8"
    )
    words = ("sweep", file, "--store", store, "--no-report")
    both = aqmlab_cli(*words, "--both")
    assert both.returncode == 0, both.stderr
    assert both.stdout.startswith("faithful: 8 of 8 runs\n")
    beside, live, simulated = sorted(
        (store / "sweeps").iterdir(),
        key=lambda path: (not path.name.endswith("-both"), path.name[-5:] != "-live"),
    )
    for path in (live, simulated, beside):
        assert f"sweep      {path}" in both.stderr
    assert re.search(r"^goodput \[Mbit/s\] +simulated +live +difference +relative$", both.stdout, re.M)
    told = both.stdout.partition("Live runs against simulated ones, over 4 cells: goodput differs by 0.0 %.")
    assert told[1], both.stdout
    assert not (beside / "report.html").exists()
    # A report on the directory says the same, and so do its JSON, the Python package and the page.
    again = aqmlab_cli("report", beside)
    assert again.returncode == 0, again.stderr
    assert told[1] in again.stdout
    as_json = json.loads(aqmlab_cli("report", beside, "--json").stdout)
    events = [json.loads(line) for line in aqmlab_cli(*words, "--both", "--json").stdout.splitlines()]
    assert events[-1] == {"event": "both", **as_json}
    assert as_json.items() >= aqmlab.beside(load(simulated), load(live), report=False).to_json().items()
    assert {entry["case"] for entry in as_json["comparison"]["compared"]} == {
        f"{arm}, rate {rate}" for arm in ("DropTail", "RED") for rate in ("2Mbit", "4Mbit")
    }
    assert aqmlab.verify(beside).recordings == 16
    page = (beside / "report.html").read_text()
    assert "<h3>goodput [Mbit/s]</h3>" in page
    assert f'href="../{simulated.name}/report.html"' in page
    assert (simulated / "report.html").exists()
    assert "aqmlab sweep --both scenario.toml --seed 1 --runs 2" in page
    other = aqmlab.sweep(file, store=tmp_path / "other", report=False).wait()
    with pytest.raises(aqmlab.UsageError, match="are in different stores"):
        aqmlab.beside(other, load(live))


@pytest.mark.parametrize("words", [["run"], ["live"], ["run", "--both"]])
def test_a_report_says_what_the_command_has_said(router, small, tmp_path, aqmlab_cli, words):
    claim = {"name": "empty", "expect": "goodput_bps{arm=DropTail} > 1 Gbit/s", "strength": "firm"}
    file, out = tmp_path / "small.toml", tmp_path / "out"
    file.write_text(tomli_w.dumps(small | {"runs": 6, "duration": "3s", "claim": [claim]}), encoding="utf-8")
    router("faithful")
    begun = aqmlab_cli(*words, file, "-o", out, "--no-report")
    assert begun.returncode == 1, begun.stderr
    assert "empty (firm): goodput_bps{arm=DropTail} > 1 Gbit/s" in begun.stdout
    told = aqmlab_cli("report", out)
    assert (told.returncode, told.stdout) == (0, begun.stdout)
    assert begun.stdout.startswith("faithful: ") == (words != ["run"])
    as_json = json.loads(aqmlab_cli("report", out, "--json").stdout)
    assert {"doubts", "claims"} <= as_json.keys()
    assert ("verdicts" in as_json) == (words != ["run"])


def test_both_go_on_where_they_were_ended(router, small, tmp_path):
    small["duration"] = "3s"
    out = tmp_path / "out"
    router("second-killed")
    with pytest.raises(aqmlab.RunError):
        aqmlab.run_both(small, output=out, jobs=2)
    assert not (out / "simulated").exists()
    kept = {file: file.stat().st_mtime_ns for file in out.glob("live/*/seed-*/manifest.json")}
    router("faithful")
    found = aqmlab.run_both(small, output=out, jobs=2, resume=True)
    assert (found.live.missing, found.simulated.missing) == ((), ())
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    assert len(kept) == 2
    with pytest.raises(
        aqmlab.UsageError,
        match="cannot be resumed: it does not hold a scenario that ran both live and simulated",
    ):
        aqmlab.run_both(small, output=out / "live", resume=True)
