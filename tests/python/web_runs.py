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
PAGES = """
[[traffic]]
name = "pages"
kind = "pages"
from = "right"
to = "left"
users = 8
think = { exponential = "500ms" }
start = { uniform = ["0s", "1s"] }
weight = { pareto = "20kB", shape = 1.3, max = "200kB" }
objects = { uniform = [1, 20] }
"""
ONE_WEB_AT_A_TIME = """
[[sweep.zip]]
name = "kind"
labels = ["old", "new"]
"traffic.web.enabled" = [true, false]
"traffic.api.enabled" = [true, false]
"traffic.pages.enabled" = [false, true]
"""


def ran(folder):
    """Three seeds of three arms."""
    return aqmlab.run(tomllib.loads(SCENARIO), output=folder / "run", report=False)


def ran_over_rates(folder):
    """Two seeds of each arm at two rates of requests."""
    file = folder / "web.toml"
    file.write_text(SCENARIO + f'[sweep]\n"traffic.web.rate" = {list(RATES)}\n', encoding="utf-8")
    return aqmlab.sweep(file, store=folder / "store", runs=2).wait()


def ran_with_pages(folder):
    """Three seeds of three arms, with web pages and requests."""
    return aqmlab.run(tomllib.loads(SCENARIO + PAGES), output=folder / "run", report=False)


def ran_one_web_at_a_time(folder):
    """Two seeds of each arm, with either requests or pages, so each class is missing in half of the cells."""
    file = folder / "one.toml"
    file.write_text(SCENARIO + PAGES + ONE_WEB_AT_A_TIME, encoding="utf-8")
    return aqmlab.sweep(file, store=folder / "store", runs=2).wait()
