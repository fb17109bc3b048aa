"""What the only flow of a host gets behind CAKE, against four flows of another host, compared with Linux.

The kernel's runs are in ``vectors/linux-cake/hosts.csv``, made by ``peers/linux/hosts.py``.
"""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import mean

import pytest

import aqmlab

VECTORS = Path(__file__).resolve().parents[2] / "vectors"
with (VECTORS / "linux-cake" / "hosts.csv").open(newline="") as file:
    RECORDED = list(csv.DictReader(file))

SENT_S = 1500 * 8 / 20e6


def flows(seed):
    """The base round-trip time and start of each flow of a seed, in seconds."""
    with (VECTORS / "linux-crowd" / "scenes.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["seed"]) == seed]
    return [(float(row["rtt_s"]), float(row["start_s"])) for row in rows[:5]]


def share(congestion, isolation, seed, folder):
    """The share of the lone flow, in percent."""
    # As in the comparison of crowds: the kernel delivers a packet when its transmission begins.
    drawn = [(f"{rtt - SENT_S:.6f}s", f"{start}s") for rtt, start in flows(seed)]
    tcp = {"profile": "linux", "congestion": congestion, "ecn_fallback": "off", "receive_window": "1MiB"}
    queue = {"kind": "cake", "preset": "linux", "isolation": isolation, "tins": "besteffort", "mtu": "1500B"}
    scenario = {
        "duration": "65s",
        "warmup": "15s",
        "seed": seed,
        "topology": {
            "kind": "dumbbell",
            "rate": "20Mbit",
            "delay": "10ms",
            "access_rate": "10Gbit",
            "queue": queue,
            "reverse_queue": {"kind": "droptail", "limit": "100000p"},
        },
        "traffic": [
            {
                "name": name,
                "kind": "bulk",
                "count": len(mine),
                "rtt": {"list": [rtt for rtt, _ in mine]},
                "start": {"list": [start for _, start in mine]},
                "tcp": tcp | {"quick_acks_growing": 339},
            }
            for name, mine in (("lone", drawn[:1]), ("four", drawn[1:]))
        ],
    }
    results = aqmlab.run(scenario, output=folder / f"{congestion}-{isolation}-{seed}", report=False)
    (found,) = results.values("goodput_share_percent{class=lone}", results.cells[0]).values()
    return found


@pytest.mark.parametrize(
    ("congestion", "isolation"),
    [("cubic", "flows"), ("cubic", "dual-dsthost"), ("cubic", "triple-isolate"), ("reno", "dual-dsthost")],
)
def test_the_lone_flow_gets_what_it_gets_in_the_kernel(congestion, isolation, tmp_path):
    kernels = [row for row in RECORDED if (row["congestion"], row["isolation"]) == (congestion, isolation)]
    assert len(kernels) == 5
    theirs = mean(100 * float(row["share"]) for row in kernels)
    ours = mean(share(congestion, isolation, int(row["seed"]), tmp_path) for row in kernels)
    assert ours == pytest.approx(theirs, abs=1.0)
