"""Clusters that break: nothing is lost or counted twice, and the final bytes are the same."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli_w

import aqmlab
from aqmlab.sweeps.parcel import COURSES
from aqmlab.sweeps.store import Store
from clustered import PATIENCE_S, DaskProcesses, SlowLink, end_group, hidden
from sweeping import RUNS, left_over, manifests, tables, tiny

pytest.importorskip("distributed", reason="the package distributed is not installed")

TRIALS = 20
HEARTBEATS = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "3s"}
SILENCE_S = 3.0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The directory of the sweep, executed on this machine; its runs are long enough to be disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "tiny.toml").write_text(tomli_w.dumps(tiny(duration="200s")), encoding="utf-8")
    sweep = aqmlab.sweep(folder / "tiny.toml", report=False, store=folder / "store", jobs=2)
    sweep.wait()
    return sweep.path


class Trial:
    """A sweep on a cluster with an induced fault."""

    def __init__(self, folder: Path, undisturbed: Path, seed: int | None, *, shared: bool) -> None:
        self.draw = random.Random(seed or 0)
        self.after = 8 if seed is None else self.draw.randrange(RUNS * 3 // 4)
        self.late_s = 0.0 if seed is None else self.draw.uniform(0, 0.1)
        self.scenario, self.undisturbed, self.shared = undisturbed / "scenario.toml", undisturbed, shared
        self.place = folder / "unseen"
        self.place.mkdir()
        self.store = self.place / "store"
        self.before = [] if shared else hidden(self.place)
        self.cluster = DaskProcesses(folder / "cluster", HEARTBEATS)

    def begin(self, workers: int = 2) -> None:
        self.cluster.start_scheduler()
        for _ in range(workers):
            self.start_worker()
        self.cluster.wait_workers(workers)

    def start_worker(self, **more) -> subprocess.Popen[bytes]:
        return self.cluster.start_worker(before=self.before, **more)

    def sweep(self, address: str = "") -> aqmlab.Sweep:
        where = aqmlab.Cluster(address or self.cluster.address, silence_s=SILENCE_S)
        return aqmlab.sweep(self.scenario, store=self.store, executor=where, report=False)

    def moment(self) -> None:
        """Wait until ``after`` runs have finished, and then for ``late_s``."""
        self.cluster.wait_until(lambda: self.there() >= self.after)
        time.sleep(self.late_s)

    def there(self) -> int:
        return len(list(self.store.glob("runs/*/*/manifest.json")))

    def run_processes(self) -> list[int]:
        """The processes that execute the runs, as descendants of the workers."""
        return [pid for worker in self.cluster.workers for pid in below(worker.pid) if is_runner(pid)]

    def check(self, sweep: aqmlab.Sweep) -> None:
        sweep.wait()
        self.check_whole(sweep.path)

    def check_whole(self, path: Path) -> None:
        self.cluster.close()
        assert tables(path) == tables(self.undisturbed)
        whole = manifests(self.undisturbed.parent.parent)
        assert len(whole) == RUNS
        left = () if self.shared else COURSES
        assert manifests(self.store) == {
            run: {name: digest for name, digest in of.items() if name not in left}
            for run, of in whole.items()
        }
        Store(self.store).sweep_out()
        assert left_over(self.store) == []


def below(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [each for child in task.read_text().split() for each in below(int(child))]
        except OSError:
            continue
    return found


def is_runner(pid: int) -> bool:
    try:
        return b"aqmlab.sweeps.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def worker_killed(trial: Trial) -> None:
    trial.begin()
    sweep = trial.sweep()
    trial.moment()
    end_group(trial.draw.choice(trial.cluster.workers))
    trial.start_worker()
    trial.check(sweep)


def scheduler_killed(trial: Trial) -> None:
    trial.begin()
    sweep = trial.sweep()
    trial.moment()
    end_group(trial.cluster.scheduler)
    time.sleep(trial.draw.uniform(0, 1))
    for worker in trial.cluster.workers:
        # Dask's workers would also end by themselves, some time after their scheduler.
        end_group(worker)
    trial.begin()
    trial.check(sweep)


def client_killed(trial: Trial) -> None:
    trial.begin()
    words = [sys.executable, "-m", "aqmlab", "sweep", str(trial.scenario), "--store", str(trial.store), "-q"]
    words += ["--no-report", "--executor", "dask", "--scheduler", trial.cluster.address]
    client = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    trial.moment()
    client.kill()
    client.wait()
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    (path,) = (trial.store / "sweeps").iterdir()
    trial.check_whole(path)


def worker_stopped(trial: Trial) -> None:
    """Behaves as if its machine had lost the network: it closes no connection and does not answer."""
    trial.begin()
    sweep = trial.sweep()
    trial.moment()
    worker = trial.draw.choice(trial.cluster.workers)
    for pid in below(worker.pid):
        os.kill(pid, signal.SIGSTOP)
    trial.check(sweep)


def run_stopped(trial: Trial) -> None:
    """A run makes no progress, while Dask's worker still answers."""
    trial.begin()
    sweep = trial.sweep()
    trial.moment()
    for pid in trial.run_processes()[:1]:
        os.kill(pid, signal.SIGSTOP)
    trial.check(sweep)


def disk_full(trial: Trial) -> None:
    """From a random moment on, no file that one of the workers writes may grow beyond 3 kB."""
    trial.begin()
    sweep = trial.sweep()
    trial.moment()
    for pid in below(trial.draw.choice(trial.cluster.workers).pid):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (3000, 3000))
    trial.check(sweep)
    refused = [remark for remark in sweep.remarks if "was given no more runs" in remark]
    # If the moment was chosen at random, the last run may already have ended.
    assert refused or trial.late_s
    assert all("File too large" in remark for remark in refused)


def slow_link(trial: Trial) -> None:
    """The client is far away, and so is one of the workers."""
    trial.begin(workers=1)
    link = SlowLink(trial.cluster.address, trial.draw.uniform(0.02, 0.2), trial.draw.uniform(2e5, 2e6))
    trial.start_worker(address=link.address)
    try:
        trial.check(trial.sweep(link.address))
        assert link.passed > 10_000
    finally:
        trial.cluster.close()
        link.close()


FAULTS: dict[str, Callable[[Trial], None]] = {
    fault.__name__: fault
    for fault in (
        worker_killed,
        scheduler_killed,
        client_killed,
        worker_stopped,
        run_stopped,
        disk_full,
        slow_link,
    )
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_twenty_faults_at_random_moments_lose_nothing(fault, undisturbed, tmp_path):
    for seed in range(1, TRIALS + 1):
        shared = seed % 2 == 0
        begun = time.monotonic()
        folder = tmp_path / str(seed)
        folder.mkdir()
        trial = Trial(folder, undisturbed, seed, shared=shared)
        try:
            FAULTS[fault](trial)
        finally:
            trial.cluster.close()
        took = time.monotonic() - begun
        where = "shared store" if shared else "summaries"
        sys.stdout.write(f"{fault} {seed} ({where}): {took:.1f} s\n")


# The code that ends a run without progress is the same as on one machine, and is tested in test_sweeps.py.
@pytest.mark.parametrize(
    ("fault", "shared"),
    [("worker_killed", True), ("scheduler_killed", False), ("client_killed", True), ("disk_full", False)],
)
def test_a_fault_after_eight_runs_loses_nothing(fault, shared, undisturbed, tmp_path):
    trial = Trial(tmp_path, undisturbed, None, shared=shared)
    try:
        FAULTS[fault](trial)
    finally:
        trial.cluster.close()
