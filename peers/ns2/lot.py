#!/usr/bin/env python3
"""The parking lot of lot.tcl: the same network as a scenario, and runs of ns-2 with given connection vectors.

    python3 lot.py scenario packmime [WARMUP_S END_S] > lot.toml      its web users drawn by PackMime-HTTP
    python3 lot.py scenario vectors.csv [WARMUP_S END_S] > lot.toml   its web users as connection vectors say
    python3 lot.py run vectors.csv QUEUES [NAME=VALUE ..]

`run` gives ns-2 the connections of a vector file (CSV) and prints one JSON object: what lot.tcl counts, and under
`responses` the response times in seconds of the exchanges that ended in the measured time, by class.
"""

import csv
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIDES = ("a", "b")
WARMUP_S = 30
END_S = 180
# The long-lived flows of each node: their start, and what their two ends are away from their routers, one way.
STARTS_S = [[10.0, 12.1, 14.3, 16.2, 18.4], [11.0, 13.2, 15.1, 17.3, 19.5]]
NEAR_MS = [[11, 23, 29, 41, 64], [7, 19, 31, 37, 88]]
FAR_MS = [[0.4, 0.7, 0.9, 4, 15], [0.3, 0.6, 0.8, 2, 9]]
WEB = {"web": (0, 7, 27), "web_back": (7, 0, 27), "cross1": (1, 2, 23), "cross1_back": (2, 1, 23)}
LONG = {"long": (0, 7), "long_back": (7, 0)}

QUEUES = {
    "DT": '{ kind = "droptail", limit_ = 200 }',
    "ARED": '{ kind = "ared", preset = "ns2", limit = "123kB", target = "10ms", mean_packet = "615B", top = 0.5, ecn = true }',
    "PI": '{ kind = "pi", preset = "ns2", limit = "123kB", q_ref = "20p", w = 170, measure = "bytes", mean_packet = "615B", '
    'byte_mode = "mean", ecn = true }',
    "REM": '{ kind = "rem", preset = "ns2", limit = "123kB", q_ref = "20p", measure = "bytes", mean_packet = "615B", '
    'byte_mode = "mean", ecn = true }',
}
TCP = {
    "profile": "ns2",
    "mss": "1460B",
    "max_window": 30,
    "ecn": True,
    "ack_every": 2,
    "delayed_ack": "50ms",
    "limited_transmit": False,
    "handshake_ack": "separate",
    "partial_ack": "slow_but_steady",
    "idle_restart": "rfc5681",
    "fast_retransmit_guard": "rfc6582",
    "delay_repeated_ack": False,
    "syn_ack_timer": True,
}


def toml(value: object) -> str:
    """A value as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(of)}" for key, of in value.items()) + " }"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value)


def table(array: str, **values: object) -> str:
    """A table of an array, for a scenario."""
    return "\n".join([f"[[{array}]]", *(f"{key.rstrip('_')} = {toml(of)}" for key, of in values.items())]) + "\n"


def sided(names: Iterable[str]) -> list[str]:
    """The names of the two clouds, or groups of flows, of each."""
    return [f"{name}_{side}" for name in names for side in SIDES]


def scenario(
    web: str, seed: int = 1, tcp: dict[str, object] = TCP, span_s: tuple[float, float] = (WARMUP_S, END_S)
) -> str:
    """The scenario of the lot with one congested link; `web` is `packmime`, or a file of connection vectors."""
    parts = [
        f'duration = "{span_s[1]}s"\nwarmup = "{span_s[0]}s"\nseed = {seed}\n\n[topology]\nkind = "graph"\naccess_rate = "none"\n',
        "[record]\nqueues = \"1s\"\nflows = \"0s\"\nrequests = { sample = 1000000 }\n",
    ]
    nodes = [f"R{i}" for i in range(8)]
    links = [
        table("link", name=f"R{i}-R{i + 1}", from_=f"R{i}", to=f"R{i + 1}", rate="10Mbit", delay="1ms")
        + f"queue = {QUEUES['DT']}\nreverse_queue = {QUEUES['DT']}\n"
        for i in range(7)
    ]
    rest = []

    def host(name: str, router: int, rate: str) -> str:
        nodes.append(name)
        link = table("link", from_=name, to=f"R{router}", rate=rate, delay="1ms")
        links.append(link + 'queue = { kind = "droptail", limit = "10000p" }\nreverse_queue = { kind = "droptail", limit = "10000p" }\n')
        return name

    for name, (near, far) in LONG.items():
        for side, starts, nears, fars in zip(SIDES, STARTS_S, NEAR_MS, FAR_MS, strict=True):
            of = f"{name}_{side}"
            ends = {"from_": host(f"{of}_from", near, "1Mbit"), "to": host(f"{of}_to", far, "1Mbit")}
            start = {"list": [f"{at}s" for at in starts]}
            rest.append(table("traffic", name=of, kind="bulk", count=5, **ends, start=start, tcp=tcp))
            for router, delays in ((near, nears), (far, fars)):
                listed = {"list": [f"{of}ms" for of in delays]}
                rest.append(table("delay", class_=of, at=f"R{router}", delay=listed))
    for name, (servers, clients, rate) in WEB.items():
        for side in SIDES:
            of = f"{name}_{side}"
            ends = {"from_": host(f"{of}_clients", clients, "4Mbit"), "to": host(f"{of}_servers", servers, "4Mbit")}
            what = {"rate": f"{rate}/s"} if web == "packmime" else {"file": web, "class_": of}
            kind = "packmime" if web == "packmime" else "trace"
            rest.append(table("traffic", name=of, kind=kind, **ends, **what, tcp=tcp))
            for router, end in ((clients, "client"), (servers, "server")):
                rest.append(table("delay", class_=of, at=f"R{router}", delay=end))
    for name, queue in QUEUES.items():
        rest.append(table("arm", name=name) + f'"link.R1-R2.queue" = {queue}\n"link.R1-R2.reverse_queue" = {queue}\n')
    return "\n".join([*parts, *(table("node", name=name) for name in nodes), *links, *rest])


def write_vectors(source: Path, folder: Path) -> None:
    """The connections of a vector file as those that lot.tcl reads: vectors of Tmix, and the delays of both ends."""

    def us(seconds: str, least: int = 0) -> int:
        return max(least, round(float(seconds) * 1e6))  # a pause of nothing would mean "do not wait at all" to Tmix

    texts = defaultdict(list)
    with source.open(newline="") as file:
        for row in csv.DictReader(file):
            name, first = row["class"], row["exchange"] == "0"
            if first:
                texts[f"{name}.tmix"].append(f"S {us(row['start_s'])} 0 0 {row['connection']}\nm 1460 1460\nw 43800 43800")
                # A box delays each way by half of what it is given.
                texts[f"{name}.near"].append(f"S\nr {2 * us(row['server_path_delay_s'])}\nl 0 0")
                texts[f"{name}.far"].append(f"S\nr {2 * us(row['client_delay_s'])}\nl 0 0")
            texts[f"{name}.tmix"].append(f"I 0 {0 if first else us(row['think_s'], 1)} {row['request_bytes']}")
            texts[f"{name}.tmix"].append(f"A 0 {us(row['server_delay_s'], 1)} {row['response_bytes']}")
    for name in LONG:
        for side, starts, nears, fars in zip(SIDES, STARTS_S, NEAR_MS, FAR_MS, strict=True):
            texts[f"{name}_{side}.starts"] = [" ".join(map(str, starts))]
            texts[f"{name}_{side}.near"] = [f"S\nr {2000 * of:.0f}\nl 0 0" for of in nears]
            texts[f"{name}_{side}.far"] = [f"S\nr {2000 * of:.0f}\nl 0 0" for of in fars]
    for name, lines in texts.items():
        (folder / name).write_text("\n".join(lines) + "\n")


SAID = re.compile(r"(\d+\.\d{6}) App \( \S+ / \d+ / \d+ / (\d+)\.(\d+) \)> (sent|recv) (?:\d+ B )?ADU")


def exchanges(log: Iterator[str]) -> Iterator[tuple[str, float, float]]:
    """The exchanges in Tmix' log: the client's node, when the response was there, and how long it took."""
    asked = {}
    for line in log:
        for at, node, port, what in SAID.findall(line):
            if what == "sent":
                asked[node, port] = float(at)
            elif (node, port) in asked:
                begun = asked.pop((node, port))
                yield node, float(at), float(at) - begun


def run(source: Path, queues: str, *arguments: str) -> dict:
    """What ns-2 says of the lot with these vectors."""
    with tempfile.TemporaryDirectory() as folder:
        write_vectors(source, Path(folder))
        command = ["ns", str(HERE / "lot.tcl"), f"queues={queues}", f"vectors={folder}", f"warmup_s={WARMUP_S}"]
        command += [f"end_s={END_S}", *arguments]
        out = Path(folder) / "out"
        with out.open("w") as standard:
            process = subprocess.Popen(command, stdout=standard, stderr=subprocess.PIPE, text=True)
            found = list(exchanges(process.stderr))
        if process.wait() != 0:
            raise RuntimeError(f"{' '.join(command)}: exit {process.returncode}\n{out.read_text()[-2000:]}")
        result = json.loads(out.read_text())
    clients, responses = result.pop("clients"), defaultdict(list)
    for node, ended, took in found:
        if node in clients and ended > result["warmup_s"]:
            responses[clients[node]].append(round(took, 6))
    return result | {"responses": responses}


def main() -> int:
    """The command line."""
    match sys.argv[1:]:
        case ["scenario", web, *span] if len(span) in (0, 2):
            print(scenario(web, span_s=tuple(map(float, span)) or (WARMUP_S, END_S)))
        case ["run", source, queues, *arguments]:
            print(json.dumps(run(Path(source), queues, *arguments)))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
