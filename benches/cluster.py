#!/usr/bin/env python3
"""Measures the cost of a Dask cluster compared with local processes, and how many tasks per second it runs.

    python3 benches/cluster.py runs                  2,000 short runs: two workers against `--jobs 2`
    python3 benches/cluster.py runs --away           the same, with workers that cannot access the store
    python3 benches/cluster.py tasks --workers 200   tasks that do nothing, with the real messages

`runs` prints wall time, overhead per run and the scheduler's memory, and checks whether both executors
write the same bytes to results.csv, answer.csv and claims.json. `tasks` runs a scheduler in one process and
all workers in another: its result is a lower bound on a scheduler's capacity.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHORT = """
title = "Many short runs"
duration = "2s"
warmup = "1s"
runs = {seeds}
metrics = ["goodput_bps", "queueing_delay_p99_s"]
[topology]
kind = "dumbbell"
rate = "2Mbit"
delay = "5ms"
access_rate = "20Mbit"
queue = {{ kind = "droptail", limit = "20p" }}
[[traffic]]
name = "ftp"
kind = "bulk"
count = 2
rtt = "30ms"
start = {{ uniform = ["0s", "300ms"] }}
[[arm]]
name = "DropTail"
[[arm]]
name = "RED"
"topology.queue" = {{ kind = "red", limit = "20p" }}
[sweep]
"topology.rate" = ["2Mbit", "4Mbit", "6Mbit", "8Mbit", "10Mbit"]
"traffic.ftp.count" = [2, 3, 4, 5]
[[claim]]
name = "short"
text = "RED keeps the queue short."
expect = "queueing_delay_mean_s{{arm=RED}} < queueing_delay_mean_s{{arm=DropTail}}"
where = {{ rate = "2Mbit", count = "5" }}
"""
CASES_AND_ARMS = 40


class Processes:
    """A scheduler and workers that stop at the end of the `with` block."""

    def __init__(self, folder, workers, before=()):
        self.file = Path(folder) / "scheduler.json"
        self.log = (Path(folder) / "dask.log").open("wb")
        self.all = [self._start("scheduler", "--port", "0", "--scheduler-file", str(self.file))]
        for i in range(workers):
            scratch = ["--local-directory", f"{folder}/scratch-{i}"]
            words = ["--scheduler-file", str(self.file), "--nthreads", "1", "--no-nanny", *scratch]
            self.all.append(self._start("worker", *words, before=before))

    def _start(self, *words, before=()):
        command = [*before, sys.executable, "-m", "dask", *words, "--no-dashboard"]
        return subprocess.Popen(command, stdout=self.log, stderr=self.log, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.all:
            os.killpg(process.pid, 9)
            process.wait()
        self.log.close()

    def memory_mb(self):
        """The scheduler's peak memory in MB."""
        status = Path(f"/proc/{self.all[0].pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1e3


def sweep(scenario, store, *options):
    """Runs a sweep; returns its wall time in s and its last event."""
    words = ["sweep", str(scenario), "--store", str(store), "-q", "--json", "--no-report", *options]
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "aqmlab", *words], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode > 1:
        sys.exit(done.returncode)
    return time.perf_counter() - begun, json.loads(done.stdout.splitlines()[-1])


def runs(options):
    with tempfile.TemporaryDirectory(prefix="aqmlab-bench-", dir=ROOT) as folder:
        unseen = Path(folder) / "unseen"
        unseen.mkdir()
        scenario = unseen / "short.toml"
        scenario.write_text(SHORT.format(seeds=options.runs // CASES_AND_ARMS))
        hide = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {unseen}; exec "$@"', "sh"]
        overhead = {}
        with Processes(folder, 2, hide if options.away else ()) as cluster:
            for i in range(options.times):
                ways = {
                    "local": ["--jobs", "2"],
                    "dask": ["--executor", "dask", "--scheduler-file", str(cluster.file)],
                }
                while not cluster.file.exists():
                    time.sleep(0.1)
                files = {}
                for way, words in ways.items():
                    wall, end = sweep(scenario, unseen / f"{way}-{i}", *words)
                    count = end["runs_done"]
                    overhead.setdefault(way, []).append((wall * 2 - end["cpu_s"]) / count * 1e3)
                    path = Path(end["path"])
                    names = ("results.csv", "answer.csv", "claims.json")
                    files[way] = [(path / name).read_bytes() for name in names]
                    print(
                        f"{way}: {count} runs in {wall:.1f} s, {end['cpu_s'] / count * 1e3:.1f} ms per run;"
                        f" overhead {overhead[way][-1]:.1f} ms per run"
                    )
                print(f"same bytes: {files['local'] == files['dask']}; load {os.getloadavg()[0]:.1f}")
            print(f"the scheduler's memory: {cluster.memory_mb():.0f} MB")
        best = {way: min(found) for way, found in overhead.items()}
        print(
            "overhead of Dask minus that of local processes, lowest of each:"
            f" {best['dask'] - best['local']:.1f} ms per run"
        )


def tasks(options):
    from aqmlab.sweeps.cases import Cases
    from aqmlab.sweeps.cluster import DaskExecutor
    from aqmlab.sweeps.connection import Cluster
    from aqmlab.sweeps.store import Store

    with tempfile.TemporaryDirectory(prefix="aqmlab-bench-") as folder:
        scenario = Path(folder) / "short.toml"
        scenario.write_text(SHORT.format(seeds=options.count // CASES_AND_ARMS))
        cases = Cases(scenario)
        with Processes(folder, 0) as cluster:
            while not cluster.file.exists():
                time.sleep(0.1)
            me = [
                sys.executable,
                str(Path(__file__)),
                "idle",
                str(cluster.file),
                str(options.workers),
                folder,
            ]
            workers = subprocess.Popen(me, start_new_session=True)
            cluster.all.append(workers)
            where = Cluster(scheduler_file=cluster.file)
            executor = DaskExecutor(where, Store.made(Path(folder) / "store"))
            while len(executor._connection.workers) < options.workers:
                executor.outcome(0.2)
            ahead = 256 + options.workers
            todo = (cases.task(cell, seed) for cell, seed, _ in cases)
            begun, own, waiting, done = time.perf_counter(), time.process_time(), 0, 0
            while True:
                while waiting < ahead and (task := next(todo, None)) is not None:
                    executor.submit(task)
                    waiting += 1
                if not waiting:
                    break
                if executor.outcome(0.1) is not None:
                    waiting -= 1
                    done += 1
            took = time.perf_counter() - begun
            used = time.process_time() - own
            print(
                f"{done} tasks on {options.workers} workers in {took:.1f} s: {done / took:.0f}/s; processor time per"
                f" task: client {used / done * 1e3:.2f} ms, scheduler {_cpu_s(cluster.all[0]) / done * 1e3:.2f} ms,"
                f" all workers {_cpu_s(workers) / done * 1e3:.2f} ms; the scheduler's memory"
                f" {cluster.memory_mb():.0f} MB; load {os.getloadavg()[0]:.1f}"
            )
            executor.close(now=False)


def _cpu_s(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle(file, count, folder):
    """Runs all workers in this process; they answer every task without executing it."""
    from distributed import Worker

    from aqmlab.sweeps import remote

    class Nothing:
        def answer(self, request):
            return {"status": "finished", "wall_s": 0.0, "cpu_s": 0.0, "events": 0}

    remote._keeper = lambda store, silence_s: Nothing()

    async def serve():
        made = [
            Worker(scheduler_file=file, nthreads=1, local_directory=f"{folder}/w{i}", dashboard=False)
            for i in range(count)
        ]
        await asyncio.gather(*made)
        await asyncio.gather(*(worker.finished() for worker in made))

    asyncio.run(serve())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    of_runs = commands.add_parser("runs")
    of_runs.add_argument("--runs", type=int, default=2000)
    of_runs.add_argument("--times", type=int, default=1)
    of_runs.add_argument("--away", action="store_true")
    of_tasks = commands.add_parser("tasks")
    of_tasks.add_argument("--workers", type=int, default=200)
    of_tasks.add_argument("--count", type=int, default=10_000)
    of_idle = commands.add_parser("idle")
    for name in ("file", "count", "folder"):
        of_idle.add_argument(name)
    options = parser.parse_args()
    if options.command == "idle":
        idle(options.file, int(options.count), options.folder)
    else:
        (runs if options.command == "runs" else tasks)(options)


if __name__ == "__main__":
    main()
