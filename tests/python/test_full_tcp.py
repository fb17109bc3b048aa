"""One connection compared with ns-2's two-way TCP (FullTcp), packet by packet."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from itertools import zip_longest
from pathlib import Path

import pytest

import aqmlab

pytestmark = pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 (the command ns) is not installed")

NS2 = Path(__file__).resolve().parents[2] / "peers" / "ns2"
SPEC = importlib.util.spec_from_file_location("lot", NS2 / "lot.py")
LOT = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(LOT)
BULK = 300_000
BITS = {"S": 0x02, "F": 0x01, "A": 0x10, "E": 0x40, "W": 0x80}
PHASE = "7065138ns"  # of the clocks of the agents in full_flow.tcl
CLOCK_S = 3e-6  # ns-2 traces six digits, and both simulators round transmission times

TRANSFERS = {
    "nothing lost": {},
    "one segment": {"drop": [40]},
    "one segment early": {"drop": [2]},
    "a segment and what follows a window later": {"drop": [40, 60, 66]},
    "a segment whose repair waits for the timer": {"drop": [4]},
    "timeouts in a row": {"window": 3, "drop": [12, 15, 16, 17, 18]},
    "acknowledgments": {"drop_back": [10, 11, 12, 13, 30, 31, 50]},
    "a mark": {"mark": [20]},
    "marks in a window": {"mark": [40, 42, 47]},
    "marks in two windows": {"mark": [40, 90]},
    "a loss, then a mark": {"drop": [40], "mark": [43]},
}


def theirs(**given):
    words = []
    for name, value in given.items():
        numbers = [number - 1 for number in value] if isinstance(value, list) else [value]
        words.append(f"{name}={' '.join(map(str, numbers))}")
    command = ["ns", str(NS2 / "full_flow.tcl"), *words]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    for line in printed.splitlines()[1:]:  # the first is the phase of the clocks
        at, host, sequence, payload, acked, flags = line.split()
        found = "".join(letter for letter, bit in BITS.items() if int(flags, 16) & bit)
        yield float(at), host, int(sequence), int(payload), max(0, int(acked)), found


def ours(folder, traffic, window=30, **faults):
    def link(ends, rate, delay, **more):
        queue = {"kind": "droptail", "limit": "1000p"}
        return ends | {"rate": rate, "delay": delay, "queue": queue, "reverse_queue": queue} | more

    def fault(key, what, name):
        return {key: {what: faults[name]}} if name in faults else {}

    scenario = {
        "duration": "30s",
        "topology": {"kind": "graph", "access_rate": "none"},
        "node": [{"name": name} for name in ("client", "router", "server")],
        "link": [
            link({"from": "client", "to": "router"}, "10Mbit", "10ms", **fault("faults", "drop", "drop")),
            link(
                {"from": "router", "to": "server"},
                "4Mbit",
                "20ms",
                **fault("faults", "mark", "mark"),
                **fault("reverse_faults", "drop", "drop_back"),
            ),
        ],
        "traffic": [
            {"name": "x", "from": "client", "to": "server"}
            | traffic
            | {"tcp": LOT.TCP | {"max_window": window, "tick_phase": PHASE} | traffic["tcp"]}
        ],
        "record": {"packets": {"flows": ["x"], "events": ["send"]}},
    }
    experiment = aqmlab.run(scenario, output=folder / "run", report=False)
    for row in experiment.tables.rows("packets", "t_ns, place, seq, payload_bytes, ack, flags"):
        at, place, *header, flags = row
        yield at / 1e9, "c" if place == "sender" else "s", *header, "".join(x for x in BITS if x in flags)


def assert_same(mine, other):
    for number, (a, b) in enumerate(zip_longest(mine, other)):
        assert a is not None, (number, b)
        assert b is not None, (number, a)
        assert a[1:] == b[1:], (number, a, b)
        assert a[0] == pytest.approx(b[0], abs=CLOCK_S), (number, a, b)


@pytest.mark.parametrize("case", TRANSFERS)
def test_a_transfer(case, tmp_path):
    given = TRANSFERS[case]
    traffic = {"kind": "bulk", "bytes": f"{BULK}B", "start": "120ms", "tcp": {"ack_every": 1}}

    def before_the_end(packets):
        # ns-2's agents do not close a connection that they open.
        return [at for at in packets if at[2] < BULK - 1460 and at[4] < BULK - 1460]

    mine = before_the_end(ours(tmp_path, traffic, **given))
    assert len(mine) > 400
    assert_same(mine, before_the_end(theirs(bulk=BULK, every=1, **given)))


RESPONSES = {
    "one segment": (500, {}),
    "a full one and a part": (
        2000,
        {},
    ),  # the ACK of 2000 bytes waits for the delayed-ACK timer, the ACK of the FIN for the timer's next tick
    "each segment acknowledged": (2000, {"every": 1}),
    "the last data is all that is outstanding": (4000, {}),
    "the last data and the FIN lost": (4000, {"drop_back": [4]}),
    "the last two lost": (5000, {"drop_back": [4, 5]}),
    "several windows": (20_000, {}),
    "the client closes after one segment": (500, {"close": "c", "every": 1}),
    "the client closes": (2000, {"close": "c"}),
    "the client closes after several windows": (20_000, {"close": "c"}),
}


@pytest.mark.parametrize("case", RESPONSES)
def test_a_request_with_its_response(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    response, given = RESPONSES[case]
    Path("one.csv").write_text(f"start_s,request_bytes,response_bytes\n0.12,400,{response}\n")
    faults = {name: value for name, value in given.items() if name.startswith("drop")}
    tcp = {"ack_every": given.get("every", 2)}
    closes = "client" if given.get("close") == "c" else "last_sender"
    mine = list(ours(tmp_path, {"kind": "trace", "file": "one.csv", "closes": closes, "tcp": tcp}, **faults))
    assert_same(mine, theirs(response=response, **given))
