#!/usr/bin/env python3
"""Records the decisions of ns-2.35's RED under an open load, and checks that replays make the same decisions.

Runs open_loop_red.tcl for each trace below. An independent RED, written here from the paper and from ns-2's
documented behaviour, then replays every arrival: queue, average, probability and fate must agree, draw by
draw, before a CSV is written. The column `u` (the uniform draw behind a decision, empty where none was taken)
comes from that replay.

    python3 open_loop_red.py [--out DIR]
"""

import argparse
import csv
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ARRIVALS = 5000

# name: offered load during on periods, seconds on, seconds off (0: always on), wait_, limit_, seed
TRACES = {
    "idle": (0.5, 1, 0, 1, 60, 11),
    "bursts": (2.0, 1, 1, 1, 60, 12),
    "overload": (1.2, 1, 0, 1, 60, 13),
    "overload_nowait": (1.2, 1, 0, 0, 60, 13),
    "near": (0.95, 1, 0, 1, 60, 14),
    "flood": (3.0, 1, 1, 1, 20, 15),
}

SERVICE_NS = 8_000_000  # 1000 B at 1 Mbit/s
MIN_TH = 5.0
MAX_TH = 15.0
MAX_P = 0.1
WEIGHT = 0.02
# Packets of mean size per second, at the link's rate. An idle second counts as this many updates with an empty
# queue.
PACKETS_A_SECOND = 125.0
DIGITS = 5e-6  # ns-2 prints averages and probabilities with six significant digits


@dataclass
class Replay:
    """Gentle RED that counts packets, as in ns-2, and the link behind it."""

    wait: bool
    limit: int
    draws: list[float]
    avg: float = 0.0
    prob: float = 0.0
    count: int = 0
    was_above: bool = False
    idle_since_ns: int | None = 0
    departures: list[int] = field(default_factory=list)  # when each packet in the system leaves the link, in order
    used: int = 0

    def waiting(self, now_ns: int) -> int:
        """Removes the packets that have left; returns how many wait behind the packet in transmission."""
        while self.departures and self.departures[0] <= now_ns:
            left = self.departures.pop(0)
            if not self.departures:
                self.idle_since_ns = left
        return max(0, len(self.departures) - 1)

    def arrive(self, now_ns: int) -> tuple[int, str, float | None]:
        """Returns the queue length that the packet finds, its fate, and the draw if one was needed."""
        waiting = self.waiting(now_ns)
        self.age(now_ns, waiting)
        self.count += 1
        early, draw = False, None
        if self.avg >= MIN_TH and waiting > 1:
            if not self.was_above:
                self.was_above, self.count = True, 1
            else:
                self.prob = gentle_probability(self.avg)
                draw = self.draws[self.used]
                self.used += 1
                early = draw <= spaced(self.prob, self.count, self.wait)
                if early:
                    self.count = 0
        else:
            self.was_above = False
        if waiting >= self.limit:
            self.count = 0
            return waiting, "full", draw
        if early:
            # After a drop at an idle link, the link would stay idle; here, the queue holds two packets, so the link is
            # busy.
            return waiting, "early", draw
        begin = self.departures[-1] if self.departures else now_ns
        self.departures.append(begin + SERVICE_NS)
        return waiting, "admitted", draw

    def age(self, now_ns: int, waiting: int) -> None:
        """Updates the average once, after one update with an empty queue for each packet that the idle link
        could have sent."""
        if self.idle_since_ns is not None:
            for _ in range(int(PACKETS_A_SECOND * ((now_ns - self.idle_since_ns) / 1e9))):
                self.avg *= 1.0 - WEIGHT
            self.idle_since_ns = None
        self.avg = self.avg * (1.0 - WEIGHT) + WEIGHT * waiting


def gentle_probability(avg: float) -> float:
    """Returns the drop probability, which rises from 0 at min_th to max_p at max_th, then to 1 at
    twice max_th."""
    if avg < MAX_TH:
        return MAX_P * (avg - MIN_TH) / (MAX_TH - MIN_TH)
    return min(1.0, MAX_P + (1.0 - MAX_P) * (avg - MAX_TH) / MAX_TH)


def spaced(prob: float, count: int, wait: bool) -> float:
    """Returns the probability that evens out the gaps between drops; with `wait` (ns-2's default), each drop
    comes at least 1/prob arrivals after the last."""
    share = count * prob
    if not wait:
        return min(1.0, prob / (1.0 - share)) if share < 1.0 else 1.0
    if share < 1.0:
        return 0.0
    return min(1.0, prob / (2.0 - share)) if share < 2.0 else 1.0


def agree(ours: float, theirs: float) -> bool:
    return abs(ours - theirs) <= DIGITS * max(abs(theirs), 1e-12) + 1e-12


def record(settings: tuple) -> list[dict]:
    """Runs ns and replays its decisions; raises an error at the first arrival on which the two disagree."""
    command = ["nice", "-n", "19", "ns", str(HERE / "open_loop_red.tcl"), *map(str, settings), str(ARRIVALS)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in printed.splitlines()]
    draws = [float(line[1]) for line in lines if line[0] == "U"]
    replay = Replay(wait=bool(settings[3]), limit=settings[4], draws=draws)
    rows = []
    for number, (_, at_ns, waiting, avg, prob, fate) in enumerate(line for line in lines if line[0] == "A"):
        ours_waiting, ours_fate, draw = replay.arrive(int(at_ns))
        same = ours_waiting == int(waiting) and ours_fate == fate
        if not (same and agree(replay.avg, float(avg)) and agree(replay.prob, float(prob))):
            raise RuntimeError(
                f"arrival {number} at {at_ns} ns: ns-2 {waiting} {avg} {prob} {fate},"
                f" replay {ours_waiting} {replay.avg:.9g} {replay.prob:.9g} {ours_fate}"
            )
        shown = "" if draw is None else repr(draw)
        rows.append(dict(arrival_ns=at_ns, waiting=waiting, avg=avg, prob=prob, u=shown, fate=fate))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE.parent.parent / "vectors" / "ns2-red-open-loop")
    out = parser.parse_args().out
    for name, settings in TRACES.items():
        rows = record(settings)
        with (out / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        fates = [row["fate"] for row in rows]
        early, full = fates.count("early"), fates.count("full")
        draws = sum(row["u"] != "" for row in rows)
        print(f"{name}: {len(rows)} arrivals, {early} early, {full} full, {draws} draws, agreed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
