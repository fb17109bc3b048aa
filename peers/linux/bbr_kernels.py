"""Compare recordings of one BBR flow by two kernels.

    python3 bbr_kernels.py CASES DIRECTORY DIRECTORY > kernels.csv

Each DIRECTORY holds what `bbr_flow.py` wrote; CASES is its table of cases. The two kernels draw different
phases of BBR's cycle, so the segments agree only up to the first draw; what hardly depends on draws is
compared in one row per case (`vectors/linux-bbr/README.md` explains the columns).
"""

import csv
import sys
from itertools import pairwise
from pathlib import Path

# A segment agrees if it is the same and leaves at the same time within this many microseconds.
CLOCK_US = 100
STARTUP, DRAIN, PROBE_RTT = "739", "88", "256"


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with path.open() as file:
        return list(csv.DictReader(file))


def together(one: list[dict[str, str]], other: list[dict[str, str]]) -> int:
    """Return how many segments agree before the first that differs."""
    for n, (a, b) in enumerate(zip(one, other, strict=False)):
        if a["segment"] != b["segment"] or abs(int(a["time_us"]) - int(b["time_us"])) > CLOCK_US:
            return n
    return min(len(one), len(other))


def course(states: list[dict[str, str]]) -> dict[str, int | str]:
    """Return when Startup and Drain ended, and what the flow had done by its end."""

    def left(gain: str, after: int) -> int | None:
        times = (int(row["time_ns"]) for row in states if row["pacing_gain"] != gain)
        return next((at for at in times if at >= after), None)

    startup = left(STARTUP, 0)
    drain = None if startup is None else left(DRAIN, startup)
    gains = [row["cwnd_gain"] for row in states]
    last = states[-1]
    return {
        "startup_ms": "" if startup is None else round(startup / 1e6),
        "drain_ms": "" if drain is None else round(drain / 1e6),
        "delivered": last["delivered"],
        "retransmitted": last["retransmitted"],
        "largest_window": max(int(row["cwnd"]) for row in states),
        "bw_kbit": round(int(last["bw"]) * 8 / 1000),
        "probes_of_rtt": sum(b == PROBE_RTT != a for a, b in pairwise(gains)),
    }


def main(cases: str, *folders: str) -> None:
    """Print the table."""
    table = []
    for case in (row["case"] for row in rows(Path(cases))):
        sent = [rows(Path(folder) / f"{case}.segments.csv") for folder in folders]
        courses = [course(rows(Path(folder) / f"{case}.csv")) for folder in folders]
        both = {f"{key}_{nth}": found[key] for key in courses[0] for nth, found in enumerate(courses, 1)}
        table.append({"case": case, "segments": len(sent[0]), "together": together(*sent)} | both)
    writer = csv.DictWriter(sys.stdout, table[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)


if __name__ == "__main__":
    main(*sys.argv[1:])
