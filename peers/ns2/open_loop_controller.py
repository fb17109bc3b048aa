#!/usr/bin/env python3
"""Records the decisions of ns-2.35's PI and REM under an open load, and checks that replays make the same decisions.

Runs open_loop_controller.tcl for each trace below. Independent controllers, written here from the papers and
from ns-2's documented behaviour, then replay every arrival: queue, probability and fate must agree, draw by
draw, before a CSV is written. The column `u` (the uniform draw behind a decision, empty where none was taken)
comes from that replay.

    python3 open_loop_controller.py [--out DIR]
"""

import argparse
import csv
import random
import subprocess
import sys
import tempfile
from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

HERE = Path(__file__).resolve().parent
ARRIVALS = 2500
NS_PER_BYTE = 8000  # 1 Mbit/s
BYTES_A_SECOND = 125_000
DIGITS = 5e-6  # ns-2 prints probabilities with six significant digits


@dataclass(frozen=True)
class Trace:
    """The settings of one run: the queue's variables in ns-2, and the load."""

    kind: str
    load: float  # offered load during on periods; 1 = the link's rate
    limit: int
    seed: int
    variables: dict[str, float]
    off_s: int = 0  # seconds of silence after each second of arrivals
    sizes: tuple[int, ...] = (1000,)
    ect: bool = False  # every second packet can be marked


PI = dict(a_=0.002, b_=0.0019, w_=170, qref_=20, mean_pktsize_=1000, bytes_=0, queue_in_bytes_=0, setbit_=0)
REM = dict(gamma_=0.02, phi_=1.001, inw_=1, mean_pktsize_=1000, pupdtime_=0.002, pbo_=20, markpkts_=0, qib_=0)
MIXED = (100, 500, 1000, 1500)

TRACES = {
    "pi_overload": Trace("PI", 1.2, 60, 21, PI),
    "pi_bursts": Trace("PI", 2.0, 60, 22, PI, off_s=1),
    "pi_flood": Trace("PI", 3.0, 30, 23, PI | dict(a_=1.822e-5, b_=1.816e-5, w_=160), off_s=1),
    "pi_bytes": Trace("PI", 1.3, 60, 24, PI | dict(bytes_=1, queue_in_bytes_=1), sizes=MIXED),
    "pi_marks": Trace("PI", 1.1, 60, 25, PI | dict(setbit_=1), ect=True),
    "rem_overload": Trace("REM", 1.2, 60, 31, REM),
    "rem_bursts": Trace("REM", 2.0, 60, 32, REM, off_s=1),
    "rem_flood": Trace("REM", 3.0, 30, 33, REM | dict(gamma_=0.001), off_s=1),
    "rem_input": Trace("REM", 1.2, 60, 34, REM | dict(inw_=0.02)),
    "rem_bytes": Trace("REM", 1.3, 60, 35, REM | dict(qib_=1), sizes=MIXED),
    "rem_marks": Trace("REM", 1.1, 60, 36, REM | dict(markpkts_=1), ect=True),
}


@dataclass
class Packet:
    at_ns: int
    size: int
    ect: bool
    u: float | None = None
    fate: str = "passed"


@dataclass
class Port:
    """A FIFO and its link; subclasses add the controllers. The packet on the wire does not count as
    waiting."""

    trace: Trace
    draws: list[float]
    waiting: deque[Packet] = field(default_factory=deque)
    waiting_bytes: int = 0
    free_ns: int | None = None  # the end of the transmission in progress; `None` if the link is idle
    updates: int = 0
    used: int = 0
    prob: float = 0.0

    def __post_init__(self) -> None:
        self.v = self.trace.variables
        self.mean = self.v["mean_pktsize_"]
        self.sent: list[Packet] = []

    def advance(self, now_ns: int) -> None:
        """Performs the updates and departures that are due by `now_ns`, in order."""
        while True:
            update_ns = (self.updates + 1) * self.period_ns()
            if self.free_ns is not None and self.free_ns <= min(now_ns, update_ns):
                at, self.free_ns = self.free_ns, None
                self.begin(at)
            elif update_ns <= now_ns:
                self.updates += 1
                self.update()
            else:
                return

    def begin(self, at_ns: int) -> None:
        """Lets the idle link poll the queue."""
        pkt = self.waiting.popleft() if self.waiting else None
        if pkt:
            self.waiting_bytes -= pkt.size
        self.leaves(pkt)
        if pkt:
            self.sent.append(pkt)
            self.free_ns = at_ns + pkt.size * NS_PER_BYTE

    def arrive(self, pkt: Packet) -> None:
        self.advance(pkt.at_ns)
        self.judge(pkt)
        if pkt.fate in ("passed", "marked"):
            self.waiting.append(pkt)
            self.waiting_bytes += pkt.size
        if self.free_ns is None:
            self.begin(pkt.at_ns)

    def draw(self) -> float:
        self.used += 1
        return self.draws[self.used - 1]

    def period_ns(self) -> Fraction:
        raise NotImplementedError

    def update(self) -> None:
        raise NotImplementedError

    def judge(self, pkt: Packet) -> None:
        raise NotImplementedError

    def leaves(self, pkt: Packet | None) -> None:
        """Is called with the departing packet, or `None`, when the link polls the queue; does nothing
        by default."""


class Pi(Port):
    old = 0.0

    def period_ns(self) -> Fraction:
        return Fraction(10**9, int(self.v["w_"]))

    def update(self) -> None:
        v, queue = self.v, len(self.waiting)
        if v["queue_in_bytes_"]:
            queue = self.waiting_bytes / self.mean
        moved = self.prob + v["a_"] * (queue - v["qref_"]) - v["b_"] * (self.old - v["qref_"])
        self.prob, self.old = min(1.0, max(0.0, moved)), queue

    def judge(self, pkt: Packet) -> None:
        limit, found = self.trace.limit, len(self.waiting)
        if self.v["queue_in_bytes_"]:
            limit, found = limit * self.mean, self.waiting_bytes
        if found >= limit:
            pkt.fate = "full"
            return
        pkt.u = self.draw()
        scale = pkt.size / self.mean if self.v["bytes_"] else 1.0
        if pkt.u <= self.prob * scale:
            pkt.fate = "marked" if self.v["setbit_"] and pkt.ect else "early"


class Rem(Port):
    price = 0.0
    arrived = 0.0
    rate_in = 0.0

    def period_ns(self) -> Fraction:
        return Fraction(round(self.v["pupdtime_"] * 1e9))

    def update(self) -> None:
        v, queue = self.v, float(len(self.waiting))
        if v["qib_"]:
            queue = self.waiting_bytes / self.mean
        self.rate_in = (1 - v["inw_"]) * self.rate_in + v["inw_"] * self.arrived
        self.arrived = 0.0
        capacity = v["pupdtime_"] * BYTES_A_SECOND / self.mean
        step = v["gamma_"] * (self.rate_in + 0.1 * (queue - v["pbo_"]) - capacity)
        self.price = max(0.0, self.price + step)
        self.prob = 1 - v["phi_"] ** -self.price

    def scaled(self, pkt: Packet) -> float:
        return self.prob * pkt.size / self.mean if self.v["qib_"] else self.prob

    def judge(self, pkt: Packet) -> None:
        self.arrived += pkt.size / self.mean if self.v["qib_"] else 1
        limit, found = self.trace.limit, len(self.waiting) + 1
        if self.v["qib_"]:
            limit, found = limit * self.mean, self.waiting_bytes + pkt.size
        if found >= limit:
            pkt.fate = "full"
        elif not self.v["markpkts_"]:
            pkt.u = self.draw()
            if pkt.u <= self.scaled(pkt):
                pkt.fate = "early"

    def leaves(self, pkt: Packet | None) -> None:
        """In marking mode, takes a draw whenever the link polls the queue, even if it has nothing to send."""
        if not self.v["markpkts_"]:
            return
        u = self.draw()
        if pkt:
            pkt.u = u
            if u <= self.scaled(pkt) and pkt.ect:
                pkt.fate = "marked"


def arrivals(trace: Trace) -> list[Packet]:
    """Returns Poisson arrivals with pauses. With `ect`, every second packet is ECN-capable; `record` corrects the first
    of them, because ns-2's TCP does not declare its first packet ECN-capable."""
    rng = random.Random(trace.seed)
    per_second = trace.load * BYTES_A_SECOND / (sum(trace.sizes) / len(trace.sizes))
    busy_s, packets = 0.0, []
    for number in range(ARRIVALS):
        busy_s += rng.expovariate(per_second)
        at_s = busy_s + int(busy_s) * trace.off_s
        ect = trace.ect and number % 2 == 1
        packets.append(Packet(round(at_s * 1e9), rng.choice(trace.sizes), ect))
    return packets


def ask_ns(trace: Trace, packets: list[Packet]) -> list[list[str]]:
    variables = [str(x) for pair in trace.variables.items() for x in pair]
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "arrivals"
        listed.write_text("".join(f"{p.at_ns} {p.size} {int(p.ect)}\n" for p in packets))
        script = str(HERE / "open_loop_controller.tcl")
        command = ["ns", script, trace.kind, str(trace.limit), str(trace.seed), str(listed), *variables]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split() for line in printed.splitlines()]


def record(name: str, trace: Trace) -> list[dict]:
    """Runs ns and replays its decisions; raises an error at the first disagreement."""
    packets = arrivals(trace)
    lines = ask_ns(trace, packets)
    draws = [float(line[1]) for line in lines if line[0] == "U"]
    marked = ["E" in line[1] for line in lines if line[0] == "R"]
    first = next((p for p in packets if p.ect), None)
    if first:
        first.ect = False
    port = {"PI": Pi, "REM": Rem}[trace.kind](trace, draws)
    rows, lost = [], 0
    for number, (pkt, line) in enumerate(zip(packets, (x for x in lines if x[0] == "A"), strict=True)):
        port.advance(pkt.at_ns)
        found = (len(port.waiting), port.waiting_bytes)
        port.arrive(pkt)
        lost += pkt.fate in ("early", "full")
        theirs = (int(line[2]), int(line[3]))
        prob = float(line[4])
        if found != theirs or lost != int(line[5]) or abs(port.prob - prob) > DIGITS * prob + 1e-12:
            raise RuntimeError(
                f"{name}: arrival {number}: ns-2 {line}, replay {found} {port.prob:.9g} {pkt.fate}"
            )
        rows.append(
            dict(
                arrival_ns=pkt.at_ns,
                size=pkt.size,
                ect=int(pkt.ect),
                waiting=theirs[0],
                waiting_bytes=theirs[1],
                prob=line[4],
            )
        )
    port.advance(packets[-1].at_ns + 10 * 10**9)
    ours = [p.fate == "marked" for p in port.sent]
    if ours != marked:
        raise RuntimeError(f"{name}: marks differ: {sum(marked)} in ns-2, {sum(ours)} in the replay")
    for row, pkt in zip(rows, packets, strict=True):
        row["u"] = "" if pkt.u is None else repr(pkt.u)
        row["fate"] = pkt.fate
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=HERE.parent.parent / "vectors" / "ns2-controller-open-loop"
    )
    out = parser.parse_args().out
    for name, trace in TRACES.items():
        rows = record(name, trace)
        with (out / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        fates = [row["fate"] for row in rows]
        counted = ", ".join(f"{fates.count(word)} {word}" for word in ("passed", "marked", "early", "full"))
        print(f"{name}: {counted}, agreed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
