"""The process of a live run and its supervisor, which reports each failure in a sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import live_worlds
from aqmlab import errors
from aqmlab.live import messages, supervisor
from aqmlab.live.supervisor import ask
from aqmlab.system import children

JOB = {"do": "run", "out": "/nowhere/seed-1", "seed": 1, "arm": "main"}
AT_ONCE_S = 15
"""A time too short for a process to end by itself, but long enough to stop one on a busy machine."""


def child(mode):
    return [sys.executable, "-P", live_worlds.__file__, mode]


@pytest.mark.parametrize(
    ("mode", "error", "words"),
    [
        ("exits", errors.RunError, "the live router ended with 7"),
        ("traceback", errors.RunError, "the live router ended with 1: OSError: the tunnel is gone"),
        ("garbage", errors.RunError, "sent an invalid message: `Segmentation fault`"),
        ("no-kind", errors.RunError, 'sent an invalid message: `{"event": "error"}`'),
        ("endless-line", errors.RunError, "sent an invalid message: `xxxx"),
        ("HostError:no /dev/net/tun; modprobe tun", errors.HostError, "no /dev/net/tun; modprobe tun"),
        ("UsageError:there is no arm `x`", errors.UsageError, "there is no arm `x`"),
        ("RecordingError:cannot write", errors.RecordingError, "cannot write"),
        ("Defect:IndexError: 7", errors.RunError, "a defect of aqmlab: IndexError: 7"),
        ("Problem:not one of ours", errors.RunError, "a defect of aqmlab: not one of ours"),
        ("Interrupted:", errors.RunError, "received a signal to end"),
    ],
)
def test_each_end_is_told_in_a_sentence(mode, error, words):
    with pytest.raises(error) as told:
        ask(JOB, command=child(mode))
    assert words in str(told.value)
    assert "Traceback" not in str(told.value)
    assert "\n" not in str(told.value)


def test_a_killed_router_is_told_with_the_signal(tmp_path):
    with pytest.raises(errors.RunError, match=r"was killed by SIGKILL; unless a user ended it, memory"):
        ask({**JOB, "out": str(tmp_path / "seed-1")}, command=child("killed"))


def test_silence_ends_a_process(monkeypatch):
    monkeypatch.setattr(supervisor, "SILENCE_S", 2.0)
    begun = time.monotonic()
    with pytest.raises(errors.RunError, match="has sent no message for 2 s"):
        ask(JOB, command=child("silent"))
    assert time.monotonic() - begun < AT_ONCE_S


def test_what_cannot_be_started_is_the_machines_fault():
    with pytest.raises(errors.HostError, match="cannot start the live router: No such file"):
        ask(JOB, command=["/nowhere/python"])


def test_every_error_of_ours_crosses_as_itself():
    for name in ("ScenarioError", "UsageError", "RunError", "RecordingError", "HostError", "MemoryCapError"):
        error = errors.called(messages.kind_of(getattr(errors, name)("why")), "why")
        assert type(error).__name__ == name
        assert str(error) == "why"


def interrupted_after_progress(mode, again=False, **options):
    """Send the request, and interrupt this process, as Ctrl-C does, at the first report of progress."""
    told, asked = [], []

    def heard(now):
        told.append(now)
        if len(told) == 1:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            if again:
                threading.Timer(0.8, os.kill, (os.getpid(), signal.SIGINT)).start()

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ask(JOB, command=child(mode), progress=heard, interrupted=lambda: asked.append(1), **options)
    return len(asked), time.monotonic() - begun


def test_the_first_interrupt_is_passed_on_and_waited_for():
    asked, took_s = interrupted_after_progress("obedient")
    assert asked == 1
    assert took_s < AT_ONCE_S


def test_a_second_interrupt_ends_it_at_once():
    asked, took_s = interrupted_after_progress("deaf", again=True)
    assert asked == 1
    assert took_s < AT_ONCE_S


@pytest.mark.parametrize("mode", ["silent", "deaf"])
def test_who_does_not_end_when_asked_is_ended(monkeypatch, mode):
    """The process either sends no more messages, or sends progress messages forever."""
    monkeypatch.setattr(supervisor, "PATIENCE_S", 0.5)
    asked, took_s = interrupted_after_progress(mode)
    assert asked == 1
    assert took_s < AT_ONCE_S


def test_ctrl_c_while_a_process_ends_leaves_it_no_time_to_write(monkeypatch):
    """The process is dead when the interrupt is reported, so it cannot disturb the next clean-up."""
    started = []
    popen = subprocess.Popen

    def begun(*words, **options):
        started.append(popen(*words, **options))
        threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", begun)
    monkeypatch.setattr(children, "_TIME_TO_GO_S", 60.0)
    with pytest.raises(KeyboardInterrupt):
        ask(JOB, command=child("lingering"))
    assert started[0].returncode == -signal.SIGKILL


def test_the_process_is_alone_in_its_group_and_ends_with_us():
    """The real process gets an unknown request, so that no run is needed."""
    script = (
        "import os, sys, time\n"
        "from aqmlab.live import supervisor\n"
        "from aqmlab.system.children import Child\n"
        "process = Child(supervisor._command(), alone=True)\n"
        "print(process.pid, os.getpgid(process.pid), flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        pid, group = map(int, parent.stdout.readline().split())
        assert pid == group != os.getpgid(parent.pid)
        # The parent is killed by a signal that cannot be handled.
        time.sleep(0.5)
        parent.kill()
    until = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.02)
    status = Path(f"/proc/{pid}/status")
    assert not status.exists() or "State:\tZ" in status.read_text(encoding="ascii")


def test_the_real_process_tells_a_wrong_job_as_a_defect_and_has_one_thread(tmp_path):
    code = (
        "import sys, threading; sys.argv = ['x', str(__import__('os').getppid())];"
        "from aqmlab.live import child;"
        "import aqmlab._core;"
        "print(len(list(__import__('pathlib').Path('/proc/self/task').iterdir())), 'numpy' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout.split() == ["1", "False"]
    process = subprocess.run(
        [sys.executable, "-P", "-m", "aqmlab.live", str(os.getpid())],
        check=False,
        input=json.dumps({"do": "nothing"}) + "\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    message = json.loads(process.stdout)
    assert message == {"event": "error", "kind": "Defect", "message": "KeyError: 'nothing'"}
    assert "Traceback" not in process.stderr
