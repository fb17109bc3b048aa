"""The real thing: ten megabits a second for three seconds between this kernel's stacks.

Nothing here depends on how fast the machine is: no figure of time is asserted, and a run may be NOT FAITHFUL.
What is asserted holds on any machine: books balance, marks are made and counted alike on both sides, nothing
is lost unseen, nothing is left.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import site
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest
import tomli_w

import aqmlab
from aqmlab.recording import load
from aqmlab.results import Results
from aqmlab.soundness import books

NOBODY = 65534
SCENARIO = {
    "title": "Smoke",
    "duration": "3s",
    "warmup": "500ms",
    "topology": {
        "kind": "dumbbell",
        "rate": "10Mbit",
        "delay": "2ms",
        "queue": {
            "kind": "red",
            "limit": "60p",
            "min_th": "4p",
            "max_th": "12p",
            "gentle": True,
            "ecn": True,
        },
    },
    "traffic": [
        {
            "name": "ftp",
            "kind": "bulk",
            "count": 3,
            "rtt": "20ms",
            "tcp": {"profile": "linux", "ecn": True},
        },
        {"name": "cbr", "kind": "cbr", "rate": "500kbit", "size": "500B"},
    ],
    "record": {"queues": "50ms", "flows": "100ms"},
}
FAITHFUL, NOT_FAITHFUL = 0, 5


def as_user(user):
    """What begins a command of an ordinary user; nothing if it is for root or we are no root."""
    if user == "root" or os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]


def may_read(path):
    """Whether anybody may."""
    real = Path(path).resolve()
    return all(part.stat().st_mode & 0o001 for part in (real, *real.parents))


def interpreter(user):
    """An interpreter that the user may execute, and where it finds aqmlab; ``None`` if there is none."""
    ours = [str(Path(aqmlab.__file__).parent.parent), *site.getsitepackages()]
    if not as_user(user) or may_read(sys.executable):
        return sys.executable, ours[:1]
    # One in the home of its owner, as pyenv has them; the distribution's own of the same version will do.
    other = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    return (other, ours) if Path(other).exists() and all(map(may_read, ours)) else None


def begin_aqmlab(user, *words, cwd):
    program, path = interpreter(user)
    environment = {**os.environ, "HOME": str(cwd), "PYTHONPATH": os.pathsep.join(path)}
    command = [*as_user(user), program, "-m", "aqmlab", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=cwd, env=environment, **pipes)


def run_aqmlab(user, *words, cwd):
    process = begin_aqmlab(user, *words, cwd=cwd)
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


@cache
def why_not(user):
    """Why live runs do not work here for a user, by the doctor; empty if they do."""
    if not sys.platform.startswith("linux"):
        return "live runs need Linux"
    if user == "root" and os.geteuid() != 0:
        return "we are not root"
    if as_user(user) and shutil.which("setpriv") is None:
        return "there is no setpriv to become an ordinary user with"
    if interpreter(user) is None:
        return "no interpreter is for an ordinary user to execute"
    looked = run_aqmlab(user, "doctor", "--json", cwd="/")
    if not looked.stdout:
        return f"the doctor has no answer: {looked.stderr.strip()[-300:]}"
    failed = [f for f in json.loads(looked.stdout)["findings"] if f["severity"] == "fail"]
    assert looked.returncode == (3 if failed else 0)
    return "; ".join(f"{f['name']}: {f['finding']}" for f in failed)


@pytest.fixture
def user(request):
    """Somebody for whom live runs work here."""
    reason = why_not(request.param)
    if reason:
        pytest.skip(reason)
    return request.param


@pytest.fixture
def folder(tmp_path):
    """A folder in which an ordinary user may write, and read what is above it."""
    for path in (tmp_path, *tmp_path.parents):
        if path == Path("/tmp") or path.stat().st_uid != os.geteuid():
            break
        path.chmod(path.stat().st_mode | 0o755)
    tmp_path.chmod(0o777)
    (tmp_path / "smoke.toml").write_text(tomli_w.dumps(SCENARIO), encoding="utf-8")
    return tmp_path


def interfaces():
    return sorted(line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:])


@pytest.mark.parametrize(
    ("user", "ip"), [("ordinary user", 4), ("ordinary user", 6), ("root", 4)], indirect=["user"]
)
def test_a_live_run_loses_nothing_unseen(user, folder, ip):
    before = interfaces()
    text = (folder / "smoke.toml").read_text() + f"\n[live]\nip = {ip}\n"
    (folder / "smoke.toml").write_text(text, encoding="utf-8")
    words = ("--json", "--no-report", "--pcap", "bottleneck")
    ended = run_aqmlab(user, "live", "smoke.toml", "-o", "out", *words, cwd=folder)
    assert ended.returncode in (FAITHFUL, NOT_FAITHFUL), ended.stderr
    assert "Traceback" not in ended.stderr
    answer = json.loads(ended.stdout)
    (verdict,) = answer["verdicts"]
    assert verdict["faithful"] is (ended.returncode == FAITHFUL)
    assert bool(verdict["reasons"]) is (ended.returncode == NOT_FAITHFUL)

    experiment = load(folder / "out")
    (run,) = experiment.runs
    live = run.manifest["live"]
    assert run.manifest["host"] == "live"
    assert run.manifest["books_balanced"] is True
    results = Results.of_experiment(experiment)
    assert books.balanced(results).doubts == ()
    # The marks that were delivered are those that the receivers' kernels have counted.
    assert live["marks"]["marked"] > 0
    assert live["marks"]["marked"] == live["marks"]["ce_received"]
    # What no discipline has dropped was dropped by nobody.
    assert {cause: n for cause, n in live["drops"].items() if n} == {}
    # Packets got through: a third of the link at least, on however slow a machine.
    cell = results.cells[0]
    assert results.values("goodput_bps", cell)[run.seed] > 10e6 / 3
    assert (run.path / "packets.pcapng").stat().st_size > 10_000
    assert interfaces() == before


@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
def test_both_leaves_two_recordings_and_a_comparison(user, folder):
    ended = run_aqmlab(user, "run", "--both", "smoke.toml", "-o", "out", cwd=folder)
    assert ended.returncode in (FAITHFUL, NOT_FAITHFUL), ended.stderr
    assert "goodput [Mbit/s]" in ended.stdout
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert 'id="faithfulness"' in page
    live = load(folder / "out" / "live").runs[0].manifest
    simulated = load(folder / "out" / "simulated").runs[0].manifest
    assert live["plan_digest"] == simulated["plan_digest"]
    assert live["results_version"] == simulated["results_version"]


def the_router_of(pid):
    """The process of the run, as soon as router and traffic have their threads."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        time.sleep(0.05)
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
            if len(list(Path(f"/proc/{child}/task").iterdir())) >= 3:
                return int(child)
    raise AssertionError("no run has begun")


@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
def test_ctrl_c_keeps_what_there_is_and_leaves_nothing(user, folder):
    text = (folder / "smoke.toml").read_text().replace('"3s"', '"60s"')
    (folder / "smoke.toml").write_text(text, encoding="utf-8")
    process = begin_aqmlab(user, "live", "smoke.toml", "-o", "out", cwd=folder)
    router = the_router_of(process.pid)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert err.endswith("interrupted; finished runs are kept in `out`\n"), err
    assert not Path(f"/proc/{router}").exists()
    (run,) = load(folder / "out").runs
    assert run.manifest["stopped_by"] == "interrupted"
    assert run.manifest["live"]["interrupted"] is True
    assert 1e9 < run.t1_ns < 30e9


@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
def test_a_killed_router_is_told_and_leaves_nothing(user, folder):
    process = begin_aqmlab(user, "live", "smoke.toml", "-o", "out", cwd=folder)
    os.kill(the_router_of(process.pid), signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 4
    assert "arm `main`, seed 1: the live router was killed by SIGKILL" in err
    assert "Traceback" not in err
    assert not (folder / "out").exists()
