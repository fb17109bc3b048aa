"""Two flows over the small bottleneck of ``papers/miskovic/net10.toml``, compared with ns-2, seed by seed.

Run with ``-s``, the slow test prints the table of ``docs/validation.md``.
"""

from __future__ import annotations

import csv
import importlib.util
import shutil
import tomllib
from pathlib import Path

import pytest

import aqmlab
from aqmlab.stats import estimate
from aqmlab.stats.differences import difference

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("net10", ROOT / "peers" / "ns2" / "net10.py")
NET10 = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(NET10)
with (NET10.VECTORS / "runs.csv").open(newline="") as file:
    RECORDED = {(row["arm"], int(row["buffer"]), int(row["seed"])): row for row in csv.DictReader(file)}

SEEDS = range(1, NET10.SEEDS + 1)
METRICS = ("goodput_efficiency_percent", "drop_percent")
COMPARISONS = len(METRICS) * len(NET10.ARMS) * len(NET10.BUFFERS)
# Bonferroni: with 95 %, all intervals together contain the true differences.
TOGETHER = 1 - 0.05 / COMPARISONS
RESOLUTION = 1e-6  # of the recorded percentages


def scenario(buffers):
    """The paper's scenario with two flows, with the starts that ns-2 drew."""
    given = tomllib.loads((ROOT / "papers" / "miskovic" / "net10.toml").read_text())
    assert given["duration"] == f"{NET10.END_S}s"
    for flow in given["traffic"]:
        if flow["name"] != "cbr":
            column = f"start_{flow['name']}_s"
            starts = [[f"{RECORDED['DropTail', 4, seed][column]}s"] for seed in SEEDS]
            flow["start"] = {"seeds": starts}
    jitter = {f"traffic.{name}.tcp.send_jitter": "10us" for name in ("newreno", "sack")}
    given["arm"].append({"name": "DropTail-jitter"} | jitter)
    given["sweep"] = {"topology.queue.limit": [f"{buffer}p" for buffer in buffers]}
    return given


def both(store, buffers, seeds):
    """Yield each arm and buffer with our values and ns-2's, by metric and seed."""
    results = aqmlab.sweep(scenario(buffers), store=store, runs=len(seeds), jobs=1, report=False).wait()
    for cell in results.cells:
        buffer = int(cell.label("limit").removesuffix("p"))
        yield (
            cell.arm,
            buffer,
            {
                metric: (
                    results.values(metric, cell),
                    {seed: float(RECORDED[cell.arm, buffer, seed][metric]) for seed in seeds},
                )
                for metric in METRICS
            },
        )


def test_without_losses_every_seed_is_equal(tmp_path):
    # At 72 packets, DropTail loses nothing, so nothing is left to chance: each seed has one right answer.
    found = {arm: values for arm, _, values in both(tmp_path / "store", [72], range(1, 4))}
    for metric, (ours, theirs) in found["DropTail"].items():
        assert ours == pytest.approx(theirs, abs=RESOLUTION), metric


@pytest.mark.slow
def test_means_agree(tmp_path):
    compared, outside = 0, []
    for arm, buffer, values in both(tmp_path / "store", NET10.BUFFERS, SEEDS):
        texts = []
        for metric, (ours, theirs) in values.items():
            alone, together = (difference(ours, theirs, level).estimate for level in (0.95, TOGETHER))
            apart = abs(alone.mean) > alone.half_width + RESOLUTION
            means = [str(estimate(by_seed.values())) for by_seed in (ours, theirs)]
            texts += [*means, f"**{alone}**" if apart else str(alone)]
            compared += 1
            if abs(together.mean) > together.half_width + RESOLUTION:
                outside.append((arm, buffer, metric))
        print("|", " | ".join([arm, str(buffer), *texts]), "|")  # noqa: T201
    assert compared == COMPARISONS
    assert outside == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 (the command ns) is not installed")
@pytest.mark.parametrize("buffer", NET10.BUFFERS)
@pytest.mark.parametrize("arm", NET10.ARMS)
def test_ns2_says_today_what_was_recorded(arm, buffer):
    row = {name: str(value) for name, value in NET10.run(arm, buffer, 1).items()}
    written = RECORDED[arm, buffer, 1]
    assert row.keys() == written.keys()
    for name, value in row.items():
        if name == "arm":
            assert value == arm
        else:
            assert float(value) == float(written[name]), name
