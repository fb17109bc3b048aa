"""A live study is killed again and again: no kill leaves anything behind, and a repetition completes the
study.

The study is a sweep of live runs in a store, with our queues and, where this kernel has them, tc queues.
"""

from __future__ import annotations

import copy
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import tomli_w

from aqmlab.recordings.recording import load_run
from living import FAITHFUL, NOT_FAITHFUL, SCENARIO, as_user, children_of, interpreter, run_aqmlab
from remains import Machine, all_namespaces, began, family, marked, namespaces_of, wait_until
from sweeping import left_over

INTERRUPTED = 130
WAIT_S = 90
RUN_S = 30
"""The longest time that a run takes on a busy machine, including its start."""
KILLS = 20

OURS = [
    {"name": "DropTail", "topology.queue": {"kind": "droptail", "limit": "60p"}},
    {"name": "PI", "topology.queue": {"kind": "pi", "limit": "60p", "ecn": True}},
]
OF_THE_KERNEL = [
    {"name": "pfifo", "topology.queue": {"kind": "tc", "spec": "pfifo limit 60"}},
    {"name": "bfifo", "topology.queue": {"kind": "tc", "spec": "bfifo limit 90000"}},
]


def study_file(folder, arms, runs, **changes):
    """The scenario of a study with these arms, in a file that every user may read."""
    scenario = copy.deepcopy(SCENARIO) | {"arm": arms, "runs": runs} | changes
    file = folder / "study.toml"
    file.write_text(tomli_w.dumps(scenario), encoding="utf-8")
    file.chmod(0o644)
    return file


@pytest.fixture
def queues_of_the_kernel(user, live_folder):
    """Arms with tc queues, if tc is installed and this kernel has the shaper."""
    study_file(live_folder, OF_THE_KERNEL, 1, duration="300ms", warmup="0s")
    ended = run_aqmlab(user, "live", "study.toml", "-o", "tried", "--no-report", cwd=live_folder)
    if ended.returncode not in (FAITHFUL, NOT_FAITHFUL):
        pytest.skip(ended.stderr.strip()[-300:])
    return OF_THE_KERNEL


class Study:
    """The command that runs a study; it is restarted each time it ends."""

    def __init__(self, user, folder, **variables):
        self.user, self.folder, self.store = user, folder, folder / "store"
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.temporary.chmod(0o777)
        self.mark = f"AQMLAB_TEST_STUDY={folder}"
        name, _, value = self.mark.partition("=")
        self.environment = os.environ | {
            "HOME": str(folder),
            "TMPDIR": str(self.temporary),
            name: value,
            **variables,
        }
        self.machine = Machine.now()
        self.process = None

    def begin(self, *words):
        """Start the command in its own session, as a shell does at a terminal."""
        program, path = interpreter(self.user)
        words = words or ("-m", "aqmlab", "sweep", "study.toml", "--host", "live", "--store", "store", "-q")
        self.process = subprocess.Popen(
            [*as_user(self.user), program, *words],
            cwd=self.folder,
            env=self.environment | {"PYTHONPATH": os.pathsep.join(path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def router(self):
        """The id of the process of the current run; ``None`` if there is none."""
        with suppress(OSError):
            for child in map(int, children_of(self.process.pid)):
                if b"aqmlab.live" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return child
        return None

    def at_work(self):
        """Whether the router and the traffic have started their threads."""
        router = self.router()
        with suppress(OSError):
            return router is not None and len(list(Path(f"/proc/{router}/task").iterdir())) >= 3
        return False

    def staged(self):
        """Whether a recording is being written."""
        return any((self.store / "tmp").glob("*/*"))

    def finished(self):
        """The recordings that are in place, by name, with the times at which they were written."""
        files = self.store.glob("runs/*/*/manifest.json")
        return {file.parent.name: file.stat().st_mtime_ns for file in files}

    def until(self, reached):
        """Wait until a state is reached, or the command has ended."""
        until = time.monotonic() + WAIT_S
        while self.running and not reached():
            assert time.monotonic() < until, "that state was not reached"
            time.sleep(0.002)

    def catch(self):
        """Wait until a run is at work, and stop its router there: on a busy machine, it could end before the
        test goes on."""
        while True:
            self.until(self.at_work)
            router = self.router()
            if router is None:
                assert self.running, self.end()
                continue
            with suppress(ProcessLookupError):
                os.kill(router, signal.SIGSTOP)
                if self.router() == router and self.at_work():
                    return
                os.kill(router, signal.SIGCONT)

    def kill(self, victim):
        """Kill the study or part of it, and check that nothing of the killed part remains on the machine.

        After the death of a router, the command continues with the next run.
        """
        relatives, router = family(self.process.pid), self.router()
        if victim == "router" and router is None:
            victim = "command"
        if victim == "router":
            relatives = family(router)
        namespaces = set().union(*map(namespaces_of, relatives)) - namespaces_of(os.getpid())
        if victim == "group":
            os.killpg(self.process.pid, signal.SIGKILL)
        elif victim == "Ctrl-C":
            os.killpg(self.process.pid, signal.SIGINT)
            if router is not None:
                os.kill(router, signal.SIGCONT)
        else:
            first = {"command": self.process.pid, "router": router}
            for pid in [first[victim]] if victim in first else relatives:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if victim != "router":
            self.end()
            assert wait_until(lambda: not marked(self.mark)), marked(self.mark)
        assert wait_until(lambda: not any(began(pid) == at for pid, at in relatives.items())), relatives
        assert wait_until(lambda: not namespaces & all_namespaces()), namespaces
        assert Machine.now() == self.machine
        assert not list(self.temporary.iterdir())
        self.assert_whole_recordings()
        return victim, len(namespaces)

    def end(self, within_s=WAIT_S):
        """Wait until the command ends; return the exit status and the output."""
        out, err = self.process.communicate(timeout=within_s)
        assert "Traceback" not in err, err
        return self.process.returncode, out + err

    def recordings(self):
        return [load_run(file.parent) for file in self.store.glob("runs/*/*/manifest.json")]

    def assert_whole_recordings(self):
        """Check that each recording in the store is complete, and that it is marked if its run was
        interrupted."""
        for run in self.recordings():
            assert not run.damage()
            assert run.manifest.live["interrupted"] is (run.manifest.stopped_by == "interrupted")

    def complete(self, runs):
        """Repeat the study undisturbed; check that no run is missing and complete runs are unchanged."""
        before = self.finished()
        ended = {run.path.name for run in self.recordings() if not run.manifest.live["interrupted"]}
        self.begin()
        status, said = self.end(runs * RUN_S)
        assert status in (FAITHFUL, NOT_FAITHFUL), said
        after = self.finished()
        assert len(after) == runs
        assert {name: after[name] for name in ended} == {name: before[name] for name in ended}
        assert not any(run.manifest.live["interrupted"] for run in self.recordings())
        assert left_over(self.store) == []
        assert Machine.now() == self.machine


@pytest.fixture
def studies():
    """Makes studies; none of them outlives the test."""
    made = []

    def make(*about, **variables):
        made.append(Study(*about, **variables))
        return made[-1]

    yield make
    for study in made:
        for pid in marked(study.mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if study.process is not None:
            study.process.communicate(timeout=WAIT_S)


AGAIN = """
import aqmlab
aqmlab.sweep("study.toml", host="live", store="store", faithful=True).wait()
"""


@pytest.mark.parametrize("user", ["ordinary user", "root"], indirect=True)
def test_a_study_killed_in_each_of_its_states_becomes_complete(user, live_folder, studies):
    # Of these runs, some are left however late this test sees that one has finished.
    study_file(live_folder, OURS, 4, duration="1s", warmup="200ms")
    study = studies(user, live_folder)
    states = [
        (study.store.exists, "command"),
        (lambda: study.router() is not None, "group"),
        (None, "router"),
        (None, "Ctrl-C"),
        (study.staged, "command"),
        (lambda: len(study.finished()) > before, "group"),
        (None, "everyone"),
    ]
    for reached, victim in states:
        before = len(study.finished())
        if not study.running:
            study.begin()
        if reached is None:
            study.catch()
        else:
            study.until(reached)
        assert study.running, study.end()
        done, namespaces = study.kill(victim)
        assert done == victim
        if reached is None:
            assert namespaces >= 3, "two hosts and the process itself"
        if victim == "Ctrl-C":
            assert study.process.returncode == INTERRUPTED
            assert left_over(study.store) == []
        if victim == "router":
            # That run has failed; the command continues, until it is killed in the next state.
            study.until(lambda: study.router() is None)
    study.complete(8)


TC = """#!/bin/sh
echo $$ >"$HOME/tc"
exec sleep 600
"""


@pytest.mark.parametrize("user", ["ordinary user", "root"], indirect=True)
def test_what_a_router_has_started_ends_with_it(user, live_folder, studies):
    """A tc process that hangs would keep the namespaces of the run in existence."""
    study_file(live_folder, OF_THE_KERNEL[:1], 1)
    programs = live_folder / "bin"
    programs.mkdir()
    (programs / "tc").write_text(TC, encoding="utf-8")
    for path in (programs, programs / "tc"):
        path.chmod(0o755)
    study = studies(user, live_folder, PATH=f"{programs}:{os.environ['PATH']}")
    study.begin()
    study.until((live_folder / "tc").exists)
    assert study.running, study.end()
    _, namespaces = study.kill("router")
    assert namespaces >= 4, "two hosts, the queue and the process itself"
    status, said = study.end()
    assert status == 4, said
    assert not marked(study.mark)


@pytest.mark.slow
@pytest.mark.parametrize("user", ["ordinary user", "root"], indirect=True)
def test_twenty_kills_at_any_moment_leave_a_study_that_becomes_whole_and_faithful(
    user, live_folder, queues_of_the_kernel, studies
):
    study_file(live_folder, OURS + queues_of_the_kernel, 5, duration="5s", warmup="1s")
    study, chance = studies(user, live_folder), random.Random(20)
    tally = []
    for _ in range(KILLS):
        if not study.running:
            study.begin()
        if chance.random() < 0.7:
            # On a busy machine, Python takes seconds to start, and until then there is little to kill.
            study.until(study.at_work)
            time.sleep(chance.uniform(0.0, 12.0))
        else:
            time.sleep(chance.uniform(0.0, 3.0))
        assert study.running, study.end()
        victim = chance.choice(["command", "group", "router", "everyone", "Ctrl-C"])
        tally.append((*study.kill(victim), len(study.finished())))
        sys.stdout.write(f"{tally[-1]}\n")
    if study.running:
        study.kill("command")
    assert len({victim for victim, *_ in tally}) >= 4, tally
    study.complete(20)
    # A busy machine stalls some runs; which ones is chance, but exactly these are repeated.
    before = study.finished()
    faithful = {run.path.name for run in study.recordings() if run.manifest.live["faithful"]}
    study.begin("-c", AGAIN)
    assert study.end(20 * RUN_S)[0] == 0
    after = study.finished()
    assert len(after) == 20
    assert {name for name in after if after[name] == before.get(name)} == faithful
    assert left_over(study.store) == []
