#!/usr/bin/env python3
"""The overhead of a sweep, per run: (wall time x workers - processor time of the runs) / number of runs.

    python3 benches/sweep.py                     scenarios/sweep.toml with 2 workers, three times
    python3 benches/sweep.py --jobs 4 --limit 25 FILE

Wall time is that of the whole command except the report: the start of Python and of the workers, expanding
the cases, reading the results and writing the tables. Nothing else should run on the machine at the same
time; the time that other programs take counts as overhead. With `--limit`, exits with 1 if the lowest
overhead per run exceeds the limit.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def once(scenario, jobs):
    """Runs a sweep into a fresh store; returns its wall time in s and its last event."""
    with tempfile.TemporaryDirectory(prefix="aqmlab-bench-", dir=ROOT) as folder:
        words = ["sweep", str(scenario), "--store", f"{folder}/store", "-j", str(jobs), "-q"]
        command = [sys.executable, "-m", "aqmlab", *words, "--json", "--no-report"]
        begun = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        wall = time.perf_counter() - begun
    return wall, json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenario", nargs="?", type=Path, default=ROOT / "scenarios" / "sweep.toml")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--limit", type=float, help="the highest overhead allowed, in ms per run")
    options = parser.parse_args()
    found = []
    for _ in range(options.times):
        wall, end = once(options.scenario, options.jobs)
        runs = end["runs_done"]
        found.append((wall * options.jobs - end["cpu_s"]) / runs * 1e3)
        print(
            f"{runs} runs, {options.jobs} workers: {wall:.2f} s wall, {end['cpu_s']:.2f} s of runs,"
            f" {end['cpu_s'] / runs * 1e3:.1f} ms per run; overhead {found[-1]:.1f} ms per run"
        )
    print(f"lowest overhead of {options.times} sweeps: {min(found):.1f} ms per run")
    return 1 if options.limit is not None and min(found) > options.limit else 0


if __name__ == "__main__":
    sys.exit(main())
