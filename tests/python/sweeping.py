"""A sweep of twenty-four short runs, and helpers that examine stores, shared by the tests of sweeps."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

TINY: dict[str, Any] = {
    "title": "Tiny",
    "question": "Which queue?",
    "duration": "3s",
    "warmup": "1s",
    "runs": 3,
    "topology": {
        "kind": "dumbbell",
        "rate": "2Mbit",
        "delay": "5ms",
        "access_rate": "20Mbit",
        "queue": {"kind": "droptail", "limit": "20p"},
    },
    "traffic": [
        {"name": "ftp", "kind": "bulk", "count": 2, "rtt": "30ms", "start": {"uniform": ["0s", "300ms"]}}
    ],
    "record": {"queues": "100ms"},
    "arm": [{"name": "DropTail"}, {"name": "RED", "topology.queue": {"kind": "red", "limit": "20p"}}],
    "sweep": {"topology.rate": ["2Mbit", "4Mbit"], "traffic.ftp.count": [2, 4]},
    "claim": [
        {
            "name": "short",
            "text": "RED keeps it short.",
            "expect": "queueing_delay_mean_s{arm=RED} < queueing_delay_mean_s{arm=DropTail}",
            "where": {"count": "4", "rate": "2Mbit"},
            "strength": "soft",
        }
    ],
}
RUNS = 24


def tiny(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(TINY) | changes


def tables(directory: Path) -> dict[str, bytes]:
    """The files of a sweep whose bytes depend only on its runs."""
    names = ("answer.csv", "claims.json", "results.csv", "scenario.toml", "sweep.json")
    return {name: (directory / name).read_bytes() for name in names if (directory / name).exists()}


def left_over(store: Path) -> list[Path]:
    """Files that must not be in a store while no process works on it."""
    hidden = [path for path in store.rglob(".*") if path.name != ".lock"]
    return [*(store / "tmp").iterdir(), *hidden]


def manifests(store: Path) -> dict[str, dict[str, str]]:
    """The digests of the tables of each run, by the run's digest."""
    import json

    found = {}
    for file in store.glob("runs/*/*/manifest.json"):
        manifest = json.loads(file.read_text())
        found[file.parent.name] = {name: facts["digest"] for name, facts in manifest["tables"].items()}
    return found
