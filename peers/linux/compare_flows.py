"""Compare the flows that two kernels sent in the same cases of `single_flow.py`.

    python3 compare_flows.py CASES DIRECTORY OTHER

Prints, for each kind of case, how many there are, in how many the senders of both directories sent the same segments
in the same order, and in how many of these all times differ by at most 1.3 ms, the transmission time of a segment on
the slow link and a tick. CASES is a table of cases; each directory has one file per case.
"""

import csv
import os
import sys

SLACK_NS = 1_300_000


def sent(directory: str, case: str) -> list[tuple[int, str, str]]:
    """Return the sender's data segments: time in nanoseconds, offset in the stream, length."""
    with open(os.path.join(directory, case + ".csv")) as file:
        rows = [row for row in csv.DictReader(file) if row["from"] == "s" and row["length"] != "0"]
    return [(int(row["time_ns"]), row["sequence"], row["length"]) for row in rows]


def kind(case: dict[str, str]) -> str:
    """Return the kind of a case: how it was made, and how its sender finds losses."""
    made = "drawn" if case["case"].startswith("drawn_") else "chosen"
    finds = "without SACK" if case["sack"] == "0" else "with RACK" if case["rack"] == "1" else "with SACK, without RACK"
    return f"{made}, {finds}"


def main(cases: str, one: str, other: str) -> None:
    """Print the table, and then the cases whose order differs."""
    table: dict[str, list[int]] = {}
    differing = []
    with open(cases) as file:
        for case in csv.DictReader(file):
            a, b = sent(one, case["case"]), sent(other, case["case"])
            order = [segment[1:] for segment in a] == [segment[1:] for segment in b]
            close = order and all(abs(x[0] - y[0]) <= SLACK_NS for x, y in zip(a, b, strict=True))
            counts = table.setdefault(kind(case), [0, 0, 0])
            for place, counted in enumerate((True, order, close)):
                counts[place] += counted
            if not order:
                differing.append(case["case"])
    print("| cases | of | same order | same times |\n|---|---|---|---|")
    for name, (count, order, close) in table.items():
        print(f"| {name} | {count} | {order} | {close} |")
    print("\nanother order:", *differing)


if __name__ == "__main__":
    main(*sys.argv[1:])
