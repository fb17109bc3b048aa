#!/usr/bin/env python3
"""Fails if a packet-hop has become more expensive.

Counts the instructions of four fixed scenarios, a long run minus a short one, and compares instructions per
packet-hop with benches/baseline.json, which has figures for each way of counting (perf, callgrind). Fails if
any figure has risen by more than 3 %. Compilers generate different instructions: if the baseline was
counted with another compiler, this program compares but does not fail.

    python3 benches/gate.py                                compare
    python3 benches/gate.py --can-count                    exit 0 if this machine can count, 1 if not
    python3 benches/gate.py --update                       write the baseline of this machine's counter
    python3 benches/gate.py --update --counter callgrind   write the baseline of callgrind
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import ROOT, BenchError, between, build, counted, counter, loop
from scene import arguments, scene

BASELINE = Path(__file__).resolve().parent / "baseline.json"
ALLOWED_RISE = 0.03

# name: flows, discipline, changes, simulated seconds of the short and of the long run
SCENARIOS = {
    "red, 100 flows": (100, "red", {}, 3, 7),
    "droptail, 1000 flows": (1000, "droptail", {}, 3, 7),
    "red, 20 flows, two bottlenecks, recording": (
        20,
        "red",
        {"bottlenecks": 2, "record_ms": 10, "record_flows_ms": 500},
        3,
        6,
    ),
}
LOT = "droptail, parking lot with web users"
LOT_S = (20, 60)  # simulated seconds of the short and the long run; web users open 200 connections per second


def measure(how: str) -> dict[str, float]:
    """Instructions per packet-hop of each scenario."""
    driver = str(build("aqmlab-sim", "bench_dumbbell"))
    found = {}
    for name, (flows, discipline, changes, short_s, long_s) in SCENARIOS.items():
        command = [driver, *arguments(scene(flows, discipline, **changes))]
        found[name] = round(loop(command, short_s, long_s, how).per_hop, 2)
    return found | {LOT: measure_lot(how)}


def measure_lot(how: str) -> float:
    """Instructions per packet-hop of the parking lot: many queues, most of them nearly idle, and short
    connections."""
    driver = str(build("aqmlab-sim", "run_once"))
    lot = [sys.executable, str(ROOT / "peers" / "ns2" / "lot.py"), "scenario", "10"]
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for seconds in LOT_S:
            file = Path(folder) / f"{seconds}.toml"
            text = subprocess.run([*lot, str(seconds)], capture_output=True, text=True, check=True).stdout
            file.write_text(text)
            runs.append(counted([driver, str(file)], how))
    return round(between(*runs).per_hop, 2)


def compare(found: dict[str, float], baseline: dict[str, float]) -> list[str]:
    """Prints the comparison; returns the names of the scenarios that have become too expensive."""
    worse = []
    for name, now in found.items():
        if name not in baseline:
            print(f"{name:<45} {now:8.1f} instructions per packet-hop, not in the baseline")
            worse.append(name)
            continue
        change = now / baseline[name] - 1
        print(f"{name:<45} {now:8.1f} instructions per packet-hop, {change:+.1%} from {baseline[name]:.1f}")
        if change > ALLOWED_RISE:
            worse.append(name)
    return worse


def compiler() -> str:
    """The version that the compiler reports."""
    return subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()


def can_count() -> int:
    """0 if this machine can count instructions, 1 if not."""
    try:
        print(f"counting with {counter()}")
    except BenchError as error:
        print(error)
        return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the baseline instead of comparing")
    parser.add_argument(
        "--counter", choices=("perf", "callgrind"), help="how to count; by default perf if it works"
    )
    parser.add_argument("--can-count", action="store_true", help="report whether this machine can count")
    options = parser.parse_args()
    if options.can_count:
        return can_count()
    how = options.counter or counter()
    found = measure(how)
    stored = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    if options.update:
        stored[how] = found | {"compiler": compiler()}
        BASELINE.write_text(json.dumps(stored, indent=2, sort_keys=True) + "\n")
        print(f"wrote {BASELINE.name} ({how}); a baseline that has risen needs a line in CHANGELOG.md")
        return 0
    if how not in stored:
        print(
            f"the baseline has no figures counted with {how}: run `python3 benches/gate.py --update`",
            file=sys.stderr,
        )
        return 1
    # If one method's count is missing, the other method's is used: they differ by at most one percent.
    baseline = {name: per_hop for known in stored.values() for name, per_hop in known.items()} | stored[how]
    worse = compare(found, baseline)
    if worse and compiler() != stored[how].get("compiler"):
        print(
            f"the baseline was counted with {stored[how].get('compiler')}, not with {compiler()}, "
            "so these rises are not failures"
        )
        return 0
    if worse:
        print(
            f"more than {ALLOWED_RISE:.0%} above the baseline: {'; '.join(worse)}\n"
            "Make the code cheaper or, if the change is worth its cost, run `python3 benches/gate.py "
            "--update` and say in CHANGELOG.md what became more expensive and why.",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"gate: {error}", file=sys.stderr)
        sys.exit(3)
