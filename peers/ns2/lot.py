#!/usr/bin/env python3
"""Prints the scenario of lot.tcl's parking lot, or records ns-2's results for the same connections.

    .venv/bin/python peers/ns2/lot.py scenario [WARMUP_S END_S] > lot.toml
    .venv/bin/python peers/ns2/lot.py record [--out DIR] [--jobs N] [--seeds N] [--span S S] [--queues NAME..]

`scenario` prints the scenario: one congested link, an arm for each queue, and web users drawn by
PackMime-HTTP. `record` writes the connections of each seed with `aqmlab vectors`, replays them in ns-2 with
Tmix, and writes one row per run to runs.csv. Existing rows are kept, so that an interrupted recording
continues; remove the file to start again.
"""

import argparse
import csv
import hashlib
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
VECTORS = HERE.parent.parent / "vectors" / "ns2-lot"
SEEDS = 5
SPAN_S = (30, 180)  # measured
SIDES = ("a", "b")
# The long-lived flows of each node: start times, and one-way delays between the flows' endpoints and their
# routers.
STARTS_S = [[10.0, 12.1, 14.3, 16.2, 18.4], [11.0, 13.2, 15.1, 17.3, 19.5]]
NEAR_MS = [[11, 23, 29, 41, 64], [7, 19, 31, 37, 88]]
FAR_MS = [[0.4, 0.7, 0.9, 4, 15], [0.3, 0.6, 0.8, 2, 9]]
# The routers at the source and at the destination of the data; for web users, also the connections per second
# of each cloud.
LONG = {"long": (0, 7), "long_back": (7, 0)}
WEB = {"web": (0, 7, 27), "web_back": (7, 0, 27), "cross1": (1, 2, 23), "cross1_back": (2, 1, 23)}

BYTES = {"limit": "123kB", "mean_packet": "615B", "ecn": True}
QUEUES = {
    "DT": {"kind": "droptail", "limit_": 200},
    "ARED": {"kind": "ared", "preset": "ns2", "target": "10ms", "top": 0.5} | BYTES,
    "PI": {"kind": "pi", "preset": "ns2", "q_ref": "20p", "w": 170, "measure": "bytes", "byte_mode": "mean"} | BYTES,
    "REM": {"kind": "rem", "preset": "ns2", "q_ref": "20p", "measure": "bytes", "byte_mode": "mean"} | BYTES,
}
DEEP = {"kind": "droptail", "limit": "10000p"}
# Agent/TCP/FullTcp/Newreno as lot.tcl configures it, as closely as our parameters permit (docs/validation.md, section
# 1).
TCP = {
    "profile": "ns2_fulltcp",
    "mss": "1460B",
    "max_window": 30,
    "ecn": True,
    "ack_every": 2,
    "nagle": False,
}


# ---- the scenario ----------------------------------------------------------------------------------------------------


def sided(names: Iterable[str]) -> list[str]:
    """Returns, for each name, the names of its two clouds or groups of flows."""
    return [f"{name}_{side}" for name in names for side in SIDES]


def scenario(seed: int = 1, span_s: tuple[float, float] = SPAN_S) -> dict:
    """Returns the parking lot with one congested link."""
    nodes = [f"R{i}" for i in range(8)]
    links = [link(f"R{i}", f"R{i + 1}", "10Mbit", QUEUES["DT"]) for i in range(7)]
    classes, delays = [], []

    def host(name: str, router: int, rate: str) -> str:
        nodes.append(name)
        links.append(link(name, f"R{router}", rate, DEEP))
        return name

    for name, (near, far) in LONG.items():
        for side, starts, *ends_ms in zip(SIDES, STARTS_S, NEAR_MS, FAR_MS, strict=True):
            of = f"{name}_{side}"
            ends = {"from": host(f"{of}_from", near, "1Mbit"), "to": host(f"{of}_to", far, "1Mbit")}
            start = {"list": [f"{at}s" for at in starts]}
            classes.append({"name": of, "kind": "bulk", "count": 5} | ends | {"start": start, "tcp": TCP})
            for router, ms in zip((near, far), ends_ms, strict=True):
                delays.append({"class": of, "at": f"R{router}", "delay": {"list": [f"{one}ms" for one in ms]}})
    for name, (servers, clients, rate) in WEB.items():
        for of in sided([name]):
            ends = {"from": host(f"{of}_clients", clients, "4Mbit"), "to": host(f"{of}_servers", servers, "4Mbit")}
            classes.append({"name": of, "kind": "packmime", "rate": f"{rate}/s"} | ends | {"tcp": TCP})
            for router, end in ((clients, "client"), (servers, "server")):
                delays.append({"class": of, "at": f"R{router}", "delay": end})
    return {
        "title": "Parking lot, one congested link",
        "warmup": f"{span_s[0]}s",
        "duration": f"{span_s[1]}s",
        "seed": seed,
        "topology": {"kind": "graph", "access_rate": "none"},
        "record": {"queues": "1s", "flows": "0s", "requests": {"sample": 1_000_000}},
        "node": [{"name": name} for name in nodes],
        "link": links,
        "traffic": classes,
        "delay": delays,
        "arm": [
            {"name": name, "link.R1-R2.queue": queue, "link.R1-R2.reverse_queue": queue}
            for name, queue in QUEUES.items()
        ],
    }


def link(a: str, b: str, rate: str, queue: dict) -> dict:
    """Returns a link of 1 ms with the same queue in both directions."""
    ends = {"name": f"{a}-{b}", "from": a, "to": b, "rate": rate, "delay": "1ms"}
    return ends | {"queue": queue, "reverse_queue": queue}


def toml(value: object) -> str:
    """Returns a value as TOML on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(of)}" for key, of in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


# ---- ns-2 ------------------------------------------------------------------------------------------------------------


def write_tmix(source: Path, folder: Path) -> None:
    """Writes a vector file's connections in the form that lot.tcl reads: vectors for Tmix, and delays at each end."""

    def us(seconds: str, least: int = 0) -> int:
        # Tmix never continues a connection after a pause of zero.
        return max(least, round(float(seconds) * 1e6))

    def box(delay_us: int) -> str:
        return f"S\nr {2 * delay_us}\nl 0 0"  # a box delays each direction by half of its setting

    texts = defaultdict(list)
    with source.open(newline="") as file:
        for row in csv.DictReader(file):
            name, first = row["class"], row["exchange"] == "0"
            if first:
                texts[f"{name}.tmix"].append(f"S {us(row['start_s'])} 0 0 {row['connection']}")
                texts[f"{name}.tmix"].append("m 1460 1460\nw 43800 43800")
                texts[f"{name}.near"].append(box(us(row["server_path_delay_s"])))
                texts[f"{name}.far"].append(box(us(row["client_delay_s"])))
            texts[f"{name}.tmix"].append(f"I 0 {0 if first else us(row['think_s'], 1)} {row['request_bytes']}")
            texts[f"{name}.tmix"].append(f"A 0 {us(row['server_delay_s'], 1)} {row['response_bytes']}")
    for name in LONG:
        for of, starts, near, far in zip(sided([name]), STARTS_S, NEAR_MS, FAR_MS, strict=True):
            texts[f"{of}.starts"] = [" ".join(map(str, starts))]
            texts[f"{of}.near"] = [box(round(1000 * ms)) for ms in near]
            texts[f"{of}.far"] = [box(round(1000 * ms)) for ms in far]
    for name, lines in texts.items():
        (folder / name).write_text("\n".join(lines) + "\n")


SAID = re.compile(r"(\d+\.\d{6}) App \( \S+ / \d+ / \d+ / (\d+)\.(\d+) \)> (sent|recv) (?:\d+ B )?ADU")


def exchanges(log: Iterable[str]) -> Iterator[tuple[str, float, float]]:
    """Yields the exchanges in Tmix's log: the client's node, when the response arrived, and how long it
    took."""
    asked = {}
    for line in log:
        for at, node, port, what in SAID.findall(line):
            if what == "sent":
                asked[node, port] = float(at)
            elif (node, port) in asked:
                begun = asked.pop((node, port))
                yield node, float(at), float(at) - begun


def run(source: Path, queue: str, span_s: tuple[float, float] = SPAN_S) -> dict[str, float]:
    """Returns ns-2's results for the parking lot with these vectors."""
    with tempfile.TemporaryDirectory() as folder:
        write_tmix(source, Path(folder))
        command = ["nice", "ns", str(HERE / "lot.tcl"), f"queues={queue}", f"vectors={folder}"]
        command += [f"warmup_s={span_s[0]}", f"end_s={span_s[1]}"]
        out = Path(folder) / "out"
        with out.open("w") as standard:
            with subprocess.Popen(command, stdout=standard, stderr=subprocess.PIPE, text=True) as process:
                found = list(exchanges(process.stderr))
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: exit {process.returncode}\n{out.read_text()[-2000:]}")
        result = json.loads(out.read_text())
    web = [node for node, name in result["clients"].items() if name in sided(["web"])]
    took = [seconds for node, ended, seconds in found if node in web and ended > span_s[0]]
    return figures(took, result["links"][0], result["goodput_bps"])


def figures(web_s: list[float], link: dict, goodput_bps: float) -> dict[str, float]:
    """Returns the values that are compared: those of the forward end-to-end traffic, and of the congested
    link in the forward direction."""

    def loss(*names: str) -> float:
        arrivals, drops = (sum(link["of"][name][what] for name in names) for what in ("arrivals", "drops"))
        return 100 * drops / arrivals

    return {
        "goodput_kbps": goodput_bps / 1e3,
        "response_p50_ms": 1e3 * statistics.median(web_s),
        "response_p90_ms": 1e3 * statistics.quantiles(web_s, n=10)[-1],
        "loss_long_percent": loss("long"),
        "loss_web_percent": loss(*WEB),
        "queue_packets": link["queue_packets"],
        "utilisation_percent": 100 * link["utilisation"],
        "mean_packet_bytes": link["mean_packet_bytes"],
    }


# ---- recording -------------------------------------------------------------------------------------------------------


def write_vectors(seed: int, folder: Path, span_s: tuple[float, float] = SPAN_S) -> tuple[Path, str]:
    """Writes the connections of a seed to a file, and returns the file and its SHA-256."""
    from aqmlab.exports.vectors import write_vectors

    file = write_vectors(scenario(seed, span_s), folder / f"{seed}.csv", classes=sided(WEB), arm="DT")
    return file, hashlib.sha256(file.read_bytes()).hexdigest()


def record(out: Path, jobs: int, seeds: int, queues: Iterable[str], span_s: tuple[float, float]) -> None:
    """Executes the runs that are missing from runs.csv."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / "runs.csv"
    rows = {}
    if file.exists():
        with file.open(newline="") as there:
            rows = {(row["queue"], int(row["seed"])): row for row in csv.DictReader(there)}

    def add(queue: str, seed: int, source: Path, digest: str) -> None:
        found = run(source, queue, span_s)
        key = {"queue": queue, "seed": seed, "vectors_sha256": digest}
        rows[queue, seed] = key | {name: f"{value:.6g}" for name, value in found.items()}
        with file.open("w", newline="") as there:
            writer = csv.DictWriter(there, [*key, *found], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[of] for of in sorted(rows))

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        waiting = []
        for seed in range(1, seeds + 1):
            wanted = [queue for queue in queues if (queue, seed) not in rows]
            if wanted:
                source, digest = write_vectors(seed, Path(folder), span_s)
                waiting += [pool.submit(add, queue, seed, source, digest) for queue in wanted]
        for each in waiting:
            each.result()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("scenario").add_argument("span_s", type=float, nargs="*", default=SPAN_S)
    recording = commands.add_parser("record")
    recording.add_argument("--out", type=Path, default=VECTORS)
    recording.add_argument("--jobs", type=int, default=1)
    recording.add_argument("--seeds", type=int, default=SEEDS)
    recording.add_argument("--span", type=float, nargs=2, default=SPAN_S, metavar=("FROM_S", "TO_S"))
    recording.add_argument("--queues", nargs="+", choices=QUEUES, default=list(QUEUES))
    given = parser.parse_args()
    if given.command == "record":
        record(given.out, given.jobs, given.seeds, given.queues, tuple(given.span))
    else:
        for key, value in scenario(span_s=tuple(given.span_s)).items():
            print(f"{json.dumps(key)} = {toml(value)}")


if __name__ == "__main__":
    sys.exit(main())
