"""Queues of the kernel (`kind = "tc"`): refused by the simulator, run live where the kernel has them."""

from __future__ import annotations

import json

import jsonschema
import pytest

import aqmlab
from aqmlab.errors import ScenarioError
from aqmlab.paths import load
from guest import needs_guest, run_in_guest

SCENARIO = """
title = "Queues of the kernel"
duration = "6s"
warmup = "2s"
[topology]
kind = "dumbbell"
rate = "10Mbit"
delay = "10ms"
queue = { kind = "droptail", limit = "100p" }
[[traffic]]
name = "ftp"
kind = "bulk"
count = 3
rtt = "40ms"
tcp = { profile = "linux", ecn = true }
[[arm]]
name = "kernel"
"topology.queue" = { kind = "tc", spec = "SPEC" }
"""
RED = "red limit 150000 min 15000 max 45000 avpkt 1500 burst 25 bandwidth 10mbit probability 0.1 ecn"


@pytest.fixture
def scenario(tmp_path):
    def write(spec, more=""):
        path = tmp_path / "scenario.toml"
        path.write_text(SCENARIO.replace("SPEC", spec) + more, encoding="utf-8")
        return path

    return write


def test_the_simulator_refuses_it_at_its_place_and_says_what_can(scenario, tmp_path):
    with pytest.raises(ScenarioError) as refused:
        aqmlab.run(scenario(RED), output=tmp_path / "out")
    (problem,) = refused.value.errors
    assert (problem["line"], problem["path"]) == (18, "topology.queue.kind")
    assert "`aqmlab live`" in problem["message"]
    assert "`--arm`" in problem["message"]
    assert not (tmp_path / "out").exists()
    with pytest.raises(ScenarioError, match="has no kernel queues"):
        aqmlab.run_both(scenario(RED), output=tmp_path / "out")


def test_a_plan_has_the_words_for_tc_and_fits_its_schema(scenario):
    plan = aqmlab.show(scenario(RED))["arms"][0]["plan"]
    assert plan["links"][0]["queue"]["kind"] == "tc"
    assert plan["links"][0]["queue"]["settings"] == {"spec": RED}
    jsonschema.validate(plan, aqmlab.schema("plan"))


@needs_guest
def test_a_queue_of_the_kernel_drops_and_marks_and_all_is_on_the_books(scenario, tmp_path):
    arms = '[[arm]]\nname = "ours"\n'
    for name, spec in {"codel": "codel", "lacking": "dualpi2"}.items():
        arms += f'[[arm]]\nname = "{name}"\n"topology.queue" = {{ kind = "tc", spec = "{spec}" }}\n'
    path = scenario(RED, arms)
    ended = run_in_guest(path, tmp_path / "out", "--no-report")
    assert ended.returncode == 6, ended.stdout + ended.stderr
    assert "lacking: skipped: this kernel has no queue discipline `dualpi2`" in ended.stdout + ended.stderr
    runs = {run.arm: run for run in load(tmp_path / "out").runs}
    assert set(runs) == {"kernel", "ours", "codel"}
    for arm in ("kernel", "codel"):
        manifest = json.loads((runs[arm].path / "manifest.json").read_text(encoding="utf-8"))
        jsonschema.validate(manifest, aqmlab.schema("manifest"))
        live = manifest["live"]
        assert live["faithful"], live["reasons"]
        (queue,) = live["kernel_queues"].values()
        assert queue["offered"] == queue["returned"] + queue["kernel_dropped"] > 3000
        assert queue["dropped"] == queue["kernel_dropped"]
        assert live["marks"]["marked"] == live["marks"]["ce_received"]
        if arm == "kernel":
            assert queue["marked"] == live["marks"]["marked"] > 0
        # The shaper represents a link, so a packet leaves every 1.2 ms.
        assert queue["lateness"]["p99_ns"] < 20_000
        assert queue["shown"].startswith(f"qdisc {queue['spec'].split()[0]} 2: parent 1:1")


@needs_guest
def test_what_tc_refuses_is_told_in_its_words_at_our_place(scenario, tmp_path):
    ended = run_in_guest(scenario("red limit 150000"), tmp_path / "out")
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert "scenario.toml:18:" in ended.stdout + ended.stderr
    assert "tc refuses `red limit 150000`" in ended.stdout + ended.stderr
    ended = run_in_guest(scenario("dualpi2"), tmp_path / "out")
    assert ended.returncode == 3, ended.stdout + ended.stderr
    assert "has no queue discipline `dualpi2`" in ended.stdout + ended.stderr
