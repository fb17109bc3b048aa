#!/usr/bin/env python3
"""Records quantiles of the draws of ns-2.35's PackMime-HTTP, and the correlation between successive draws.

Runs packmime.tcl for each rate and seed below and writes one CSV.

    python3 packmime.py [--out DIR]
"""

import argparse
import csv
import math
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
VARIABLES = ("gap", "request", "response", "client_delay", "server_delay", "server_time")
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
RATES = (5, 27, 100)
SEEDS = range(1, 9)
COUNT = 100_000


def draws(rate: int, seed: int) -> list[list[float]]:
    """Returns a list of draws for each variable."""
    command = ["ns", str(HERE / "packmime.tcl"), str(rate), str(seed), str(COUNT)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [list(column) for column in zip(*(map(float, line.split()) for line in lines), strict=True)]


def lag1(values: list[float]) -> float:
    """Returns the correlation of the logarithms of neighbouring values."""
    logs = [math.log(value) for value in values]
    mean = sum(logs) / len(logs)
    apart = [value - mean for value in logs]
    return sum(a * b for a, b in zip(apart, apart[1:], strict=False)) / sum(a * a for a in apart)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE.parent.parent / "vectors" / "ns2-packmime")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with (out / "draws.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["rate", "seed", "variable", *(f"p{q}" for q in QUANTILES), "lag1"])
        for rate in RATES:
            for seed in SEEDS:
                for name, values in zip(VARIABLES, draws(rate, seed), strict=True):
                    ordered = sorted(values)
                    found = [ordered[int(q * len(ordered))] for q in QUANTILES]
                    writer.writerow([rate, seed, name, *(f"{x:.6g}" for x in found), f"{lag1(values):.5f}"])


if __name__ == "__main__":
    main()
