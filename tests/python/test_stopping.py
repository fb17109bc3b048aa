"""Ctrl-C and SIGTERM end ``aqmlab paper reproduce`` soon in every phase, and nothing is lost."""

from __future__ import annotations

import fcntl
import signal
import sys
import threading
import time

import pytest

from aqmlab.papers.folder import read_paper
from aqmlab.papers.reproduce import reproduce
from aqmlab.sweeps.place import alone_in
from aqmlab.system.stopping import Stop, Stopped, answered, raise_if_stopped
from signalled import started_with_all_signals
from sweeping import left_over, manifests, tables
from toy_paper import TOY

SOON_S = 10.0
"""On an idle machine, stopping takes a fifth of a second; the interrupted work would take half a minute."""
SLOW = "SELECT sum(a.range * b.range) FROM range(120000) a, range(120000) b"

SCRIPT = """
import importlib, sys, time
from pathlib import Path
import aqmlab.sweeps.sweep
from aqmlab.cli import main
from aqmlab.recordings.recording import Tables

def query(results):
    Tables(results.runs_of(results.cells[0])).select("flows", {slow!r})

def slow(*given, **_):
    sys.stdout.write("now\\n")
    sys.stdout.flush()
    until = time.monotonic() + 30
    while time.monotonic() < until:
        {what}

module = importlib.import_module("aqmlab.{module}")
{place} = slow
aqmlab.sweeps.sweep._LOOK_S = 0.0  # from the first run on
main()
"""
VALUES = 'given[-1].values("goodput_bps", given[-1].cells[0])'
PHASES = {
    "looking": ("sweeps.progress", "module.Intervals.look", VALUES),
    "reading": ("results.loading", "module.Recordings._opened", "module.raise_if_stopped()"),
    "writing tables": ("sweeps.conclusion", "module.write_tables", "query(given[0])"),
    "scoring": ("papers.readings", "module.score_finding", 'query(given[1]["loss.toml"])'),
    "drawing": ("papers.figures", "module.draw_figure", "pass"),
    "telling": ("papers.scorecard", "module.write_scorecard", "time.sleep(1)"),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = tmp_path_factory.mktemp("store")
    reproduce(read_paper(TOY), store=store, jobs=2)
    return store


def every_table(store):
    return {path.name: tables(path) for path in (store / "sweeps").iterdir()}


@pytest.mark.parametrize("phase", PHASES)
def test_a_signal_ends_a_reproduction_whatever_it_is_at(store, tmp_path, phase):
    number, code = (signal.SIGINT, 130) if phase in ("reading", "drawing") else (signal.SIGTERM, 143)
    module, place, what = PHASES[phase]
    there, known = manifests(store), every_table(store)
    script = SCRIPT.format(module=module, place=place, what=what, slow=SLOW)
    words = ["paper", "reproduce", TOY, "--store", store, "-o", tmp_path, "-q", "-j", "2"]
    words += ["--seeds", "60"] if phase == "looking" else []
    with started_with_all_signals([sys.executable, "-c", script, *map(str, words)]) as process:
        assert "now\n" in iter(process.stdout.readline, ""), process.stderr.read()
        time.sleep(0.2)
        sent = time.monotonic()
        process.send_signal(number)
        _, errors = process.communicate()
    assert time.monotonic() - sent < SOON_S
    assert process.returncode == code
    kept = f"interrupted; finished runs are kept in `{store}`; run the same command again to continue\n"
    assert errors == kept
    assert manifests(store) | there == manifests(store)
    assert every_table(store) | known == every_table(store)
    assert left_over(store) == []
    assert not list(tmp_path.rglob(".*"))


def test_what_was_interrupted_goes_on(store):
    before = every_table(store)
    done = reproduce(read_paper(TOY), store=store, jobs=2)
    assert done.runs == 0
    assert {f.finding.name: f.status for f in done.findings} == {"T1": "holds", "T2": "fails", "T3": "holds"}
    assert every_table(store) == before


def ended_by(stop, work):
    """How a working thread ends when a request to stop arrives during its work."""
    how = []

    def run():
        try:
            with stop.heeded():
                work()
        except BaseException as end:
            how.append(type(end))

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.2)
    while thread.is_alive():
        stop.ask()
        thread.join(0.05)
    return how


def test_a_request_ends_the_thread_that_heeds_it_and_no_other(tmp_path):
    def endless():
        while True:
            raise_if_stopped()

    began = time.monotonic()
    stop = Stop()
    assert ended_by(stop, endless) == [Stopped]
    assert stop.asked
    raise_if_stopped()

    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert ended_by(Stop(), alone_in(tmp_path).__enter__) == [Stopped]
    with alone_in(tmp_path):
        pass
    assert time.monotonic() - began < SOON_S


def test_a_query_is_interrupted_and_the_next_one_answered():
    import duckdb

    with duckdb.connect(":memory:", config={"threads": "2"}) as connection:
        began = time.monotonic()
        assert ended_by(Stop(), lambda: answered(connection, lambda: connection.execute(SLOW))) == [Stopped]
        assert time.monotonic() - began < SOON_S
        assert answered(connection, lambda: connection.execute("SELECT 1").fetchall()) == [(1,)]
        # DuckDB's own errors are reported unchanged.
        wrong = ended_by(Stop(), lambda: answered(connection, lambda: connection.execute("SELECT")))
        assert wrong == [duckdb.ParserException]
