#!/usr/bin/env python3
"""Records the results of ns-2.35 for two TCP flows and a UDP flow over one small bottleneck.

Runs net10.tcl over ARMS, BUFFERS and seeds, one run at a time, and writes one row per run to runs.csv.

    python3 peers/ns2/net10.py [--out DIR] [--seeds N]
"""

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
VECTORS = HERE.parent.parent / "vectors" / "ns2-net10"
ARMS = ("DropTail", "DropTail-jitter", "RED10", "RED2", "ARED")
BUFFERS = (4, 12, 36, 72)
SEEDS = 40
END_S = 157  # as papers/miskovic/net10.toml


def run(arm: str, buffer: int, seed: int) -> dict:
    """Runs ns once, and returns a row of runs.csv."""
    command = ["nice", "ns", str(HERE / "net10.tcl"), *map(str, (arm, buffer, seed, END_S))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout.startswith("{"):
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr or done.stdout}")
    row = json.loads(done.stdout)
    if row.pop("reverse_dropped_packets") != 0:
        raise RuntimeError(f"{' '.join(command)}: ACKs were lost: the reverse path must be lossless")
    return row


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=VECTORS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    given = parser.parse_args()
    rows = [
        run(arm, buffer, seed) for arm in ARMS for buffer in BUFFERS for seed in range(1, given.seeds + 1)
    ]
    given.out.mkdir(parents=True, exist_ok=True)
    with (given.out / "runs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
