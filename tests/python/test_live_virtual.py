"""Live runs in a kernel that runs in virtual time: no packet is late, even on a busy machine."""

from __future__ import annotations

import json

import jsonschema
import pytest

import aqmlab
from aqmlab.live.selftest import SelfTest, Trial
from aqmlab.paths import load
from aqmlab.recordings.faithfulness import Faithfulness
from guest import needs_guest, run_in_guest

SCENARIO = """
title = "In virtual time"
duration = "4s"
warmup = "2s"
[topology]
kind = "dumbbell"
rate = "10Mbit"
delay = "10ms"
queue = { kind = "red", limit = "100p", min_th = "10p", max_th = "60p", gentle = true, ecn = true }
[[traffic]]
name = "ftp"
kind = "bulk"
count = 3
rtt = "40ms"
tcp = { profile = "linux", ecn = true }
"""


@needs_guest
def test_nothing_is_late_in_virtual_time_and_a_second_start_goes_on(tmp_path):
    scenario, out = tmp_path / "scenario.toml", tmp_path / "out"
    scenario.write_text(SCENARIO, encoding="utf-8")
    ended = run_in_guest(scenario, out, "--runs", "2", "--json")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    runs = load(out).runs
    assert len(runs) == 2
    for run in runs:
        manifest = json.loads((run.path / "manifest.json").read_text(encoding="utf-8"))
        jsonschema.validate(manifest, aqmlab.schema("manifest"))
        live = manifest["live"]
        assert live["faithful"]
        assert live["virtual_time"]
        assert live["wait"] == "epoll"
        # The other time figures depend on the machine, so they are not checked.
        assert live["lateness"]["max_ns"] < 100_000
        assert live["stall_count"] == 0
        assert live["capacity"]["packets_per_s"] is None
        assert live["capacity"]["limit_packets_per_s"] is None
        assert live["marks"]["marked"] == live["marks"]["ce_received"] > 0
    kept = {run.path: (run.path / "manifest.json").stat().st_mtime_ns for run in runs}
    again = run_in_guest(scenario, out, "--runs", "2", "--json")
    assert again.returncode == 0, again.stdout + again.stderr
    assert kept == {run.path: (run.path / "manifest.json").stat().st_mtime_ns for run in load(out).runs}


def trial(name: str) -> Trial:
    lateness = {"p50_ns": 1000, "p99_ns": 2000, "p999_ns": 2000, "max_ns": 2000}
    return Trial(name, {"policy": "fifo", "lateness": lateness, "duty_percent": 18.0})


def test_a_self_test_in_virtual_time_does_not_name_a_processors_limit():
    trials = (trial("real-time"), trial("ordinary"))
    content = {"rate_bps": 100_000_000, "capacity": {"packets_per_s": None}, "virtual_time": True}
    found = SelfTest(trials, content)
    # At 3 Gbit/s, half of a packet's 12,000 bits take two microseconds. In real time, a load of 18 % of a
    # processor would limit the rate to 389 Mbit/s.
    assert found.faithful_up_to_bps(trials[0]) == pytest.approx(3e9)
    busy = SelfTest(trials, {"rate_bps": 100_000_000})
    assert busy.faithful_up_to_bps(trials[0]) == pytest.approx(100e6 * 70 / 18)


def test_a_verdict_tells_that_time_was_virtual():
    def verdict(**live):
        return Faithfulness(
            "RED", 1, (), (), {"checks": [], "wait": "epoll", "without_spin_percent": 0.0, **live}
        )

    assert verdict(virtual_time=True).wait == "epoll, in virtual time"
    assert verdict(virtual_time=True).to_json()["virtual_time"] is True
    assert verdict().wait == "epoll"
    assert verdict().to_json()["virtual_time"] is False
