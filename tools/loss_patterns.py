"""Draw how Reno, NewReno and SACK react to the loss of 1 to 3 segments or half a window, here and in ns-2.

    .venv/bin/python tools/loss_patterns.py [docs/images/loss-patterns.svg]

Runs the cases of vectors/ns2-single-flow with the simulator, compares the send time of each segment with
ns-2's, draws the two results and prints their differences. Exits with 1 if a case differs by more than a
microsecond or in a sequence number.
"""

import csv
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import aqmlab
from aqmlab.figures.model import INK, Axis, Figure, Line, Look, Panel
from aqmlab.figures.sequence import sequence_lines, sequence_points
from aqmlab.plots.draw import save
from aqmlab.recordings.traces import Journey, flow_names, journeys

ROOT = Path(__file__).resolve().parent.parent
VECTORS = ROOT / "vectors" / "ns2-single-flow"
RECOVERIES = {"reno": "Reno", "newreno": "NewReno", "sack": "SACK"}
PATTERNS = {
    "one_loss": "one loss",
    "two_losses": "two losses",
    "three_losses": "three losses",
    "half_a_window_lost_every_second": "half a window",
}
_TICKS_US = 1.0
"""Resolution of ns-2's trace."""


def cases() -> dict[str, dict[str, str]]:
    """The rows of ``cases.csv`` by the name of the case."""
    with (VECTORS / "cases.csv").open(encoding="utf-8") as file:
        return {row["case"]: row for row in csv.DictReader(file)}


def case_name(recovery: str, pattern: str) -> str:
    """The name of a case. NewReno's cases are the oldest, and most of them are named by the pattern alone."""
    named = f"{recovery}_{pattern}"
    return named if (VECTORS / f"{named}.csv").is_file() else pattern


def theirs(name: str) -> tuple[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """The phase of ns-2's clock in ns, and (time in us, first byte) of each segment that it sent."""
    lines = (VECTORS / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    return lines[0].removeprefix("# tick_phase_ns "), np.loadtxt(lines[2:], delimiter=",")


def scenario(case: dict[str, str], phase_ns: str) -> dict[str, Any]:
    """The case as a scenario for the simulator: ns-2 numbers packets from 0, a scenario from 1."""
    lost = [int(number) + 1 for number in case["drop"].split()]
    queue = {"kind": "droptail", "limit": "999p"}
    tcp = {
        "profile": "ns2",
        "recovery": case["recovery"],
        "mss": f"{case['mss']}B",
        "max_window": int(case["window"]),
        "ack_every": 1,
        "tick_phase": f"{phase_ns}ns",
    }
    first = {"from": "sender", "to": "router", "rate": "10Mbit", "delay": "10ms", "queue": queue}
    second = {"from": "router", "to": "receiver", "rate": "1Mbit", "delay": "20ms", "queue": queue}
    return {
        "title": case["case"],
        "duration": f"{case['end_s']}s",
        "topology": {"kind": "graph", "access_rate": "none"},
        "node": [{"name": name} for name in ("sender", "router", "receiver")],
        "link": [{**first, "faults": {"drop": lost}}, {**second, "reverse_queue": queue}],
        "traffic": [
            {
                "name": "flow",
                "kind": "bulk",
                "from": "sender",
                "to": "receiver",
                "start": f"{case['writes'].removesuffix(':inf')}s",
                "tcp": tcp,
            }
        ],
        "record": {"packets": {"flows": ["flow"]}},
    }


def ours(case: dict[str, str], phase_ns: str) -> list[Journey]:
    """The packets of the simulator's flow."""
    with tempfile.TemporaryDirectory() as scratch:
        made = aqmlab.run(scenario(case, phase_ns), output=Path(scratch) / "run", report=False)
        run = made.runs[0]
        return journeys(made.tables, run, flow_names(made.tables, run, "packets")[0])


def distance_us(packets: list[Journey], vector: np.ndarray[Any, np.dtype[np.float64]], end_s: float) -> float:
    """The largest difference in send time in us; infinite if the simulators sent different segments."""
    sent = [(p.sent_ns / 1e3, (p.seq or 0) - 1) for p in packets if p.toward == "receiver" and p.payload]
    # The last events are ignored because they depend on the instant at which each simulator stops.
    last = end_s * 1e6 - 10
    mine = np.array([row for row in sent if row[0] < last])
    other = vector[vector[:, 0] < last]
    if mine.shape != other.shape or (mine[:, 1] != other[:, 1]).any():
        return float("inf")
    return float(np.abs(mine[:, 0] - other[:, 0]).max())


def window(packets: list[Journey]) -> tuple[float, float]:
    """The time to show, in s: from before the first loss to after the last retransmitted segment."""
    lost = min(p.sent_ns for p in packets if p.lost_ns is not None)
    again = max(p.sent_ns for p in packets if p.again)
    return lost / 1e9 - 0.1, again / 1e9 + 0.4


def main() -> int:
    """Compare and draw."""
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images" / "loss-patterns.svg"
    table = cases()
    found = {}
    worst = 0.0
    for recovery in RECOVERIES:
        for pattern in PATTERNS:
            name = case_name(recovery, pattern)
            phase_ns, vector = theirs(name)
            packets = ours(table[name], phase_ns)
            apart = distance_us(packets, vector, float(table[name]["end_s"]))
            worst = max(worst, apart)
            sys.stdout.write(f"{name:45} {len(vector):5} segments, times differ by at most {apart:.3f} us\n")
            found[recovery, pattern] = packets, vector, int(table[name]["mss"])
    save(figure(found), output, "Reno, NewReno and SACK after losses, beside ns-2", aqmlab.__version__)
    return 0 if worst <= _TICKS_US else 1


_THEIRS = Look(INK, mark="dot", size=0.48, line=False, alpha=1.0, order=4)


def figure(found: dict[tuple[str, str], Any]) -> Figure:
    """One row per recovery, one column per pattern."""
    rows: dict[str, list[Panel]] = {recovery: [] for recovery in RECOVERIES}
    for pattern, title in PATTERNS.items():
        limits = [window(found[recovery, pattern][0]) for recovery in RECOVERIES]
        begin, end = min(b for b, _ in limits), max(e for _, e in limits)
        heights = [found[recovery, pattern][1:] for recovery in RECOVERIES]
        visible = np.concatenate(
            [v[(v[:, 0] / 1e6 >= begin) & (v[:, 0] / 1e6 <= end), 1] / mss for v, mss in heights]
        )
        for recovery, name in RECOVERIES.items():
            packets, vector, mss = found[recovery, pattern]
            shown = (vector[:, 0] / 1e6 >= begin) & (vector[:, 0] / 1e6 <= end)
            points = sequence_points([p for p in packets if p.sent_ns / 1e9 <= end])
            # ns-2's points are drawn in the middle of ours, so where the two agree, each mark has a
            # black point in it.
            over = Line("sent by ns-2", vector[shown, 0] / 1e6, vector[shown, 1] / mss, _THEIRS)
            label = f"{name}\nposition [segments]"
            up = Axis(label, begin=visible.min() - 3, end=visible.max() + 3)
            across = Axis("time [s]", begin=begin, end=end)
            head = title if recovery == next(iter(RECOVERIES)) else ""
            rows[recovery].append(Panel(head, across, up, (*sequence_lines(points), over)))
    return Figure("", tuple(map(tuple, rows.values())), size=(7.0, 5.6), share=("col", "col"))


if __name__ == "__main__":
    sys.exit(main())
