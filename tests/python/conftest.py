"""Scenarios and recordings that several tests share."""

from __future__ import annotations

import copy
import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import aqmlab
import live_worlds
from aqmlab.cli import main
from aqmlab.live import supervisor
from living import SCENARIO, why_not

# The same cases every time, without a time limit, so that neither chance nor a busy machine makes a test
# fail.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.load_profile("same")

SMALL: dict[str, Any] = {
    "title": "Small",
    "question": "Does it run?",
    "duration": "6s",
    "warmup": "1s",
    "seed": 1,
    "runs": 2,
    "topology": {
        "kind": "dumbbell",
        "rate": "2Mbit",
        "delay": "5ms",
        "access_rate": "20Mbit",
        "queue": {"kind": "droptail", "limit": "30p"},
    },
    "traffic": [
        {"name": "ftp", "kind": "bulk", "count": 3, "rtt": "30ms", "start": {"uniform": ["0s", "300ms"]}},
        {"name": "cbr", "kind": "cbr", "rate": "100kbit", "size": "500B", "start": "0s"},
    ],
    "record": {"queues": "20ms", "flows": "100ms"},
    "arm": [
        {"name": "DropTail"},
        {
            "name": "RED + ECN",
            "topology.queue": {"kind": "red", "limit": "30p", "ecn": True},
            "traffic.ftp.tcp.ecn": True,
        },
    ],
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one worker run all tests of a file, which share fixtures, and one worker all files with tests that
    run programs in namespaces, because these look for what other programs leave behind."""
    from xdist.scheduler import LoadFileScheduling

    @cache
    def in_namespaces(file: str) -> bool:
        text = (config.rootpath / file).read_text(encoding="utf-8")
        return re.search(r"^from (living|remains) import", text, re.MULTILINE) is not None

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "machine" if in_namespaces(file) else file

    # The marks of `--dist loadgroup` have no effect with pytest 9.2 and pytest-xdist 3.8.
    return Scheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """Handle Ctrl-C, which a shell's background jobs, and every program that they start, would ignore."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.fixture(scope="session", autouse=True)
def output_has_no_width() -> None:
    """Remove the width of the terminal that runs the tests; readline exports it to child processes."""
    os.environ.pop("COLUMNS", None)
    os.unsetenv("COLUMNS")


@pytest.fixture
def small() -> dict[str, Any]:
    return copy.deepcopy(SMALL)


@pytest.fixture(scope="session")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> aqmlab.Results:
    return aqmlab.run(copy.deepcopy(SMALL), output=tmp_path_factory.mktemp("runs") / "small", jobs=2)


@pytest.fixture(scope="session")
def grid():
    """240 runs: 2 arms x 4 rates x 3 numbers of flows x 10 seeds, three of them lost."""
    from synthetic_sweep import synthetic

    lost = {(3, 4): "it needs more than 1 GiB of memory", (3, 7): "it needs more than 2 GiB of memory"}
    return synthetic(lost=lost | {(20, 1): "the worker was killed by signal 9"})


@pytest.fixture(scope="session")
def grid_report(grid, tmp_path_factory):
    from aqmlab.reports import write_report

    return write_report(grid, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    import tomli_w

    file = tmp_path / "small.toml"
    file.write_text(tomli_w.dumps(SMALL), encoding="utf-8")
    return file


@dataclass
class Ended:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def aqmlab_cli(capsys, monkeypatch):
    """Runs the command line in this process, because starting an interpreter per case would take minutes."""
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["aqmlab", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(int(ended.value.code), *capsys.readouterr())

    return call


@pytest.fixture
def user(request):
    """A user for whom live runs work on this machine."""
    reason = why_not(request.param)
    if reason:
        pytest.skip(reason)
    return request.param


@pytest.fixture
def live_folder():
    """A folder to which an ordinary user may write, and whose parents that user may read.

    It is not one of pytest's folders: a second pytest process makes the parents of such folders private
    again.
    """
    with tempfile.TemporaryDirectory(prefix="aqmlab-live-") as made:
        yield _anybodys(Path(made))


def _anybodys(folder: Path) -> Path:
    folder.chmod(0o777)
    import tomli_w

    file = folder / "live.toml"
    file.write_text(tomli_w.dumps(SCENARIO), encoding="utf-8")
    # The file's mode must not depend on our umask.
    file.chmod(0o644)
    return folder


@pytest.fixture
def router(monkeypatch):
    """Set the mode of the live router's stand-in."""

    def chosen(mode):
        command = [sys.executable, "-P", live_worlds.__file__, mode]
        monkeypatch.setattr(supervisor, "_command", lambda: command)

    return chosen
