"""The parking lot under web traffic, compared with ns-2 on the same connections, seed by seed.

Run with ``-s``, the slow test prints the table of ``docs/validation.md``.
"""

from __future__ import annotations

import csv
import importlib.util
import math
import shutil
import statistics
from pathlib import Path

import pytest

import aqmlab
from aqmlab.stats import estimate

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("lot", ROOT / "peers" / "ns2" / "lot.py")
LOT = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(LOT)
with (LOT.VECTORS / "runs.csv").open(newline="") as file:
    RECORDED = {(row["queue"], int(row["seed"])): row for row in csv.DictReader(file)}

NAMES = {
    "goodput_kbps": "long-lived goodput, kbit/s",
    "response_p50_ms": "response time, median, ms",
    "response_p90_ms": "response time, p90, ms",
    "loss_long_percent": "loss of long-lived flows, %",
    "loss_web_percent": "loss of web traffic, %",
    "queue_packets": "mean queue, packets",
    "utilisation_percent": "utilisation, %",
    "mean_packet_bytes": "mean packet, B",
}
LEAST_LOSS = 0.1  # percent; a loss below this is only a handful of packets
# Values that are known to lie outside the limits: see docs/validation.md, section 9.
OUTSIDE = {"PI": {"loss_long_percent"}}


def figures(experiment, run):
    """The values of ``lot.figures`` for one of our runs."""
    tables = experiment.tables
    span_s = LOT.SPAN_S[1] - LOT.SPAN_S[0]
    drops = " + ".join(f"dropped_{why}_packets" for why in ("early", "forced", "overflow", "injected"))
    columns = (
        f"class, arrivals_packets, {drops}, arrivals_bytes, departures_bytes, backlog_packets_integral_ns"
    )
    rows = {row[0]: row[1:] for row in tables.rows("summary", columns, "WHERE queue = 'R1-R2'", runs=[run])}
    arrivals, _, arrived_bytes, departed_bytes, backlog_ns = rows["*"]
    of = {}
    for name in (*LOT.LONG, *LOT.WEB):
        both = [rows[side] for side in LOT.sided([name]) if side in rows]
        of[name] = {"arrivals": sum(row[0] for row in both), "drops": sum(row[1] for row in both)}
    link = {
        "of": of,
        "queue_packets": float(backlog_ns) / 1e9 / span_s,
        "utilisation": departed_bytes * 8 / (10e6 * span_s),
        "mean_packet_bytes": arrived_bytes / arrivals,
    }
    web = tables.rows("request_sample", "response_time_ns", "WHERE class IN ('web_a', 'web_b')", runs=[run])
    long = tables.rows(
        "flows", "sum(measured_received_bytes)", "WHERE class IN ('long_a', 'long_b')", runs=[run]
    )
    return LOT.figures([took / 1e9 for (took,) in web], link, float(long[0][0]) * 8 / span_s)


def both(queue, seeds, folder):
    """Return our values and ns-2's, by metric and seed."""
    scenario = LOT.scenario(seeds[0]) | {"runs": len(seeds)}
    experiment = aqmlab.run(scenario, arms=[queue], output=folder / queue, report=False)
    ours = {run.seed: figures(experiment, run) for run in experiment.runs}
    return {
        metric: (
            {seed: ours[seed][metric] for seed in seeds},
            {seed: float(RECORDED[queue, seed][metric]) for seed in seeds},
        )
        for metric in NAMES
    }


def test_ns2_had_the_connections_of_today(tmp_path):
    drawn = {seed: LOT.write_vectors(seed, tmp_path)[1] for seed in {seed for _, seed in RECORDED}}
    for (_, seed), row in RECORDED.items():
        assert row["vectors_sha256"] == drawn[seed], "record anew: peers/ns2/lot.py"


@pytest.mark.parametrize("queue", LOT.QUEUES)
def test_a_pair_is_near(queue, tmp_path):
    found = both(queue, [1], tmp_path)

    def ratio(metric):
        mine, theirs = found[metric]
        return mine[1] / theirs[1]

    assert ratio("goodput_kbps") == pytest.approx(1, abs=0.1)
    assert ratio("response_p50_ms") == pytest.approx(1, abs=0.1)
    assert ratio("utilisation_percent") == pytest.approx(1, abs=0.01)
    assert ratio("queue_packets") == pytest.approx(1, abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("queue", LOT.QUEUES)
def test_ratios_over_pairs(queue, tmp_path):
    outside, seeds = [], sorted(seed for name, seed in RECORDED if name == queue)
    for metric, (mine, theirs) in both(queue, seeds, tmp_path).items():
        a, b = (statistics.fmean(values.values()) for values in (mine, theirs))
        few = metric.startswith("loss") and b <= LEAST_LOSS
        # The load differs more between seeds than between programs, so the ratio is a mean over pairs of runs
        # with the same seed.
        logs = [0.0 if few else math.log(mine[seed] / theirs[seed]) for seed in mine]
        found = estimate(logs, 0.90)
        middle, low, high = (math.exp(found.mean + by * found.half_width) for by in (0, -1, 1))
        ratios = ["", ""] if few else [f"{middle:.3f}", f"{low:.3f} to {high:.3f}"]
        print("|", " | ".join([queue, NAMES[metric], f"{a:.4g}", f"{b:.4g}", *ratios]), "|")  # noqa: T201
        if metric in ("goodput_kbps", "response_p50_ms"):
            outside += [metric] * (not 0.95 <= low <= high <= 1.05)
        elif metric.startswith("loss"):
            outside += [metric] * (not 0.8 <= low <= high <= 1.25)
    assert set(outside) <= OUTSIDE.get(queue, set())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 (the command ns) is not installed")
def test_ns2_says_today_what_was_recorded(tmp_path):
    file, _ = LOT.write_vectors(1, tmp_path)
    for metric, value in LOT.run(file, "REM").items():
        assert value == pytest.approx(float(RECORDED["REM", 1][metric]), rel=1e-5), metric
