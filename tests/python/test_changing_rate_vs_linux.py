"""Four flows behind a shaper whose rate changes at given instants, compared with Linux.

The kernel's runs are in ``vectors/linux-changing-rate``, made by ``peers/linux/changing_rate.py``.
"""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import mean, stdev

import pytest

import aqmlab

VECTORS = Path(__file__).resolve().parents[2] / "vectors"
with (VECTORS / "linux-changing-rate" / "runs.csv").open(newline="") as file:
    RECORDED = list(csv.DictReader(file))
STEPS = [["0s", "10Mbit"], ["25s", "4Mbit"], ["40s", "16Mbit"], ["52s", "8Mbit"]]
SENT_S = 0.0012
# Linux counts 14 bytes more for each packet, so a packet of its MTU has 1500 bytes here.
QUEUES = {
    "pfifo": {"kind": "droptail", "limit": "100p"},
    "codel": {"kind": "codel", "preset": "linux", "limit": "100p", "mtu": "1500B", "ecn": False},
    "pie": {"kind": "pie", "preset": "linux", "limit": "100p", "mean_packet": "1500B", "ecn": False},
    "fq_codel": {
        **{"kind": "fq_codel", "preset": "linux", "limit": "100p", "quantum": "1500B", "mtu": "1500B"},
        "ecn": False,
    },
}
RUNS = 2
"""Runs of ours per seed of the kernel's; each flow starts a little later in the second."""


def flows(seed):
    """The base round-trip time and start of each flow of a seed, in seconds."""
    with (VECTORS / "linux-crowd" / "scenes.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["seed"]) == seed]
    return [(float(row["rtt_s"]), float(row["start_s"])) for row in rows[:4]]


def figures(congestion, queue, seed, again, folder):
    """Goodput in Mbit/s, mean queue in packets."""
    drawn = flows(seed)
    scenario = {
        "duration": "65s",
        "warmup": "15s",
        "seed": again + 1,
        "topology": {
            "kind": "dumbbell",
            "rate": STEPS,
            "delay": "10ms",
            "access_rate": "10Gbit",
            "queue": QUEUES[queue],
            "reverse_queue": {"kind": "droptail", "limit": "100000p"},
        },
        "traffic": [
            {
                "name": "crowd",
                "kind": "bulk",
                "count": len(drawn),
                # The kernel delivers a packet when its transmission begins.
                "rtt": {"list": [f"{rtt - SENT_S:.6f}s" for rtt, _ in drawn]},
                "start": {"list": [f"{start + 0.0007 * again:.6f}s" for _, start in drawn]},
                "tcp": {
                    **{"profile": "linux", "congestion": congestion, "ecn_fallback": "off"},
                    **{"receive_window": "1MiB", "quick_acks_growing": 339},
                },
            }
        ],
    }
    results = aqmlab.run(scenario, output=folder / f"{seed}-{again}", report=False)
    (cell,) = results.cells
    (goodput,) = results.values("goodput_bps", cell).values()
    (backlog,) = results.values("backlog_mean_packets", cell).values()
    return goodput / 1e6, backlog


@pytest.mark.parametrize(
    ("congestion", "queue"),
    [("cubic", "pfifo"), ("cubic", "codel"), ("cubic", "pie"), ("cubic", "fq_codel"), ("reno", "codel")],
)
def test_goodput_and_queue_are_those_of_the_kernel(congestion, queue, tmp_path):
    kernels = [row for row in RECORDED if (row["congestion"], row["queue"]) == (congestion, queue)]
    assert len(kernels) == 5
    ours = [
        figures(congestion, queue, int(row["seed"]), again, tmp_path)
        for row in kernels
        for again in range(RUNS)
    ]
    for which, (name, limit) in enumerate([("goodput_mbit", 0.01), ("mean_queue", 0.03)]):
        theirs = [float(row[name]) for row in kernels]
        mine = [found[which] for found in ours]
        # Limits as for crowds, or two standard errors of the difference.
        error = (stdev(theirs) ** 2 / len(theirs) + stdev(mine) ** 2 / len(mine)) ** 0.5
        assert mean(mine) == pytest.approx(mean(theirs), abs=max(limit * mean(theirs), 2 * error)), name
