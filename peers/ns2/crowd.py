#!/usr/bin/env python3
"""Records the results of ns-2.35 for a dumbbell full of TCP flows.

Runs crowd.tcl over cells (case, flows) and seeds, and writes one row per run to crowd.csv, one row per cell
and metric to summary.csv, and the scene of every seed (base RTT and start of each flow, the same for all
cases) to scenes.csv. Rows already in crowd.csv are kept, so an interrupted campaign continues; remove the
files to start again. A cell runs with FEWEST seeds, then with more, up to MOST, until the 90 % interval of
the mean is no wider than WIDEST times the mean for every metric in WATCHED.

    python3 crowd.py [--out DIR] [--jobs N] [--fewest N] [--most N] [--cell CASE:FLOWS ...]
"""

import argparse
import csv
import json
import math
import os
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
WARMUP_S = 20
END_S = 120
FEWEST = 40
MOST = 100
STEP = 20  # seeds added at a time to a cell whose interval is still too wide
WIDEST = 0.05  # greatest accepted width of the 90 % interval, as a share of the mean
CONFIDENCE = 0.90
STALLED_SHARE = 0.05  # a flow below this share of an equal split counts as stalled

CELLS = [
    ("droptail", 10),
    ("droptail", 50),
    ("droptail-jitter", 10),
    ("droptail-jitter", 50),
    ("red", 10),
    ("red", 50),
    ("red-nowait", 10),
    ("red-nowait", 50),
    ("red-ecn", 50),
    ("red-ecn-markall", 50),
    *((case, 100) for case in ("newreno-ecn-sack", "sack-ecn-newreno")),
]

WATCHED = ["drop_percent", "mean_queue_packets"]
METRICS = [
    "goodput_bps",
    "drop_percent",
    "mark_percent",
    "mean_queue_packets",
    "mean_queue_bytes",
    "mean_avg_packets",
    "utilisation",
    "jain",
    "timeouts_per_flow",
    "window_cuts_per_flow",
    "ecn_responses_per_flow",
    "stalled_flows",
    "first_half_share",
]
COUNTS = [
    "arrivals",
    "drops",
    "early_drops",
    "tail_drops",
    "marks",
    "departures",
    "sent_packets",
    "resent_packets",
    "ack_drops",
]
COLUMNS = ["case", "flows", "seed", "warmup_s", "end_s", *METRICS, *COUNTS, "mean_base_rtt_s"]
SCENE_COLUMNS = ["seed", "flow", "base_rtt_s", "start_s"]


def run_once(case: str, flows: int, seed: int) -> tuple[dict, list[dict]]:
    """Runs ns once; returns a row of crowd.csv and the rows of scenes.csv."""
    arguments = [case, flows, seed, END_S, WARMUP_S]
    command = ["nice", "-n", "19", "ns", str(HERE / "crowd.tcl"), *map(str, arguments)]
    # Every run has its own process group, so that an interrupt ends the campaign between two rows.
    done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
    if done.returncode != 0 or not done.stdout.startswith("{"):
        raise RuntimeError(f"ns failed for {arguments}: {done.stderr.strip() or done.stdout.strip()}")
    result = json.loads(done.stdout)
    if result["ack_drops"] != 0:
        raise RuntimeError(f"{arguments}: {result['ack_drops']} ACKs lost: the reverse path must be lossless")
    goodputs = result["flow_goodput_bps"]
    equal_split = sum(goodputs) / flows
    result["stalled_flows"] = sum(each < STALLED_SHARE * equal_split for each in goodputs)
    result["first_half_share"] = f"{sum(goodputs[: flows // 2]) / sum(goodputs):.6f}"
    result["mean_base_rtt_s"] = f"{statistics.fmean(result['flow_base_rtt_s']):.9f}"
    row = {column: "" if result[column] is None else str(result[column]) for column in COLUMNS}
    draws = zip(result["flow_base_rtt_s"], result["flow_start_s"])
    scene = [
        dict(seed=str(seed), flow=str(flow), base_rtt_s=f"{rtt:.9f}", start_s=f"{start:.9f}")
        for flow, (rtt, start) in enumerate(draws)
    ]
    return row, scene


def student_quantile(probability: float, degrees: int) -> float:
    """Returns a quantile of Student's t (Abramowitz and Stegun 26.7.5), accurate to 1e-5 for 20 or more
    degrees of freedom."""
    x = statistics.NormalDist().inv_cdf(probability)
    g1 = (x**3 + x) / 4
    g2 = (5 * x**5 + 16 * x**3 + 3 * x) / 96
    g3 = (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384
    return x + g1 / degrees + g2 / degrees**2 + g3 / degrees**3


def interval(values: list[float]) -> tuple[float, float]:
    """Returns the mean and the half-width of its confidence interval, whose level is CONFIDENCE."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, math.inf
    quantile = student_quantile((1 + CONFIDENCE) / 2, len(values) - 1)
    return mean, quantile * statistics.stdev(values) / math.sqrt(len(values))


def numbers(rows: list[dict], metric: str) -> list[float]:
    return [float(row[metric]) for row in rows if row.get(metric)]


def too_wide(rows: list[dict]) -> bool:
    for metric in WATCHED:
        mean, half = interval(numbers(rows, metric))
        if mean > 0 and 2 * half / mean > WIDEST:
            return True
    return False


class Table:
    """The rows of crowd.csv by (case, flows, seed) and of scenes.csv by (seed, flow); both files are
    rewritten after every batch."""

    def __init__(self, folder: Path):
        self.path = folder / "crowd.csv"
        self.scenes_path = folder / "scenes.csv"
        self.rows: dict[tuple[str, int, int], dict] = {}
        self.scenes: dict[tuple[int, int], dict] = {}
        for row in read_csv(self.path):
            self.add(row)
        for row in read_csv(self.scenes_path):
            self.add_scene(row)

    def add(self, row: dict) -> None:
        self.rows[row["case"], int(row["flows"]), int(row["seed"])] = row

    def add_scene(self, row: dict) -> None:
        known = self.scenes.setdefault((int(row["seed"]), int(row["flow"])), row)
        if known != row:
            raise RuntimeError(f"one seed has two different scenes: {known} and {row}")

    def of_cell(self, case: str, flows: int) -> list[dict]:
        return [row for key, row in sorted(self.rows.items()) if key[:2] == (case, flows)]

    def write(self) -> None:
        write_csv(self.path, COLUMNS, [row for _, row in sorted(self.rows.items())])
        write_csv(self.scenes_path, SCENE_COLUMNS, [row for _, row in sorted(self.scenes.items())])


def read_csv(path: Path) -> list[dict]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write_csv(path: Path, columns: list[str], rows: list[dict]) -> None:
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(temporary, path)


def fill_cell(table: Table, pool: ThreadPoolExecutor, case: str, flows: int, fewest: int, most: int) -> None:
    target = fewest
    while True:
        missing = [seed for seed in range(1, target + 1) if (case, flows, seed) not in table.rows]
        for row, scene in pool.map(lambda seed: run_once(case, flows, seed), missing):
            table.add(row)
            for each in scene:
                table.add_scene(each)
        table.write()
        rows = table.of_cell(case, flows)
        wide = too_wide(rows)
        print(f"{case} {flows}: {len(rows)} seeds{', interval still wide' if wide else ''}", file=sys.stderr)
        if not wide or target >= most:
            return
        target = min(most, max(target, len(rows)) + STEP)


def summary_rows(table: Table, cells: list[tuple[str, int]]) -> list[dict]:
    out = []
    for case, flows in cells:
        rows = table.of_cell(case, flows)
        for metric in METRICS:
            values = numbers(rows, metric)
            if values:
                mean, half = interval(values)
                low, high = f"{mean - half:.6g}", f"{mean + half:.6g}"
                out.append(dict(case=case, flows=flows, metric=metric, runs=len(values), mean=f"{mean:.6g}",
                                low_90=low, high_90=high, stdev=f"{statistics.stdev(values):.6g}"))
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE.parent.parent / "vectors" / "ns2-crowd")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--fewest", type=int, default=FEWEST)
    parser.add_argument("--most", type=int, default=MOST)
    parser.add_argument("--cell", action="append", metavar="CASE:FLOWS")
    arguments = parser.parse_args()

    cells = CELLS
    if arguments.cell:
        cells = [(case, int(flows)) for case, flows in (text.split(":") for text in arguments.cell)]
    table = Table(arguments.out)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for case, flows in cells:
            fill_cell(table, pool, case, flows, arguments.fewest, arguments.most)
    known = sorted({key[:2] for key in table.rows})
    columns = ["case", "flows", "metric", "runs", "mean", "low_90", "high_90", "stdev"]
    write_csv(arguments.out / "summary.csv", columns, summary_rows(table, known))
    return 0


if __name__ == "__main__":
    sys.exit(main())
