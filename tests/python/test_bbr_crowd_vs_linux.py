"""Crowds of BBR, alone and with CUBIC, behind FIFO, CoDel and FQ-CoDel, compared with Linux.

The kernel's runs are in ``vectors/linux-bbr-crowd``, made by ``peers/linux/bbr_crowd.py``. Run as a program,
with names of cases or none, this file prints the table of ``docs/bbr.md``.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from pathlib import Path
from statistics import mean, stdev

import pytest

import aqmlab

VECTORS = Path(__file__).resolve().parents[2] / "vectors"


def table(name):
    with (VECTORS / name).open(newline="") as file:
        return list(csv.DictReader(file))


CASES = {case["case"]: case for case in table("linux-bbr-crowd/cases.csv")}
APART = {row["case"]: row["apart"].split() for row in table("linux-bbr-crowd/differences.csv")}
LIMITS = {"goodput_mbit": 0.02, "mean_queue": 0.05, "retransmitted": 0.15}
"""The largest relative difference of the means; ``first_share`` may differ by 0.05 in either direction."""
RUNS = 2
"""Runs of ours per seed of the kernel's; each flow starts a little later in the second."""
FEW = ("bbr_pfifo4_4", "bbr_codel_4", "bbr_cubic_fq_codel_4")


def flows(case, seed):
    """The base round-trip time and start of each flow of a seed, in seconds."""
    rows = [row for row in table("linux-crowd/scenes.csv") if int(row["seed"]) == seed]
    return [(float(row["rtt_s"]), float(row["start_s"])) for row in rows[: int(case["flows"])]]


def queue(case):
    limit = f"{case['limit']}p"
    if case["queue"] == "pfifo":
        return {"kind": "droptail", "limit": limit}
    # Linux counts 14 bytes more for each packet, so a packet of its MTU has 1500 bytes here.
    sizes = {"mtu": "1500B"} | ({"quantum": "1500B"} if case["queue"] == "fq_codel" else {})
    return {"kind": case["queue"], "preset": "linux", "limit": limit, "ecn": False} | sizes


def scenario(case, seed, again):
    """The scenario of a run: a class for each congestion control, whose flows alternate."""
    drawn, kinds = flows(case, seed), case["congestion"].split("+")
    # The kernel delivers a packet when its transmission begins.
    transmission = 12 / float(case["rate_kbit"])
    settings = {
        **{"profile": "linux", "ecn_fallback": "off", "receive_window": "1MiB"},
        **{"quick_acks_growing": 339},
    }
    return {
        "duration": "65s",
        "warmup": "15s",
        "seed": RUNS * seed + again,  # other draws of BBR's phases in each run
        "topology": {
            "kind": "dumbbell",
            "rate": f"{case['rate_kbit']}kbit",
            "delay": "10ms",
            "access_rate": "10Gbit",
            "queue": queue(case),
            "reverse_queue": {"kind": "droptail", "limit": "100000p"},
        },
        "record": {"queues": "0s", "flows": "0s"},
        "traffic": [
            {
                "name": kind,
                "kind": "bulk",
                "count": len(drawn[number :: len(kinds)]),
                "rtt": {"list": [f"{rtt - transmission:.6f}s" for rtt, _ in drawn[number :: len(kinds)]]},
                "start": {
                    "list": [f"{start + 0.0007 * again:.6f}s" for _, start in drawn[number :: len(kinds)]]
                },
                # The kernel's packets hold one segment each.
                "tcp": settings | {"congestion": kind} | ({"pacing_burst": 1} if kind == "bbr" else {}),
            }
            for number, kind in enumerate(kinds)
        ],
    }


def figures(case, seed, again, folder):
    """The figures of a run, by the names of the columns of the kernel's."""
    results = aqmlab.run(scenario(case, seed, again), output=folder / f"{seed}-{again}", report=False)
    (cell,) = results.cells

    def value(metric, **scope):
        (only,) = results.values(metric, cell, **scope).values()
        return only

    # The kernel's receivers count what their applications read.
    goodput = value("in_order_goodput_bps")
    first = value("in_order_goodput_bps", scope=aqmlab.Scope(class_name=case["congestion"].split("+")[0]))
    return {
        "goodput_mbit": goodput / 1e6,
        "mean_queue": value("backlog_mean_packets"),
        "retransmitted": value("retransmissions"),
        "first_share": first / goodput,
    }


def compared(name, folder):
    """For each figure: our mean, the kernel's, the error of their difference, and what is allowed."""
    case = CASES[name]
    kernels = [row for row in table("linux-bbr-crowd/runs.csv") if row["case"] == name]
    assert len(kernels) == int(case["runs"])
    ours = [figures(case, int(row["seed"]), again, folder) for row in kernels for again in range(RUNS)]
    found = {}
    for figure in (*LIMITS, "first_share"):
        mine, theirs = [run[figure] for run in ours], [float(row[figure]) for row in kernels]
        error = (stdev(theirs) ** 2 / len(theirs) + stdev(mine) ** 2 / len(mine)) ** 0.5
        limit = LIMITS[figure] * mean(theirs) if figure in LIMITS else 0.05
        found[figure] = (mean(mine), mean(theirs), error, max(limit, 2 * error))
    return found


def apart(found):
    """The figures whose difference exceeds its limit and two standard errors."""
    return [figure for figure, (ours, theirs, _, most) in found.items() if abs(ours - theirs) > most]


@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_a_crowd_fares_as_on_linux(name, tmp_path):
    assert apart(compared(name, tmp_path)) == APART.get(name, [])


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        with tempfile.TemporaryDirectory() as folder:
            found = compared(name, Path(folder))
        cells = (f"{ours:.4g} / {theirs:.4g} ± {2 * error:.2g}" for ours, theirs, error, _ in found.values())
        print(f"| {name} | {' | '.join(cells)} | {' '.join(apart(found))} |", flush=True)  # noqa: T201
