"""Real live runs: ten megabits per second for three seconds between network stacks of this kernel.

Nothing here depends on the speed of the machine: no duration is asserted, and a run may be NOT FAITHFUL.
The assertions hold on any machine: the books balance, both sides count the same marks, every loss is
recorded, and a run leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import jsonschema
import pytest

import aqmlab
from aqmlab import _core
from aqmlab.paths import load
from aqmlab.soundness import books
from living import FAITHFUL, NOT_FAITHFUL, begin_aqmlab, interfaces, run_aqmlab, settings, the_router_of


@pytest.mark.parametrize(
    ("user", "ip"),
    [("ordinary user", 4), ("root", 4), pytest.param("ordinary user", 6, marks=pytest.mark.slow)],
    indirect=["user"],
)
def test_a_live_run_loses_nothing_unseen(user, live_folder, ip):
    before = interfaces(), settings()
    text = (live_folder / "live.toml").read_text() + f"\n[live]\nip = {ip}\n"
    (live_folder / "live.toml").write_text(text, encoding="utf-8")
    words = ("--json", "--no-report", "--pcap", "bottleneck")
    ended = run_aqmlab(user, "live", "live.toml", "-o", "out", *words, cwd=live_folder)
    assert ended.returncode in (FAITHFUL, NOT_FAITHFUL), ended.stderr
    assert "Traceback" not in ended.stderr
    answer = json.loads(ended.stdout)
    (verdict,) = answer["verdicts"]
    assert verdict["faithful"] is (ended.returncode == FAITHFUL)
    assert bool(verdict["reasons"]) is (ended.returncode == NOT_FAITHFUL)

    experiment = load(live_folder / "out")
    (run,) = experiment.runs
    jsonschema.validate(json.loads((run.path / "manifest.json").read_text()), aqmlab.schema("manifest"))
    live = run.manifest.live
    assert run.manifest.host == "live"
    assert run.manifest.books_balanced is True
    results = experiment
    assert books.balanced(results).doubts == ()
    # The number of marks delivered equals the number that the receivers' kernels have counted.
    assert live["marks"]["marked"] > 0
    assert live["marks"]["marked"] == live["marks"]["ce_delivered"] == live["marks"]["ce_received"]
    # Packets were dropped only by disciplines.
    assert {cause: n for cause, n in live["drops"].items() if n} == {}
    # Packets were delivered at a rate of at least a third of the link's capacity, even on a slow machine.
    cell = results.cells[0]
    assert results.values("goodput_bps", cell)[run.seed] > 10e6 / 3
    assert (run.path / "packets.pcapng").stat().st_size > 10_000
    # The machine's settings are unchanged; the run changed only those of its namespaces.
    assert (interfaces(), settings()) == before
    assert live["stack"]["ftp"]["net.core.somaxconn"] == "65535"


@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
def test_both_leaves_two_recordings_and_a_comparison(user, live_folder):
    ended = run_aqmlab(user, "run", "--both", "live.toml", "-o", "out", cwd=live_folder)
    assert ended.returncode in (FAITHFUL, NOT_FAITHFUL), ended.stderr
    assert "goodput [Mbit/s]" in ended.stdout
    page = (live_folder / "out" / "report.html").read_text(encoding="utf-8")
    assert 'id="faithfulness"' in page
    live = load(live_folder / "out" / "live").runs[0].manifest
    simulated = load(live_folder / "out" / "simulated").runs[0].manifest
    assert live.plan_digest == simulated.plan_digest
    # The kernel's TCP is not our sender, which tracks segments with the profile `linux`.
    assert dict(live.parts.items() ^ simulated.parts.items()) == {
        part: _core.PARTS[part] for part in ("sim", "live", "transport.segments")
    }


@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
def test_ctrl_c_keeps_what_there_is_and_leaves_nothing(user, live_folder):
    text = (live_folder / "live.toml").read_text().replace('"3s"', '"60s"')
    (live_folder / "live.toml").write_text(text, encoding="utf-8")
    process = begin_aqmlab(user, "live", "live.toml", "-o", "out", cwd=live_folder)
    router = the_router_of(process.pid)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert err.endswith("interrupted; finished runs are kept in `out`; resume with `--resume -o out`\n"), err
    assert not Path(f"/proc/{router}").exists()
    (run,) = load(live_folder / "out").runs
    assert run.manifest.stopped_by == "interrupted"
    assert run.manifest.live["interrupted"] is True
    assert 1e9 < run.t1_ns < 30e9


@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
def test_a_killed_router_is_told_and_leaves_nothing(user, live_folder):
    process = begin_aqmlab(user, "live", "live.toml", "-o", "out", cwd=live_folder)
    os.kill(the_router_of(process.pid), signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 4
    assert "main, seed 1: the live router was killed by SIGKILL" in err
    assert "Traceback" not in err
    assert not (live_folder / "out").exists()


@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
@pytest.mark.parametrize(
    ("changed", "to", "code", "message"),
    [
        (
            'profile = "linux"',
            'profile = "linux"\ncongestion = "nosuch"',
            3,
            "no congestion control `nosuch`",
        ),
        ('rate = "10Mbit"', 'rate = "1Tbit"', 3, "or run it anyway with `--force`"),
        (
            "count = 3",
            "count = 1100000",
            2,
            "up to 1100001 connections at the same time, but there is room only for 1048576",
        ),
    ],
    ids=["congestion control", "rate", "flows"],
)
def test_what_cannot_be_is_told_before_it_runs(user, live_folder, changed, to, code, message):
    text = (live_folder / "live.toml").read_text()
    assert changed in text
    (live_folder / "live.toml").write_text(text.replace(changed, to), encoding="utf-8")
    ended = run_aqmlab(user, "live", "live.toml", "-o", "out", cwd=live_folder)
    assert ended.returncode == code, ended.stderr
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (live_folder / "out").exists()


USERS = """
[[traffic]]
name = "web"
kind = "requests"
users = 10000
think = "100ms"
request = "400B"
response = "10kB"
rtt = "400ms"
"""


@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
def test_more_users_than_the_machine_holds_are_refused_with_the_estimate(user, live_folder):
    text = (live_folder / "live.toml").read_text() + USERS
    (live_folder / "live.toml").write_text(text, encoding="utf-8")
    within = ["prlimit", "--nofile=1024:1024"]
    ended = run_aqmlab(user, "live", "live.toml", "-o", "out", cwd=live_folder, within=within)
    assert ended.returncode == 3, ended.stderr
    # Connections are open for two round trips of 404 ms out of every 908 ms, so 8899 are open at a time. Each
    # needs two sockets; the process also needs some other descriptors.
    assert (
        "17884 sockets and files are needed at the same time, but the process may have only 1024"
        in ended.stderr
    )
    assert "choose fewer flows" in ended.stderr
    assert not (live_folder / "out").exists()


WITHOUT_TUN = 'mount -t tmpfs none /dev/net && exec "$@"'
WITHOUT_NAMESPACES = (
    "echo 0 > /proc/sys/user/max_user_namespaces &&"
    ' exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"'
)


@pytest.mark.parametrize(
    ("flags", "script", "remedy"),
    [
        (["-m"], WITHOUT_TUN, "modprobe tun"),
        (["-U", "-r"], WITHOUT_NAMESPACES, "sysctl user.max_user_namespaces=1000"),
    ],
    ids=["no TUN", "no user namespaces"],
)
@pytest.mark.parametrize("user", ["root"], indirect=True)
def test_what_a_machine_lacks_is_told_with_its_remedy(user, live_folder, flags, script, remedy):
    within = ["unshare", *flags, "sh", "-c", script, "sh"]
    ended = run_aqmlab(user, "live", "live.toml", "-o", "out", cwd=live_folder, within=within)
    assert ended.returncode == 3, ended.stderr
    assert remedy in ended.stderr
    assert not (live_folder / "out").exists()
    looked = run_aqmlab(user, "doctor", "--json", cwd=live_folder, within=within)
    assert looked.returncode == 3, looked.stderr
    answer = json.loads(looked.stdout)
    assert answer["can_run"] is False
    assert [f for f in answer["findings"] if f["severity"] == "fail" and remedy in f["remedy"]]
