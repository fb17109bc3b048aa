#!/usr/bin/env python3
"""Runs ns-2.35 (Debian 12 package `ns2` 2.35+dfsg-5) and records red_pd.csv next to this file.

    python3 record_red_pd.py SCRIPTS

SCRIPTS is the folder tcl/ex/red-pd of the ns-2.35 sources; the Debian package does not contain it. It holds
the scripts of RED-PD's authors, which identify and release flows.

Rows `A` are arrivals. `filter_u` is the draw that ns-2 made for a monitored flow. `u` is RED's draw, made
whenever the average is at least min_th and more than one packet waits, except at the first of a series of
such arrivals. Each of these two columns is empty where ns-2 made no such draw.
A row `R` follows each reduction of probabilities. It lists the monitored flows with their probabilities and
whether they count as unresponsive.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEED, ARRIVALS = 21, 9000
PACKET_NS = 2_000_000  # 1000 B at 4 Mbit/s
MIN_TH = 5.0

command = ["ns", str(HERE / "red_pd.tcl"), sys.argv[1], str(SEED), str(ARRIVALS)]
printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
lines = [line.split() for line in printed.splitlines()]
draws = iter([line[1] for line in lines if line[0] == "U"])
leaves: list[int] = []  # when each packet in the system leaves the link, in order
was_above = False
with open(HERE / "red_pd.csv", "w") as out:
    out.write("kind,time_ns,flow,p,avg,filter_u,u,fate\n")
    for kind, at, *rest in (line for line in lines if line[0] != "U"):
        if kind == "R":
            out.write(",".join(["R", at, *rest]) + "\n")
            continue
        flow, p, avg, fate = rest
        leaves = [leave for leave in leaves if leave > int(at)]
        filter_u = next(draws) if float(p) > 0.0 else ""
        u = ""
        if fate != "filter":
            above = float(avg) >= MIN_TH and len(leaves) > 2
            if above and was_above:
                u = next(draws)
            was_above = above
        if fate == "admitted":
            leaves.append(max(int(at), leaves[-1] if leaves else 0) + PACKET_NS)
        out.write(",".join(["A", at, flow, p, avg, filter_u, u, fate]) + "\n")
