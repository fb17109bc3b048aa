#!/usr/bin/env python3
"""Runs ns-2.35 (Debian 12 package `ns2` 2.35+dfsg-5) and records the traces of Adaptive RED next to this file.

    python3 record.py

The column `u` is the draw that ns-2 made for an arrival. ns-2 makes one whenever the average is at least
min_th and more than one byte waits, except at the first of a series of such arrivals. The column is empty for
other arrivals.
"""

import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
MIN_TH_BYTES = 5000.0
# name: arrival rate in multiples of 125 packets/s, wait_, seed, number of arrivals, 1 for
# Self-Configuring RED, seconds on, seconds off
TRACES = {
    "ared_rising": (2.2, 1, 13, 4000, 0, 1, 0),
    "ared_falling": (1.66, 0, 14, 4000, 0, 1, 0),
    "feng": (4.0, 0, 15, 4000, 1, 1.5, 1.5),
}

for name, settings in TRACES.items():
    command = ["ns", str(HERE / "adaptive_red.tcl"), *map(str, settings)]
    lines = [
        line.split()
        for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    ]
    draws = iter([line[1] for line in lines if line[0] == "U"])
    was_above = False
    with open(HERE / f"{name}.csv", "w") as out:
        out.write("arrival_ns,size,waiting_bytes,avg,prob,max_p,u,fate\n")
        for _, *fields, fate in (line for line in lines if line[0] == "A"):
            above = float(fields[3]) >= MIN_TH_BYTES and int(fields[2]) > 1
            out.write(",".join([*fields, next(draws) if above and was_above else "", fate]) + "\n")
            was_above = above
