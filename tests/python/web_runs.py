"""Short runs of users behind a narrow link, and of the same network without congestion."""

from __future__ import annotations

import tomllib

import aqmlab

SCENARIO = """
title = "Web"
duration = "12s"
warmup = "2s"
runs = 3
[topology]
kind = "dumbbell"
rate = "2Mbit"
delay = "10ms"
queue = { kind = "droptail", limit = "60p" }
[[traffic]]
name = "web"
kind = "requests"
rate = "20/s"
request = "300B"
response = { pareto = "4kB", shape = 1.3 }
[[traffic]]
name = "api"
kind = "requests"
rate = "5/s"
request = "300B"
response = "500B"
[[traffic]]
name = "ftp"
kind = "bulk"
[[arm]]
name = "Uncongested"
"topology.rate" = "1Gbit"
[[arm]]
name = "DropTail"
[[arm]]
name = "CoDel"
"topology.queue" = { kind = "codel", limit = "60p" }
"""
RATES = ("5/s", "20/s")


def ran(folder):
    """Three seeds of three arms."""
    return aqmlab.run(tomllib.loads(SCENARIO), output=folder / "run", report=False)


def ran_over_rates(folder):
    """Two seeds of each arm at two rates of requests."""
    file = folder / "web.toml"
    file.write_text(SCENARIO + f'[sweep]\n"traffic.web.rate" = {list(RATES)}\n', encoding="utf-8")
    return aqmlab.sweep(file, store=folder / "store", runs=2).wait()
