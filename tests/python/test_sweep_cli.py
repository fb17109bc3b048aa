"""The command `sweep`: its output, its events, its exit codes."""

from __future__ import annotations

import json
import re

import pytest
import tomli_w

from aqmlab.cli.progress import progress_text
from aqmlab.cli.tables import MOST_ROWS
from aqmlab.results.cells import Cell
from aqmlab.sweeps.progress import Progress, Widest
from sweeping import RUNS, tiny


@pytest.fixture
def sweep(aqmlab_cli, tmp_path):
    """Call `aqmlab sweep` with a scenario and a store of the test's own."""

    def call(scenario, *options):
        file = tmp_path / "tiny.toml"
        file.write_text(tomli_w.dumps(scenario), encoding="utf-8")
        return aqmlab_cli("sweep", file, "--store", tmp_path / "store", "--no-report", *options)

    return call


def test_the_answer_has_a_row_a_cell(sweep):
    ended = sweep(tiny(metrics=["utilisation_percent"]))
    assert ended.returncode == 0
    lines = ended.stdout.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("rate"))
    assert lines[head].split() == ["rate", "count", "arm", "utilisation", "[%]"]
    rows = [line.split()[:3] for line in lines[head + 2 : head + 10]]
    assert rows == [[r, c, a] for r in ("2Mbit", "4Mbit") for c in "24" for a in ("DropTail", "RED")]
    assert "8 cells; mean ± 95 % t interval over 3 seeds (1 to 3)" in ended.stdout
    assert re.search(r"^sweep +.*/store/sweeps/tiny-[0-9a-f]{8}$", ended.stderr, re.MULTILINE)
    assert "undecided" in ended.stdout  # because of the claim: three seeds are too few


def test_many_cells_are_in_the_file(sweep, tmp_path):
    many = tiny(runs=1, duration="1500ms")
    many["sweep"] = {"traffic.ftp.count": list(range(1, 33))}
    many["claim"] = []
    ended = sweep(many)
    assert ended.returncode == 0
    assert len(re.findall(r"^\d+ +(?:DropTail|RED) ", ended.stdout, re.MULTILINE)) == MOST_ROWS
    assert "4 more cells in " in ended.stdout
    (answer,) = tmp_path.glob("store/sweeps/*/answer.csv")
    assert len(answer.read_text().splitlines()) == 65


def test_events_are_a_json_object_a_line(sweep):
    ended = sweep(tiny(), "--json", "-j", "2")
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    kinds = [event["event"] for event in events]
    assert (kinds[0], kinds[-1], kinds.count("run")) == ("begin", "end", RUNS)
    assert set(kinds) <= {"begin", "run", "progress", "end"}
    first, last = events[0], events[-1]
    assert (first["format_version"], first["cells"], first["seeds"]) == (1, 8, [1, 2, 3])
    assert (first["runs_total"], first["runs_present"], first["workers"]) == (RUNS, 0, 2)
    runs = [event for event in events if event["event"] == "run"]
    assert {event["status"] for event in runs} == {"finished"}
    assert last["runs_done"] == RUNS
    assert last["missing"] == []
    assert last["cpu_s"] == pytest.approx(sum(event["cpu_s"] for event in runs), abs=1e-6)
    assert last["claims"]["counts"]["soft"]["undecided"] == 1
    assert isinstance(last["doubts"], list)
    assert last["overhead_ms_a_run"] > 0


def test_a_dry_run_counts_and_writes_nothing(sweep, tmp_path):
    ended = sweep(tiny(), "--dry-run", "--runs", "5")
    assert ended.returncode == 0
    assert "4 cases × 2 arms × 5 seeds = 40 runs" in ended.stdout
    assert re.search(r"to do +40", ended.stdout)
    assert "from simulating the runs with the slowest and the fastest links" in ended.stdout
    assert not (tmp_path / "store").exists()
    content = json.loads(sweep(tiny(), "--dry-run", "--json", "--shard", "1/1").stdout)
    assert (content["runs"], content["present"]) == (RUNS, 0)
    assert content["bytes"] > 0


def test_a_shard_says_how_far_the_sweep_is(sweep):
    ended = sweep(tiny(), "--shard", "1/2")
    assert ended.returncode == 0
    assert ended.stdout == ""
    assert re.search(r"\d+ of 24 runs are present; once all shards are complete, `aqmlab", ended.stderr)
    assert "tiny" in sweep(tiny(), "--shard", "2/2").stdout.lower()


def test_exit_codes(sweep, tmp_path):
    failing = tiny()
    failing["claim"][0] |= {"expect": "utilisation_percent{arm=RED} < 0", "strength": "firm"}
    assert sweep(tiny(runs=5), "-q").returncode == 0
    ended = sweep(failing, "-q", "--runs", "5")
    assert ended.returncode == 1
    assert "fails" in ended.stdout
    assert sweep(tiny(), "--shard", "3/2").returncode == 2
    assert sweep(tiny(), "-j", "0").returncode == 2
    assert sweep(tiny(), "--runs", "0").returncode == 2
    assert sweep(tiny(duration="frog")).returncode == 2
    broken = tiny(runs=1)
    broken["arm"][1] |= {"record.trace": ["ftp"], "record.limit": 5}
    ended = sweep(broken, "-q")
    assert ended.returncode == 4
    assert f"4 of 4 runs failed; the others are kept in `{tmp_path / 'store'}`; the first: " in ended.stderr
    assert "4 runs are missing" in ended.stdout


def test_progress_in_words():
    cell = Cell((("topology.rate", "5Mbit"),), "RED")
    now = Progress(
        runs_total=240,
        runs_present=100,
        runs_done=20,
        to_go_s=9.4,
        failures={"crash": 2, "memory": 1},
        widest=Widest("goodput_bps", cell, 0.123),
    )
    assert progress_text(now, 2.0) == (
        "runs 120/240 · 10/s · 9 s to go · widest ±12 % (goodput_bps: RED, 5Mbit) · failed: 2 crash, 1 memory"
    )
    assert progress_text(Progress(runs_total=240, runs_present=100), 0.0) == "runs 100/240"
